//! Terminal escapes in recorded text: every command shows them visibly; only `--raw` prints them.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{CommandOutput, RUN, Steno, TIME, id, run};

/// Clipboard, link, clear screen, the same as single C1 characters, text turned around, overwritten and hidden.
const HOSTILE: &str = "a\u{1b}]52;c;aGk=\u{7}b\u{1b}]8;;http://evil.example\u{1b}\\c\u{1b}[2Jd\u{9b}2Je\u{9d}52;c;aGk=\u{9c}\
    f\u{202e}g\u{202c}h\u{2066}i\u{2069}j\u{200e}k\u{200f}l\u{61c}m\rn\u{8}o\u{7f}p\u{85}q\u{b}r\u{c}s\u{0}t";

/// The same for places where neither NUL nor a slash can be: arguments and file names.
fn hostile_name() -> String {
    HOSTILE.replace(['\0', '/'], "")
}

fn is_control(c: char) -> bool {
    let bidi =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n' && c != '\t') || bidi
}

/// Takes our own colours out: `ESC [ 1 ; 31 m` and the like.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match digits.strip_prefix('m') {
            Some(after) => rest += after,
            None => rest += &format!("\u{1b}[{part}"),
        }
    }
    rest
}

#[track_caller]
fn assert_clean(said: &CommandOutput, context: &str) {
    for (place, text) in [("stdout", &said.out), ("stderr", &said.err)] {
        let raw: Vec<char> = without_colours(text).chars().filter(|c| is_control(*c)).collect();
        assert!(raw.is_empty(), "`{context}` lets {raw:?} through to {place}: {text:?}");
    }
}

fn event(kind: &str, payload: &Value) -> Value {
    json!({ "type": kind, "path": HOSTILE, "timestamp": TIME, "payload": payload, HOSTILE: HOSTILE })
}

/// A run in which everything that a sender may choose is hostile.
fn events() -> Vec<Value> {
    let step = json!({ "name": HOSTILE, "kind": HOSTILE, "error": HOSTILE, "result": { HOSTILE: HOSTILE } });
    let tool = json!({ "name": HOSTILE, "call_id": HOSTILE, "input": { HOSTILE: HOSTILE }, "output": HOSTILE,
        "error": HOSTILE, "fidelity": "router" });
    let block = |fields: Value| {
        let mut block = json!({ "fidelity": "agent_emitted" });
        block.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        block
    };
    let blocks = json!([
        block(json!({ "type": "text", "text": HOSTILE })),
        block(json!({ "type": "thinking", "thinking": HOSTILE })),
        block(json!({ "type": "tool_use", "tool_name": HOSTILE, "tool_id": HOSTILE, "tool_input": HOSTILE })),
        block(json!({ "type": "tool_result", "tool_id": HOSTILE, "tool_content": HOSTILE })),
        block(json!({ "type": "command", "command": HOSTILE })),
    ]);
    let mut call = event("step.call_workflow.started", &step);
    call["child_run_id"] = json!(id(7));
    vec![
        event("run.started", &step),
        event("step.started", &step),
        event("message.user", &json!({ "role": "user", "blocks": blocks })),
        event("message.assistant", &json!({ "role": "assistant", "blocks": blocks })),
        event("tool.call", &tool),
        event("tool.result", &tool),
        event("step.completed", &step),
        call,
    ]
}

/// A store with that run, and behind it an event of a hostile type and a block of another, as others might write.
fn hostile_store() -> Steno {
    let steno = Steno::new();
    steno.recorded(RUN, &events());
    for (seq, kind, payload) in [
        (9, HOSTILE, json!({ HOSTILE: HOSTILE })),
        (
            10,
            "message.assistant",
            json!({ "role": HOSTILE, "blocks": [{ "type": HOSTILE, "fidelity": HOSTILE }] }),
        ),
        (11, "run.completed", json!({ "name": HOSTILE, "kind": HOSTILE, "error": HOSTILE })),
    ] {
        let mut event = event(kind, &payload);
        for (key, value) in [("seq", json!(seq)), ("run_id", json!(RUN)), ("iteration", json!(0))] {
            event[key] = value;
        }
        steno.write_by_hand(RUN, &format!("{event}\n"));
    }
    steno
}

#[test]
fn no_command_prints_escapes_of_a_run() {
    let steno = hostile_store();
    let commands: [&[&str]; 17] = [
        &["events", RUN],
        &["events", RUN, "--json"],
        &["events", RUN, "--strict"],
        &["events", RUN, "--strict", "--json", "--from", "10"],
        &["tree", RUN],
        &["tree", RUN, "--json"],
        &["show", RUN],
        &["show", RUN, "--json"],
        &["ls"],
        &["ls", "--json"],
        &["verify"],
        &["verify", "--json"],
        &["follow", RUN],
        &["follow", RUN, "--json"],
        &["seal", RUN],
        &["--verbose", "events", RUN],
        &["config"],
    ];
    for args in commands {
        for color in ["auto", "always", "never"] {
            let said = steno.run(&[&["--color", color], args].concat());
            assert!(!said.out.is_empty() || said.code == 1, "{args:?}: {said:?}");
            assert_clean(&said, &format!("{args:?} in colour {color}"));
        }
    }
}

