//! A session, read once for its records and for the proofs of its lines.

use std::collections::HashMap;
use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{Error as JournalError, Noted, Reader, Store, read_notes, run_ends};
use steno_model::receipt::{Integrities, MissingRange, Receipt};
use steno_model::records::TurnRecord;
use steno_model::{ExchangeEvent, RunId};
use steno_session::session_run_id;
use steno_session::{
    At, Content, RunEvents, RunNumber, Session, SessionBuilder, merge_in_order, merged_order,
};
use steno_views::receipt::{Missing, Origin, Prover, Source, TurnFacts, build};
use steno_views::records::Records;

use super::Error;

/// What is wanted of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Whether receipts have proofs of their lines.
    pub has_integrity: bool,
    /// The runs that are read, in the order of the session, and how many of their lines; all that there are if it is not
    /// said.
    pub runs: Option<Vec<(RunId, u64)>>,
    /// Whether receipts are those of an older program, which named no runs.
    pub is_unnamed: bool,
}

/// A session that was read.
pub struct ReadSession {
    /// Its records.
    pub records: Records,
    provers: Vec<(RunId, Prover)>,
    missing: HashMap<RunId, Vec<MissingRange>>,
    wanted: Wanted,
}

/// A run as it is read.
struct ReadRun {
    run: RunId,
    events: Vec<ExchangeEvent>,
    prover: Prover,
}

impl ReadSession {
    /// Reads a session of the store, with the notes beside its runs. A run of it names it too.
    ///
    /// # Errors
    /// What the journal says.
    pub fn of_store(store: &Store, id: RunId, wanted: Wanted) -> Result<Self, Error> {
        let (session, runs) = match &wanted.runs {
            Some(runs) => (id, runs.clone()),
            None => {
                let (session, runs) = runs_of(store, id)?;
                (session, runs.into_iter().map(|run| (run, u64::MAX)).collect())
            }
        };
        let mut missing = HashMap::new();
        for (run, _) in &runs {
            let notes = read_notes(&**store.disk(), *run)?;
            missing.insert(*run, notes.into_iter().filter_map(noted).collect());
        }
        let open = |run: RunId| -> Result<Reader, Error> { Ok(Reader::open(store, run)?.until_now()?) };
        let read = match runs[..] {
            [(run, lines_max)] => Self::of_one(&mut open(run)?, Some(session), lines_max, wanted)?,
            _ => {
                let mut read = Vec::new();
                for (run, lines_max) in &runs {
                    read.push(ReadRun::read(&mut open(*run)?, *lines_max, wanted.has_integrity)?);
                }
                Self::of_several(session, read, wanted)
            }
        };
        Ok(Self { missing, ..read })
    }

    /// Reads a transcript of a run from before it was derived anew, with the notes beside it.
    ///
    /// # Errors
    /// What the journal says.
    pub fn of_superseded(store: &Store, run: RunId, kept: &StorePath, wanted: Wanted) -> Result<Self, Error> {
        let opened = store.disk().open_read(kept).map_err(|source| JournalError::Io {
            doing: "open",
            path: kept.clone(),
            source: Arc::new(source),
        })?;
        let file = opened.ok_or(JournalError::NoSuchRun { run })?;
        let lines_max = wanted.runs.iter().flatten().find(|(known, _)| *known == run);
        let lines_max = lines_max.map_or(u64::MAX, |(_, lines)| *lines);
        let mut reader = Reader::of_file(file, kept.clone(), Some(run));
        let read = Self::of_one(&mut reader, Some(run), lines_max, wanted)?;
        let notes = store.beside_superseded(run, kept)?.1;
        let missing = HashMap::from([(run, notes.into_iter().filter_map(noted).collect())]);
        Ok(Self { missing, ..read })
    }

