//! A query in the language of FTS5.

use std::ops::Range;

use super::{Query, WordQuery};
use crate::terms::{TermKind, each_term};

impl Query {
    /// Returns the words as an expression of FTS5; `None` if there are none.
    pub(crate) fn expression(&self) -> Option<String> {
        let words: Vec<String> = self.words.iter().map(WordQuery::expression).collect();
        (!words.is_empty()).then(|| words.join(" AND "))
    }
}

impl WordQuery {
    fn expression(&self) -> String {
        // Terms are letters and digits, so nothing has to be escaped.
        let phrase = format!("\"{}\"{}", self.terms.join(" "), if self.is_prefix { " *" } else { "" });
        // Parts of words are single terms.
        if self.terms.len() == 1 {
            format!("{{terms parts}} : {phrase}")
        } else {
            format!("terms : {phrase}")
        }
    }

    fn fits(&self, place: usize, term: &str) -> bool {
        let wanted = self.terms[place].as_str();
        let is_beginning = self.is_prefix && place + 1 == self.terms.len();
        if is_beginning { term.starts_with(wanted) } else { term == wanted }
    }

    /// Returns where a text in NFC has it: as words, or as a part of a word.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        // The beginnings of the matches that are open: how many terms they have, and where the first one is.
        let mut open: Vec<(usize, usize)> = Vec::new();
        each_term(text, |kind, place, term| match kind {
            TermKind::Part => {
                if self.terms.len() == 1 && self.fits(0, term) {
                    found.push(place);
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
                    found.push(start..place.end);
                }
            }
        });
        found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::terms;

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
        /// The index and the matcher agree on every text.
        #[test]
        fn index_and_matcher_agree(
            texts in prop::collection::vec("[aAbB_ 言語.1]{0,12}", 1..12),
            query in "[ab1言語]{1,3}\\*?",
        ) {
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            connection.execute_batch(crate::schema::TABLES).unwrap();
            for (number, text) in (0_i64..).zip(&texts) {
                let found = terms(text);
                connection
                    .execute(
                        "INSERT INTO words (rowid, terms, parts) VALUES (?1, ?2, ?3)",
                        rusqlite::params![number, found.words, found.parts],
                    )
                    .unwrap();
            }
            let query = Query::parse(&query).unwrap();
            let mut rows = connection.prepare("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid").unwrap();
            let found: Vec<i64> =
                rows.query_map([query.expression().unwrap()], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            let want: Vec<i64> = (0_i64..)
                .zip(&texts)
                .filter(|(_, text)| query.words.iter().all(|word| !word.find(text).is_empty()))
                .map(|(number, _)| number)
                .collect();
            prop_assert_eq!(found, want);
        }
    }
}
