//! Decides whether a text matches a query, and where.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};
use regex::Regex;
use regex::bytes::Regex as BytesRegex;
use steno_index::{Query, WordQuery, composed};

use super::clues::{self, Clue};

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
    words: Vec<WordMatcher<'a>>,
    patterns: Vec<Regex>,
    clues: Vec<BytesRegex>,
    /// What a line may have in place of a clue.
    hidden: BytesRegex,
}

/// A word or phrase, and an expression for one of its terms.
struct WordMatcher<'a> {
    word: &'a WordQuery,
    term: Option<BytesRegex>,
}

impl WordMatcher<'_> {
    /// Returns its matches in a text in NFC: all, or some if there are more than `limit`.
    fn find(&self, text: &str, limit: usize) -> Vec<Range<usize>> {
        match &self.term {
            Some(term) => {
                let places = term.find_iter(text.as_bytes()).map(|found| found.start());
                self.word.find_near(text, places, limit)
            }
            None => self.word.find(text),
        }
    }
}

/// The matches in a text.
pub(super) struct TextMatch<'a> {
    /// The text in NFC.
    pub(super) text: Cow<'a, str>,
    /// The matches in it, in order.
    pub(super) ranges: Vec<Range<usize>>,
}

impl<'a> TextMatcher<'a> {
    pub(super) fn of(query: &'a Query) -> Result<Self, PatternError> {
        let patterns = query.patterns.iter().map(|pattern| compile(pattern)).collect::<Result<_, _>>()?;
        let term = |word: &WordQuery| word.clue().map(|number| Clue::word(&word.terms[number]));
        let mut clues: Vec<Clue> = query
            .words
            .iter()
            .filter_map(term)
            .chain(query.exact.iter().flat_map(|text| clues::of_exact(&composed(text))))
            .chain(query.patterns.iter().flat_map(|pattern| clues::of_pattern(pattern)))
            .collect();
        clues.sort_by_key(|clue| std::cmp::Reverse(clue.len()));
        let word =
            |word: &'a WordQuery| WordMatcher { word, term: term(word).and_then(|clue| clue.expression()) };
        Ok(Self {
            query,
            words: query.words.iter().map(word).collect(),
            patterns,
            hidden: clues::hidden(&clues),
            clues: clues.iter().filter_map(Clue::expression).collect(),
        })
    }

    /// Tells whether lines can be left out without reading their texts.
    pub(super) fn has_clue(&self) -> bool {
        !self.clues.is_empty()
    }

    /// Tells whether the line of a text may have a match. False is certain.
    #[cfg(test)]
    pub(super) fn may_match(&self, line: &[u8]) -> bool {
        self.clues.iter().all(|clue| clue.is_match(line)) || self.hidden.is_match(line)
    }

    /// Passes the beginning and end of each line that may have a match. The lines end with `\n`.
    pub(super) fn each_line<'t>(&self, lines: &'t [u8], mut found: impl FnMut(usize, &'t [u8])) {
        let mut places = match self.clues.first() {
            Some(clue) => line_starts(lines, clue),
            None => starts(lines),
        };
        let hidden = line_starts(lines, &self.hidden);
        let others = self.clues.get(1..).unwrap_or_default();
        places.retain(|start| {
            let line = line_at(lines, *start);
            others.iter().all(|clue| clue.is_match(line))
        });
        places.extend(hidden);
        places.sort_unstable();
        places.dedup();
        for start in places {
            found(start, line_at(lines, start));
        }
    }

    /// Returns the matches in a text; `None` if it does not match.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<TextMatch<'t>> {
        let text = composed(text);
        let mut ranges = Vec::new();
        let mut all = |found: Vec<Range<usize>>| {
            let is_found = !found.is_empty();
            ranges.extend(found);
            is_found
        };
        let is_match = self.words.iter().all(|word| all(word.find(&text, usize::MAX)))
            && self.query.exact.iter().all(|exact| all(places_of(&composed(exact), &text)))
            && self
                .patterns
                .iter()
                .all(|pattern| all(pattern.find_iter(&text).map(|found| found.range()).collect()));
        if !is_match {
            return None;
        }
        ranges.sort_by_key(|range| (range.start, range.end));
        Some(TextMatch { text, ranges })
    }

    /// Tells whether a text matches.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let text = composed(text);
        self.words.iter().all(|word| !word.find(&text, 1).is_empty())
            && self.query.exact.iter().all(|exact| text.contains(&*composed(exact)))
            && self.patterns.iter().all(|pattern| pattern.is_match(&text))
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

/// Returns where the lines begin in which an expression matches.
fn line_starts(lines: &[u8], expression: &BytesRegex) -> Vec<usize> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(place) = expression.find_at(lines, from) {
        let start = memrchr(b'\n', &lines[..place.start()]).map_or(0, |end| end + 1);
        found.push(start);
        let Some(end) = memchr(b'\n', &lines[place.end()..]) else { break };
        from = place.end() + end + 1;
    }
    found
}

/// Returns where all lines begin.
fn starts(lines: &[u8]) -> Vec<usize> {
    let ends = memchr_iter(b'\n', lines).map(|end| end + 1);
    std::iter::once(0).chain(ends).filter(|start| *start < lines.len()).collect()
}

fn line_at(lines: &[u8], start: usize) -> &[u8] {
    let rest = &lines[start..];
    &rest[..memchr(b'\n', rest).unwrap_or(rest.len())]
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
        assert_eq!(matcher.is_match(text), found.is_some(), "{query:?} in {text}");
        let words = found.as_ref().map(|found| {
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
        assert!(matcher.may_match(br#"{"text":"nee\u001b[1mdle"}"#), "the sequence is not part of the text");
        assert!(!matcher.may_match(br#"{"text":"\u0007 hay"}"#));
        let query = Query::parse("kelvin").unwrap();
        let matcher = TextMatcher::of(&query).unwrap();
        assert!(matcher.may_match("\u{212a}elvin".as_bytes()), "its normal form is a letter of ASCII");
        let query = Query::parse("bytes").unwrap();
        let matcher = TextMatcher::of(&query).unwrap();
        assert!(matcher.may_match(br#"{"type":"image","data":"AAAA"}"#), "an image is shown with its size");
    }

    #[test]
    fn lines_with_a_clue_are_found() {
        let query = Query::parse("needle hay").unwrap();
        let matcher = TextMatcher::of(&query).unwrap();
        let lines = b"a needle\nNEEDLE in hay, needle\n\nhay\n\\u006eeedle\nhay needle\n";
        let mut found = Vec::new();
        matcher
            .each_line(lines, |start, line| found.push((start, String::from_utf8_lossy(line).into_owned())));
        let want = [(9, "NEEDLE in hay, needle"), (36, "\\u006eeedle"), (48, "hay needle")];
        assert_eq!(found, want.map(|(start, line)| (start, line.to_owned())));
        let query = Query::parse("exit:1").unwrap();
        let all = TextMatcher::of(&query).unwrap();
        let mut found = Vec::new();
        all.each_line(b"a\n\nb\n", |start, line| found.push((start, line.len())));
        assert_eq!(found, [(0, 1), (2, 0), (3, 1)]);
    }

    #[test]
    fn wrong_expression_is_an_error() {
        let query = Query::parse("/a(/").unwrap();
        let error = TextMatcher::of(&query).err().unwrap();
        assert!(error.to_string().contains("`a(`"), "{error}");
    }
}
