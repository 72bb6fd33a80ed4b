//! Checks a receipt: all of it is made anew from the record, and the first difference is named.

use serde_json::Value;
use steno_journal::{Reader, Store};
use steno_model::receipt::{Integrity, MissingRange, SCHEMA_ID};
use steno_model::{ExchangeEvent, RunId};
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
    let said: Value = serde_json::from_str(text).map_err(|error| Error::NoReceipt(error.to_string()))?;
    let field = |pointer: &str| said.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if field("/schema_id") != SCHEMA_ID {
        return Err(Error::NoReceipt(format!("its `schema_id` is not `{SCHEMA_ID}`")));
    }
    let integrity: Option<Integrity> = match said.get("integrity") {
        None => None,
        Some(value) => Some(
            serde_json::from_value(value.clone())
                .map_err(|error| Error::NoReceipt(format!("its `integrity` cannot be read: {error}")))?,
        ),
    };
    let (thread, turn) = (field("/thread/id"), field("/turn/id"));
    let wanted = Wanted {
        has_integrity: integrity.is_some(),
        lines_max: integrity.as_ref().map(|integrity| integrity.tree_size),
    };
    let run = || RunId::parse(thread).map_err(|error| Error::NoReceipt(error.to_string()));
    let mut proven = Proven { holds: Vec::new(), open: Vec::new() };
    let found = match against {
        Against::Store(store) => {
            let read = ReadRun::of_store(store, run()?, wanted)?;
            proven.holds.push("every field follows from the run in the store".to_owned());
            read.receipt(turn)?
        }
        Against::Transcript(mut reader) => {
            let read = ReadRun::of_reader(&mut reader, Some(run()?), wanted)?;
            let missing = read.gaps().cloned().chain(noted(&said)).collect();
            proven.holds.push("every field follows from the transcript file".to_owned());
            proven.open.push("whether events were refused or dropped: that is noted beside a run".to_owned());
            read.with_missing(missing).receipt(turn)?
        }
        Against::Lines(lines) => {
            let integrity = integrity.as_ref().ok_or(Error::NoIntegrity)?;
            let lines: Vec<&[u8]> =
                lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
            check_lines(integrity, &lines)?;
            let events = lines.iter().map(|line| ExchangeEvent::parse(line)).collect::<Result<Vec<_>, _>>();
            let events = events.map_err(|error| Error::NoReceipt(error.to_string()))?;
            let read = ReadRun::of_events(run()?, &events).with_missing(missing(&said));
            proven.holds.push("every field follows from the lines that were shown".to_owned());
            proven.open.push("which events are missing: that takes the whole run".to_owned());
            proven.open.push("that no other line of the run belongs to the turn".to_owned());
            let mut receipt = read.receipt(turn)?;
            receipt.integrity = Some(integrity.clone());
            receipt
        }
        Against::Directory(directory) => {
            proven.holds.push("every field follows from the records in the directory".to_owned());
            directory.receipt(thread, turn)?
        }
    };
    let found_text = to_json(&found);
    let found: Value =
        serde_json::from_str(&found_text).map_err(|error| Error::NoReceipt(error.to_string()))?;
    if let Some(difference) = first_difference(&said, &found) {
        return Err(Error::Differs(difference));
    }
    if found_text != text {
        return Err(Error::OtherBytes);
    }
    say_what_is_proven(integrity.as_ref(), &mut proven);
    Ok(proven)
}

fn say_what_is_proven(integrity: Option<&Integrity>, proven: &mut Proven) {
    match integrity {
        Some(integrity) => {
            let lines = integrity.lines.len();
            proven.holds.push(format!(
                "the {lines} lines it is made of are in the tree of {} lines with root {}",
                integrity.tree_size, integrity.root
            ));
            proven.open.push(
                "that the run has not been changed before the receipt was made: compare the root with one kept elsewhere"
                    .to_owned(),
            );
        }
        None => proven.open.push(
            "that the record was not changed along with the receipt: export it with `--integrity`, and keep the root"
                .to_owned(),
        ),
    }
    proven.open.push("that what the agent has recorded of itself is true".to_owned());
}

/// Returns the ranges that a receipt says are missing.
fn missing(said: &Value) -> Vec<MissingRange> {
    let ranges = said.pointer("/source_event_lineage/missing_event_ranges").cloned();
    ranges.and_then(|ranges| serde_json::from_value(ranges).ok()).unwrap_or_default()
}

/// Returns those of them that only a note can tell.
fn noted(said: &Value) -> impl Iterator<Item = MissingRange> {
    missing(said).into_iter().filter(|range| matches!(range, MissingRange::Noted { .. }))
}
