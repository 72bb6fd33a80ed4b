//! `up`, `import`, `watch`, `restore` and related commands: agents' files are archived, followed and restored.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kit::{CommandOutput, RunningSteno, Steno, json, run, wait_until};

const SESSION: &str = "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee";

/// A record of a session.
fn line(number: u32, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"8d1f0c53-52a4-4b0e-a6a1-{number:012}","sessionId":"{SESSION}","version":"2.1.150","timestamp":"2026-06-08T08:14:{number:02}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

/// The path of the session's file in the home directory.
fn session_file(steno: &Steno) -> PathBuf {
    steno.dir.path().join(format!(".claude/projects/-srv-shop/{SESSION}.jsonl"))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn append(path: &Path, text: &str) {
    use std::io::Write as _;
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[track_caller]
fn done(said: &CommandOutput) {
    assert_eq!(said.code, 0, "{said:?}");
}

/// The prompts that a run has, in order.
fn prompts(steno: &Steno, run: &str) -> Vec<String> {
    let said = steno.run(&["events", run, "--json"]);
    let events = said.out.lines().map(json).filter(|event| event["type"] == "message.user");
    events.map(|event| event["payload"]["blocks"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// Ends a follower like Ctrl-C.
fn interrupt(live: RunningSteno) -> CommandOutput {
    live.signal("INT");
    live.ended()
}

#[test]
fn import_skips_unchanged_files() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "one"));
    let first = steno.run(&["import", "--json"]);
    done(&first);
    let report = json(first.out.trim());
    assert_eq!(
        (&report["files"], &report["files_new"], &report["sessions"]["claude"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!(prompts(&steno, SESSION), ["one"]);
    append(&file, &line(2, "two"));
    done(&steno.run(&["import"]));
    assert_eq!(prompts(&steno, SESSION), ["one", "two"]);
    // A file that was written a moment ago is looked at once more; nothing comes of it.
    for _ in 0..2 {
        let again = json(steno.run(&["import", "--json"]).out.trim());
        assert_eq!((&again["files_new"], &again["events"]), (&0.into(), &0.into()));
    }
    done(&steno.run(&["verify"]));
}

/// What the last report of an import says about the store.
fn store_report(steno: &Steno) -> [serde_json::Value; 3] {
    let said = steno.run(&["import", "--json"]);
    done(&said);
    let report = json(said.out.trim());
    ["sessions", "source_bytes", "oldest"].map(|field| report[field].clone())
}

#[test]
fn import_reports_the_same_store_with_and_without_derived_files() {
    let steno = Steno::new();
    let file = session_file(&steno);
    let other = "3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff";
    let other_file = file.with_file_name(format!("{other}.jsonl"));
    write(&file, &line(1, "one"));
    let derived = ["counts.json", "vault/outlines.jsonl"].map(|name| steno.store().join(name));
    let mut reports = Vec::new();
    for step in 0..3 {
        match step {
            1 => write(&other_file, &line(2, "two").replace(SESSION, other)),
            2 => done(&steno.run(&["forget", SESSION, "--yes"])),
            _ => {}
        }
        let report = store_report(&steno);
        assert!(derived.iter().all(|path| path.is_file()), "step {step}");
        assert_eq!(store_report(&steno), report, "step {step}, nothing new");
        let counts = fs::read_to_string(&derived[0]).unwrap();
        fs::write(&derived[0], counts.replace("\"claude\":", "\"claude\":7")).unwrap();
        assert_eq!(store_report(&steno), report, "step {step}, another number");
        for path in &derived {
            fs::write(path, "{}\n").unwrap();
            assert_eq!(store_report(&steno), report, "step {step}, damaged {}", path.display());
            fs::remove_file(path).unwrap();
            assert_eq!(store_report(&steno), report, "step {step}, without {}", path.display());
        }
        reports.push(report[0]["claude"].as_u64());
    }
    assert_eq!(reports, [Some(1), Some(2), Some(1)]);
}

#[test]
fn import_takes_paths_and_reports_missing_ones() {
    let steno = Steno::new();
    let file = steno.dir.path().join("backup/some.jsonl");
    write(&file, &line(1, "one"));
    done(&steno.run(&["import", "backup"]));
    assert_eq!(prompts(&steno, SESSION), ["one"]);
    let said = steno.run(&["import", "nowhere"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("nowhere` cannot be read"), "{}", said.err);
    // A missing path is reported, and the others are imported.
    append(&file, &line(2, "two"));
    assert_eq!(steno.run(&["import", "nowhere", "backup"]).code, 3);
    assert_eq!(prompts(&steno, SESSION), ["one", "two"]);
    fs::create_dir(steno.dir.path().join("empty")).unwrap();
    assert_eq!(steno.run(&["import", "empty"]).code, 1);
}

#[test]
fn excluded_projects_and_paths_are_not_archived() {
    let steno = Steno::new();
    write(&session_file(&steno), &line(1, "one"));
    let rollout = steno
        .dir
        .path()
        .join(format!(".codex/sessions/2026/06/08/rollout-2026-06-08T08-00-00-{SESSION}.jsonl"));
    let meta = format!(
        r#"{{"timestamp":"2026-06-08T08:00:00.000Z","type":"session_meta","payload":{{"id":"{SESSION}","cwd":"/srv/shop"}}}}"#
    );
    write(&rollout, &(meta + "\n"));
    for (variable, value) in [
        ("STENO_EXCLUDE_PROJECTS", "/srv/*"),
        ("STENO_EXCLUDE_PATHS", "*/.claude,~/.codex"),
        ("STENO_EXCLUDE_PATHS", "~/.claude/projects,~/.codex/sessions/*"),
    ] {
        let mut command = steno.command(&["import", "--json"]);
        command.env(variable, value);
        let report = json(run(command, b"").out.trim());
        assert_eq!(
            (&report["files"], &report["files_excluded"]),
            (&0.into(), &2.into()),
            "{variable}={value}"
        );
    }
}

#[test]
fn restore_writes_the_same_bytes_and_overwrites_nothing() {
    let steno = Steno::new();
    let file = session_file(&steno);
    let sidecar = file.with_extension("").join("tool-results/1.txt");
    let content = line(1, "one") + &line(2, "two") + "{\"torn";
    write(&file, &content);
    write(&sidecar, "much output");
    done(&steno.run(&["import"]));
    fs::remove_dir_all(steno.dir.path().join(".claude")).unwrap();
    done(&steno.run(&["restore", SESSION]));
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
    assert_eq!(fs::read_to_string(&sidecar).unwrap(), "much output");
    let said = steno.run(&["restore", SESSION]);
    assert!(said.code == 0 && said.out.lines().all(|line| line.starts_with("already there")), "{said:?}");
    append(&file, "more");
    fs::remove_file(&sidecar).unwrap();
    let said = steno.run(&["restore", SESSION]);
    assert_eq!((said.code, sidecar.exists()), (1, false), "{said:?}");
    assert!(said.err.contains("hint: `--replace`") && said.err.contains("`--to DIR`"), "{}", said.err);
    done(&steno.run(&["restore", SESSION, "--to", "elsewhere"]));
    let restored = steno.dir.path().join(format!("elsewhere/projects/-srv-shop/{SESSION}.jsonl"));
    assert_eq!(fs::read_to_string(restored).unwrap(), content);
}

#[test]
fn leftovers_of_a_killed_restore_are_not_archived() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "one"));
    let name = ".1.txt.steno-1dc64aaa5faa4c52bec423d295fe81f8";
    write(&file.with_extension("").join("tool-results").join(name), "half");
    let report = json(steno.run(&["import", "--json"]).out.trim());
    assert_eq!((&report["files"], &report["files_new"]), (&1.into(), &1.into()));
}

#[test]
fn every_generation_of_a_rewritten_file_can_be_restored() {
    let steno = Steno::new();
    let file = session_file(&steno);
    let versions = [line(1, "one") + &line(2, "two"), line(2, "two") + &line(3, "three"), line(4, "four")];
    for version in &versions {
        write(&file, version);
        done(&steno.run(&["import"]));
    }
    for (number, version) in versions.iter().enumerate() {
        let to = format!("g{number}");
        done(&steno.run(&["restore", SESSION, "--to", &to, "--generation", &number.to_string()]));
        let restored = steno.dir.path().join(to).join(format!("projects/-srv-shop/{SESSION}.jsonl"));
        assert_eq!(fs::read_to_string(restored).unwrap(), *version);
    }
    assert_eq!(prompts(&steno, SESSION), ["one", "two", "three", "four"]);
    let said = steno.run(&["restore", SESSION, "--generation", "3"]);
    assert_eq!(said.code, 1);
}

#[test]
fn watch_follows_a_session_its_subagents_and_its_end() {
    for args in [&["watch"][..], &["watch", "--poll"]] {
        let steno = Steno::new();
        let file = session_file(&steno);
        write(&file, &line(1, "one"));
        let live = steno.start(args);
        wait_until("the first prompt", || prompts(&steno, SESSION) == ["one"]);
        append(&file, &line(2, "two"));
        wait_until("the second prompt", || prompts(&steno, SESSION) == ["one", "two"]);
        let other = "3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff";
        let beside = file.with_file_name(format!("{other}.jsonl"));
        write(&beside, line(3, "three").replace(SESSION, other).trim_end());
        wait_until("a session that came later, without its newline", || prompts(&steno, other) == ["three"]);
        // The last writes are archived before the end.
        append(&file, &line(4, "four"));
        let said = interrupt(live);
        done(&said);
        assert_eq!(prompts(&steno, SESSION), ["one", "two", "four"], "{args:?}");
        done(&steno.run(&["verify"]));
    }
}

#[test]
fn up_reports_what_it_archived() {
    let steno = Steno::new();
    let said = steno.run(&["up", "--once", "--demo"]);
    done(&said);
    assert!(said.out.contains("2 sessions (1 claude, 1 codex)"), "{}", said.out);
    // Samples have a separate store next to the usual one.
    assert!(!steno.store().exists());
    let samples = steno.dir.path().join("store-demo");
    assert!(said.err.contains(samples.to_str().unwrap()), "{}", said.err);
    assert_eq!(steno.run(&["--store", samples.to_str().unwrap(), "ls"]).out.lines().count(), 2);
    assert_eq!(steno.run(&["--store", samples.to_str().unwrap(), "ls", "--runs"]).out.lines().count(), 3);
    let none = Steno::new();
    let said = none.run(&["up", "--once"]);
    assert!(said.code == 0 && said.err.contains("no agents found on this machine"), "{said:?}");
}

#[test]
fn samples_and_own_sessions_have_separate_stores() {
    let steno = Steno::new();
    done(&steno.run(&["up", "--once", "--demo"]));
    assert_eq!(steno.run(&["ls", "--demo"]).out.lines().count(), 2);
    write(&session_file(&steno), &line(1, "one"));
    let samples = steno.dir.path().join("store-demo").to_str().unwrap().to_owned();
    for args in [
        &["--store", &samples, "up", "--once"][..],
        &["--store", &samples, "import"],
        &["--store", &samples, "service", "install"],
        &["import", "--demo"],
        &["service", "install", "--demo"],
    ] {
        let said = steno.run(args);
        assert!(said.code == 2 && said.err.contains("contains the sample sessions"), "{args:?}: {said:?}");
        assert!(said.err.contains("hint: "), "{args:?}: {said:?}");
    }
    // Usage of the samples and of own sessions is separate.
    let used = steno.run(&["usage", "--demo"]);
    assert!(used.code == 0 && used.err.contains("in the store\n"), "{used:?}");
    // A build directory is deleted by a clean build.
    let build = steno.dir.path().join("target");
    write(&build.join("CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
    let store = build.join("store").to_str().unwrap().to_owned();
    for args in [&["--store", &store, "up", "--once"][..], &["--store", &store, "service", "install"]] {
        let said = steno.run(args);
        assert!(said.code == 2 && said.err.contains("is in the build directory"), "{args:?}: {said:?}");
    }
    assert_eq!(steno.run(&["ls", "--demo"]).out.lines().count(), 2);
}

#[test]
fn steno_alone_shows_the_state_and_next_commands() {
    let steno = Steno::new();
    write(&session_file(&steno), &line(1, "one"));
    let said = steno.run(&[]);
    assert!(said.code == 0 && said.out.contains("nothing is archived yet"), "{said:?}");
    assert!(
        said.out.contains("Claude Code (not followed)") && said.out.contains("steno up  "),
        "{}",
        said.out
    );
    done(&steno.run(&["import"]));
    let said = steno.run(&[]);
    for part in ["1 session in", "last       2026-", "problems   none", "steno show last"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    // A store that cannot be read is not an empty one.
    write(&steno.store().join("format.json"), "{\"version\": 99}");
    let said = steno.run(&[]);
    assert!(said.code == 0 && said.out.contains("cannot be read") && !said.out.contains("yet"), "{said:?}");
    assert!(said.out.contains("problems   1"), "{}", said.out);
}

#[test]
fn doctor_reports_problems_and_fixes() {
    let steno = Steno::new();
    write(&session_file(&steno), &line(1, "one"));
    let said = steno.run(&["doctor"]);
    // Advice is not a problem.
    assert_eq!(said.code, 0);
    for part in ["1 session", "deletes sessions after 30 days", "steno up --once", "steno service install"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let live = steno.start(&["up"]);
    let is_followed = || {
        let said = steno.run(&["doctor", "--json"]);
        said.out.lines().map(json).any(|row| row["kind"] == "store" && row["followed"] == true)
    };
    wait_until("somebody who follows", is_followed);
    let settings = steno.dir.path().join(".claude/settings.json");
    write(&settings, "{\"cleanupPeriodDays\": \"soon\"}");
    let said = steno.run(&["doctor"]);
    assert!(said.code == 1 && said.out.contains("! "), "{said:?}");
    done(&interrupt(live));
}

#[test]
fn database_of_an_agent_is_reported_and_not_recorded() {
    let steno = Steno::new();
    write(&steno.dir.path().join(".local/share/opencode/opencode.db"), "SQLite format 3");
    let said = steno.run(&["doctor"]);
    assert_eq!(said.code, 0, "{said:?}");
    for part in ["opencode.db` are not recorded", "steno run -- opencode run --format json"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    assert!(!said.out.contains("not archived"), "{}", said.out);
}

#[test]
fn pause_stops_recording_until_it_ends() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "one"));
    done(&steno.run(&["pause"]));
    for args in [&["doctor"][..], &[]] {
        let said = steno.run(args).out;
        assert!(said.contains("recording is paused"), "{args:?}: {said}");
    }
    assert_eq!(steno.run(&["import"]).code, 1);
    let live = steno.start(&["watch"]);
    append(&file, &line(2, "two"));
    done(&steno.run(&["resume"]));
    wait_until("what was written during the pause", || prompts(&steno, SESSION) == ["one", "two"]);
    done(&interrupt(live));
    assert_eq!(steno.run(&["resume"]).code, 1);
}

#[test]
fn service_file_is_printed_without_installing_it() {
    let steno = Steno::new();
    let said = steno.run(&["service", "print"]);
    done(&said);
    let store = steno.store();
    assert!(said.out.contains(store.to_str().unwrap()) && said.out.contains("steno"), "{}", said.out);
    assert!(!steno.dir.path().join(".config").exists());
}

#[test]
fn entries_are_logged_and_numbers_continue_after_a_restart() {
    let steno = Steno::new();
    let file = session_file(&steno);
    let log = steno.dir.path().join("entries.jsonl");
    write(&file, &line(1, "one"));
    done(&steno.run(&["import", "--entries", "entries.jsonl"]));
    append(&file, &line(2, "two"));
    let live = steno.start(&["watch", "--entries", "entries.jsonl"]);
    wait_until("the second prompt", || prompts(&steno, SESSION).len() == 2);
    append(&file, &line(3, "three"));
    wait_until("the third prompt", || prompts(&steno, SESSION).len() == 3);
    done(&interrupt(live));
    let records: Vec<_> = fs::read_to_string(log).unwrap().lines().map(json).collect();
    let entries = records.iter().filter(|record| record["event"] == "transcript.entry");
    let numbered: Vec<_> = entries
        .map(|entry| {
            let context = &entry["context"];
            (
                context["sequence_number"].as_u64().unwrap(),
                context["prompt_name"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(numbered, [(1, "one".to_owned()), (2, "one".to_owned()), (3, "one".to_owned())]);
}

/// Tells whether a text occurs in the store, except in compressed chunks.
fn store_has(steno: &Steno, text: &str) -> bool {
    steno.look().values().any(|seen| seen.bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[test]
fn forgotten_sessions_are_archived_again_only_with_again() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "a secret"));
    let other = "3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff";
    write(&file.with_file_name(format!("{other}.jsonl")), &line(2, "another").replace(SESSION, other));
    done(&steno.run(&["import"]));
    let shown = steno.run(&["forget", SESSION, "--dry-run"]);
    assert!(shown.code == 0 && shown.out.contains(SESSION) && !shown.out.contains(other), "{shown:?}");
    assert!(store_has(&steno, "a secret"));
    let asked = steno.run(&["forget", SESSION]);
    assert!(asked.code == 2 && asked.err.contains("--yes"), "{asked:?}");
    done(&steno.run(&["forget", SESSION, "--yes"]));
    assert!(!store_has(&steno, "a secret") && !steno.transcript(SESSION).exists());
    assert_eq!(prompts(&steno, other), ["another"]);
    done(&steno.run(&["verify"]));
    append(&file, &line(3, "more"));
    let report = json(steno.run(&["import", "--json"]).out.trim());
    assert_eq!((&report["files_forgotten"], &report["files_failed"]), (&1.into(), &0.into()));
    assert!(!steno.transcript(SESSION).exists());
    assert_eq!(steno.run(&["restore", SESSION]).code, 1);
    let path = file.to_str().unwrap();
    done(&steno.run(&["import", path, "--again"]));
    assert_eq!(prompts(&steno, SESSION), ["a secret", "more"]);
}

#[test]
fn projects_and_old_sessions_are_forgotten_together() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "one"));
    let old = fs::File::options().append(true).open(&file).unwrap();
    old.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(24 * 100)).unwrap();
    let other = "3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff";
    let young = steno.dir.path().join(format!(".claude/projects/-srv-blog/{other}.jsonl"));
    write(&young, &line(2, "two").replace(SESSION, other));
    done(&steno.run(&["import"]));
    assert_eq!(steno.run(&["forget", "--older-than", "200d", "--yes"]).code, 1);
    done(&steno.run(&["forget", "--older-than", "90d", "--yes"]));
    assert!(!steno.transcript(SESSION).exists() && steno.transcript(other).exists());
    done(&steno.run(&["forget", "--project", "/srv/blog", "--yes"]));
    assert!(!steno.transcript(other).exists());
    assert_eq!(steno.run(&["forget", "--project", "/srv/blog", "--older-than", "1d"]).code, 2);
}

#[test]
fn recorded_session_is_forgotten_only_after_a_pause() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "one"));
    let live = steno.start(&["watch"]);
    wait_until("the first prompt", || prompts(&steno, SESSION) == ["one"]);
    append(&file, &line(2, "two"));
    wait_until("the second prompt", || prompts(&steno, SESSION) == ["one", "two"]);
    let said = steno.run(&["forget", SESSION, "--yes"]);
    assert!(said.code == 4 && said.err.contains("steno pause"), "{said:?}");
    done(&steno.run(&["pause"]));
    wait_until("the end of recording", || steno.run(&["forget", SESSION, "--yes"]).code == 0);
    done(&steno.run(&["resume"]));
    done(&interrupt(live));
    assert!(!steno.transcript(SESSION).exists());
}

#[test]
fn verify_names_sessions_affected_by_damaged_evidence() {
    let steno = Steno::new();
    let file = session_file(&steno);
    let words: Vec<String> = (0..3_000).map(|word| (word * 7_919 % 10_007).to_string()).collect();
    let long = words.join(" ");
    write(&file, &line(1, &long));
    let other = "3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff";
    write(&file.with_file_name(format!("{other}.jsonl")), &line(2, "another").replace(SESSION, other));
    done(&steno.run(&["import"]));
    let said = steno.run(&["verify"]);
    assert!(said.code == 0 && said.out.contains("ok       evidence: 2 files in 1 pack"), "{said:?}");
    let packs = steno.store().join("vault/packs");
    let names = fs::read_dir(packs).unwrap().map(|entry| entry.unwrap().path());
    let pack = names.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "pack")).unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    // Whichever comes first in the pack, the longer chunk is hit.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let said = steno.run(&["verify"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains(&format!("affects session -srv-shop/{SESSION}")), "{}", said.out);
    assert!(!said.out.contains(&format!("affects session -srv-shop/{other}")), "{}", said.out);
    assert_eq!(steno.run(&["restore", SESSION, "--to", "damaged"]).code, 1);
    assert!(!steno.dir.path().join("damaged").exists());
    done(&steno.run(&["restore", other, "--to", "elsewhere"]));
    // The agent's file is undamaged: it is archived again completely, and so are later writes.
    append(&file, &line(3, "more"));
    done(&steno.run(&["import"]));
    append(&file, &line(4, "and more"));
    done(&steno.run(&["import"]));
    let content = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    done(&steno.run(&["restore", SESSION]));
    assert!(fs::read(&file).unwrap() == content);
    let generations = steno.run(&["restore", SESSION, "--list", "--json"]).json()[0]["generations"].clone();
    assert_eq!(generations.as_array().map(Vec::len), Some(2), "{generations}");
}

