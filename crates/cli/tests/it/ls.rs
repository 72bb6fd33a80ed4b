//! `steno ls`: lists every session of the store, or every run, with its state.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use steno_testkit::{needs, shared_dir};

use crate::kit::{RUN, Steno, TIME, id, run};

const ENDED: &str = "2026-06-08T09:00:00Z";

fn event(kind: &str, time: &str, payload: Value) -> Value {
    let mut event = json!({ "type": kind, "timestamp": time });
    event["payload"] = payload;
    event
}

fn started(payload: Value) -> Value {
    event("run.started", TIME, payload)
}

fn completed(payload: Value) -> Value {
    event("run.completed", ENDED, payload)
}

fn workflow(name: &str) -> Value {
    json!({ "name": name, "kind": "workflow" })
}

/// The fields that DESIGN.md promises.
fn promised(run: &Value) -> Value {
    let keys = ["run_id", "parent_run_id", "session_run_id", "provider", "started_at", "state"];
    assert!(keys.iter().all(|key| run.get(key).is_some()), "each is there, be it null: {run}");
    keys.into_iter().map(|key| (key.to_owned(), run[key].clone())).collect()
}

/// The fields of `ls --json` for an ordinary run.
fn plain(run: &str, state: &str) -> Value {
    json!({ "run_id": run, "parent_run_id": null, "session_run_id": null, "provider": null, "started_at": TIME,
        "state": state })
}

/// Compares the list, as JSON and as text, with what it should say.
#[track_caller]
fn check(steno: &Steno, want: &[Value]) {
    check_with(steno, &[], want);
}

#[track_caller]
fn check_with(steno: &Steno, more: &[&str], want: &[Value]) {
    let ls = |args: &[&str]| steno.run(&[&["ls"], args, more].concat());
    let damaged = want.iter().filter(|run| run["state"] == "damaged").count();
    let said = ls(&["--json"]);
    assert_eq!((said.code, said.err.matches("is damaged: ").count()), (0, damaged), "{}", said.err);
    let by_id = |mut runs: Vec<Value>| {
        runs.sort_by_key(|run| run["run_id"].to_string());
        runs
    };
    let listed = by_id(said.json().iter().map(promised).collect());
    assert_eq!(listed, want);
    let said = ls(&[]);
    assert_eq!((said.code, said.err.lines().count()), (0, damaged), "{}", said.err);
    // A session has a mark before its id.
    let marks = usize::from(!more.contains(&"--runs"));
    let words = |line: &str| line.split_whitespace().skip(marks).take(2).collect::<Vec<_>>().join(" ");
    let mut shown: Vec<String> = said.out.lines().map(words).collect();
    shown.sort();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    // Damage is in capitals.
    let shown_state = |run: &Value| text(&run["state"]).replace("damaged", "DAMAGED");
    let want: Vec<String> =
        want.iter().map(|run| format!("{} {}", text(&run["run_id"]), shown_state(run))).collect();
    assert_eq!(shown, want);
}

#[test]
fn run_is_listed_with_its_state() {
    let steno = Steno::new();
    let ids: Vec<String> = (1..=6).map(id).collect();
    steno.recorded(&ids[0], &[started(Value::Null), completed(Value::Null)]);
    steno.recorded(
        &ids[1],
        &[started(workflow("b")), completed(json!({ "name": "b", "kind": "workflow", "error": "x" }))],
    );
    steno.recorded(&ids[2], &[started(workflow("c"))]);
    assert_eq!(steno.run(&["record", "--run", &ids[3]]).code, 0, "opened, and nothing recorded");
    steno.recorded(&ids[4], &[started(workflow("e")), completed(workflow("e"))]);
    fs::write(steno.transcript(&ids[4]), format!("not an event\n{}", steno.text(&ids[4]))).unwrap();
    let mut live = steno.start(&["record", "--run", &ids[5]]);
    live.send(&started(workflow("f")).to_string());
    live.line();
    let mut empty = plain(&ids[3], "empty");
    empty["started_at"] = Value::Null;
    let mut damaged = plain(&ids[4], "damaged");
    damaged["started_at"] = Value::Null;
    let mut want = [
        plain(&ids[0], "done"),
        plain(&ids[1], "failed"),
        plain(&ids[2], "open"),
        empty,
        damaged,
        plain(&ids[5], "live"),
    ];
    check(&steno, &want);
    // The last one is taken up as it is left: its end was not recorded.
    live.finish();
    want[5]["state"] = json!("open");
    check(&steno, &want);
}

