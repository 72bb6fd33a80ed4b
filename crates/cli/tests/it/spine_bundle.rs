//! `steno spine bundle`: what is included, what is included on request, what is masked, and what is left out.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::kit::{Steno, json};
use crate::spine::{KEY, THREAD, archive_rollout, check, draft, files_below, spine_dir, with_spine};
use steno_model::SpineType;

fn about(bundle: &Path) -> Value {
    json(&fs::read_to_string(bundle.join("bundle.json")).unwrap())
}

/// All bytes of a directory.
fn all_of(bundle: &Path) -> String {
    let bytes = files_below(bundle).into_iter().flat_map(|name| fs::read(bundle.join(name)).unwrap());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

#[test]
fn snapshots_are_masked_unless_whole_is_given() {
    let steno = with_spine();
    archive_rollout(&steno);
    let at = |name: &str| steno.dir.path().join(name);
    let bundle = |name: &str, args: &[&str]| {
        let path = at(name).display().to_string();
        steno.run(&[&["spine", "bundle", THREAD, "-o", &path], args].concat())
    };
    check(&bundle("masked", &["--with-snapshot"]), 0, &["was changed: 1 value of exported variables masked"]);
    assert!(!all_of(&at("masked")).contains(KEY));
    let changed = &about(&at("masked"))["changed"];
    let file = changed[0]["file"].as_str().unwrap();
    assert_eq!((changed.as_array().unwrap().len(), &changed[0]["masked"]), (1, &json!(1)));
    assert_eq!(fs::read_to_string(at("masked").join(file)).unwrap(), "declare -x KEY=\"***\"\n");
    assert_eq!(about(&at("masked"))["left_out"], Value::Null);
    let said = steno.run(&["spine", "validate", "masked"]);
    check(&said, 0, &["valid", "info     bundle.changed", "the values of exported variables are masked"]);
    // With an inserted value it differs from the hash in the bundle.
    fs::write(at("masked").join(file), "declare -x KEY=\"sk-\"\n").unwrap();
    check(&steno.run(&["spine", "validate", "masked"]), 1, &["artifact.sha256", "`bundle.json` says"]);
    check(&bundle("whole", &["--with-snapshot=whole"]), 0, &["bundled"]);
    assert!(all_of(&at("whole")).contains(KEY));
    assert_eq!(about(&at("whole"))["changed"], Value::Null);
    assert_eq!(steno.run(&["spine", "validate", "whole"]).out.lines().count(), 1);
    let said = bundle("masked.tar.zst", &["--with-snapshot=masked", "--json"]).json();
    assert_eq!((&said[0]["masked_values"], &said[0]["left_out"]), (&json!(1), &json!(0)));
    check(&steno.run(&["spine", "validate", "masked.tar.zst"]), 0, &["bundle.changed"]);
    check(&bundle("bad", &["--with-snapshot=some"]), 2, &["masked", "whole"]);
    // The store is unchanged.
    assert_eq!(steno.run(&["verify"]).code, 0);
}

/// Values that shells must escape are masked completely.
#[test]
fn masked_exports_have_no_values() {
    let values = [
        "plain",
        "two words",
        "new\nline\nSECRET",
        "it's",
        "\"SECRET\"",
        "$(SECRET)",
        "`SECRET`",
        "a\\",
        "=SECRET=",
        "#SECRET",
    ];
    let mut shells = 0;
    for shell in ["bash", "zsh", "sh", "dash", "ksh"] {
        let mut command = std::process::Command::new(shell);
        command.env_clear().args(["-c", "echo '# exports'; export -p"]);
        for (number, value) in values.iter().enumerate() {
            command.env(format!("VALUE_{number}"), format!("SECRET{value}SECRET"));
        }
        let Ok(output) = command.output() else { continue };
        shells += 1;
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.matches("SECRET").count() >= values.len() * 2, "{shell}: {text}");
        let (masked, count) = steno_spine::mask_exports(text.as_bytes());
        let masked = String::from_utf8(masked).unwrap();
        assert!(!masked.contains("SECRET") && !masked.contains("plain"), "{shell}: {masked}");
        assert!(count >= values.len() as u64, "{shell}: {count} in {masked}");
        for number in 0..values.len() {
            assert!(masked.contains(&format!("VALUE_{number}=\"***\"\n")), "{shell}: {masked}");
        }
    }
    assert!(shells > 0, "there is no shell");
}

const BASE: &str = "0199bbbb-0000-7000-8000-000000000001";
const FORK: &str = "0199cccc-0000-7000-8000-000000000001";

