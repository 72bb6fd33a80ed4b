//! A run, read once for its records and for the proofs of its lines.

use steno_journal::{Noted, Reader, Store, read_notes};
use steno_model::RunId;
use steno_model::receipt::{MissingRange, Receipt};
use steno_model::records::TurnRecord;
use steno_views::receipt::{Missing, Origin, Prover, Source, build};
use steno_views::records::{Payloads, Records, RecordsBuilder};

use super::Error;

/// What is wanted of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Whether receipts have proofs of their lines.
    pub has_integrity: bool,
    /// How many lines are read, from the first on; all if it is not said.
    pub lines_max: Option<u64>,
}

/// A run that was read.
pub struct ReadRun {
    run: RunId,
    /// Its records.
    pub records: Records,
    prover: Option<Prover>,
    missing: Vec<MissingRange>,
}

impl ReadRun {
    /// Reads a run of the store, with the notes beside it.
    ///
    /// # Errors
    /// What the journal says.
    pub fn of_store(store: &Store, run: RunId, wanted: Wanted) -> Result<Self, Error> {
        let mut reader = Reader::open(store, run)?.until_now()?;
        let mut read = Self::of_reader(&mut reader, Some(run), wanted)?;
        let noted = |note: steno_journal::Note| match note.what {
            Noted::Refused { count, seq_last, .. } => Some(noted(seq_last, count, "refused")),
            Noted::Dropped { count, seq_last, .. } => Some(noted(seq_last, count, "dropped")),
            // For these nothing is missing in the run.
            Noted::Recovered { .. } | Noted::Lagged { .. } | Noted::Vanished { .. } => None,
        };
        read.missing.extend(read_notes(&**store.disk(), run)?.into_iter().filter_map(noted));
        Ok(read)
    }

    /// Reads a run from its lines alone; `run` is taken from the first one if it is not known.
    ///
    /// # Errors
    /// What the journal says.
    pub fn of_reader(reader: &mut Reader, run: Option<RunId>, wanted: Wanted) -> Result<Self, Error> {
        let mut lines = Lines { run, builder: None, prover: Prover::default() };
        let mut count = 0;
        while wanted.lines_max.is_none_or(|max| count < max)
            && let Some(recorded) = reader.read_next()?
        {
            count += 1;
            if wanted.has_integrity {
                lines.prover.push(&recorded.line);
            }
            lines.push(&recorded.event);
        }
        let run = lines.run.ok_or_else(|| Error::NoReceipt("there are no events".to_owned()))?;
        let builder = lines.builder.unwrap_or_else(|| RecordsBuilder::new(run, Payloads::Counted));
        let prover = wanted.has_integrity.then_some(lines.prover);
        Ok(Self { run, records: builder.finish(), prover, missing: Vec::new() })
    }

    /// Makes a run of single lines, of which nobody knows what lies between them.
    pub(super) fn of_events(run: RunId, events: &[steno_model::ExchangeEvent]) -> Self {
        let mut builder = RecordsBuilder::new(run, Payloads::Counted);
        for event in events {
            builder.push(event);
        }
        Self { run, records: builder.finish(), prover: None, missing: Vec::new() }
    }

    /// Replaces what is missing by what somebody says.
    pub(super) fn with_missing(mut self, missing: Vec<MissingRange>) -> Self {
        self.missing = missing;
        self
    }

    /// Finds the turn that a name means.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn turn(&self, name: &str) -> Result<&TurnRecord, Error> {
        let thread = self.records.thread.id.clone();
        let ids = |turns: &[&TurnRecord]| turns.iter().map(|turn| turn.id.clone()).collect();
        match self.records.turns_named(name)[..] {
            [turn] => Ok(turn),
            [] => {
                let turns = ids(&self.records.turns.iter().collect::<Vec<_>>());
                Err(Error::NoSuchTurn { thread, turn: name.to_owned(), turns })
            }
            ref several => Err(Error::Ambiguous { thread, turn: name.to_owned(), turns: ids(several) }),
        }
    }

    /// Builds the receipt of a turn.
    ///
    /// # Errors
    /// When there is no such turn.
    pub fn receipt(self, turn: &str) -> Result<Receipt, Error> {
        let turn = self.turn(turn)?;
        let missing = Missing::Known(self.missing.clone());
        let Records { thread, items, events, .. } = &self.records;
        let mut receipt = build(&Source {
            thread,
            turn,
            items,
            events,
            origin: Origin::Run(self.records.carries(&turn.id)),
            missing,
        })?;
        let seqs = self.records.lines_of(&turn.id);
        receipt.integrity = self.prover.map(|prover| prover.prove(self.run, &seqs));
        Ok(receipt)
    }
}

fn noted(after_seq: u64, count: u64, what: &str) -> MissingRange {
    MissingRange::Noted { after_seq, count, what: what.to_owned() }
}

/// What is gathered line by line.
struct Lines {
    run: Option<RunId>,
    builder: Option<RecordsBuilder>,
    prover: Prover,
}

impl Lines {
    fn push(&mut self, event: &steno_model::ExchangeEvent) {
        let run = *self.run.get_or_insert(event.run_id);
        self.builder.get_or_insert_with(|| RecordsBuilder::new(run, Payloads::Counted)).push(event);
    }
}
