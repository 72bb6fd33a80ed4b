//! `steno ls` with filters, `changes`, `failures` and what was lost: the questions that people ask of a list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use steno_testkit::{golden, needs, places, shared_dir, tool};

use crate::kit::{self, Steno, id, run};

/// Events of a session, each with its time.
struct Fixture {
    events: Vec<Value>,
    time: String,
}

impl Fixture {
    fn begin(time: &str, agent: &str, directory: &str, branch: &str) -> Self {
        let mut fixture = Self { events: Vec::new(), time: time.to_owned() };
        let payload = json!({ "name": agent, "kind": "session", "cwd": directory, "git": { "branch": branch },
            "source": { "adapter": format!("{agent}/2"), "channel": "disk", "version": "1.0" } });
        fixture.push("run.started", "", &payload);
        fixture.push("step.started", "turn-0001", &json!({ "name": "turn-0001", "kind": "turn" }));
        fixture
    }

    fn push(&mut self, kind: &str, path: &str, payload: &Value) {
        self.events.push(json!({ "type": kind, "path": path, "timestamp": self.time, "payload": payload }));
    }

    fn prompt(mut self, text: &str) -> Self {
        let block = json!({ "type": "text", "fidelity": "agent_emitted", "text": text });
        self.push("message.user", "turn-0001", &json!({ "role": "user", "blocks": [block] }));
        self
    }

    fn answer(mut self, model: &str) -> Self {
        let block = json!({ "type": "text", "fidelity": "agent_emitted", "text": "Done." });
        let usage = json!({ "input_tokens": 1000, "output_tokens": 1000 });
        let payload = json!({ "role": "assistant", "blocks": [block], "response": "r1", "model": model,
            "stop_reason": "end_turn", "usage": usage });
        self.push("message.assistant", "turn-0001", &payload);
        self
    }

    fn call(mut self, name: &str, class: &str, input: &Value, result: &Value) -> Self {
        let call_id = format!("c{}", self.events.len());
        let both = |more: &Value| {
            let mut payload = json!({ "name": name, "call_id": call_id, "input": null, "output": null,
                "fidelity": "agent_emitted", "class": class });
            for (key, value) in more.as_object().unwrap() {
                payload[key] = value.clone();
            }
            payload
        };
        self.push("tool.call", "turn-0001", &both(&json!({ "input": input })));
        self.push("tool.result", "turn-0001", &both(result));
        self
    }

    fn end(mut self) -> Vec<Value> {
        self.push("step.completed", "turn-0001", &json!({ "name": "turn-0001", "kind": "turn" }));
        self.events
    }
}

const PATCH: &str = "*** Begin Patch\n*** Update File: src/cart.rs\n@@\n-let wait = 1;\n+let wait = 3;\n*** Add File: src/new.rs\n+fn new() {}\n*** End Patch";

/// Three sessions of three agents, the latest with number 3.
pub fn filled() -> Steno {
    let steno = Steno::new();
    let login = Fixture::begin("2026-06-08T08:00:00Z", "claude", "/srv/shop", "main")
        .prompt("Fix the login bug")
        .answer("claude-opus-4-8")
        .call(
            "Edit",
            "file_change",
            &json!({ "file_path": "/srv/shop/src/auth.rs", "old_string": "a == b\n", "new_string": "a != b\n" }),
            &json!({ "output": "ok", "outcome": "ok", "patch": "@@ -12,2 +12,2 @@\n if\n-a == b\n+a != b\n" }),
        )
        .call(
            "Bash",
            "command",
            &json!({ "command": "cargo test login" }),
            &json!({ "output": "running\nerror: it fails\nend", "outcome": "failed", "exit_code": 101 }),
        )
        .call(
            "Edit",
            "file_change",
            &json!({ "file_path": "/srv/shop/src/lost.rs", "old_string": "x", "new_string": "y" }),
            &json!({ "output": "not found", "outcome": "failed" }),
        );
    steno.recorded(&id(1), &login.end());
    let cart = Fixture::begin("2026-06-09T08:00:00Z", "codex", "/srv/web", "cart")
        .prompt("Why is the cart slow?")
        .answer("gpt-5.5")
        .call("apply_patch", "file_change", &json!(PATCH), &json!({ "output": "ok", "outcome": "ok" }));
    steno.recorded(&id(2), &cart.end());
    let mut waiting =
        Fixture::begin("2026-06-10T08:00:00Z", "gemini", "/srv/web", "main").prompt("Delete it");
    waiting.push(
        "tool.call",
        "turn-0001",
        &json!({ "name": "Bash", "call_id": "w1", "input": { "command": "rm x" }, "output": null,
            "fidelity": "agent_emitted", "class": "command" }),
    );
    waiting.push(
        "step.started",
        "turn-0001.approval",
        &json!({ "name": "a1", "kind": "approval", "tool_call_id": "w1" }),
    );
    steno.recorded(&id(3), &waiting.events);
    steno
}