#[test]
fn session_is_live_until_its_writer_ends() {
    let steno = Steno::new();
    let mut live = steno.start(&["record", "--run", RUN]);
    live.send(&started(Value::Null).to_string());
    live.send(&completed(Value::Null).to_string());
    live.lines(2);
    check(&steno, &[plain(RUN, "live")]);
    live.finish();
    check(&steno, &[plain(RUN, "done")]);
}

#[test]
fn session_that_grew_within_a_minute_is_live() {
    let steno = Steno::new();
    let now = jiff::Timestamp::now();
    let ago = |number: u8, seconds: i64, ends: bool| {
        let at = (now - jiff::SignedDuration::from_secs(seconds)).to_string();
        let mut events = vec![
            json!({ "type": "run.started", "timestamp": at, "payload": { "name": "a", "kind": "session" } }),
            json!({ "type": "step.started", "path": "turn-0001", "timestamp": at,
                "payload": { "name": "turn-0001", "kind": "turn" } }),
        ];
        let end = json!({ "type": "run.completed", "timestamp": at, "payload": { "name": "a", "kind": "session" } });
        events.extend(ends.then_some(end));
        steno.recorded(&id(number), &events);
    };
    ago(1, 1, false);
    ago(2, 120, false);
    ago(3, 1, true);
    let states: BTreeMap<String, Value> = steno
        .run(&["ls", "--json"])
        .json()
        .into_iter()
        .map(|row| (row["run_id"].as_str().unwrap().to_owned(), row["state"].clone()))
        .collect();
    assert_eq!(states, [(id(1), json!("live")), (id(2), json!("open")), (id(3), json!("open"))].into());
    let live = steno.run(&["ls", "--live", "--json"]).json();
    assert_eq!(live.iter().map(|row| row["run_id"].clone()).collect::<Vec<_>>(), [json!(id(1))]);
}

#[test]
fn garbage_at_either_end_is_damage() {
    for at_the_end in [false, true] {
        let steno = Steno::new();
        steno.recorded(RUN, &[started(Value::Null), completed(Value::Null)]);
        let (good, garbage) = (steno.text(RUN), "not an event\n".to_owned());
        let text = if at_the_end { good + &garbage } else { garbage + &good };
        fs::write(steno.transcript(RUN), text).unwrap();
        let listed = &steno.run(&["ls", "--json"]).json()[0];
        assert_eq!((&listed["run_id"], &listed["state"]), (&json!(RUN), &json!("damaged")));
    }
}

#[test]
fn damage_at_the_ends_and_in_seals_is_shown() {
    type Change = fn(&mut Vec<String>);
    let cases: [(&str, Change, &str); 5] = [
        ("cut", |lines| lines.truncate(2), "the file is shorter"),
        ("cut to nothing", Vec::clear, "the file is shorter"),
        ("the first line is gone", |lines| drop(lines.remove(0)), "the file is shorter"),
        ("another first number", |lines| lines[0] = lines[0].replace("\"seq\":1,", "\"seq\":2,"), "number 2"),
        ("another last number", |lines| lines[2] = lines[2].replace("\"seq\":3,", "\"seq\":4,"), "its seal"),
    ];
    for (name, change, why) in cases {
        let steno = Steno::new();
        steno.recorded(RUN, &[started(Value::Null), started(Value::Null), completed(Value::Null)]);
        let mut lines = steno.text(RUN).split_inclusive('\n').map(str::to_owned).collect();
        change(&mut lines);
        fs::write(steno.transcript(RUN), lines.concat()).unwrap();
        // What could be read before the damage is shown.
        let mut want = plain(RUN, "damaged");
        want["started_at"] = steno.run(&["ls", "--json"]).json()[0]["started_at"].clone();
        check(&steno, &[want]);
        let said = steno.run(&["ls"]);
        assert!(said.err.contains(RUN) && said.err.contains(why), "{name}: {}", said.err);
        assert!(said.err.contains(&format!("`steno verify {RUN}`")), "{name}: {}", said.err);
        assert_eq!(steno.run(&["verify"]).code, 1, "{name}: `verify` agrees");
    }
}

