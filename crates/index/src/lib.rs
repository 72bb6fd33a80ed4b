//! The index of a store: sessions, calls, changed files and words, in one SQLite database.
//!
//! Everything in it is derived from transcripts and can be deleted. It holds positions, numbers and search terms; texts are
//! read from the transcripts. [`Index::open`] makes a new database where the old one is missing, damaged or of another
//! version. [`Index::update`] writes what the caller folded, in one transaction; the crate `steno-library` decides what is
//! out of date.
//!
//! ```
//! use steno_index::{Index, SessionFilter};
//!
//! # let dir = tempfile::tempdir()?;
//! let index = Index::open(&dir.path().join("index.db"))?;
//! assert_eq!(index.known_runs()?.len(), 0);
//! assert_eq!(index.sessions(&SessionFilter::default())?.len(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//! - An update is seen whole or not at all, also by other processes and after a kill.
//! - A database that cannot be read, or in which a byte was changed, is replaced; it is never an error for the caller.
//! - What was removed is in no byte of the database after [`Index::purge`].

mod calls;
mod error;
mod family_usage;
mod filter;
mod hits;
mod index;
mod query;
mod rows;
mod schema;
mod sessions;
mod sources;
mod stamp;
mod terms;
mod update;
mod used_by_model;

pub use calls::{CallFilter, EventPlace, IndexedCall};
pub use error::Error;
pub use family_usage::SessionUsageParts;
pub use filter::{SessionFilter, contains_part};
pub use hits::{RunToRead, TextPlace};
pub use index::Index;
pub use query::{ExitQuery, Query, QueryError, WordQuery};
pub use rows::{Below, CallRow, IndexedSession, RunMark, RunRow, SessionRow, TextRow};
pub use sources::{ContentLoss, SourceRow};
pub use terms::{Terms, composed, terms};
pub use update::Update;
