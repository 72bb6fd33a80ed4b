//! The overview of a run: its length, its first and last event, and its seals.

use steno_journal::{Error as JournalError, RunEnds, RunFile, Seal, Store, read_seals, run_ends};
use steno_model::json::{Extra, Fields, JsonString, ObjectWriter, RawJson};
use steno_model::{RunId, Seq, with_causes};
use steno_session::RunSummary;
use steno_views::summary::{state_name, summary_of_ends};
use steno_views::{Lines, visible};

use crate::{Error, RunHead};

/// The overview of a run, from its first and last event. `verify` reads the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOverview {
    /// Its head.
    pub head: RunHead,
    /// Its state: `recording`, `empty`, `completed`, `failed`, `open`, `damaged` or `unreadable`.
    pub state: &'static str,
    /// How long it is.
    pub bytes: u64,
    /// Its summary; `None` without events, and if it is damaged.
    pub summary: Option<RunSummary>,
    /// What is wrong with it.
    pub damage: Option<String>,
}

impl RunOverview {
    /// Reads the overview of a run; `None` if the store does not have it any more.
    pub(crate) fn read(store: &Store, run: RunId) -> Result<Option<Self>, Error> {
        let is_held = store.is_locked(run)?;
        let ends = match checked_ends(store, run)? {
            None => return Ok(None),
            Some(Ok(ends)) => ends,
            Some(Err((state, damage))) => {
                let (head, bytes) = (RunHead::unknown(run), store.size(run)?.unwrap_or(0));
                return Ok(Some(Self { head, state, bytes, summary: None, damage: Some(damage) }));
            }
        };
        let head =
            ends.events.as_ref().map_or_else(|| RunHead::unknown(run), |(first, _)| RunHead::of(first));
        let summary = ends.events.as_ref().map(|(first, last)| summary_of_ends(first, last));
        let state = state_name(summary.as_ref(), is_held);
        Ok(Some(Self { head, state, bytes: ends.bytes, summary, damage: None }))
    }

    /// Returns it as JSON: its summary, state, size and damage.
    #[must_use]
    pub fn row(&self) -> String {
        let unknown = || RunSummary::new(self.head.run);
        let summary = self.summary.clone().unwrap_or_else(unknown);
        let mut object = without_state(&summary);
        object.push("state", JsonString::from(self.state).to_json());
        object.push("bytes", self.bytes.into());
        let why = self.damage.as_deref();
        object.push("why", why.map_or_else(RawJson::null, |why| JsonString::from(why).to_json()));
        let mut row = String::new();
        ObjectWriter::begin(&mut row).finish(&object);
        row
    }

    /// Returns the time of its last event.
    #[must_use]
    pub fn last(&self) -> Option<jiff::Timestamp> {
        self.summary.as_ref()?.last_at.as_ref()?.instant()
    }

    /// Returns the time of its first event.
    #[must_use]
    pub fn started(&self) -> Option<jiff::Timestamp> {
        self.summary.as_ref()?.started_at.as_ref()?.instant()
    }
}

/// What is wrong with a run: `damaged` or `unreadable`, and why.
type RunDamage = (&'static str, String);

/// Returns what is wrong with a run according to its ends and seals.
pub(crate) fn damage_of_ends(store: &Store, run: RunId) -> Result<Option<RunDamage>, Error> {
    Ok(checked_ends(store, run)?.and_then(Result::err))
}

/// Reads both ends of a run, or what is wrong with them; `None` if the store does not have it any more.
fn checked_ends(store: &Store, run: RunId) -> Result<Option<Result<RunEnds, RunDamage>>, Error> {
    Ok(Some(match seals_and_ends(store, run) {
        Ok((seals, ends)) => flaw(run, &seals, &ends).map_or(Ok(ends), |flaw| Err(("damaged", flaw))),
        Err(JournalError::NoSuchRun { .. }) => return Ok(None),
        Err(
            error @ (JournalError::Damaged { .. }
            | JournalError::SealBroken { .. }
            | JournalError::Shrunk { .. }
            | JournalError::NotRegular { .. }),
        ) => Err(("damaged", with_causes(&error))),
        Err(error @ JournalError::Io { .. }) => Err(("unreadable", with_causes(&error))),
        Err(error) => return Err(error.into()),
    }))
}

/// Returns the fields of a summary without `state`, because the run may be recording.
fn without_state(summary: &RunSummary) -> Extra {
    let text = serde_json::to_string(summary).expect("a summary has only names as keys");
    let mut fields = Fields::parse(&text).expect("a summary is an object");
    fields.take("state").expect("a summary has each field once");
    fields.into_extra()
}

/// Reads the seals, which must fit the file, and both ends of the file.
fn seals_and_ends(store: &Store, run: RunId) -> Result<(Vec<Seal>, RunEnds), JournalError> {
    let seals = fitting_seals(store, run)?;
    Ok((seals, run_ends(store, run)?))
}

/// Returns what is wrong with a run according to its ends and seals.
fn flaw(run: RunId, seals: &[Seal], ends: &RunEnds) -> Option<String> {
    let (first, last) = ends.events.as_ref()?;
    if let Some(stranger) = [first, last].into_iter().find(|event| event.run_id != run) {
        return Some(format!("it contains an event of run {}", stranger.run_id));
    }
    if first.seq != Seq::FIRST {
        return Some(format!("its first event has the number {}", first.seq));
    }
    let seal = seals.iter().find(|seal| seal.bytes == ends.bytes)?;
    let fits = seal.seq_last == last.seq.get();
    (!fits).then(|| format!("its last event is {}, but its seal names {}", last.seq, seal.seq_last))
}

/// Returns the seals of a run, unless it is shorter than one of them.
///
/// This finds a truncated transcript without reading it. `verify` finds changed bytes.
///
/// # Errors
/// [`JournalError::SealBroken`] if it is shorter, or an error of the system.
pub fn fitting_seals(store: &Store, run: RunId) -> Result<Vec<Seal>, JournalError> {
    // Seals first: a seal that is written meanwhile never covers more than the size read afterwards.
    let seals = read_seals(&**store.disk(), run)?;
    let bytes = store.size(run)?.unwrap_or(0);
    match seals.iter().find(|seal| seal.bytes > bytes) {
        None => Ok(seals),
        Some(seal) => Err(JournalError::SealBroken {
            path: RunFile::Transcript(run).path(),
            differs: None,
            bytes: seal.bytes,
            why: "the file is shorter",
        }),
    }
}

/// Logs a warning if a run is shorter than its seals.
pub fn warn_about_broken_seals(store: &Store, run: RunId) {
    if let Err(error) = fitting_seals(store, run) {
        let why = with_causes(&error);
        tracing::warn!("{}; `steno verify {run}` checks the whole run", visible(&why, Lines::Escape));
    }
}
