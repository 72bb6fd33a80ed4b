//! What a spine has already of a source.

use std::io::{self, BufRead as _, BufReader, Read};
use std::sync::Arc;

use steno_disk::DiskFile;
use steno_journal::{SegmentIndex, SegmentName, Store};
use steno_model::{Evidence, Position, SpineRecord, ThreadId};

use super::{Error, SourceName};

/// Returns the last position of a source that a thread's spine has.
///
/// # Errors
/// [`Error::OtherSource`] when the spine was made from something that does not go together with it.
pub(super) fn last_position(
    store: &Store,
    thread: &ThreadId,
    source: &SourceName,
) -> Result<Option<Position>, Error> {
    let mut last = None;
    let mut index = SegmentIndex(0);
    loop {
        let path = SegmentName::Records(index).path(thread);
        let failed = |error| Error::Journal {
            thread: thread.clone(),
            source: steno_journal::Error::Io { doing: "read", path: path.clone(), source: Arc::new(error) },
        };
        let Some(file) = store.disk().open_read(&path).map_err(failed)? else { return Ok(last) };
        for line in BufReader::with_capacity(1024 * 1024, Reading { file, offset: 0 }).split(b'\n') {
            let line = line.map_err(failed)?;
            // A spine of others has records without evidence, and nothing of ours to go on with.
            let evidence = SpineRecord::parse(&line).ok();
            let evidence = evidence.and_then(|record| Evidence::read(record.extra.get("evidence")?));
            let Some(Evidence { source: has, position, .. }) = evidence else { continue };
            let has = has.to_text();
            if !source.goes_on_from(&has) {
                let (has, wanted) = (has.into_owned(), source.text.clone());
                return Err(Error::OtherSource { thread: thread.clone(), has, wanted });
            }
            if has == source.text.as_str() {
                last = last.max(Some(position));
            }
        }
        index = index.next();
    }
}

/// A file of the store, read from its beginning on.
struct Reading {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
