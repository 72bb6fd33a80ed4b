//! `steno spine`: checks, repairs, bundles and lists spines, and overwrites nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_disk::RealDisk;
use steno_journal::{ArtifactFile, Journal, Level, Options, Rotation, SpineWriter, Store};
use steno_model::json::RawJson;
use steno_model::{SpineDraft, SpineType, ThreadId, Timestamp};
use steno_testkit::places;

use crate::kit::{CommandOutput, Steno, TIME, json};

pub const THREAD: &str = "0199aaaa-0000-7000-8000-000000000001";
const SMALL: Rotation = Rotation { bytes_max: 100_000, records_max: 2 };
pub const KEY: &str = "sk-dummy-scripted";
const ROLLOUT: &str = concat!(
    r#"{"timestamp":"2026-01-31T08:15:24.123Z","type":"session_meta","payload":{"id":"0199aaaa-0000-7000-8000-000000000001","#,
    r#""timestamp":"2026-01-31T08:15:24.123Z","cwd":"/p","originator":"codex_exec","cli_version":"0.166.0","source":"exec"}}"#,
    "\n"
);

pub fn draft(record_type: SpineType, payload: &str) -> SpineDraft {
    let payload = RawJson::parse(payload).unwrap();
    SpineDraft::new(record_type, Timestamp::parse(TIME).unwrap(), payload).unwrap()
}

/// Opens the spine of the thread in the store.
pub fn open(steno: &Steno) -> SpineWriter {
    let store = Store::create(Arc::new(RealDisk::create(&steno.store()).unwrap())).unwrap();
    Journal::new(store, Options::default()).spine(&ThreadId::parse(THREAD).unwrap(), SMALL).unwrap()
}

