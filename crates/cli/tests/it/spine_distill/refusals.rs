//! Windows that cannot become a task, or not the task that they seem to be.

use std::fs;

use serde_json::json;
use steno_testkit::{needs, tool};

use super::kit::{Repo, Session, distilled, git, mended, works};
use super::{refused, toml};
use crate::kit::Steno;

/// Distills the only turn of a session with its repository; returns the check and the solution.
fn kinds(steno: &Steno, repo: &Repo, session: &Session, name: &str) -> (String, String) {
    let bundle = session.bundled(steno, name);
    let task = steno.dir.path().join(format!("task-{name}"));
    distilled(steno, &[&bundle, "--turns", "1", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    let table = &toml(&task)["metadata"]["steno"];
    let kind = |part: &str| table[part]["kind"].as_str().unwrap().to_owned();
    (kind("verification"), kind("solution"))
}

#[test]
fn check_command_must_run_after_the_last_change() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut cases = 0;
    let mut check = |make: &dyn Fn(&mut Session), verification: &str, solution: &str| {
        cases += 1;
        let mut session = Session::new(&repo);
        session.asks("Mend it.");
        make(&mut session);
        session.ends();
        let found = kinds(&steno, &repo, &session, &format!("b{cases}"));
        assert_eq!(found, (verification.to_owned(), solution.to_owned()), "case {cases}");
    };
    let test = |session: &mut Session| {
        session.changes(&mended()).runs("pytest", 0);
    };
    check(&test, "test_runner", "patches");
    for says_nothing in
        ["python3 --version", "pytest --collect-only", "cd .. && pytest", "pytest; set -e; ls"]
    {
        let make = |session: &mut Session| {
            session.changes(&mended()).runs(says_nothing, 0);
        };
        check(&make, "patches", "patches");
    }
    // Commands that only store changes do not change files.
    let kept = |session: &mut Session| {
        session.changes(&mended()).runs("pytest", 0).runs("git add -A && git commit -m x", 0);
    };
    check(&kept, "test_runner", "patches");
    // A call that began before a change may have used the old file, whenever it ended.
    let at_once = |session: &mut Session| {
        let input = json!({"cmd": "pytest"}).to_string();
        session.line(
            "response_item",
            &json!({"type": "function_call", "name": "exec_command", "arguments": input, "call_id": "t"}),
        );
        session.changes(&mended());
        session.item(&json!({"type": "CommandExecution", "id": "t", "command": ["/bin/bash", "-lc", "pytest"], "cwd": repo.path(), "parsed_cmd": [], "status": "completed", "aggregated_output": "", "exit_code": 0, "duration": {"secs": 0, "nanos": 1}}));
        session
            .line("response_item", &json!({"type": "function_call_output", "call_id": "t", "output": "."}));
    };
    check(&at_once, "patches", "patches");
}

#[test]
fn changes_by_commands_after_a_patch_are_not_checked() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session.asks("Mend it.").changes(&mended()).runs("pytest", 0).runs("rm calc.py", 0).ends();
    let bundle = session.bundled(&steno, "b");
    refused(
        &steno,
        &[&bundle, "--turns", "1", "--repo", repo.path()],
        "call call_3 changed files after a patch, and the record does not say how",
    );
}

/// A check of changes that exist at the start would pass without any work.
#[test]
fn changes_present_at_the_start_check_nothing() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    fs::write(repo.dir.join("lines"), "x\n".repeat(5)).unwrap();
    git(&repo.dir, &["add", "-A"]);
    git(&repo.dir, &["commit", "-q", "-m", "second"]);
    let commit = git(&repo.dir, &["rev-parse", "HEAD"]).trim().to_owned();
    let repo = Repo { dir: repo.dir, commit };
    let mut undone = Session::new(&repo);
    undone.asks("Try it.").changes(&json!({"a": {"type": "add", "content": "b\n"}}));
    undone.changes(&json!({"a": {"type": "delete", "content": "b\n"}})).ends();
    let mut again = Session::new(&repo);
    let more = json!({"lines": {"type": "update", "unified_diff": "@@ -1,2 +1,3 @@\n x\n+x\n x\n"}});
    again.asks("One more.").changes(&more).ends();
    for (name, session) in [("undone", undone), ("again", again)] {
        let bundle = session.bundled(&steno, name);
        refused(
            &steno,
            &[&bundle, "--turns", "1", "--repo", repo.path()],
            "the recorded changes are already there at the start",
        );
    }
}

