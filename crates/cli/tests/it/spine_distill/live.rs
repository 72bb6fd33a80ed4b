//! Tasks from a connection: changes are read from the repository, so any program may have made them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use steno_testkit::{needs, tool};

use super::kit::{Repo, distilled, git, works};
use super::{refused, toml};
use crate::kit::Steno;

const THREAD: &str = "th1";

/// A server that does one turn when it is asked to. Its model is heard when the recorder has looked at the repository,
/// and it waits for that again at the end: a real agent would not, and then the look counts for nothing.
fn server(repo: &Repo, steno: &Steno, items: &[Value], work: &str) -> String {
    let thinks = item("started", &json!({"type": "reasoning", "id": "r1", "summary": [], "content": []}));
    server_with(repo, steno, ":", &[&[thinks], items].concat(), work)
}

/// The same, with what it does before it says that the turn has begun; its model is heard if the items say so.
fn server_with(repo: &Repo, steno: &Steno, early: &str, items: &[Value], work: &str) -> String {
    let spine = steno.store().join("spine").join(THREAD);
    let said = |lines: &[Value]| {
        lines.iter().map(|line| format!("printf '%s\\n' '{line}'\n")).collect::<Vec<_>>().concat()
    };
    let turn = json!({"threadId": THREAD, "turn": {"id": "u1"}});
    let started = [
        json!({"id": 3, "result": {"turn": {"id": "u1"}}}),
        json!({"method": "turn/started", "params": turn}),
    ];
    let thread = json!({"id": 2, "result": {"thread": {"id": THREAD, "cwd": repo.path()}, "model": "m"}});
    let ended = json!({"method": "turn/completed", "params": turn});
    format!(
        "looked() {{ until [ \"$(cat '{spine}'/*.jsonl 2>/dev/null | grep -c '\"git_diff\"')\" -ge \"$1\" ]; do sleep 0.05; done; }}\n\
         while IFS= read -r line; do case \"$line\" in\n\
         *thread/start*) {thread};;\n*turn/start*) (cd '{repo}' && {early})\n{started}looked 1\n{items}cd '{repo}' && {work}\n{ended}looked 2\n\
         printf '%s\\n' '{{\"method\":\"thread/status/changed\",\"params\":{{\"threadId\":\"{THREAD}\"}}}}';;\n\
         esac; done\n",
        spine = spine.display(),
        thread = said(&[thread]),
        started = said(&started),
        items = said(items),
        repo = repo.path(),
        ended = said(&[ended]),
    )
}

fn item(kind: &str, item: &Value) -> Value {
    json!({"method": format!("item/{kind}"), "params": {"threadId": THREAD, "turnId": "u1", "item": item}})
}

fn command(id: &str, script: &str, repo: &Repo) -> [Value; 2] {
    let begun = json!({"type": "commandExecution", "id": id, "command": format!("/bin/bash -lc '{script}'").replace('\'', "\""), "cwd": repo.path(), "status": "inProgress"});
    let mut done = begun.clone();
    done["status"] = "completed".into();
    done["exitCode"] = 0.into();
    done["aggregatedOutput"] = "".into();
    [item("started", &begun), item("completed", &done)]
}

/// Lets a client ask for the turn, and returns when all of it was recorded.
fn connected(steno: &Steno, server: &str) {
    let asked = [
        r#"{"method":"initialize","id":1,"params":{"clientInfo":{"name":"editor","version":"1"}}}"#,
        r#"{"method":"thread/start","id":2,"params":{}}"#,
        r#"{"method":"turn/start","id":3,"params":{"threadId":"th1","input":[{"type":"text","text":"Make `add` add."}]}}"#,
    ];
    let said =
        steno.run_with(&["app-server", "--", "sh", "-c", server], (asked.join("\n") + "\n").as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("thread/status/changed"), "{said:?}");
}