/// Opens the spine of the thread in the store, and writes three records with two artifacts.
pub fn write(steno: &Steno) -> SpineWriter {
    let spine = open(steno);
    spine.record(&draft(SpineType::SessionMeta, r#"{"rollout_path":"/h/r.jsonl"}"#), Level::Synced).unwrap();
    for (kind, what, beside, bytes) in [
        ("git_diff", ArtifactFile::GitDiff, "base_sha", "diff --git a/x b/x\n".to_owned()),
        ("shell_snapshot", ArtifactFile::ShellSnapshot, "shell", format!("declare -x KEY=\"{KEY}\"\n")),
    ] {
        let kept = spine.keep_artifact(what, bytes.as_bytes()).unwrap();
        let payload = format!(
            r#"{{"kind":"{kind}","{beside}":"x","artifact_path":"{}","sha256":"{}"}}"#,
            kept.artifact_path, kept.sha256
        );
        spine.record(&draft(SpineType::ArtifactRef, &payload), Level::Synced).unwrap();
    }
    spine
}

pub fn with_spine() -> Steno {
    let steno = Steno::new();
    write(&steno).close().unwrap();
    steno
}

pub fn spine_dir(steno: &Steno) -> PathBuf {
    steno.store().join("spine").join(THREAD)
}

/// Archives a rollout of the thread, compressed as Codex leaves old ones.
pub fn archive_rollout(steno: &Steno) -> PathBuf {
    let dir = steno.dir.path().join(".codex/sessions/2026/01/31");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(format!("rollout-2026-01-31T08-15-24-{THREAD}.jsonl.zst"));
    fs::write(&path, zstd::encode_all(ROLLOUT.as_bytes(), 3).unwrap()).unwrap();
    // A thread that was rolled back continues in another file.
    let again = format!("rollout-2026-01-31T09-15-24-{THREAD}_0199aaaa-0000-7000-8000-000000000002.jsonl");
    fs::write(dir.join(again), ROLLOUT).unwrap();
    let said = steno.run(&["import"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    path
}

#[track_caller]
pub fn check(said: &CommandOutput, code: i32, words: &[&str]) {
    assert_eq!(said.code, code, "{}{}", said.out, said.err);
    for word in words {
        assert!(said.out.contains(word) || said.err.contains(word), "`{word}` in {}{}", said.out, said.err);
    }
}

#[test]
fn spine_is_named_by_thread_prefix_or_directory() {
    let steno = with_spine();
    let before = steno.look();
    let dir = spine_dir(&steno).display().to_string();
    for what in [
        &["spine", "validate"][..],
        &["spine", "validate", THREAD],
        &["spine", "validate", "0199"],
        &["spine", "validate", &dir],
    ] {
        let said = steno.run(what);
        check(&said, 0, &["2 segments, 3 records", "sealed"]);
        assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    }
    check(&steno.run(&["spine", "validate", "0198"]), 1, &["no spine of `0198`", "steno spine ls"]);
    check(&steno.run(&["spine", "validate", "./nothing"]), 3, &["No such file"]);
    check(&steno.run(&["spine", "ls"]), 0, &[THREAD, "sealed", "3 records", "2 segments"]);
    let listed = json(steno.run(&["spine", "ls", "--json"]).out.trim());
    assert_eq!((&listed["state"], &listed["records"]), (&"sealed".into(), &3.into()));
    steno.assert_unchanged(&before, "looking");
}

#[test]
fn findings_have_rule_place_and_severity() {
    let steno = with_spine();
    let path = spine_dir(&steno).join("segment-000.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("base_sha", "base\u{9b}2J")).unwrap();
    let before = steno.look();
    let said = steno.run(&["spine", "validate", THREAD, "--json"]);
    let lines = said.json();
    assert_eq!(said.code, 1);
    let of =
        |rule: &str| lines.iter().find(|line| line["rule"] == rule).unwrap_or_else(|| panic!("{lines:?}"));
    let shape = of("payload.shape");
    assert_eq!(
        (&shape["file"], &shape["line"], &shape["severity"]),
        (&"segment-000.jsonl".into(), &2.into(), &"error".into())
    );
    assert!(of("meta.sha256")["offset"].is_null());
    assert_eq!(lines.last().unwrap()["valid"], false);
    let said = steno.run(&["spine", "validate", THREAD]);
    check(&said, 1, &["INVALID", "error    payload.shape", "segment-000.jsonl:2", "the spine is not valid"]);
    check(&steno.run(&["spine", "validate", THREAD, "--repair"]), 1, &["INVALID", "nothing was changed"]);
    let out = steno.dir.path().join("out").display().to_string();
    check(&steno.run(&["spine", "bundle", THREAD, "-o", &out]), 1, &["is not valid; nothing was written"]);
    // Taking the lock for the repair is seen in the lock's own file alone.
    let now = steno.look();
    let changed: Vec<_> = now.keys().filter(|name| before.get(*name) != now.get(*name)).collect();
    assert!(changed.iter().all(|name| name.starts_with("/locks")), "{changed:?}");
    assert_eq!(now.len(), before.len());
}

#[test]
fn leftovers_of_a_crash_are_reported_and_repaired_on_request() {
    let steno = with_spine();
    let dir = spine_dir(&steno);
    fs::remove_file(dir.join("segment-001.meta.json")).unwrap();
    let whole = fs::read(dir.join("segment-001.jsonl")).unwrap();
    fs::write(dir.join("segment-001.jsonl"), [&whole[..], b"{\"schema"].concat()).unwrap();
    let said = steno.run(&["spine", "validate", THREAD]);
    check(&said, 0, &["info     segment.unsealed", "warning  segment.torn", "valid"]);
    check(&steno.run(&["spine", "ls"]), 0, &["unsealed"]);
    let out = steno.dir.path().join("out").display().to_string();
    check(&steno.run(&["spine", "bundle", THREAD, "-o", &out]), 1, &["left open by a crash", "--repair"]);
    let said = steno.run(&["spine", "validate", THREAD, "--repair"]);
    check(&said, 0, &["kept     segment-001.jsonl", "sealed   segment-001.jsonl: 1 record", "3 records"]);
    assert_eq!(fs::read(dir.join("segment-001.jsonl")).unwrap(), whole);
    let before = steno.look();
    assert_eq!(steno.run(&["spine", "validate", THREAD, "--repair"]).out.lines().count(), 1);
    let now = steno.look();
    let changed: Vec<_> = now.keys().filter(|name| before.get(*name) != now.get(*name)).collect();
    assert!(changed.iter().all(|name| name.starts_with("/locks")), "{changed:?}");
    // Without a store, in place.
    let copy = steno.dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("segment-000.jsonl"), fs::read(dir.join("segment-000.jsonl")).unwrap()).unwrap();
    let copy = copy.display().to_string();
    check(&steno.run(&["spine", "validate", &copy, "--repair"]), 1, &["artifact.missing"]);
    check(&steno.run(&["spine", "validate", &copy]), 1, &["artifact.missing", "segment.unsealed"]);
}

#[test]
fn spine_being_written_is_valid() {
    let steno = Steno::new();
    let spine = write(&steno);
    check(&steno.run(&["spine", "validate", THREAD]), 0, &["it is being written"]);
    check(&steno.run(&["spine", "ls"]), 0, &["recording"]);
    check(&steno.run(&["spine", "validate", THREAD, "--repair"]), 4, &["locked by another writer"]);
    let out = steno.dir.path().join("out");
    let said = steno.run(&["spine", "bundle", THREAD, "-o", &out.display().to_string()]);
    check(&said, 0, &["`spine/segment-001.jsonl` was left out: it is not sealed"]);
    assert!(!out.join("spine/segment-001.jsonl").exists());
    drop(spine);
}

pub fn files_below(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for item in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = item.file_name().into_string().unwrap();
        if item.path().is_dir() {
            names.extend(files_below(&item.path()).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            names.push(name);
        }
    }
    names.sort();
    names
}

#[test]
fn bundle_has_secrets_only_on_request() {
    let steno = with_spine();
    let rollout = archive_rollout(&steno);
    let out = steno.dir.path().join("out");
    let said = steno.run(&["spine", "bundle", "0199", "-o", &out.display().to_string()]);
    check(&said, 0, &["bundled", "was left out: shell snapshots hold exported variables"]);
    let names = files_below(&out);
    assert_eq!(names.len(), 8, "{names:?}");
    assert_eq!(names.iter().filter(|name| name.starts_with("rollout/")).count(), 2, "{names:?}");
    let text: Vec<u8> = names.iter().flat_map(|name| fs::read(out.join(name)).unwrap()).collect();
    assert!(!String::from_utf8_lossy(&text).contains(KEY));
    let kept =
        fs::read_to_string(out.join(format!("rollout/rollout-2026-01-31T08-15-24-{THREAD}.jsonl"))).unwrap();
    assert_eq!(kept, ROLLOUT);
    let about = json(&fs::read_to_string(out.join("bundle.json")).unwrap());
    assert_eq!(about["bundle_version"], "rollout_plus_v0");
    assert_eq!(about["rollout_path"], rollout.display().to_string());
    assert_eq!(about["spine_schema_version"], "codex_trace_spine_v1");
    let said = steno.run(&["spine", "validate", &out.display().to_string()]);
    check(&said, 0, &["valid", "info     bundle.left_out"]);
    check(
        &steno.run(&["spine", "bundle", THREAD, "-o", &out.display().to_string()]),
        1,
        &["already exists; nothing was written"],
    );
    let whole = steno.dir.path().join("whole").display().to_string();
    check(&steno.run(&["spine", "bundle", THREAD, "-o", &whole, "--with-snapshot=whole"]), 0, &["9 files"]);
    assert_eq!(steno.run(&["spine", "validate", &whole]).out.lines().count(), 1);
    let left: Vec<_> =
        fs::read_dir(steno.dir.path()).unwrap().map(|item| item.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".steno-")), "{left:?}");
}

#[test]
fn same_spine_gives_the_same_tar() {
    let steno = with_spine();
    archive_rollout(&steno);
    let at = |name: &str| steno.dir.path().join(name);
    for name in ["one.tar.zst", "other.tar.zst"] {
        let said = steno.run(&["spine", "bundle", THREAD, "-o", &at(name).display().to_string(), "--json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(json(said.out.trim())["records"], 3);
    }
    let bytes = fs::read(at("one.tar.zst")).unwrap();
    assert_eq!(bytes, fs::read(at("other.tar.zst")).unwrap());
    check(&steno.run(&["spine", "validate", "one.tar.zst"]), 0, &["valid", "2 segments, 3 records"]);
    check(&steno.run(&["spine", "validate", "one.tar.zst", "--repair"]), 2, &["is a bundle in a file"]);
    check(&steno.run(&["spine", "bundle", THREAD, "-o", "one.tar.zst"]), 1, &["already exists"]);
    assert_eq!(fs::read(at("one.tar.zst")).unwrap(), bytes);
    fs::write(at("one.tar"), zstd::decode_all(&bytes[..]).unwrap()).unwrap();
    let tar =
        std::process::Command::new("tar").arg("xf").arg("one.tar").current_dir(steno.dir.path()).status();
    assert!(tar.unwrap().success());
    check(&steno.run(&["spine", "validate", "bundle"]), 0, &["valid", "2 segments, 3 records"]);
    // An archive by tar is a bundle too, in the formats that allow long names.
    for form in ["gnu", "pax"] {
        let script = format!("tar --format={form} -cf {form}.tar bundle");
        assert!(
            std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir(steno.dir.path())
                .status()
                .unwrap()
                .success()
        );
        check(
            &steno.run(&["spine", "validate", &format!("{form}.tar")]),
            0,
            &["valid", "2 segments, 3 records"],
        );
    }
    for len in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(at("cut.tar.zst"), &bytes[..len]).unwrap();
        check(&steno.run(&["spine", "validate", "cut.tar.zst"]), 1, &["bundle.archive"]);
    }
}

#[test]
fn bundle_without_a_rollout_names_its_path() {
    let steno = with_spine();
    let out = steno.dir.path().join("out");
    let said = steno.run(&["spine", "bundle", THREAD, "-o", &out.display().to_string()]);
    check(&said, 0, &["is neither in the store nor at its original path"]);
    let about = json(&fs::read_to_string(out.join("bundle.json")).unwrap());
    assert_eq!(
        (&about["rollout_path"], &about["rollout_files"]),
        (&"/h/r.jsonl".into(), &serde_json::json!([]))
    );
    let said = steno.run(&["spine", "validate", "out"]);
    check(&said, 0, &["valid", "warning  bundle.no_rollout", "1 warning"]);
}

#[test]
fn compression_bomb_or_pipe_is_refused_at_once() {
    let steno = Steno::new();
    let at = |name: &str| steno.dir.path().join(name);
    let mut bomb = zstd::Encoder::new(fs::File::create(at("bomb.tar.zst")).unwrap(), 1).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), 3_000_000_000), &mut bomb).unwrap();
    bomb.finish().unwrap();
    check(&steno.run(&["spine", "validate", "bomb.tar.zst"]), 1, &["it unpacks to more than 2000 times"]);
    places::make_pipe(at("pipe.tar"));
    check(&steno.run(&["spine", "validate", "pipe.tar"]), 3, &["is not a regular file"]);
}

