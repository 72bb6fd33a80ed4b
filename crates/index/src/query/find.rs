//! Finds the words of a query in a text.
//!
//! Splitting a whole text into words takes longer than reading it. So the caller passes the places that may have a
//! term, and only the words near them are compared.

use std::ops::Range;

use super::WordQuery;
use crate::terms::{Class, TermKind, class, each_term};

impl WordQuery {
    /// Returns the ranges of a text in NFC that match: words, or a part of a word.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.find_in(text, 0..text.len(), &mut found);
        found
    }

    /// Returns the number of the term that is best to look for in the bytes of a text: the longest one of ASCII.
    #[must_use]
    pub fn clue(&self) -> Option<usize> {
        let terms = self.terms.iter().enumerate().filter(|(_, term)| term.is_ascii());
        terms.max_by_key(|(_, term)| term.len()).map(|(number, _)| number)
    }

    /// Does what [`WordQuery::find`] does, but stops soon after `limit` matches. `places` are all places, in order, at
    /// which the text has the term of [`WordQuery::clue`] in any case, even inside of words.
    #[must_use]
    pub fn find_near(
        &self,
        text: &str,
        places: impl Iterator<Item = usize>,
        limit: usize,
    ) -> Vec<Range<usize>> {
        // The lower case of this letter begins with one of ASCII.
        const DOTTED: char = '\u{130}';
        let Some(clue) = self.clue().filter(|_| !self.is_prefix || !text.contains(DOTTED)) else {
            return self.find(text);
        };
        let (mut found, mut near) = (Vec::new(), 0..0);
        let mut word_end = 0;
        for place in places {
            if place < word_end {
                continue;
            }
            let start = back(text, word_start(text, place), clue);
            word_end =
                place + text[place..].find(|next| class(next) != Class::Word).unwrap_or(text.len() - place);
            let end = forward(text, word_end, self.terms.len() - 1 - clue);
            if start > near.end {
                self.find_in(text, near, &mut found);
                near = start..end;
                if found.len() >= limit {
                    return found;
                }
            } else {
                near.end = end;
            }
        }
        self.find_in(text, near, &mut found);
        found
    }

    /// Compares the words in a range, which neither begins nor ends inside of a word.
    fn find_in(&self, text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
        let (first, offset) = (found.len(), range.start);
        // The matches that have begun: how many terms each has so far, and where its first term begins.
        let mut open: Vec<(usize, usize)> = Vec::new();
        each_term(&text[range], |kind, place, term| match kind {
            TermKind::Part => {
                if self.terms.len() == 1 && self.fits(0, term) {
                    found.push(offset + place.start..offset + place.end);
                }
            }
            TermKind::Word | TermKind::Break => {
                open.push((0, place.start));
                open.retain_mut(|(len, _)| {
                    let is_next = self.fits(*len, term);
                    *len += usize::from(is_next);
                    is_next
                });
                if let Some(first) = open.iter().position(|(len, _)| *len == self.terms.len()) {
                    let (_, start) = open.remove(first);
                    found.push(offset + start..offset + place.end);
                }
            }
        });
        found[first..].sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    }

    fn fits(&self, place: usize, term: &str) -> bool {
        let wanted = self.terms[place].as_str();
        let is_beginning = self.is_prefix && place + 1 == self.terms.len();
        if is_beginning { term.starts_with(wanted) } else { term == wanted }
    }
}

/// Returns the start of the word that contains the character at a place.
fn word_start(text: &str, place: usize) -> usize {
    let before =
        text[..place].char_indices().rev().take_while(|(_, character)| class(*character) == Class::Word);
    before.last().map_or(place, |(start, _)| start)
}

/// Returns the start of the word that is `terms` terms before a place.
fn back(text: &str, place: usize, terms: usize) -> usize {
    reach(text[..place].char_indices().rev(), place, terms)
}

/// Returns the end of the word that is `terms` terms after a place.
fn forward(text: &str, place: usize, terms: usize) -> usize {
    let characters = text[place..].char_indices();
    reach(characters.map(|(at, character)| (place + at + character.len_utf8(), character)), place, terms)
}

/// Returns the place after `terms` terms. Each character comes with the place beyond it.
fn reach(characters: impl Iterator<Item = (usize, char)>, place: usize, terms: usize) -> usize {
    let (mut end, mut seen, mut word) = (place, 0, Class::Other);
    for (beyond, character) in characters {
        let next = class(character);
        // A character of a CJK word is a term, but a range ends only at the end of the whole word.
        if next != word {
            if seen >= terms {
                break;
            }
            seen += usize::from(next == Class::Word);
        }
        seen += usize::from(next == Class::Cjk);
        (end, word) = (beyond, next);
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Query;

    #[track_caller]
    fn check(query: &str, text: &str, want: bool) {
        let query = Query::parse(query).unwrap();
        let is_found = query.words.iter().all(|word| !word.find(text).is_empty());
        assert_eq!(is_found, want, "{query:?} in {text}");
    }

    #[test]
    fn words_match_whole_words_parts_and_prefixes() {
        check("auth", "src/auth.rs", true);
        check("auth", "authentication", false);
        check("auth*", "authentication", true);
        check("response", "parseHTTPResponse()", true);
        check("respo*", "parseHTTPResponse()", true);
        check("auth.rs", "src/auth.rs:12", true);
        check("\"login bug\"", "the Login, bug", true);
        check("\"login bug\"", "the login had a bug", false);
        check("言語", "Rust言語です", true);
        check("言語", "言、語", false);
        check("\"rs 12\"", "auth.rs:123", false);
    }

    #[test]
    fn find_returns_the_places() {
        let word = &Query::parse("\"a b\"").unwrap().words[0];
        assert_eq!(word.find("a a-b, A.B"), [2..5, 7..10]);
        let word = &Query::parse("http*").unwrap().words[0];
        assert_eq!(word.find("parseHTTPResponse https"), [5..9, 18..23]);
    }

    proptest! {
        /// A search near the places of a term finds what a search of the whole text finds.
        #[test]
        fn near_is_as_everywhere(
            text in "[aAbB_ İ言語.1]{0,24}",
            query in "\"[ab1言語 ]{1,6}\"\\*?",
        ) {
            let Ok(query) = Query::parse(&query) else { return Ok(()) };
            let word = &query.words[0];
            let Some(clue) = word.clue() else { return Ok(()) };
            let lower = text.to_ascii_lowercase();
            let places: Vec<usize> =
                (0..text.len()).filter(|place| lower.as_bytes()[*place..].starts_with(word.terms[clue].as_bytes())).collect();
            prop_assert_eq!(word.find_near(&text, places.iter().copied(), usize::MAX), word.find(&text));
            let some = word.find_near(&text, places.into_iter(), 1);
            prop_assert_eq!(some.is_empty(), word.find(&text).is_empty());
        }
    }
}