    /// Reads a session from transcript files alone.
    ///
    /// # Errors
    /// What the journal says.
    pub fn of_readers(mut readers: Vec<Reader>, wanted: Wanted) -> Result<Self, Error> {
        let lines_max = |run: Option<RunId>| {
            let runs = wanted.runs.as_deref().unwrap_or_default();
            let of_run = runs.iter().find(|(known, _)| run.is_none_or(|run| run == *known));
            of_run.map_or(u64::MAX, |(_, lines)| *lines)
        };
        if let [reader] = &mut readers[..] {
            let lines_max = lines_max(None);
            return Self::of_one(reader, None, lines_max, wanted);
        }
        let mut read = Vec::new();
        for mut reader in readers {
            let mut run = ReadRun::read(&mut reader, u64::MAX, wanted.has_integrity)?;
            let lines = usize::try_from(lines_max(Some(run.run))).unwrap_or(usize::MAX);
            run.cut(lines);
            read.push(run);
        }
        let first = read.first().ok_or_else(no_events)?;
        let named = first.events.first().and_then(session_run_id);
        let session = named.unwrap_or(first.run);
        Ok(Self::of_several(session, read, wanted))
    }

    /// Reads a session of one run as it streams by.
    fn of_one(
        reader: &mut Reader,
        session: Option<RunId>,
        lines_max: u64,
        wanted: Wanted,
    ) -> Result<Self, Error> {
        let (mut builder, mut prover, mut count) = (None::<(RunId, SessionBuilder)>, Prover::default(), 0);
        while count < lines_max
            && let Some(recorded) = reader.read_next()?
        {
            count += 1;
            if wanted.has_integrity {
                prover.push(&recorded.line);
            }
            let run = recorded.event.run_id;
            let new = || (run, SessionBuilder::new(run, Content::WithoutOutputs));
            builder.get_or_insert_with(new).1.push(&recorded.event);
        }
        let (run, builder) = builder.ok_or_else(no_events)?;
        let folded = builder.finish();
        let named = folded.runs.first().and_then(|run| run.session);
        let id = session.or(named).unwrap_or(run);
        let records = Records::of(Session { id, ..folded });
        Ok(Self { records, provers: vec![(run, prover)], missing: HashMap::new(), wanted })
    }

    fn of_several(session: RunId, read: Vec<ReadRun>, wanted: Wanted) -> Self {
        let mut provers = Vec::new();
        let mut runs = Vec::new();
        for run in read {
            provers.push((run.run, run.prover));
            runs.push(RunEvents { id: run.run, events: run.events });
        }
        let runs = match &wanted.runs {
            Some(order) => {
                runs.sort_by_key(|run| order.iter().position(|(known, _)| *known == run.id));
                runs
            }
            None => merged_order(runs),
        };
        let records = Records::of(merge_in_order(session, &runs, Content::WithoutOutputs));
        Self { records, provers, missing: HashMap::new(), wanted }
    }

    /// Makes a session of single lines, of which nobody knows what lies between them.
    pub(super) fn of_events(session: RunId, events: Vec<ExchangeEvent>, wanted: Wanted) -> Self {
        let mut runs: Vec<ReadRun> = Vec::new();
        for event in events {
            match runs.iter_mut().find(|run| run.run == event.run_id) {
                Some(run) => run.events.push(event),
                None => {
                    let (run, prover) = (event.run_id, Prover::default());
                    runs.push(ReadRun { run, events: vec![event], prover });
                }
            }
        }
        Self::of_several(session, runs, wanted)
    }

