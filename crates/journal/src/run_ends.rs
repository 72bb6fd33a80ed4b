//! Reads the first events and the last event of a run, without those between.

use std::sync::Arc;

use steno_disk::{DiskFile, StorePath, read_full};
use steno_model::ExchangeEvent;
use steno_model::RunId;
use steno_model::limits::LINE_BYTES_MAX;

use crate::error::{Damage, Error};
use crate::lines::{Lines, NextLine};
use crate::names::RunFile;
use crate::store::Store;

/// The first and last event of a run, and the length of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnds {
    /// The events of the first and the last whole line; `None` in an empty file.
    pub events: Option<(ExchangeEvent, ExchangeEvent)>,
    /// How long the file is.
    pub bytes: u64,
}

/// Reads the first and the last whole line of a run's transcript.
///
/// # Errors
/// [`Error::Damaged`] when one of them is not an event, [`Error::NoSuchRun`], or an I/O error.
pub fn run_ends(store: &Store, run: RunId) -> Result<RunEnds, Error> {
    let path = RunFile::Transcript(run).path();
    let failed = |doing| {
        let path = path.clone();
        move |source| Error::io(doing, &path, source)
    };
    let file = store.disk().open_read(&path).map_err(failed("open"))?.ok_or(Error::NoSuchRun { run })?;
    let bytes = file.identity().map_err(failed("access"))?.size_bytes;
    // Both ends of the current content: otherwise a line written meanwhile could be the last line but not the first.
    let Some(first) = next_event(&mut Lines::few(Arc::clone(&file)).until(bytes), &path)? else {
        return Ok(RunEnds { events: None, bytes });
    };
    let last = match last_line(&*file, &path, bytes)? {
        Some((offset, line)) => parse(&line, &path, offset)?,
        None => return Err(Error::Shrunk { path }),
    };
    Ok(RunEnds { events: Some((first, last)), bytes })
}

/// Reads the first events of a run's transcript: at most `events_max`, and only those that end within its first 64 KiB.
/// The first one is read at any length.
///
/// # Errors
/// [`Error::Damaged`] when one of them is not an event, [`Error::NoSuchRun`], or an I/O error.
pub fn run_beginning(store: &Store, run: RunId, events_max: usize) -> Result<Vec<ExchangeEvent>, Error> {
    const BYTES_MAX: u64 = 64 * 1024;
    let path = RunFile::Transcript(run).path();
    let opened = store.disk().open_read(&path).map_err(|source| Error::io("open", &path, source))?;
    let mut lines = Lines::few(opened.ok_or(Error::NoSuchRun { run })?);
    let mut events = Vec::new();
    while events.len() < events_max && lines.offset() < BYTES_MAX {
        if !events.is_empty() {
            lines = lines.until(BYTES_MAX);
        }
        match next_event(&mut lines, &path)? {
            Some(event) => events.push(event),
            None => break,
        }
    }
    Ok(events)
}

/// Reads the first event of a run if `is_wanted` accepts its line; `None` otherwise, or if there is no whole line.
///
/// # Errors
/// As [`run_beginning`].
pub fn first_event_if(
    store: &Store,
    run: RunId,
    is_wanted: impl FnOnce(&[u8]) -> bool,
) -> Result<Option<ExchangeEvent>, Error> {
    let path = RunFile::Transcript(run).path();
    let opened = store.disk().open_read(&path).map_err(|source| Error::io("open", &path, source))?;
    let mut lines = Lines::few(opened.ok_or(Error::NoSuchRun { run })?);
    match lines.next().map_err(|source| Error::io("read", &path, source))? {
        NextLine::Line { offset, bytes } if is_wanted(bytes) => parse(bytes, &path, offset).map(Some),
        NextLine::Line { .. } | NextLine::End { .. } => Ok(None),
        NextLine::TooLong { offset, .. } => Err(Error::Damaged { path, offset, why: Damage::TooLong }),
    }
}

/// Reads the next event; `None` when there are no more whole lines.
fn next_event(lines: &mut Lines, path: &StorePath) -> Result<Option<ExchangeEvent>, Error> {
    match lines.next().map_err(|source| Error::io("read", path, source))? {
        NextLine::Line { offset, bytes } => parse(bytes, path, offset).map(Some),
        NextLine::End { .. } => Ok(None),
        NextLine::TooLong { offset, .. } => {
            Err(Error::Damaged { path: path.clone(), offset, why: Damage::TooLong })
        }
    }
}

fn parse(line: &[u8], path: &StorePath, offset: u64) -> Result<ExchangeEvent, Error> {
    let damaged = |error| Error::Damaged { path: path.clone(), offset, why: Damage::Unreadable(error) };
    ExchangeEvent::parse(line).map_err(damaged)
}

/// Finds the last line that ends with a newline; returns its offset and bytes, or `None`.
///
/// Reads backwards in steps, so that time and memory do not depend on what comes before it.
pub(crate) fn last_line(
    file: &dyn DiskFile,
    path: &StorePath,
    len: u64,
) -> Result<Option<(u64, Vec<u8>)>, Error> {
    let failed = |source| Error::io("read", path, source);
    let Some(newline) = newline_before(file, len, 0).map_err(failed)? else { return Ok(None) };
    let from = newline.saturating_sub(LINE_BYTES_MAX as u64);
    let start = match newline_before(file, newline, from).map_err(failed)? {
        Some(before) => before + 1,
        None if from == 0 => 0,
        None => return Err(Error::Damaged { path: path.clone(), offset: from, why: Damage::TooLong }),
    };
    let mut line = vec![0; usize::try_from(newline - start).unwrap_or(0)];
    let read = read_full(file, &mut line, start).map_err(failed)?;
    if read < line.len() {
        return Err(Error::Shrunk { path: path.clone() });
    }
    Ok(Some((start, line)))
}

/// Returns the offset of the last newline between `begin` and `end`, if there is one.
fn newline_before(file: &dyn DiskFile, end: u64, begin: u64) -> std::io::Result<Option<u64>> {
    const STEP_BYTES_MAX: u64 = 1024 * 1024;
    let mut step = 4 * 1024_u64;
    let mut end = end;
    let mut bytes = Vec::new();
    while end > begin {
        let from = end.saturating_sub(step).max(begin);
        bytes.resize(usize::try_from(end - from).unwrap_or(0), 0);
        let read = read_full(file, &mut bytes, from)?;
        if let Some(found) = memchr::memrchr(b'\n', &bytes[..read]) {
            return Ok(Some(from + found as u64));
        }
        end = from;
        step = (step * 4).min(STEP_BYTES_MAX);
    }
    Ok(None)
}
