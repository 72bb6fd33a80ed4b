//! Reads a run's events from its file. Readers never repair.

use std::sync::Arc;

use steno_disk::{Disk, DiskFile, StorePath};
use steno_model::{EventType, ExchangeEvent, LineHead, RunId, Seq};

use crate::error::{Damage, Error};
use crate::lines::{Lines, NextLine};
use crate::names::RunFile;
use crate::run_ends::last_line;
use crate::store::Store;

/// An event and the line it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The offset of the line.
    pub offset: u64,
    /// The line's bytes, without its newline.
    pub line: Vec<u8>,
    /// The parsed event.
    pub event: ExchangeEvent,
}

/// Reads the good lines of a transcript in order. At the end, a later call returns lines appended since.
pub struct Reader {
    path: StorePath,
    run: Option<RunId>,
    lines: Lines,
    seq_last: Option<Seq>,
    rest_bytes: u64,
}

impl Reader {
    /// Opens a run's transcript.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], or an I/O error.
    pub fn open(store: &Store, run: RunId) -> Result<Self, Error> {
        let path = RunFile::Transcript(run).path();
        let file = store.disk().open_read(&path).map_err(|source| Error::io("open", &path, source))?;
        let file = file.ok_or(Error::NoSuchRun { run })?;
        #[cfg(feature = "mutant-reader-repairs")]
        repair(&**store.disk(), run);
        Ok(Self::of_file(file, path, Some(run)))
    }

    /// Opens the transcript of a run after its last line; [`Reader::seq_last`] returns the number of that line. Only
    /// later events are read.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], [`Error::Damaged`] when the last line is not an event, or an I/O error.
    pub fn open_at_end(store: &Store, run: RunId) -> Result<Self, Error> {
        let path = RunFile::Transcript(run).path();
        let failed = |doing| {
            let path = path.clone();
            move |source| Error::io(doing, &path, source)
        };
        let file = store.disk().open_read(&path).map_err(failed("open"))?.ok_or(Error::NoSuchRun { run })?;
        let len = file.identity().map_err(failed("access"))?.size_bytes;
        let (mut offset, mut seq_last) = (0, None);
        if let Some((start, line)) = last_line(&*file, &path, len)? {
            let damaged =
                |why| Error::Damaged { path: path.clone(), offset: start, why: Damage::Unreadable(why) };
            seq_last = Some(ExchangeEvent::parse(&line).map_err(damaged)?.seq);
            offset = start + line.len() as u64 + 1;
        }
        Ok(Self { path, run: Some(run), lines: Lines::new(file, offset), seq_last, rest_bytes: 0 })
    }

    /// Opens the transcript of a run after an event that was read before, at the end of its line.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], or an I/O error. The content at that offset is checked when it is read.
    pub fn open_after(store: &Store, run: RunId, offset: u64, seq: Option<Seq>) -> Result<Self, Error> {
        let reader = Self::open(store, run)?;
        Ok(Self { lines: reader.lines.from(offset), seq_last: seq, ..reader })
    }

    /// Checks that the file is still at its path and not shorter than what was read.
    ///
    /// # Errors
    /// [`Error::Vanished`], [`Error::Shrunk`], or an I/O error.
    pub fn check(&self, store: &Store) -> Result<(), Error> {
        self.check_in_place(&**store.disk())
    }

    /// Reads a transcript outside any store; its first line names the run.
    #[must_use]
    pub fn of_file(file: Arc<dyn DiskFile>, path: StorePath, run: Option<RunId>) -> Self {
        Self { path, run, lines: Lines::new(file, 0), seq_last: None, rest_bytes: 0 }
    }

    /// Reads no further than the current end of the file, so that reading ends even with a busy writer.
    ///
    /// # Errors
    /// I/O errors.
    pub fn until_now(self) -> Result<Self, Error> {
        let path = self.path;
        let lines = self.lines.until_now().map_err(|source| Error::io("access", &path, source))?;
        Ok(Self { path, lines, ..self })
    }

    /// Returns the next event; `None` at the end of the good lines.
    ///
    /// # Errors
    /// [`Error::Damaged`] at a line that is not an event or has the wrong number; the next call fails in the same way.
    pub fn read_next(&mut self) -> Result<Option<RecordedEvent>, Error> {
        self.read_placed(|offset, line, event| RecordedEvent { offset, line: line.to_vec(), event })
    }

    /// Passes the next event and its line to `make` without copying the line; `None` at the end of the good lines.
    ///
    /// # Errors
    /// As [`Reader::read_next`].
    pub fn read_with<T>(&mut self, make: impl FnOnce(&[u8], ExchangeEvent) -> T) -> Result<Option<T>, Error> {
        self.read_placed(|_, line, event| make(line, event))
    }

