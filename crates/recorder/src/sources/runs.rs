//! Writes an adapter's drafts to the journal, each exactly once.
//!
//! After a crash a source is fed again from its beginning, and each run drops the drafts up to the last one written.
//! Positions have the order of events, so nothing is written twice or lost, even if the crash came between two events
//! of one record.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use steno_adapters::{AdapterAge, AdapterEntry, Sink};
use steno_disk::SyncSet;
use steno_journal::{Error as JournalError, Flaw, Journal, Level, Reader, Store, run_ends};
use steno_library::RunHead;
use steno_model::json::RawJson;
use steno_model::{Draft, Evidence, Position, RunId};
use steno_vault::SourceId;

use super::rewrite::{RewriteError, RunRewrite, position_in};
use super::run_head::{age_of, lacks_directory, read_head};
use super::run_recorder::{RunClaims, RunRecorder, named_after, other_run};
use crate::entries::EntrySink;

/// How many runs of one source are open at a time: more than there are parallel subagents, and few enough for a low
/// limit of open files. A closed run is reopened if it continues.
const OPEN_MAX: usize = 12;
/// How many files a run holds open: its lock, and its transcript to write and to read.
const FILES_PER_RUN: usize = 3;
/// The note for an event that is dropped.
const TOO_LONG: &str = "an event of this source is longer than a line may be";
/// The most files that the runs of one source hold open.
pub(crate) const OPEN_FILES_MAX: usize = OPEN_MAX * FILES_PER_RUN;

/// What to do with a run that an older adapter derived. Nothing is ever appended to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OlderRuns {
    /// Refuse the source: it has to be derived again first.
    Report,
    /// Derive it again.
    Rewrite,
    /// Leave it as it is, because it could not be derived again.
    Refuse,
}

/// What is known about the runs of a source before it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRuns {
    /// The runs that the source was made into before.
    pub(crate) named: Vec<RunId>,
    /// The runs whose transcripts are missing or damaged and have to be derived again.
    pub(crate) flawed: Vec<RunId>,
    /// Whether runs without the directory of their project have to be derived again, because it is known by now.
    pub(crate) has_directory: bool,
}

/// The runs that one source writes.
pub(crate) struct SourceRuns {
    journal: Journal,
    source: SourceId,
    level: Level,
    older: OlderRuns,
    /// What is known about them from earlier recordings.
    known: KnownRuns,
    /// Whether one of them has to be derived again: an older adapter derived it, or its transcript is missing.
    pub(crate) is_older: bool,
    open: HashMap<RunId, RunWriter>,
    /// How many drafts there were.
    drafts: u64,
    /// The runs in the order of their first drafts.
    order: Vec<RunId>,
    failed: Option<JournalError>,
    /// Where entries go, if they are collected.
    pub(crate) entries: Option<EntrySink>,
    /// The runs of sources that are recorded at the same time.
    pub(crate) claims: Arc<RunClaims>,
    /// Whether a transcript must not be written to.
    pub(crate) has_refused: bool,
    /// The time of the source's first event.
    pub(crate) started: Option<String>,
    /// How many runs were begun.
    pub(crate) begun: u64,
    /// How many damaged runs were derived again.
    pub(crate) mended: u64,
    /// How many events were written.
    pub(crate) written: u64,
    /// How many events could not be written, because a line would be too long or the run is damaged.
    pub(crate) refused: u64,
}

/// A run of the source.
enum RunWriter {
    /// Its transcript is open for writing.
    Open {
        recorder: RunRecorder,
        /// The last position that is already in the transcript.
        known: Option<Position>,
        /// The run id of the session, if another source already has that run.
        session: Option<RunId>,
        /// The number of its last draft.
        used: u64,
    },
    /// Derive it again.
    Rewrite { run: Box<RunRewrite>, session: Option<RunId>, used: u64 },
    /// Its transcript must not be written to.
    Refused,
}

impl SourceRuns {
    pub(crate) fn new(
        journal: Journal,
        source: SourceId,
        level: Level,
        older: OlderRuns,
        known: KnownRuns,
    ) -> Self {
        Self {
            journal,
            source,
            level,
            older,
            known,
            is_older: false,
            open: HashMap::new(),
            drafts: 0,
            order: Vec::new(),
            failed: None,
            entries: None,
            claims: Arc::default(),
            has_refused: false,
            started: None,
            begun: 0,
            mended: 0,
            written: 0,
            refused: 0,
        }
    }

    /// Returns the store that they are written to.
    pub(crate) fn store(&self) -> &Store {
        self.journal.store()
    }