#[test]
fn transcript_under_another_runs_name_is_damage() {
    let steno = Steno::new();
    steno.recorded(&id(1), &[started(Value::Null)]);
    fs::rename(steno.transcript(&id(1)), steno.transcript(RUN)).unwrap();
    let said = steno.run(&["ls", "--json"]);
    let listed = &said.json()[0];
    assert_eq!((&listed["run_id"], &listed["state"]), (&json!(RUN), &json!("damaged")));
    assert!(said.err.contains(&id(1)), "{}", said.err);
}

#[test]
fn damage_in_the_middle_is_shown() {
    let steno = Steno::new();
    steno.recorded(RUN, &[started(Value::Null), started(Value::Null), completed(Value::Null)]);
    fs::write(steno.transcript(RUN), steno.text(RUN).replace("\"seq\":2,", "\"seq\":9,")).unwrap();
    check(&steno, &[plain(RUN, "damaged")]);
    assert_eq!(steno.run(&["verify"]).code, 1);
    // The list of runs reads only their ends.
    check_with(&steno, &["--runs"], &[plain(RUN, "completed")]);
}

#[test]
fn torn_tail_is_not_damage() {
    let steno = Steno::new();
    steno.recorded(RUN, &[started(Value::Null), completed(Value::Null)]);
    for tail in ["{\"seq\":3,", "\0\0\0\0\0\0"] {
        steno.write_by_hand(RUN, tail);
        check(&steno, &[plain(RUN, "done")]);
    }
}

/// A session of an agent, the record of a wrapper, and its subagent.
fn family() -> (Steno, [String; 3]) {
    let steno = Steno::new();
    let (session, wrap, child) = (id(1), id(2), id(3));
    let source =
        json!({ "channel": "disk", "version": "2.1.325", "adapter": "claude/1", "carries": ["calls"] });
    steno.recorded(&session, &[started(json!({ "name": "claude", "kind": "session", "source": source }))]);
    let mut first = started(json!({ "name": "claude -p", "kind": "command" }));
    first["session_run_id"] = json!(session);
    steno.recorded(&wrap, &[first]);
    let mut first = started(json!({ "name": "general-purpose", "kind": "subagent" }));
    first["parent_run_id"] = json!(session);
    steno.recorded(&child, &[first, json!({ "type": "run.completed", "timestamp": ENDED })]);
    (steno, [session, wrap, child])
}

#[test]
fn runs_are_listed_with_parent_session_and_provider() {
    let (steno, [session, wrap, child]) = family();
    let mut want = [plain(&session, "open"), plain(&wrap, "open"), plain(&child, "completed")];
    want[0]["provider"] = json!("claude");
    want[1]["session_run_id"] = json!(session);
    want[2]["parent_run_id"] = json!(session);
    check_with(&steno, &["--runs"], &want);
    let shown = steno.run(&["ls", "--runs"]).out;
    assert!(shown.contains(&format!("child of {session}")), "{shown}");
    assert!(shown.contains(&format!("of session {session}")), "{shown}");
}

#[test]
fn list_of_runs_takes_a_limit_and_forms_of_time() {
    let (steno, _) = family();
    let ls = |args: &[&str]| {
        let mut command = steno.command(&[&["ls", "--runs"], args].concat());
        command.env("TZ", "JST-9");
        run(command, b"")
    };
    for (form, want) in [("--utc", "2026-06-08 08:14Z"), ("--local", "2026-06-08 17:14 ")] {
        let said = ls(&[form]);
        assert_eq!(said.out.matches(want).count(), 3, "{form}: {said:?}");
    }
    assert!(!ls(&[]).out.contains("2026-06-08"), "the age is shown");
    for (limit, lines) in [("2", 2), ("0", 3), ("9", 3)] {
        assert_eq!(ls(&["-n", limit]).out.lines().count(), lines, "{limit}");
        assert_eq!(ls(&["-n", limit, "--json"]).json().len(), lines, "{limit}");
    }
}

