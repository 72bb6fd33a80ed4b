//! Spines in segments: rotation by bytes and records, each closed segment sealed by a meta file (R115 to R117).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steno_disk::{self as disk, Disk, StorePath, read_full};
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{Epoch, SPINE_SCHEMA_VERSION, Seq, SpineDraft, ThreadId, Timestamp};

use crate::commit::Commit;
use crate::error::{Damage, Error};
use crate::lease::Lease;
use crate::line_check::SpineLines;
use crate::log::{AppendedLine, Level, Log, LogParts, PendingRecord};
use crate::names::{ArtifactFile, SegmentIndex, SegmentName};
use crate::note::{NoteKind, note_once, settle_refused, write_refused};
use crate::recorder::Journal;
use crate::recovery;
use crate::refusals::Refusals;
use crate::scan::{Ending, scan};
use crate::seal::{Prefix, hex};
use crate::sidecar::json_line;
use crate::spine::artifact::{self, KeptArtifact};
use crate::sync::{Mutex, lock};
use crate::tail::is_no_room;

/// How many bytes a meta file may have.
pub const META_BYTES_MAX: usize = 64 * 1024;

/// When a segment is full.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// At how many bytes.
    pub bytes_max: u64,
    /// At how many records.
    pub records_max: u64,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { bytes_max: 5 * 1024 * 1024, records_max: 5_000 }
    }
}

/// The meta file of a closed segment (R117).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentMeta {
    /// The spine's schema version.
    pub schema_version: String,
    /// The thread.
    pub thread_id: String,
    /// Which segment.
    pub segment_index: u32,
    /// The number of its first record.
    pub min_seq: u64,
    /// The number of its last record.
    pub max_seq: u64,
    /// How many records.
    pub record_count: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: String,
    /// When the segment was opened; after a recovery, the time of its first record.
    pub created_at: String,
    /// When it was sealed.
    pub closed_at: String,
}

/// The only writer of a thread's spine.
pub struct SpineWriter {
    journal: Journal,
    thread: ThreadId,
    rotation: Rotation,
    epoch: Epoch,
    state: Mutex<WriterState>,
}

struct WriterState {
    lease: Option<Lease>,
    open: Option<OpenSegment>,
    index_next: SegmentIndex,
    seq_last: Option<Seq>,
    /// Refusals that are not noted yet, without those in the open segment.
    refused: Option<Refusals>,
}

struct OpenSegment {
    index: SegmentIndex,
    log: Arc<Log>,
    seq_first: Seq,
    created_at: String,
    /// The part that was read back and matches what was written.
    prefix: Prefix,
}

impl Journal {
    /// Opens a thread's spine for appending: repairs and seals what a crash left open, and continues in a new segment.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Damaged`], or an I/O error.
    pub fn spine(&self, thread: &ThreadId, rotation: Rotation) -> Result<SpineWriter, Error> {
        let disk = self.store.disk();
        // The lock before the directory, because forgetting a spine deletes its directory.
        let mut lease = Lease::take(&**disk, &StorePath::spine_lock(thread), (self.options.clock)())?;
        for dir in [StorePath::spine(), StorePath::spine_of(thread)] {
            disk.make_dir(&dir).map_err(|source| Error::io("make", &dir, source))?;
        }
        let (index_next, seq_last) = recover(&**disk, thread, (self.options.clock)())?;
        let refused = settle_refused(&**disk, thread, &mut lease)?;
        let epoch = lease.epoch;
        let state = Mutex::new(WriterState { lease: Some(lease), open: None, index_next, seq_last, refused });
        Ok(SpineWriter { journal: self.clone(), thread: thread.clone(), rotation, epoch, state })
    }
}

impl SpineWriter {
    /// Appends a record and waits until it has reached its level.
    ///
    /// # Errors
    /// As [`crate::Recorder::record`].
    pub fn record(&self, draft: &SpineDraft, level: Level) -> Result<Seq, Error> {
        self.append(draft, level)?.wait()
    }

    /// Appends a record without waiting for its sync.
    ///
    /// # Errors
    /// As [`crate::Recorder::record`].
    pub fn append(&self, draft: &SpineDraft, level: Level) -> Result<PendingRecord, Error> {
        let mut state = lock(&self.state);
        if state.lease.is_none() {
            return Err(Error::Closed);
        }
        let bytes = draft.line_bytes_max(&self.thread) as u64;
        if bytes > LINE_BYTES_MAX as u64 {
            return Err(Error::TooLong { bytes });
        }
        let (log, appended) = self
            .append_to_segment(&mut state, draft, level)
            .inspect_err(|error| self.keep_if_refused(&mut state, error))?;
        if appended.queue {
            self.journal.pool.push(Arc::clone(&log) as Arc<dyn Commit>);
        }
        state.seq_last = Some(appended.pending.seq());
        self.note_refused(&mut state);
        if level == Level::Written {
            log.look_now_and_then()?;
        }
        Ok(appended.pending.look_at(log))
    }

