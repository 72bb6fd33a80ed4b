//! From an adapter's drafts to the journal, each written once.
//!
//! After a crash a source is fed again from its beginning. Of each run's drafts those up to the last one written are
//! dropped; positions are ordered as events are, so that nothing is written twice and nothing is left out, also when the
//! crash came between two events of one record.

use std::collections::HashMap;

use steno_adapters::{SeenEntry, Sink};
use steno_journal::{Error as JournalError, Journal, Level, Reader, Recorder, Store, run_ends};
use steno_model::json::{JsonString, RawJson};
use steno_model::{Draft, EventType, Evidence, ExchangeEvent, Position, RunId};
use steno_vault::SourceId;
use uuid::Uuid;

use crate::entries::EntrySink;

/// How many runs of one source are open at a time: more than subagents work beside each other, and few enough for a low
/// limit of open files. One that is closed and goes on is opened again.
const OPEN_MAX: usize = 12;
/// How many files a run holds open: its lock, and its transcript to write and to read.
const FILES_PER_RUN: usize = 3;
/// How many files the runs of one source hold open at most.
pub(crate) const OPEN_FILES_MAX: usize = OPEN_MAX * FILES_PER_RUN;

/// The runs that one source writes.
pub(crate) struct Runs {
    journal: Journal,
    source: SourceId,
    level: Level,
    open: HashMap<RunId, Run>,
    /// How many drafts came.
    drafts: u64,
    /// In the order in which they came.
    order: Vec<RunId>,
    failed: Option<JournalError>,
    /// Where the records go as entries, if anybody wants them.
    pub(crate) entries: Option<EntrySink>,
    /// Whether there is a transcript that must not be written to.
    pub(crate) has_refused: bool,
    /// The time of the source's first event.
    pub(crate) started: Option<String>,
    /// How many events were written.
    pub(crate) written: u64,
    /// How many events could not be written, because a line would be too long or their run is damaged.
    pub(crate) refused: u64,
}

/// A run of the source.
enum Run {
    /// It is written.
    Open {
        recorder: Recorder,
        /// Up to where its events are there already.
        known: Option<Position>,
        /// The run that it would be if another source did not have that.
        session: Option<RunId>,
        /// Which draft was its last.
        used: u64,
    },
    /// Its transcript must not be written to.
    Refused,
}

impl Runs {
    pub(crate) fn new(journal: Journal, source: SourceId, level: Level) -> Self {
        Self {
            journal,
            source,
            level,
            open: HashMap::new(),
            drafts: 0,
            order: Vec::new(),
            failed: None,
            entries: None,
            has_refused: false,
            started: None,
            written: 0,
            refused: 0,
        }
    }

    /// Returns the store that they are written to.
    pub(crate) fn store(&self) -> &Store {
        self.journal.store()
    }

    /// Returns why nothing can be written any more, if that is so.
    pub(crate) fn take_failure(&mut self) -> Option<JournalError> {
        self.failed.take()
    }

    /// Returns how many files are open.
    pub(crate) fn open_files(&self) -> usize {
        self.open.len() * FILES_PER_RUN
    }

    /// Returns the runs, the source's own first.
    pub(crate) fn names(&self) -> Vec<String> {
        self.order.iter().map(ToString::to_string).collect()
    }

    /// Syncs and seals all runs and gives them back.
    pub(crate) fn close(&mut self) -> Result<(), JournalError> {
        let mut outcome = Ok(());
        for (_, run) in self.open.drain() {
            if let Run::Open { recorder, .. } = run {
                outcome = outcome.and(recorder.close());
            }
        }
        outcome
    }

