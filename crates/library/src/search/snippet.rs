//! The part of a text around its first match.

use std::ops::Range;

/// How many characters are shown before and after a match.
const CHARS_BEFORE: usize = 60;
const CHARS_AFTER: usize = 140;

/// A part of a text with the matches in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The part, on one line: line ends and tabs are spaces.
    pub text: String,
    /// The matches, as bytes of the part.
    pub matches: Vec<Range<usize>>,
    /// Whether the text has more before it.
    pub is_cut_before: bool,
    /// Whether the text has more after it.
    pub is_cut_after: bool,
}

impl Snippet {
    /// Cuts a part around the first of some ranges, which are in order.
    #[must_use]
    pub fn around(text: &str, ranges: &[Range<usize>]) -> Self {
        let first = ranges.first().cloned().unwrap_or(0..0);
        let start =
            text[..first.start].char_indices().rev().nth(CHARS_BEFORE - 1).map_or(0, |(place, _)| place);
        let end = text[first.start..]
            .char_indices()
            .nth(CHARS_AFTER)
            .map_or(text.len(), |(place, _)| first.start + place);
        let part = &text[start..end];
        let matches = ranges
            .iter()
            .filter(|range| range.start >= start && range.start < end)
            .map(|range| range.start - start..range.end.min(end) - start)
            .filter(|range| !range.is_empty())
            .collect();
        Self {
            // Each of these is one byte long, so places stay.
            text: part.replace(['\n', '\r', '\t'], " "),
            matches,
            is_cut_before: start > 0,
            is_cut_after: end < text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_is_centred_on_the_first_match() {
        let text = format!("{}needle{}", "ä".repeat(100), "x".repeat(300));
        let at = text.find("needle").unwrap();
        let snippet = Snippet::around(&text, &[at..at + 6, at + 20..at + 22]);
        assert!(snippet.is_cut_before && snippet.is_cut_after);
        assert_eq!(snippet.text.chars().count(), CHARS_BEFORE + CHARS_AFTER);
        let [first, second] = &snippet.matches[..] else { panic!("{snippet:?}") };
        assert_eq!((&snippet.text[first.clone()], second.len()), ("needle", 2));
    }

    #[test]
    fn short_texts_are_whole_and_on_one_line() {
        let snippet = Snippet::around("a\nb\tc", &[0..1, 2..3]);
        let want = Snippet {
            text: "a b c".into(),
            matches: vec![0..1, 2..3],
            is_cut_before: false,
            is_cut_after: false,
        };
        assert_eq!(snippet, want);
    }
}
