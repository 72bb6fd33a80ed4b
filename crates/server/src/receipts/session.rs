//! A session that is read once, for its records and for the proofs of its lines.

use std::collections::HashMap;

use steno_disk::StorePath;
use steno_journal::{Error as JournalError, NoteKind, Reader, Store, read_notes};
use steno_library::Library;
use steno_model::receipt::{Integrities, MissingRange, Receipt};
use steno_model::records::TurnRecord;
use steno_model::{ExchangeEvent, RunId};
use steno_session::session_run_id;
use steno_session::{
    Content, EventPosition, RunEvents, RunNumber, Session, SessionBuilder, merge_by_ids, merged_order,
};
use steno_views::receipt::{MissingEvents, Prover, ReceiptInput, RecordOrigin, TurnFacts, build};
use steno_views::records::SessionRecords;

use super::Error;
use super::superseded::adapter_of;

/// Which parts of a session are read, and for which kind of receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether receipts have proofs of their lines.
    pub has_integrity: bool,
    /// The runs to read, in the order of the session, and how many of their lines; `None` for all.
    pub runs: Option<Vec<RunSelection>>,
    /// Whether the receipt is of an older version, which named no runs.
    pub is_unnamed: bool,
    /// The turn of the receipt, by either of its names: items of other turns are left out. `None` for all turns.
    pub turn: Option<String>,
}

/// A run to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSelection {
    /// Which run.
    pub id: RunId,
    /// How many of its lines to read.
    pub lines_max: u64,
    /// The adapter that made it, if known; a run may have several transcripts.
    pub adapter: Option<String>,
    /// The transcript to read instead of the current one: one from before the run was re-derived.
    pub superseded: Option<StorePath>,
}

impl RunSelection {
    /// Selects a number of lines of the current transcript.
    #[must_use]
    pub fn new(id: RunId, lines_max: u64) -> Self {
        Self { id, lines_max, adapter: None, superseded: None }
    }

    /// Opens it, and reads from its notes what is missing.
    fn open(&self, store: &Store) -> Result<(Reader, Vec<MissingRange>), Error> {
        let (reader, notes) = match &self.superseded {
            None => (Reader::open(store, self.id)?.until_now()?, read_notes(&**store.disk(), self.id)?),
            Some(path) => (store.open_superseded(self.id, path)?, store.beside_superseded(self.id, path)?.1),
        };
        Ok((reader, notes.iter().filter_map(missing_in_note).collect()))
    }
}

/// A session with its records and proofs.
pub struct ReceiptSession {
    /// Its records.
    pub records: SessionRecords,
    /// Its runs, if there are several.
    runs: Vec<RunEvents>,
    provers: Vec<(RunId, Prover)>,
    missing: HashMap<RunId, Vec<MissingRange>>,
    /// What is missing according to the receipt, where there are no notes.
    unplaced: Option<Vec<MissingRange>>,
    wanted: ReadOptions,
}

/// A run with the proofs of its lines.
struct ProvedRun {
    run: RunId,
    events: Vec<ExchangeEvent>,
    prover: Prover,
}

impl ReceiptSession {
    /// Reads a session of the store, with the notes of its runs. `id` may be that of one of its runs.
    ///
    /// # Errors
    /// What the journal says.
    pub fn of_store(store: &Store, id: RunId, wanted: ReadOptions) -> Result<Self, Error> {
        Self::of_library(&Library::new(Some(store.clone())), id, wanted)
    }

    /// Reads a session of a library; several sessions can share its catalog.
    ///
    /// # Errors
    /// What the journal says.
    pub fn of_library(library: &Library, id: RunId, wanted: ReadOptions) -> Result<Self, Error> {
        let store = library.store()?;
        let runs = match &wanted.runs {
            Some(runs) => runs.clone(),
            None => runs_of(library, id)?.into_iter().map(|run| RunSelection::new(run, u64::MAX)).collect(),
        };
        let mut missing = HashMap::new();
        let mut open = |run: &RunSelection| -> Result<Reader, Error> {
            let (reader, ranges) = run.open(store)?;
            missing.insert(run.id, ranges);
            Ok(reader)
        };
        let read = if let [run] = &runs[..] {
            Self::of_one(&mut open(run)?, run.lines_max, wanted)?
        } else {
            let mut read = Vec::new();
            for run in &runs {
                read.push(ProvedRun::read(&mut open(run)?, run.lines_max, wanted.has_integrity)?);
            }
            Self::of_several(read, wanted)?
        };
        Ok(Self { missing, ..read })
    }

