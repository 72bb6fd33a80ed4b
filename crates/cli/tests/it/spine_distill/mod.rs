//! `steno spine distill`: makes working tasks from the record alone.

mod kit;
mod live;
mod refusals;
mod rollouts;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use steno_testkit::{needs, tool};

use self::kit::{Repo, Session, TEST, distilled, git, mended, tree, works};
use crate::kit::Steno;

fn toml(task: &Path) -> Value {
    let text = fs::read_to_string(task.join("task.toml")).unwrap();
    serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap()
}

/// The reason why a window is refused, which leaves nothing behind.
#[track_caller]
fn refused(steno: &Steno, args: &[&str], want: &str) {
    let out = steno.dir.path().join("refused");
    let args = [&["spine", "distill"], args, &["-o", out.to_str().unwrap()]].concat();
    let said = steno.run(&args);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains(want), "{want}: {said:?}");
    assert!(!out.exists());
    let left = fs::read_dir(steno.dir.path()).unwrap().flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with('.')));
}

#[test]
fn best_successful_command_checks_a_task() {
    needs!(tool("git"), "git is absent");
    needs!(tool("python3"), "python3 is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session
        .asks("Make `add` add.\n\nAnd test it.")
        .changes(&json!({"test_calc.py": {"type": "add", "content": TEST}}));
    session.runs("python3 -m unittest -q test_calc", 1).runs("git status", 0).changes(&mended());
    session.runs("python3 -m unittest -q test_calc 2>&1 | tail -1", 0).runs("./check.sh", 0);
    session.runs("python3 -m unittest -q test_calc", 0).runs("ls", 0).ends();
    let bundle = session.bundled(&steno, "b.tar.zst");
    let task = steno.dir.path().join("task");
    let said =
        distilled(&steno, &[&bundle, "--turns", "1", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    assert!(
        said.out.contains("checked by the tests `python3 -m unittest -q test_calc`, without a solution"),
        "{said:?}"
    );
    assert_eq!(fs::read_to_string(task.join("instruction.md")).unwrap(), "Make `add` add.\n\nAnd test it.\n");
    let steno_table = &toml(&task)["metadata"]["steno"];
    assert_eq!(steno_table["verification"]["kind"], "test_runner");
    assert_eq!(steno_table["verification"]["call"], "call_7");
    assert_eq!(steno_table["verification"]["failed_before"], true);
    let passed: Vec<(&str, &str)> = steno_table["verification"]["passed_over"]
        .as_array()
        .unwrap()
        .iter()
        .map(|passed| (passed["call"].as_str().unwrap(), passed["why"].as_str().unwrap()))
        .collect();
    assert_eq!(
        passed,
        [
            ("call_3", "a file was changed after it"),
            ("call_5", "its exit code is that of `tail`"),
            ("call_6", "call_7 ranks higher or came later"),
            ("call_8", "it checks nothing"),
        ]
    );
    assert_eq!(steno_table["repository"]["commit"], repo.commit.as_str());
    assert_eq!(steno_table["thread"], "0199c2a4-0000-7000-8000-000000000001");
    assert_eq!(steno_table["turn_ids"], json!(["turn-id-1"]));
    assert_eq!(steno_table["calls"].as_array().unwrap().len(), 8);
    // `./check.sh` may have changed something, and so nothing vouches for the patches alone.
    assert_eq!(steno_table["solution"]["kind"], "none");
    assert!(!task.join("solution").exists());
}

#[test]
fn task_is_reproducible_and_works_without_docker() {
    needs!(tool("git"), "git is absent");
    needs!(tool("python3"), "python3 is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session.asks("Make `add` add.").changes(&json!({"test_calc.py": {"type": "add", "content": TEST}}));
    session
        .runs("python3 -m unittest -q test_calc", 1)
        .changes(&mended())
        .runs("python3 -m unittest -q test_calc", 0)
        .ends();
    session
        .asks("Now `mul`, please.")
        .changes(&json!({"mul.py": {"type": "add", "content": "def mul(a, b):\n    return a * b"}}));
    session.runs("python3 -c 'import mul; assert mul.mul(2, 3) == 6'", 0).ends();
    let archive = session.bundled(&steno, "b.tar.zst");
    let directory = session.bundled(&steno, "b");
    let path = |name: &str| steno.dir.path().join(name);
    let distill = |bundle: &str, turns: &str, name: &str| {
        distilled(
            &steno,
            &[bundle, "--turns", turns, "--repo", repo.path(), "-o", path(name).to_str().unwrap()],
        );
        path(name)
    };
    let first = distill(&archive, "1", "first");
    works(&first, &path("first-dir"));
    // The source repository is not changed, and later changes there are not part of the task.
    assert_eq!(git(&repo.dir, &["status", "--short"]), "");
    fs::write(repo.dir.join("calc.py"), "changed").unwrap();
    assert_eq!(tree(&first), tree(&distill(&directory, "1", "again")));
    fs::write(repo.dir.join("calc.py"), kit::CALC).unwrap();
    assert!(!first.join("trajectory.json").exists());

    let second = distill(&archive, "2..", "second");
    works(&second, &path("second-dir"));
    assert_eq!(fs::read_to_string(path("second-dir/calc.py")).unwrap(), kit::CALC.replace('-', "+"));
    assert_eq!(fs::read_to_string(second.join("instruction.md")).unwrap(), "Now `mul`, please.\n");
    let trajectory = second.join("trajectory.json");
    let said = steno.run(&["export", "check", trajectory.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    let text = fs::read_to_string(&trajectory).unwrap();
    assert!(text.contains("Make `add` add.") && !text.contains("mul"), "{text}");

    let both = distill(&archive, "1..2", "both");
    works(&both, &path("both-dir"));
    assert_eq!(
        fs::read_to_string(both.join("instruction.md")).unwrap(),
        "Make `add` add.\n\nNow `mul`, please.\n"
    );
    let seqs = toml(&both)["metadata"]["steno"]["seqs"].clone();
    let range = format!("{}..{}", seqs[0], seqs[1]);
    let by_seq = path("by-seq");
    distilled(&steno, &[&archive, "--seq", &range, "--repo", repo.path(), "-o", by_seq.to_str().unwrap()]);
    assert_eq!(tree(&both), tree(&by_seq));
    refused(
        &steno,
        &[&archive, "--seq", &format!("{}..{}", seqs[0].as_u64().unwrap() + 1, seqs[1])],
        "but the window has only some of them",
    );
}

#[test]
fn without_a_verification_the_changes_themselves_are_checked() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    let moved = json!({"calc.py": {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a + b\n+    return b + a\n", "move_path": repo.dir.join("sum up.py")}});
    let others = json!({"check.sh": {"type": "delete", "content": "#!/bin/sh\ngrep -q 'a + b' calc.py\n"}, "empty": {"type": "add", "content": ""}, "deep/no newline": {"type": "add", "content": "x"}});
    session
        .asks("Tidy up.")
        .changes(&mended())
        .changes(&moved)
        .changes(&others)
        .runs("cat calc.py", 0)
        .ends();
    let bundle = session.bundled(&steno, "b");
    let task = steno.dir.path().join("task");
    distilled(&steno, &[&bundle, "--turns", "1", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    assert_eq!(toml(&task)["metadata"]["steno"]["verification"]["kind"], "patches");
    let dir = steno.dir.path().join("dir");
    works(&task, &dir);
    // Half of it is not enough.
    fs::write(dir.join("deep/no newline"), "y").unwrap();
    assert!(!kit::runs(&task, "tests/test.sh", &dir));
}

#[test]
fn missing_facts_are_refused_with_the_reason() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let git = |url: &str| json!({"commit_hash": repo.commit, "repository_url": url});
    let done = |git: &Value, more: &Value| {
        let mut session = Session::with(repo.path(), git, more);
        session.asks("Mend it.").changes(&mended()).runs("cargo test", 0).ends();
        session
    };
    let good = git("https://example.com/a.git");
    let mut cases = 0;
    let mut check = |session: &Session, args: &[&str], want: &str| {
        cases += 1;
        let bundle = session.bundled(&steno, &format!("b{cases}"));
        refused(&steno, &[&[bundle.as_str(), "--turns", "1"], args].concat(), want);
    };
    check(
        &done(&json!({"repository_url": "https://example.com/a.git"}), &json!({})),
        &[],
        "the commit at its start is not recorded",
    );
    check(
        &done(&json!({"commit_hash": "--upload-pack=x"}), &json!({})),
        &[],
        "the commit at its start is not recorded",
    );
    check(
        &done(&json!({"commit_hash": repo.commit}), &json!({})),
        &[],
        "`--repo DIR` reads it from a directory",
    );
    for url in ["/srv/a.git", "file:///srv/a.git", "ext::sh -c x", "-u", "https://a/$(x)", "https://a/b c"] {
        check(&done(&git(url), &json!({})), &[], "other machines cannot fetch the repository");
    }
    let parent = json!({"parent_thread_id": "0199c2a4-0000-7000-8000-000000000009"});
    check(&done(&good, &parent), &[], "its prompts come from a model");
    let other = "0".repeat(40);
    check(&done(&json!({"commit_hash": other}), &json!({})), &["--repo", repo.path()], "has no commit 0000");
    let mut odd = done(&good, &json!({}));
    odd.asks("Wrong.")
        .changes(
            &json!({"calc.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-nothing\n+like this\n"}}),
        )
        .ends();
    let bundle = odd.bundled(&steno, "odd");
    refused(
        &steno,
        &[&bundle, "--turns", "2", "--repo", repo.path()],
        "the recorded changes do not fit what it begins with",
    );
    refused(&steno, &[&bundle, "--turns", "3"], "the session has 2 turns");
    refused(&steno, &[&bundle, "--seq", "1..2"], "these records contain no whole turn");
    refused(&steno, &[&bundle, "--seq", "1..9999"], "the spine has ");
    // Concerns that no option allows come first, then the others.
    let mut doubtful = Session::new(&repo);
    doubtful
        .asks("Look.")
        .item(&json!({"type": "UserMessage", "id": "u", "content": [{"type": "image", "image_url": "x"}]}));
    let bundle = doubtful.bundled(&steno, "doubtful");
    refused(&steno, &[&bundle, "--turns", "turn-0001"], "no file changes are recorded");
    doubtful.changes(&mended());
    let bundle = doubtful.bundled(&steno, "doubtful-2");
    refused(&steno, &[&bundle, "--turns", "1"], "`--allow media --allow open-turn` makes a task anyway");
}

#[test]
fn doubtful_windows_are_refused_or_labelled() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut cases = 0;
    let mut check = |concern: &str, make: &dyn Fn(&mut Session)| {
        cases += 1;
        let mut session = Session::new(&repo);
        session.asks("Mend it.").changes(&mended()).runs("cargo test", 0);
        make(&mut session);
        let bundle = session.bundled(&steno, &format!("b{cases}"));
        refused(&steno, &[&bundle, "--turns", "1"], &format!("`--allow {concern}` makes a task anyway"));
        let task = steno.dir.path().join(format!("task{cases}"));
        distilled(&steno, &[&bundle, "--turns", "1", "--allow", concern, "-o", task.to_str().unwrap()]);
        let steno_table = &toml(&task)["metadata"]["steno"];
        assert_eq!(steno_table["labels"][0]["label"], concern);
        assert_eq!(steno_table["policy"]["allowed"], json!([concern]));
    };
    check("failed-turn", &|session| {
        session.line(
            "event_msg",
            &json!({"type": "turn_aborted", "turn_id": "turn-id-1", "reason": "interrupted"}),
        );
    });
    check("open-turn", &|_| {});
    check("open-call", &|session| {
        session.line(
            "response_item",
            &json!({"type": "function_call", "name": "view_image", "arguments": "{}", "call_id": "open"}),
        );
        session.ends();
    });
    check("denied-approval", &|session| {
        session.line(
            "response_item",
            &json!({"type": "custom_tool_call", "call_id": "no", "name": "apply_patch", "input": ""}),
        );
        session.item(&json!({"type": "FileChange", "id": "no", "changes": {}, "status": "declined"}));
        session.ends();
    });
    check("compaction", &|session| {
        session.line("compacted", &json!({"message": "S", "replacement_history": []}));
        session.ends();
    });
    check("media", &|session| {
        session.item(&json!({"type": "UserMessage", "id": "u", "content": [{"type": "image", "image_url": "data:image/png;base64,AAAA"}]}));
        session.ends();
    });
    check("failing-check", &|session| {
        session.runs("cargo clippy", 0).runs("cargo test", 101).ends();
    });
    check("missing-records", &|session| {
        session.torn();
        session.ends();
    });
    check("user-input", &|session| {
        session.line("response_item", &json!({"type": "function_call", "name": "request_user_input", "arguments": "{}", "call_id": "ask"}));
        session.line(
            "response_item",
            &json!({"type": "function_call_output", "call_id": "ask", "output": "{}"}),
        );
        session.ends();
    });
}

#[test]
fn repository_address_loses_its_secrets() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let git = json!({"commit_hash": repo.commit, "repository_url": "https://me:s3cret@example.com/a.git"});
    let mut session = Session::with(repo.path(), &git, &json!({}));
    session.asks("Look.").ends();
    session.asks("Mend it.").changes(&mended()).runs("cargo test", 0).ends();
    let bundle = session.bundled(&steno, "b");
    let task = steno.dir.path().join("task");
    distilled(&steno, &[&bundle, "--turns", "2", "-o", task.to_str().unwrap()]);
    let files = tree(&task);
    let has = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes).contains(text);
    assert!(files.iter().all(|(_, _, bytes)| !has(bytes, "s3cret")));
    for name in ["environment/Dockerfile", "task.toml", "trajectory.json"] {
        let (_, _, bytes) = files.iter().find(|(path, ..)| path == name).unwrap();
        assert!(has(bytes, "https://example.com/a.git"), "{name}");
    }
}

#[test]
fn tests_written_by_the_session_are_installed_before_the_check() {
    needs!(tool("git"), "git is absent");
    needs!(tool("python3"), "python3 is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    let first = json!({"tests/test_calc.py": {"type": "add", "content": "import calc\n"}});
    let then = json!({"tests/test_calc.py": {"type": "update", "unified_diff": "@@ -1 +1,2 @@\n import calc\n+assert calc.add(1, 2) == 3\n"}});
    session.asks("Mend it.").changes(&first).changes(&then).changes(&mended());
    session.runs("python3 tests/test_calc.py", 0).ends();
    // The directory of the file decides what it imports.
    session.asks("Once more.").changes(
        &json!({"test_more.py": {"type": "add", "content": TEST}, "more.py": {"type": "add", "content": ""}}),
    );
    session.runs("python3 -m unittest -q test_more", 0).ends();
    let bundle = session.bundled(&steno, "b");
    let path = |name: &str| steno.dir.path().join(name);
    let table = |task: &str| toml(&path(task))["metadata"]["steno"]["verification"].clone();
    distilled(&steno, &[&bundle, "--turns", "1", "-o", path("fetched").to_str().unwrap()]);
    assert_eq!(table("fetched")["tests_not_held"], json!(["tests/test_calc.py"]));
    distilled(
        &steno,
        &[&bundle, "--turns", "1", "--repo", repo.path(), "-o", path("tried").to_str().unwrap()],
    );
    assert_eq!(table("tried")["tests_of_window"], json!(["tests/test_calc.py"]));
    let held = fs::read_to_string(path("tried/tests/files/tests/test_calc.py")).unwrap();
    assert_eq!(held, "import calc\nassert calc.add(1, 2) == 3\n");
    distilled(
        &steno,
        &[&bundle, "--turns", "2", "--repo", repo.path(), "-o", path("task").to_str().unwrap()],
    );
    assert_eq!(table("task")["tests_of_window"], json!(["test_more.py"]));
    let dir = path("dir");
    kit::built(&path("task"), &dir);
    // A test with that name that checks nothing is restored afterwards.
    fs::write(dir.join("calc.py"), kit::CALC).unwrap();
    fs::write(dir.join("test_more.py"), "import unittest\n").unwrap();
    assert!(!kit::runs(&path("task"), "tests/test.sh", &dir));
    assert_eq!(fs::read_to_string(dir.join("test_more.py")).unwrap(), "import unittest\n");
    fs::remove_file(dir.join("test_more.py")).unwrap();
    // Nothing is written through a link.
    std::os::unix::fs::symlink("more.py", dir.join("test_more.py")).unwrap();
    assert!(!kit::runs(&path("task"), "tests/test.sh", &dir));
    assert_eq!(fs::read_to_string(dir.join("more.py")).unwrap_or_default(), "");
    assert!(fs::read_link(dir.join("test_more.py")).is_ok());
    fs::remove_file(dir.join("test_more.py")).unwrap();
    fs::write(dir.join("calc.py"), kit::CALC.replace('-', "+")).unwrap();
    assert!(kit::runs(&path("task"), "tests/test.sh", &dir));
    assert!(!dir.join("test_more.py").exists());
}

#[test]
fn try_refuses_a_task_that_does_not_work() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session.asks("Mend it.").changes(&mended()).runs("./check.sh", 0).ends();
    session
        .asks("A file.")
        .changes(&json!({"a": {"type": "add", "content": "b\n"}}))
        .runs("./check.sh", 0)
        .ends();
    session
        .asks("Another.")
        .changes(&json!({"c": {"type": "add", "content": "d\n"}}))
        .runs("test -e nothing", 0)
        .ends();
    session
        .asks("Hang.")
        .changes(&json!({"e": {"type": "add", "content": "f\n"}}))
        .runs("test -e e", 0)
        .ends();
    let bundle = session.bundled(&steno, "b");
    let out = steno.dir.path().join("out");
    let args = [&bundle, "--each-turn", "--repo", repo.path(), "--try", "-o", out.to_str().unwrap()];
    let said = distilled(&steno, &args);
    assert_eq!(said.out.matches("distilled  ").count(), 2, "{said:?}");
    assert!(
        said.out.contains("turn 2: the trial failed: its check succeeds before the solution is applied"),
        "{said:?}"
    );
    assert!(
        said.out.contains("turn 3: the trial failed: its check fails after the solution is applied"),
        "{said:?}"
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "what was tried is taken away again");
    assert_eq!(git(&repo.dir, &["status", "--short"]), "");
}

#[test]
fn several_windows_become_tasks_and_the_rest_is_reported() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session.asks("Mend it.").changes(&mended()).runs("cargo test", 0).ends();
    session.asks("Thanks.").ends();
    session.asks("Once more.").changes(&json!({"a": {"type": "add", "content": "b\n"}})).ends();
    let bundle = session.bundled(&steno, "b");
    let out = steno.dir.path().join("out");
    let out_text = out.to_str().unwrap();
    let said = distilled(&steno, &[&bundle, "--each-turn", "-o", out_text, "--json"]);
    let told: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 3);
    assert_eq!(told[0]["check"], "test_runner");
    assert_eq!(told[1]["refused"], "no file changes are recorded");
    assert_eq!(told[2]["check"], "patches");
    let names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    // Nothing is written over, and a window that was asked for is not passed over in silence.
    let before = tree(&out);
    let said = steno.run(&["spine", "distill", &bundle, "--each-turn", "-o", out_text]);
    assert!(
        said.code == 1 && said.out.matches("already exists, and was not changed").count() == 2,
        "{said:?}"
    );
    assert_eq!(before, tree(&out));
    let other = steno.dir.path().join("other");
    let said = steno.run(&[
        "spine",
        "distill",
        &bundle,
        "--turns",
        "1",
        "--turns",
        "2",
        "-o",
        other.to_str().unwrap(),
    ]);
    assert!(said.code == 1 && said.err.contains("1 of 2 windows did not become a task"), "{said:?}");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    let said = steno.run(&["spine", "distill", &bundle, "--list"]);
    assert!(said.code == 0 && said.out.lines().count() == 4, "{said:?}");
    assert!(said.out.contains("a task, checked by the tests `cargo test`"), "{said:?}");
}

#[test]
fn distill_refuses_wrong_use() {
    let steno = Steno::new();
    for (args, want) in [
        (&["b", "-o", "x"][..], "--turns"),
        (&["b", "--turns", "0", "-o", "x"], "a number from 1"),
        (&["b", "--turns", "3..2", "-o", "x"], "smaller than the first"),
        (&["b", "--turns", "1"], "--output"),
        (&["b", "--turns", "1", "-o", "x", "--image", "a\nRUN x"], "not the name of an image"),
        (&["b", "--turns", "1", "-o", "x", "--allow", "everything"], "possible values"),
        (&["b", "--turns", "1", "-o", "x", "--root", "here"], "an absolute path"),
        (&["b", "--turns", "1", "-o", "x", "--try"], "--repo"),
        (&["b", "--turns", "1", "-o", "x", "--repo", "nowhere"], "`nowhere` is not a directory"),
        (&["b", "--turns", "1", "-o", "x", "--repo", "/"], "`/` is not a git repository"),
        (&["b", "--turns", "1", "--each-turn", "-o", "x"], "cannot be used with"),
    ] {
        let said = steno.run(&[&["spine", "distill"], args].concat());
        assert!(said.code == 2 && said.err.contains(want), "{args:?}: {said:?}");
    }
    let said = steno.run(&["spine", "distill", "./nothing", "--list"]);
    assert!(said.code == 3, "{said:?}");
}
