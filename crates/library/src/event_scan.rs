//! Scans a transcript for the few events that a caller needs, without parsing the other lines.

use std::io::{BufRead as _, BufReader, Read as _};

use steno_disk::OffsetReader;
use steno_journal::{Error as JournalError, RunFile, Store};
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{ExchangeEvent, RunId};

const BUFFER_BYTES: usize = 256 * 1024;

/// Passes on those events of a run whose lines may have what the caller needs. A run without a transcript has none.
///
/// Damaged lines are skipped: a full read of the run reports them.
pub(crate) fn scan_events(
    store: &Store,
    run: RunId,
    may_have: impl Fn(&[u8]) -> bool,
    mut take: impl FnMut(&ExchangeEvent),
) -> Result<(), JournalError> {
    let path = RunFile::Transcript(run).path();
    let failed = |source: std::io::Error| JournalError::Io {
        doing: "read",
        path: path.clone(),
        source: source.into(),
    };
    let Some(file) = store.disk().open_read(&path).map_err(failed)? else { return Ok(()) };
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, OffsetReader::from(file, 0));
    while reader.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).map_err(failed)? > 0 {
        if may_have(&line)
            && let Ok(event) = ExchangeEvent::parse(line.trim_ascii_end())
        {
            take(&event);
        }
        line.clear();
    }
    Ok(())
}
