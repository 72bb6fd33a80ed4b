//! Finds the part of a source that a spine already has.

use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{SpineReader, Store};
use steno_model::{Evidence, Position, ThreadId};

use super::{Error, SourceName};

/// Returns the last position of a source in a thread's spine.
///
/// # Errors
///
/// [`Error::OtherSource`] if the spine was made from a source that cannot be combined with it.
pub(super) fn last_position(
    store: &Store,
    thread: &ThreadId,
    source: &SourceName,
) -> Result<Option<Position>, Error> {
    let failed = |source| Error::Journal { thread: thread.clone(), source };
    let mut reader = SpineReader::new(Arc::clone(store.disk()), StorePath::spine_of(thread));
    let mut last = None;
    while let Some(record) = reader.read_next().map_err(failed)? {
        // A spine of another program has records without evidence, so there is no position to continue from.
        let evidence = record.extra.get("evidence").and_then(Evidence::read);
        let Some(Evidence { source: has, position, .. }) = evidence else { continue };
        let has = has.to_text();
        // Records after those of this source were made by a source that continues it.
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
