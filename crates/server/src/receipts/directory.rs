//! A directory of records of another system: `threads/`, `turns/`, `items/`, `events/`, `state.json`.
//!
//! Each record is a JSON file named by its id, or a line of a JSONL file. Events are numbered in one sequence over all
//! threads.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use steno_disk::read_host_file;
use steno_model::receipt::{MissingRange, Receipt};
use steno_model::records::{EventRecord, ItemRecord, ThreadRecord, TurnRecord};
use steno_views::count_in_digits;
use steno_views::receipt::{MissingEvents, ReceiptInput, RecordOrigin, TurnFacts, build};

use super::Error;

/// The largest file of records that is read.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A directory of records.
pub struct Directory(PathBuf);

impl Directory {
    /// Takes a directory.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Builds the receipt of a turn.
    ///
    /// # Errors
    /// When there is no such thread or turn, records do not belong together, or cannot be read.
    pub fn receipt(&self, thread: &str, turn: &str) -> Result<Receipt, Error> {
        let thread_record: Option<ThreadRecord> = self.record("threads", thread)?;
        let no_such = || {
            // The list of turns helps the user. An error while reading it would hide the actual one.
            let turns =
                self.turns(Some(thread)).unwrap_or_default().into_iter().map(|turn| turn.id).collect();
            Error::NoSuchTurn { thread: thread.to_owned(), turn: turn.to_owned(), turns }
        };
        let thread_record = thread_record.ok_or_else(no_such)?;
        let turn_record: TurnRecord = self.record("turns", turn)?.ok_or_else(no_such)?;
        let items: Vec<ItemRecord> = self.records("items", &turn_record.item_ids)?;
        let (events, missing) = self.events(thread)?;
        let is_its = |event: &&EventRecord| {
            event.thread_id == thread_record.id && event.turn_id.as_ref() == Some(&turn_record.id)
        };
        let events: Vec<&EventRecord> = events.iter().filter(is_its).collect();
        let own: Vec<&ItemRecord> = items.iter().filter(|item| item.turn_id == turn_record.id).collect();
        let source = ReceiptInput {
            thread: &thread_record,
            turn: &turn_record,
            items: &items,
            facts: TurnFacts::of_records(&own, &events),
            origin: RecordOrigin::Directory,
            missing,
        };
        Ok(build(&source)?)
    }

    /// Returns the turns of all threads, or of one.
    ///
    /// # Errors
    /// When records cannot be read.
    pub fn turns(&self, thread: Option<&str>) -> Result<Vec<TurnRecord>, Error> {
        let mut turns = Vec::new();
        for path in self.files("turns")? {
            let (records, unreadable) = read_records::<TurnRecord>(&path)?;
            check_all(&path, unreadable)?;
            turns.extend(records);
        }
        turns.retain(|turn| thread.is_none_or(|thread| turn.thread_id == thread));
        turns.sort_by(|one, other| (&one.started_at, &one.id).cmp(&(&other.started_at, &other.id)));
        Ok(turns)
    }

    /// Finds the first record with an id.
    fn record<T: HasId>(&self, kind: &str, id: &str) -> Result<Option<T>, Error> {
        Ok(self.records(kind, &[id.to_owned()])?.into_iter().next())
    }

