//! Record, close, reopen: numbers, order, files.

use steno_journal::{Damage, Error, Level, Reader, RunFile};
use steno_model::{EventType, ExchangeEvent, Seq};
use steno_testkit::sample::{message, run_id, run_started};
use steno_testkit::sim_disk::SimDisk;

use crate::kit::{bench, journal_on, label, lines, run, transcript};

#[test]
fn seq_counts_from_one_in_file_order() {
    let bench = bench();
    assert_eq!(bench.recorder.seq_last(), None);
    assert_eq!(bench.recorder.record(run_started(), Level::Synced).unwrap(), Seq::FIRST);
    for number in 2..=20 {
        let level = if number % 2 == 0 { Level::Written } else { Level::Synced };
        let seq = bench.recorder.record(message(&format!("m{number}"), 300), level).unwrap();
        assert_eq!(seq.get(), number);
    }
    let lines = lines(bench.journal.store(), run());
    let seqs: Vec<_> =
        lines.iter().map(|line| ExchangeEvent::parse(line.as_bytes()).unwrap().seq.get()).collect();
    assert_eq!(seqs, (1..=20).collect::<Vec<_>>());
}

#[test]
fn reopened_run_continues_its_numbers() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.recorder.close().unwrap();
    let again = bench.journal.record(run()).unwrap();
    assert_eq!(again.seq_last(), Some(Seq::FIRST));
    assert_eq!(again.record(message("two", 300), Level::Synced).unwrap().get(), 2);
    let labels: Vec<_> = lines(bench.journal.store(), run()).iter().map(|line| label(line)).collect();
    assert_eq!(labels, ["one", "two"]);
}

#[test]
fn each_opening_has_a_higher_epoch() {
    let bench = bench();
    let first = bench.recorder.epoch();
    bench.recorder.close().unwrap();
    let second = bench.journal.record(run()).unwrap().epoch();
    assert!(second > first);
    bench.disk.tamper(&RunFile::Lock(run()).path(), b"gar\0bled");
    assert!(bench.journal.record(run()).unwrap().epoch() > second);
}

#[test]
fn second_writer_gets_a_locked_error() {
    let bench = bench();
    assert!(bench.journal.store().is_locked(run()).unwrap());
    assert!(matches!(bench.journal.record(run()), Err(Error::Locked { .. })));
    bench.recorder.close().unwrap();
    assert!(!bench.journal.store().is_locked(run()).unwrap());
    assert!(bench.journal.record(run()).is_ok());
}

#[test]
fn close_is_idempotent_and_later_records_are_refused() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Written).unwrap();
    for _ in 0..3 {
        bench.recorder.close().unwrap();
    }
    let before = transcript(&bench.disk);
    assert!(matches!(bench.recorder.record(message("late", 300), Level::Written), Err(Error::Closed)));
    assert_eq!(transcript(&bench.disk), before);
}

#[test]
fn each_run_has_its_own_file() {
    let bench = bench();
    let other = bench.journal.record(run_id(2)).unwrap();
    bench.recorder.record(message("a", 300), Level::Synced).unwrap();
    other.record(message("b", 300), Level::Synced).unwrap();
    assert_eq!(bench.journal.store().runs().unwrap(), [run_id(1), run_id(2)]);
    assert_eq!(label(&lines(bench.journal.store(), run_id(2))[0]), "b");
}

#[test]
fn thousand_open_runs_share_a_few_threads() {
    let bench = bench();
    let recorders: Vec<_> = (2..1_002).map(|number| bench.journal.record(run_id(number)).unwrap()).collect();
    let pending: Vec<_> =
        recorders.iter().map(|one| one.append(message("m", 300), Level::Synced).unwrap()).collect();
    for one in pending {
        assert_eq!(one.wait().unwrap(), Seq::FIRST);
    }
    assert!(bench.journal.commit_threads() <= 4, "{} threads", bench.journal.commit_threads());
}

#[test]
fn too_long_line_is_refused_and_not_written() {
    let bench = bench();
    let long = message("long", steno_model::limits::LINE_BYTES_MAX + 1);
    assert!(matches!(bench.recorder.record(long, Level::Synced), Err(Error::TooLong { .. })));
    assert_eq!(transcript(&bench.disk), b"");
    assert_eq!(bench.recorder.record(message("m", 300), Level::Synced).unwrap(), Seq::FIRST);
}

#[test]
fn missing_time_comes_from_the_clock() {
    let bench = bench();
    let draft = steno_model::Draft::parse(br#"{"type":"run.started"}"#, run()).unwrap();
    bench.recorder.record(draft, Level::Synced).unwrap();
    let line = &lines(bench.journal.store(), run())[0];
    assert!(line.contains(r#""timestamp":"2026-06-08T08:14:42.123Z""#), "{line}");
}

#[test]
fn run_of_a_killed_process_continues() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    let disk = bench.disk.die(steno_testkit::sim_disk::Death::Kill);
    drop(bench);
    let journal = journal_on(&disk).unwrap();
    assert_eq!(journal.record(run()).unwrap().seq_last(), Some(Seq::FIRST));
}

#[test]
fn reader_of_some_types_skips_others_but_checks_their_numbers() {
    let bench = bench();
    for number in 1..=4 {
        bench.recorder.record(message(&format!("m{number}"), 300), Level::Synced).unwrap();
        bench.recorder.record(run_started(), Level::Synced).unwrap();
    }
    let read = |disk: &SimDisk| {
        let journal = journal_on(disk).unwrap();
        let mut reader = Reader::open(journal.store(), run()).unwrap();
        let mut seqs = Vec::new();
        let wants = |event_type, _: &[u8]| event_type == EventType::RunStarted;
        while let Some(event) = reader.read_next_of(wants)? {
            seqs.push(event.seq.get());
        }
        assert_eq!(reader.seq_last(), Seq::new(8));
        Ok::<_, Error>(seqs)
    };
    assert_eq!(read(&bench.disk).unwrap(), [2, 4, 6, 8]);
    // The text of a skipped line is not read; its number is.
    let path = RunFile::Transcript(run()).path();
    let text = String::from_utf8(transcript(&bench.disk)).unwrap();
    bench.disk.tamper(&path, text.replace("m2", "\u{1}").as_bytes());
    assert_eq!(read(&bench.disk).unwrap(), [2, 4, 6, 8]);
    bench.disk.tamper(&path, text.replace("{\"seq\":3,", "{\"seq\":9,").as_bytes());
    assert!(matches!(read(&bench.disk), Err(Error::Damaged { why: Damage::OutOfOrder { .. }, .. })));
}
