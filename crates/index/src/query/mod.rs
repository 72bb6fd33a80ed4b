//! A query: words, phrases, prefixes, a regular expression or an exact text, and the fields that limit them.
//! `docs/search.md` defines what each of them matches.

mod find;
mod fts;
mod parse;

use std::collections::BTreeSet;

use steno_views::digest::TextKind;

pub use parse::QueryError;

/// The conditions of a search. All of them must hold for the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The words and phrases.
    pub words: Vec<WordQuery>,
    /// Texts that must occur as they are, with case.
    pub exact: Vec<String>,
    /// Regular expressions.
    pub patterns: Vec<String>,
    /// Only texts of these kinds; all if it is empty.
    pub kinds: BTreeSet<TextKind>,
    /// Only texts of calls of a tool whose name contains this.
    pub tool: Option<String>,
    /// Only texts of calls that changed a file whose path contains this.
    pub path: Option<String>,
    /// Only texts of calls that ended with this exit code.
    pub exit: Option<ExitQuery>,
}

/// A word or a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordQuery {
    /// Its terms, in order.
    pub terms: Vec<String>,
    /// Whether the last term is only the beginning of a word.
    pub is_prefix: bool,
}

/// An exit code to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitQuery {
    /// This code.
    Is(i64),
    /// Any other code.
    IsNot(i64),
}

impl Query {
    /// Tells whether a kind of text is searched.
    #[must_use]
    pub fn wants(&self, kind: TextKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Tells whether every text has to be read: the index has only words.
    #[must_use]
    pub fn needs_text(&self) -> bool {
        !self.exact.is_empty() || !self.patterns.is_empty()
    }
}
