//! Imports of several files that share their syncs: after any crash or failed sync the next import goes on, each event
//! is written once, and no event is there without the bytes that it was made from.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use steno_journal::{Journal, Options, Store};
use steno_recorder::sources::{
    ImportOutcome, ImportProgress, SourceError, SourceFile, SourceRecorder, SourceRecorderOptions,
};
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

use crate::bench::{Bench, follow_evidence, sources, store, transcripts};
use crate::sessions::{SESSION, turn};

/// More than are synced one by one.
const FILES: usize = 8;
const EIO: i32 = 5;

/// The outcome of each file, in the order in which it was reported.
#[derive(Default, Debug, PartialEq, Eq)]
struct Told {
    done: Vec<(String, ImportOutcome)>,
    failed: usize,
}

impl ImportProgress for Told {
    fn bytes(&mut self, _path: &Path, _count: u64) {}

    fn done(&mut self, file: &SourceFile, outcome: ImportOutcome) {
        self.done.push((file.path().file_name().unwrap().to_string_lossy().into_owned(), outcome));
    }

    fn failed(&mut self, _file: &SourceFile, _error: &SourceError) {
        self.failed += 1;
    }
}

fn name(number: usize) -> String {
    SESSION.replace(&SESSION[..2], &format!("{:02x}", 16 + number))
}

/// Writes the files, or the first half of each.
fn write(bench: &Bench, is_whole: bool) {
    for number in 0..FILES {
        let name = name(number);
        let text = [turn(1, 2), turn(11, 1)].concat().replace(SESSION, &name);
        let text = if is_whole { text.as_str() } else { &text[..text.len() / 2] };
        let path = bench.claude(&format!("projects/p/{name}.jsonl"));
        fs::write(&path, text).unwrap();
        let time = UNIX_EPOCH + Duration::from_hours(490_000);
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    }
}

fn import(bench: &Bench, disk: &SimDisk, lanes: usize) -> Result<Told, Box<dyn std::error::Error>> {
    let journal = Journal::new(Store::create(Arc::new(disk.clone()))?, Options::default());
    let options = SourceRecorderOptions { lanes, ..SourceRecorderOptions::default() };
    let mut archive = SourceRecorder::open(journal, options)?;
    let mut told = Told::default();
    archive.import(&bench.places().list().files, &mut told);
    archive.settle()?;
    Ok(told)
}

/// Imports everything without a fault.
fn whole(bench: &Bench) -> SimDisk {
    write(bench, true);
    let whole = store();
    import(bench, &whole, 1).unwrap();
    assert_eq!(transcripts(&whole).len(), FILES);
    whole
}

/// Counts the events whose bytes the vault does not have.
fn without_evidence(disk: &SimDisk) -> u64 {
    let report = follow_evidence(disk);
    report.wrong + report.elsewhere + report.unreadable
}

#[track_caller]
fn check_same(disk: &SimDisk, whole: &SimDisk, what: &str) {
    assert!(transcripts(disk) == transcripts(whole), "the transcripts differ: {what}");
    assert!(sources(disk) == sources(whole), "the sources differ: {what}");
    assert_eq!(without_evidence(disk), 0, "{what}");
}

/// What the first process meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncKind {
    Whole,
    EachFile,
}

/// The first process dies in any call while it imports halves of the files; returns how many calls there were.
fn crash_everywhere(kind: SyncKind, death: Death, step: usize) -> u64 {
    let bench = Bench::new();
    let whole = whole(&bench);
    for call in (1..).step_by(step) {
        let disk = SimDisk::new(call);
        if kind == SyncKind::EachFile {
            disk.refuse_whole_syncs();
        }
        write(&bench, false);
        disk.plan(Fault::DieAt { call });
        let first = import(&bench, &disk, 1);
        if disk.fired() == 0 {
            assert!(first.is_ok());
            return call;
        }
        let what = format!("{kind:?}, {death:?} in call {call}");
        let disk = disk.die(death);
        // Whatever survived has its evidence, even if the agent deletes its files now.
        assert_eq!(without_evidence(&disk), 0, "{what}");
        write(&bench, true);
        import(&bench, &disk, 1).unwrap();
        check_same(&disk, &whole, &what);
    }
    unreachable!("there are as many numbers as calls")
}