    fn append_to_segment(
        &self,
        state: &mut WriterState,
        draft: &SpineDraft,
        level: Level,
    ) -> Result<(Arc<Log>, AppendedLine<()>), Error> {
        let log = self.log_with_room(state)?;
        let render = |seq: Seq, line: &mut Vec<u8>| draft.write_line(&self.thread, seq, line);
        let appended = log.append(level, render, || ())?;
        Ok((log, appended))
    }

    /// Stores a file beside the spine and syncs it, so that a record can refer to it. Storing the same content again
    /// does nothing.
    ///
    /// The file is stored before the record: a crash between the two leaves an unused file, which is harmless, and
    /// never a dangling reference.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::TooLong`] for more than [`ARTIFACT_BYTES_MAX`](crate::ARTIFACT_BYTES_MAX) bytes;
    /// [`Error::SealBroken`] when the file exists with other content, which stays; or an I/O error.
    pub fn keep_artifact(&self, what: ArtifactFile, bytes: &[u8]) -> Result<KeptArtifact, Error> {
        if lock(&self.state).lease.is_none() {
            return Err(Error::Closed);
        }
        artifact::keep(&**self.journal.store.disk(), &StorePath::spine_of(&self.thread), what, bytes)
    }

    /// Returns the log of the open segment, or of the next one when that is full or there is none.
    fn log_with_room(&self, state: &mut WriterState) -> Result<Arc<Log>, Error> {
        if state.open.as_ref().is_some_and(|open| self.is_full(open)) {
            self.seal_open(state)?;
        }
        if let Some(open) = &state.open {
            return Ok(Arc::clone(&open.log));
        }
        let opened = self.open_next(state)?;
        Ok(Arc::clone(&state.open.insert(opened).log))
    }

    /// Records refusals in the lock file before the error is returned: the process may end before they can be noted.
    fn keep_if_refused(&self, state: &mut WriterState, error: &Error) {
        state.take_from_segment();
        if let Error::Io { source, .. } = error
            && is_no_room(source)
        {
            // No space for what has to be written before the record.
            let one = Refusals::one(self.epoch, state.seq_last, source, (self.journal.options.clock)());
            state.refused = Some(one.after(state.refused.as_ref()));
        }
        self.keep_refused(state);
    }

    /// Records in the lock file the refusals that are not noted.
    fn keep_refused(&self, state: &mut WriterState) {
        let refused = state.refused.clone();
        if let Some(Err(error)) = state.lease.as_mut().map(|lease| lease.set_refused(refused)) {
            tracing::warn!(thread = %self.thread, %error, "refusals could not be recorded in the lock file");
        }
    }

    /// Notes refusals; those that cannot be noted now are noted later.
    fn note_refused(&self, state: &mut WriterState) {
        state.take_from_segment();
        let Some(refused) = &state.refused else { return };
        match write_refused(&**self.journal.store.disk(), &self.thread, refused) {
            Ok(()) => state.refused = None,
            Err(error) => {
                tracing::warn!(thread = %self.thread, %error, "refusals could not be noted yet");
            }
        }
        self.keep_refused(state);
    }

    /// Returns the number of the last record; `None` when there is none yet.
    #[must_use]
    pub fn seq_last(&self) -> Option<Seq> {
        lock(&self.state).seq_last
    }

    /// Seals the open segment and releases the lock. A second call does nothing.
    ///
    /// # Errors
    /// I/O errors. The segment stays unsealed then, and is sealed when the spine is opened again.
    pub fn close(&self) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.lease.is_none() {
            return Ok(());
        }
        let sealed = self.seal_open(&mut state);
        self.note_refused(&mut state);
        state.lease = None;
        sealed
    }

    fn is_full(&self, open: &OpenSegment) -> bool {
        let end = open.log.end();
        let records = end.seq_last.map_or(0, |last| last.get() + 1 - open.seq_first.get());
        records > 0 && (end.len >= self.rotation.bytes_max || records >= self.rotation.records_max)
    }

    fn open_next(&self, state: &WriterState) -> Result<OpenSegment, Error> {
        let index = state.index_next;
        let disk = Arc::clone(self.journal.store.disk());
        let path = SegmentName::Records(index).path(&self.thread);
        let prefix = Prefix { seq_last: state.seq_last, ..Prefix::default() };
        let clock = self.journal.options.clock;
        let parts = LogParts { disk, path, epoch: self.epoch, prefix: prefix.clone(), clock };
        let log = Arc::new(Log::open(parts)?);
        let created_at = Timestamp::from_instant(clock()).to_string();
        Ok(OpenSegment { index, log, seq_first: Seq::after(state.seq_last), created_at, prefix })
    }

    fn seal_open(&self, state: &mut WriterState) -> Result<(), Error> {
        state.take_from_segment();
        let Some(open) = &mut state.open else { return Ok(()) };
        open.log.read_back(&mut open.prefix)?;
        open.log.sync_now()?;
        let prefix = &open.prefix;
        if prefix.len > 0 {
            let closed_at = (self.journal.options.clock)();
            let made =
                SegmentFacts::of(&self.thread, open.index, open.seq_first, prefix, open.created_at.clone());
            let dir = StorePath::spine_of(&self.thread);
            write_meta(&**self.journal.store.disk(), &dir, &made, prefix, closed_at)?;
            state.index_next = open.index.next();
        }
        // A later wait for a record must not check the file, which may belong to another writer by then.
        open.log.close();
        state.open = None;
        Ok(())
    }
}

