//! Which transcripts a receipt may be made of, where runs were derived anew: the old transcripts are kept.

use steno_disk::StorePath;
use steno_journal::{Error as JournalError, Reader, Store};
use steno_model::RunId;
use steno_session::PayloadFields;

use super::{Error, WantedRun};

/// How many ways to put transcripts together are tried. More than one version of a run by one adapter is rare.
const CHOICES_MAX: usize = 64;

/// Returns the ways to read runs of which at least one takes a superseded transcript, newer ones first. `adapters` has the
/// adapter that each run has to be made by; without it, any will do.
pub(super) fn choices(
    store: &Store,
    runs: &[WantedRun],
    adapters: Option<&[Option<String>]>,
) -> Result<Vec<Vec<WantedRun>>, Error> {
    let mut ways: Vec<Vec<WantedRun>> = vec![Vec::new()];
    for (number, run) in runs.iter().enumerate() {
        let wanted = adapters.and_then(|adapters| adapters.get(number));
        let mut files = Vec::new();
        for file in transcripts_of(store, run.id)? {
            if wanted.is_none_or(|wanted| adapter_of(store, run.id, file.as_ref()) == *wanted) {
                files.push(WantedRun { superseded: file, ..run.clone() });
            }
        }
        let with = |way: &Vec<WantedRun>, file: &WantedRun| [&way[..], std::slice::from_ref(file)].concat();
        ways = ways.iter().flat_map(|way| files.iter().map(move |file| with(way, file))).collect();
        ways.truncate(CHOICES_MAX);
    }
    ways.retain(|way| way.iter().any(|run| run.superseded.is_some()));
    Ok(ways)
}

/// Returns the transcripts of a run: its own, if it has one, and those that others took the place of, the newest first.
fn transcripts_of(store: &Store, run: RunId) -> Result<Vec<Option<StorePath>>, JournalError> {
    let own = store.has(run)?.then_some(None);
    let superseded = store.superseded(run)?;
    Ok(own.into_iter().chain(superseded.into_iter().rev().map(Some)).collect())
}

/// Returns the adapter that the first event of a transcript names; `None` also where it cannot be read.
fn adapter_of(store: &Store, run: RunId, superseded: Option<&StorePath>) -> Option<String> {
    let opened = match superseded {
        None => Reader::open(store, run),
        Some(path) => store.open_superseded(run, path),
    };
    let first = opened.ok()?.read_next().ok()??.event;
    let adapter = PayloadFields::of(&first).object("source").text("adapter")?.into_owned();
    Some(adapter)
}