#[test]
fn kill_in_any_call_of_a_round_changes_nothing() {
    assert!(crash_everywhere(SyncKind::Whole, Death::Kill, 2) > 60);
}

#[test]
fn power_cut_in_any_call_of_a_round_changes_nothing() {
    assert!(crash_everywhere(SyncKind::Whole, Death::PowerCut, 1) > 60);
}

#[test]
fn crash_in_a_round_without_whole_syncs_changes_nothing() {
    assert!(crash_everywhere(SyncKind::EachFile, Death::PowerCut, 3) > 90);
    assert!(crash_everywhere(SyncKind::EachFile, Death::Kill, 7) > 90);
}

#[test]
fn power_cut_after_an_import_loses_nothing() {
    let bench = Bench::new();
    let whole = whole(&bench);
    for seed in 0..10 {
        for lanes in [1, 3] {
            let disk = SimDisk::new(seed);
            let told = import(&bench, &disk, lanes).unwrap();
            assert_eq!(told.failed, 0);
            let disk = disk.die(Death::PowerCut);
            check_same(&disk, &whole, &format!("seed {seed}, {lanes} lanes"));
            let told = import(&bench, &disk, 1).unwrap();
            assert!(told.done.iter().all(|(_, outcome)| *outcome == ImportOutcome::Unchanged), "{told:?}");
        }
    }
}

#[test]
fn failed_whole_sync_fails_its_sources_and_the_next_import_goes_on() {
    let bench = Bench::new();
    let whole = whole(&bench);
    for lanes in [1, 3] {
        let mut nth = 0;
        loop {
            nth += 1;
            let disk = SimDisk::new(nth);
            disk.plan(Fault::Fail { kind: Call::SyncWhole, nth, error: EIO });
            let told = import(&bench, &disk, lanes).unwrap();
            if disk.fired() == 0 {
                // Several lanes share the files as they find time: with few files each, they sync one by one.
                assert!(lanes > 1 || nth > 3, "only {nth} syncs with {lanes} lanes");
                break;
            }
            assert!(told.failed > 0, "the failure of sync {nth} was not reported");
            let recorded =
                told.done.iter().filter(|(_, outcome)| *outcome == ImportOutcome::Recorded).count();
            assert_eq!(recorded + told.failed, FILES, "{told:?}");
            let disk = disk.die(Death::PowerCut);
            assert_eq!(without_evidence(&disk), 0, "sync {nth}");
            import(&bench, &disk, lanes).unwrap();
            check_same(&disk, &whole, &format!("{lanes} lanes, sync {nth} failed"));
        }
    }
}

#[test]
fn failed_call_in_a_round_loses_nothing() {
    let bench = Bench::new();
    let whole = whole(&bench);
    for kind in [Call::Write, Call::Create, Call::Rename, Call::SyncDir, Call::Sync] {
        let mut fired = 0;
        for nth in (1..).step_by(3) {
            let disk = SimDisk::new(nth);
            disk.plan(Fault::Fail { kind, nth, error: EIO });
            import(&bench, &disk, 1).ok();
            if disk.fired() == 0 {
                break;
            }
            fired += 1;
            let disk = disk.die(Death::PowerCut);
            assert_eq!(without_evidence(&disk), 0, "{kind:?} {nth}");
            import(&bench, &disk, 1).unwrap();
            check_same(&disk, &whole, &format!("{kind:?} {nth} failed"));
        }
        assert!(fired > 0, "{kind:?} never failed");
    }
}

#[test]
fn lanes_record_and_report_the_same() {
    let bench = Bench::new();
    write(&bench, true);
    // A copy of a session in another project.
    let copied = bench.claude(&format!("projects/p/{}.jsonl", name(0)));
    fs::create_dir_all(bench.claude("projects/q")).unwrap();
    fs::copy(&copied, bench.claude(&format!("projects/q/{}.jsonl", name(0)))).unwrap();
    let one = store();
    let told = import(&bench, &one, 1).unwrap();
    assert_eq!((told.done.len(), told.failed, transcripts(&one).len()), (FILES + 1, 0, FILES));
    for lanes in 2..6 {
        let several = store();
        assert_eq!(import(&bench, &several, lanes).unwrap(), told);
        check_same(&several, &one, &format!("{lanes} lanes"));
    }
}
