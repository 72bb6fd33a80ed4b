//! Shared by these tests: a store on the simulated disk, and reading it back.

use std::sync::Arc;

use steno_disk::Disk;
use steno_journal::{Error, Journal, Options, Reader, Recorder, RunFile, Store};
use steno_model::RunId;
use steno_testkit::sample::run_id;
use steno_testkit::sim_disk::SimDisk;

pub fn clock() -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(1_780_906_482_123).unwrap()
}

pub fn options() -> Options {
    Options { clock, ..Options::default() }
}

pub fn run() -> RunId {
    run_id(1)
}

pub fn journal_on(disk: &SimDisk) -> Result<Journal, Error> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Ok(Journal::new(Store::create(disk)?, options()))
}

/// A fresh disk with an open recorder on it.
pub struct Bench {
    pub disk: SimDisk,
    pub journal: Journal,
    pub recorder: Recorder,
}

pub fn bench() -> Bench {
    let disk = SimDisk::new(7);
    let journal = journal_on(&disk).unwrap();
    let recorder = journal.record(run()).unwrap();
    Bench { disk, journal, recorder }
}

pub fn transcript(disk: &SimDisk) -> Vec<u8> {
    disk.content(&RunFile::Transcript(run()).path()).unwrap_or_default()
}

/// Reads all lines of a run; fails the test at anything but a whole file.
#[track_caller]
pub fn lines(store: &Store, run: RunId) -> Vec<String> {
    let mut reader = Reader::open(store, run).unwrap();
    let mut lines = Vec::new();
    while let Some(recorded) = reader.read_next().unwrap() {
        lines.push(String::from_utf8(recorded.line).unwrap());
    }
    assert_eq!(reader.rest_bytes(), 0, "a torn tail");
    lines
}

/// Counts the lines of a file.
pub fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Returns the text block of a line, by which tests distinguish records.
pub fn label(line: &str) -> String {
    let (_, rest) = line.split_once("\"text\":\"").unwrap_or(("", line));
    rest.split([' ', '"']).next().unwrap_or_default().to_owned()
}

pub fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}
