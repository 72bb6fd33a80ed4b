//! `steno events`: all forms, selections, strictness, and every way to name a run.

use serde_json::{Value, json};
use steno_testkit::golden;

use crate::kit::{RUN, Steno, TIME, id};

/// One event of every type, with one block of every type.
fn events() -> Vec<Value> {
    let event = |kind: &str, path: &str, payload: Value| json!({ "type": kind, "path": path, "timestamp": TIME, "payload": payload });
    let blocks = json!([
        { "type": "thinking", "fidelity": "agent_emitted", "thinking": "First I should look." },
        { "type": "text", "fidelity": "agent_emitted", "text": "Reading\nboth files." },
        { "type": "tool_use", "fidelity": "agent_emitted", "tool_name": "Read", "tool_id": "t1", "tool_input": { "path": "main.go" } },
        { "type": "tool_result", "fidelity": "router", "tool_id": "t1", "tool_content": "package main\n" },
        { "type": "command", "fidelity": "router", "command": "go test ./..." },
        { "type": "stream", "fidelity": "router", "chunk": "partial" },
    ]);
    let tool = |output: Value| json!({ "name": "Read", "call_id": "t1", "input": { "path": "main.go" }, "output": output, "fidelity": "router" });
    let step = json!({ "name": "analyze", "kind": "agent" });
    let mut calls =
        event("step.call_workflow.started", "sub", json!({ "name": "sub", "kind": "call_workflow" }));
    calls["child_run_id"] = json!(id(7));
    let mut called = event(
        "step.call_workflow.completed",
        "sub",
        json!({ "name": "sub", "kind": "call_workflow", "error": "no such file" }),
    );
    called["child_run_id"] = json!(id(7));
    vec![
        event("run.started", "", Value::Null),
        event("step.started", "analyze", step.clone()),
        event(
            "message.user",
            "analyze",
            json!({ "role": "user", "blocks": [{ "type": "text", "fidelity": "router", "text": "Review main.go." }] }),
        ),
        event("message.assistant", "analyze", json!({ "role": "assistant", "blocks": blocks })),
        event("tool.call", "analyze", tool(Value::Null)),
        event("tool.result", "analyze", tool(json!("package main\n"))),
        event("step.completed", "analyze", step),
        calls,
        called,
        event("run.completed", "", json!({ "name": "review", "kind": "workflow" })),
    ]
}

fn store() -> Steno {
    let steno = Steno::new();
    steno.recorded(RUN, &events());
    steno
}

/// The lines of the transcript with these numbers.
fn lines(steno: &Steno, wanted: &[usize]) -> String {
    let text = steno.text(RUN);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    wanted.iter().map(|seq| lines[seq - 1]).collect()
}

#[test]
fn events_are_shown_one_per_line() {
    let said = store().run(&["events", RUN]);
    assert_eq!((said.code, &*said.err), (0, ""));
    golden::check("tests/golden/events.txt", &said.out);
}

#[test]
fn json_and_raw_print_the_recorded_lines() {
    let steno = store();
    for form in ["--json", "--raw"] {
        let said = steno.run(&["events", RUN, form]);
        assert_eq!((said.code, said.out, &*said.err), (0, steno.text(RUN), ""), "{form}");
    }
}

