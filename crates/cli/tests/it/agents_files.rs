//! Agents' own files, read directly: `events`, `tree`, `entries`, `usage`.

use serde_json::{Value, json};
use steno_testkit::places;

use crate::kit::{CommandOutput, RUN, Steno};

/// Returns a line of Claude Code with the common fields.
pub fn line(number: u32, fields: Value) -> Value {
    let mut line = json!({
        "uuid": format!("00000000-0000-4000-8000-{number:012}"),
        "sessionId": RUN,
        "timestamp": format!("2026-06-08T08:14:{number:02}.000Z"),
        "version": "2.1.100",
        "isSidechain": false,
    });
    let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) else { unreachable!() };
    line.extend(fields);
    Value::Object(line.clone())
}

fn said(number: u32, block: &Value, output_tokens: u64) -> Value {
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": output_tokens});
    line(
        number,
        json!({"type": "assistant", "message": {"id": "m1", "model": "claude-x", "role": "assistant",
            "content": [block], "stop_reason": "tool_use", "usage": usage}}),
    )
}

/// A prompt, a response on two lines, and the result of a call.
pub fn session() -> Vec<Value> {
    vec![
        line(1, json!({"type": "user", "message": {"role": "user", "content": "Build it."}})),
        said(2, &json!({"type": "text", "text": "On it."}), 20),
        said(3, &json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}), 20),
        line(
            4,
            json!({"type": "user", "message": {"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]}}),
        ),
    ]
}

pub fn text(lines: &[Value]) -> String {
    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

pub fn put(steno: &Steno, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = steno.dir.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    name.to_owned()
}

pub fn lines(said: &CommandOutput) -> Vec<Value> {
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_reads_a_session_file_without_a_store() {
    let steno = Steno::new();
    let file = put(&steno, "s.jsonl", text(&session()));
    let said = steno.run(&["events", &file, "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let types: Vec<_> = lines(&said).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(
        types,
        [
            "run.started",
            "step.started",
            "message.user",
            "message.assistant",
            "message.assistant",
            "tool.call",
            "tool.result"
        ]
    );
    let first = &lines(&said)[0];
    assert_eq!((&first["run_id"], &first["seq"]), (&json!(RUN), &json!(1)));
    assert!(!steno.store().exists());
}

#[test]
fn events_reads_directories_and_compressed_files() {
    let steno = Steno::new();
    put(&steno, "d/e/s.jsonl.zst", zstd::encode_all(text(&session()).as_bytes(), 1).unwrap());
    put(&steno, "d/other.jsonl", "{\"nobody\":\"knows\"}\n");
    let said = steno.run(&["events", "d", "--json"]);
    assert_eq!((said.code, lines(&said).len()), (0, 7), "{said:?}");
    // The bytes count and not the name.
    let bytes = std::fs::read(steno.dir.path().join("d/e/s.jsonl.zst")).unwrap();
    for (name, bytes) in [("c.jsonl", bytes), ("plain.zst", text(&session()).into_bytes())] {
        let file = put(&steno, name, bytes);
        let said = steno.run(&["events", &file, "--json"]);
        assert_eq!((said.code, lines(&said).len()), (0, 7), "{name}: {said:?}");
    }
}

#[test]
fn streams_with_the_same_name_are_different_runs() {
    let steno = Steno::new();
    let init = r#"{"type":"system","subtype":"init","session_id":"550e8400-e29b-41d4-a716-446655440000","uuid":"u"}"#;
    let said = r#"{"type":"assistant","session_id":"550e8400-e29b-41d4-a716-446655440000","uuid":"v","message":{"id":"m","content":[{"type":"text","text":"Hi."}]}}"#;
    for dir in ["a", "b"] {
        put(&steno, &format!("{dir}/stream.ndjson"), format!("{init}\n{said}\n"));
    }
    let events = lines(&steno.run(&["events", ".", "--json", "--type", "run.started"]));
    let [one, other] = &events[..] else { panic!("{events:?}") };
    assert_ne!(one["run_id"], other["run_id"]);
    assert_eq!((&one["session_run_id"], &other["session_run_id"]), (&json!(RUN), &json!(RUN)));
}

#[test]
fn unreadable_records_are_reported_and_the_rest_is_read() {
    let steno = Steno::new();
    let mut bytes = text(&session()).into_bytes();
    bytes.extend_from_slice(b"[1,2]\n{\"type\":\"dream\",\"sessionId\":\"x\"}\n{\"type\":\"user\",\"mess");
    let file = put(&steno, "s.jsonl", bytes);
    let said = steno.run(&["events", &file, "--json"]);
    assert_eq!((said.code, lines(&said).len()), (0, 9), "{said:?}");
    for part in [
        "unknown types were kept unchanged: dream (1)",
        "1 record could not be parsed",
        "not a complete record",
    ] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

#[test]
fn completeness_reports_how_much_was_understood() {
    let steno = Steno::new();
    let mut bytes = text(&session()).into_bytes();
    bytes.extend_from_slice(b"[1]\n{\"type\":\"dream\",\"sessionId\":\"x\"}\n{\"type\":\"last-prompt\"}\n");
    let file = put(&steno, "s.jsonl", bytes);
    let said = steno.run(&["events", &file, "--completeness", "--json"]);
    let [found] = &lines(&said)[..] else { panic!("{said:?}") };
    for (name, want) in [
        ("provider", json!("claude")),
        ("surface", json!("disk")),
        ("version", json!("2.1.100")),
        ("events", json!(9)),
        ("records", json!(6)),
        ("bookkeeping", json!(1)),
        ("unknown", json!([{"type": "dream", "records": 1}])),
        ("unreadable", json!(1)),
        ("torn_bytes", json!(0)),
    ] {
        assert_eq!(found[name], want, "{name}");
    }
    assert!(found["carries"].as_array().unwrap().contains(&json!("calls")));
    assert!(steno.run(&["events", &file, "--completeness"]).out.contains("9 events from 6 records"));
    steno.record(&[r#"{"type":"run.started"}"#]);
    assert_eq!(steno.run(&["events", RUN, "--completeness"]).code, 2);
}

#[test]
fn file_of_no_agent_is_an_error() {
    let steno = Steno::new();
    let file = put(&steno, "d/x.jsonl", "{\"a\":1}\n");
    for args in [&["events", "d"][..], &["entries", &file], &["usage", &file]] {
        let said = steno.run(args);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{args:?}: {said:?}");
        assert!(said.err.starts_with("error: "), "{}", said.err);
    }
    let said = steno.run(&["usage", "nowhere"]);
    assert!(said.code == 3 && said.err.contains("cannot read `nowhere`"), "{said:?}");
}

#[test]
fn entries_are_log_records_with_the_source_lines() {
    let steno = Steno::new();
    let file = put(&steno, "s.jsonl", text(&session()));
    let records = lines(&steno.run(&["entries", &file, "--name", "build"]));
    let of_entry = |record: &&Value| record["event"] == "transcript.entry";
    let entries: Vec<_> = records.iter().filter(of_entry).map(|record| record["context"].clone()).collect();
    let types: Vec<_> = entries.iter().filter(|entry| entry["entry_type"] != "token_usage").collect();
    let names: Vec<_> = types.iter().map(|entry| entry["entry_type"].clone()).collect();
    assert_eq!(names, ["user_message", "assistant_message", "tool_use", "tool_result"]);
    assert_eq!(entries[0]["detail"]["sdk_entry"], session()[0]);
    assert_eq!(entries[0]["raw"], session()[0].to_string());
    assert!(entries.iter().all(|entry| entry["prompt_name"] == "build"));
    assert_eq!(records[records.len() - 1]["context"]["total_entries"], json!(entries.len()));
    let bare = lines(&steno.run(&["entries", &file, "--no-raw"]));
    assert!(bare.iter().all(|record| record["context"]["raw"].is_null()));
}

#[test]
fn entry_numbers_continue_and_a_full_disk_is_reported() {
    let steno = Steno::new();
    put(&steno, "d/a.jsonl", text(&session()));
    put(&steno, "d/b.jsonl", text(&session()).replace(RUN, "660e8400-e29b-41d4-a716-446655440000"));
    let records = lines(&steno.run(&["entries", "d", "--name", "n"]));
    let entries = records.iter().filter(|record| record["event"] == "transcript.entry");
    let numbers: Vec<_> =
        entries.map(|record| record["context"]["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let mut command = steno.shell(r#""$0" "$@" > /dev/full"#, &["entries", "d"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn usage_counts_a_response_once_across_lines_and_copies() {
    let steno = Steno::new();
    put(&steno, "d/s.jsonl", text(&session()));
    let copy = text(&session()).replace(RUN, "660e8400-e29b-41d4-a716-446655440000");
    put(&steno, "d/fork.jsonl", copy);
    let said = steno.run(&["usage", "d", "--json"]);
    let want = json!({"day": "2026-06-08", "model": "claude-x", "responses": 1, "input_tokens": 3,
        "output_tokens": 20, "cache_read_tokens": 100, "cache_write_tokens": 0, "cache_write_1h_tokens": 0,
        "reasoning_tokens": 0, "total_tokens": 123, "exact": true, "sessions": 1, "cost_usd": null,
        "cost_exact": false, "unpriced_models": ["claude-x"], "agent_cost_usd": null});
    assert_eq!((said.code, lines(&said)), (0, vec![want]), "{}", said.err);
    let by_session = steno.run(&["usage", "d", "--by", "session", "--json"]);
    assert_eq!(lines(&by_session)[0]["session"], RUN);
    let table = steno.run(&["usage", "d"]).out;
    assert!(table.contains("total") && table.contains("123"), "{table}");
}

#[test]
fn usage_counts_a_subagent_once_in_progress_and_own_file() {
    let steno = Steno::new();
    let usage = |output: u64| json!({"input_tokens": 2, "output_tokens": output});
    let record = |id: &str, response: &str, output: u64, stop: Value| {
        json!({"type": "assistant", "uuid": id, "timestamp": "2026-06-08T08:15:00Z", "message": {"id": response,
            "model": "claude-x", "content": [{"type": "text", "text": "."}], "stop_reason": stop, "usage": usage(output)}})
    };
    let progress = |id: &str, inner: Value| {
        json!({"type": "progress", "uuid": id, "sessionId": RUN, "timestamp": "2026-06-08T08:15:01Z",
            "data": {"type": "agent_progress", "agentId": "ab1", "message": inner}, "parentToolUseID": "t1"})
    };
    let told = [
        progress("g1", record("c1", "msg_child_1", 1, Value::Null)),
        progress("g2", record("c2", "msg_child_2", 1, Value::Null)),
    ];
    put(&steno, "d/s.jsonl", text(&session()) + &text(&told));
    let row = |steno: &Steno| {
        let said = steno.run(&["usage", "d", "--by", "session", "--json"]);
        let row = lines(&said).into_iter().next().unwrap();
        (row["session"].clone(), row["responses"].clone(), row["output_tokens"].clone(), row["exact"].clone())
    };
    assert_eq!(row(&steno), (json!(RUN), json!(3), json!(22), json!(false)));
    // The subagent's own file has the same responses with their last counts, and one more.
    let own = [("c1", 30), ("c2", 40), ("c3", 50)].map(|(id, output)| {
        let mut record = record(id, &id.replace('c', "msg_child_"), output, json!("end_turn"));
        let fields = json!({"sessionId": RUN, "isSidechain": true, "agentId": "ab1"});
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        record
    });
    put(&steno, "d/agent-ab1.jsonl", text(&own));
    assert_eq!(row(&steno), (json!(RUN), json!(4), json!(140), json!(true)));
}

#[test]
fn usage_counts_a_file_once_under_several_names() {
    let steno = Steno::new();
    put(&steno, "s.jsonl", text(&session()));
    let once = steno.run(&["usage", "s.jsonl", "--json"]).out;
    assert_eq!(steno.run(&["usage", "s.jsonl", "./s.jsonl", ".", "--json"]).out, once);
}

#[test]
fn pipe_is_refused_without_waiting() {
    let steno = Steno::new();
    places::make_pipe(steno.dir.path().join("p.jsonl"));
    for command in ["usage", "entries", "events"] {
        let said = steno.run(&[command, "p.jsonl"]);
        assert!(said.code != 0 && !said.err.is_empty(), "{command}: {said:?}");
    }
}

#[test]
fn model_name_cannot_control_the_terminal() {
    let steno = Steno::new();
    let text = text(&session()).replace("claude-x", "\\u001b[2J\\u202ex");
    let file = put(&steno, "s.jsonl", text);
    let said = steno.run(&["usage", &file, "--color", "always"]);
    assert!(
        said.code == 0 && !said.out.contains("\u{1b}[2J") && !said.out.contains('\u{202e}'),
        "{}",
        said.out
    );
}

#[test]
fn usage_without_a_path_finds_the_agents_homes() {
    let steno = Steno::new();
    assert_eq!(steno.run(&["usage"]).code, 1);
    put(&steno, ".claude/projects/p/s.jsonl", text(&session()));
    let said = steno.run(&["usage", "--json"]);
    assert_eq!((said.code, lines(&said).len()), (0, 1), "{said:?}");
}

#[test]
fn usage_marks_lower_bounds() {
    let steno = Steno::new();
    let mut lines_of = session();
    for line in &mut lines_of[1..3] {
        line["message"]["stop_reason"] = Value::Null;
    }
    let file = put(&steno, "s.jsonl", text(&lines_of));
    assert_eq!(lines(&steno.run(&["usage", &file, "--json"]))[0]["exact"], json!(false));
    assert!(steno.run(&["usage", &file]).out.contains("≥ 123"));
}

/// A session that starts a subagent, with the subagent's file next to it.
pub fn session_with_subagent(steno: &Steno) {
    let mut main = session();
    main[3]["toolUseResult"] = json!({"agentId": "a1", "status": "completed"});
    put(steno, &format!("p/{RUN}.jsonl"), text(&main));
    let mut inner = session();
    for line in &mut inner {
        line["isSidechain"] = json!(true);
        line["agentId"] = json!("a1");
    }
    put(steno, &format!("p/{RUN}/subagents/agent-a1.jsonl"), text(&inner));
}

#[test]
fn tree_of_agents_files_has_a_root_per_session() {
    let steno = Steno::new();
    session_with_subagent(&steno);
    let other = "660e8400-e29b-41d4-a716-446655440000";
    put(&steno, "p/z.jsonl", text(&session()).replace(RUN, other).replace("2026-06-08", "2026-06-07"));
    let said = steno.run(&["tree", "p"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let tops: Vec<_> = said.out.lines().filter(|line| line.starts_with("run ")).collect();
    let [first, second] = tops[..] else { panic!("{}", said.out) };
    assert!(first.starts_with("run 660e8400…") && second.starts_with("run 550e8400…"), "{}", said.out);
    assert_eq!(said.out.matches("child run ").count(), 1, "{}", said.out);
    assert!(!steno.store().exists());
    let trees = lines(&steno.run(&["tree", "p", "--json"]));
    let ids: Vec<_> = trees.iter().map(|tree| &tree["run_id"]).collect();
    assert_eq!(ids, [&json!(other), &json!(RUN)]);
    let file = put(&steno, "s.jsonl", text(&session()));
    let said = steno.run(&["tree", &file]);
    assert!(said.code == 0 && said.out.contains("turn-0001 · turn"), "{said:?}");
    put(&steno, "d/x.jsonl", "{\"a\":1}\n");
    assert_eq!(steno.run(&["tree", "d"]).code, 1);
}

#[test]
fn transcript_commands_name_the_agent_of_another_file() {
    let steno = Steno::new();
    steno.record(&[r#"{"type":"run.started"}"#]);
    let file = put(&steno, "s.jsonl", text(&session()));
    let copilot = r#"{"type":"session.start","data":{"copilotVersion":"1.0.0"},"id":"x","parentId":null}"#;
    let other = put(&steno, "c.jsonl", format!("{copilot}\n"));
    for args in [&["verify", RUN][..], &["verify", "--json"], &["follow"], &["follow", "--wait"], &["seal"]] {
        let said = steno.run(&[args, &[&file]].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {said:?}");
        for part in ["`s.jsonl` is a session file of Claude Code", "hint: `steno events s.jsonl` shows it"] {
            assert!(said.err.contains(part), "{args:?}: {}", said.err);
        }
        let said = steno.run(&[args, &[&other]].concat());
        assert_eq!(said.code, 2, "{args:?}: {said:?}");
        for part in ["`c.jsonl` is a session file of Copilot CLI", "hint: `steno events c.jsonl` shows it"] {
            assert!(said.err.contains(part), "{args:?}: {}", said.err);
        }
        let said = steno.run(&[args, &["."]].concat());
        assert!(said.code == 2 && said.err.contains("is a directory"), "{args:?}: {said:?}");
    }
}

#[test]
fn events_text_names_the_run_when_it_changes() {
    let steno = Steno::new();
    session_with_subagent(&steno);
    let said = steno.run(&["events", "p", "--type", "message.user", "--color", "always"]);
    let all: Vec<_> = said.out.lines().collect();
    let [outer, _, inner, _] = all[..] else { panic!("{said:?}") };
    assert_eq!(outer, format!("\u{1b}[2mrun {RUN}  claude disk\u{1b}[0m"));
    assert!(inner.ends_with(&format!("  claude disk  child of {RUN}\u{1b}[0m")), "{inner}");
    assert_eq!(lines(&steno.run(&["events", "p", "--type", "message.user", "--json"])).len(), 2);
    assert_eq!(steno.run(&["events", "p", "--type", "message.user", "--raw"]).out.lines().count(), 2);
}

#[test]
fn error_of_a_failed_call_is_shown_once() {
    let steno = Steno::new();
    let mut lines = session();
    lines[3]["message"]["content"][0]["is_error"] = json!(true);
    lines[3]["message"]["content"][0]["content"] = json!("Exit code 2\nno rule");
    let file = put(&steno, "s.jsonl", text(&lines));
    let said = steno.run(&["events", &file, "--type", "tool.result"]);
    assert!(said.out.ends_with("Bash failed: Exit code 2⏎no rule\n"), "{said:?}");
}

/// Files, one of which cannot be read even by root.
fn with_an_unreadable_file(steno: &Steno) {
    put(steno, "d/a.jsonl.zst", b"\x28\xb5\x2f\xfd\xff and no such compression");
    put(steno, "d/s.jsonl", text(&session()));
}

#[test]
fn unreadable_file_does_not_affect_the_others() {
    let steno = Steno::new();
    with_an_unreadable_file(&steno);
    for args in [
        &["events", "d"][..],
        &["events", "d", "--json"],
        &["events", "d", "--completeness"],
        &["entries", "d"],
        &["entries", "nowhere", "d/s.jsonl"],
        &["usage", "d"],
        &["usage", "nowhere", "d/s.jsonl"],
        &["tree", "d"],
    ] {
        let said = steno.run(args);
        assert_eq!(said.code, 3, "{args:?}: {said:?}");
        assert!(!said.out.is_empty(), "{args:?}: {said:?}");
        let named = if args[1] == "d" { "`d/a.jsonl.zst`" } else { "`nowhere`" };
        assert!(said.err.contains(named), "{args:?}: {}", said.err);
        assert!(said.err.contains("error: could not read 1 of 2 paths"), "{args:?}: {}", said.err);
    }
    for command in ["events", "entries", "usage", "tree"] {
        let said = steno.run(&[command, "d/a.jsonl.zst"]);
        assert_eq!((said.code, said.out.as_str()), (3, ""), "{command}: {said:?}");
        assert!(said.err.starts_with("error: cannot read `d/a.jsonl.zst`"), "{command}: {}", said.err);
    }
}

#[test]
fn usage_with_an_unreadable_file_is_a_lower_bound() {
    let steno = Steno::new();
    with_an_unreadable_file(&steno);
    assert_eq!(lines(&steno.run(&["usage", "d", "--json"]))[0]["exact"], json!(false));
    assert!(steno.run(&["usage", "d"]).out.contains("≥ 123"));
    assert_eq!(lines(&steno.run(&["usage", "d/s.jsonl", "--json"]))[0]["exact"], json!(true));
}

#[test]
fn cut_compressed_file_is_read_up_to_the_cut() {
    let steno = Steno::new();
    let mut lines_of = session();
    // Incompressible text, so that there are many blocks.
    let mut dice = steno_testkit::dice::Dice::new(5);
    let noise: String =
        (0..600_000).map(|_| char::from_digit(u32::try_from(dice.below(36)).unwrap(), 36).unwrap()).collect();
    lines_of.push(line(5, json!({"type": "user", "message": {"role": "user", "content": noise}})));
    lines_of.push(line(6, json!({"type": "user", "message": {"role": "user", "content": "The end."}})));
    let whole = zstd::encode_all(text(&lines_of).as_bytes(), 1).unwrap();
    put(&steno, "d/s.jsonl.zst", &whole[..whole.len() / 2]);
    put(&steno, "t.jsonl", &whole);
    let want = &lines(&steno.run(&["events", "t.jsonl", "--json"]))[..7];
    for path in ["d", "d/s.jsonl.zst"] {
        let said = steno.run(&["events", path, "--json"]);
        assert_eq!(said.code, 0, "{said:?}");
        let types = |events: &[Value]| events.iter().map(|event| event["type"].clone()).collect::<Vec<_>>();
        assert_eq!(types(&lines(&said)), types(want), "{path}");
        assert!(said.err.contains("`d/s.jsonl.zst` ends inside compressed data"), "{}", said.err);
    }
    let found = &lines(&steno.run(&["events", "d", "--completeness", "--json"]))[0];
    assert_eq!((&found["cut"], &found["records"]), (&json!(true), &json!(4)));
    assert!(steno.run(&["entries", "d"]).out.contains("transcript.error"));
    let said = steno.run(&["usage", "d", "--json"]);
    assert_eq!((said.code, &lines(&said)[0]["exact"]), (0, &json!(false)), "{said:?}");
}

#[test]
fn request_over_many_lines_is_read_imported_and_verified() {
    let steno = Steno::new();
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}});
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "List."},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
    ]});
    let file = put(&steno, "request.json", format!("{body:#}"));
    let events = lines(&steno.run(&["events", &file, "--json"]));
    let types: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    let want =
        ["run.started", "step.started", "message.user", "message.assistant", "tool.call", "tool.result"];
    assert_eq!(types, want);
    assert_eq!(events[5]["payload"]["output"], "a.txt");
    let said = steno.run(&["import", &file]);
    assert_eq!(said.code, 0, "{}", said.err);
    let run = lines(&steno.run(&["ls", "--json"]))[0]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(lines(&steno.run(&["events", &run, "--json"])).len(), want.len());
    let verified = steno.run(&["verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}