    /// Reads a session from transcript files alone. Other runs than the selected ones are skipped.
    ///
    /// # Errors
    /// What the journal says, and when a selected run is missing.
    pub fn of_readers(mut readers: Vec<Reader>, wanted: ReadOptions) -> Result<Self, Error> {
        let named = wanted.runs.as_deref().filter(|_| !wanted.is_unnamed);
        if let [reader] = &mut readers[..]
            && named.is_none_or(|named| named.len() == 1)
        {
            let lines_max =
                wanted.runs.as_ref().and_then(|runs| runs.first()).map_or(u64::MAX, |run| run.lines_max);
            return Self::of_one(reader, lines_max, wanted);
        }
        let mut read = Vec::new();
        for mut reader in readers {
            let mut run = ProvedRun::read(&mut reader, u64::MAX, wanted.has_integrity)?;
            let known = named.map(|named| named.iter().find(|known| known.id == run.run));
            if let Some(known) = known.flatten() {
                run.cut(usize::try_from(known.lines_max).unwrap_or(usize::MAX));
            }
            let wanted = known.flatten().and_then(|known| known.adapter.as_deref());
            match read.iter_mut().find(|other: &&mut ProvedRun| other.run == run.run) {
                // Of several transcripts of a run, take the one by the adapter that the receipt names.
                Some(other) if run.adapter().as_deref() == wanted => *other = run,
                None if known.is_none_or(|known| known.is_some()) => read.push(run),
                Some(_) | None => {}
            }
        }
        let is_read = |run: RunId| read.iter().any(|read| read.run == run);
        if let Some(run) = named.into_iter().flatten().find(|run| !is_read(run.id)) {
            return Err(Error::NotGiven { run: run.id });
        }
        Self::of_several(read, wanted)
    }

    /// Reads a session of one run without keeping its events.
    fn of_one(reader: &mut Reader, lines_max: u64, wanted: ReadOptions) -> Result<Self, Error> {
        let (mut builder, mut prover) = (None::<SessionBuilder>, Prover::default());
        let mut named = None;
        let mut take = |line: &[u8], event: ExchangeEvent| {
            if wanted.has_integrity {
                prover.push(line);
            }
            let builder = builder.get_or_insert_with(|| {
                named = session_run_id(&event);
                SessionBuilder::new(event.run_id, Content::ForReceipts)
            });
            builder.push(&event);
        };
        let mut left = lines_max;
        while left > 0 && reader.read_with(&mut take)?.is_some() {
            left -= 1;
        }
        let folded = builder.ok_or_else(no_events)?.finish();
        let run = folded.id;
        let records = records_of(Session { id: named.unwrap_or(run), ..folded }, &wanted);
        let provers = vec![(run, prover)];
        Ok(Self { records, runs: Vec::new(), provers, missing: HashMap::new(), unplaced: None, wanted })
    }

    fn of_several(read: Vec<ProvedRun>, wanted: ReadOptions) -> Result<Self, Error> {
        let mut provers = Vec::new();
        let mut runs = Vec::new();
        for run in read {
            provers.push((run.run, run.prover));
            runs.push(RunEvents { id: run.run, events: run.events });
        }
        let runs = match &wanted.runs {
            Some(order) => {
                runs.sort_by_key(|run| order.iter().position(|known| known.id == run.id));
                runs
            }
            None => merged_order(runs),
        };
        Ok(Self { provers, ..Self::of_runs(runs, wanted)? })
    }

    /// Merges runs into one session, in their order.
    fn of_runs(runs: Vec<RunEvents>, wanted: ReadOptions) -> Result<Self, Error> {
        let session = session_of(&runs).ok_or_else(no_events)?;
        let records = records_of(merge_by_ids(session, &runs, Content::ForReceipts), &wanted);
        Ok(Self { records, runs, provers: Vec::new(), missing: HashMap::new(), unplaced: None, wanted })
    }