/// Compares the sessions that a list shows, by their numbers.
#[track_caller]
fn check(steno: &Steno, args: &[&str], want: &[u8]) {
    let said = steno.run(&[&["ls", "--json"], args].concat());
    assert_eq!(said.code, i32::from(want.is_empty()), "{args:?}: {said:?}");
    let found: Vec<String> =
        said.json().iter().map(|row| row["run_id"].as_str().unwrap().to_owned()).collect();
    let want: Vec<String> = want.iter().map(|number| id(*number)).collect();
    assert_eq!(found, want, "{args:?}");
}

#[test]
fn filters_select_sessions() {
    let steno = filled();
    check(&steno, &[], &[3, 2, 1]);
    check(&steno, &["--since", "2026-06-09"], &[3, 2]);
    check(&steno, &["--until", "2026-06-09T00:00:00Z"], &[1]);
    check(&steno, &["--since", "2026-06-09", "--until", "2026-06-10T00:00:00Z"], &[2]);
    check(&steno, &["--project", "shop"], &[1]);
    check(&steno, &["--agent", "codex"], &[2]);
    check(&steno, &["--model", "opus"], &[1]);
    check(&steno, &["--branch", "main"], &[3, 1]);
    check(&steno, &["--failed"], &[1]);
    check(&steno, &["--touched", "src/auth.rs"], &[1]);
    check(&steno, &["--touched", "auth.rs"], &[1]);
    check(&steno, &["--touched", "uth.rs"], &[]);
    check(&steno, &["--touched", "src/"], &[2, 1]);
    check(&steno, &["--touched", "src/lost.rs"], &[]);
    check(&steno, &["--touched", "/srv/web/src/cart.rs"], &[2]);
    check(&steno, &["--touched", "/srv/web"], &[2]);
    check(&steno, &["--touched", "/srv/we"], &[]);
    check(&steno, &["--touched", "/srv/other/src/cart.rs"], &[]);
    check(&steno, &["LOGIN", "fix"], &[1]);
    check(&steno, &["web", "cart"], &[2]);
    check(&steno, &["--live"], &[]);
    check(&steno, &["--gone"], &[]);
    check(&steno, &["--limit", "1"], &[3]);
    let states: Vec<Value> =
        steno.run(&["ls", "--json"]).json().iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states, [json!("waiting"), json!("done"), json!("done")]);
    let said = steno.run(&["ls", "--since", "soon"]);
    assert!(said.code == 2 && said.err.contains("is not a time"), "{said:?}");
    let said = steno.run(&["ls", "--runs", "--agent", "codex"]);
    assert!(said.code == 2 && said.err.contains("cannot be used with"), "{said:?}");
}

/// A session that goes on for days is listed whole, its calls are not.
#[test]
fn calls_are_those_of_the_time() {
    let steno = Steno::new();
    let edit = json!({ "file_path": "/srv/shop/a.rs", "old_string": "a", "new_string": "b" });
    let (ok, failed) =
        (json!({ "output": "ok", "outcome": "ok" }), json!({ "output": "no", "outcome": "failed" }));
    let mut session = Fixture::begin("2026-06-08T08:00:00Z", "claude", "/srv/shop", "main").prompt("Go on");
    for day in ["2026-06-08", "2026-06-09", "2026-06-10"] {
        session.time = format!("{day}T08:00:00Z");
        session = session.call("Edit", "file_change", &edit, &ok).call(
            "Bash",
            "command",
            &json!({ "command": "make" }),
            &failed,
        );
    }
    steno.recorded(&id(1), &session.end());
    for command in ["changes", "failures"] {
        let days = |args: &[&str]| -> Vec<String> {
            let found = steno.run(&[&[command, "--json"], args].concat()).json();
            found.iter().map(|row| row["at"].as_str().unwrap()[..10].to_owned()).collect()
        };
        assert_eq!(days(&[]), ["2026-06-10", "2026-06-09", "2026-06-08"], "{command}");
        assert_eq!(days(&["--since", "2026-06-09T00:00:00Z"]), ["2026-06-10", "2026-06-09"], "{command}");
        let one = ["--since", "2026-06-09T00:00:00Z", "--until", "2026-06-10T00:00:00Z"];
        assert_eq!(days(&one), ["2026-06-09"], "{command}");
    }
}