    /// Finds the first record with each id: in the file named by the id, else in all files of the kind, each read once.
    fn records<T: HasId>(&self, kind: &str, ids: &[String]) -> Result<Vec<T>, Error> {
        let (mut found, mut elsewhere) = (HashMap::new(), Vec::new());
        for id in ids {
            let files = self.files_named(kind, id);
            if files.is_empty() {
                elsewhere.push(id.as_str());
            }
            find_in(&files, &[id], &mut found)?;
        }
        if !elsewhere.is_empty() {
            let mut files = self.files(kind)?;
            files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
            find_in(&files, &elsewhere, &mut found)?;
        }
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    /// Returns the files that are named by an id.
    fn files_named(&self, kind: &str, id: &str) -> Vec<PathBuf> {
        let is_name = !id.is_empty() && !id.starts_with('.') && !id.contains(['/', '\\', '\0']);
        let named = ["json", "jsonl"].map(|end| self.0.join(kind).join(format!("{id}.{end}")));
        named.into_iter().filter(|path| is_name && path.is_file()).collect()
    }

    /// Reads the events of a thread, and finds the numbers that are missing over all threads.
    fn events(&self, thread: &str) -> Result<(Vec<EventRecord>, MissingEvents), Error> {
        let (mut events, mut seqs, mut unreadable) = (Vec::new(), BTreeSet::new(), 0);
        for path in self.files("events")? {
            let (records, bad) = read_records::<EventRecord>(&path)?;
            unreadable += bad;
            seqs.extend(records.iter().map(|record| record.seq));
            events.extend(records.into_iter().filter(|record| record.thread_id == thread));
        }
        events.sort_by_key(|event| event.seq);
        if unreadable > 0 {
            return Ok((
                events,
                MissingEvents::Unknown(format!("{unreadable} records of events cannot be read")),
            ));
        }
        let mut ranges = Vec::new();
        let mut next = seqs.first().copied().unwrap_or(0);
        for seq in seqs {
            if seq > next {
                ranges.push(MissingRange::Gap { first_seq: next, last_seq: seq - 1 });
            }
            next = seq.saturating_add(1);
        }
        Ok((events, MissingEvents::Known(ranges)))
    }

    /// Lists the files of a kind of records, in the order of their names.
    fn files(&self, kind: &str) -> Result<Vec<PathBuf>, Error> {
        let dir = self.0.join(kind);
        let failed = |error: std::io::Error| Error::Records { path: dir.clone(), why: error.to_string() };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|end| end == "json" || end == "jsonl") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// A record that has an id.
trait HasId: DeserializeOwned {
    fn id(&self) -> &str;
}

impl HasId for ThreadRecord {
    fn id(&self) -> &str {
        &self.id
    }
}

impl HasId for TurnRecord {
    fn id(&self) -> &str {
        &self.id
    }
}

impl HasId for ItemRecord {
    fn id(&self) -> &str {
        &self.id
    }
}

/// Adds the first record with each id, unless there is one already.
fn find_in<T: HasId>(files: &[PathBuf], ids: &[&str], found: &mut HashMap<String, T>) -> Result<(), Error> {
    let wanted: HashSet<&str> = ids.iter().copied().collect();
    for path in files {
        let (records, unreadable) = read_records::<T>(path)?;
        let mut here = HashSet::new();
        for record in records.into_iter().filter(|record| wanted.contains(record.id())) {
            here.insert(record.id().to_owned());
            found.entry(record.id().to_owned()).or_insert(record);
        }
        if here.len() < wanted.len() {
            // A missing record may be one of those that cannot be read.
            check_all(path, unreadable)?;
        }
    }
    Ok(())
}

fn check_all(path: &Path, unreadable: u64) -> Result<(), Error> {
    match unreadable {
        0 => Ok(()),
        number => {
            let why = format!("it has {} that cannot be read", count_in_digits(number, "record"));
            Err(Error::Records { path: path.to_owned(), why })
        }
    }
}

/// Reads the records of a file, and counts those that cannot be read.
fn read_records<T: DeserializeOwned>(path: &Path) -> Result<(Vec<T>, u64), Error> {
    let bytes = read_host_file(path, FILE_BYTES_MAX)
        .map_err(|error| Error::Records { path: path.to_owned(), why: error.to_string() })?;
    if path.extension().is_some_and(|end| end == "json") {
        let array = serde_json::from_slice::<Vec<T>>(&bytes).ok();
        let records = array.or_else(|| Some(vec![serde_json::from_slice(&bytes).ok()?]));
        return Ok(records.map_or((Vec::new(), 1), |records| (records, 0)));
    }
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let (mut records, mut unreadable) = (Vec::new(), 0);
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(record) => records.push(record),
            Err(_) => unreadable += 1,
        }
    }
    Ok((records, unreadable))
}
