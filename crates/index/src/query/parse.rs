//! Reads a query as a user types it.

use std::collections::BTreeSet;

use steno_views::digest::TextKind;

use super::{ExitQuery, Query, WordQuery};
use crate::terms::terms;

/// Why a query cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It has no words.
    #[error("the query has no word to look for")]
    Empty,
    /// A quotation mark or a slash is not closed.
    #[error("`{0}` is not closed in the query")]
    Open(char),
    /// A field that does not exist has a kind of text.
    #[error("`in:{0}` is not a kind of text")]
    Kind(String),
    /// An exit code is not a number.
    #[error("`exit:{0}` is not an exit code")]
    Exit(String),
}

/// A part of a query.
enum Part {
    Word(String),
    Phrase { text: String, is_prefix: bool },
    Pattern(String),
    Field { name: &'static str, value: String },
}

/// The fields of a query.
const FIELDS: [&str; 4] = ["in", "tool", "path", "exit"];

impl Query {
    /// Reads a query as a user types it.
    ///
    /// # Errors
    /// If a quotation mark is not closed, a field has a wrong value, or there is nothing to look for.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut query = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (part, after) = next_part(rest)?;
            query.add(part)?;
            rest = after.trim_start();
        }
        let has_condition = query.tool.is_some() || query.path.is_some() || query.exit.is_some();
        if query.words.is_empty() && !query.needs_text() && !has_condition {
            return Err(QueryError::Empty);
        }
        Ok(query)
    }

    /// Makes a query for a text that must occur as it is.
    ///
    /// # Errors
    /// If the text is empty.
    pub fn exactly(text: &str) -> Result<Self, QueryError> {
        if text.is_empty() {
            return Err(QueryError::Empty);
        }
        Ok(Self { exact: vec![text.to_owned()], ..Self::default() })
    }

    fn add(&mut self, part: Part) -> Result<(), QueryError> {
        match part {
            Part::Word(word) => {
                let is_prefix = word.ends_with('*');
                self.words.extend(word_query(word.trim_end_matches('*'), is_prefix));
            }
            Part::Phrase { text, is_prefix } => self.words.extend(word_query(&text, is_prefix)),
            Part::Pattern(pattern) => self.patterns.push(pattern),
            Part::Field { name: "in", value } => self.kinds.extend(kinds(&value)?),
            Part::Field { name: "tool", value } => self.tool = Some(value),
            Part::Field { name: "path", value } => self.path = Some(value),
            Part::Field { value, .. } => self.exit = Some(exit(&value)?),
        }
        Ok(())
    }
}

/// Returns the first part of a query, and the rest.
fn next_part(text: &str) -> Result<(Part, &str), QueryError> {
    if let Some(rest) = text.strip_prefix('"') {
        let end = rest.find('"').ok_or(QueryError::Open('"'))?;
        let (phrase, after) = (&rest[..end], &rest[end + 1..]);
        let (is_prefix, after) = after.strip_prefix('*').map_or((false, after), |after| (true, after));
        return Ok((Part::Phrase { text: phrase.to_owned(), is_prefix }, after));
    }
    if let Some(found) = pattern(text)? {
        return Ok(found);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    for name in FIELDS {
        if let Some(value) = word.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'))
            && !value.is_empty()
        {
            return Ok((Part::Field { name, value: value.to_owned() }, after));
        }
    }
    Ok((Part::Word(word.to_owned()), after))
}

/// Reads `/pattern/`, which ends at a slash before a space or the end. A path like `/etc/hosts` is not a pattern.
fn pattern(text: &str) -> Result<Option<(Part, &str)>, QueryError> {
    let Some(rest) = text.strip_prefix('/') else { return Ok(None) };
    let mut is_escaped = false;
    for (place, next) in rest.char_indices() {
        let after = &rest[place + next.len_utf8()..];
        if next == '/' && !is_escaped && (after.is_empty() || after.starts_with(char::is_whitespace)) {
            let pattern = rest[..place].replace("\\/", "/");
            return if pattern.is_empty() {
                Err(QueryError::Empty)
            } else {
                Ok(Some((Part::Pattern(pattern), after)))
            };
        }
        is_escaped = next == '\\' && !is_escaped;
    }
    Ok(None)
}

/// Returns the terms of a word or phrase; `None` if it has none.
fn word_query(text: &str, is_prefix: bool) -> Option<WordQuery> {
    let words = terms(text).words;
    if words.is_empty() {
        return None;
    }
    Some(WordQuery { terms: words.split(' ').map(str::to_owned).collect(), is_prefix })
}

fn kinds(value: &str) -> Result<BTreeSet<TextKind>, QueryError> {
    value
        .split(',')
        .map(|name| TextKind::parse(name).ok_or_else(|| QueryError::Kind(name.to_owned())))
        .collect()
}

fn exit(value: &str) -> Result<ExitQuery, QueryError> {
    let wrong = || QueryError::Exit(value.to_owned());
    match value.strip_prefix('!') {
        Some(code) => code.parse().map(ExitQuery::IsNot).map_err(|_| wrong()),
        None => value.parse().map(ExitQuery::Is).map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[(&str, bool)]) -> Query {
        let word = |(terms, is_prefix): &(&str, bool)| WordQuery {
            terms: terms.split(' ').map(str::to_owned).collect(),
            is_prefix: *is_prefix,
        };
        Query { words: list.iter().map(word).collect(), ..Query::default() }
    }

    #[track_caller]
    fn check(text: &str, want: &Result<Query, QueryError>) {
        assert_eq!(&Query::parse(text), want, "{text}");
    }

    #[test]
    fn words_phrases_and_prefixes_are_read() {
        check("Login bug", &Ok(words(&[("login", false), ("bug", false)])));
        check("\"login bug\" pars*", &Ok(words(&[("login bug", false), ("pars", true)])));
        check("\"login bu\"*", &Ok(words(&[("login bu", true)])));
        check("src/auth.rs", &Ok(words(&[("src auth rs", false)])));
        check("/etc/hosts", &Ok(words(&[("etc hosts", false)])));
        check("-- !", &Err(QueryError::Empty));
        check("\"open", &Err(QueryError::Open('"')));
    }

    #[test]
    fn patterns_end_at_a_slash_before_a_space() {
        let pattern = |text: &str| Query { patterns: vec![text.to_owned()], ..Query::default() };
        check("/fn \\w+/", &Ok(pattern("fn \\w+")));
        check("/a\\/b/", &Ok(pattern("a/b")));
        let both = Query { patterns: vec!["x y".into()], ..words(&[("z", false)]) };
        check("/x y/ z", &Ok(both));
        check("//", &Err(QueryError::Empty));
    }

    #[test]
    fn fields_limit_the_texts() {
        let want = Query {
            kinds: [TextKind::Prompt, TextKind::Output].into(),
            tool: Some("bash".into()),
            exit: Some(ExitQuery::IsNot(0)),
            ..words(&[("pytest", false)])
        };
        check("tool:bash exit:!0 in:prompt,output pytest", &Ok(want));
        check("in:dream x", &Err(QueryError::Kind("dream".into())));
        check("exit:x", &Err(QueryError::Exit("x".into())));
        check("in:prompt", &Err(QueryError::Empty));
        check("path:auth.rs", &Ok(Query { path: Some("auth.rs".into()), ..Query::default() }));
        // A field without a value, or one that does not exist, is a word.
        check("in: http://x", &Ok(words(&[("in", false), ("http x", false)])));
    }
}