#[test]
fn session_is_one_row_with_its_other_runs_and_subagents() {
    let (steno, [session, wrap, _]) = family();
    let mut want = plain(&session, "open");
    want["provider"] = json!("claude");
    check(&steno, &[want]);
    let listed = &steno.run(&["ls", "--json"]).json()[0];
    assert_eq!((&listed["runs"], &listed["events"]), (&json!(2), &json!(2)), "{listed}");
    assert_eq!((&listed["runs_below"], &listed["events_below"]), (&json!(1), &json!(2)), "{listed}");
    // A tree counts the same.
    let tree = &steno.run(&["tree", &session, "--json"]).json()[0];
    assert_eq!((&tree["events"], &tree["children"][0]["events"]), (&json!(2), &json!(2)), "{tree}");
    assert_eq!((&listed["started_at"], &listed["last_at"]), (&json!(TIME), &json!(ENDED)), "{listed}");
    assert!(steno.run(&["ls"]).out.contains("(2 runs, 1 child)"));
    // Its id is the agent's, even if only the wrapper's record exists.
    fs::remove_file(steno.transcript(&session)).unwrap();
    fs::remove_file(steno.beside(&session, "seals.jsonl")).unwrap();
    let listed = &steno.run(&["ls", "--json"]).json()[0];
    assert_eq!((&listed["run_id"], &listed["runs"]), (&json!(session), &json!(1)), "{listed}");
    assert!(steno.run(&["events", &session, "--raw"]).out.contains(&wrap));
}

#[test]
fn subagent_without_stored_parent_is_listed_and_can_be_shown() {
    let steno = Steno::new();
    let (parent, child) = (id(1), id(2));
    let mut first = started(json!({ "name": "general-purpose", "kind": "subagent" }));
    first["parent_run_id"] = json!(parent);
    steno.recorded(&child, &[first]);
    let listed = steno.run(&["ls", "--json"]).json();
    assert_eq!((listed.len(), &listed[0]["run_id"], &listed[0]["runs"]), (1, &json!(child), &json!(1)));
    for command in ["show", "tree"] {
        assert_eq!(steno.run(&[command, &child]).code, 0, "{command}");
        assert_eq!(steno.run(&[command, "last"]).code, 0, "{command}");
    }
}

#[test]
fn session_is_listed_with_project_and_first_words() {
    let steno = Steno::new();
    let text = |text: &str| json!({ "type": "text", "fidelity": "agent_emitted", "text": text });
    let mut system = text("You are helpful.");
    system["label"] = json!("system_prompt");
    let message = |blocks: Value| event("message.user", TIME, json!({ "role": "user", "blocks": blocks }));
    steno.recorded(
        RUN,
        &[
            started(json!({ "name": "codex", "kind": "session", "cwd": "/srv/shop" })),
            message(json!([system])),
            message(json!([text("\n  Fix the build.\nIt fails.")])),
        ],
    );
    let listed = &steno.run(&["ls", "--json"]).json()[0];
    assert_eq!((&listed["title"], &listed["project"]), (&json!("Fix the build."), &json!("/srv/shop")));
    let line = steno.run(&["ls"]).out;
    assert!(line.contains("  open  shop  codex  Fix the build.  1 prompt"), "{line}");
}

#[test]
fn shortest_part_of_an_id_is_bold_with_colours() {
    let steno = Steno::new();
    let (one, other) = ("0199aaaa-0000-7000-8000-00000000beef", "0199aaaa-0000-7000-8000-00000000cafe");
    for run in [one, other] {
        steno.recorded(run, &[started(Value::Null)]);
    }
    let shown = steno.run(&["ls", "--color", "always"]).out;
    for id in [one, other] {
        let (rest, part) = id.split_at(id.len() - 4);
        assert!(shown.contains(&format!("\u{1b}[2m{rest}\u{1b}[0m\u{1b}[1m{part}\u{1b}[0m  ")), "{shown:?}");
        assert_eq!(steno.run(&["events", part]).code, 0, "what stands out is enough");
        assert!(steno.run(&["ls"]).out.contains(&format!("{id}  ")), "plain without colours");
    }
}

