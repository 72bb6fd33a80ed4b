//! Digests of small hand-written sessions.

use serde_json::{Value, json};
use steno_model::ExchangeEvent;
use steno_session::{Content, Session, SessionBuilder};

use super::*;
use crate::testing::{run_id, time};

fn events(lines: &[Value]) -> Vec<ExchangeEvent> {
    let event = |(index, line): (usize, &Value)| {
        let seq = index as u64 + 1;
        let mut whole = json!({
            "seq": seq, "run_id": run_id(1).to_string(), "type": line[0], "path": line[1], "iteration": 0,
            "timestamp": time(seq), "payload": line[2],
        });
        if let Some(from) = line[3].as_str() {
            whole["copied_from"] = from.into();
        }
        ExchangeEvent::parse(whole.to_string().as_bytes()).unwrap()
    };
    lines.iter().enumerate().map(event).collect()
}

fn fold(lines: &[Value]) -> (Session, Vec<ExchangeEvent>) {
    let events = events(lines);
    let mut builder = SessionBuilder::new(run_id(1), Content::Whole);
    for event in &events {
        builder.push(event);
    }
    (builder.finish(), events)
}

fn started() -> Value {
    json!(["run.started", "", {
        "name": "codex", "kind": "session", "cwd": "/w/shop", "git": {"branch": "main"},
        "source": {"adapter": "codex/2", "channel": "disk", "version": "0.9"},
    }])
}

fn turn() -> Value {
    json!(["step.started", "turn-0001", {"name": "turn-0001", "kind": "turn"}])
}

fn prompt(text: &str) -> Value {
    json!(["message.user", "turn-0001", {"role": "user", "blocks": [{"type": "text", "text": text}]}])
}

fn fact(name: &str, result: &Value) -> Value {
    json!(["step.completed", "", {"name": name, "kind": "system", "result": result}])
}

fn call(id: &str, class: &str, input: &Value) -> Value {
    json!(["tool.call", "turn-0001", {
        "name": "tool", "call_id": id, "input": input, "output": null, "class": class, "fidelity": "agent_emitted",
    }])
}

fn result(id: &str, outcome: &str, output: &Value) -> Value {
    let exit_code = if outcome == "ok" { 0 } else { 3 };
    json!(["tool.result", "turn-0001", {
        "name": "tool", "call_id": id, "input": null, "output": output, "outcome": outcome, "exit_code": exit_code,
        "fidelity": "agent_emitted",
    }])
}

fn digest(lines: &[Value]) -> SessionDigest {
    SessionDigest::of(&fold(lines).0)
}

#[test]
fn digest_counts_prompts_calls_and_failures() {
    let seen = digest(&[
        started(),
        turn(),
        prompt("\n  Fix the cart. \nIt is slow."),
        json!(["message.assistant", "turn-0001", {
            "role": "assistant", "blocks": [{"type": "text", "text": "Yes."}], "response": "r1", "model": "gpt-5.5",
        }]),
        call("c1", "command", &json!({"cmd": "ls"})),
        result("c1", "failed", &json!("boom")),
        call("c2", "file_change", &json!({"file_path": "a.rs"})),
        result("c2", "denied", &json!(null)),
        call("c3", "other", &json!({})),
        result("c3", "ok", &json!("fine")),
    ]);
    assert_eq!((seen.prompts, seen.responses, seen.calls), (1, 1, 3));
    assert_eq!((seen.failures, seen.denials), (1, 1));
    assert_eq!((seen.title.as_deref(), seen.is_own_title), (Some("Fix the cart."), false));
    assert_eq!((seen.provider.as_deref(), seen.version.as_deref()), (Some("codex"), Some("0.9")));
    assert_eq!((seen.directory.as_deref(), seen.branch.as_deref()), (Some("/w/shop"), Some("main")));
    assert_eq!((seen.models, seen.state), (vec!["gpt-5.5".to_owned()], DigestState::Open));
}

#[test]
fn title_of_the_agent_wins_and_the_last_one_counts() {
    let lines = [
        started(),
        fact("title", &json!("First")),
        turn(),
        prompt("Hello"),
        fact("session_info_update", &json!({"title": "Cart on mobile"})),
        fact("title", &json!("  ")),
    ];
    let seen = digest(&lines);
    assert_eq!((seen.title.as_deref(), seen.is_own_title), (Some("Cart on mobile"), true));
}

