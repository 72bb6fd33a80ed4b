//! The append-only record of runs: drafts become numbered, durable events.
//!
//! A run is one file, `transcripts/<run-id>.jsonl`, in plain JSON lines that jq can read. This crate numbers each
//! event, writes it, makes it durable, passes it to subscribers, recovers after crashes, and verifies what is stored.
//! It knows envelopes and numbers; the meaning of events belongs to `steno-model` and the views.
//!
//! ```
//! use std::sync::Arc;
//! use steno_disk::RealDisk;
//! use steno_journal::{Journal, Level, Options, Reader, Store};
//! use steno_model::{Draft, RunId};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("store");
//! let store = Store::create(Arc::new(RealDisk::create(&path)?))?;
//! let journal = Journal::new(store.clone(), Options::default());
//! let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000")?;
//!
//! let recorder = journal.record(run)?;
//! let mut live = recorder.subscribe();
//! let draft = Draft::parse(br#"{"type":"run.started","payload":{"name":"demo","kind":"session"}}"#, run)?;
//! let seq = recorder.record(draft, Level::Synced)?;
//! assert_eq!(seq.get(), 1);
//! assert_eq!(live.recv().map(|event| event.seq), Some(seq));
//! recorder.close()?;
//!
//! let mut reader = Reader::open(&store, run)?;
//! assert_eq!(reader.read_next()?.map(|recorded| recorded.event.seq), Some(seq));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Model
//! - [`Store`] is a directory with a format version. [`Journal`] is its write side. [`Recorder`] is the only writer of
//!   a run, shared by threads by reference: [`Recorder::record`], [`Recorder::subscribe`], [`Recorder::close`].
//! - **Order.** One function, under one lock, takes a seq, builds the line and writes it. If the write fails, the seq
//!   is not used up. So file order is seq order, without gaps or duplicates, also with several threads. A reopened run
//!   continues after its last number. Clocks can go backwards; nothing is ever sorted by time.
//! - **Levels.** [`Level::Written`]: the whole line, including its newline, has been written; it survives the death of
//!   the process. [`Level::Synced`]: acknowledged after an fdatasync; it survives a power cut. A pool of at most four
//!   threads syncs for all open runs, and one sync acknowledges all records that wait for it; a writer that is alone
//!   with its run syncs by itself. An open run uses three file descriptors, so a process that opens hundreds must raise
//!   its limit. [`Recorder::append`] returns before the sync, so that one thread can have many events in flight.
//! - **Disk first.** Subscribers get an event after it is written, in file order, each as the same shared value. A
//!   queue has room for [`SUBSCRIBER_QUEUE_LEN_MAX`] events; events that arrive while it is full are missed and
//!   counted, with a warning at most once a second. [`CatchUp`] reads missed events from the file. A subscriber can
//!   never block the writer.
//! - **The file is the bus.** [`Follower`] streams a run that another process writes. Live streams identify an event by
//!   (run, epoch, seq): after a power cut a seq that was only written can be used again, and the
//!   [`Epoch`](steno_model::Epoch) distinguishes the two openings.
//! - **Seals.** [`Seal`] lines in a file beside the transcript certify a prefix by length, last seq and SHA-256. They
//!   are made on close, when a run is idle, and on demand, always after the prefix was synced and read back: the
//!   content of the file is compared with a checksum of what was written. A run may grow past a seal; a prefix must
//!   keep matching it.
//! - **Notes.** The ten event types are closed and the file has no gaps, so what happened to the record itself
//!   (recoveries, refusals, drops) is in a notes file beside it: [`Note`].
//! - **Segments.** A trace spine uses the same code with files that rotate by bytes and records; each closed segment
//!   has a meta file with its hash: [`SpineWriter`]. [`SpineReader`] reads all segments in order, and
//!   [`seal_segment`] seals one that a crash left open. The crate `steno-spine` checks spines and makes bundles.
//!
//! # Recovery
//! The newline is the commit mark. Opening a run takes its lock first, then inspects the whole file: [`inspect`] says
//! what would be done, [`apply`] does exactly that. The good prefix is the lines that parse, numbered without gaps. An
//! unterminated tail, or a hole of zeros with nothing good after it, was never acknowledged: it is copied aside,
//! synced, and only then cut off. Anything else is damage: nothing is changed, appending is refused, and the error has
//! the location. Bytes that no seal covers are rewritten in place and synced again, because after a failed sync the
//! page cache may show bytes that the disk does not have. Recovery can be killed at any point and repeated; the second
//! time it does nothing. Readers never repair.
//!
//! # Threat model
//! The threats and the defences:
//! - **Kill and power cut**: the levels and recovery above. New files are synced together with their directory;
//!   replaced files are written under another name, synced, renamed, and the directory synced.
//! - **A full disk, a quota, a file size limit**: the partial line is removed, the caller gets an error, the writer
//!   continues when there is space, and the refusals are noted. If the process ends before there is space, the lock
//!   file has their number, and the next opening of the run notes them. The process has to ignore `SIGXFSZ`.
//! - **A failing disk**: after one failed sync, or a write that failed for another reason, the writer refuses
//!   everything. A second sync that succeeds would prove nothing, so it is never tried.
//! - **A second writer**: an flock on a lock file that is never deleted; the error is [`Error::Locked`].
//! - **A file deleted, renamed or replaced while it is written**: noticed before the next record is acknowledged, and
//!   within seconds when none follows; everything recorded so far is copied from the open handle to a named file. A
//!   file that another program cuts or writes to is noticed by its length at the same time, and never sealed. At
//!   `synced` each commit checks the file, at `written` each [`PendingRecord::wait`], once for all records written
//!   before; [`Recorder::record`] at `written` checks once per millisecond.
//! - **Links, pipes or devices instead of our files**: everything below the store is opened beneath one directory
//!   handle, without following links, without blocking, and must be a regular file of ours. Ids that become file names
//!   must be UUIDs or match a strict pattern.
//! - **Other users of the machine**: files have mode 0600 and directories 0700, independent of the umask.
//! - **Cut or changed history**: seals reveal it. Whoever can rewrite the transcript can rewrite its seals too, so keep
//!   copies of seals elsewhere and compare them ([`check_run`] takes them).
//! - **Hostile content**: lines are bounded in length, and no reader recurses into them.
//!
//! Not defended against: programs that run as the store's owner; disks that lie about a sync; network file systems
//! without working locks. Nothing is masked: a transcript contains what agents said and saw, including secrets.
//!
//! # Versioning
//! - `format.json` names the store's format version, [`STORE_VERSION`]. A newer store is refused with
//!   [`Error::StoreTooNew`] and never touched; older ones will be migrated or read as they are.
//! - New envelope fields, note kinds and seal fields may be added within a version: readers keep or ignore what they do
//!   not know. A change to the meaning of a field, the commit mark, or a file name needs a new version.
//! - Files of every released version stay in the tests, unedited and readable.
//!
//! # Where to look
//! From the caller to the disk: `recorder` (the writer of a run) and `segment` (the writer of a spine) put drafts into
//! a `log`, which is one growing file with the records that wait on it. The `tail` inside it decides seq and order and
//! keeps a checksum of what it wrote; `commit` has the threads that sync; `fanout`, `catch_up` and `follow` are the
//! three ways to receive events, and `reader` is under two of them. `scan` finds the good prefix of a file, `recovery`
//! repairs its end, `seal`, `note` and `sidecar` write beside it, `refusals` counts what there was no space for,
//! `verify` checks it, `names` knows the names of all files, and `steno-disk` is all that calls the operating system.
//! `spine` has the artifacts of spines, and reads spines back.
//!
//! # How it is tested
//! The disk is behind a trait ([`steno_disk::Disk`]). A simulated disk loses, tears and reorders what was not synced,
//! over thousands of seeds; files are cut and flipped at every byte; the commit queue, seals and fan-out are
//! model-checked with shuttle, which replaces the system's locks; and deliberate faults (features called `mutant-…`)
//! must each be found by these tests.