#[test]
fn row_has_counts_cost_and_times() {
    let steno = filled();
    let row = &steno.run(&["ls", "--json", "--project", "shop"]).json()[0];
    for (field, want) in [
        ("provider", json!("claude")),
        ("version", json!("1.0")),
        ("models", json!(["claude-opus-4-8"])),
        ("title", json!("Fix the login bug")),
        ("own_title", json!(false)),
        ("project", json!("/srv/shop")),
        ("branch", json!("main")),
        ("prompts", json!(1)),
        ("responses", json!(1)),
        ("calls", json!(3)),
        ("failures", json!(2)),
        ("last_at", json!("2026-06-08T08:00:00Z")),
        ("gone", Value::Null),
    ] {
        assert_eq!(row[field], want, "{field}: {row}");
    }
    assert_eq!((&row["tokens"]["input"], &row["tokens"]["output"]), (&json!(1000), &json!(1000)), "{row}");
    assert!(row["cost_usd"].as_f64().unwrap() > 0.0, "{row}");
    let line = steno.run(&["ls", "--utc", "login"]).out;
    assert!(line.contains("  2✗  ") && line.ends_with("  2026-06-08 08:00Z\n"), "{line}");
}

#[test]
fn changes_are_patches_the_latest_first() {
    let steno = filled();
    let found = steno.run(&["changes", "--json"]).json();
    let short: Vec<_> = found.iter().map(|row| (row["path"].clone(), row["change"].clone())).collect();
    let want = [
        (json!("src/cart.rs"), json!("edit")),
        (json!("src/new.rs"), json!("add")),
        (json!("/srv/shop/src/auth.rs"), json!("edit")),
    ];
    assert_eq!(short, want);
    assert_eq!(found[0]["session_run_id"], json!(id(2)));
    assert_eq!((&found[0]["added"], &found[0]["removed"]), (&json!(1), &json!(1)));
    let patch = found[2]["patch"].as_str().unwrap();
    assert!(patch.ends_with("\n@@ -12,2 +12,2 @@\n if\n-a == b\n+a != b\n"), "{patch}");
    let said = steno.run(&["changes", "src/auth.rs"]);
    assert!(said.out.contains("/srv/shop/src/auth.rs  +1 −1  Fix the login bug"), "{}", said.out);
    assert_eq!(steno.run(&["changes", "--agent", "codex", "--json"]).json().len(), 2);
    assert_eq!(steno.run(&["changes", "src/lost.rs"]).code, 1, "a failed edit changed nothing");
}

#[test]
fn failures_have_exit_code_command_and_a_handle_that_opens() {
    let steno = filled();
    let found = steno.run(&["failures", "--json"]).json();
    assert_eq!(found.len(), 2, "{found:?}");
    let command = found.iter().find(|row| row["class"] == "command").unwrap();
    assert_eq!(
        (&command["exit_code"], &command["command"], &command["seq"]),
        (&json!(101), &json!("cargo test login"), &json!(7))
    );
    assert_eq!(
        (&command["output"], &command["paths"]),
        (&json!("running\nerror: it fails\nend"), &json!([]))
    );
    let edit = found.iter().find(|row| row["class"] == "file_change").unwrap();
    assert_eq!(edit["paths"], json!(["/srv/shop/src/lost.rs"]), "{edit}");
    assert!(edit["command"].as_str().unwrap().starts_with("/srv/shop/src/lost.rs\n"), "{edit}");
    let said = steno.run(&["failures"]).out;
    assert!(said.contains("✗ exit 101  $ cargo test login\n     error: it fails\n"), "{said}");
    assert!(said.contains("✗  Edit src/lost.rs\n     not found\n"), "{said}");
    let shown = steno.run(&["show", command["handle"].as_str().unwrap()]);
    assert!(shown.code == 0 && shown.out.contains("cargo test login"), "{shown:?}");
    assert_eq!(steno.run(&["failures", "--project", "web"]).code, 1);
}

