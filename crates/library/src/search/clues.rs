//! Letters that the line of a matching text must contain, so that most lines need not be decoded.
//!
//! A line is JSON. It contains the letters and digits of a text unchanged, apart from the exceptions that [`hidden`]
//! names.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

/// The least length of a clue in a regular expression; shorter ones are in most lines.
const CLUE_BYTES_MIN: usize = 2;
/// The word that a text can have although its line does not: images are shown with their size.
const SIZE_WORD: &str = "bytes";

/// How many clues a line is compared with.
const CLUES_MAX: usize = 3;
/// The characters of the text that stands for a block without text, as in `[image, 148 bytes]`.
const PLACEHOLDER_SIGNS: [char; 4] = ['[', ']', ',', ' '];

/// Texts; the line of a match has at least one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clue {
    texts: Vec<String>,
    /// Whether capital letters are equal to small ones.
    is_any_case: bool,
}

impl Clue {
    /// Makes the clue for a word, in any case.
    pub(super) fn word(word: &str) -> Self {
        Self { texts: vec![word.to_owned()], is_any_case: true }
    }

    /// Returns how selective it is: the length of its shortest text.
    pub(super) fn len(&self) -> usize {
        self.texts.iter().map(String::len).min().unwrap_or(0)
    }

    /// Returns the expression that finds it in a line.
    pub(super) fn expression(&self) -> Option<Regex> {
        let texts: Vec<String> = self.texts.iter().map(|text| in_line(text)).collect();
        let mut builder = RegexBuilder::new(&texts.join("|"));
        builder.case_insensitive(self.is_any_case).unicode(false).build().ok()
    }
}

