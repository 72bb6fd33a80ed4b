//! `steno show`: a session as a conversation, from the store and from agents' files.

mod pagers;

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
fn run_is_shown_with_its_child_below_its_step() {
    let steno = store();
    let child = id(7);
    let want = format!(
        "Fix it.\nfix\n2026-06-08 08:14 · done · 1 prompt · 0 calls (with 1 subagent)\nrun {RUN}\nnot recorded: tokens\n\n\
         ── t1  2026-06-08 08:14\n you │ Fix it.\n\n     ┊ How?\n\n  ai │ So.\n       ↳ child run {child}  look  open\n"
    );
    let said = steno.run(&["show", &RUN[..8]]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, want.as_str(), ""));
    let file = steno.transcript(RUN);
    assert_eq!(steno.run(&["show", file.to_str().unwrap()]).out, want, "a transcript file");
    let coloured = steno.run(&["show", RUN, "--color", "always"]).out;
    assert!(coloured.contains("\u{1b}[1m\u{1b}[32m you │ \u{1b}[0mFix it."), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[2m┊ \u{1b}[0m\u{1b}[2m\u{1b}[3mHow?\u{1b}[0m"), "{coloured:?}");
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
        "Build it.\nclaude 2.1.100 · claude-x\n2026-06-08 08:14 · 3.0s · open · 1 prompt · 1 call\n\
         3 in · 100 cached · 20 out · cost unknown\nrun {RUN}\n\
         not recorded: approvals, exit codes\n\n\
         ── turn-0001  2026-06-08 08:14  open\n you │ Build it.\n\n  ai │ On it.\n     ▸ $ make  1.0s\n       done\n\n\
         ── resume: claude --resume {RUN}  # in the project's directory\n"
    );
    assert_eq!((said.code, said.out, said.err.as_str()), (0, want, ""));
    assert!(!steno.store().exists());
    session_with_subagent(&steno);
    let shown = steno.run(&["show", "p"]).out;
    assert!(
        shown.contains(&format!("\nrun {RUN}\n")) && shown.contains(&format!("  of run {RUN}\n")),
        "{shown}"
    );
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
