//! A newer adapter derives runs again from the vault: each run once, without losses, also after a kill at any point.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use steno_adapters::adapter_versions;
use steno_disk::StorePath;
use steno_journal::{
    Error as JournalError, Journal, Level, NoteKind, Options, Store, check_file, check_run, read_notes,
};
use steno_model::{Draft, Provider, RunId};
use steno_recorder::sources::{
    RederiveProgress, RederiveReport, SourceError, SourceRecorder, SourceRecorderOptions, SourceToRederive,
    plan_rederive,
};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};
use steno_vault::{AdapterProgress, Remainder, Vault};

use crate::bench::{
    Bench, Step, append, archive, copy, copy_of, follow_evidence, store, transcript, transcript_path,
    transcripts,
};
use crate::sessions::{SESSION, codex_call, prompt, response, rollout, turn};

const NOW: &str = "2026-01-02T03:04:05.000Z";

/// Fails the test at a failure.
struct Strict;

impl RederiveProgress for Strict {
    fn failed(&mut self, source: &SourceToRederive, error: &SourceError) {
        panic!("{}: {error:?}", source.path.display());
    }
}

/// Ignores failures.
struct Lenient;

impl RederiveProgress for Lenient {
    fn failed(&mut self, _source: &SourceToRederive, _error: &SourceError) {}
}

fn rederive(store: &SimDisk) -> RederiveReport {
    let mut archive = archive(store);
    let plan = archive.rederive_plan().unwrap();
    let done = archive.rederive(&plan, &mut Strict);
    archive.settle().unwrap();
    done
}

fn try_rederive(store: &SimDisk) -> Result<RederiveReport, Box<dyn std::error::Error>> {
    let journal = Journal::new(Store::create(Arc::new(store.clone()))?, Options::default());
    let mut archive = SourceRecorder::open(journal, SourceRecorderOptions::default())?;
    let plan = archive.rederive_plan()?;
    let done = archive.rederive(&plan, &mut Lenient);
    archive.settle()?;
    Ok(done)
}

fn opened(disk: &SimDisk) -> Store {
    Store::open(Arc::new(disk.clone())).unwrap()
}

/// Replaces every adapter version in a text with an older one.
fn older(text: &str) -> String {
    adapter_versions().iter().fold(text.to_owned(), |text, adapter| {
        let name = adapter.split('/').next().unwrap();
        text.replace(adapter, &format!("{name}/0"))
    })
}