#[track_caller]
fn check_title(prompts: &[&str], want: Option<&str>) {
    let mut lines = vec![started(), turn()];
    lines.extend(prompts.iter().map(|text| prompt(text)));
    assert_eq!(digest(&lines).title.as_deref(), want, "{prompts:?}");
}

#[test]
fn title_is_what_the_user_typed() {
    let opened = "<ide_opened_file>The user opened a.toml.</ide_opened_file>";
    let selected = "<ide_selection>let a = 1;\nlet b = 2;</ide_selection>";
    let reminder = "<system-reminder>\nNo tasks.\n</system-reminder>";
    check_title(&[opened, "Add owners."], Some("Add owners."));
    check_title(&[&format!("{opened}\n{selected}\n{reminder}\n\nAdd owners.\nAll.")], Some("Add owners."));
    check_title(&[&format!("Why? {reminder}")], Some("Why? <system-reminder>"));
    check_title(&[opened], None);
    // A tag that the user typed, or one that does not end, is the user's text.
    check_title(&["<div>fix this</div>"], Some("<div>fix this</div>"));
    check_title(&["<system-reminder> is a tag; why?"], Some("<system-reminder> is a tag; why?"));
}

#[test]
fn title_of_a_command_is_its_name_and_arguments() {
    let message =
        "<command-message>review is running…</command-message>\n<command-name>/review</command-name>";
    check_title(&[message], Some("/review"));
    check_title(&[&format!("{message}\n<command-args>PR 7\nall</command-args>")], Some("/review PR 7"));
    check_title(&["<command-name>is a tag"], Some("<command-name>is a tag"));
}

#[track_caller]
fn check_state(lines: &[Value], want: DigestState) {
    let lines: Vec<Value> = [started(), turn(), prompt("Hi")].into_iter().chain(lines.to_vec()).collect();
    assert_eq!(digest(&lines).state, want, "{lines:?}");
}

#[test]
fn exit_of_a_wrapped_command_may_be_a_failure() {
    let check = |channel: &str, between: &[Value], end: &Value, want: DigestState| {
        let mut head = started();
        head[2]["source"] = json!({"channel": channel, "adapter": "x/1"});
        let end = json!(["run.completed", "", end]);
        let lines: Vec<Value> = [head].into_iter().chain(between.to_vec()).chain([end]).collect();
        assert_eq!(digest(&lines).state, want, "{lines:?}");
    };
    let (failed, killed) = (json!({"exit_code": 3}), json!({"signal": 9}));
    check("wrap", &[], &json!({"exit_code": 0}), DigestState::Done);
    check("wrap", &[], &failed, DigestState::Failed);
    check("wrap", &[], &killed, DigestState::Failed);
    check("wrap", &[turn()], &json!({"exit_code": 0}), DigestState::Open);
    check("wrap", &[turn()], &failed, DigestState::Failed);
    let ended = json!(["step.completed", "turn-0001", {"name": "turn-0001", "kind": "turn"}]);
    check("wrap", &[turn(), ended], &failed, DigestState::Done);
    // A client ends its server.
    check("mcp", &[], &killed, DigestState::Done);
}

#[test]
fn state_is_that_of_the_last_turn() {
    let ended = |payload: &Value| {
        let mut all = json!({"name": "turn-0001", "kind": "turn"});
        for (name, value) in payload.as_object().unwrap() {
            all[name] = value.clone();
        }
        json!(["step.completed", "turn-0001", all])
    };
    check_state(&[], DigestState::Open);
    check_state(&[ended(&json!({}))], DigestState::Done);
    check_state(&[ended(&json!({"error": "boom"}))], DigestState::Failed);
    // A process can end in the middle of a turn.
    let failed_run = json!(["run.completed", "", {"error": "boom"}]);
    check_state(&[json!(["run.completed", "", {}])], DigestState::Open);
    check_state(std::slice::from_ref(&failed_run), DigestState::Failed);
    check_state(&[ended(&json!({})), failed_run], DigestState::Failed);
    let asked = json!(["step.started", "turn-0001.approval", {"name": "a1", "kind": "approval", "tool_call_id": "c1"}]);
    let waits = [call("c1", "command", &json!({"cmd": "ls"})), asked];
    check_state(&waits, DigestState::Waiting);
    check_state(&[&waits[..], &[result("c1", "ok", &json!("x"))]].concat(), DigestState::Open);
}

