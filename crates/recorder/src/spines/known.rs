//! What a spine has already of a source.

use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{SpineReader, Store};
use steno_model::{Evidence, Position, ThreadId};

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
    let failed = |source| Error::Journal { thread: thread.clone(), source };
    let mut reader = SpineReader::new(Arc::clone(store.disk()), StorePath::spine_of(thread));
    let mut last = None;
    while let Some(record) = reader.read_next().map_err(failed)? {
        // A spine of others has records without evidence, and nothing of ours to go on with.
        let evidence = record.extra.get("evidence").and_then(Evidence::read);
        let Some(Evidence { source: has, position, .. }) = evidence else { continue };
        let has = has.to_text();
        // What stands behind records of the source itself has gone on from them.
        if last.is_none() && !source.goes_on_from(&has) {
            let (has, wanted) = (has.into_owned(), source.text.clone());
            return Err(Error::OtherSource { thread: thread.clone(), has, wanted });
        }
        if has == source.text.as_str() {
            last = last.max(Some(position));
        }
    }
    Ok(last)
}
