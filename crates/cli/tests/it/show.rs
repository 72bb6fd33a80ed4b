//! `steno show`: a session as a conversation, from the store and from agents' files.

use serde_json::{Value, json};

use crate::agents_files::{put, session, session_with_subagent, text};
use crate::kit::{RUN, Steno, TIME, id};

fn event(kind: &str, path: &str, payload: &Value) -> Value {
    json!({ "type": kind, "path": path, "timestamp": TIME, "payload": payload })
}

fn said(role: &str, block: Value) -> Value {
    let mut block = block;
    block["fidelity"] = json!("agent_emitted");
    event(&format!("message.{role}"), "t1", &json!({ "role": role, "blocks": [block] }))
}

/// A run that calls another one, both in the store.
fn store() -> Steno {
    let steno = Steno::new();
    let child = id(7);
    let mut call =
        event("step.call_workflow.started", "t1", &json!({ "name": "look", "kind": "call_workflow" }));
    call["child_run_id"] = json!(child);
    steno.recorded(
        RUN,
        &[
            event("run.started", "", &json!({ "name": "fix", "kind": "session" })),
            event("step.started", "t1", &json!({ "name": "t1", "kind": "turn" })),
            said("user", json!({ "type": "text", "text": "Fix it." })),
            said("assistant", json!({ "type": "thinking", "thinking": "How?" })),
            said("assistant", json!({ "type": "text", "text": "So." })),
            call,
            event("step.completed", "t1", &json!({ "name": "t1", "kind": "turn" })),
        ],
    );
    let mut started = event("run.started", "", &json!({ "name": "look", "kind": "session" }));
    started["parent_run_id"] = json!(RUN);
    steno.recorded(&child, &[started]);
    steno
}

#[test]
fn run_is_shown_with_its_child_after_it() {
    let steno = store();
    let child = id(7);
    let want = format!(
        "run {RUN}  fix  open\n\n── t1  {TIME}\n\nuser\n  Fix it.\n\nassistant\n┊ How?\n  So.\n\n\
         · child run {child}  look  open\n\nchild run {child}  of {RUN}  look  open\n"
    );
    let said = steno.run(&["show", &RUN[..8]]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, want.as_str(), ""));
    let file = steno.transcript(RUN);
    assert_eq!(steno.run(&["show", file.to_str().unwrap()]).out, want, "a transcript file");
    let coloured = steno.run(&["show", RUN, "--color", "always"]).out;
    assert!(coloured.contains("\u{1b}[1m\u{1b}[32muser\u{1b}[0m\n  Fix it."), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[2m┊\u{1b}[0m \u{1b}[2m\u{1b}[3mHow?\u{1b}[0m"), "{coloured:?}");
    let objects = steno.run(&["show", RUN, "--json"]).json();
    let ids: Vec<_> = objects.iter().map(|object| object["run_id"].clone()).collect();
    assert_eq!(ids, [json!(RUN), json!(child)]);
    assert_eq!(objects[0]["turns"][0]["items"][0]["blocks"][0]["text"], "Fix it.");
}

#[test]
fn agents_files_are_shown_as_conversations() {
    let steno = Steno::new();
    let file = put(&steno, "s.jsonl", text(&session()));
    let said = steno.run(&["show", &file]);
    let want = format!(
        "run {RUN}  claude  open\n\n── turn-0001  2026-06-08T08:14:01.000Z  open\n\nuser\n  Build it.\n\n\
         assistant  claude-x\n  On it.\n▸ Bash {{\"command\":\"make\"}}\n│ done\n"
    );
    assert_eq!((said.code, said.out, said.err.as_str()), (0, want, ""));
    assert!(!steno.store().exists());
    session_with_subagent(&steno);
    let shown = steno.run(&["show", "p"]).out;
    let heads: Vec<_> =
        shown.lines().filter(|line| line.contains("run ") && !line.starts_with(' ')).collect();
    let [outer, inner] = heads[..] else { panic!("{shown}") };
    assert!(outer.starts_with(&format!("run {RUN}")) && inner.contains(&format!("of {RUN}")), "{shown}");
    assert_eq!(steno.run(&["show", "p", "--json"]).json().len(), 2);
}

#[test]
fn unshowable_arguments_are_errors() {
    let steno = Steno::new();
    put(&steno, "d/x.jsonl", "{\"a\":1}\n");
    for (path, code) in [("d", 1), ("nowhere", 2), (RUN, 1)] {
        let said = steno.run(&["show", path]);
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{path}: {said:?}");
        assert!(said.err.starts_with("error: "), "{path}: {said:?}");
    }
    put(&steno, "d/a.jsonl", b"\x28\xb5\x2f\xfd\xff no such compression");
    put(&steno, "d/s.jsonl", text(&session()));
    let said = steno.run(&["show", "d"]);
    assert!(said.code == 3 && said.out.contains("Build it."), "{said:?}");
}

/// The copied part of a fork names the run that it was copied from.
#[test]
fn copied_part_of_a_fork_names_its_run() {
    let steno = Steno::new();
    let own = "0f000000-0000-4000-8000-00000000000a";
    let line = |uuid: &str, more: &str, words: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","sessionId":"{own}","timestamp":"{TIME}"{more},"message":{{"role":"user","content":"{words}"}}}}"#
        )
    };
    let forked = format!(r#","forkedFrom":{{"sessionId":"{RUN}","messageUuid":"o"}}"#);
    let lines = [line("p", &forked, "Once."), line("q", "", "Again.")].join("\n") + "\n";
    let file = steno.dir.path().join(format!("{own}.jsonl"));
    std::fs::write(&file, lines).unwrap();
    let said = steno.run(&["show", file.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    let copied: Vec<&str> = said.out.lines().filter(|line| line.contains("copied from run ")).collect();
    assert!(copied.len() == 1 && copied[0].ends_with(&format!("copied from run {RUN}")), "{}", said.out);
    let turns = &steno.run(&["show", file.to_str().unwrap(), "--json"]).json()[0]["turns"];
    assert_eq!(
        (&turns[0]["items"][0]["copied_from"], &turns[1]["items"][0]["copied_from"]),
        (&json!(RUN), &json!(null))
    );
}