    /// Passes the next event, its line and the offset of the line to `make`; `None` at the end of the good lines.
    ///
    /// # Errors
    /// As [`Reader::read_next`].
    pub fn read_placed<T>(
        &mut self,
        make: impl FnOnce(u64, &[u8], ExchangeEvent) -> T,
    ) -> Result<Option<T>, Error> {
        let path = &self.path;
        let damaged = |offset, why| Error::Damaged { path: path.clone(), offset, why };
        let place = self.lines.offset();
        match self.lines.next().map_err(|source| Error::io("read", path, source))? {
            NextLine::End { rest_bytes, .. } => {
                self.rest_bytes = rest_bytes;
                Ok(None)
            }
            NextLine::TooLong { offset, .. } => Err(damaged(offset, Damage::TooLong)),
            NextLine::Line { offset, bytes } => {
                let read = read_line(bytes, self.run, self.seq_last);
                match read {
                    Ok(event) => {
                        self.run = Some(event.run_id);
                        self.seq_last = Some(event.seq);
                        Ok(Some(make(offset, bytes, event)))
                    }
                    Err(why) => {
                        let error = damaged(offset, why);
                        self.lines.go_back_to(place);
                        Err(error)
                    }
                }
            }
        }
    }

    /// Returns the next event for which `wants` returns true; `None` at the end of the good lines.
    ///
    /// For other lines only the first fields are read: the number is checked, the rest is not.
    ///
    /// # Errors
    /// [`Error::Damaged`] as in [`Reader::read_next`], for the parts that are read.
    pub fn read_next_of(
        &mut self,
        wants: impl Fn(EventType, &[u8]) -> bool,
    ) -> Result<Option<ExchangeEvent>, Error> {
        loop {
            let path = &self.path;
            let damaged = |offset, why| Error::Damaged { path: path.clone(), offset, why };
            let place = self.lines.offset();
            let (offset, line) = match self.lines.next().map_err(|source| Error::io("read", path, source))? {
                NextLine::End { rest_bytes, .. } => {
                    self.rest_bytes = rest_bytes;
                    return Ok(None);
                }
                NextLine::TooLong { offset, .. } => return Err(damaged(offset, Damage::TooLong)),
                NextLine::Line { offset, bytes } => (offset, bytes),
            };
            let unwanted = LineHead::read(line).filter(|head| !wants(head.event_type, line));
            let read = match unwanted {
                Some(head) => check_place(head.run_id, head.seq, self.run, self.seq_last).map(|()| None),
                None => read_line(line, self.run, self.seq_last).map(Some),
            };
            match read {
                Ok(event) => {
                    self.seq_last = Some(Seq::after(self.seq_last));
                    if let Some(event) = event {
                        self.run = Some(event.run_id);
                        return Ok(Some(event));
                    }
                }
                Err(why) => {
                    let error = damaged(offset, why);
                    self.lines.go_back_to(place);
                    return Err(error);
                }
            }
        }
    }

    /// Makes the next read start at the end of the last whole line, even if a long partial line follows.
    pub(crate) fn look_again(&mut self) {
        self.lines.look_again();
    }

    /// Returns the length of the unterminated end of the file when it was last reached.
    #[must_use]
    pub fn rest_bytes(&self) -> u64 {
        self.rest_bytes
    }

    /// Returns the number of the last event that was read.
    #[must_use]
    pub fn seq_last(&self) -> Option<Seq> {
        self.seq_last
    }

    /// Checks that the file is still at its path and not shorter than what was read.
    pub(crate) fn check_in_place(&self, disk: &dyn Disk) -> Result<(), Error> {
        let failed = |source| Error::io("access", &self.path, source);
        let open = self.lines.file().identity().map_err(failed)?;
        let named = disk.identity(&self.path).map_err(failed)?;
        if open.size_bytes < self.lines.offset() {
            return Err(Error::Shrunk { path: self.path.clone() });
        }
        match named {
            Some(named) if named.is_same_file(&open) => Ok(()),
            Some(_) | None => Err(Error::Vanished { path: self.path.clone(), kept: None }),
        }
    }
}

fn read_line(line: &[u8], run: Option<RunId>, seq_last: Option<Seq>) -> Result<ExchangeEvent, Damage> {
    let event = ExchangeEvent::parse(line)?;
    check_place(event.run_id, event.seq, run, seq_last)?;
    Ok(event)
}

/// Checks that an event belongs to the run and has the next number.
fn check_place(of: RunId, seq: Seq, run: Option<RunId>, seq_last: Option<Seq>) -> Result<(), Damage> {
    let wanted = Seq::after(seq_last);
    if run.is_some_and(|run| run != of) {
        return Err(Damage::Foreign { found: of.to_string() });
    }
    if seq != wanted {
        return Err(Damage::OutOfOrder { wanted: wanted.get(), found: seq.get() });
    }
    Ok(())
}

/// A deliberate fault: a reader that repairs, to show that the tests find it.
#[cfg(feature = "mutant-reader-repairs")]
fn repair(disk: &dyn Disk, run: RunId) {
    if let Ok(found) = crate::recovery::inspect(disk, run) {
        crate::recovery::apply(disk, &found, jiff::Timestamp::now()).ok();
    }
}