#[test]
fn empty_selection_exits_with_1() {
    let steno = store();
    let cases: [(&[&str], &[usize]); 11] = [
        (&["--from", "1"], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (&["--from", "9"], &[9, 10]),
        (&["--from", "10"], &[10]),
        (&["--from", "11"], &[]),
        (&["--from", "18446744073709551615"], &[]),
        (&["--type", "tool.call"], &[5]),
        (&["--type", "tool.result", "--type", "tool.call"], &[5, 6]),
        (&["--type", "step.started", "--from", "2"], &[2]),
        (&["--type", "step.started", "--from", "3"], &[]),
        (&["--type", "run.completed", "--strict"], &[10]),
        (&["--type", "tool"], &[]),
    ];
    for (args, wanted) in cases {
        let code = i32::from(wanted.is_empty());
        for form in ["--json", "--raw"] {
            let said = steno.run(&[&["events", RUN, form], args].concat());
            assert_eq!((said.code, said.out), (code, lines(&steno, wanted)), "{args:?} {form}");
        }
        let said = steno.run(&[&["events", RUN], args].concat());
        let all = steno.run(&["events", RUN]).out;
        let all: Vec<&str> = all.split_inclusive('\n').collect();
        let want: String = wanted.iter().map(|seq| all[seq - 1]).collect();
        assert_eq!((said.code, said.out), (code, want), "{args:?}");
    }
}

#[test]
fn wrong_selection_is_wrong_use() {
    let steno = store();
    for args in [["--from", "x"], ["--from", "-1"], ["--from", "18446744073709551616"], ["--from", "1.5"]] {
        let said = steno.run(&[&["events", RUN][..], &args].concat());
        assert_eq!((said.code, &*said.out), (2, ""), "{args:?}: {}", said.err);
    }
}

/// A line as a writer of another version might have written it.
fn foreign(seq: usize, kind: &str, payload: &Value) -> String {
    format!(
        r#"{{"seq":{seq},"run_id":"{RUN}","type":"{kind}","path":"","iteration":0,"timestamp":"{TIME}","payload":{payload},"later":[1]}}"#
    ) + "\n"
}

#[test]
fn unknown_words_fail_only_with_strict() {
    let message = |role: &str, kind: &str, fidelity: &str| json!({ "role": role, "blocks": [{ "type": kind, "fidelity": fidelity, "text": "x" }] });
    let cases = [
        ("thread.forked", "thread.forked", json!({ "anything": 1 })),
        ("thread.forked", "thread.forked", Value::Null),
        ("hologram", "message.assistant", message("assistant", "hologram", "router")),
    ];
    for (word, kind, payload) in cases {
        let steno = store();
        steno.write_by_hand(RUN, &foreign(11, kind, &payload));
        steno.write_by_hand(RUN, &foreign(12, "run.started", &Value::Null));

        let json = steno.run(&["events", RUN, "--json"]);
        assert_eq!((json.code, json.out), (0, steno.text(RUN)), "{word}");
        let human = steno.run(&["events", RUN, "--from", "11"]);
        let shown: Vec<&str> = human.out.lines().collect();
        assert!(
            human.code == 0 && shown.len() == 2 && shown[0].contains(&format!("? {word}")),
            "{word}: {human:?}"
        );

        let strict = steno.run(&["events", RUN, "--json", "--strict"]);
        assert_eq!((strict.code, strict.out), (1, lines(&steno, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])), "{word}");
        assert!(strict.err.contains("unknown") && strict.err.contains(word), "{word}: {}", strict.err);
        assert_eq!(steno.run(&["verify", RUN]).code, 0, "{word} is no damage");
    }
}

#[test]
fn broken_line_differs_from_an_unknown_word() {
    let steno = store();
    steno.write_by_hand(RUN, "{\"seq\":11,\"run_id\":\n");
    steno.write_by_hand(RUN, &foreign(12, "run.started", &Value::Null));
    for args in [&["events", RUN, "--json"][..], &["events", RUN, "--json", "--strict"]] {
        let said = steno.run(args);
        assert_eq!((said.code, said.out), (1, lines(&steno, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])), "{args:?}");
        assert!(said.err.contains("damaged") && !said.err.contains("unknown"), "{args:?}: {}", said.err);
    }
}

#[test]
fn run_is_named_by_id_or_prefix() {
    let steno = Steno::new();
    let (near, other) = ("550e8400-e29b-41d4-a716-446655440001", id(0xCC));
    for run in [RUN, near, &other] {
        steno.recorded(run, &events());
    }
    let cases = [
        (RUN, 0),
        (&RUN.to_uppercase(), 0),
        (near, 0),
        (&other, 0),
        ("cccc", 0),
        ("CCCCcccc", 0),
        ("cccccccc-e29b", 0),
        // Hyphens may be left out, of all of it or of its beginning.
        (&RUN.replace('-', ""), 0),
        (&RUN.replace('-', "").to_uppercase(), 0),
        ("cccccccce29b41d4", 0),
        ("cc-cc", 1),
        // Two runs begin like this, so the user must choose.
        ("550e", 2),
        ("550e8400-e29b-41d4-a716-44665544000", 2),
        ("9999", 1),
        ("550e8400-e29b-41d4-a716-446655440002", 1),
        ("cccd", 1),
    ];
    for (name, code) in cases {
        for command in ["events", "tree", "follow", "verify", "seal"] {
            let said = steno.run(&[command, name]);
            assert_eq!(said.code, code, "{command} {name}: {said:?}");
            assert_eq!(said.err.contains("hint: "), code != 0, "{command} {name}: {}", said.err);
        }
    }
    let said = steno.run(&["events", "550e"]);
    assert!(said.out.is_empty() && said.err.contains(RUN) && said.err.contains(near), "{said:?}");
}

