//! Checks a receipt: all of it is made anew from the record, and the first difference is named.

use steno_journal::{Reader, Store};
use steno_model::json::Fields;
use steno_model::receipt::{Integrity, MissingRange, Receipt, SCHEMA_ID};
use steno_model::{ExchangeEvent, RunId};
use steno_views::count;
use steno_views::receipt::{check_lines, first_difference, to_json};

use super::{Directory, Error, ReadRun, Wanted};

/// What a receipt is checked against.
pub enum Against<'a> {
    /// The store that has the run.
    Store(&'a Store),
    /// A transcript file alone.
    Transcript(Reader),
    /// The lines that the receipt is made of, and nothing else.
    Lines(&'a [u8]),
    /// A directory of records.
    Directory(&'a Directory),
}

/// What a check has proven, and what it has not: sentences for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// What holds.
    pub holds: Vec<String>,
    /// What nobody can know from this.
    pub open: Vec<String>,
}

/// Checks a receipt.
///
/// # Errors
/// The first thing that does not hold.
pub fn verify(text: &str, against: Against<'_>) -> Result<Proven, Error> {
    let said = Said::read(text)?;
    let wanted = Wanted {
        has_integrity: said.integrity.is_some(),
        lines_max: said.integrity.as_ref().map(|integrity| integrity.tree_size),
    };
    let (thread, turn) = (said.thread.as_str(), said.turn.as_str());
    let mut proven = Proven { holds: Vec::new(), open: Vec::new() };
    let without_integrity = match &against {
        Against::Store(_) | Against::Transcript(_) | Against::Lines(_) => {
            "that the record was not changed along with the receipt: export it with `--integrity`, and keep the root"
        }
        Against::Directory(_) => "that the records were not changed along with the receipt",
    };
    let found = match against {
        Against::Store(store) => {
            // Threads of other systems are called as they like, and none of them is in a store.
            let run = RunId::parse(thread).map_err(|_| said.no_such_turn())?;
            let read = ReadRun::of_store(store, run, wanted)?;
            proven.holds.push("every field follows from the run in the store".to_owned());
            read.receipt(turn)?
        }
        Against::Transcript(mut reader) => {
            let read = ReadRun::of_reader(&mut reader, None, wanted)?;
            proven.holds.push("every field follows from the transcript file".to_owned());
            proven.open.push("whether events were refused or dropped: that is noted beside a run".to_owned());
            read.with_missing(said.noted()).receipt(turn)?
        }
        Against::Lines(lines) => {
            proven
                .open
                .push("how many lines the run had, and whether events were refused or dropped".to_owned());
            proven.open.push("that no other line of the run belongs to the turn".to_owned());
            proven.holds.push("every field follows from the lines that were shown".to_owned());
            of_lines(&said, lines)?
        }
        Against::Directory(directory) => {
            proven.holds.push("every field follows from the records in the directory".to_owned());
            directory.receipt(thread, turn)?
        }
    };
    let found = to_json(&found);
    let difference = first_difference(text, &found).map_err(|error| Error::NoReceipt(error.to_string()))?;
    if let Some(difference) = difference {
        return Err(Error::Differs(difference));
    }
    if found != text {
        return Err(Error::OtherBytes);
    }
    say_what_is_proven(said.integrity.as_ref(), without_integrity, &mut proven);
    Ok(proven)
}

/// Builds a receipt of nothing but its lines.
fn of_lines(said: &Said, lines: &[u8]) -> Result<Receipt, Error> {
    let integrity = said.integrity.as_ref().ok_or(Error::NoIntegrity)?;
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    check_lines(integrity, &lines)?;
    let events = lines.iter().map(|line| ExchangeEvent::parse(line)).collect::<Result<Vec<_>, _>>();
    let mut events = events.map_err(|error| Error::NoReceipt(error.to_string()))?;
    events.sort_by_key(|event| event.seq);
    let run = RunId::parse(&integrity.run_id).map_err(|error| Error::NoReceipt(error.to_string()))?;
    let read = ReadRun::of_events(run, &events).with_missing(said.noted());
    let used = read.records.lines_of(&read.turn(&said.turn)?.id);
    let named: Vec<u64> = integrity.lines.iter().map(|line| line.seq).collect();
    if used != named {
        return Err(Error::NoReceipt("its `integrity` names other lines than it is made of".to_owned()));
    }
    let mut receipt = read.receipt(&said.turn)?;
    receipt.integrity = Some(integrity.clone());
    Ok(receipt)
}

/// What a receipt says that has to be known before it can be made anew.
struct Said {
    thread: String,
    turn: String,
    integrity: Option<Integrity>,
    missing: Option<Vec<MissingRange>>,
}

impl Said {
    fn read(text: &str) -> Result<Self, Error> {
        let bad = |why: String| Error::NoReceipt(why);
        if text.trim().is_empty() {
            return Err(bad("there is nothing in it".to_owned()));
        }
        let top = Fields::parse(text).map_err(|error| bad(error.to_string()))?;
        let get = |fields: &Fields<'_>, name: &str| {
            fields.iter().filter(|(key, _)| key.is(name)).last().map(|(_, value)| value.get().to_owned())
        };
        let inside = |name: &str, field: &str| {
            let value = get(&top, name)?;
            get(&Fields::parse(&value).ok()?, field)
        };
        let word = |json: Option<String>| json.and_then(|json| serde_json::from_str::<String>(&json).ok());
        if word(get(&top, "schema_id")).as_deref() != Some(SCHEMA_ID) {
            return Err(bad(format!("its `schema_id` is not `{SCHEMA_ID}`")));
        }
        let integrity = get(&top, "integrity").map(|json| serde_json::from_str(&json)).transpose();
        let missing = inside("source_event_lineage", "missing_event_ranges");
        Ok(Self {
            thread: word(inside("thread", "id")).ok_or_else(|| bad("it names no thread".to_owned()))?,
            turn: word(inside("turn", "id")).ok_or_else(|| bad("it names no turn".to_owned()))?,
            integrity: integrity.map_err(|error| bad(format!("its `integrity` cannot be read: {error}")))?,
            missing: missing.and_then(|json| serde_json::from_str(&json).ok()),
        })
    }

    fn no_such_turn(&self) -> Error {
        Error::NoSuchTurn { thread: self.thread.clone(), turn: self.turn.clone(), turns: Vec::new() }
    }

    /// Returns what is missing by notes alone, of which neither a transcript nor its lines know.
    fn noted(&self) -> Vec<MissingRange> {
        let is_noted = |range: &&MissingRange| match range {
            MissingRange::Noted { count, what, .. } => {
                *count > 0 && ["refused", "dropped"].contains(&what.as_str())
            }
            MissingRange::Gap { .. } => false,
        };
        self.missing.iter().flatten().filter(is_noted).cloned().collect()
    }
}

fn say_what_is_proven(integrity: Option<&Integrity>, without_integrity: &str, proven: &mut Proven) {
    match integrity {
        Some(integrity) => {
            let lines = count(integrity.lines.len() as u64, "line");
            proven.holds.push(format!("it is made of {lines} in the tree with root {}", integrity.root));
            proven.open.push(
                "that the run has not been changed before the receipt was made: compare the root with one kept elsewhere"
                    .to_owned(),
            );
        }
        None => proven.open.push(without_integrity.to_owned()),
    }
    proven.open.push("that what the agent has recorded of itself is true".to_owned());
}
