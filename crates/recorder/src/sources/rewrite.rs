//! One run that is derived again: the new transcript gets the events of its source, and the events that others have
//! recorded.

use std::collections::VecDeque;

use steno_adapters::AdapterAge;
use steno_journal::{AdapterChange, Error as JournalError, Flaw, Journal, Reader, Rewrite, Store};
use steno_model::{Draft, Evidence, ExchangeEvent, Position, RunId};
use steno_vault::SourceId;

use super::run_head::{age_of, lacks_directory, read_head};

/// A run of a source while it is derived again.
pub(crate) struct RunRewrite {
    /// The run.
    pub(crate) id: RunId,
    rewrite: Rewrite,
    /// The adapter that it was derived with before.
    from: String,
    /// The flaw of its transcript, if that is the reason.
    pub(crate) flaw: Option<Flaw>,
    /// Events of others that are not yet written, each with the record of the source that it follows.
    others: VecDeque<(Option<Position>, Draft)>,
    carried: u64,
}

/// Why a run cannot be derived again.
#[derive(Debug)]
pub(crate) enum RewriteError {
    /// An error of the journal.
    Journal(JournalError),
    /// An event that another program recorded cannot be recorded again.
    CannotCarry { seq: u64, why: steno_model::Error },
}

impl From<JournalError> for RewriteError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// Collects the events of a run that were not made from its source.
struct ForeignEvents {
    source: SourceId,
    last: Option<Position>,
    events: VecDeque<(Option<Position>, Draft)>,
    failed: Option<RewriteError>,
}

impl ForeignEvents {
    fn of(source: SourceId) -> Self {
        Self { source, last: None, events: VecDeque::new(), failed: None }
    }

    /// Takes the next event of the run; returns whether to continue.
    fn take(&mut self, event: ExchangeEvent) -> bool {
        if let Some(position) = position_in(&event, self.source) {
            self.last = Some(position);
            return true;
        }
        let seq = event.seq.get();
        match Draft::of_event(event) {
            Ok(draft) => self.events.push_back((self.last, draft)),
            Err(why) => self.failed = Some(RewriteError::CannotCarry { seq, why }),
        }
        self.failed.is_none()
    }

    fn finish(self) -> Result<VecDeque<(Option<Position>, Draft)>, RewriteError> {
        self.failed.map_or(Ok(self.events), Err)
    }
}

impl RunRewrite {
    /// Begins the new transcript of a run; `None` if opening it put a complete one in place.
    pub(crate) fn begin(
        journal: &Journal,
        run: RunId,
        source: SourceId,
        from: String,
    ) -> Result<Option<Self>, RewriteError> {
        let rewrite = journal.rewrite(run)?;
        let head = read_head(journal.store(), run)?;
        if head.is_some_and(|head| age_of(&head) == AdapterAge::Current && !lacks_directory(&head)) {
            return Ok(None);
        }
        let mut others = ForeignEvents::of(source);
        each_event(journal.store(), run, |event| others.take(event))?;
        Ok(Some(Self { id: run, rewrite, from, flaw: None, others: others.finish()?, carried: 0 }))
    }

    /// Begins the new transcript of a run whose transcript is damaged or missing; `None` if it is intact. Readable
    /// events of others are carried over.
    pub(crate) fn begin_flawed(
        journal: &Journal,
        run: RunId,
        source: SourceId,
        from: String,
    ) -> Result<Option<Self>, RewriteError> {
        let Some((rewrite, flaw)) = journal.rewrite_flawed(run)? else { return Ok(None) };
        let mut others = ForeignEvents::of(source);
        journal.store().salvage(run, &mut |event| {
            others.take(event);
        })?;
        Ok(Some(Self { id: run, rewrite, from, flaw: Some(flaw), others: others.finish()?, carried: 0 }))
    }

    /// Writes an event of the source, after the events of others that came before its record.
    pub(crate) fn append(&mut self, draft: Draft) -> Result<(), JournalError> {
        let evidence = draft.field("evidence").and_then(Evidence::read);
        if let Some(evidence) = evidence {
            let record = |position: Position| (position.generation, position.offset);
            let here = record(evidence.position);
            while let Some((last, _)) = self.others.front()
                && last.is_none_or(|last| record(last) < here)
            {
                self.carry_one()?;
            }
        }
        self.rewrite.append(draft).map(|_| ())
    }

    fn carry_one(&mut self) -> Result<(), JournalError> {
        let Some((_, draft)) = self.others.pop_front() else { return Ok(()) };
        self.rewrite.append(draft)?;
        self.carried += 1;
        Ok(())
    }

    /// Records a note that an event was too long.
    pub(crate) fn note_dropped(&mut self, cause: &str) -> Result<(), JournalError> {
        self.rewrite.note_dropped(1, cause)
    }

    /// Tells whether its file is open.
    pub(crate) fn is_open(&self) -> bool {
        self.rewrite.is_open()
    }

    /// Closes its file until the next event.
    pub(crate) fn suspend(&mut self) -> Result<(), JournalError> {
        self.rewrite.suspend()
    }

    /// Puts the new transcript in place; returns how many events of others it carries.
    pub(crate) fn put_in_place(mut self, to: &str) -> Result<u64, JournalError> {
        while !self.others.is_empty() {
            self.carry_one()?;
        }
        let carried = self.carried;
        self.rewrite.put_in_place(AdapterChange { from: self.from, to: to.to_owned(), carried })?;
        Ok(carried)
    }
}

/// Tells whether a run has events that were not made from its source.
pub(crate) fn has_others(store: &Store, run: RunId, source: SourceId) -> Result<bool, JournalError> {
    let mut has_other = false;
    each_event(store, run, |event| {
        has_other = position_in(&event, source).is_none();
        !has_other
    })?;
    Ok(has_other)
}

/// Passes the events of a run to `take` until it returns false.
fn each_event(
    store: &Store,
    run: RunId,
    mut take: impl FnMut(ExchangeEvent) -> bool,
) -> Result<(), JournalError> {
    let mut reader = Reader::open(store, run)?.until_now()?;
    while let Some(recorded) = reader.read_next()? {
        if !take(recorded.event) {
            break;
        }
    }
    Ok(())
}

/// Returns the record of the source that an event was made from; `None` if it was not made from this source.
pub(crate) fn position_in(event: &ExchangeEvent, source: SourceId) -> Option<Position> {
    let evidence = event.extra.get("evidence").and_then(Evidence::read)?;
    (evidence.source.to_text() == source.to_string()).then_some(evidence.position)
}
