//! The read side: the catalog of a store, and the names that users type.
//!
//! A [`Library`] is the catalog of a store: runs, sessions, threads and sources, each read once and on demand.
//! [`Library::resolve`] resolves names, and [`Library::open`] reads what they name: sessions of the store, transcripts and agents'
//! own files, merged. [`AgentFile`] and [`Files`] find agents' files, recognize them by content, and run them through their
//! adapter.
//!
//! ```
//! use std::sync::Arc;
//! use steno_disk::RealDisk;
//! use steno_journal::{Journal, Level, Options, Store};
//! use steno_library::{Library, Target, TargetKind};
//! use steno_model::{Draft, RunId};
//!
//! # let dir = tempfile::tempdir()?;
//! let store = Store::create(Arc::new(RealDisk::create(&dir.path().join("store"))?))?;
//! let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000")?;
//! let recorder = Journal::new(store.clone(), Options::default()).record(run)?;
//! let draft = Draft::parse(br#"{"type":"run.started","payload":{"name":"review","kind":"workflow"}}"#, run)?;
//! recorder.record(draft, Level::Synced)?;
//! recorder.close()?;
//!
//! let library = Library::new(Some(store));
//! assert_eq!(library.sessions()?.len(), 1);
//! for name in ["550e8400", "0000", "last"] {
//!     assert_eq!(library.resolve(name, TargetKind::Session)?, Target::Session(run));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//! - Nothing is written except the index, which is derived.
//! - A whole run id is found without reading other runs.
//! - A text that names several things is an error that lists all of them.
//! - A damaged run is listed as damaged, and does not affect the others.

mod error;
mod event_scan;
mod file_sessions;
mod files;
mod head;
mod ids;
mod in_order;
mod indexed;
mod library;
mod listing;
mod live_session;
mod open;
mod read_each;
mod read_session;
mod resolve;
mod rollouts;
mod run_overview;
mod search;
mod session_counts;
mod session_match;
mod session_overview;
mod sessions;
mod sources;
mod spines;
mod unpacked;
mod usage;

pub use error::Error;
pub use files::{
    AgentFile, FileError, FileReport, Files, Numbering, Origin, Tally, check_transcript, read_events,
    read_range, surface_name, warn_about_unread,
};
pub use head::{RunHead, source_of};
pub use ids::{IdIndex, PART_LEN_MIN, ShortestPart, is_part_of_uuid, parse_id};
pub use indexed::IndexStatus;
pub use library::Library;
pub use listing::{CallList, CallOutput, ListFilter, ListState, ListedSession, Loss, LossKind};
pub use live_session::{LiveScope, LiveSession};
pub use open::{Families, Family};
pub use resolve::{Candidate, Target, TargetKind, split_event};
pub use rollouts::{BaseThread, Rollout, ThreadRollouts};
pub use run_overview::{RunOverview, fitting_seals, warn_about_broken_seals};
pub use search::{
    PatternError, PreparedSearch, SearchHit, SearchLimits, SearchReport, SessionHits, Snippet, plural,
    shortest_id,
};
pub use session_overview::{RunsSize, SessionOverview};
pub use sessions::{Relations, SessionRuns};
pub use sources::{SessionSource, SourceTarget, connection_of, is_thread_file};
pub use spines::{SpineItem, SpineTarget, open_directory};
pub use unpacked::{GenerationError, read_unpacked};
pub use usage::{
    AgentCost, RunCounts, UsageColumn, UsageFilter, UsageQuery, UsageRow, UsageTable, WINDOW_MS, window_at,
};