/// Compares the texts of a session as a search reads them.
#[track_caller]
fn check_texts(lines: &[Value], want: &[(TextKind, u64, u32, &str)]) {
    let (session, events) = fold(lines);
    let mut found: Vec<(TextKind, u64, u32, String)> = Vec::new();
    each_text(&session, |unit, text| {
        let seq = unit.at.seq.get();
        let event = &events[usize::try_from(seq).unwrap() - 1];
        let read = unit_text(event, unit.block, unit.kind).unwrap_or_default();
        if let Some(text) = text {
            assert_eq!(text, read, "the same in the session and in its event");
        }
        found.push((unit.kind, seq, unit.block, read));
    });
    let want: Vec<_> =
        want.iter().map(|(kind, seq, block, text)| (*kind, *seq, *block, (*text).to_owned())).collect();
    assert_eq!(found, want);
}

#[test]
fn every_text_is_named_once_by_its_event() {
    check_texts(
        &[
            started(),
            turn(),
            prompt("Why?"),
            json!(["message.assistant", "turn-0001", {"role": "assistant", "response": "r1", "blocks": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "text", "text": "Because."},
                {"type": "tool_use", "tool_name": "tool", "tool_id": "c1", "tool_input":
                    {"cmd": "ls \"x\"", "deep": ["a", {"b": "c:"}], "flag": true, "n": -7.5}},
            ]}]),
            call(
                "c1",
                "command",
                &json!({"cmd": "ls \"x\"", "deep": ["a", {"b": "c:"}], "flag": true, "n": -7.5}),
            ),
            result("c1", "ok", &json!([{"type": "text", "text": "x\ny"}])),
        ],
        &[
            (TextKind::Prompt, 3, 0, "Why?"),
            (TextKind::Thought, 4, 0, "Hm."),
            (TextKind::Answer, 4, 1, "Because."),
            (TextKind::Command, 5, 0, "ls \"x\"\na\nc:\n-7.5"),
            (TextKind::Output, 6, 0, "x\ny"),
        ],
    );
}

/// The events of a plain command of `steno run` that ends with an exit code.
fn plain_command(exit_code: i64, error: &Value) -> Vec<Value> {
    let mut head = started();
    head[2] = json!({"name": "sh", "kind": "command", "source": {"channel": "wrap", "adapter": "command/1"},
        "wrap": {"command": ["sh", "-c", "exit 42"]}});
    vec![
        head,
        json!(["step.started", "command", {"name": "sh", "kind": "command"}]),
        json!(["step.completed", "command", {"name": "sh", "kind": "command", "error": error,
            "result": {"exit_code": exit_code, "stdout": "out\n", "stderr": "boom: bad\n"}}]),
        json!(["run.completed", "", {"exit_code": exit_code}]),
    ]
}

#[test]
fn failed_command_of_steno_run_is_a_failure_with_its_words_and_its_output() {
    let lines = plain_command(42, &json!("exit code 42"));
    let (session, events) = fold(&lines);
    let seen = SessionDigest::of(&session);
    assert_eq!((seen.calls, seen.failures, seen.state), (0, 1, DigestState::Failed));
    let entries = entries_beside_calls(&session);
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!((entry.at.seq.get(), entry.outcome), (2, Outcome::Failed));
    assert_eq!((&*entry.digest.tool, entry.digest.class.as_deref()), ("sh", Some("command")));
    assert_eq!((entry.digest.exit_code, entry.digest.duration_ms), (Some(42), Some(1000)));
    assert_eq!(error_output(&events[2]).as_deref(), Some("boom: bad\n"));
    check_texts(
        &lines,
        &[(TextKind::Command, 1, 0, "sh\n-c\nexit 42"), (TextKind::Output, 3, 0, "out\n\nboom: bad\n")],
    );
    assert_eq!(digest(&plain_command(0, &json!(null))).failures, 0);
}

