//! Decides whether a text matches a query, and where.

use std::borrow::Cow;
use std::ops::Range;

use regex::Regex;
use regex::bytes::{Regex as BytesRegex, RegexBuilder as BytesRegexBuilder};
use steno_index::{Query, composed};

/// The memory that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Why a regular expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the regular expression `{pattern}` cannot be read: {why}")]
pub struct PatternError {
    /// The expression.
    pub pattern: String,
    /// Why.
    pub why: String,
}

/// A query, ready to be compared with many texts.
pub(super) struct TextMatcher<'a> {
    query: &'a Query,
    patterns: Vec<Regex>,
    /// What the line of a matching text must contain; none if a line does not show it.
    clues: Vec<BytesRegex>,
    /// Escapes that may hide letters and digits from the clues.
    escapes: BytesRegex,
}

/// The matches in a text.
pub(super) struct TextMatch<'a> {
    /// The text in NFC.
    pub(super) text: &'a str,
    /// The matches in it, in order.
    pub(super) ranges: Vec<Range<usize>>,
}

/// A text in NFC with its matches.
pub(super) struct OwnedMatch<'a>(Cow<'a, str>, Vec<Range<usize>>);

impl<'a> TextMatcher<'a> {
    pub(super) fn of(query: &'a Query) -> Result<Self, PatternError> {
        let patterns = query.patterns.iter().map(|pattern| compile(pattern)).collect::<Result<_, _>>()?;
        let clues = query
            .words
            .iter()
            .filter_map(|word| word.terms.iter().filter(|term| term.is_ascii()).max_by_key(|term| term.len()))
            .cloned()
            .chain(query.exact.iter().filter_map(|text| longest_word(text)));
        Ok(Self {
            query,
            patterns,
            clues: clues.filter_map(|clue| clue_for(&clue)).collect(),
            escapes: BytesRegex::new(r"(?-u)\\u00[3-7]").expect("the expression is correct"),
        })
    }

    /// Tells whether the line of a text may have a match. False is certain.
    pub(super) fn may_match(&self, line: &[u8]) -> bool {
        self.clues.iter().all(|clue| clue.is_match(line)) || self.escapes.is_match(line)
    }

    /// Returns the matches in a text; `None` if it does not match.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<OwnedMatch<'t>> {
        let text = composed(text);
        let mut ranges = Vec::new();
        let mut all = |found: Vec<Range<usize>>| {
            let is_found = !found.is_empty();
            ranges.extend(found);
            is_found
        };
        let is_match = self.query.words.iter().all(|word| all(word.find(&text)))
            && self.query.exact.iter().all(|exact| all(places_of(&composed(exact), &text)))
            && self
                .patterns
                .iter()
                .all(|pattern| all(pattern.find_iter(&text).map(|found| found.range()).collect()));
        if !is_match {
            return None;
        }
        ranges.sort_by_key(|range| (range.start, range.end));
        Some(OwnedMatch(text, ranges))
    }
}

impl OwnedMatch<'_> {
    pub(super) fn as_match(&self) -> TextMatch<'_> {
        TextMatch { text: &self.0, ranges: self.1.clone() }
    }
}

fn compile(pattern: &str) -> Result<Regex, PatternError> {
    regex::RegexBuilder::new(pattern).multi_line(true).size_limit(PATTERN_BYTES_MAX).build().map_err(
        |error| PatternError {
            pattern: pattern.to_owned(),
            why: error.to_string().lines().last().unwrap_or_default().to_owned(),
        },
    )
}

/// Returns an expression for letters and digits in any case.
fn clue_for(word: &str) -> Option<BytesRegex> {
    BytesRegexBuilder::new(&regex::escape(word)).case_insensitive(true).unicode(false).build().ok()
}

/// Returns the longest run of ASCII letters and digits.
fn longest_word(text: &str) -> Option<String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.max_by_key(|word| word.len()).filter(|word| !word.is_empty()).map(str::to_owned)
}

fn places_of(wanted: &str, text: &str) -> Vec<Range<usize>> {
    text.match_indices(wanted).map(|(place, found)| place..place + found.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &Query, text: &str, want: Option<&[&str]>) {
        let matcher = TextMatcher::of(query).unwrap();
        let found = matcher.find(text);
        let words = found.as_ref().map(|found| {
            let found = found.as_match();
            found.ranges.iter().map(|range| found.text[range.clone()].to_owned()).collect::<Vec<_>>()
        });
        let want = want.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words, want, "{query:?} in {text}");
        let line = serde_json::to_string(text).unwrap();
        assert!(want.is_none() || matcher.may_match(line.as_bytes()), "the clue is in {line}");
    }

    #[test]
    fn all_conditions_must_match() {
        let query = |text: &str| Query::parse(text).unwrap();
        check(&query("login bug"), "A Login\nand a bug.", Some(&["Login", "bug"]));
        check(&query("login bug"), "A login.", None);
        check(&query("/b.g$/ login"), "bug\nlogin", Some(&["bug", "login"]));
        check(&query("/^x/"), "ax", None);
        check(&query("größe"), "Die Gro\u{308}ße", Some(&["Größe"]));
    }

    #[test]
    fn exact_text_has_its_case_and_punctuation() {
        let query = Query::exactly("x = \"Y\";").unwrap();
        check(&query, "let x = \"Y\";", Some(&["x = \"Y\";"]));
        check(&query, "let x = \"y\";", None);
    }

    #[test]
    fn escaped_letters_are_not_overlooked() {
        let query = Query::parse("needle").unwrap();
        let matcher = TextMatcher::of(&query).unwrap();
        assert!(matcher.may_match(br#"{"text":"n\u0065edle"}"#));
        assert!(!matcher.may_match(br#"{"text":"\u001b[1mhay"}"#));
    }

    #[test]
    fn wrong_expression_is_an_error() {
        let query = Query::parse("/a(/").unwrap();
        let error = TextMatcher::of(&query).err().unwrap();
        assert!(error.to_string().contains("`a(`"), "{error}");
    }
}
