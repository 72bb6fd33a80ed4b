//! A directory of records that another system keeps: `threads/`, `turns/`, `items/`, `events/`, `state.json`.
//!
//! Each record is a JSON file with its id as name, or a line of a JSONL file. The numbers of events are one sequence over
//! all threads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use steno_disk::read_host_file;
use steno_model::receipt::{MissingRange, Receipt};
use steno_model::records::{EventRecord, ItemRecord, ThreadRecord, TurnRecord};
use steno_views::count;
use steno_views::receipt::{Missing, Origin, Source, build};

use super::Error;

/// How long a file of records may be.
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
        let threads: Vec<ThreadRecord> =
            self.records("threads", thread, |record: &ThreadRecord| record.id == thread)?;
        let no_such = || {
            // What there is helps whoever has asked; that it cannot be read is not what was asked for.
            let turns =
                self.turns(Some(thread)).unwrap_or_default().into_iter().map(|turn| turn.id).collect();
            Error::NoSuchTurn { thread: thread.to_owned(), turn: turn.to_owned(), turns }
        };
        let thread_record = threads.first().ok_or_else(no_such)?;
        let turns: Vec<TurnRecord> = self.records("turns", turn, |record: &TurnRecord| record.id == turn)?;
        let turn_record = turns.first().ok_or_else(no_such)?;
        let mut items = Vec::new();
        for id in &turn_record.item_ids {
            items.extend(
                self.records("items", id, |record: &ItemRecord| record.id == *id)?.into_iter().next(),
            );
        }
        let (events, missing) = self.events(thread)?;
        let source = Source {
            thread: thread_record,
            turn: turn_record,
            items: &items,
            events: &events,
            origin: Origin::Directory,
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

    /// Finds records: in the file that is called like their id, else in all files of their kind.
    fn records<T: DeserializeOwned>(
        &self,
        kind: &str,
        id: &str,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>, Error> {
        let is_name = !id.is_empty() && !id.starts_with('.') && !id.contains(['/', '\\', '\0']);
        let named = ["json", "jsonl"].map(|end| self.0.join(kind).join(format!("{id}.{end}")));
        let mut files: Vec<PathBuf> = named.into_iter().filter(|path| is_name && path.is_file()).collect();
        if files.is_empty() {
            files = self.files(kind)?;
            files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        }
        let mut found = Vec::new();
        for path in files {
            let (records, unreadable) = read_records::<T>(&path)?;
            let wanted = records.into_iter().filter(&is_wanted);
            let before = found.len();
            found.extend(wanted);
            if found.len() == before {
                // It may be one of those that cannot be read.
                check_all(&path, unreadable)?;
            }
        }
        Ok(found)
    }

    /// Reads the events of a thread, and finds out which numbers are missing over all threads.
    fn events(&self, thread: &str) -> Result<(Vec<EventRecord>, Missing), Error> {
        let (mut events, mut seqs, mut unreadable) = (Vec::new(), BTreeSet::new(), 0);
        for path in self.files("events")? {
            let (records, bad) = read_records::<EventRecord>(&path)?;
            unreadable += bad;
            seqs.extend(records.iter().map(|record| record.seq));
            events.extend(records.into_iter().filter(|record| record.thread_id == thread));
        }
        events.sort_by_key(|event| event.seq);
        if unreadable > 0 {
            return Ok((events, Missing::Unknown(format!("{unreadable} records of events cannot be read"))));
        }
        let mut ranges = Vec::new();
        let mut next = seqs.first().copied().unwrap_or(0);
        for seq in seqs {
            if seq > next {
                ranges.push(MissingRange::Gap { first_seq: next, last_seq: seq - 1 });
            }
            next = seq.saturating_add(1);
        }
        Ok((events, Missing::Known(ranges)))
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

fn check_all(path: &Path, unreadable: u64) -> Result<(), Error> {
    match unreadable {
        0 => Ok(()),
        number => {
            let why = format!("it has {} that cannot be read", count(number, "record"));
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
