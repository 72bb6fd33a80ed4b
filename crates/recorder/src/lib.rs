//! The write side of a store.
//!
//! [`sources`] records agents' files into the vault and, through their adapters, into the journal, once or as they
//! grow:
//!
//! ```
//! use std::sync::Arc;
//! use steno_capture::discovery::{Home, Origin};
//! use steno_disk::RealDisk;
//! use steno_journal::{Journal, Options, Store};
//! use steno_model::Provider;
//! use steno_recorder::sources::{SourceRecorder, SourceRecorderOptions, SourceError, ImportOutcome, SourceLocations, ImportProgress, SourceFile};
//!
//! struct Quiet;
//!
//! impl ImportProgress for Quiet {
//!     fn bytes(&mut self, _path: &std::path::Path, _count: u64) {}
//!     fn done(&mut self, _file: &SourceFile, _outcome: ImportOutcome) {}
//!     fn failed(&mut self, file: &SourceFile, error: &SourceError) {
//!         panic!("{}: {error}", file.path().display());
//!     }
//! }
//!
//! # let dir = tempfile::tempdir()?;
//! # let root = dir.path().canonicalize()?.join("claude");
//! # let project = root.join("projects/-srv-shop");
//! # std::fs::create_dir_all(&project)?;
//! # let line = r#"{"type":"user","uuid":"u1","sessionId":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-06-08T08:14:42.123Z","message":{"role":"user","content":"Fix the build."}}"#;
//! # std::fs::write(project.join("550e8400-e29b-41d4-a716-446655440000.jsonl"), format!("{line}\n"))?;
//! let store = Store::create(Arc::new(RealDisk::create(&dir.path().join("store"))?))?;
//! let mut recorder = SourceRecorder::open(Journal::new(store, Options::default()), SourceRecorderOptions::default())?;
//! let homes = vec![Home { provider: Provider::Claude, root, origin: Origin::NamedPath }];
//! let found = SourceLocations { homes, ..SourceLocations::default() }.list();
//! let counts = recorder.import(&found.files, &mut Quiet);
//! assert_eq!((counts.files, counts.events), (1, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`entries`] turns an adapter's output into transcript entries and logs them through `tracing`, one record each,
//! numbered per prompt and source. Sources and connections can be logged while they are recorded, and sources in the
//! vault later.
//!
//! ```
//! use steno_adapters::{Source, claude};
//! use steno_model::{Frame, LogRecord};
//! use steno_recorder::entries::{EntryCollector, EntryLog, EntryOptions, EntryTime};
//!
//! let file = br#"{"type":"user","uuid":"u1","sessionId":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-06-08T08:14:42.123Z","message":{"role":"user","content":"Fix the build."}}
//! "#;
//! let log = EntryLog::in_memory();
//! tracing::subscriber::with_default(log.clone(), || {
//!     let collector = EntryCollector::new(EntryOptions::default());
//!     let mut sink = collector.source(None, EntryTime::Record);
//!     let mut adapter = claude::disk(Source::named("session"));
//!     adapter.feed(Frame::of_file(0, file), &mut sink);
//!     adapter.finish(&mut sink);
//!     assert_eq!(collector.stop()[0].total_entries, 1);
//! });
//! let lines: Vec<_> = log.lines().iter().map(|line| LogRecord::parse(line)).collect::<Result<_, _>>()?;
//! let events: Vec<_> = lines.iter().map(|record| record.event.to_text()).collect();
//! assert_eq!(events, ["transcript.start", "transcript.entry", "transcript.stop"]);
//! # Ok::<(), steno_model::Error>(())
//! ```
//!
//! # Promises
//! - No event is written before the bytes it was made from are safe.
//! - After a kill a source continues exactly once, also between two events of one record: it is fed again from the
//!   vault, and drafts up to the last position in each transcript are dropped. Entries that were not logged before the
//!   kill are not logged.
//! - A file has one owner among all processes. When it closes the file, another process can take over.
//! - A file that cannot be recorded does not affect the others, and is tried again.
//! - Logging an entry never fails its caller: recording continues even if a log record is lost.
//! - Numbers have no gaps per prompt and source over all sources of a collector, also in a log file that others append
//!   to. Each session has one `transcript.start` and one `transcript.stop`, with the counts of its entries.

pub mod connection;
pub mod entries;
pub mod evidence;
pub mod forget;
pub mod sources;
pub mod spines;
pub mod wraps;
