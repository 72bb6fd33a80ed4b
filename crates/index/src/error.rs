//! Errors of the index.

/// An error of the index. Its database is derived: deleting it loses nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite reports an error.
    #[error("cannot {doing} in the index `{path}`")]
    Sqlite {
        /// The operation.
        doing: &'static str,
        /// The database.
        path: String,
        /// The cause.
        #[source]
        source: rusqlite::Error,
    },
    /// The file system reports an error.
    #[error("cannot {doing} the index `{path}`")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The database.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Tells whether the database itself is unusable, so that a new one helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite { source, .. } => is_damage(source),
            Self::Io { .. } => false,
        }
    }
}

/// Tells whether an error of SQLite means that the file is not a usable database.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}