impl Drop for SpineWriter {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(thread = %self.thread, %error, "closing a spine failed");
        }
    }
}

impl WriterState {
    /// Takes over the refusals that the log of the open segment counted.
    fn take_from_segment(&mut self) {
        if let Some(later) = self.open.as_ref().and_then(|open| open.log.take_refused()) {
            self.refused = Some(later.after(self.refused.as_ref()));
        }
    }
}

/// What a meta file has besides length and hash.
pub(crate) struct SegmentFacts {
    pub(crate) thread: String,
    pub(crate) index: SegmentIndex,
    pub(crate) seq_first: Seq,
    pub(crate) records: u64,
    pub(crate) created_at: String,
}

impl SegmentFacts {
    /// Makes the facts of a segment without gaps.
    fn of(
        thread: &ThreadId,
        index: SegmentIndex,
        seq_first: Seq,
        prefix: &Prefix,
        created_at: String,
    ) -> Self {
        let records = prefix.seq_last.map_or(0, |last| last.get() + 1 - seq_first.get());
        Self { thread: thread.to_string(), index, seq_first, records, created_at }
    }
}

/// Writes the meta file of a segment in a directory.
pub(crate) fn write_meta(
    disk: &dyn Disk,
    dir: &StorePath,
    made: &SegmentFacts,
    prefix: &Prefix,
    closed_at: jiff::Timestamp,
) -> Result<(), Error> {
    let path = dir.below(SegmentName::Meta(made.index));
    let meta = SegmentMeta {
        schema_version: SPINE_SCHEMA_VERSION.to_owned(),
        thread_id: made.thread.clone(),
        segment_index: made.index.0,
        min_seq: made.seq_first.get(),
        max_seq: prefix.seq_last.map_or(0, Seq::get),
        record_count: made.records,
        bytes: prefix.len,
        sha256: hex(&prefix.hash),
        created_at: made.created_at.clone(),
        closed_at: Timestamp::from_instant(closed_at).to_string(),
    };
    disk::replace_file(disk, &path, format!("{}\n", json_line(&meta)).as_bytes())
        .map_err(|source| Error::io("write", &path, source))
}

/// Repairs and seals segments without a meta file; returns the next index and the last number.
fn recover(
    disk: &dyn Disk,
    thread: &ThreadId,
    now: jiff::Timestamp,
) -> Result<(SegmentIndex, Option<Seq>), Error> {
    let mut index = SegmentIndex(0);
    let mut seq_last = None;
    loop {
        let path = SegmentName::Records(index).path(thread);
        let file = disk.open_read(&path).map_err(|source| Error::io("open", &path, source))?;
        let meta = read_meta(disk, thread, index)?;
        match (file, meta) {
            (None, None) => {
                check_none_after(disk, thread, index)?;
                return Ok((index, seq_last));
            }
            (None, Some(_)) => {
                return Err(Error::SealBroken { path, differs: None, bytes: 0, why: "the file is missing" });
            }
            // Sealed. The validator compares segment and meta file.
            (Some(_), Some(meta)) => {
                if meta.min_seq != Seq::after(seq_last).get() {
                    let bytes = meta.bytes;
                    return Err(Error::SealBroken {
                        path,
                        differs: None,
                        bytes,
                        why: "its numbers do not continue those before",
                    });
                }
                seq_last = Seq::new(meta.max_seq);
            }
            (Some(file), None) => {
                let found = scan_from(file, &path, &SpineLines(thread.clone()), seq_last)?;
                if found.0.len == 0 {
                    check_none_after(disk, thread, index)?;
                }
                set_aside(disk, thread, &path, &found, now)?;
                if found.0.len == 0 {
                    // It is empty and is used next, because a meta file without records would have no numbers.
                    return Ok((index, seq_last));
                }
                recovery::make_durable(disk, &path, 0, found.0.len)?;
                let created_at = first_time(disk, &path)?;
                let made = SegmentFacts::of(thread, index, Seq::after(seq_last), &found.0, created_at);
                write_meta(disk, &StorePath::spine_of(thread), &made, &found.0, now)?;
                seq_last = found.0.seq_last;
            }
        }
        index = index.next();
    }
}

