//! A query in the language of FTS5.

use super::{Query, WordQuery};

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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::terms;

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