#[test]
fn run_shorter_than_its_seal_is_shown_with_a_warning() {
    let steno = store();
    let all = steno.text(RUN);
    // Cut before the last line, `run.completed`: the line before it ends `follow`.
    let kept: String = all.split_inclusive('\n').take(9).collect();
    std::fs::write(steno.transcript(RUN), kept.replace("step.call_workflow.completed", "run.completed"))
        .unwrap();
    for args in [&["events", RUN][..], &["tree", RUN], &["follow", RUN]] {
        let said = steno.run(args);
        assert!(said.code == 0 && !said.out.is_empty(), "{args:?}: {said:?}");
        let sealed = format!("its seal over {} bytes: the file is shorter", all.len());
        assert!(said.err.contains(&sealed), "{args:?}: {}", said.err);
        assert!(said.err.contains(&format!("`steno verify {RUN}`")), "{args:?}: {}", said.err);
    }
    // Cut inside a line: the seal shows that the whole line was acknowledged.
    std::fs::write(steno.transcript(RUN), &all[..all.len() - 5]).unwrap();
    let said = steno.run(&["events", RUN]);
    assert!(said.code == 0 && said.err.contains("shorter") && !said.err.contains("never"), "{said:?}");
}

#[test]
fn unreadable_seals_do_not_hide_events() {
    let steno = store();
    std::fs::write(steno.beside(RUN, "seals.jsonl"), "garbage\n").unwrap();
    let said = steno.run(&["events", RUN, "--raw"]);
    assert_eq!((said.code, said.out), (0, steno.text(RUN)));
    assert!(said.err.contains("seals.jsonl` is damaged"), "{}", said.err);
}

#[test]
fn commands_for_runs_refuse_files() {
    let steno = store();
    std::fs::copy(steno.transcript(RUN), steno.dir.path().join("copy.jsonl")).unwrap();
    for args in [&["follow", "copy.jsonl"][..], &["follow", "--wait", "copy.jsonl"], &["seal", "copy.jsonl"]]
    {
        let said = steno.run(args);
        assert_eq!((said.code, &*said.out), (2, ""), "{args:?}");
        assert!(
            said.err.contains("`copy.jsonl` is a file") && said.err.contains("hint: "),
            "{args:?}: {said:?}"
        );
        let said = steno.run(&[&args[..args.len() - 1], &["nowhere.jsonl"]].concat());
        assert!(said.code == 2 && !said.err.contains("transcript file"), "{args:?}: {said:?}");
    }
}

#[test]
fn transcript_file_is_read_without_a_store() {
    let steno = store();
    let file = steno.dir.path().join("copy.jsonl");
    std::fs::rename(steno.transcript(RUN), &file).unwrap();
    let (text, tree) =
        (std::fs::read_to_string(&file).unwrap(), steno.run(&["tree", file.to_str().unwrap(), "--json"]));
    std::fs::remove_dir_all(steno.store()).unwrap();
    for name in [file.to_str().unwrap(), "copy.jsonl", "./copy.jsonl"] {
        let said = steno.run(&["events", name, "--raw"]);
        assert_eq!((said.code, said.out, &*said.err), (0, text.clone(), ""), "{name}");
        assert_eq!(steno.run(&["tree", name, "--json"]).json(), tree.json(), "{name}");
        assert_eq!(steno.run(&["verify", name]).code, 0, "{name}");
        assert!(!steno.store().exists(), "{name}: reading makes no store");
    }
}

#[test]
fn every_view_marks_denied_and_interrupted_calls() {
    let steno = Steno::new();
    let call = |id: &str| {
        json!({"type": "tool.call", "path": "turn-0001", "payload": {"name": "Bash", "call_id": id,
            "input": {"command": "ls"}, "output": null, "fidelity": "agent_emitted"}})
    };
    let result = json!({"type": "tool.result", "path": "turn-0001", "payload": {"name": "Bash", "call_id": "c1",
        "input": null, "output": "no", "error": "no", "outcome": "denied", "fidelity": "agent_emitted"}});
    steno.recorded(
        RUN,
        &[
            json!({"type": "step.started", "path": "turn-0001", "payload": {"name": "turn-0001", "kind": "turn"}}),
            call("c1"),
            result,
            json!({"type": "step.completed", "path": "turn-0001",
                "payload": {"name": "turn-0001", "kind": "turn", "error": "interrupted", "ended_by": "interrupt"}}),
        ],
    );
    let said = |args: &[&str]| steno.run(args).out;
    let (events, show, tree) = (said(&["events", RUN]), said(&["show", RUN]), said(&["tree", RUN]));
    assert!(events.contains("Bash denied: no") && !events.contains("Bash failed"), "{events}");
    assert!(show.contains("  denied\n       no\n"), "{show}");
    assert!(tree.contains("1 call (1 denied)"), "{tree}");
    for turn in [&show, &tree] {
        assert!(turn.contains("interrupted") && !turn.contains("failed: interrupted"), "{turn}");
    }
    assert_eq!(steno.run(&["receipt", "ls", "--json"]).json()[0]["status"], "interrupted");
}
