//! Which transcripts a receipt may be made from, when runs were re-derived: the old transcripts are kept.

use std::borrow::Cow;

use steno_disk::StorePath;
use steno_journal::{Error as JournalError, Reader, Store};
use steno_model::{ExchangeEvent, RunId};
use steno_session::PayloadFields;

use super::{Error, ReadOptions, RunSelection};

/// How many combinations of transcripts are tried. Several versions of a run by one adapter are rare.
const CHOICES_MAX: usize = 64;

/// Returns the combinations of transcripts with at least one superseded transcript, newer ones first. For each run only
/// transcripts by the selected adapter count, unless an older receipt names none.
pub(super) fn choices(store: &Store, wanted: &ReadOptions) -> Result<Vec<Vec<RunSelection>>, Error> {
    let mut ways: Vec<Vec<RunSelection>> = vec![Vec::new()];
    for run in wanted.runs.iter().flatten() {
        let mut files = Vec::new();
        for superseded in transcripts_of(store, run.id)? {
            let file = RunSelection { superseded, ..run.clone() };
            if wanted.is_unnamed || file.adapter_found(store) == run.adapter {
                files.push(file);
            }
        }
        let with =
            |way: &Vec<RunSelection>, file: &RunSelection| [&way[..], std::slice::from_ref(file)].concat();
        ways = ways.iter().flat_map(|way| files.iter().map(move |file| with(way, file))).collect();
        ways.truncate(CHOICES_MAX);
    }
    ways.retain(|way| way.iter().any(|run| run.superseded.is_some()));
    Ok(ways)
}

/// Returns the transcripts of a run: the current one, if any, and the superseded ones, the newest first.
fn transcripts_of(store: &Store, run: RunId) -> Result<Vec<Option<StorePath>>, JournalError> {
    let own = store.has(run)?.then_some(None);
    let superseded = store.superseded(run)?;
    Ok(own.into_iter().chain(superseded.into_iter().rev().map(Some)).collect())
}

impl RunSelection {
    /// Returns the adapter that the first event of its transcript names; `None` also if it cannot be read.
    fn adapter_found(&self, store: &Store) -> Option<String> {
        let opened = match &self.superseded {
            None => Reader::open(store, self.id),
            Some(path) => store.open_superseded(self.id, path),
        };
        adapter_of(&opened.ok()?.read_next().ok()??.event)
    }
}

/// Returns the adapter that the first event of a run names.
pub(super) fn adapter_of(first: &ExchangeEvent) -> Option<String> {
    PayloadFields::of(first).object("source").text("adapter").map(Cow::into_owned)
}