/// What each agent records of the same command: the tool, its arguments, the output for the model, and what else is typed.
fn failed_commands() -> [(&'static str, &'static str, Value, String, Value); 4] {
    let printed = "collecting\nE       AssertionError: assert 1 == 3\n1 failed in 0.12s";
    let text = json!({ "command": "pytest -q tests/test_checkout.py" });
    let words = json!({ "command": ["bash", "-lc", "pytest -q tests/test_checkout.py"] });
    let gemini = format!(
        "<untrusted_context>\nOutput: {printed}\nExit Code: 1\nProcess Group PGID: 5\n</untrusted_context>"
    );
    [
        ("claude", "Bash", text.clone(), format!("Exit code 1\n{printed}"), json!({ "outcome": "failed" })),
        (
            "codex",
            "shell",
            words,
            format!("Exit code: 1\nWall time: 0.1 seconds\nOutput:\n{printed}"),
            json!({ "outcome": "failed", "exit_code": 1 }),
        ),
        (
            "copilot",
            "bash",
            text.clone(),
            format!("{printed}\n<shellId: 0 completed with exit code 1>"),
            json!({ "outcome": "ok" }),
        ),
        ("gemini", "run_shell_command", text, gemini, json!({ "outcome": "ok" })),
    ]
}

/// A store with a failed command and a file that is not there, in a session of each agent.
fn with_failures() -> Steno {
    let steno = Steno::new();
    let reads = [("Read", "file_path"), ("read", "path"), ("view", "path"), ("read_file", "absolute_path")];
    for (number, ((agent, tool, input, output, mut result), (reader, name))) in
        (1..).zip(failed_commands().into_iter().zip(reads))
    {
        result["output"] = json!(output);
        let session = Fixture::begin(&format!("2026-06-0{number}T08:00:00Z"), agent, "/srv/shop", "main")
            .prompt("Run the tests")
            .call(tool, "command", &input, &result)
            .call(
                reader,
                "other",
                &json!({ name: "/srv/shop/missing.txt" }),
                &json!({ "output": "File not found", "outcome": "failed" }),
            );
        steno.recorded(&id(number), &session.end());
    }
    steno
}

#[test]
fn failures_of_every_agent_are_listed_in_the_same_way() {
    let steno = with_failures();
    let text = steno.run(&["failures", "--utc"]).out;
    let after_project: Vec<&str> =
        text.lines().map(|line| line.split_once("  shop  ").map_or(line, |(_, rest)| rest)).collect();
    let line = "     E       AssertionError: assert 1 == 3";
    let calls = [("Read", 4), ("read", 3), ("view", 2), ("read_file", 1)];
    assert_eq!(after_project.len(), 16, "{text}");
    assert_eq!(after_project.iter().filter(|shown| **shown == line).count(), 4, "{text}");
    let command = "✗ exit 1  $ pytest -q tests/test_checkout.py";
    assert_eq!(after_project.iter().filter(|shown| **shown == command).count(), 4, "{text}");
    for (tool, _) in calls {
        assert!(after_project.contains(&&*format!("✗  {tool} missing.txt")), "{tool}: {text}");
    }
    for row in steno.run(&["failures", "--json"]).json().iter().filter(|row| row["class"] == "command") {
        assert_eq!(
            (&row["exit_code"], &row["command"], &row["line"]),
            (
                &json!(1),
                &json!("pytest -q tests/test_checkout.py"),
                &json!("E       AssertionError: assert 1 == 3")
            ),
            "{row}"
        );
    }
}

#[test]
fn failures_fit_terminals_of_two_widths() {
    needs!(tool("script"), "script, which makes a terminal, is not installed");
    let steno = with_failures();
    for columns in [80, 140] {
        let program = kit::program();
        let command = format!(
            "PAGER=cat COLUMNS={columns} {} --color never failures --utc </dev/null",
            program.to_string_lossy()
        );
        let shown = steno.shell(&format!("script -qec '{command}' /dev/null"), &[]).output().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap().replace("\r\n", "\n");
        assert!(shown.lines().all(|line| line.chars().count() <= columns), "{shown}");
        golden::check(format!("tests/golden/terminals/failures_{columns}.txt"), &shown);
    }
}

const SESSION: &str = "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee";

