//! Recovery: what is noted, what is kept, what readers leave alone.

use std::io::Write as _;
use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{Ending, Error, Journal, Level, NoteKind, Reader, RunFile, Store, check_run, read_notes};
use steno_testkit::sample::message;
use steno_testkit::sim_disk::SimDisk;

use crate::kit::{Bench, bench, journal_on, newlines, options, run, transcript};

fn torn_run() -> SimDisk {
    let Bench { disk, journal, recorder } = bench();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    recorder.close().unwrap();
    drop((recorder, journal));
    let mut bytes = transcript(&disk);
    bytes.extend_from_slice(b"{\"seq\":2,\"run_id");
    disk.tamper(&RunFile::Transcript(run()).path(), &bytes);
    disk
}

#[test]
fn readers_do_not_change_a_torn_file() {
    let disk = torn_run();
    let before = disk.snapshot();
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    let mut reader = Reader::open(&store, run()).unwrap();
    assert!(reader.read_next().unwrap().is_some());
    assert!(reader.read_next().unwrap().is_none());
    assert_eq!(reader.rest_bytes(), 16);
    check_run(&store, run(), Vec::new()).unwrap();
    assert_eq!(disk.snapshot(), before);
}

#[test]
fn recovery_is_noted_once() {
    let disk = torn_run();
    for _ in 0..2 {
        journal_on(&disk).unwrap().record(run()).unwrap().close().unwrap();
    }
    let notes = read_notes(&disk, run()).unwrap();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    let NoteKind::Recovered { bytes: 16, seq_last: 1, kept, .. } = &note.what else { panic!("{note:?}") };
    let torn = disk.snapshot().into_iter().find(|(name, _)| name.ends_with(kept)).unwrap();
    assert_eq!(torn.1, b"{\"seq\":2,\"run_id");
}

#[test]
fn complete_line_without_a_newline_is_moved_aside() {
    let Bench { disk, recorder, .. } = bench();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    recorder.close().unwrap();
    let whole = transcript(&disk);
    let second = String::from_utf8(whole.clone()).unwrap().replace("{\"seq\":1,", "{\"seq\":2,");
    disk.tamper(&RunFile::Transcript(run()).path(), &[&whole, second.trim_end().as_bytes()].concat());
    let again = journal_on(&disk).unwrap().record(run()).unwrap();
    assert_eq!(again.seq_last().map(steno_model::Seq::get), Some(1));
    assert_eq!(transcript(&disk), whole);
}

#[test]
fn zeros_of_any_length_at_the_end_are_moved_aside() {
    const MIB: u64 = 1024 * 1024;
    for (zeros, end) in [(63 * MIB, &b""[..]), (65 * MIB, b""), (150 * MIB, b""), (65 * MIB, b"\"}}\n")] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(steno_disk::RealDisk::create(dir.path()).unwrap());
        let journal = Journal::new(Store::create(disk).unwrap(), options());
        let recorder = journal.record(run()).unwrap();
        recorder.record(message("one", 300), Level::Synced).unwrap();
        recorder.close().unwrap();
        let path = dir.path().join(RunFile::Transcript(run()).path().as_str());
        let whole = path.metadata().unwrap().len();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.set_len(whole + zeros).unwrap();
        file.write_all(end).unwrap();
        let len = zeros + end.len() as u64;
        let torn = Ending::Torn { offset: whole, len };
        assert_eq!(check_run(journal.store(), run(), Vec::new()).unwrap().ending, torn);
        if end.is_empty() {
            let mut reader = Reader::open(journal.store(), run()).unwrap();
            assert!(reader.read_next().unwrap().is_some());
            for _ in 0..3 {
                assert_eq!((reader.read_next().unwrap(), reader.rest_bytes()), (None, zeros));
            }
        }
        let again = journal.record(run()).unwrap();
        assert_eq!(again.record(message("two", 300), Level::Synced).unwrap().get(), 2);
        let notes = read_notes(&**journal.store().disk(), run()).unwrap();
        let NoteKind::Recovered { bytes, kept, .. } = &notes[0].what else { panic!("{notes:?}") };
        let kept = path.with_file_name(kept);
        assert_eq!((*bytes, kept.metadata().unwrap().len()), (len, len));
        assert!(std::fs::read(&kept).unwrap().ends_with(end));
    }
}

#[test]
fn torn_seal_is_moved_aside_and_the_run_continues() {
    let Bench { disk, recorder, .. } = bench();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    recorder.close().unwrap();
    let seals = RunFile::Seals(run()).path();
    let whole = disk.content(&seals).unwrap();
    disk.tamper(&seals, &[&whole[..], b"{\"run_id\":\"0000"].concat());
    let again = journal_on(&disk).unwrap().record(run()).unwrap();
    again.record(message("two", 300), Level::Synced).unwrap();
    again.close().unwrap();
    let now = disk.content(&seals).unwrap();
    assert!(now.starts_with(&whole) && newlines(&now) == 2);
    assert!(
        disk.snapshot()
            .iter()
            .any(|(name, bytes)| name.contains("seals.jsonl.torn-") && bytes == b"{\"run_id\":\"0000")
    );
}

#[test]
fn error_for_a_damaged_seals_file_names_it() {
    let Bench { disk, recorder, .. } = bench();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    recorder.close().unwrap();
    let path = RunFile::Seals(run()).path();
    disk.tamper(&path, b"not a seal\n");
    let opened = journal_on(&disk).unwrap().record(run());
    assert!(matches!(opened.err(), Some(Error::Damaged { path: found, offset: 0, .. }) if found == path));
}

#[test]
fn missing_sealed_file_is_not_recreated() {
    let Bench { disk, recorder, .. } = bench();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    recorder.close().unwrap();
    disk.delete(&RunFile::Transcript(run()).path());
    let opened = journal_on(&disk).unwrap().record(run());
    assert!(matches!(opened.err(), Some(Error::SealBroken { .. })));
    assert_eq!(disk.content(&RunFile::Transcript(run()).path()), None);
}

#[test]
fn recovery_on_a_full_disk_changes_nothing() {
    let disk = torn_run();
    let before = transcript(&disk);
    let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_room(Some(used as u64 + 90));
    let opened = journal_on(&disk).unwrap().record(run());
    assert!(matches!(opened.err(), Some(Error::Io { .. })));
    assert_eq!(transcript(&disk), before);
    disk.set_room(None);
    assert!(journal_on(&disk).unwrap().record(run()).is_ok());
    let temporary = |name: &str| name.contains(".tmp-") && !name.starts_with(StorePath::format().as_str());
    assert!(disk.snapshot().iter().all(|(name, _)| !temporary(name)), "what was begun was finished");
}
