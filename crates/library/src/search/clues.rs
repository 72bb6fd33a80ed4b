//! Letters that the line of a matching text must contain, so that most lines need not be decoded.
//!
//! A line is JSON. Letters and digits of a text stand in it as they are, apart from the exceptions that [`hidden`] names.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

/// The least length of a clue in a regular expression; shorter ones are in most lines.
const CLUE_BYTES_MIN: usize = 2;
/// The word that a text can have although its line does not: images are shown with their size.
const SIZE_WORD: &str = "bytes";

/// Returns an expression for a clue, in any case.
pub(super) fn expression(clue: &str) -> Option<Regex> {
    RegexBuilder::new(&regex::escape(clue)).case_insensitive(true).unicode(false).build().ok()
}

/// Returns an expression for everything that can stand in a line instead of a clue: escapes of characters, sequences of
/// terminals, which are not part of a text, and the sign for kelvin, whose normal form is a letter.
pub(super) fn hidden(clues: &[String]) -> Regex {
    let is_size = |clue: &String| {
        SIZE_WORD.contains(&clue.to_ascii_lowercase()) || clue.bytes().all(|byte| byte.is_ascii_digit())
    };
    let placeholders = if clues.iter().any(is_size) { "|\"(?:data|label)\"" } else { "" };
    let text = format!(r"(?-u)\\u(?:00[2-7]|001[bB]|212[aA])|\xe2\x84\xaa{placeholders}");
    Regex::new(&text).expect("the expression is correct")
}

/// Returns the longest run of ASCII letters and digits.
pub(super) fn longest_word(text: &str) -> Option<String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.max_by_key(|word| word.len()).filter(|word| !word.is_empty()).map(str::to_owned)
}

/// Returns the longest word that every match of a regular expression contains.
pub(super) fn of_pattern(pattern: &str) -> Option<String> {
    let parsed = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern).ok()?;
    let mut found = Vec::new();
    needed(&parsed, &mut found);
    found.into_iter().max_by_key(String::len).filter(|clue| clue.len() >= CLUE_BYTES_MIN)
}

/// Collects words that every match contains.
fn needed(part: &Hir, found: &mut Vec<String>) {
    match part.kind() {
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            // Other characters may be escaped, or put in where a block has no text.
            found.extend(
                text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                    .filter(|word| !word.is_empty())
                    .map(str::to_owned),
            );
        }
        HirKind::Capture(group) => needed(&group.sub, found),
        HirKind::Repetition(repeated) if repeated.min > 0 => needed(&repeated.sub, found),
        HirKind::Concat(parts) => parts.iter().for_each(|part| needed(part, found)),
        HirKind::Empty
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Repetition(_)
        | HirKind::Alternation(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clue_is_in_every_match() {
        for (pattern, want) in [
            (r"fn \w+_test", Some("_test")),
            ("l.ft == right", Some("right")),
            ("(?:abc)+x*", Some("abc")),
            ("abc|def", None),
            ("(?i)abc", None),
            ("a", None),
            ("(abc)?", None),
            ("größe", Some("gr")),
        ] {
            assert_eq!(of_pattern(pattern).as_deref(), want, "{pattern}");
        }
    }
}