mod bulk;
mod catch_up;
mod commit;
mod error;
mod fanout;
mod flaw;
mod follow;
mod lease;
mod line_check;
mod lines;
mod log;
mod names;
mod note;
mod pause;
mod reader;
mod recorder;
mod recovery;
mod refusals;
mod remove;
mod rewrite;
mod run_ends;
mod scan;
mod seal;
mod segment;
mod sidecar;
mod spine;
mod store;
mod sync;
mod tail;
mod verify;

pub use bulk::BulkRecorder;
pub use catch_up::CatchUp;
pub use error::{Damage, Error};
pub use fanout::{MissedEvents, SUBSCRIBER_QUEUE_LEN_MAX, Subscription};
pub use flaw::Flaw;
pub use follow::{Follower, TranscriptWatch, WakeReason};
pub use log::{Level, PendingRecord};
pub use names::{ArtifactFile, RunFile, SegmentIndex, SegmentName};
pub use note::{Note, NoteKind, NotesOwner, read_notes};
pub use pause::{Pause, RecordingGuard};
pub use reader::{Reader, RecordedEvent};
pub use recorder::{Journal, Options, Recorder};
pub use recovery::{Inspection, apply, inspect};
pub use remove::SpineLock;
pub use rewrite::{AdapterChange, Rewrite};
pub use run_ends::{RunEnds, first_event_if, run_beginning, run_ends};
pub use scan::{Ending, has_hole};
pub use seal::{Seal, read_seals};
pub use segment::{META_BYTES_MAX, Rotation, SegmentMeta, SpineWriter, read_meta};
pub use spine::{
    ARTIFACT_BYTES_MAX, ARTIFACTS_DIR, KeptArtifact, SpineOverview, SpineReader, SpineState, UnsealedSegment,
    seal_segment, spine_overview,
};
pub use store::{RunFiles, STORE_VERSION, Store};
pub use verify::{CheckReport, check_file, check_run, check_run_with};
