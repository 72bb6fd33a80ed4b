//! Rewrites the transcript of a run and replaces the old one, which is kept.
//!
//! The new transcript is written under a name that no reader uses. It becomes valid when it is renamed to
//! `<run-id>.jsonl.next`: a crash before that leaves the old transcript; after that, the next process that opens the
//! run completes the exchange. The notes of the new transcript are in `<run-id>.notes.jsonl.next`, written before and
//! renamed last, so that their presence shows whether an exchange was interrupted.

use std::sync::Arc;

use steno_disk::{Disk, StorePath, append_all, sync_dir, sync_file};
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{Draft, RunId, Seq, Timestamp};

use crate::error::Error;
use crate::flaw::Flaw;
use crate::lease::Lease;
use crate::log::{Level, Log, LogParts};
use crate::names::RunFile;
use crate::note::{Note, NoteKind, read_notes_in, settle_refused};
use crate::reader::Reader;
use crate::recorder::Journal;
use crate::recovery::{self, keep_copy};
use crate::seal::{Prefix, Seal, scan_seals_in};
use crate::sidecar;
use crate::store::Store;

/// A new transcript of a run while it is written. Readers see the old one until it is put in place.
///
/// If it is dropped before that, the run stays as it was.
pub struct Rewrite {
    run: RunId,
    disk: Arc<dyn Disk>,
    clock: fn() -> jiff::Timestamp,
    lease: Lease,
    log: Option<Log>,
    /// The part that was written and read back before the log was closed.
    prefix: Prefix,
    dropped: Vec<NoteKind>,
    /// What is wrong with the old transcript.
    flaw: Option<Flaw>,
}

/// The change of adapter between the old and the new transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterChange {
    /// The old adapter.
    pub from: String,
    /// The new adapter.
    pub to: String,
    /// How many events that the adapter did not make were carried over.
    pub carried: u64,
}

impl Journal {
    /// Begins to rewrite the transcript of a run: takes its lock and recovers after a crash.
    ///
    /// # Errors
    /// As [`Journal::record`].
    pub fn rewrite(&self, run: RunId) -> Result<Rewrite, Error> {
        let disk = Arc::clone(self.store.disk());
        let clock = self.options.clock;
        let now = clock();
        let mut lease = Lease::take(&*disk, &RunFile::Lock(run).path(), now)?;
        settle(&*disk, run)?;
        let found = recovery::inspect(&*disk, run)?;
        recovery::apply(&*disk, &found, now)?;
        settle_refused(&*disk, run, &mut lease)?;
        Rewrite::begin(self, run, lease, None)
    }
}

impl Rewrite {
    /// Begins a rewrite. The caller has taken the lock and completed an interrupted exchange.
    pub(crate) fn begin(
        journal: &Journal,
        run: RunId,
        lease: Lease,
        flaw: Option<Flaw>,
    ) -> Result<Self, Error> {
        let disk = Arc::clone(journal.store.disk());
        // An interrupted rewrite may have left this file.
        remove(&*disk, &RunFile::Transcript(run).path().unfinished())?;
        let (clock, log) = (journal.options.clock, None);
        let (prefix, dropped) = (Prefix::default(), Vec::new());
        let mut rewrite = Self { run, disk, clock, lease, log, prefix, dropped, flaw };
        rewrite.resume()?;
        Ok(rewrite)
    }

    fn path(&self) -> StorePath {
        RunFile::Transcript(self.run).path()
    }

    /// Opens the file again after [`Rewrite::suspend`].
    fn resume(&mut self) -> Result<&Log, Error> {
        let log = match self.log.take() {
            Some(log) => log,
            None => Log::open(LogParts {
                disk: Arc::clone(&self.disk),
                path: self.path().unfinished(),
                epoch: self.lease.epoch,
                prefix: self.prefix.clone(),
                clock: self.clock,
            })?,
        };
        Ok(self.log.insert(log))
    }

    /// Closes the file to save a file descriptor; the next event opens it again.
    ///
    /// # Errors
    /// I/O errors.
    pub fn suspend(&mut self) -> Result<(), Error> {
        let Some(log) = self.log.take() else { return Ok(()) };
        log.read_back(&mut self.prefix)?;
        log.sync_now()
    }

