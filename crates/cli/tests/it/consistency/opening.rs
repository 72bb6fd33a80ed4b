//! A directory gives the same answers as the store that it is imported into.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_testkit::{needs, shared_dir};

use super::answers::text;
use super::orders::{checkpoints, differs, longest_source};
use super::stores::without_places;
use super::{CAPTURES, each_of, parts};
use crate::kit::{Steno, json};

/// Returns the answers of `show`, `tree` and `export atif` for some names, by session and without places.
fn answers(steno: &Steno, names: &[String]) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for name in names {
        for command in ["show", "tree"] {
            let said = steno.run(&[command, name, "--json"]);
            assert_eq!(said.code, 0, "{command} {name}: {}", said.err);
            all.extend(
                said.json().into_iter().map(|value| (format!("{command} {}", text(&value["run_id"])), value)),
            );
        }
        let dir = tempfile::tempdir().unwrap();
        let said =
            steno.run(&["export", "atif", name, "-o", &dir.path().join("t").to_string_lossy(), "--json"]);
        for row in said.json().iter().filter(|row| row.get("file").is_some()) {
            let trajectory = json(&std::fs::read_to_string(text(&row["file"])).unwrap());
            all.insert(format!("atif {}", text(&row["run_id"])), trajectory);
        }
    }
    all.values_mut().for_each(without_places);
    all
}

/// Compares the answers of a directory with those of the store that it is imported into.
fn check(path: &Path) -> Vec<String> {
    let steno = Steno::new();
    let here = answers(&steno, &[path.to_string_lossy().into_owned()]);
    assert!(here.len() >= 3, "{}: {:?}", path.display(), here.keys());
    assert_eq!(steno.run(&["import", &path.to_string_lossy()]).code, 0, "{}", path.display());
    let sessions: Vec<String> =
        steno.run(&["ls", "--json"]).json().iter().map(|row| text(&row["run_id"])).collect();
    let stored = answers(&steno, &sessions);
    let mut wrong = Vec::new();
    for view in here.keys().chain(stored.keys().filter(|view| !here.contains_key(*view))) {
        let of = |answers: &BTreeMap<String, Value>| answers.get(view).cloned().unwrap_or_default();
        let difference = differs(&of(&here), &of(&stored), "");
        wrong.extend(difference.map(|difference| format!("{}: {view}: {difference}", path.display())));
    }
    wrong
}

#[track_caller]
fn check_all(paths: &[PathBuf]) {
    let wrong: Vec<String> = each_of(paths, |path| check(path)).concat();
    assert!(wrong.is_empty(), "the path, and the store:\n{}", wrong.join("\n"));
}

#[test]
fn directory_gives_the_same_answers_as_its_import() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let paths: Vec<PathBuf> = CAPTURES.iter().flat_map(|place| parts(&shared, place)).collect();
    check_all(&paths);
}

#[test]
fn checkpoints_give_the_same_answers_as_their_import() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let dir = tempfile::tempdir().unwrap();
    let put = |part: &str| {
        let dir = dir.path().join(Path::new(part).file_name().unwrap());
        checkpoints(&longest_source(&shared.join(part)), &dir);
        dir
    };
    let parts = [
        "captures/claude/2.1.325/main",
        "captures/codex/0.166.0/exec_main",
        "captures/copilot/1.0.102/main_responses",
    ];
    check_all(&parts.map(put));
}