/// Returns an expression for a text as a line has it: as a string of JSON, or as JSON that is itself the text.
fn in_line(text: &str) -> String {
    let mut expression = String::new();
    for letter in text.chars() {
        match letter {
            '"' => expression.push_str(r#"\\?""#),
            '/' => expression.push_str(r"\\?/"),
            '\\' => expression.push_str(r"\\{1,2}"),
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    expression
}

/// Returns the parts of a text that the line of a match has unchanged. Other characters may have several forms, or be
/// added when a text is shown.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let is_uncertain = |letter: char| !letter.is_ascii() || letter.is_ascii_control();
    text.split(move |letter| is_uncertain(letter) || PLACEHOLDER_SIGNS.contains(&letter))
        .filter(|part| !part.is_empty())
}

/// Returns the most selective clues.
fn best(mut clues: Vec<Clue>) -> Vec<Clue> {
    clues.sort_by_key(|clue| std::cmp::Reverse(clue.len()));
    clues.truncate(CLUES_MAX);
    clues
}

/// Returns an expression for everything that a line can have in place of a clue: escapes of characters, sequences of
/// terminals, which are not part of a text, the sign for kelvin, whose normal form is a letter, and `İ`, whose lower
/// case begins with one.
pub(super) fn hidden(clues: &[Clue]) -> Regex {
    let is_size = |text: &String| {
        SIZE_WORD.contains(&text.to_ascii_lowercase()) || text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let has_size = clues.iter().flat_map(|clue| &clue.texts).any(is_size);
    let placeholders = if has_size { "|\"(?:data|label)\"" } else { "" };
    let text = format!(r"(?-u)\\u(?:00[2-7]|001[bB]|0130|212[aA])|\xc4\xb0|\xe2\x84\xaa{placeholders}");
    Regex::new(&text).expect("the expression is correct")
}

/// Returns clues for a text that must occur as it is.
pub(super) fn of_exact(text: &str) -> Vec<Clue> {
    best(parts(text).map(|part| Clue { texts: vec![part.to_owned()], is_any_case: false }).collect())
}

/// Returns clues for a regular expression: what every match contains.
pub(super) fn of_pattern(pattern: &str) -> Vec<Clue> {
    let parsed = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern);
    let mut found = Vec::new();
    if let Ok(parsed) = &parsed {
        needed(parsed, &mut found);
    }
    found.retain(|clue| clue.len() >= CLUE_BYTES_MIN);
    best(found)
}

/// Collects what every match contains.
fn needed(part: &Hir, found: &mut Vec<Clue>) {
    match part.kind() {
        HirKind::Literal(_) | HirKind::Class(_) => of_sequence(std::slice::from_ref(part), found),
        HirKind::Capture(group) => needed(&group.sub, found),
        HirKind::Repetition(repeated) if repeated.min > 0 => needed(&repeated.sub, found),
        HirKind::Concat(parts) => of_sequence(parts, found),
        HirKind::Alternation(parts) => {
            let best_of = |part: &Hir| {
                let mut found = Vec::new();
                needed(part, &mut found);
                found.into_iter().max_by_key(Clue::len)
            };
            if let Some(clues) = parts.iter().map(best_of).collect::<Option<Vec<_>>>() {
                let is_any_case = clues.iter().any(|clue| clue.is_any_case);
                found.push(Clue {
                    texts: clues.into_iter().flat_map(|clue| clue.texts).collect(),
                    is_any_case,
                });
            }
        }
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => {}
    }
}

/// Collects what every match of a sequence contains. Letters in any case are part of its texts.
fn of_sequence(sequence: &[Hir], found: &mut Vec<Clue>) {
    let (mut text, mut is_any_case) = (String::new(), false);
    let end = |text: &mut String, is_any_case: &mut bool, found: &mut Vec<Clue>| {
        found
            .extend(parts(text).map(|part| Clue { texts: vec![part.to_owned()], is_any_case: *is_any_case }));
        text.clear();
        *is_any_case = false;
    };
    for part in sequence {
        match part.kind() {
            HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
            HirKind::Class(class) => match letter_of(class) {
                Some(letter) => {
                    text.push(letter);
                    is_any_case = true;
                }
                None => end(&mut text, &mut is_any_case, found),
            },
            HirKind::Empty
            | HirKind::Look(_)
            | HirKind::Repetition(_)
            | HirKind::Capture(_)
            | HirKind::Concat(_)
            | HirKind::Alternation(_) => {
                end(&mut text, &mut is_any_case, found);
                needed(part, found);
            }
        }
    }
    end(&mut text, &mut is_any_case, found);
}

/// Returns the letter of ASCII whose small and capital form a class has, and nothing else.
fn letter_of(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let [capital, small] = class.ranges() else { return None };
    let letter = small.start();
    let is_letter = letter.is_ascii_lowercase()
        && small.end() == letter
        && (capital.start(), capital.end()) == (letter.to_ascii_uppercase(), letter.to_ascii_uppercase());
    is_letter.then_some(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clue_is_in_every_match() {
        for (pattern, want) in [
            (r"fn \w+_test", "_test fn"),
            ("l.ft == right", "right ft =="),
            ("(?:abc)+x*", "abc"),
            ("abc|de", "abc|de"),
            ("abc|d", ""),
            ("abc|.*", ""),
            ("x(?:foo|(ba)r)y", "foo|ba"),
            // The long s is equal to both forms of `s`.
            ("(?i)abc: sad", "abc:/i ad/i"),
            ("a", ""),
            ("(abc)?", ""),
            ("größe", "gr"),
            (r"[a-z]+Error: [A-Z]", "Error:"),
            (r#"\["name"\] ="#, "\"name\""),
        ] {
            let words =
                |clue: &Clue| format!("{}{}", clue.texts.join("|"), if clue.is_any_case { "/i" } else { "" });
            let found: Vec<String> = of_pattern(pattern).iter().map(words).collect();
            assert_eq!(found.join(" "), want, "{pattern}");
        }
    }

    #[test]
    fn clue_is_found_in_every_form_of_json() {
        for (text, line) in [
            (r#"x="y""#, r#"{"text":"x=\"y\""}"#),
            (r#"x="y""#, r#"{"output":{"x="y"":1}}"#),
            ("a/b", r#"{"text":"a\/b"}"#),
            ("a/b", r#"{"text":"a/b"}"#),
            (r"\d+", r#"{"text":"\\d+"}"#),
            (r"\d+", r#"{"output":{"x":"\d+"}}"#),
            (r#"\"q"#, r#"{"text":"\\\"q"}"#),
        ] {
            let clues = of_exact(text);
            assert_eq!(clues.len(), 1, "{text}");
            assert!(clues[0].expression().unwrap().is_match(line.as_bytes()), "{text} in {line}");
        }
        let texts: Vec<Vec<String>> =
            of_exact("a [b, c]\nlong.").into_iter().map(|clue| clue.texts).collect();
        assert_eq!(texts, [["long."], ["a"], ["b"]]);
    }
}