    /// Tells whether the file is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.log.is_some()
    }

    /// Appends an event.
    ///
    /// # Errors
    /// [`Error::TooLong`], after which other events can be written, or an I/O error.
    pub fn append(&mut self, draft: Draft) -> Result<Seq, Error> {
        let clock = self.clock;
        let encoded = draft.encode(self.run, || Timestamp::from_instant(clock()));
        if encoded.line_bytes_max() > LINE_BYTES_MAX {
            return Err(Error::TooLong { bytes: encoded.line_bytes_max() as u64 });
        }
        let render = |seq, line: &mut Vec<u8>| encoded.write_line(seq, line);
        let appended = self.resume()?.append(Level::Written, render, || ())?;
        Ok(appended.pending.seq())
    }

    /// Notes that some events could not be written.
    ///
    /// # Errors
    /// I/O errors.
    pub fn note_dropped(&mut self, count: u64, cause: &str) -> Result<(), Error> {
        let seq_last = self.resume()?.end().seq_last.map_or(0, Seq::get);
        self.dropped.push(NoteKind::Dropped { count, seq_last, cause: cause.to_owned() });
        Ok(())
    }

    /// Replaces the old transcript by the new one, and keeps the old one with its seals and notes.
    ///
    /// # Errors
    /// I/O errors. The run then has its old transcript or the new one, and the next process that opens it completes the
    /// exchange.
    pub fn put_in_place(mut self, with: AdapterChange) -> Result<(), Error> {
        self.suspend()?;
        let (disk, path) = (Arc::clone(&self.disk), self.path());
        let disk = &*disk;
        let superseded = number_next(disk, self.run)?;
        let AdapterChange { from, to, carried } = with;
        let flaw = self.flaw.take();
        let first = NoteKind::Rederived { from, to, superseded, carried, flaw };
        self.write_notes(first)?;
        rename(disk, &path.unfinished(), &path.next())?;
        settle(disk, self.run)?;
        let seal = Seal::new(self.run, &self.prefix, (self.clock)());
        sidecar::append_line(disk, &RunFile::Seals(self.run).path(), &seal.to_line())
    }

    /// Writes the notes of the new transcript and syncs them.
    fn write_notes(&mut self, first: NoteKind) -> Result<(), Error> {
        let path = RunFile::Notes(self.run).path().next();
        let time = Timestamp::from_instant((self.clock)()).to_string();
        let mut text = String::new();
        for what in std::iter::once(first).chain(self.dropped.drain(..)) {
            text.push_str(&sidecar::json_line(&Note { time: time.clone(), what }));
            text.push('\n');
        }
        let failed = |doing| {
            let path = path.clone();
            move |source| Error::io(doing, &path, source)
        };
        let file = self.disk.create(&path).map_err(failed("make"))?;
        append_all(&*file, text.as_bytes()).map_err(failed("write"))?;
        sync_file(&*file).map_err(failed("sync"))?;
        sync_dir(&*self.disk, &path.dir()).map_err(failed("sync the directory of"))
    }
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        // Best effort: the next rewrite removes a file that stays.
        self.log = None;
        self.disk.remove(&self.path().unfinished()).ok();
    }
}

/// Completes an interrupted exchange of transcripts, or undoes one that had not begun. The caller has the lock of the
/// run.
pub(crate) fn settle(disk: &dyn Disk, run: RunId) -> Result<(), Error> {
    let [transcript, seals, notes] = files(run);
    if !exists(disk, &notes.next())? {
        return Ok(());
    }
    let number = read_notes_in(disk, &notes.next())?.first().and_then(|note| match note.what {
        NoteKind::Rederived { superseded, .. } => Some(superseded),
        NoteKind::Recovered { .. }
        | NoteKind::Refused { .. }
        | NoteKind::Dropped { .. }
        | NoteKind::Lagged { .. }
        | NoteKind::Vanished { .. } => None,
    });
    let is_whole = exists(disk, &transcript.next())?;
    let Some(number) = number.filter(|_| is_whole) else {
        let is_kept = number.map_or(Ok(false), |number| exists(disk, &transcript.superseded(number)))?;
        // If the old transcript was kept, the new one is already in place.
        return if is_kept { rename(disk, &notes.next(), &notes) } else { remove(disk, &notes.next()) };
    };
    for path in [&seals, &notes, &transcript] {
        keep_copy(disk, path, &path.superseded(number))?;
    }
    // The old transcript was missing: an empty file reserves the number.
    if !exists(disk, &transcript.superseded(number))? {
        make_empty(disk, &transcript.superseded(number))?;
    }
    // The old seals would not match the new transcript.
    remove(disk, &seals)?;
    rename(disk, &transcript.next(), &transcript)?;
    rename(disk, &notes.next(), &notes)
}

fn files(run: RunId) -> [StorePath; 3] {
    [RunFile::Transcript(run), RunFile::Seals(run), RunFile::Notes(run)].map(RunFile::path)
}

fn exists(disk: &dyn Disk, path: &StorePath) -> Result<bool, Error> {
    let found = disk.identity(path).map_err(|source| Error::io("access", path, source))?;
    Ok(found.is_some())
}

/// Renames a file and syncs the directory.
fn rename(disk: &dyn Disk, from: &StorePath, to: &StorePath) -> Result<(), Error> {
    disk.rename(from, to).map_err(|source| Error::io("rename", from, source))?;
    sync_dir(disk, &to.dir()).map_err(|source| Error::io("sync the directory of", to, source))
}