fn rollout(thread: &str, base: Option<&str>) -> String {
    let base = base.map_or(String::new(), |base| {
        format!(r#""history_base":{{"thread_id":"{base}","end_ordinal_exclusive":1,"end_byte_offset":1}},"#)
    });
    format!(
        r#"{{"timestamp":"2026-01-31T08:15:24.123Z","type":"session_meta","payload":{{"id":"{thread}",{base}"timestamp":"2026-01-31T08:15:24.123Z","cwd":"/p","originator":"codex_exec","cli_version":"0.166.0","source":"exec"}}}}"#
    ) + "\n"
}

fn file_of(thread: &str) -> String {
    format!("rollout-2026-01-31T08-15-24-{thread}.jsonl")
}

/// A store with a fork of a fork, archived and recorded as a spine.
fn forked() -> Steno {
    let steno = Steno::new();
    let dir = steno.dir.path().join(".codex/sessions/2026/01/31");
    fs::create_dir_all(&dir).unwrap();
    for (thread, base) in [(THREAD, None), (BASE, Some(THREAD)), (FORK, Some(BASE))] {
        fs::write(dir.join(file_of(thread)), rollout(thread, base)).unwrap();
    }
    check(&steno.run(&["import"]), 0, &[]);
    check(&steno.run(&["spine", "record", FORK]), 0, &["recorded"]);
    steno
}

#[test]
fn base_rollouts_of_a_fork_are_named_and_included_on_request() {
    let steno = forked();
    let at = |name: &str| steno.dir.path().join(name);
    let bundle =
        |name: &str, args: &[&str]| steno.run(&[&["spine", "bundle", FORK, "-o", name], args].concat());
    check(&bundle("without", &[]), 0, &["--with-base", &format!("continues thread {BASE}")]);
    let left_out = about(&at("without"))["left_out"].clone();
    let files: Vec<_> =
        left_out.as_array().unwrap().iter().map(|out| out["file"].as_str().unwrap()).collect();
    assert_eq!(files, [BASE, THREAD].map(|thread| format!("rollout/{}", file_of(thread))));
    assert_eq!(files_below(&at("without")).iter().filter(|name| name.starts_with("rollout/")).count(), 1);
    check(&steno.run(&["spine", "validate", "without"]), 0, &["info     bundle.left_out", "--with-base"]);
    let said = bundle("with", &["--with-base"]);
    check(&said, 0, &["bundled"]);
    assert!(!said.err.contains("left out"), "{said:?}");
    for (thread, base) in [(THREAD, None), (BASE, Some(THREAD)), (FORK, Some(BASE))] {
        let kept = fs::read_to_string(at("with").join("rollout").join(file_of(thread))).unwrap();
        assert_eq!(kept, rollout(thread, base));
    }
    let about = about(&at("with"));
    let threads: Vec<_> = about["rollout_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rollout| rollout["thread_id"].clone())
        .collect();
    assert_eq!(threads, [Value::Null, json!(BASE), json!(THREAD)]);
    assert!(about["rollout_path"].as_str().unwrap().contains(FORK));
    assert_eq!(steno.run(&["spine", "validate", "with"]).out.lines().count(), 1);
    // A base that is changed afterwards is found.
    fs::write(at("with").join("rollout").join(file_of(BASE)), "{}\n").unwrap();
    check(&steno.run(&["spine", "validate", "with"]), 1, &["bundle.rollout"]);
}

#[test]
fn missing_base_is_named() {
    let steno = forked();
    check(&steno.run(&["forget", BASE, "--yes"]), 0, &[]);
    for args in
        [&["spine", "bundle", FORK, "-o", "one"][..], &["spine", "bundle", FORK, "-o", "two", "--with-base"]]
    {
        check(&steno.run(args), 0, &[&format!("thread {BASE}, which is not archived")]);
    }
    // Also when only the spine knows of it.
    let path = steno.dir.path().join(format!(".codex/sessions/2026/01/31/{}", file_of(FORK)));
    check(&steno.run(&["forget", FORK, "--yes"]), 0, &["1 spine"]);
    check(&steno.run(&["spine", "record", "--again", path.to_str().unwrap()]), 0, &[]);
    for (name, is_there) in [("three", true), ("four", false)] {
        if !is_there {
            fs::remove_file(&path).unwrap();
        }
        let said = steno.run(&["spine", "bundle", FORK, "-o", name]);
        check(&said, 0, &[&format!("`rollout/{BASE}.jsonl` was left out")]);
        assert_eq!(
            said.err.contains("is neither in the store nor at its original path"),
            !is_there,
            "{said:?}"
        );
        check(&steno.run(&["spine", "validate", name]), 0, &["bundle.left_out"]);
    }
}

#[test]
fn artifact_of_an_unknown_kind_is_left_out_and_listed() {
    let steno = with_spine();
    let artifacts = spine_dir(&steno).join("artifacts");
    fs::write(artifacts.join("hologram-1"), "?").unwrap();
    let spine = crate::spine::open(&steno);
    let payload = r#"{"kind":"hologram","artifact_path":"artifacts/hologram-1","sha256":"?"}"#;
    spine.record(&draft(SpineType::ArtifactRef, payload), steno_journal::Level::Synced).unwrap();
    spine.close().unwrap();
    let said = steno.run(&["spine", "validate", THREAD]);
    check(&said, 0, &["warning  artifact.kind"]);
    assert!(!said.out.contains("artifact.unused"), "{}", said.out);
    let said = steno.run(&["spine", "bundle", THREAD, "-o", "out"]);
    check(&said, 0, &["`artifacts/hologram-1` was left out: it is of a kind that we don't know, `hologram`"]);
    let out = steno.dir.path().join("out");
    assert!(!out.join("artifacts/hologram-1").exists());
    let left_out = about(&out)["left_out"].clone();
    assert!(
        left_out.as_array().unwrap().iter().any(|out| out["file"] == "artifacts/hologram-1"),
        "{left_out}"
    );
    check(&steno.run(&["spine", "validate", "out"]), 0, &["bundle.left_out", "hologram"]);
}

#[test]
fn other_archive_formats_are_refused() {
    let steno = with_spine();
    for name in ["x.tar.gz", "x.tgz", "x.tar", "x.zip", "X.ZIP", "x.zst", "-"] {
        let said = steno.run(&["spine", "bundle", THREAD, "-o", name]);
        check(&said, 2, &["a bundle cannot be written to", "`.tar.zst`, or a directory"]);
        assert!(!steno.dir.path().join(name).exists(), "{name}");
    }
}

#[test]
fn write_error_names_the_requested_output() {
    let steno = with_spine();
    for name in ["nodir/x.tar.zst", "nodir/x"] {
        let said = steno.run(&["spine", "bundle", THREAD, "-o", name]);
        check(&said, 3, &[&format!("cannot write `{name}`: No such file or directory")]);
        assert!(!said.err.contains("steno-"), "{said:?}");
    }
    steno.record(&[
        r#"{"type":"run.started"}"#,
        r#"{"type":"step.started","path":"a","payload":{"name":"a","kind":"prompt"}}"#,
    ]);
    let long = format!("{}.jsonl", "x".repeat(250));
    let said = steno.run(&["export", "atif", crate::kit::RUN, "-o", &long]);
    check(&said, 3, &[&format!("cannot write `{long}`: ")]);
    assert!(!said.err.contains(".tmp"), "{said:?}");
}

/// The rollout files of a bundle, with what they hold.
fn rollouts_in(bundle: &Path) -> Vec<(String, String)> {
    let names = files_below(bundle).into_iter().filter(|name| name.starts_with("rollout/"));
    names.map(|name| (name.clone(), fs::read_to_string(bundle.join(&name)).unwrap())).collect()
}

#[test]
fn bundle_has_a_rollout_that_was_imported_or_recorded_by_path() {
    let steno = Steno::new();
    let at = |name: &str| steno.dir.path().join(name);
    fs::create_dir(at("files")).unwrap();
    fs::write(at("files/first of all.jsonl"), rollout(THREAD, None)).unwrap();
    fs::write(at("files/named.jsonl"), rollout(BASE, None)).unwrap();
    // A stream of the same thread is not a rollout.
    let stream = format!("{{\"type\":\"thread.started\",\"thread_id\":\"{THREAD}\"}}\n");
    fs::write(at("files/stream.jsonl"), stream).unwrap();
    check(&steno.run(&["import", "files/first of all.jsonl", "files/stream.jsonl"]), 0, &["codex"]);
    check(&steno.run(&["spine", "record", "--all"]), 0, &[&format!("recorded  {THREAD}")]);
    fs::remove_file(at("files/first of all.jsonl")).unwrap();
    check(&steno.run(&["spine", "bundle", THREAD, "-o", "archived"]), 0, &["bundled"]);
    let want = ("rollout/first_of_all.jsonl".to_owned(), rollout(THREAD, None));
    assert_eq!(rollouts_in(&at("archived")), [want]);
    check(&steno.run(&["spine", "record", "files/named.jsonl"]), 0, &["recorded"]);
    let said = steno.run(&["spine", "bundle", BASE, "-o", "named"]);
    check(&said, 0, &["bundled"]);
    assert!(!said.err.contains("no rollout"), "{said:?}");
    let want = ("rollout/named.jsonl".to_owned(), rollout(BASE, None));
    assert_eq!(rollouts_in(&at("named")), [want]);
    for name in ["archived", "named"] {
        let said = steno.run(&["spine", "validate", name]);
        assert_eq!((said.code, said.out.lines().count()), (0, 1), "{said:?}");
    }
    // The file there now belongs to another thread, or not to Codex.
    for text in [rollout(FORK, None), "root:x:0:0\n".to_owned()] {
        fs::write(at("files/named.jsonl"), text).unwrap();
        check(
            &steno.run(&["spine", "bundle", BASE, "-o", "without"]),
            0,
            &["is neither in the store nor at its original path"],
        );
        assert_eq!(rollouts_in(&at("without")), []);
        fs::remove_dir_all(at("without")).unwrap();
    }
}

#[test]
fn bundle_time_is_the_time_of_its_newest_record() {
    let steno = forked();
    let at = |name: &str| steno.dir.path().join(name);
    for name in ["one", "other", "one.tar.zst", "other.tar.zst"] {
        check(&steno.run(&["spine", "bundle", FORK, "-o", name]), 0, &["bundled"]);
    }
    assert_eq!(about(&at("one"))["created_at"], "2026-01-31T08:15:24.123Z");
    assert_eq!(all_of(&at("one")), all_of(&at("other")));
    assert_eq!(fs::read(at("one.tar.zst")).unwrap(), fs::read(at("other.tar.zst")).unwrap());
}
