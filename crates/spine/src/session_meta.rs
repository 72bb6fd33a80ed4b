//! Reads the `session_meta` records of a stored spine, which describe the thread's rollout.

use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{Error, SpineReader, Store};
use steno_model::json::{Fields, RawJson, text_of};
use steno_model::{SpineType, ThreadId, Word};

/// Returns the path of the rollout, from the first record that has it.
///
/// # Errors
///
/// An error of the journal.
pub fn recorded_rollout_path(store: &Store, thread: &ThreadId) -> Result<Option<String>, Error> {
    in_session_meta(store, thread, |payload| {
        let mut fields = Fields::parse(payload.as_str()).ok()?;
        let source = fields.take("spine_source").ok().flatten();
        text_in(&mut fields, "rollout_path")
            .or_else(|| text_in(&mut Fields::parse(source?.get()).ok()?, "path"))
    })
}

/// Returns the thread that this one continues, from the first record that names it.
///
/// # Errors
///
/// An error of the journal.
pub fn recorded_base(store: &Store, thread: &ThreadId) -> Result<Option<String>, Error> {
    in_session_meta(store, thread, |payload| {
        let base = Fields::parse(payload.as_str()).ok()?.take("history_base").ok()??;
        text_in(&mut Fields::parse(base.get()).ok()?, "thread_id").filter(|base| base != thread.as_str())
    })
}

fn in_session_meta(
    store: &Store,
    thread: &ThreadId,
    find: impl Fn(&RawJson) -> Option<String>,
) -> Result<Option<String>, Error> {
    let mut reader = SpineReader::new(Arc::clone(store.disk()), StorePath::spine_of(thread));
    while let Some(record) = reader.read_next()? {
        if record.record_type == Word::Known(SpineType::SessionMeta)
            && let Some(found) = find(&record.payload)
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn text_in(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    Some(text_of(fields.take(name).ok()??)?.into_owned())
}