#[test]
fn other_files_are_not_listed() {
    let steno = Steno::new();
    steno.recorded(RUN, &[started(Value::Null)]);
    let transcripts = steno.store().join("transcripts");
    for name in
        ["notes.txt", "x.jsonl", "550e8400.jsonl", "550e8400-e29b-41d4-a716-446655440001.jsonl.torn-1-ab"]
    {
        fs::write(transcripts.join(name), "x\n").unwrap();
    }
    check(&steno, &[plain(RUN, "open")]);
}

#[test]
fn store_without_runs_exits_with_1() {
    let steno = Steno::new();
    for made in [false, true] {
        if made {
            fs::create_dir(steno.store()).unwrap();
        }
        let before = steno.look();
        for args in [&["ls"][..], &["ls", "--json"]] {
            let said = steno.run(args);
            assert_eq!((said.code, &*said.out), (1, ""), "{args:?}");
            let named = said.err.contains(&format!("`{}`", steno.store().display()));
            assert!(named && said.err.contains("hint: "), "{}", said.err);
        }
        steno.assert_unchanged(&before, "ls");
    }
    assert_eq!(steno.run(&["record", "--run", RUN]).code, 0);
    fs::remove_file(steno.transcript(RUN)).unwrap();
    assert_eq!(steno.run(&["ls"]).code, 1, "a store whose runs are gone");
}

/// No adapter reads the records of these agents yet, and a copy of a session has no own events.
#[test]
fn sessions_without_events_are_counted_on_stderr() {
    let steno = Steno::new();
    let write = |path: &str, text: &str| {
        let path = steno.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let copilot = "9a1b2c3d-0000-4000-8000-000000000001";
    write(&format!(".copilot/session-state/{copilot}/events.jsonl"), "{\"type\":\"session.start\"}\n");
    write(&format!(".copilot/session-state/{copilot}/plan.md"), "the plan");
    for id in ["0a1b2c3d", "4e5f6a7b"] {
        write(&format!(".gemini/tmp/shop/chats/session-2026-06-08T08-14-{id}.json"), "{\"messages\":[]}");
    }
    assert_eq!(steno.run(&["import"]).code, 0);
    let counted = "not listed: 3 sessions (1 copilot, 2 gemini) with stored files but no events";
    let said = steno.run(&["ls"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains(counted) && said.err.contains("has no runs yet"), "{}", said.err);

    let session = "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee";
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/claude-session.jsonl");
    let sample = fs::read_to_string(sample).unwrap();
    write(&format!(".claude/projects/-srv-shop/{session}.jsonl"), &sample);
    write(&format!(".claude/projects/-srv-copy/{session}.jsonl"), &sample);
    assert_eq!(steno.run(&["import"]).code, 0);
    for args in [&["ls"][..], &["ls", "--json"]] {
        let said = steno.run(args);
        assert_eq!((said.code, said.out.lines().count()), (0, 1), "{args:?}: {}", said.out);
        assert!(said.out.contains(session) && said.err.starts_with(counted), "{args:?}: {}", said.err);
    }
    // The commands in the message work.
    let listed = steno.run(&["du", "--by", "session", "--all"]).out;
    for name in [copilot, "shop/0a1b2c3d"] {
        assert!(listed.contains(name), "{name}: {listed}");
        assert_eq!(steno.run(&["restore", name, "--list"]).code, 0, "{name}");
    }
    fs::remove_dir_all(steno.dir.path().join(".copilot")).unwrap();
    assert_eq!(steno.run(&["restore", copilot]).out.lines().count(), 2);
}

#[test]
fn import_counts_sessions_as_ls_does() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for part in ["captures", "versions"] {
        let steno = Steno::new();
        let report = steno.run(&["import", &shared.join(part).to_string_lossy(), "--json"]).json();
        let counts = report.last().unwrap()["sessions"].as_object().unwrap().clone();
        let listed = steno.run(&["ls", "--json"]).json();
        for provider in ["claude", "codex"] {
            let rows = listed.iter().filter(|row| row["provider"] == provider).count() as u64;
            assert_eq!(counts[provider].as_u64(), Some(rows), "{part}: {counts:?}");
            assert!(rows > 1, "{part}: {counts:?}");
        }
    }
}