    /// Replaces what is missing by what somebody says.
    pub(super) fn with_missing(mut self, missing: &[MissingRange]) -> Self {
        for run in &self.records.session.runs {
            self.missing.insert(run.id, missing.to_vec());
        }
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

    /// Returns the lines that the receipt of a turn is made of, run by run in the order of the session.
    ///
    /// # Errors
    /// When there is no such turn.
    pub fn lines_of(&self, turn: &str) -> Result<Vec<(RunId, Vec<u64>)>, Error> {
        let record = self.turn(turn)?;
        let lines = self.records.turn_of(record).map(|(_, turn)| self.records.lines_of(turn));
        let lines: Vec<At> = lines.unwrap_or_default();
        let of_run = |(number, run): (usize, &steno_session::RunHead)| {
            let own = lines.iter().filter(|at| at.run == RunNumber(number)).map(|at| at.seq.get());
            (run.id, own.collect())
        };
        Ok(self.records.session.runs.iter().enumerate().map(of_run).collect())
    }

    /// Builds the receipt of a turn.
    ///
    /// # Errors
    /// When there is no such turn.
    pub fn receipt(mut self, turn: &str) -> Result<Receipt, Error> {
        let lines = self.lines_of(turn)?;
        let record = self.turn(turn)?;
        let no_turn = || Error::NoReceipt("its turn is not there".to_owned());
        let (id, known) = self.records.turn_of(record).ok_or_else(no_turn)?;
        let owner = self.records.session.run_of(known.at);
        let missing = self.missing.get(&owner).cloned().unwrap_or_default();
        let carries = self.records.carries(known);
        let mut facts = TurnFacts::of_session(&self.records.session, id);
        if self.wanted.is_unnamed {
            facts.runs = None;
        }
        let mut receipt = build(&Source {
            thread: &self.records.thread,
            turn: record,
            items: &self.records.items,
            facts,
            origin: Origin::Session(carries.as_deref()),
            missing: Missing::Known(missing),
        })?;
        if self.wanted.has_integrity {
            let provers = std::mem::take(&mut self.provers);
            let mut provers: HashMap<RunId, Prover> = provers.into_iter().collect();
            let proofs = lines.iter().filter_map(|(run, seqs)| Some(provers.remove(run)?.prove(*run, seqs)));
            let proofs: Vec<_> = proofs.collect();
            receipt.integrity = match (self.wanted.is_unnamed, proofs) {
                (true, mut one) if one.len() == 1 => one.pop().map(Integrities::One),
                (_, several) => Some(Integrities::Several(several)),
            };
        }
        Ok(receipt)
    }
}

impl ReadRun {
    fn read(reader: &mut Reader, lines_max: u64, has_integrity: bool) -> Result<Self, Error> {
        let (mut events, mut prover, mut count) = (Vec::new(), Prover::default(), 0);
        while count < lines_max
            && let Some(recorded) = reader.read_next()?
        {
            count += 1;
            if has_integrity {
                prover.push(&recorded.line);
            }
            events.push(recorded.event);
        }
        let run = events.first().map(|event: &ExchangeEvent| event.run_id).ok_or_else(no_events)?;
        Ok(Self { run, events, prover })
    }

    fn cut(&mut self, lines: usize) {
        self.events.truncate(lines);
        self.prover.cut(lines);
    }
}

fn no_events() -> Error {
    Error::NoReceipt("there are no events".to_owned())
}

/// Returns the session that an id names, and its runs.
fn runs_of(store: &Store, id: RunId) -> Result<(RunId, Vec<RunId>), Error> {
    let session_of = |run: RunId| match run_ends(store, run) {
        Ok(ends) => Ok(ends.events.and_then(|(first, _)| session_run_id(&first))),
        Err(JournalError::Damaged { .. } | JournalError::NotRegular { .. } | JournalError::Shrunk { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    };
    let session = if store.has(id)? { session_of(id)?.unwrap_or(id) } else { id };
    let mut runs = Vec::new();
    for run in store.runs()? {
        if run == session || session_of(run)? == Some(session) {
            runs.push(run);
        }
    }
    if runs.is_empty() {
        return Err(Error::Journal(JournalError::NoSuchRun { run: id }));
    }
    Ok((session, runs))
}

/// Returns what a note says is missing; for some nothing is.
fn noted(note: steno_journal::Note) -> Option<MissingRange> {
    let (after_seq, count, what) = match note.what {
        Noted::Refused { count, seq_last, .. } => (seq_last, count, "refused"),
        Noted::Dropped { count, seq_last, .. } => (seq_last, count, "dropped"),
        Noted::Recovered { .. } | Noted::Lagged { .. } | Noted::Vanished { .. } | Noted::Rederived { .. } => {
            return None;
        }
    };
    Some(MissingRange::Noted { after_seq, count, what: what.to_owned() })
}