/// Removes a file, if it exists, and syncs the directory.
fn remove(disk: &dyn Disk, path: &StorePath) -> Result<(), Error> {
    if !exists(disk, path)? {
        return Ok(());
    }
    disk.remove(path).map_err(|source| Error::io("delete", path, source))?;
    sync_dir(disk, &path.dir()).map_err(|source| Error::io("sync the directory of", path, source))
}

/// Makes an empty file and syncs its directory.
fn make_empty(disk: &dyn Disk, path: &StorePath) -> Result<(), Error> {
    let file = disk.create(path).map_err(|source| Error::io("make", path, source))?;
    sync_file(&*file).map_err(|source| Error::io("sync", path, source))?;
    sync_dir(disk, &path.dir()).map_err(|source| Error::io("sync the directory of", path, source))
}

/// Returns the first number that no superseded transcript of the run has.
pub(crate) fn number_next(disk: &dyn Disk, run: RunId) -> Result<u32, Error> {
    let path = RunFile::Transcript(run).path();
    let mut number = 1;
    while exists(disk, &path.superseded(number))? {
        number += 1;
    }
    Ok(number)
}

impl Store {
    /// Lists the superseded transcripts of a run, oldest first.
    ///
    /// # Errors
    /// I/O errors.
    pub fn superseded(&self, run: RunId) -> Result<Vec<StorePath>, Error> {
        let path = RunFile::Transcript(run).path();
        Ok((1..number_next(&**self.disk(), run)?).map(|number| path.superseded(number)).collect())
    }

    /// Opens a superseded transcript from [`Store::superseded`] for reading.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`] when it does not exist, or an I/O error.
    pub fn open_superseded(&self, run: RunId, kept: &StorePath) -> Result<Reader, Error> {
        let file = self.disk().open_read(kept).map_err(|source| Error::io("open", kept, source))?;
        Ok(Reader::of_file(file.ok_or(Error::NoSuchRun { run })?, kept.clone(), Some(run)))
    }

    /// Reads the seals and notes of a superseded transcript from [`Store::superseded`].
    ///
    /// # Errors
    /// [`Error::Damaged`] when a line is not a seal of the run, or an I/O error.
    pub fn beside_superseded(&self, run: RunId, kept: &StorePath) -> Result<(Vec<Seal>, Vec<Note>), Error> {
        let [transcript, seals, notes] = files(run);
        let number = kept.as_str().strip_prefix(transcript.as_str()).unwrap_or_default();
        let of = |path: StorePath| StorePath::new(format!("{path}{number}"));
        let (seals, _) = scan_seals_in(&**self.disk(), &of(seals), run)?;
        Ok((seals, read_notes_in(&**self.disk(), &of(notes))?))
    }

    /// Lists the runs that have a superseded transcript but no current one, because a newer adapter does not produce
    /// them.
    ///
    /// # Errors
    /// I/O errors.
    pub fn withdrawn_runs(&self) -> Result<Vec<RunId>, Error> {
        let dir = StorePath::transcripts();
        let names = self.disk().list(&dir).map_err(|source| Error::io("list", &dir, source))?;
        let mut runs = Vec::new();
        for name in &names {
            let Some(run) = name.split('.').next().and_then(|stem| RunId::parse(stem).ok()) else { continue };
            let path = RunFile::Transcript(run).path();
            if path.superseded(1).file_name() == name && !exists(&**self.disk(), &path)? {
                runs.push(run);
            }
        }
        Ok(runs)
    }

    /// Returns the size of all superseded transcripts, seals and notes.
    ///
    /// # Errors
    /// I/O errors.
    pub fn superseded_bytes(&self) -> Result<u64, Error> {
        let dir = StorePath::transcripts();
        let names = self.disk().list(&dir).map_err(|source| Error::io("list", &dir, source))?;
        let mut bytes = 0;
        for name in names.iter().filter(|name| name.contains(".superseded-")) {
            let path = dir.below(name);
            let found = self.disk().identity(&path).map_err(|source| Error::io("access", &path, source))?;
            bytes += found.map_or(0, |found| found.size_bytes);
        }
        Ok(bytes)
    }

    /// Withdraws a run that nothing replaces: its files are renamed as superseded ones.
    ///
    /// # Errors
    /// [`Error::Locked`] when another writer has it, or an I/O error. A second call continues.
    pub fn withdraw(&self, run: RunId, now: jiff::Timestamp) -> Result<(), Error> {
        let disk = &**self.disk();
        let _lease = Lease::take(disk, &RunFile::Lock(run).path(), now)?;
        settle(disk, run)?;
        let number = number_next(disk, run)?;
        let [transcript, seals, notes] = files(run);
        // The transcript is renamed last, because its name decides which number is free.
        for path in [seals, notes, transcript] {
            if exists(disk, &path)? {
                rename(disk, &path, &path.superseded(number))?;
            }
        }
        Ok(())
    }
}