/// Moves a torn tail aside and notes it.
pub(crate) fn set_aside(
    disk: &dyn Disk,
    thread: &ThreadId,
    path: &StorePath,
    found: &(Prefix, Ending),
    now: jiff::Timestamp,
) -> Result<(), Error> {
    let Ending::Torn { offset, len } = found.1 else { return Ok(()) };
    let kept = recovery::keep_torn(disk, path, offset, len)?.file_name().to_owned();
    let seq_last = found.0.seq_last.map_or(0, Seq::get);
    note_once(disk, thread, now, NoteKind::Recovered { offset, bytes: len, kept, seq_last })?;
    recovery::cut(disk, path, offset)
}

/// Checks that no segment comes after a missing or empty one: continuing there would mix two histories.
pub(crate) fn check_none_after(disk: &dyn Disk, thread: &ThreadId, index: SegmentIndex) -> Result<(), Error> {
    let dir = StorePath::spine_of(thread);
    let names = disk.list(&dir).map_err(|source| Error::io("list", &dir, source))?;
    let later = names.iter().filter_map(|name| SegmentName::parse(name)).any(|name| match name {
        SegmentName::Records(found) | SegmentName::Meta(found) => found > index,
    });
    if !later {
        return Ok(());
    }
    let path = SegmentName::Records(index).path(thread);
    Err(Error::SealBroken {
        path,
        differs: None,
        bytes: 0,
        why: "it is missing or empty, but later segments exist",
    })
}

/// Scans a segment whose first record follows `seq_last`.
fn scan_from(
    file: Arc<dyn disk::DiskFile>,
    path: &StorePath,
    check: &SpineLines,
    seq_last: Option<Seq>,
) -> Result<(Prefix, Ending), Error> {
    struct LinesAfter<'a>(&'a SpineLines, u64);
    impl crate::line_check::LineCheck for LinesAfter<'_> {
        fn seq(&self, line: &[u8]) -> Result<Option<Seq>, Damage> {
            let seq = self.0.seq(line)?.map_or(0, Seq::get);
            let within = seq.checked_sub(self.1).and_then(Seq::new);
            within.map(Some).ok_or(Damage::OutOfOrder { wanted: self.1 + 1, found: seq })
        }
    }
    let before = seq_last.map_or(0, Seq::get);
    let found = scan(file, path, &LinesAfter(check, before), Vec::new())?;
    let last = found.good.seq_last.and_then(|within| Seq::new(within.get() + before)).or(seq_last);
    Ok((Prefix { seq_last: last, ..found.good }, found.ending))
}

fn first_time(disk: &dyn Disk, path: &StorePath) -> Result<String, Error> {
    let failed = |source| Error::io("read", path, source);
    let Some(file) = disk.open_read(path).map_err(failed)? else { return Ok(String::new()) };
    let mut lines = crate::lines::Lines::new(file, 0);
    match lines.next().map_err(failed)? {
        crate::lines::NextLine::Line { bytes, .. } => {
            let record = steno_model::SpineRecord::parse(bytes);
            Ok(record.map(|record| record.timestamp.to_string()).unwrap_or_default())
        }
        crate::lines::NextLine::End { .. } | crate::lines::NextLine::TooLong { .. } => Ok(String::new()),
    }
}

/// Reads a segment's meta file; `None` when the segment is unsealed.
///
/// # Errors
/// [`Error::Damaged`] when the file is not a meta file.
pub fn read_meta(
    disk: &dyn Disk,
    thread: &ThreadId,
    index: SegmentIndex,
) -> Result<Option<SegmentMeta>, Error> {
    let path = SegmentName::Meta(index).path(thread);
    let failed = |source| Error::io("read", &path, source);
    let Some(file) = disk.open_read(&path).map_err(failed)? else { return Ok(None) };
    let damaged = |reason| Error::Damaged {
        path: path.clone(),
        offset: 0,
        why: steno_model::Error::NotJson { reason }.into(),
    };
    let mut bytes = vec![0; META_BYTES_MAX + 1];
    let read = read_full(&*file, &mut bytes, 0).map_err(failed)?;
    if read > META_BYTES_MAX {
        return Err(damaged(format!("more than {META_BYTES_MAX} bytes")));
    }
    serde_json::from_slice(&bytes[..read]).map(Some).map_err(|error| damaged(error.to_string()))
}
