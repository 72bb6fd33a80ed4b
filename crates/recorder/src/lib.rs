//! The write side, wired together.
//!
//! So far it has one part: [`entries`], which turns what an adapter sees into transcript entries and logs them through
//! `tracing`, one record each, numbered per source.
//!
//! ```
//! use steno_adapters::{Source, claude};
//! use steno_model::{Frame, LogRecord};
//! use steno_recorder::entries::{EntryLog, EntryOptions, EntrySink};
//! use tracing_subscriber::layer::SubscriberExt as _;
//!
//! let file = br#"{"type":"user","uuid":"u1","sessionId":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-06-08T08:14:42.123Z","message":{"role":"user","content":"Fix the build."}}
//! "#;
//! let log = EntryLog::in_memory();
//! tracing::subscriber::with_default(tracing_subscriber::registry().with(log.clone()), || {
//!     let mut sink = EntrySink::begin(EntryOptions::default());
//!     let mut adapter = claude::disk(Source::named("session"));
//!     adapter.feed(Frame::of_file(0, file), &mut sink);
//!     adapter.finish(&mut sink);
//!     assert_eq!(sink.stop().total_entries, 1);
//! });
//! let lines: Vec<_> = log.lines().iter().map(|line| LogRecord::parse(line)).collect::<Result<_, _>>()?;
//! let events: Vec<_> = lines.iter().map(|record| record.event.to_text()).collect();
//! assert_eq!(events, ["transcript.start", "transcript.entry", "transcript.stop"]);
//! # Ok::<(), steno_model::Error>(())
//! ```
//!
//! # Promises
//! - Logging an entry never fails its caller: whatever happens to a log record, the record of events goes on.
//! - Numbers are without gaps per prompt and source, and counts in `transcript.stop` are those of the entries logged.

pub mod archive;
pub mod entries;