#[test]
fn forget_deletes_runs_of_record() {
    let steno = Steno::new();
    steno.recorded(crate::kit::RUN, &[serde_json::json!({"type": "run.started"})]);
    done(&steno.run(&["forget", "550e", "--yes"]));
    assert!(!steno.transcript(crate::kit::RUN).exists());
}

#[test]
fn du_shows_used_and_saved_space() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, &"over and over ".repeat(5_000)));
    write(
        &file.with_file_name("3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff.jsonl"),
        &fs::read_to_string(&file).unwrap(),
    );
    done(&steno.run(&["import"]));
    let said = steno.run(&["du", "--json"]);
    done(&said);
    let total = said.json().pop().unwrap();
    assert_eq!(total["sources"], 2);
    assert!(total["saved_by_sharing"].as_u64().unwrap() > 60_000, "{total}");
    assert!(total["saved_by_compression"].as_u64().unwrap() > 60_000, "{total}");
    let said = steno.run(&["du", "--by", "file"]);
    assert!(said.code == 0 && said.out.contains(SESSION), "{said:?}");
    assert_eq!(Steno::new().run(&["du"]).code, 1);
}

#[test]
fn files_without_a_run_are_restored_and_forgotten() {
    let steno = Steno::new();
    let dir = steno.dir.path().join(".copilot/session-state/9a1b2c3d-0000-4000-8000-000000000001");
    let events = dir.join("events.jsonl");
    write(&events, "{\"type\":\"session.start\",\"data\":{},\"id\":\"i\"}\n");
    write(&dir.join("plan.md"), "the plan");
    done(&steno.run(&["import"]));
    fs::remove_dir_all(&dir).unwrap();
    done(&steno.run(&["restore", "9a1b2c3d"]));
    assert!(events.exists() && dir.join("plan.md").exists());
    fs::remove_dir_all(&dir).unwrap();
    done(&steno.run(&["restore", events.to_str().unwrap()]));
    assert!(events.exists() && dir.join("plan.md").exists());
    done(&steno.run(&["forget", events.to_str().unwrap(), "--yes"]));
    assert_eq!(steno.run(&["restore", events.to_str().unwrap()]).code, 2);
}

