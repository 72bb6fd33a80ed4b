//! Heads of runs as the write side needs them: a damaged run has none, and the adapter has an age.

use steno_adapters::{AdapterAge, adapter_age};
use steno_journal::{Error as JournalError, Store, run_ends};
use steno_library::RunHead;
use steno_model::{Provider, RunId, Vocabulary as _};

/// Reads the head of a run; `None` if it has no event that can be read.
pub(crate) fn read_head(store: &Store, run: RunId) -> Result<Option<RunHead>, JournalError> {
    match run_ends(store, run) {
        Ok(ends) => Ok(ends.events.map(|(first, _)| RunHead::of(&first))),
        // Opening the run reports what is wrong with it.
        Err(JournalError::Damaged { .. } | JournalError::Shrunk { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Compares the adapter that a run was derived with to the one of this program.
pub(crate) fn age_of(head: &RunHead) -> AdapterAge {
    head.adapter.as_deref().map_or(AdapterAge::Unknown, adapter_age)
}

/// Tells whether a run was derived before the directory of its project was known: only chats of Gemini CLI do not have it
/// themselves.
pub(crate) fn lacks_directory(head: &RunHead) -> bool {
    let is_chat = head.provider.as_deref() == Some(Provider::Gemini.as_str())
        && head.channel.as_deref() == Some("disk");
    is_chat && head.project.is_none() && age_of(head) == AdapterAge::Current
}