#[test]
fn escapes_are_shown_and_not_dropped() {
    let steno = hostile_store();
    for args in [&["events", RUN, "--type", "run.started"][..], &["tree", RUN], &["show", RUN], &["ls"]] {
        let said = steno.run(args);
        for shown in
            ["\\u{1b}]52;c;aGk=\\u{7}", "\\u{1b}[2J", "\\u{9b}2J", "\\u{202e}g", "\\u{7f}p", "\\u{d}n"]
        {
            assert!(said.out.contains(shown), "{args:?} shows no `{shown}`: {}", said.out);
        }
    }
}

#[test]
fn json_output_escapes_and_loses_nothing() {
    let steno = hostile_store();
    let recorded: Vec<Value> =
        steno.text(RUN).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(steno.run(&["events", RUN, "--json"]).json(), recorded);
    assert_eq!(steno.run(&["follow", RUN, "--json"]).json(), recorded);
    let listed = &steno.run(&["ls", "--json"]).json()[0];
    assert_eq!(listed["name"], json!(HOSTILE));
    let tree = &steno.run(&["tree", RUN, "--json"]).json()[0];
    assert_eq!((&tree["name"], &tree["error"]), (&json!(HOSTILE), &json!(HOSTILE)));
    assert_eq!(tree["children"][0]["path"], json!(HOSTILE));
}

#[test]
fn raw_output_is_the_file_byte_for_byte() {
    let steno = hostile_store();
    let text = steno.text(RUN);
    assert!(text.contains('\u{9b}') && text.contains('\u{202e}'), "JSON does not escape these");
    for command in ["events", "follow"] {
        let said = steno.run(&[command, RUN, "--raw"]);
        assert!((said.code, said.out) == (0, text.clone()), "{command} --raw");
    }
}

#[test]
fn errors_about_arguments_print_no_escapes() {
    let steno = hostile_store();
    let name = hostile_name();
    let file = steno.dir.path().join(&name);
    fs::write(&file, format!("{name}\n")).unwrap();
    let file = file.to_str().unwrap();
    let cases: [&[&str]; 14] = [
        &["record", "--run", &name],
        &["events", &name],
        &["tree", &name],
        &["follow", &name],
        &["verify", &name],
        &["seal", &name],
        &["events", file],
        &["tree", file],
        &["verify", file],
        &["verify", file, "--json"],
        &["verify", "--expect", &name],
        &["verify", "--expect", file],
        &["--store", file, "ls"],
        &["--config", file, "ls"],
    ];
    for args in cases {
        let said = steno.run(args);
        assert_ne!(said.code, 0, "{args:?}");
        assert_clean(&said, &format!("{args:?}"));
    }
}