    /// Makes a session of single lines; the lines between them are unknown.
    pub(super) fn of_events(events: Vec<ExchangeEvent>, wanted: ReadOptions) -> Result<Self, Error> {
        let mut runs: Vec<ProvedRun> = Vec::new();
        for event in events {
            if let Some(run) = runs.iter_mut().find(|run| run.run == event.run_id) {
                run.events.push(event);
            } else {
                let (run, prover) = (event.run_id, Prover::default());
                runs.push(ProvedRun { run, events: vec![event], prover });
            }
        }
        Self::of_several(runs, wanted)
    }

    /// Sets what is missing according to the receipt.
    pub(super) fn with_missing(self, missing: Vec<MissingRange>) -> Self {
        Self { unplaced: Some(missing), ..self }
    }

    /// Finds a turn by its name.
    ///
    /// # Errors
    /// When there is none, or several.
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
        let lines = self.lines_needed(turn)?;
        if self.runs.len() < 2 || self.is_enough(turn, &lines)? {
            return Ok(lines);
        }
        let seqs = |run: &RunEvents| run.events.iter().map(|event| event.seq.get()).collect();
        Ok(self.runs.iter().map(|run| (run.id, seqs(run))).collect())
    }

    /// Tells whether these lines alone give the same receipt. A call id that is used twice may match another call when lines
    /// are missing.
    fn is_enough(&self, turn: &str, lines: &[(RunId, Vec<u64>)]) -> Result<bool, Error> {
        let part = |(run, (id, seqs)): (&RunEvents, &(RunId, Vec<u64>))| {
            let events = run.events.iter().filter(|event| seqs.contains(&event.seq.get()));
            RunEvents { id: *id, events: events.cloned().collect() }
        };
        let parts = self.runs.iter().zip(lines).map(part).collect();
        let name = self.turn(turn)?.id.clone();
        let alone = Self::of_runs(parts, self.wanted.clone())?;
        let receipt = |read: &Self| {
            let mut receipt = read.bare(&name, &HashMap::new())?;
            for run in receipt.source_event_lineage.runs.iter_mut().flatten() {
                run.tree_size = 0;
            }
            Ok::<Receipt, Error>(receipt)
        };
        let whole = receipt(self)?;
        let is_same = receipt(&alone).is_ok_and(|found| found == whole);
        Ok(is_same && alone.lines_needed(&name).is_ok_and(|found| found == lines))
    }

    /// Returns the lines that a turn is read from.
    pub(super) fn lines_needed(&self, turn: &str) -> Result<Vec<(RunId, Vec<u64>)>, Error> {
        let record = self.turn(turn)?;
        let lines = self.records.turn_of(record).map(|(_, turn)| self.records.lines_of(turn));
        let lines: Vec<EventPosition> = lines.unwrap_or_default();
        let of_run = |(number, run): (usize, &steno_session::SessionRun)| {
            let own = lines.iter().filter(|at| at.run == RunNumber(number)).map(|at| at.seq.get());
            (run.id(), own.collect())
        };
        Ok(self.records.session.runs.iter().enumerate().map(of_run).collect())
    }

    /// Returns the run that numbers the events of a turn.
    ///
    /// # Errors
    /// When there is no such turn.
    pub fn owner(&self, turn: &str) -> Result<Option<RunId>, Error> {
        let turn = self.records.turn_of(self.turn(turn)?);
        Ok(turn.map(|(_, turn)| self.records.session.run_of(turn.at)))
    }

    /// Builds the receipt of a turn.
    ///
    /// # Errors
    /// When there is no such turn.
    pub fn receipt(mut self, turn: &str) -> Result<Receipt, Error> {
        let owner = self.owner(turn)?;
        if let Some((missing, owner)) = self.unplaced.take().zip(owner) {
            place(missing, owner, &mut self.missing);
        }
        let mut receipt = self.bare(turn, &self.missing)?;
        if self.wanted.has_integrity {
            let lines = self.lines_of(turn)?;
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

    /// Builds the receipt of a turn, without proofs of its lines.
    fn bare(&self, turn: &str, missing: &HashMap<RunId, Vec<MissingRange>>) -> Result<Receipt, Error> {
        let record = self.turn(turn)?;
        let no_turn = || Error::NoReceipt("its turn is missing".to_owned());
        let (id, _) = self.records.turn_of(record).ok_or_else(no_turn)?;
        let mut facts = TurnFacts::of_session(&self.records.session, id, missing);
        let missing = MissingEvents::Known(std::mem::take(&mut facts.missing));
        if self.wanted.is_unnamed {
            facts.runs = None;
        }
        let (thread, items) = (&self.records.thread, &self.records.items);
        Ok(build(&ReceiptInput {
            thread,
            turn: record,
            items,
            facts,
            origin: RecordOrigin::Session,
            missing,
        })?)
    }
}

impl ProvedRun {
    fn read(reader: &mut Reader, lines_max: u64, has_integrity: bool) -> Result<Self, Error> {
        let (mut events, mut prover) = (Vec::new(), Prover::default());
        let mut take = |line: &[u8], event| {
            if has_integrity {
                prover.push(line);
            }
            events.push(event);
        };
        let mut left = lines_max;
        while left > 0 && reader.read_with(&mut take)?.is_some() {
            left -= 1;
        }
        let run = events.first().map(|event: &ExchangeEvent| event.run_id).ok_or_else(no_events)?;
        Ok(Self { run, events, prover })
    }

    /// Returns the adapter that made it.
    fn adapter(&self) -> Option<String> {
        self.events.first().and_then(adapter_of)
    }

    fn cut(&mut self, lines: usize) {
        self.events.truncate(lines);
        self.prover.cut(lines);
    }
}

fn records_of(session: Session, wanted: &ReadOptions) -> SessionRecords {
    let Some(name) = &wanted.turn else { return SessionRecords::of(session) };
    SessionRecords::with_items_of(session, |turn| {
        turn.name == *name || turn.turn_id.as_ref().is_some_and(|id| id.is(name))
    })
}

fn no_events() -> Error {
    Error::NoReceipt("there are no events".to_owned())
}

/// Returns the session that runs show: the one that the first event of one of them names, else the first run.
fn session_of(runs: &[RunEvents]) -> Option<RunId> {
    let named = runs.iter().find_map(|run| run.events.first().and_then(session_run_id));
    named.or(runs.first().map(|run| run.id))
}

/// Returns the runs of the session that an id names.
fn runs_of(library: &Library, id: RunId) -> Result<Vec<RunId>, Error> {
    let relations = library.relations()?;
    let mut runs = relations.runs_of(relations.owner(id));
    // From its transcript alone nobody could tell that such a run belongs to the session.
    runs.retain(|run| !relations.is_by_ids(*run));
    if runs.is_empty() {
        return Err(Error::Journal(JournalError::NoSuchRun { run: id }));
    }
    Ok(runs)
}

/// Adds what is missing to the runs that it names; without a name, to the run of the turn.
fn place(ranges: Vec<MissingRange>, owner: RunId, missing: &mut HashMap<RunId, Vec<MissingRange>>) {
    for range in ranges {
        let run = match &range {
            MissingRange::Noted { run_id: Some(run), .. } => RunId::parse(run).ok(),
            MissingRange::Noted { run_id: None, .. } | MissingRange::Gap { .. } => Some(owner),
        };
        if let Some(run) = run {
            missing.entry(run).or_default().push(range);
        }
    }
}

/// Returns what is missing according to a note, if anything.
fn missing_in_note(note: &steno_journal::Note) -> Option<MissingRange> {
    let (after_seq, count, what) = match &note.what {
        NoteKind::Refused { count, seq_last, .. } => (*seq_last, *count, "refused"),
        NoteKind::Dropped { count, seq_last, .. } => (*seq_last, *count, "dropped"),
        NoteKind::Recovered { .. }
        | NoteKind::Lagged { .. }
        | NoteKind::Vanished { .. }
        | NoteKind::Rederived { .. } => {
            return None;
        }
    };
    Some(MissingRange::Noted { after_seq, count, what: what.to_owned(), run_id: None })
}
