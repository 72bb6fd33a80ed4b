//! The first and the last event of a run, without reading what lies between.

use std::sync::Arc;

use steno_model::ExchangeEvent;
use steno_model::RunId;
use steno_model::limits::LINE_BYTES_MAX;

use crate::disk::{DiskFile, read_full};
use crate::error::{Damage, Error};
use crate::lines::{Lines, Piece};
use crate::names::{RunFile, StorePath};
use crate::store::Store;

/// What a list of runs needs to know about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The first and the last whole line; `None` in an empty file.
    pub events: Option<(ExchangeEvent, ExchangeEvent)>,
    /// How long the file is.
    pub bytes: u64,
}

/// Reads the first and the last whole line of a run's transcript.
///
/// # Errors
/// [`Error::Damaged`] when one of them is no event, [`Error::NoSuchRun`], or what the system says.
pub fn run_ends(store: &Store, run: RunId) -> Result<Ends, Error> {
    let path = RunFile::Transcript(run).path();
    let failed = |doing| {
        let path = path.clone();
        move |source| Error::io(doing, &path, source)
    };
    let file = store.disk().open_read(&path).map_err(failed("open"))?.ok_or(Error::NoSuchRun { run })?;
    let bytes = file.identity().map_err(failed("look at"))?.size_bytes;
    let read = |offset, line: &[u8]| {
        let damaged = |error| Error::Damaged { path: path.clone(), offset, why: Damage::Unreadable(error) };
        ExchangeEvent::parse(line).map_err(damaged)
    };
    let first = match Lines::new(Arc::clone(&file), 0).next().map_err(failed("read"))? {
        Piece::Line { offset, bytes } => read(offset, bytes)?,
        Piece::End { .. } => return Ok(Ends { events: None, bytes }),
        Piece::TooLong { offset } => return Err(Error::Damaged { path, offset, why: Damage::TooLong }),
    };
    let (offset, line) = last_line(&*file, &path, bytes)?;
    Ok(Ends { events: Some((first, read(offset, &line)?)), bytes })
}

/// Finds the last line that ends with a newline, reading backwards in growing steps.
fn last_line(file: &dyn DiskFile, path: &StorePath, len: u64) -> Result<(u64, Vec<u8>), Error> {
    let mut window = 16 * 1024_u64;
    loop {
        let from = len.saturating_sub(window);
        let mut bytes = vec![0; usize::try_from(len - from).unwrap_or(usize::MAX)];
        let read = read_full(file, &mut bytes, from).map_err(|source| Error::io("read", path, source))?;
        bytes.truncate(read);
        let end = memchr::memrchr(b'\n', &bytes);
        let start = end.and_then(|end| memchr::memrchr(b'\n', &bytes[..end]));
        match (start, end) {
            (Some(start), Some(end)) => return Ok((from + start as u64 + 1, bytes[start + 1..end].to_vec())),
            (None, Some(end)) if from == 0 => return Ok((0, bytes[..end].to_vec())),
            _ if from == 0 || window > 2 * LINE_BYTES_MAX as u64 => {
                return Err(Error::Damaged { path: path.clone(), offset: from, why: Damage::TooLong });
            }
            _ => window *= 4,
        }
    }
}