/// A store with a session of Claude Code, and its file with its content.
fn with_a_session() -> (Steno, PathBuf, String) {
    let steno = Steno::new();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/claude-session.jsonl");
    let sample = fs::read_to_string(sample).unwrap();
    let file = steno.dir.path().join(format!(".claude/projects/-srv-shop/{SESSION}.jsonl"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &sample).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(steno.run(&["ls", "--gone"]).code, 1);
    (steno, file, sample)
}

#[test]
fn up_names_the_sessions_that_agents_deleted_or_shortened() {
    let (steno, file, sample) = with_a_session();
    let named = |what: &str| {
        format!(
            "claude {what} 2f6b  The test `parse` fails. Why?  (tokenizer, kept here)\n\
             `steno ls --gone` lists the sessions and how to restore them\n"
        )
    };
    fs::remove_file(&file).unwrap();
    let said = steno.run(&["up", "--once"]);
    assert!(said.code == 0 && said.err.ends_with(&named("deleted")), "{said:?}");
    let short: String = sample.split_inclusive('\n').take(2).collect();
    fs::write(&file, &short).unwrap();
    let said = steno.run(&["import"]);
    assert!(said.code == 0 && said.err.ends_with(&named("shortened")), "{said:?}");
    fs::write(&file, &sample).unwrap();
    let said = steno.run(&["up", "--once"]);
    assert!(said.code == 0 && !said.err.contains("kept here"), "{said:?}");
}

#[test]
fn lost_sessions_are_listed_and_brought_back() {
    let (steno, file, sample) = with_a_session();

    fs::remove_file(&file).unwrap();
    let gone = &steno.run(&["ls", "--gone", "--json"]).json()[0]["gone"];
    let restore = format!("steno restore {SESSION}");
    assert_eq!((&gone["what"], &gone["restore"]), (&json!("deleted"), &json!(restore)), "{gone}");
    let text = steno.run(&["ls", "--gone"]).out;
    assert!(text.contains("deleted, last archived") && text.contains("steno restore 2f6b\n"), "{text}");
    assert!(steno.run(&["ls"]).out.starts_with("◌ "), "the list marks it");
    for (args, words) in
        [(&["doctor"][..], "1 session that the agents"), (&[], "; the agents deleted or rewrote 1")]
    {
        let said = steno.run(args).out;
        assert!(said.contains(words) && said.contains("`steno ls --gone`"), "{args:?}: {said}");
    }
    let state = steno.run(&[]).out;
    assert_eq!(state.lines().take_while(|line| !line.is_empty()).count(), 5, "{state}");
    let shown = steno.run(&["show", SESSION]).out;
    assert!(shown.contains(&format!("resume: {restore} && ")), "{shown}");
    let store = steno.store().display().to_string();
    let of_store = |args: &[&str]| {
        let mut command = steno.command(&[&["--store", &store], args].concat());
        command.env_remove("STENO_HOME");
        run(command, b"")
    };
    let restore = format!("{restore} --store {store}");
    assert_eq!(of_store(&["ls", "--gone", "--json"]).json()[0]["gone"]["restore"], json!(restore));
    let text = of_store(&["ls", "--gone"]).out;
    assert!(text.contains(&format!("steno restore 2f6b --store {store}\n")), "{text}");
    let text = of_store(&["show", SESSION]).out;
    assert!(text.contains(&format!("resume: {restore} && ")), "{text}");
    let text = of_store(&[]).out;
    assert!(text.contains(&format!("steno show last --store {store}  show the last session")), "{text}");
    let said = steno.run(&["restore", "2f6b"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains(&format!("&& claude --resume {SESSION}")), "{said:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), sample);
    assert_eq!(steno.run(&["ls", "--gone"]).code, 1, "it is there again");
    assert!(!steno.run(&["show", SESSION]).out.contains("steno restore"));

    // The agent shortens it.
    let short: String = sample.split_inclusive('\n').take(2).collect();
    fs::write(&file, &short).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    let row = &steno.run(&["ls", "--gone", "--json"]).json()[0];
    assert_eq!(row["gone"]["what"], json!("shortened"), "{row}");
    let command = row["gone"]["restore"].as_str().unwrap().to_owned();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(args.contains(&"--replace"), "{command}");
    check_not_resumed_as_it_is(&steno, &command);
    let without: Vec<&str> = args.iter().copied().filter(|arg| *arg != "--replace").collect();
    assert_eq!(steno.run(&without).code, 1, "nothing is replaced without the flag");
    let said = steno.run(&args);
    assert!(said.code == 0 && said.out.contains("kept aside"), "{said:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), sample);
    assert_eq!(fs::read_to_string(file.with_extension("jsonl.replaced-1")).unwrap(), short);
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(steno.run(&["ls", "--gone"]).code, 1, "what was missing is there again");
    let grown = sample.clone() + &short.replace("\"uuid\":\"", "\"uuid\":\"again-");
    fs::write(&file, &grown).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(steno.run(&["ls", "--gone"]).code, 1, "and more");
    fs::write(&file, &short).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(steno.run(&["ls", "--gone", "--json"]).json().len(), 1, "it was shortened again");
}

#[test]
fn gone_looks_at_the_files_as_they_are() {
    let (steno, file, sample) = with_a_session();
    let gone = || steno.run(&["ls", "--gone", "--json"]).json();
    let short: String = sample.split_inclusive('\n').take(2).collect();
    // No `steno up` has seen it.
    fs::write(&file, &short).unwrap();
    let found = gone();
    assert_eq!(found[0]["gone"]["what"], json!("shortened"), "{found:?}");
    let command = found[0]["gone"]["restore"].as_str().unwrap().to_owned();
    assert_eq!(steno.run(&command.split(' ').skip(1).collect::<Vec<_>>()).code, 0, "{command}");
    assert_eq!(fs::read_to_string(&file).unwrap(), sample);
    assert_eq!(gone().len(), 0);
    // The archive knows the short file, and nothing of the restored one.
    fs::write(&file, &short).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    let said = steno.run(&["restore", SESSION, "--generation", "0", "--replace"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(gone().len(), 0);
    assert!(!steno.run(&["ls"]).out.starts_with("◌ "));
    // It has other content of the same length.
    fs::write(&file, sample.replacen("parse", "PARSE", 1)).unwrap();
    assert_eq!(gone().len(), 1);
}

/// Checks that nobody is told to resume a session from its short file.
#[track_caller]
fn check_not_resumed_as_it_is(steno: &Steno, restore: &str) {
    let shown = steno.run(&["show", SESSION]).out;
    assert!(shown.contains(&format!("resume: {restore} && ")), "{shown}");
    let said = steno.run(&["restore", SESSION]);
    assert!(said.code == 1 && said.err.contains("not restored: a shorter file is at `"), "{said:?}");
    assert!(said.err.contains(&format!("`{restore}`")) && !said.err.contains("--resume"), "{said:?}");
    assert!(!said.out.contains("already there"), "{said:?}");
}

/// A list without entries is no error, but scripts can tell it from one with entries.
#[test]
fn list_without_entries_is_no_error() {
    let steno = filled();
    for (args, want) in [
        (&["ls", "nosuchword"][..], "no session matches"),
        (&["ls", "--gone"], "no file of an archived session is deleted or shorter"),
        (&["ls", "--gone", "--agent", "codex"], "no session matches"),
        (&["search", "nosuchword"], "no text matches; searched "),
        (&["changes", "src/nosuch.rs"], "no session changed `src/nosuch.rs`"),
        (&["changes", "--project", "nosuch"], "no session matches"),
        (&["failures", "--agent", "codex"], "nothing failed"),
        (&["failures", "--agent", "codx"], "no session matches"),
        (&["usage", "--since", "2030-01-01"], "no usage found"),
        (&["follow"], "no session is being recorded"),
        (&["events", &id(2), "--type", "tool.progress"], "no matching events in "),
    ] {
        let said = steno.run(args);
        assert_eq!((said.code, &*said.out), (1, ""), "{args:?}: {said:?}");
        let is_told = said.err.lines().any(|line| line.starts_with(want));
        assert!(is_told && !said.err.contains("error:"), "{args:?}: {said:?}");
        if !matches!(args[0], "search" | "follow") {
            let said = steno.run(&[args, &["--json"]].concat());
            assert_eq!((said.code, &*said.out), (1, ""), "{args:?}: {said:?}");
        }
    }
    // The last line of a search says what was searched.
    let found = steno.run(&["search", "nosuchword", "--json"]);
    assert_eq!((found.code, found.json().len()), (1, 1), "{found:?}");
}

#[test]
fn unknown_agent_is_answered_with_the_known_ones() {
    let steno = filled();
    for args in [&["ls"][..], &["changes"], &["failures"], &["search", "login"], &["usage"]] {
        let said = steno.run(&[args, &["--agent", "codx", "--until", "2030-01-01"]].concat());
        let hint = "hint: unknown agent `codx`; known agents: claude, codex, gemini, copilot, opencode, anthropic, \
                    openai, mcp, command\n";
        assert!(said.code == 1 && said.err.contains(hint), "{args:?}: {said:?}");
        let said = steno.run(&[args, &["--agent", "mcp", "--until", "2030-01-01"]].concat());
        assert!(said.code == 1 && !said.err.contains("unknown agent"), "{args:?}: {said:?}");
    }
}

/// Gemini CLI and Copilot CLI call a command a success whatever its exit code is.
#[test]
fn command_with_an_exit_code_is_a_failure_in_every_answer() {
    let steno = Steno::new();
    let gemini = "<untrusted_context>\nOutput: no\nExit Code: 3\nProcess Group PGID: 5\n</untrusted_context>";
    let command = json!({ "command": "make" });
    let session = Fixture::begin("2026-06-08T08:00:00Z", "gemini", "/srv/shop", "main")
        .prompt("Build it")
        .call("run_shell_command", "command", &command, &json!({ "output": gemini, "outcome": "ok" }))
        .call("bash", "command", &command, &json!({ "output": "no", "outcome": "ok", "exit_code": 4 }))
        .call("bash", "command", &command, &json!({ "output": "Exit Code: 5", "outcome": "ok" }));
    steno.recorded(&id(1), &session.end());
    let failures = steno.run(&["failures", "--json"]).json();
    let codes: Vec<_> = failures.iter().map(|row| row["exit_code"].clone()).collect();
    assert_eq!(codes, [json!(4), json!(3)]);
    assert_eq!(steno.run(&["ls", "--json"]).json()[0]["failures"], 2);
    assert_eq!(steno.run(&["ls", "--failed", "--json"]).json().len(), 1);
    let found = steno.run(&["search", "exit:3", "--json"]).json();
    let kinds: Vec<_> = found.iter().filter(|row| row["type"] == "hit").map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["command", "output"]);
    let shown = steno.run(&["show", "last"]).out;
    assert!(shown.contains("· 2 failed") && shown.matches("✗ $ make").count() == 2, "{shown}");
    let tree = steno.run(&["tree", "last"]).out;
    assert!(tree.contains("2 failed"), "{tree}");
}

/// What a transcript of one run says, without the code under test: failed calls, commands and turns, and files that were
/// changed.
const JQ: &str = r#"
def paths: if type == "string" then [scan("(?m)^\\*\\*\\* (?:Update File|Add File|Delete File|Move to): (.*)$")[0]]
  else ([.file_path, .filePath, .notebook_path, .absolute_path, .path] | map(strings) | .[:1])
    + ([.patch, .input, .diff] | map(strings) | map(paths) | add // [])
    + ([.command, .cmd] | map((arrays | last), strings) | map(strings | paths) | add // [])
    + ((.changes | objects | keys) // []) end;
def printed: (.output | strings) as $text
  | [ $text | if test("^Exit code [0-9]") then capture("^Exit code (?<code>[0-9]+)")
    elif test("^(Exit code: |Wall time: |Chunk ID: )") then capture("(Exit code: |with code )(?<code>[0-9]+)\n")
    elif test("^(<untrusted_context>\n)?(Output|Command): ") then capture("\nExit Code: (?<code>[0-9]+)")
    else capture("\n<[^\n]*exit code (?<code>[0-9]+)>$") end | .code | tonumber ] | first;
def code: .exit_code // (if .class == "command" then printed else null end) // 0;
[inputs] as $all
| ([$all[] | select(.type == "tool.call") | {key: .payload.call_id, value: .payload}] | from_entries) as $calls
| ([$all[] | select(.type == "step.completed" and ((.payload.error // "") != "")
    and (.payload.error | IN("interrupted", "aborted") | not))]) as $errors
| ([$errors[] | select(.payload.kind == "error")]) as $own
| ([$errors[] | select(.payload.kind == "command")]) as $commands
| ([$errors[] | select(.payload.kind == "turn") | .path | select(IN($own[].path) | not)]) as $turns
| [$all[] | select(.type == "tool.result")] | group_by(.payload.call_id) | map(last.payload)
| {failures: ((map(select(.outcome == "failed" or ((.outcome | IN("denied", "interrupted") | not) and code != 0))) | length)
    + ($own + $commands + $turns | length)),
   changes: [.[] | select(.outcome == "ok") | $calls[.call_id] | select(.class == "file_change") | .input | paths | unique[]] | sort}
"#;

#[test]
fn failures_and_changes_are_those_of_the_transcripts() {
    let jq = needs!(tool("jq"), "there is no jq");
    let shared = needs!(shared_dir(), "../shared is absent");
    let parts = ["captures", "recordings", "versions"];
    let counts = parts.map(|part| compare_with_transcripts(&shared.join(part).to_string_lossy(), &jq));
    let [sessions, failures, changes] =
        [0, 1, 2].map(|of| counts.iter().map(|count| count[of]).sum::<usize>());
    assert!(sessions > 10 && failures > 3 && changes > 1, "{sessions} sessions, {failures}, {changes}");
}

/// Compares the lists of a store with its transcripts. Returns how many sessions, failures and changes there were.
fn compare_with_transcripts(files: &str, jq: &Path) -> [usize; 3] {
    let steno = Steno::new();
    assert_eq!(steno.run(&["import", files]).code, 0);
    let mut found = BTreeMap::<String, (usize, Vec<String>)>::new();
    for row in steno.run(&["failures", "--json"]).json() {
        found.entry(row["run_id"].as_str().unwrap().to_owned()).or_default().0 += 1;
    }
    for row in steno.run(&["changes", "--json"]).json() {
        let path = row["path"].as_str().unwrap().to_owned();
        found.entry(row["run_id"].as_str().unwrap().to_owned()).or_default().1.push(path);
    }
    let listed = |args: &[&str]| -> BTreeSet<String> {
        let rows = steno.run(&[&["ls", "--json"], args].concat()).json();
        rows.iter().map(|row| row["run_id"].as_str().unwrap().to_owned()).collect()
    };
    let failed = listed(&["--failed"]);
    let mut counts = [0, 0, 0];
    let calls: BTreeMap<String, _> =
        listed(&[]).into_iter().map(|run| (run.clone(), calls_of(&steno, &run))).collect();
    for row in steno.run(&["ls", "--json"]).json() {
        // Facts of several runs are merged, and each has one place.
        if row["runs"] != 1 || row["runs_below"] != 0 {
            continue;
        }
        let run = row["run_id"].as_str().unwrap();
        let transcript = steno.transcript(run);
        if !transcript.exists() || steno.text(run).contains("\"copied_from\"") {
            continue;
        }
        // A fork that does not mark its copies has calls of another session, which lists them.
        if calls.iter().any(|(other, made)| other != run && !made.is_disjoint(&calls[run])) {
            continue;
        }
        let said = Command::new(jq).args(["-c", "-n", JQ]).arg(&transcript).output().unwrap();
        let want: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        let (failures, mut paths) = found.remove(run).unwrap_or_default();
        paths.sort();
        let answer = (json!(failures), json!(paths));
        assert_eq!(answer, (want["failures"].clone(), want["changes"].clone()), "{run}");
        assert_eq!(row["failures"], want["failures"], "{run}");
        let is_failure = want["failures"] != 0 || row["state"] == "failed";
        assert_eq!(failed.contains(run), is_failure, "{run}");
        for path in &paths {
            assert!(listed(&["--touched", path]).contains(run), "{run}: {path}");
        }
        assert!(!listed(&["--touched", "/no/such/file"]).contains(run), "{run}");
        counts = [counts[0] + 1, counts[1] + failures, counts[2] + paths.len()];
    }
    counts
}

/// Returns the ids and times of the calls in a transcript.
fn calls_of(steno: &Steno, run: &str) -> BTreeSet<(String, String)> {
    if !steno.transcript(run).exists() {
        return BTreeSet::new();
    }
    let text = steno.text(run);
    let events = text.lines().filter(|line| line.contains("tool.call")).map(kit::json);
    let calls = events.filter(|event| event["type"] == "tool.call");
    calls.map(|call| (call["payload"]["call_id"].to_string(), call["timestamp"].to_string())).collect()
}

/// An update of the index gives what a new one has: sessions move below others, and sums of agents include them.
#[test]
fn index_after_each_import_equals_a_new_one() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for capture in ["gemini/0.61.0/json_output", "claude/2.1.325/compact", "codex/0.166.0/exec_main"] {
        let dir = shared.join("captures").join(capture);
        // Subagents before the sessions that started them.
        let mut sources: Vec<_> = places::files_below(&dir)
            .into_iter()
            .map(|name| dir.join(name))
            .filter(|path| {
                path.extension().is_some_and(|end| ["json", "jsonl", "ndjson"].iter().any(|of| end == *of))
            })
            .collect();
        sources.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        let steno = Steno::new();
        let mut sessions = 0;
        for source in sources {
            steno.run(&["import", &source.to_string_lossy()]);
            let listed = steno.run(&["ls", "--json"]).out;
            sessions = listed.lines().count();
            steno.run(&["index", "rebuild"]);
            assert_eq!(steno.run(&["ls", "--json"]).out, listed, "{}", source.display());
        }
        assert!(sessions > 0, "{capture}");
    }
}