#[test]
fn import_names_the_process_that_records_skipped_files() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "one"));
    let live = steno.start(&["watch"]);
    wait_until("the first prompt", || prompts(&steno, SESSION) == ["one"]);
    append(&file, &line(2, "two"));
    wait_until("the second prompt", || prompts(&steno, SESSION) == ["one", "two"]);
    append(&file, &line(3, "three"));
    let kept = format!("1 file skipped: another `steno` (pid {}) is recording it", live.pid());
    let said = steno.run(&["import"]);
    assert_eq!((said.code, said.err), (0, format!("{kept}; there was nothing else to archive\n")));
    assert!(said.out.contains("1 file not archived: recorded by another `steno`"), "{}", said.out);
    let other = "3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff";
    write(&steno.dir.path().join("backup/other.jsonl"), &line(4, "four").replace(SESSION, other));
    let said = steno.run(&["import", "backup", file.to_str().unwrap()]);
    assert_eq!((said.code, said.err), (0, kept + "\n"));
    assert_eq!(prompts(&steno, other), ["four"]);
    done(&interrupt(live));
    assert_eq!(prompts(&steno, SESSION), ["one", "two", "three"]);
}

/// Another `import` has a file while it reads it, and does not come back to it.
#[test]
fn import_exits_with_1_if_others_record_every_file() {
    let steno = Steno::new();
    let file = session_file(&steno);
    write(&file, &line(1, "one"));
    done(&steno.run(&["import"]));
    append(&file, &line(2, "two"));
    let locks = fs::read_dir(steno.store().join("locks")).unwrap().map(|entry| entry.unwrap().path());
    let is_of_source = |path: &PathBuf| path.to_str().unwrap().contains("/source-");
    let lock = fs::File::open(locks.into_iter().find(is_of_source).unwrap()).unwrap();
    lock.lock().unwrap();
    for args in [&["import"][..], &["up", "--once"]] {
        let said = steno.run(args);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(
            said.err.contains("nothing was archived: another process is recording 1 file"),
            "{}",
            said.err
        );
        assert!(said.err.contains("hint: try again when it has ended"), "{}", said.err);
    }
    let other = "3a7c8b21-7e1d-4b64-8a6f-6b2cf1d10aff";
    write(&file.with_file_name(format!("{other}.jsonl")), &line(3, "three").replace(SESSION, other));
    let said = steno.run(&["import"]);
    assert!(said.code == 0 && said.err.contains("another process is recording 1 file"), "{said:?}");
    drop(lock);
    done(&steno.run(&["import"]));
    assert_eq!(prompts(&steno, SESSION), ["one", "two"]);
}