    /// Returns the error after which nothing more is written, if there was one.
    pub(crate) fn take_failure(&mut self) -> Option<JournalError> {
        self.failed.take()
    }

    /// Returns how many files are open.
    pub(crate) fn open_files(&self) -> usize {
        let files = |run: &RunWriter| match run {
            RunWriter::Rewrite { run, .. } if !run.is_open() => 1,
            RunWriter::Open { .. } | RunWriter::Rewrite { .. } | RunWriter::Refused => FILES_PER_RUN,
        };
        self.open.values().map(files).sum()
    }

    /// Returns how many runs must not be written to.
    pub(crate) fn count_refused(&self) -> u64 {
        self.open.values().filter(|run| matches!(run, RunWriter::Refused)).count() as u64
    }

    /// Returns the run ids, the main run first.
    pub(crate) fn names(&self) -> Vec<String> {
        self.order.iter().map(ToString::to_string).collect()
    }

    /// Syncs, seals and closes all runs.
    pub(crate) fn close(&mut self) -> Result<(), JournalError> {
        let mut outcome = Ok(());
        for (_, run) in self.open.drain() {
            match run {
                RunWriter::Open { recorder, .. } => outcome = outcome.and(recorder.close()),
                // A new transcript that was not put in place is dropped.
                RunWriter::Rewrite { .. } | RunWriter::Refused => {}
            }
        }
        outcome
    }

    /// Writes all events, and adds the files that have to be synced.
    pub(crate) fn write_out(&mut self, set: &mut SyncSet) -> Result<(), JournalError> {
        self.recorders().try_for_each(|recorder| recorder.write_out(set))
    }

    /// Seals what was written and synced, and adds the files that have to be synced.
    pub(crate) fn seal(&mut self, set: &mut SyncSet) -> Result<(), JournalError> {
        self.recorders().try_for_each(|recorder| recorder.seal(set))
    }

    /// Refuses everything after a sync that failed.
    pub(crate) fn sync_failed(&mut self, error: impl Fn() -> io::Error) {
        self.recorders().for_each(|recorder| recorder.sync_failed(error()));
    }