/// Returns the transcript of an older adapter, which did not know results.
fn aged(transcript: &str) -> String {
    let lines = transcript.lines().filter(|line| !line.contains(r#""type":"tool.result""#));
    let number = |(seq, line): (usize, &str)| {
        let rest = line.split_once(',').unwrap().1;
        format!("{{\"seq\":{},{}\n", seq + 1, older(rest))
    };
    lines.enumerate().map(number).collect()
}

/// Makes a store look as if an older adapter had derived its runs.
fn age(store: &SimDisk) {
    for (run, text) in transcripts(store) {
        store.tamper(&transcript_path(&run), aged(&text).as_bytes());
        store.delete(&StorePath::transcripts().below(format_args!("{run}.seals.jsonl")));
        journal(store).record(RunId::parse(&run).unwrap()).unwrap().close().unwrap();
    }
    let vault = Vault::create(Arc::new(store.clone())).unwrap();
    for id in vault.sources().unwrap() {
        let manifest = vault.manifest(id).unwrap().unwrap();
        let Some(adapted) = manifest.adapted else { continue };
        let adapted = AdapterProgress { adapter: older(&adapted.adapter), ..adapted };
        let mut writer = vault.write(id, &manifest.info, NOW).unwrap();
        writer.save_state(manifest.cursor, Some(adapted), NOW, Remainder::InChunks).unwrap();
    }
    vault.close_pack().unwrap();
}

fn journal(store: &SimDisk) -> Journal {
    Journal::new(Store::create(Arc::new(store.clone())).unwrap(), Options::default())
}

/// Returns the superseded transcripts with a number, by run.
fn superseded(store: &SimDisk, number: u32) -> BTreeMap<String, String> {
    let name = format!(".jsonl.superseded-{number}");
    let all = store.snapshot().into_iter();
    let kept = all.filter_map(|(path, bytes)| {
        let run = path.strip_prefix("transcripts/")?.strip_suffix(&name)?;
        (!run.contains('.')).then(|| (run.to_owned(), String::from_utf8(bytes).unwrap()))
    });
    kept.collect()
}

/// Returns a store with the runs of the current adapter, and a copy with the runs of an older one.
fn with_old_runs(bench: &Bench) -> (SimDisk, SimDisk) {
    let (claude, codex) = (session_file(bench), bench.codex("sessions/2026/01/02"));
    fs::create_dir_all(&codex).unwrap();
    fs::write(codex.join(format!("rollout-2026-01-02T03-04-05-{}.jsonl", crate::sessions::THREAD)), {
        rollout() + &codex_call(1)
    })
    .unwrap();
    let whole = store();
    fs::write(&claude, turn(1, 2)).unwrap();
    bench.import(&whole);
    fs::write(&claude, response(4, 0) + &turn(5, 3)).unwrap();
    bench.import(&whole);
    let old = copy_of(&whole);
    age(&old);
    (whole, old)
}

fn session_file(bench: &Bench) -> std::path::PathBuf {
    bench.claude(&format!("projects/p/{SESSION}.jsonl"))
}

#[track_caller]
fn check_seals(disk: &SimDisk, about: &str) {
    let store = opened(disk);
    for run in store.runs().unwrap() {
        check_run(&store, run, Vec::new()).unwrap_or_else(|error| panic!("{about}: {run}: {error}"));
    }
}

#[test]
fn runs_of_an_older_adapter_are_derived_again_without_files() {
    let bench = Bench::new();
    let (whole, disk) = with_old_runs(&bench);
    let old = transcripts(&disk);
    assert_ne!(old, transcripts(&whole));
    fs::remove_dir_all(bench.path("claude")).unwrap();
    fs::remove_dir_all(bench.path("codex")).unwrap();
    assert!(archive(&disk).may_need_rederive());
    let done = rederive(&disk);
    assert_eq!((done.sources, done.runs, done.runs_new, done.events_carried), (2, 2, 0, 0), "{done:?}");
    assert_eq!(transcripts(&disk), transcripts(&whole));
    assert_eq!(superseded(&disk, 1), old);
    assert_eq!(follow_evidence(&disk).wrong, 0);
    check_seals(&disk, "after");
    // A second call does nothing.
    let again = rederive(&disk);
    assert_eq!(again, RederiveReport::default());
    assert!(superseded(&disk, 2).is_empty());
    let mut before = archive(&disk);
    before.note_derived().unwrap();
    assert!(!before.may_need_rederive() && !archive(&disk).may_need_rederive());
}

#[test]
fn grown_file_is_appended_to_the_new_transcript_once() {
    let bench = Bench::new();
    let (whole, disk) = with_old_runs(&bench);
    let old = transcripts(&disk);
    append(&session_file(&bench), &(prompt(20) + &response(21, 1)));
    bench.import(&whole);
    let followed = copy_of(&disk);
    // A process that continues the source derives it again first.
    bench.import(&disk);
    bench.follow(&followed, []);
    for disk in [&disk, &followed] {
        assert_eq!(transcripts(disk)[SESSION], transcripts(&whole)[SESSION]);
        assert_eq!(superseded(disk, 1)[SESSION], old[SESSION]);
        rederive(disk);
        assert_eq!(transcripts(disk), transcripts(&whole));
        assert_eq!(superseded(disk, 1), old);
        assert!(superseded(disk, 2).is_empty());
    }
    // After that, new records are appended.
    append(&session_file(&bench), &prompt(22));
    bench.import(&disk);
    bench.import(&whole);
    assert_eq!(transcripts(&disk), transcripts(&whole));
}

#[test]
fn import_after_rederive_reads_nothing() {
    let bench = Bench::new();
    let (_, disk) = with_old_runs(&bench);
    rederive(&disk);
    let health = bench.import(&disk);
    assert_eq!((health.files_new, health.bytes_read, health.events), (0, 0, 0), "{health:?}");
}

#[test]
fn events_of_others_keep_their_place() {
    let bench = Bench::new();
    let path = session_file(&bench);
    fs::write(&path, turn(1, 2)).unwrap();
    let disk = store();
    bench.import(&disk);
    record(&disk, "first");
    append(&path, &turn(5, 1));
    bench.import(&disk);
    record(&disk, "second");
    record(&disk, "third");
    let whole = transcript(&disk);
    age(&disk);
    let done = rederive(&disk);
    assert_eq!((done.runs, done.events_carried), (1, 3), "{done:?}");
    // Foreign events keep their place among the new results.
    assert_eq!(transcript(&disk), whole);
    let notes = read_notes(&disk, RunId::parse(SESSION).unwrap()).unwrap();
    assert!(matches!(&notes[0].what, NoteKind::Rederived { carried: 3, superseded: 1, .. }), "{notes:?}");
    append(&path, &prompt(9));
    let health = bench.import(&disk);
    assert_eq!(health.events, 3, "the end of a turn, the start of another, and its prompt");
    assert!(transcript(&disk).starts_with(&whole));
}

/// Records an event into the run of the session, like `steno record`.
fn record(disk: &SimDisk, text: &str) {
    let run = RunId::parse(SESSION).unwrap();
    let line = format!(
        r#"{{"type":"step.completed","timestamp":"2026-01-02T04:00:00.000Z","payload":{{"name":"{text}","kind":"system"}},"mine":[1.50]}}"#
    );
    let recorder = journal(disk).record(run).unwrap();
    recorder.record(Draft::parse(line.as_bytes(), run).unwrap(), Level::Synced).unwrap();
    recorder.close().unwrap();
}

/// Kills the process at every disk call. One source may feed several runs; each is the old or the new one at any time.
fn check_every_death(sample: &str, death: Death) {
    let mut bench = Bench::new();
    bench.given = vec![bench.path("given")];
    fs::create_dir_all(bench.path("given")).unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters/tests/golden");
    fs::copy(samples.join(sample), bench.path("given/sample.jsonl")).unwrap();
    let whole = store();
    bench.import(&whole);
    let aged = copy_of(&whole);
    age(&aged);
    let (old, new) = (transcripts(&aged), transcripts(&whole));
    fs::remove_dir_all(bench.path("given")).unwrap();
    for call in 1.. {
        let about = format!("{sample} at call {call}, {death:?}");
        let disk = copy_of(&aged);
        disk.plan(Fault::DieAt { call });
        let first = try_rederive(&disk);
        if disk.fired() == 0 {
            assert!(first.is_ok() && call > 40, "{sample}: only {call} calls");
            return;
        }
        let disk = disk.die(death);
        for (run, text) in transcripts(&disk) {
            assert!(text == old[&run] || text == new[&run], "{about}: {run} is half");
        }
        check_seals(&disk, &about);
        assert_eq!(try_rederive(&disk).unwrap().sources_failed, 0, "{about}");
        assert_eq!(transcripts(&disk), new, "{about}");
        assert_eq!(superseded(&disk, 1), old, "{about}");
        assert!(superseded(&disk, 2).is_empty(), "{about}");
        check_seals(&disk, &about);
        let left = plan_rederive(&opened(&disk), &Vault::open(Arc::new(disk.clone()))).unwrap();
        assert_eq!(left.runs(), 0, "{about}");
    }
}

#[test]
fn crash_at_any_disk_call_leaves_old_or_new_runs() {
    for sample in ["claude/background.in.jsonl", "codex/app_server_blocks.in.jsonl"] {
        check_every_death(sample, Death::Kill);
        check_every_death(sample, Death::PowerCut);
    }
}

/// The damage to a run's files before it is derived again.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Change,
    Delete,
    DeleteWithSeals,
}

/// Damages the files of a run; returns the transcript that must be kept.
fn harm(disk: &SimDisk, run: &str, harm: Harm) -> Option<String> {
    let path = transcript_path(run);
    match harm {
        Harm::Change => {
            let bad = transcripts(disk)[run].replacen("\"seq\":2,", "\"seq\":7,", 1);
            disk.tamper(&path, bad.as_bytes());
            return Some(bad);
        }
        Harm::Delete => disk.delete(&path),
        Harm::DeleteWithSeals => {
            disk.delete(&path);
            disk.delete(&StorePath::transcripts().below(format_args!("{run}.seals.jsonl")));
        }
    }
    None
}

/// Derives the given runs again.
fn mend(store: &SimDisk, runs: &[RunId]) -> Result<RederiveReport, Box<dyn std::error::Error>> {
    let journal = Journal::new(Store::create(Arc::new(store.clone()))?, Options::default());
    let mut archive = SourceRecorder::open(journal, SourceRecorderOptions::default())?;
    let plan = archive.rederive_plan_of(runs)?;
    let done = archive.rederive(&plan, &mut Lenient);
    archive.settle()?;
    Ok(done)
}

/// Kills the process at every disk call: a damaged run is unchanged or repaired at any time.
fn check_every_death_while_mending(how: Harm, death: Death) {
    let bench = Bench::new();
    fs::write(session_file(&bench), turn(1, 2)).unwrap();
    let whole = store();
    bench.import(&whole);
    let new = transcripts(&whole);
    let harmed = copy_of(&whole);
    let bad = harm(&harmed, SESSION, how);
    let run = RunId::parse(SESSION).unwrap();
    for call in 1.. {
        let about = format!("{how:?} at call {call}, {death:?}");
        let disk = copy_of(&harmed);
        disk.plan(Fault::DieAt { call });
        let first = mend(&disk, &[run]);
        if disk.fired() == 0 {
            assert!(first.is_ok() && call > 20, "{about}");
            return;
        }
        let disk = disk.die(death);
        let found = transcripts(&disk).remove(SESSION);
        assert!(found == bad || found.as_ref() == Some(&new[SESSION]), "{about}: {found:?}");
        assert_eq!(mend(&disk, &[run]).unwrap().sources_failed, 0, "{about}");
        assert_eq!(transcripts(&disk), new, "{about}");
        assert_eq!(superseded(&disk, 1)[SESSION], bad.clone().unwrap_or_default(), "{about}");
        assert!(superseded(&disk, 2).is_empty(), "{about}");
        check_seals(&disk, &about);
        assert_eq!(opened(&disk).superseded_damaged(run).unwrap(), [1], "{about}");
        // The next opening of the run completes the exchange.
        journal(&disk).record(run).unwrap().close().unwrap();
        let notes = read_notes(&disk, run).unwrap();
        assert!(matches!(&notes[0].what, NoteKind::Rederived { flaw: Some(_), .. }), "{about}: {notes:?}");
    }
}

#[test]
fn crash_while_repairing_leaves_the_old_or_a_whole_run() {
    for how in [Harm::Change, Harm::Delete, Harm::DeleteWithSeals] {
        check_every_death_while_mending(how, Death::Kill);
        check_every_death_while_mending(how, Death::PowerCut);
    }
}

#[test]
fn missing_run_of_a_newer_adapter_is_left_alone() {
    let bench = Bench::new();
    fs::write(session_file(&bench), turn(1, 2)).unwrap();
    let disk = store();
    bench.import(&disk);
    let vault = Vault::create(Arc::new(disk.clone())).unwrap();
    let manifest = vault.manifest(vault.sources().unwrap()[0]).unwrap().unwrap();
    let adapted =
        manifest.adapted.map(|adapted| AdapterProgress { adapter: "claude/99".to_owned(), ..adapted });
    let mut writer = vault.write(manifest.id, &manifest.info, NOW).unwrap();
    writer.save_state(manifest.cursor, adapted, NOW, Remainder::InChunks).unwrap();
    drop(writer);
    vault.close_pack().unwrap();
    harm(&disk, SESSION, Harm::DeleteWithSeals);
    let mut archive = archive(&disk);
    archive.note_derived().unwrap();
    assert!(!archive.may_need_rederive());
    assert_eq!(archive.rederive_plan().unwrap().sources, []);
}

#[test]
fn missing_run_is_derived_and_keeps_its_seals() {
    let bench = Bench::new();
    fs::write(session_file(&bench), turn(1, 2)).unwrap();
    let disk = store();
    bench.import(&disk);
    let run = RunId::parse(SESSION).unwrap();
    harm(&disk, SESSION, Harm::Delete);
    mend(&disk, &[run]).unwrap();
    let bad = harm(&disk, SESSION, Harm::Change);
    mend(&disk, &[run]).unwrap();
    age(&disk);
    let old = transcript(&disk);
    rederive(&disk);
    assert_eq!(superseded(&disk, 1)[SESSION], "");
    assert_eq!(
        (superseded(&disk, 2).remove(SESSION), superseded(&disk, 3).remove(SESSION)),
        (bad, Some(old))
    );
    let store = opened(&disk);
    assert_eq!(store.superseded_damaged(run).unwrap(), [1, 2]);
    let kept = &store.superseded(run).unwrap()[2];
    let (seals, _) = store.beside_superseded(run, kept).unwrap();
    let file = store.disk().open_read(kept).unwrap().unwrap();
    check_file(file, kept, Some(run), seals).unwrap();
}

#[test]
fn missing_run_is_derived_but_a_copy_is_not() {
    let bench = Bench::new();
    let (whole, _) = with_old_runs(&bench);
    fs::create_dir_all(bench.claude("projects/copy")).unwrap();
    fs::copy(session_file(&bench), bench.claude(&format!("projects/copy/{SESSION}.jsonl"))).unwrap();
    bench.import(&whole);
    let disk = copy_of(&whole);
    disk.delete(&transcript_path(SESSION));
    disk.delete(&StorePath::transcripts().below(format_args!("{SESSION}.seals.jsonl")));
    let done = rederive(&disk);
    assert_eq!((done.sources, done.runs, done.runs_new), (1, 0, 1), "{done:?}");
    assert_eq!(transcripts(&disk), transcripts(&whole));
}

#[test]
fn stored_file_becomes_a_run_once_an_adapter_reads_it() {
    let bench = Bench::new();
    fs::write(session_file(&bench), turn(1, 2)).unwrap();
    let whole = store();
    bench.import(&whole);
    // A program without the adapter stores the file and derives no run.
    let disk = copy_of(&whole);
    disk.delete(&transcript_path(SESSION));
    disk.delete(&StorePath::transcripts().below(format_args!("{SESSION}.seals.jsonl")));
    let vault = Vault::create(Arc::new(disk.clone())).unwrap();
    let manifest = vault.manifest(vault.sources().unwrap()[0]).unwrap().unwrap();
    vault
        .write(manifest.id, &manifest.info, NOW)
        .unwrap()
        .save_state(manifest.cursor, None, NOW, Remainder::InChunks)
        .unwrap();
    vault.close_pack().unwrap();
    assert_eq!(rederive(&disk).runs_new, 1);
    assert_eq!(transcripts(&disk), transcripts(&whole));
}

#[test]
fn kill_of_an_older_adapter_leaves_no_mixed_transcript() {
    let bench = Bench::new();
    let path = session_file(&bench);
    fs::write(&path, turn(1, 2)).unwrap();
    let (whole, killed) = (store(), store());
    // A killed follower has not saved its position.
    let disk = store();
    bench.follow(&disk, [Box::new(|| copy(&disk, &killed)) as Step<'_>]);
    let text = aged(&transcript(&killed));
    killed.tamper(&transcript_path(SESSION), text.as_bytes());
    killed.delete(&StorePath::transcripts().below(format_args!("{SESSION}.seals.jsonl")));
    append(&path, &turn(5, 1));
    bench.import(&whole);
    bench.import(&killed);
    assert_eq!(transcripts(&killed), transcripts(&whole));
    assert_eq!(superseded(&killed, 1)[SESSION], text);
}

#[test]
fn held_source_or_run_is_skipped() {
    let bench = Bench::new();
    let (whole, disk) = with_old_runs(&bench);
    let old = transcripts(&disk);
    let held = journal(&disk).record(RunId::parse(SESSION).unwrap()).unwrap();
    let done = rederive(&disk);
    assert_eq!((done.sources, done.sources_held, done.is_complete()), (1, 1, false), "{done:?}");
    assert_eq!(transcripts(&disk)[SESSION], old[SESSION]);
    held.close().unwrap();
    let vault = Vault::create(Arc::new(disk.clone())).unwrap();
    let left = plan_rederive(&opened(&disk), &vault).unwrap();
    let manifest = vault.manifest(left.sources[0].id).unwrap().unwrap();
    let writer = vault.write(manifest.id, &manifest.info, NOW).unwrap();
    assert_eq!(rederive(&disk).sources_held, 1);
    drop(writer);
    assert_eq!(rederive(&disk).runs, 1);
    assert_eq!(transcripts(&disk), transcripts(&whole));
}

#[test]
fn obsolete_run_is_withdrawn_unless_it_has_events_of_others() {
    let bench = Bench::new();
    let (whole, disk) = with_old_runs(&bench);
    let old = transcripts(&disk);
    let gone = RunId::parse("0f000000-0000-4000-8000-00000000dead").unwrap();
    let text = old[SESSION].replace(SESSION, &gone.to_string());
    disk.tamper(&transcript_path(&gone.to_string()), text.as_bytes());
    let shared = RunId::parse("0f000000-0000-4000-8000-00000000beef").unwrap();
    let text_shared = old[SESSION].replace(SESSION, &shared.to_string());
    disk.tamper(&transcript_path(&shared.to_string()), text_shared.as_bytes());
    let line = br#"{"type":"step.completed","payload":{"name":"mine","kind":"system"}}"#;
    let recorder = journal(&disk).record(shared).unwrap();
    recorder.record(Draft::parse(line, shared).unwrap(), Level::Synced).unwrap();
    recorder.close().unwrap();
    let done = rederive(&disk);
    assert_eq!((done.runs, done.runs_withdrawn, done.runs_kept), (2, 1, 1), "{done:?}");
    assert!(!transcripts(&disk).contains_key(&gone.to_string()));
    assert_eq!(superseded(&disk, 1)[&gone.to_string()], text);
    assert!(transcripts(&disk)[&shared.to_string()].starts_with(&text_shared));
    assert_eq!(transcripts(&disk)[SESSION], transcripts(&whole)[SESSION]);
    // Forgetting the source also finds the withdrawn run.
    let withdrawn = steno_recorder::forget::withdrawn_runs(&opened(&disk)).unwrap();
    let source = awaiting_source(&disk);
    assert_eq!(withdrawn, [(gone, source)]);
}

fn awaiting_source(disk: &SimDisk) -> steno_vault::SourceId {
    let vault = Vault::open(Arc::new(disk.clone()));
    let is_claude = |id: &steno_vault::SourceId| {
        vault.manifest(*id).unwrap().unwrap().info.known_provider() == Some(Provider::Claude)
    };
    vault.sources().unwrap().into_iter().find(is_claude).unwrap()
}

#[test]
fn run_with_a_broken_seal_stays() {
    let bench = Bench::new();
    let (_, disk) = with_old_runs(&bench);
    let changed = transcripts(&disk)[SESSION].replace("Prompt 1", "Prompt 2");
    disk.tamper(&transcript_path(SESSION), changed.as_bytes());
    let done = rederive(&disk);
    assert_eq!((done.runs, done.runs_kept), (1, 1), "{done:?}");
    assert_eq!(transcripts(&disk)[SESSION], changed);
    let run = RunId::parse(SESSION).unwrap();
    assert!(matches!(check_run(&opened(&disk), run, Vec::new()), Err(JournalError::SealBroken { .. })));
    // It is not tried again and is not counted as waiting.
    let mut tried = archive(&disk);
    let left = tried.rederive_plan().unwrap();
    tried.rederive(&left, &mut Strict);
    tried.note_derived().unwrap();
    assert!(!archive(&disk).may_need_rederive());
    assert_eq!(archive(&disk).rederive_plan().unwrap().runs(), 0);
    // An import does not continue it either.
    append(&session_file(&bench), &prompt(30));
    bench.import_what_works(&mut archive(&disk));
    assert_eq!(transcripts(&disk)[SESSION], changed);
}

#[test]
fn damaged_evidence_keeps_its_runs_and_is_not_retried() {
    let bench = Bench::new();
    let (_, disk) = with_old_runs(&bench);
    let old = transcripts(&disk);
    for (path, mut bytes) in disk.snapshot().into_iter().filter(|(path, _)| path.starts_with("vault/packs/"))
    {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        disk.tamper(&StorePath::new(path), &bytes);
    }
    let mut tried = archive(&disk);
    let found = tried.rederive_plan().unwrap();
    let done = tried.rederive(&found, &mut Lenient);
    assert!(done.runs_kept > 0 && done.is_complete(), "{done:?}");
    let changed = transcripts(&disk).into_iter().filter(|(run, text)| old[run] != *text).count() as u64;
    assert_eq!(changed, done.runs);
    tried.note_derived().unwrap();
    assert!(!archive(&disk).may_need_rederive());
    // New bytes are still archived.
    append(&session_file(&bench), &prompt(30));
    let health = bench.import_with(&mut archive(&disk));
    assert!(health.bytes_read > 0 && health.files_failed == 0, "{health:?}");
    assert_eq!(transcripts(&disk)[SESSION], old[SESSION]);
}

#[test]
fn full_disk_keeps_old_runs_and_can_be_retried() {
    let bench = Bench::new();
    let (whole, disk) = with_old_runs(&bench);
    let old = transcripts(&disk);
    let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    for room in [600, 2_000, 6_000] {
        disk.set_room(Some(used as u64 + room));
        try_rederive(&disk).ok();
        for (run, text) in transcripts(&disk) {
            assert!(text == old[&run] || text == transcripts(&whole)[&run], "{run} is half");
        }
    }
    disk.set_room(None);
    rederive(&disk);
    assert_eq!(transcripts(&disk), transcripts(&whole));
    assert_eq!(superseded(&disk, 1), old);
    assert!(superseded(&disk, 2).is_empty());
}

#[test]
fn runs_without_evidence_stay_and_are_counted() {
    let bench = Bench::new();
    let (_, disk) = with_old_runs(&bench);
    let old = transcripts(&disk);
    for (path, _) in disk.snapshot().into_iter().filter(|(path, _)| path.starts_with("vault/")) {
        disk.delete(&StorePath::new(path));
    }
    let done = rederive(&disk);
    assert_eq!((done.sources, done.runs_without_evidence, done.is_complete()), (0, 2, true), "{done:?}");
    assert_eq!(transcripts(&disk), old);
}