#[test]
fn files_with_the_same_name_are_restored_separately() {
    let steno = Steno::new();
    let dir = steno.dir.path().canonicalize().unwrap();
    // A session and two subagents of it: without a home there are only their names to give them back by.
    let parts = ["a/part.jsonl", "b/part.jsonl", "b/main.jsonl"];
    let content = |number: u32, part: &str| {
        let sidechain = format!(r#""isSidechain":true,"agentId":"a{number}","sessionId""#);
        let line = line(number, part);
        if number < 3 { line.replace(r#""sessionId""#, &sidechain) } else { line }
    };
    for (number, part) in (1..).zip(parts) {
        write(&dir.join(part), &content(number, part));
    }
    done(&steno.run(&["import", "a", "b"]));
    let said = steno.run(&["restore", SESSION, "--to", "out"]);
    done(&said);
    let whole = |part: &str| dir.join("out").join(dir.join(part).strip_prefix("/").unwrap());
    for path in [whole(parts[0]), whole(parts[1]), dir.join("out/main.jsonl")] {
        assert!(said.out.contains(path.to_str().unwrap()), "{}: {}", path.display(), said.out);
    }
    for (number, part) in [(1, parts[0]), (2, parts[1])] {
        assert_eq!(fs::read_to_string(whole(part)).unwrap(), content(number, part));
    }
    let again = steno.run(&["restore", SESSION, "--to", "out"]);
    assert!(again.code == 0 && again.out.lines().all(|line| line.starts_with("already there")), "{again:?}");
}