fn step(kind: &str, error: &Value) -> Value {
    let name = if kind == "turn" { "turn-0001" } else { "api" };
    json!(["step.completed", "turn-0001", {"name": name, "kind": kind, "error": error}])
}

#[track_caller]
fn check_errors(lines: &[Value], failures: u64, texts: &[(u64, &str)]) {
    let lines: Vec<Value> = [started(), turn()].into_iter().chain(lines.to_vec()).collect();
    assert_eq!(digest(&lines).failures, failures, "{lines:?}");
    let texts: Vec<_> = texts.iter().map(|(seq, text)| (TextKind::Output, *seq, 0, *text)).collect();
    check_texts(&lines, &texts);
}

#[test]
fn error_and_failed_turn_are_one_failure() {
    let (overload, bad) = (json!("529 overloaded"), json!("API Error: 400"));
    check_errors(&[step("error", &bad)], 1, &[(3, "API Error: 400")]);
    check_errors(&[step("turn", &bad)], 1, &[(3, "API Error: 400")]);
    check_errors(&[step("error", &bad), step("turn", &bad)], 1, &[(3, "API Error: 400")]);
    check_errors(
        &[step("error", &bad), step("turn", &json!("gave up"))],
        1,
        &[(3, "API Error: 400"), (4, "gave up")],
    );
    // An attempt that was repeated is no failure, but its text is found.
    check_errors(&[step("retry", &overload), step("turn", &json!(null))], 0, &[(3, "529 overloaded")]);
    check_errors(&[step("turn", &json!("interrupted"))], 0, &[]);
    check_errors(&[step("error", &json!(null))], 0, &[]);
    let mut copied = step("error", &bad);
    copied.as_array_mut().unwrap().push(run_id(2).to_string().into());
    check_errors(&[copied], 1, &[]);
}

#[test]
fn copied_texts_are_left_to_their_origin() {
    let mut copied = prompt("Why?");
    copied.as_array_mut().unwrap().push(run_id(2).to_string().into());
    check_texts(&[started(), turn(), copied], &[]);
}

#[track_caller]
fn check_paths(input: &Value, want: &[&str]) {
    let input = steno_model::json::RawJson::parse(&input.to_string()).unwrap();
    assert_eq!(paths_changed(Some(&input)), want, "{input:?}");
}

#[test]
fn paths_of_edits_and_patches_are_found() {
    check_paths(&json!({"file_path": "src/a.rs", "old_string": "x"}), &["src/a.rs"]);
    check_paths(&json!({"path": "b.md", "content": "*** Update File: no"}), &["b.md"]);
    let patch =
        "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** Update File: a.py\n";
    check_paths(&json!(patch), &["a.py", "b.py"]);
    check_paths(&json!({"input": patch}), &["a.py", "b.py"]);
    check_paths(&json!({"changes": {"c.py": {"update": {}}}}), &["c.py"]);
    check_paths(&json!({}), &[]);
}

#[test]
fn digest_of_a_call_has_its_exit_code_and_duration() {
    let (session, _) = fold(&[
        started(),
        turn(),
        call("c1", "file_change", &json!({"file_path": "a.rs"})),
        result("c1", "ok", &json!("done")),
    ]);
    let want = CallDigest {
        id: Some("c1".into()),
        tool: "tool".into(),
        class: Some("file_change".into()),
        exit_code: Some(0),
        duration_ms: Some(1000),
        paths: vec!["a.rs".into()],
    };
    assert_eq!(CallDigest::of(&session.calls[0]), want);
}

#[test]
fn escape_sequences_do_not_join_words() {
    let output = |text: &str| {
        let json = steno_model::json::RawJson::parse(&json!(text).to_string()).unwrap();
        output_text(&json, None).unwrap()
    };
    for (text, want) in [
        ("plain", "plain"),
        ("\u{1b}[1;31mred\u{1b}[0m.", "red."),
        ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\ after", "link after"),
        ("cut \u{1b}[3", "cut "),
        ("lone \u{1b} escape", "lone  escape"),
        ("\u{1b}[\nnew line", "new line"),
    ] {
        assert_eq!(output(text), want, "{text:?}");
    }
}
