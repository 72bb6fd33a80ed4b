//! A process is killed at any disk call, with sources that feed one run or several: the next process writes each event
//! once.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use steno_journal::{Journal, Options, Store};
use steno_recorder::sources::{SourceRecorder, SourceRecorderOptions};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};

use crate::bench::{Bench, sources, store, transcripts};

fn try_import(bench: &Bench, store: &SimDisk) -> Result<(), Box<dyn std::error::Error>> {
    let journal = Journal::new(Store::create(Arc::new(store.clone()))?, Options::default());
    let mut archive = SourceRecorder::open(journal, SourceRecorderOptions::default())?;
    bench.import_what_works(&mut archive);
    Ok(archive.settle()?)
}

/// Writes a file with a fixed modification time, which records without a time get.
fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    let time = UNIX_EPOCH + Duration::from_hours(490_000);
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

/// The first process finds half of the file, the next one all of it.
fn check(sample: &str, death: Death) {
    let mut bench = Bench::new();
    bench.given = vec![bench.path("given")];
    fs::create_dir_all(bench.path("given")).unwrap();
    let file = bench.path("given/sample.jsonl");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters/tests/golden");
    let bytes = fs::read(samples.join(sample)).unwrap();
    let half = &bytes[..bytes.len() / 2];
    write(&file, &bytes);
    let whole = store();
    try_import(&bench, &whole).unwrap();
    for call in 1.. {
        let disk = SimDisk::new(call);
        write(&file, half);
        disk.plan(Fault::DieAt { call });
        let first = try_import(&bench, &disk);
        if disk.fired() == 0 {
            assert!(first.is_ok() && call > 30, "{sample}: only {call} calls");
            return;
        }
        let disk = disk.die(death);
        write(&file, &bytes);
        try_import(&bench, &disk).unwrap();
        assert_eq!(transcripts(&disk), transcripts(&whole), "{sample} at call {call}, {death:?}");
        assert_eq!(sources(&disk), sources(&whole), "{sample} at call {call}, {death:?}");
    }
}

#[test]
fn kill_or_power_cut_at_any_disk_call_changes_nothing() {
    for sample in [
        "claude/background.in.jsonl",
        "codex/rollout_blocks.in.jsonl",
        "codex/app_server_blocks.in.jsonl",
        "codex/exec_plain_old.in.jsonl",
    ] {
        check(sample, Death::Kill);
        check(sample, Death::PowerCut);
    }
}