    fn record(&mut self, name: RunId, draft: Draft) -> Result<(), JournalError> {
        if self.started.is_none() {
            self.started = draft.timestamp().map(ToString::to_string);
        }
        self.drafts += 1;
        if !self.open.contains_key(&name) {
            self.make_room()?;
            let run = self.open(name)?;
            self.open.insert(name, run);
        }
        let Some(Run::Open { recorder, known, session, used }) = self.open.get_mut(&name) else {
            self.refused += 1;
            return Ok(());
        };
        *used = self.drafts;
        if let Some(last) = *known {
            if position_of(draft.field("evidence")).is_some_and(|position| position <= last) {
                return Ok(());
            }
            *known = None;
        }
        let draft = match session {
            Some(session) if draft.event_type() == EventType::RunStarted => named_after(draft, *session),
            _ => draft,
        };
        match recorder.append(draft, self.level) {
            Ok(_) => self.written += 1,
            Err(JournalError::TooLong { .. }) => {
                self.refused += 1;
                recorder.note_dropped(1, "an event of this source is longer than a line may be")?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Closes the run that has been quiet for longest, when many are open.
    fn make_room(&mut self) -> Result<(), JournalError> {
        let used = |run: &Run| match run {
            Run::Open { used, .. } => Some(*used),
            Run::Refused => None,
        };
        let open = || self.open.iter().filter_map(|(name, run)| Some((used(run)?, *name)));
        let oldest = if open().count() < OPEN_MAX { None } else { open().min() };
        match oldest.and_then(|(_, name)| self.open.remove(&name)) {
            Some(Run::Open { recorder, .. }) => recorder.close(),
            Some(Run::Refused) | None => Ok(()),
        }
    }

    /// Opens a run, or another in its place when it is another source's.
    fn open(&mut self, name: RunId) -> Result<Run, JournalError> {
        let (run, session) = match self.owner_of(name)? {
            Owner::Nobody | Owner::Us => (name, None),
            Owner::Another => (other_run(self.source, name), Some(name)),
        };
        let recorder = match self.journal.record(run) {
            Ok(recorder) => recorder,
            Err(error @ (JournalError::Damaged { .. } | JournalError::SealBroken { .. })) => {
                match self.begin_anew(run, &error)? {
                    Some(recorder) => recorder,
                    None => return Ok(Run::Refused),
                }
            }
            Err(error) => return Err(error),
        };
        if !self.order.contains(&run) {
            self.order.push(run);
        }
        let known = if recorder.seq_last().is_some() { self.last_position(run)? } else { None };
        Ok(Run::Open { recorder, known, session, used: self.drafts })
    }

    /// Returns up to where a run has the source's events. Others may have added theirs, also after the last of them.
    fn last_position(&self, run: RunId) -> Result<Option<Position>, JournalError> {
        let store = self.journal.store();
        let of_us = |event: &ExchangeEvent| {
            let evidence = evidence_of(event).and_then(Evidence::read)?;
            (evidence.source.to_text() == self.source.to_string()).then_some(evidence.position)
        };
        let last = run_ends(store, run)?.events.and_then(|(_, last)| of_us(&last));
        if last.is_some() {
            return Ok(last);
        }
        let mut reader = Reader::open(store, run)?.until_now()?;
        let mut last = None;
        while let Some(recorded) = reader.read_next()? {
            last = of_us(&recorded.event).or(last);
        }
        Ok(last)
    }

    /// Begins a damaged transcript anew, if nothing vouches for what it holds: a power cut during an import leaves holes,
    /// and the evidence has everything. What it held is kept beside it.
    fn begin_anew(&mut self, run: RunId, error: &JournalError) -> Result<Option<Recorder>, JournalError> {
        let store = self.journal.store();
        let is_damaged = matches!(error, JournalError::Damaged { .. });
        let aside = if is_damaged { store.set_aside_unsealed(run, jiff::Timestamp::now())? } else { None };
        let Some(aside) = aside else {
            tracing::error!(%run, %error, "a transcript cannot be gone on with");
            self.has_refused = true;
            return Ok(None);
        };
        tracing::warn!(%run, %error, "a transcript is written anew from its evidence; what it held is in `{aside}`");
        self.journal.record(run).map(Some)
    }

    fn owner_of(&self, run: RunId) -> Result<Owner, JournalError> {
        let store = self.journal.store();
        if store.size(run)?.unwrap_or(0) == 0 {
            return Ok(Owner::Nobody);
        }
        let first = match run_ends(store, run) {
            Ok(ends) => ends.events.map(|(first, _)| first),
            // Opening it will tell what is wrong with it.
            Err(JournalError::Damaged { .. } | JournalError::Shrunk { .. }) => None,
            Err(error) => return Err(error),
        };
        let Some(first) = first else { return Ok(Owner::Us) };
        let source = evidence_of(&first).and_then(Evidence::read).map(|evidence| evidence.source);
        let is_ours = source.is_some_and(|source| source.to_text() == self.source.to_string());
        Ok(if is_ours { Owner::Us } else { Owner::Another })
    }
}

/// Whose a run is.
enum Owner {
    Nobody,
    Us,
    Another,
}

impl Sink for Runs {
    fn draft(&mut self, run: RunId, draft: Draft) {
        // After a failure the source is taken up again from what was written.
        if self.failed.is_none()
            && let Err(error) = self.record(run, draft)
        {
            self.failed = Some(error);
        }
    }

    fn wants_entries(&self) -> bool {
        self.entries.as_ref().is_some_and(Sink::wants_entries)
    }

    fn entry(&mut self, entry: SeenEntry<'_>) {
        if let Some(entries) = &mut self.entries {
            entries.entry(entry);
        }
    }
}

/// Names the run that a second source with the same session gets.
fn other_run(source: SourceId, run: RunId) -> RunId {
    RunId::from_uuid(Uuid::new_v5(&run.uuid(), source.to_string().as_bytes()))
}

fn named_after(draft: Draft, session: RunId) -> Draft {
    let name = JsonString::from(session.to_string().as_str());
    match RawJson::parse(name.as_raw()) {
        Ok(name) => draft.clone().with_field("session_run_id", name).unwrap_or(draft),
        Err(_) => draft,
    }
}

fn evidence_of(event: &ExchangeEvent) -> Option<&RawJson> {
    event.extra.get("evidence")
}

fn position_of(evidence: Option<&RawJson>) -> Option<Position> {
    evidence.and_then(Evidence::read).map(|evidence| evidence.position)
}