#[test]
fn bundle_on_a_full_disk_leaves_nothing_behind() {
    let steno = with_spine();
    archive_rollout(&steno);
    for out in ["out", "out.tar.zst"] {
        let script = "ulimit -f 1; exec \"$0\" \"$@\"";
        let said = crate::kit::run(steno.shell(script, &["spine", "bundle", THREAD, "-o", out]), b"");
        check(&said, 3, &["File too large"]);
        let left = fs::read_dir(steno.dir.path()).unwrap().map(|item| item.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("out")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    check(&steno.run(&["spine", "bundle", THREAD, "-o", "out"]), 0, &["bundled"]);
}

#[test]
fn session_file_is_not_a_spine() {
    let steno = Steno::new();
    let line = r#"{"timestamp":"2026-01-31T08:15:24.123Z","type":"session_meta","payload":{"id":"t1","cli_version":"0.166.0"}}"#;
    fs::write(steno.dir.path().join("x.jsonl"), format!("{line}\n")).unwrap();
    for args in [&["spine", "validate", "x.jsonl"][..], &["spine", "distill", "x.jsonl", "--list"]] {
        let said = steno.run(args);
        check(
            &said,
            2,
            &["`x.jsonl` is a rollout of Codex, not a spine", "`steno spine record x.jsonl` creates one"],
        );
    }
}