#[test]
fn errors_about_files_print_no_escapes() {
    let quoted = json!(HOSTILE).to_string();
    let cases: [(&str, String, &[&str]); 6] = [
        ("store/format.json", format!(r#"{{"format":{quoted},"version":1}}"#), &["ls"]),
        (
            "store/transcripts/550e8400-e29b-41d4-a716-446655440000.jsonl",
            format!("{HOSTILE}\n"),
            &["events", RUN],
        ),
        (
            "store/transcripts/550e8400-e29b-41d4-a716-446655440000.seals.jsonl",
            format!("{HOSTILE}\n"),
            &["verify", RUN],
        ),
        ("seals", format!(r#"{{"run_id":{quoted},"bytes":1}}"#), &["verify", "--expect", "seals"]),
        ("c.toml", format!("level = {}", quoted.replace('\u{7f}', "")), &["--config", "c.toml", "ls"]),
        (
            "c.toml",
            format!("{} = 1\nseal_idle = -1", quoted.replace('\u{7f}', "")),
            &["--config", "c.toml", "ls"],
        ),
    ];
    for (file, text, args) in cases {
        let steno = hostile_store();
        fs::write(steno.dir.path().join(file), text).unwrap();
        let said = steno.run(args);
        assert_ne!(said.code, 0, "{args:?}");
        assert_clean(&said, &format!("{args:?} with a hostile `{file}`"));
    }
    let steno = Steno::new();
    fs::create_dir(steno.store()).unwrap();
    fs::write(steno.store().join(hostile_name()), "").unwrap();
    let said = steno.run(&["ls"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_clean(&said, "ls in a directory that is no store");
}

#[test]
fn warnings_print_no_escapes() {
    let steno = hostile_store();
    let key = json!(HOSTILE).to_string().replace('\u{7f}', "");
    fs::write(steno.dir.path().join("c.toml"), format!("{key} = 1\n")).unwrap();
    let said = steno.run(&["--config", "c.toml", "ls"]);
    assert!(said.code == 0 && said.err.contains("unknown key"), "{said:?}");
    assert_clean(&said, "a warning about an unknown key");
    let seal = json!({ "run_id": RUN, "bytes": HOSTILE });
    fs::write(steno.beside(RUN, "seals.jsonl"), format!("{seal}\n")).unwrap();
    for args in [&["ls", "--runs"][..], &["events", RUN], &["tree", RUN], &["follow", RUN]] {
        let said = steno.run(args);
        assert!(said.code == 0 && said.err.contains("seals.jsonl` is damaged"), "{said:?}");
        assert_clean(&said, &format!("a warning of {args:?} about seals"));
    }
}

#[test]
fn answers_of_record_print_no_escapes() {
    let cases = [
        json!({ "type": HOSTILE, "payload": null }),
        json!({ "type": "run.started", "run_id": HOSTILE }),
        json!({ "type": "run.started", "parent_run_id": HOSTILE }),
        json!({ "type": "run.started", "timestamp": HOSTILE }),
        json!({ "type": "message.user", "payload": { "role": HOSTILE, "blocks": [] } }),
        json!({ "type": "message.user", "payload": { "role": "user", "blocks": [{ "type": HOSTILE, "fidelity": "router" }] } }),
        json!({ "type": "tool.call", "payload": { "name": "n", "call_id": "c", "input": 1, "fidelity": HOSTILE } }),
    ];
    let mut lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let key = json!(HOSTILE);
    lines.push(format!(r#"{{"type":"run.started",{key}:1,{key}:2}}"#));
    lines.push(HOSTILE.to_owned());
    let steno = Steno::new();
    for line in lines {
        let said = steno.record(&[&line]);
        assert!(said.out.starts_with("{\"error\":"), "{line}");
        assert_clean(&said, &format!("record {line}"));
    }
}

#[test]
fn hints_print_no_escapes() {
    let steno = Steno::new();
    steno.recorded(RUN, &[event("step.started", &json!({ "name": HOSTILE, "kind": "turn" }))]);
    let said = steno.run(&["receipt", "export", "--thread", RUN, "--turn", "another"]);
    assert!(said.code == 1 && said.err.contains("\nhint: "), "{said:?}");
    assert_clean(&said, "a hint that names turns");
}

#[test]
fn receipts_of_records_print_no_escapes() {
    let steno = Steno::new();
    let name = hostile_name();
    let thread =
        json!({ "id": name, "model": HOSTILE, "mode": HOSTILE, "created_at": HOSTILE, "title": HOSTILE });
    let turn = json!({ "id": name, "thread_id": name, "status": HOSTILE, "input_summary": HOSTILE,
        "started_at": HOSTILE, "ended_at": HOSTILE, "usage": { HOSTILE: HOSTILE }, "item_ids": [HOSTILE] });
    let item = json!({ "id": HOSTILE, "turn_id": name, "kind": "tool_call", "status": HOSTILE });
    for (kind, record) in [("threads", thread), ("turns", turn), ("items", item), ("events", json!({}))] {
        let dir = steno.dir.path().join("records").join(kind);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("all.jsonl"), format!("{record}\n")).unwrap();
    }
    let of = ["--records", "records", "--thread", &name];
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["export", "--format", "text", "--turn", &name],
        &["export", "--turn", "another"],
    ] {
        for color in ["auto", "always", "never"] {
            let said = steno.run(&[&["--color", color, "receipt"], args, &of].concat());
            assert!(said.out.contains("[2Jd") || said.code == 1, "{args:?}: {said:?}");
            assert_clean(&said, &format!("receipt {args:?} in colour {color}"));
        }
    }
}

#[test]
fn config_shows_escapes_visibly() {
    let steno = Steno::new();
    let store = steno.dir.path().join(hostile_name());
    for color in ["never", "always"] {
        let said = steno.run(&["--color", color, "--store", store.to_str().unwrap(), "config"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert_clean(&said, &format!("config in colour {color}"));
        assert!(said.out.contains("[2Jd"), "in colour {color} something was dropped: {}", said.out);
    }
    let mut command = steno.command(&["config", "--json"]);
    command.env("STENO_HOME", &store);
    let said = run(command, b"");
    assert_clean(&said, "config --json");
    assert_eq!(said.json()[0]["value"], json!(store));
}