#[test]
fn earlier_changes_are_one_step_with_their_line_ends() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    fs::write(repo.dir.join(".gitattributes"), "*.py text eol=crlf\n").unwrap();
    git(&repo.dir, &["add", "-A"]);
    git(&repo.dir, &["commit", "-q", "-m", "second"]);
    let commit = git(&repo.dir, &["rev-parse", "HEAD"]).trim().to_owned();
    let repo = Repo { dir: repo.dir, commit };
    let mut session = Session::new(&repo);
    session.asks("Write it down.");
    for number in 0..70 {
        let file = format!("notes/{number}.txt");
        session.changes(&json!({file: {"type": "add", "content": format!("{number}\n")}}));
    }
    session.ends();
    session.asks("Mend it.").changes(&mended()).ends();
    let bundle = session.bundled(&steno, "b");
    let task = steno.dir.path().join("task");
    distilled(&steno, &[&bundle, "--turns", "2", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    let dockerfile = fs::read_to_string(task.join("environment/Dockerfile")).unwrap();
    assert!(dockerfile.lines().count() < 10, "{dockerfile}");
    let dir = steno.dir.path().join("dir");
    works(&task, &dir);
    assert_eq!(fs::read_to_string(dir.join("notes/69.txt")).unwrap(), "69\n");
    assert!(!dir.join(".steno-before").exists());
}

/// The content of records becomes data, never a command.
#[test]
fn unknown_shell_gives_no_command() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session.asks("Mend it.").changes(&mended());
    let input = json!({"cmd": "pytest", "shell": "sh; touch ran; sh"}).to_string();
    session.line(
        "response_item",
        &json!({"type": "function_call", "name": "exec_command", "arguments": input, "call_id": "t"}),
    );
    session.item(&json!({"type": "CommandExecution", "id": "t", "command": ["x", "-c", "pytest"], "cwd": repo.path(), "parsed_cmd": [], "status": "completed", "aggregated_output": "", "exit_code": 0, "duration": {"secs": 0, "nanos": 1}}));
    session.line("response_item", &json!({"type": "function_call_output", "call_id": "t", "output": "."}));
    session.ends();
    let bundle = session.bundled(&steno, "b");
    let task = steno.dir.path().join("task");
    distilled(&steno, &[&bundle, "--turns", "1", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    let passed = &toml(&task)["metadata"]["steno"]["verification"]["passed_over"][0];
    assert_eq!(passed, &json!({"call": "t", "why": "it ran in an unknown shell"}));
    let script = fs::read_to_string(task.join("tests/test.sh")).unwrap();
    assert!(!script.contains("touch"), "{script}");
}

#[test]
fn rolled_back_turns_are_reported_and_left_out() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session.asks("Mend it.").changes(&mended()).ends();
    session.asks("No, like this.").changes(&json!({"a": {"type": "add", "content": "b\n"}})).ends();
    session.line("event_msg", &json!({"type": "thread_rolled_back", "num_turns": 1}));
    session.asks("Rather so.").changes(&json!({"c": {"type": "add", "content": "d\n"}})).ends();
    let bundle = session.bundled(&steno, "b");
    let hint = "`--allow taken-back` makes a task anyway";
    refused(&steno, &[&bundle, "--turns", "2"], hint);
    refused(&steno, &[&bundle, "--turns", "1..3"], hint);
    let task = steno.dir.path().join("task");
    distilled(&steno, &[&bundle, "--turns", "3", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    // The messages are removed from the session, but the files are not reverted.
    let table = &toml(&task)["metadata"]["steno"];
    assert_eq!(table["repository"]["patches_before"], json!(["call_1", "call_2"]));
    let why = "turns before it were taken back";
    assert_eq!(table["before"], json!({"trajectory": false, "why": why}));
    works(&task, &steno.dir.path().join("dir"));
}

#[test]
fn session_resumed_at_another_commit_starts_there() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let mut session = Session::new(&repo);
    session.asks("Mend it.").changes(&mended()).ends();
    let git = json!({"commit_hash": "f".repeat(40), "repository_url": "https://me:secret@example.com/a.git"});
    session.line(
        "session_meta",
        &json!({"id": "0199c2a4-0000-7000-8000-000000000001", "cwd": repo.path(), "git": git}),
    );
    session.asks("Go on.").changes(&json!({"a": {"type": "add", "content": "b\n"}})).ends();
    let bundle = session.bundled(&steno, "b");
    let task = steno.dir.path().join("task");
    distilled(&steno, &[&bundle, "--turns", "1", "-o", task.to_str().unwrap()]);
    let doubts = &toml(&task)["metadata"]["steno"]["repository"]["doubts"];
    assert!(doubts.to_string().contains("the top of the repository is not recorded"), "{doubts}");
    refused(&steno, &[&bundle, "--turns", "2"], "was resumed at commit ffff");
}

/// Trees that git does not make by itself, but reads.
#[test]
fn unusual_git_trees_are_refused() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let blob = git(&repo.dir, &["rev-parse", "HEAD:calc.py"]).trim().to_owned();
    let tree = |lines: &str| {
        let input = steno.dir.path().join("tree");
        fs::write(&input, lines).unwrap();
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(&repo.dir).arg("mktree").stdin(fs::File::open(&input).unwrap());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let inner = tree(&format!("100644 blob {blob}\tx\n"));
    for (lines, want) in [
        (format!("100644 blob {blob}\tout\n040000 tree {inner}\tout\n"), "`out/x` of commit"),
        (format!("040000 tree {inner}\t.GIT\n"), "has a file named `.GIT/x`"),
    ] {
        let commit = git(&repo.dir, &["commit-tree", "-m", "odd", &tree(&lines)]).trim().to_owned();
        let repo = Repo { dir: repo.dir.clone(), commit };
        let mut session = Session::new(&repo);
        session.asks("Mend it.").changes(&mended()).runs("pytest", 0).ends();
        let bundle = session.bundled(&steno, &format!("b-{}", &repo.commit[..8]));
        refused(&steno, &[&bundle, "--turns", "1", "--repo", repo.path()], want);
    }
}