    /// Returns the open runs in the order of their names.
    fn recorders(&mut self) -> impl Iterator<Item = &mut RunRecorder> {
        let open = self.open.iter_mut().filter_map(|(name, run)| match run {
            RunWriter::Open { recorder, .. } => Some((*name, recorder)),
            RunWriter::Rewrite { .. } | RunWriter::Refused => None,
        });
        let mut open: Vec<(RunId, &mut RunRecorder)> = open.collect();
        open.sort_unstable_by_key(|(name, _)| *name);
        open.into_iter().map(|(_, recorder)| recorder)
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
        let written = match self.open.get_mut(&name) {
            Some(RunWriter::Open { recorder, known, session, used }) => {
                *used = self.drafts;
                if let Some(last) = *known {
                    if position_of(draft.field("evidence")).is_some_and(|position| position <= last) {
                        return Ok(());
                    }
                    *known = None;
                }
                let written = recorder.append(named_after(draft, *session));
                if matches!(written, Err(JournalError::TooLong { .. })) {
                    recorder.note_dropped(1, TOO_LONG)?;
                }
                written
            }
            Some(RunWriter::Rewrite { run, session, used }) => {
                *used = self.drafts;
                let written = run.append(named_after(draft, *session));
                if matches!(written, Err(JournalError::TooLong { .. })) {
                    run.note_dropped(TOO_LONG)?;
                }
                written
            }
            Some(RunWriter::Refused) | None => {
                self.refused += 1;
                return Ok(());
            }
        };
        match written {
            Ok(()) => self.written += 1,
            Err(JournalError::TooLong { .. }) => self.refused += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Closes the run with the oldest last draft if many are open.
    fn make_room(&mut self) -> Result<(), JournalError> {
        let used = |run: &RunWriter| match run {
            RunWriter::Open { used, .. } => Some(*used),
            RunWriter::Rewrite { run, used, .. } => run.is_open().then_some(*used),
            RunWriter::Refused => None,
        };
        let open = || self.open.iter().filter_map(|(name, run)| Some((used(run)?, *name)));
        let oldest = if open().count() < OPEN_MAX { None } else { open().min() };
        let Some((_, name)) = oldest else { return Ok(()) };
        match self.open.get_mut(&name) {
            Some(RunWriter::Rewrite { run, .. }) => run.suspend(),
            Some(RunWriter::Open { .. }) => match self.open.remove(&name) {
                Some(RunWriter::Open { recorder, .. }) => recorder.close(),
                Some(RunWriter::Rewrite { .. } | RunWriter::Refused) | None => Ok(()),
            },
            Some(RunWriter::Refused) | None => Ok(()),
        }
    }

    /// Replaces the old transcripts by the new ones; returns how many runs of an older adapter were replaced, and how
    /// many events of others were carried over.
    pub(crate) fn put_in_place(&mut self, adapter: &str) -> Result<(u64, u64), JournalError> {
        let (mut runs, mut carried) = (0, 0);
        let anew =
            |(name, run): (&RunId, &RunWriter)| matches!(run, RunWriter::Rewrite { .. }).then_some(*name);
        let mut names: Vec<RunId> = self.open.iter().filter_map(anew).collect();
        names.sort_unstable();
        for name in names {
            if let Some(RunWriter::Rewrite { run, .. }) = self.open.remove(&name) {
                let (id, flaw) = (run.id, run.flaw.clone());
                carried += run.put_in_place(adapter)?;
                match flaw {
                    None => runs += 1,
                    Some(Flaw::Damaged(_)) => self.mended += 1,
                    Some(Flaw::Missing) => {
                        tracing::warn!(run = %id, "the transcript was missing, and was derived again from its evidence");
                        self.begun += 1;
                    }
                }
            }
        }
        Ok((runs, carried))
    }

    /// Opens a run, or another run in its place if a different source already has it.
    fn open(&mut self, name: RunId) -> Result<RunWriter, JournalError> {
        let other = other_run(self.source, name);
        let (run, session, head) = match self.head_of(name)? {
            // Also if the other source's transcript is missing.
            _ if self.known.named.contains(&other) => (other, Some(name), self.head_of(other)?),
            Some(head) if head.source != Some(self.source) => (other, Some(name), self.head_of(other)?),
            _ if !self.claims.claim(name, self.source) => (other, Some(name), self.head_of(other)?),
            head => (name, None, head),
        };
        let age = head.as_ref().map_or(AdapterAge::Unknown, age_of);
        if self.known.flawed.contains(&run)
            && age != AdapterAge::Newer
            && let Some(opened) = self.open_flawed(run, session, head.as_ref())?
        {
            return Ok(opened);
        }
        let gains_directory = self.known.has_directory && head.as_ref().is_some_and(lacks_directory);
        match age {
            AdapterAge::Current | AdapterAge::Unknown if !gains_directory => {}
            AdapterAge::Current | AdapterAge::Unknown | AdapterAge::Older => {
                self.is_older = true;
                return self.open_older(run, session, head);
            }
            AdapterAge::Newer => {
                tracing::error!(%run, "a newer `steno` derived this transcript; nothing is added to it");
                self.has_refused = true;
                return Ok(RunWriter::Refused);
            }
        }
        self.open_current(run, session)
    }

    fn open_current(&mut self, run: RunId, session: Option<RunId>) -> Result<RunWriter, JournalError> {
        let recorder = match RunRecorder::open(&self.journal, run, self.level) {
            Ok(recorder) => recorder,
            // There are seals for events that are gone.
            Err(JournalError::SealBroken { .. }) if !self.store().has(run)? => {
                self.name(run);
                self.is_older = true;
                self.has_refused = self.older != OlderRuns::Report;
                return Ok(RunWriter::Refused);
            }
            Err(error @ (JournalError::Damaged { .. } | JournalError::SealBroken { .. })) => {
                match self.begin_anew(run, &error)? {
                    Some(recorder) => recorder,
                    None => return Ok(RunWriter::Refused),
                }
            }
            Err(error) => return Err(error),
        };
        self.name(run);
        let known = if recorder.seq_last().is_some() { self.last_position(run)? } else { None };
        let is_new = recorder.seq_last().is_none();
        self.begun += u64::from(is_new);
        if is_new && self.known.named.contains(&run) {
            tracing::warn!(%run, "the transcript was missing, and is derived again from its evidence");
        }
        Ok(RunWriter::Open { recorder, known, session, used: self.drafts })
    }

    fn name(&mut self, run: RunId) {
        if !self.order.contains(&run) {
            self.order.push(run);
        }
    }

    /// Opens a run that an older adapter derived, to derive it again if allowed.
    fn open_older(
        &mut self,
        run: RunId,
        session: Option<RunId>,
        head: Option<RunHead>,
    ) -> Result<RunWriter, JournalError> {
        self.name(run);
        match self.older {
            OlderRuns::Rewrite => {}
            OlderRuns::Report => return Ok(RunWriter::Refused),
            OlderRuns::Refuse => {
                self.has_refused = true;
                return Ok(RunWriter::Refused);
            }
        }
        let from = head.and_then(|head| head.adapter).unwrap_or_default();
        match self.anew(run, session, RunRewrite::begin(&self.journal, run, self.source, from)) {
            Ok(Some(opened)) => Ok(opened),
            Ok(None) => self.open_current(run, session),
            Err(error @ (JournalError::Damaged { .. } | JournalError::SealBroken { .. })) => {
                tracing::error!(%run, %error, "a transcript is damaged, and is not derived again");
                self.has_refused = true;
                Ok(RunWriter::Refused)
            }
            Err(error) => Err(error),
        }
    }

    /// Begins the new transcript of a run whose transcript is missing or damaged; `None` if it is intact by now.
    fn open_flawed(
        &mut self,
        run: RunId,
        session: Option<RunId>,
        head: Option<&RunHead>,
    ) -> Result<Option<RunWriter>, JournalError> {
        self.name(run);
        let from = head.and_then(|head| head.adapter.clone()).unwrap_or_default();
        self.anew(run, session, RunRewrite::begin_flawed(&self.journal, run, self.source, from))
    }

    /// Takes a run with a new transcript. If events of others cannot be carried over, the run stays as it is.
    fn anew(
        &mut self,
        run: RunId,
        session: Option<RunId>,
        begun: Result<Option<RunRewrite>, RewriteError>,
    ) -> Result<Option<RunWriter>, JournalError> {
        match begun {
            Ok(anew) => {
                Ok(anew.map(|anew| RunWriter::Rewrite { run: Box::new(anew), session, used: self.drafts }))
            }
            Err(RewriteError::CannotCarry { seq, why }) => {
                tracing::error!(%run, seq, %why, "an event of another program cannot be recorded again; its run is left unchanged");
                self.has_refused = true;
                Ok(Some(RunWriter::Refused))
            }
            Err(RewriteError::Journal(error)) => Err(error),
        }
    }

    /// Returns the position of the last event of the source in a run. Events of others may follow it.
    fn last_position(&self, run: RunId) -> Result<Option<Position>, JournalError> {
        let store = self.journal.store();
        let last = run_ends(store, run)?.events.and_then(|(_, last)| position_in(&last, self.source));
        if last.is_some() {
            return Ok(last);
        }
        let mut reader = Reader::open(store, run)?.until_now()?;
        let mut last = None;
        while let Some(recorded) = reader.read_next()? {
            last = position_in(&recorded.event, self.source).or(last);
        }
        Ok(last)
    }

    /// Begins a new transcript for a damaged one that has no seals: a power cut during an import can leave holes, and
    /// the evidence has everything. The old file is kept aside.
    fn begin_anew(&mut self, run: RunId, error: &JournalError) -> Result<Option<RunRecorder>, JournalError> {
        let store = self.journal.store();
        let is_damaged = matches!(error, JournalError::Damaged { .. });
        let aside = if is_damaged { store.set_aside_unsealed(run, jiff::Timestamp::now())? } else { None };
        let Some(aside) = aside else {
            tracing::error!(%run, %error, "cannot continue a transcript");
            self.has_refused = true;
            return Ok(None);
        };
        tracing::warn!(%run, %error, "a transcript is written again from its evidence; its old content is in `{aside}`");
        RunRecorder::open(&self.journal, run, self.level).map(Some)
    }

    /// Returns the head of a run; `None` if the run does not exist. An unreadable run is assumed to be ours: opening it
    /// reports the damage.
    fn head_of(&self, run: RunId) -> Result<Option<RunHead>, JournalError> {
        let store = self.journal.store();
        if store.size(run)?.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let ours = || RunHead { source: Some(self.source), ..RunHead::unknown(run) };
        Ok(Some(read_head(store, run)?.unwrap_or_else(ours)))
    }
}

impl Sink for SourceRuns {
    fn draft(&mut self, run: RunId, draft: Draft) {
        // After a failure the source is reopened and continues from what was written.
        if self.failed.is_none()
            && let Err(error) = self.record(run, draft)
        {
            self.failed = Some(error);
        }
    }

    fn wants_entries(&self) -> bool {
        self.entries.as_ref().is_some_and(Sink::wants_entries)
    }

    fn entry(&mut self, entry: AdapterEntry<'_>) {
        if let Some(entries) = &mut self.entries {
            entries.entry(entry);
        }
    }
}

fn position_of(evidence: Option<&RawJson>) -> Option<Position> {
    evidence.and_then(Evidence::read).map(|evidence| evidence.position)
}
