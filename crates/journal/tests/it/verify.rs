//! Checking a whole transcript, with its own seals and with seals kept elsewhere.

use std::sync::Arc;

use steno_disk::Disk;
use steno_journal::{
    Ending, Error, Level, RunFile, check_file, check_run, read_seals, run_beginning, run_ends,
};
use steno_testkit::sample::{message, run_id};

use crate::kit::{Bench, bench, run, transcript};

fn recorded() -> Bench {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.recorder.close().unwrap();
    let again = bench.journal.record(run()).unwrap();
    again.record(message("two", 300), Level::Synced).unwrap();
    Bench { recorder: again, ..bench }
}

#[test]
fn check_run_counts_events_seals_and_sealed_bytes() {
    let bench = recorded();
    let checked = check_run(bench.journal.store(), run(), Vec::new()).unwrap();
    assert_eq!((checked.run, checked.events, checked.seals), (Some(run()), 2, 1));
    assert_eq!(checked.bytes, transcript(&bench.disk).len() as u64);
    assert!(checked.sealed_bytes < checked.bytes);
    assert_eq!((checked.unknown_types, checked.ending), (0, Ending::Whole));
}

#[test]
fn unknown_types_are_counted_and_are_not_damage() {
    let bench = recorded();
    let text = String::from_utf8(transcript(&bench.disk)).unwrap();
    let third = text
        .lines()
        .last()
        .unwrap()
        .replace("\"seq\":2", "\"seq\":3")
        .replace("message.assistant", "hologram.shown");
    bench.disk.tamper(&RunFile::Transcript(run()).path(), format!("{text}{third}\n").as_bytes());
    let checked = check_run(bench.journal.store(), run(), Vec::new()).unwrap();
    assert_eq!((checked.events, checked.unknown_types), (3, 1));
}

#[test]
fn cut_at_a_line_end_is_found_only_with_external_seals() {
    let bench = recorded();
    bench.recorder.close().unwrap();
    let expected = read_seals(&bench.disk, run()).unwrap();
    let whole = transcript(&bench.disk);
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // Both the file and its seals are cut.
    bench.disk.tamper(&RunFile::Transcript(run()).path(), &whole[..first]);
    bench.disk.tamper(&RunFile::Seals(run()).path(), format!("{}\n", expected[0].to_line()).as_bytes());
    assert!(check_run(bench.journal.store(), run(), Vec::new()).is_ok());
    assert!(matches!(check_run(bench.journal.store(), run(), expected), Err(Error::SealBroken { .. })));
}

#[test]
fn missing_run_differs_from_one_with_seals() {
    let bench = recorded();
    let missing = check_run(bench.journal.store(), run_id(9), Vec::new());
    assert!(matches!(missing, Err(Error::NoSuchRun { .. })));
    bench.recorder.close().unwrap();
    let expected = read_seals(&bench.disk, run()).unwrap();
    let gone = check_run(bench.journal.store(), run_id(9), expected);
    assert!(matches!(gone, Err(Error::SealBroken { .. })));
}

#[test]
fn run_ends_returns_the_first_and_last_whole_line() {
    let bench = recorded();
    let store = bench.journal.store();
    let empty = bench.journal.record(run_id(5)).unwrap();
    assert_eq!(run_ends(store, run_id(5)).unwrap().events, None);
    empty.record(message("only", 300), Level::Synced).unwrap();
    let (first, last) = run_ends(store, run_id(5)).unwrap().events.unwrap();
    assert_eq!((first.seq.get(), last.seq.get()), (1, 1));
    // Longer than the first read from the end.
    bench.recorder.record(message("long", 300_000), Level::Synced).unwrap();
    let whole = transcript(&bench.disk);
    bench.disk.tamper(&RunFile::Transcript(run()).path(), &[&whole[..], b"{\"seq\":4,"].concat());
    let ends = run_ends(store, run()).unwrap();
    let (first, last) = ends.events.unwrap();
    assert_eq!((first.seq.get(), last.seq.get(), ends.bytes), (1, 3, whole.len() as u64 + 9));
    assert!(matches!(run_ends(store, run_id(9)), Err(Error::NoSuchRun { .. })));
    bench.disk.tamper(&RunFile::Transcript(run()).path(), b"not an event\n");
    assert!(matches!(run_ends(store, run()), Err(Error::Damaged { offset: 0, .. })));
}

#[test]
fn run_beginning_returns_first_events_within_a_byte_limit() {
    let bench = recorded();
    let store = bench.journal.store();
    let seqs = |run, max| -> Vec<u64> {
        run_beginning(store, run, max).unwrap().iter().map(|event| event.seq.get()).collect()
    };
    assert_eq!((seqs(run(), 1), seqs(run(), 9)), (vec![1], vec![1, 2]));
    // The first one is read at any length, and later ones only within the limit.
    let long = bench.journal.record(run_id(5)).unwrap();
    assert_eq!(seqs(run_id(5), 9), [0; 0]);
    for words in ["first", "second"] {
        long.record(message(words, 300_000), Level::Synced).unwrap();
    }
    assert_eq!(seqs(run_id(5), 9), [1]);
    assert!(matches!(run_beginning(store, run_id(9), 1), Err(Error::NoSuchRun { .. })));
    bench.disk.tamper(&RunFile::Transcript(run()).path(), b"not an event\n");
    assert!(matches!(run_beginning(store, run(), 1), Err(Error::Damaged { offset: 0, .. })));
}

#[test]
fn check_file_reads_the_run_id_from_the_file() {
    let bench = recorded();
    let path = RunFile::Transcript(run()).path();
    let open = || Arc::clone(&bench.disk.open_read(&path).unwrap().unwrap());
    assert_eq!(check_file(open(), &path, None, Vec::new()).unwrap().run, Some(run()));
    assert!(check_file(open(), &path, Some(run_id(9)), Vec::new()).is_err());
}

/// A file that grows by a line at every read, as with a faster writer.
struct Growing {
    disk: steno_testkit::sim_disk::SimDisk,
    line: Vec<u8>,
}

impl steno_disk::DiskFile for Growing {
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let path = RunFile::Transcript(run()).path();
        let file = self.disk.open_append(&path)?;
        file.append(&self.line)?;
        file.read_at(into, offset)
    }

    fn identity(&self) -> std::io::Result<steno_disk::Identity> {
        Ok(self.disk.identity(&RunFile::Transcript(run()).path())?.unwrap())
    }

    fn append(&self, _: &[u8]) -> std::io::Result<usize> {
        unreachable!("readers never write")
    }

    fn overwrite(&self, _: &[u8], _: u64) -> std::io::Result<usize> {
        unreachable!("readers never write")
    }

    fn sync(&self) -> std::io::Result<()> {
        unreachable!("readers never write")
    }

    fn truncate(&self, _: u64) -> std::io::Result<()> {
        unreachable!("readers never write")
    }
}

#[test]
fn check_of_a_growing_file_ends() {
    let bench = recorded();
    let line = transcript(&bench.disk);
    let growing = || Arc::new(Growing { disk: bench.disk.clone(), line: line.clone() });
    let path = RunFile::Transcript(run()).path();
    assert_eq!(check_file(growing(), &path, None, Vec::new()).unwrap().events, 2);
    let mut reader = steno_journal::Reader::of_file(growing(), path, None).until_now().unwrap();
    assert!(reader.read_next().unwrap().is_some());
}
