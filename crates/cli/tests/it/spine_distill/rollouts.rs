//! Tasks are made from the rollout if it is beside the spine, and from the records otherwise.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use steno_testkit::{needs, tool};

use super::kit::{Repo, Session, mended};
use crate::kit::Steno;

const THREAD: &str = "0199c2a4-0000-7000-8000-000000000001";

/// A session of two turns.
fn session(repo: &Repo) -> Session {
    let mut session = Session::new(repo);
    session.asks("Make `add` add.").changes(&mended()).runs("./check.sh", 0).ends();
    session.asks("Now `mul`.").changes(&json!({"mul.py": {"type": "add", "content": "def mul(): pass"}}));
    session.runs("python3 -m unittest -q", 0).ends();
    session
}

/// What each turn of a spine would become.
#[track_caller]
fn list(steno: &Steno, spine: &str) -> Vec<Value> {
    let said = steno.run(&["spine", "distill", spine, "--list", "--json", "--allow", "missing-records"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn calls(turns: &[Value]) -> Vec<u64> {
    turns.iter().map(|turn| turn["calls"].as_u64().unwrap()).collect()
}

/// Makes the rollout of a bundle one that nothing protects, and changes its text.
fn change_rollout(bundle: &Path, change: impl Fn(&str) -> String) {
    let about = bundle.join("bundle.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&about).unwrap()).unwrap();
    json.as_object_mut().unwrap().remove("rollout_files").unwrap();
    fs::write(&about, json.to_string() + "\n").unwrap();
    let file = bundle.join(format!("rollout/rollout-{THREAD}.jsonl"));
    let text = change(&fs::read_to_string(&file).unwrap());
    fs::write(file, text).unwrap();
}

#[test]
fn rollout_is_read_where_it_is_and_records_where_not() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let session = session(&Repo::new(&steno));
    // A crash left the beginning of a line, and the next record stands behind it: the spine has both as one unreadable line,
    // and the adapter finds the record.
    let text = session.text();
    let call = text.lines().find(|line| line.contains("call_1") && line.contains("FileChange")).unwrap();
    let torn = text.replace(call, &format!("{}{call}", &call[..20]));
    let archive = session.bundled_as(&steno, "b.tar.zst", &torn);
    let directory = session.bundled_as(&steno, "b", &torn);
    let of_rollout = list(&steno, &archive);
    assert_eq!(calls(&of_rollout), [2, 2]);
    assert_eq!(of_rollout[0]["task"], true, "{of_rollout:?}");
    assert_eq!(list(&steno, &directory), of_rollout);

    fs::remove_dir_all(Path::new(&directory).join("rollout")).unwrap();
    change_bundle_without_rollout(Path::new(&directory));
    let of_records = list(&steno, &directory);
    assert_eq!(of_records[0]["task"], false, "{of_records:?}");
    assert_eq!(of_records[1]["seqs"], of_rollout[1]["seqs"]);
}

fn change_bundle_without_rollout(bundle: &Path) {
    let about = bundle.join("bundle.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&about).unwrap()).unwrap();
    json["rollout_files"] = json!([]);
    fs::write(&about, json.to_string() + "\n").unwrap();
}

#[test]
fn rollout_that_continues_or_is_another_changes_nothing() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let session = session(&Repo::new(&steno));
    let bundle = session.bundled(&steno, "b");
    let want = list(&steno, &bundle);
    assert_eq!(calls(&want), [2, 2]);
    let changes: [&dyn Fn(&str) -> String; 5] = [
        &|text| format!("{text}{}\n{{\"torn", text.lines().nth(1).unwrap()),
        &|text| text.replace("10:00:02", "11:00:02").replace("./check.sh", "./other.sh"),
        &|text| text.replace("./check.sh", "./checks.sh"),
        &|text| text.lines().take(4).collect::<Vec<_>>().join("\n"),
        &|_| String::new(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let name = format!("b{number}");
        let bundle = session.bundled(&steno, &name);
        change_rollout(Path::new(&bundle), change);
        assert_eq!(list(&steno, &bundle), want, "change {number}");
    }
}

#[test]
fn thread_of_the_store_is_read_from_its_session_file() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let session = session(&Repo::new(&steno));
    let want = list(&steno, &session.bundled(&steno, "b"));
    let dir = steno.dir.path().join(".codex/sessions/2026/05/01");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join(format!("rollout-2026-05-01T10-00-00-{THREAD}.jsonl"));
    fs::write(&file, session.text()).unwrap();
    for args in [&["import"][..], &["spine", "record", THREAD]] {
        let said = steno.run(args);
        assert_eq!(said.code, 0, "{said:?}");
    }
    assert_eq!(list(&steno, THREAD), want);
    // The session continues, and is compressed later.
    let more = session.text() + &session.text().lines().skip(1).collect::<Vec<_>>().join("\n") + "\n";
    fs::write(&file, &more).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(list(&steno, THREAD), want);
    fs::remove_file(&file).unwrap();
    fs::write(file.with_extension("jsonl.zst"), zstd::encode_all(more.as_bytes(), 1).unwrap()).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(list(&steno, THREAD), want);
}
