//! Details of agents' files: images, system prompts, usage, subagents, system steps.

use std::fs;

use serde_json::{Value, json};

use crate::agents_files::{line, put, session, session_with_subagent, text};
use steno_testkit::{needs, tool};

use crate::kit::{RUN, Steno};

fn attachment(number: u32, name: &str) -> Value {
    line(number, json!({"type": "attachment", "attachment": {"type": name, "content": name}}))
}

#[test]
fn show_marks_images_of_the_user() {
    let steno = Steno::new();
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let content = json!([{"type": "text", "text": "See this."}, {"type": "image", "source": source}]);
    let prompt = line(1, json!({"type": "user", "message": {"role": "user", "content": content}}));
    let file = put(&steno, "s.jsonl", text(&[prompt]));
    let shown = steno.run(&["show", &file]).out;
    assert!(shown.contains(" you │ See this.\n     │ [image, "), "{shown}");
    let events = steno.run(&["events", &file]).out;
    assert!(events.contains("See this. · [image, "), "{events}");
}

#[test]
fn events_mark_system_prompts_and_usage() {
    let steno = Steno::new();
    let block =
        json!({"type": "text", "fidelity": "agent_emitted", "text": "Be kind.", "label": "system_prompt"});
    let usage = json!({"role": "assistant", "blocks": [], "usage_scope": "turn",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": 20}});
    steno.recorded(
        RUN,
        &[
            json!({"type": "message.user", "payload": {"role": "user", "blocks": [block]}}),
            json!({"type": "message.assistant", "payload": usage}),
        ],
    );
    let shown = steno.run(&["events", RUN]).out;
    assert!(shown.contains("(system_prompt) Be kind."), "{shown}");
    assert!(shown.contains("(usage of the turn: 3 in, 100 cached, 20 out)"), "{shown}");
    assert!(!steno.run(&["tree", RUN]).out.contains("message"));
}

#[test]
fn subagent_state_comes_from_its_parent_and_unread_is_not_missing() {
    let steno = Steno::new();
    session_with_subagent(&steno);
    // Only a tool that starts agents tells of their ends.
    let main = format!("p/{RUN}.jsonl");
    let whole = fs::read_to_string(steno.dir.path().join(&main)).unwrap();
    put(&steno, &main, whole.replace("\"Bash\"", "\"Task\""));
    for (command, word) in [("tree", "completed (reported by parent)"), ("show", "subagent  completed")] {
        let shown = steno.run(&[command, "p"]).out;
        assert_eq!(shown.matches(word).count(), 1, "{command}: {shown}");
    }
    // A session file is read with the directory next to it.
    assert_eq!(steno.run(&["tree", &main]).out, steno.run(&["tree", "p"]).out);
    let elsewhere = put(&steno, "alone.jsonl", fs::read(steno.dir.path().join(&main)).unwrap());
    let alone = steno.run(&["tree", &elsewhere]).out;
    assert!(alone.contains("not read") && !alone.contains("missing"), "{alone}");
    let child = format!("p/{RUN}/subagents/agent-a1.jsonl");
    for command in ["tree", "show"] {
        let shown = steno.run(&[command, &child]).out;
        let head = shown.lines().find(|line| line.starts_with("child run ")).unwrap();
        let parent = if command == "tree" { format!("of {RUN}") } else { format!("of run {RUN}") };
        assert!(head.contains(&parent), "{head}");
    }
}

#[test]
fn tree_counts_the_messages_of_show() {
    let steno = Steno::new();
    let file = put(&steno, "s.jsonl", text(&session()));
    let shown = steno.run(&["show", &file]).out;
    let speaks = |line: &&str| line.starts_with(" you │") || line.starts_with("  ai │");
    assert_eq!(shown.lines().filter(speaks).count(), 2, "{shown}");
    assert!(steno.run(&["tree", &file]).out.contains("2 messages, 1 call"));
}

#[test]
fn absent_child_run_of_the_store_is_missing() {
    let steno = Steno::new();
    let call = json!({"type": "step.call_workflow.started", "path": "a", "child_run_id": crate::kit::id(9),
        "payload": {"name": "a", "kind": "call_workflow"}});
    steno.recorded(RUN, &[call]);
    assert!(steno.run(&["tree", RUN]).out.contains("not in the store"));
    let shown = steno.run(&["show", RUN]).out;
    assert!(shown.contains("\nnot in the store: 1 subagent\n"), "{shown}");
    let turn = steno.run(&["show", &format!("{RUN}:1")]).out;
    assert!(!turn.contains("not in the store: "), "only a part of the session was kept: {turn}");
}

#[test]
fn system_steps_share_a_line_without_all() {
    let steno = Steno::new();
    let mut lines = session();
    lines.splice(
        1..1,
        ["model", "date", "environment"].iter().zip(10..).map(|(name, at)| attachment(at, name)),
    );
    let file = put(&steno, "s.jsonl", text(&lines));
    for command in ["tree", "show"] {
        let detail: &[&str] = if command == "show" { &["-t", "3"] } else { &[] };
        let short = steno.run(&[&[command, &file], detail].concat()).out;
        assert!(short.contains("3 system steps: model, date, environment"), "{command}: {short}");
        let all = steno.run(&[command, &file, "--all"]).out;
        assert!(!all.contains("system steps") && all.contains("environment"), "{command}: {all}");
        let json = steno.run(&[command, &file, "--json"]).out;
        assert!(json.contains("environment"), "{command}");
    }
}

#[test]
fn output_fits_the_terminal_and_pipes_have_no_width() {
    needs!(tool("script"), "script, which makes a terminal, is not installed");
    let steno = Steno::new();
    let mut lines = session();
    lines[3]["message"]["content"][0]["content"] = json!("x".repeat(300));
    let file = put(&steno, "s.jsonl", text(&lines));
    let widest = |text: &str| text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
    for (args, piped) in [("show --no-pager", 307), ("events", 175)] {
        let run = format!("COLUMNS=130 \"$0\" --color never {args} {file}");
        let script = format!("script -qec '{}' /dev/null", run.replace("$0", env!("CARGO_BIN_EXE_steno")));
        let shown = steno.shell(&script, &[]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("xxx") && widest(&shown) == 130, "{args}: {shown}");
        let args: Vec<&str> = args.split(' ').chain([&*file]).collect();
        assert_eq!(widest(&steno.run(&args).out), piped, "{args:?}");
    }
}

#[test]
fn unknown_flag_is_not_offered_as_a_value() {
    let steno = Steno::new();
    let said = steno.run(&["usage", "--from", "3"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("--from") && !said.err.contains("as a value"), "{}", said.err);
    let said = steno.run(&["usage", "--jso"]);
    assert!(said.err.contains("a similar argument exists: '--json'"), "{}", said.err);
}

#[test]
fn entries_accept_json() {
    let steno = Steno::new();
    let file = put(&steno, "s.jsonl", text(&session()));
    let plain = steno.run(&["entries", &file]);
    let asked = steno.run(&["entries", "--json", &file]);
    assert_eq!((asked.code, asked.out), (0, plain.out));
}

#[test]
fn help_explains_open_homes_and_counts() {
    let steno = Steno::new();
    for (command, words) in [
        ("tree", &["the end of the last turn is not recorded"][..]),
        ("show", &["the end of the last turn is not recorded"]),
        ("usage", &["CLAUDE_CONFIG_DIR", "CODEX_HOME", "cached", "subagent"]),
        ("events", &["for agents' files, the events derived from them", ".zst"]),
        ("entries", &["its first words, or the session's id"]),
    ] {
        let help = steno.run(&[command, "--help"]).out;
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(help.contains(word), "{command}: no `{word}` in {help}");
        }
    }
}

const AGENT: &str = "0a1b2c3d-0000-4000-8000-00000000000a";

fn chat_of_a_subagent() -> String {
    let header = json!({ "sessionId": AGENT, "projectHash": "h", "startTime": "2026-06-08T08:14:43.500Z",
        "lastUpdated": "2026-06-08T08:14:43.500Z", "kind": "subagent" });
    let prompt = json!({ "id": "a1", "timestamp": "2026-06-08T08:14:43.500Z", "type": "user",
        "content": [{ "text": "Count." }] });
    format!("{header}\n{prompt}\n")
}

/// Chats of Gemini CLI have only a hash of their directory; a file beside them has the directory itself.
#[test]
fn gemini_sessions_have_the_directory_of_their_project() {
    const SESSION: &str = "0a1b2c3d-0000-4000-8000-000000000001";
    let steno = Steno::new();
    let project = steno.dir.path().join(".gemini/tmp/shop");
    fs::create_dir_all(project.join("chats")).unwrap();
    fs::write(project.join(".project_root"), "/srv/shop").unwrap();
    let header = json!({ "sessionId": SESSION, "projectHash": "h", "startTime": "2026-06-08T08:14:42.000Z",
        "lastUpdated": "2026-06-08T08:14:42.000Z", "kind": "main" });
    let prompt = json!({ "id": "m1", "timestamp": "2026-06-08T08:14:43.000Z", "type": "user",
        "content": [{ "text": "Fix it." }] });
    let answer = json!({ "id": "m2", "timestamp": "2026-06-08T08:14:44.000Z", "type": "gemini",
        "content": "Done.", "model": "gemini-2.5-pro", "tokens": { "input": 10, "output": 5, "total": 15 } });
    let chat = project.join("chats/session-2026-06-08T08-14-0a1b2c3d.jsonl");
    fs::write(&chat, format!("{header}\n{prompt}\n{answer}\n")).unwrap();
    let shown = steno.run(&["show", chat.to_str().unwrap()]).out;
    assert!(shown.contains("/srv/shop"), "{shown}");

    // Its subagent is in a directory with the whole id of the session.
    let inner = chat_of_a_subagent();
    put(&steno, &format!(".gemini/tmp/shop/chats/{SESSION}/{AGENT}.jsonl"), inner);
    let shown = steno.run(&["show", chat.to_str().unwrap(), "--json"]);
    assert_eq!(shown.json().len(), 2, "{shown:?}");

    assert_eq!(steno.run(&["import"]).code, 0);
    let check = |about: &str| {
        let said = steno.run(&["ls", "--json", "--project", "shop"]);
        assert_eq!(said.json()[0]["project"], "/srv/shop", "{about}: {said:?}");
        let said = steno.run(&["usage", "--by", "project", "--json"]);
        assert!(said.out.contains("/srv/shop"), "{about}: {said:?}");
    };
    check("from the file of the agent");

    let derive_again = || {
        fs::remove_file(steno.transcript(SESSION)).unwrap();
        fs::remove_file(steno.store().join("derived.json")).unwrap();
        assert_eq!(steno.run(&["rederive"]).code, 0);
    };
    // What the agent writes later does not change a run that is derived again.
    fs::write(project.join(".project_root"), "/srv/other").unwrap();
    derive_again();
    check("from the vault, although the file has changed");

    fs::remove_dir_all(steno.dir.path().join(".gemini")).unwrap();
    derive_again();
    check("from the vault, without the agent's files");
}

/// The directory may be archived after the session, as when a home is restored piece by piece.
#[test]
fn gemini_sessions_get_a_directory_that_is_archived_later() {
    let steno = Steno::new();
    let project = steno.dir.path().join(".gemini/tmp/shop");
    put(
        &steno,
        &format!(".gemini/tmp/shop/chats/session-2026-06-08T08-14-{}.jsonl", &AGENT[..8]),
        chat_of_a_subagent(),
    );
    assert_eq!(steno.run(&["import"]).code, 0);
    let project_of = || steno.run(&["ls", "--json"]).json()[0]["project"].clone();
    assert_eq!(project_of(), Value::Null);
    fs::write(project.join(".project_root"), "/srv/shop").unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    let said = steno.run(&["rederive", "--json"]);
    assert_eq!((said.code, &said.json()[0]["runs"]), (0, &json!(1)), "{said:?}");
    assert_eq!(project_of(), json!("/srv/shop"));
    assert!(steno.run(&["rederive"]).out.contains("no run has to be derived again"));
}