/// The content of every snapshot of the repository, including those without changes.
fn looks(steno: &Steno) -> Vec<String> {
    let dir = steno.store().join("spine").join(THREAD);
    let lines = fs::read_to_string(dir.join("segment-000.jsonl")).unwrap();
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let looks = records.filter(|record| record["payload"]["kind"] == "git_diff");
    looks
        .map(|look| fs::read_to_string(dir.join(look["payload"]["artifact_path"].as_str().unwrap())).unwrap())
        .collect()
}

fn kinds(task: &Path) -> (Value, Value) {
    let steno = &toml(task)["metadata"]["steno"];
    (steno["verification"]["kind"].clone(), steno["solution"]["kind"].clone())
}

#[test]
fn changes_by_commands_come_from_the_working_tree() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    // The file was changed before the session, and the task begins with that content.
    fs::write(repo.dir.join("notes.txt"), "draft\n").unwrap();
    let items = [command("c1", "./mend", &repo), command("c2", "./check.sh", &repo)].concat();
    let work =
        r"sed 's/a - b/a + b/' calc.py > new && mv new calc.py && rm notes.txt && printf 'x' > 'with space'";
    connected(&steno, &server(&repo, &steno, &items, work));
    let bundle = steno.dir.path().join("b.tar.zst");
    let bundle = bundle.to_str().unwrap();
    let said = steno.run(&["spine", "bundle", THREAD, "-o", bundle]);
    assert_eq!(said.code, 0, "{said:?}");
    git(&repo.dir, &["stash", "-q", "--include-untracked"]);
    let task = steno.dir.path().join("task");
    distilled(&steno, &[bundle, "--turns", "1", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    assert_eq!(kinds(&task), ("other".into(), "diff".into()));
    assert_eq!(toml(&task)["metadata"]["steno"]["repository"]["doubts"], json!([]));
    let dir = steno.dir.path().join("dir");
    works(&task, &dir);
    assert!(!dir.join("notes.txt").exists() && dir.join("with space").exists());
}

#[test]
fn late_snapshot_is_not_a_start() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    // As in Codex, a short command has run before its start is reported. The snapshot shows its changes.
    let items = [command("c1", "./mend", &repo), command("c2", "./check.sh", &repo)].concat();
    let early = "sed 's/a - b/a + b/' calc.py > new && mv new calc.py";
    connected(&steno, &server_with(&repo, &steno, early, &items, ":"));
    let looks = looks(&steno);
    assert!(looks.len() == 2 && looks.iter().all(|look| look.contains("+    return a + b")), "{looks:?}");
    refused(&steno, &[THREAD, "--turns", "1", "--repo", repo.path()], "no file changes are recorded");
}

#[test]
fn without_a_verification_the_working_tree_itself_is_checked() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let items = command("c1", "./mend", &repo);
    let mut items = items.to_vec();
    // A command that changes something is not a verification.
    items[1]["params"]["item"]["command"] = "/bin/bash -lc \"touch a && ./mend\"".into();
    items[0]["params"]["item"]["command"] = "/bin/bash -lc \"touch a && ./mend\"".into();
    connected(&steno, &server(&repo, &steno, &items, "sed 's/a - b/a + b/' calc.py > new && mv new calc.py"));
    git(&repo.dir, &["checkout", "-q", "."]);
    let task = steno.dir.path().join("task");
    distilled(&steno, &[THREAD, "--turns", "1", "--repo", repo.path(), "-o", task.to_str().unwrap()]);
    assert_eq!(kinds(&task), ("diff".into(), "diff".into()));
    works(&task, &steno.dir.path().join("dir"));
}

#[test]
fn turn_that_depends_on_an_approval_is_refused() {
    needs!(tool("git"), "git is absent");
    let steno = Steno::new();
    let repo = Repo::new(&steno);
    let [begun, _] = command("c1", "./mend", &repo);
    let asked = json!({"method": "item/commandExecution/requestApproval", "id": 0, "params": {"threadId": THREAD, "turnId": "u1", "itemId": "c1", "command": "./mend"}});
    connected(&steno, &server(&repo, &steno, &[begun, asked], "printf 'x' > x"));
    refused(
        &steno,
        &[THREAD, "--turns", "1", "--repo", repo.path()],
        "turn 1 waits for an approval (call c1)",
    );
}
