//! `steno follow`: prints the lines of the file from any start, and ends when no more can come.

use serde_json::{Value, json};

use crate::kit::{RUN, RunningSteno, Steno, TIME, id, run};

const COMPLETED: &str = r#"{"type":"run.completed","payload":null}"#;

fn message(text: &str) -> String {
    let block = json!({ "type": "text", "fidelity": "agent_emitted", "text": text });
    let payload = json!({ "role": "user", "blocks": [block] });
    json!({ "type": "message.user", "timestamp": TIME, "payload": payload }).to_string()
}

fn recorder(steno: &Steno) -> RunningSteno {
    steno.start(&["record", "--run", RUN, "--level", "written"])
}

/// Sends events and waits until each is recorded.
fn send(recorder: &mut RunningSteno, lines: &[String]) {
    for line in lines {
        recorder.send(line);
    }
    assert_eq!(recorder.lines(lines.len()).matches("\"seq\":").count(), lines.len());
}

/// Ends the run, and compares the whole output of each follower with the file.
#[track_caller]
fn finish(steno: &Steno, mut recorder: RunningSteno, followers: Vec<(&str, RunningSteno)>) {
    send(&mut recorder, &[COMPLETED.to_owned()]);
    assert_eq!(recorder.finish().code, 0);
    for (name, follower) in followers {
        let said = follower.ended();
        assert!((said.code, &*said.err) == (0, "") && said.out == steno.text(RUN), "{name}: {}", said.err);
    }
}

fn messages(count: usize) -> Vec<String> {
    (0..count).map(|number| message(&format!("message {number}"))).collect()
}

#[test]
fn followers_starting_at_any_time_see_the_same_lines() {
    let steno = Steno::new();
    let before = steno.start(&["follow", RUN, "--wait", "--raw"]);
    let before_json = steno.start(&["follow", RUN, "--wait", "--json"]);
    let mut recorder = recorder(&steno);
    send(&mut recorder, &messages(200));
    let mut during = steno.start(&["follow", RUN, "--raw"]);
    during.line();
    send(&mut recorder, &messages(200));
    let late = steno.start(&["follow", RUN, "--raw"]);
    let prefix = steno.start(&["follow", &RUN[..8], "--json"]);
    send(&mut recorder, &messages(200));
    let followers = vec![
        ("before", before),
        ("before, as JSON", before_json),
        ("during", during),
        ("late", late),
        ("by prefix", prefix),
    ];
    finish(&steno, recorder, followers);
    for form in ["--raw", "--json"] {
        let said = steno.run(&["follow", RUN, form]);
        assert!((said.code, said.out) == (0, steno.text(RUN)), "after, {form}");
    }
    assert_eq!(
        steno.run(&["follow", RUN, "--events"]).out,
        steno.run(&["events", RUN]).out,
        "the human form is that of `events`"
    );
}

#[test]
fn each_event_is_shown_as_it_is_recorded() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &[message("first")]);
    let mut follower = steno.start(&["follow", RUN, "--raw"]);
    follower.line();
    for number in 0..100 {
        send(&mut recorder, &[message(&format!("number {number}"))]);
        let line: Value = serde_json::from_str(&follower.line()).unwrap();
        assert_eq!(line["payload"]["blocks"][0]["text"], json!(format!("number {number}")));
    }
    finish(&steno, recorder, vec![("lock step", follower)]);
}

#[test]
fn long_lines_are_complete() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &[message("first")]);
    let follower = steno.start(&["follow", RUN, "--raw"]);
    let other = steno.start(&["follow", RUN, "--json"]);
    let long: Vec<String> = (1..=6).map(|size| message(&"x".repeat(size * 500_000))).collect();
    send(&mut recorder, &long);
    finish(&steno, recorder, vec![("raw", follower), ("JSON", other)]);
}

#[test]
fn follow_ends_when_the_run_is_completed_and_released() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &[message("first"), COMPLETED.to_owned()]);
    let mut follower = steno.start(&["follow", RUN, "--raw"]);
    follower.lines(2);
    // The writer is still there and may have more to say: that the follower hears it shows that it had not ended.
    send(&mut recorder, &[message("a late fact")]);
    assert!(follower.line().contains("a late fact"));
    finish(&steno, recorder, vec![("follower", follower)]);
}

#[test]
fn follow_continues_for_an_open_run_without_writer() {
    let steno = Steno::new();
    let mut first = recorder(&steno);
    send(&mut first, &messages(3));
    let mut follower = steno.start(&["follow", RUN, "--raw"]);
    follower.lines(3);
    assert_eq!(first.finish().code, 0);
    // The run has no end, so it may be continued: no end is invented.
    let mut second = recorder(&steno);
    send(&mut second, &messages(3));
    follower.lines(3);
    assert!(follower.is_alive());
    finish(&steno, second, vec![("follower", follower)]);
}

#[test]
fn follow_ends_after_a_killed_writer_of_a_completed_run() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &[message("first"), COMPLETED.to_owned()]);
    let mut follower = steno.start(&["follow", RUN, "--raw"]);
    follower.lines(2);
    recorder.signal("KILL");
    recorder.ended();
    let said = follower.ended();
    assert_eq!((said.code, said.out), (0, steno.text(RUN)));
}

#[test]
fn uncommitted_tail_is_not_shown() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &[message("first"), COMPLETED.to_owned()]);
    recorder.finish();
    let whole = steno.text(RUN);
    steno.write_by_hand(RUN, "{\"seq\":3,\"run_id\"");
    let said = steno.run(&["follow", RUN, "--raw"]);
    assert_eq!((said.code, said.out), (0, whole));
}

#[test]
fn follow_can_start_at_any_event() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &messages(5));
    let late = steno.start(&["follow", RUN, "--raw", "--from", "6"]);
    let later = steno.start(&["follow", RUN, "--raw", "--from", "8"]);
    send(&mut recorder, &messages(4));
    finish(&steno, recorder, Vec::new());
    let text = steno.text(RUN);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 10);
    for (from, follower) in [(6, late), (8, later)] {
        let said = follower.ended();
        assert_eq!(
            (said.code, said.out),
            (0, lines[from - 1..].concat()),
            "--from {from}, before it was there"
        );
    }
    for from in 1..=10 {
        let said = steno.run(&["follow", RUN, "--raw", "--from", &from.to_string()]);
        assert_eq!((said.code, said.out), (0, lines[from - 1..].concat()), "--from {from}");
    }
}

#[test]
fn follow_from_beyond_the_end_of_a_completed_run_ends() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &messages(2));
    finish(&steno, recorder, Vec::new());
    // Help: "Stops when the run is completed and no process records it any more."
    let said = steno.run(&["follow", RUN, "--raw", "--from", "4"]);
    assert_eq!(said.out, "");
}

#[test]
fn follow_waits_for_a_missing_run_only_with_wait() {
    let steno = Steno::new();
    let said = steno.run(&["follow", RUN]);
    assert!(said.code == 1 && said.out.is_empty() && said.err.contains("hint: "), "no store: {said:?}");
    assert!(!steno.store().exists(), "a reader makes no store");
    let other = id(9);
    steno.recorded(&other, &[json!({ "type": "run.started" })]);
    let said = steno.run(&["follow", RUN]);
    assert!(said.code == 1 && said.out.is_empty() && said.err.contains("hint: "), "no run: {said:?}");
    for store_is_there in [true, false] {
        let elsewhere = steno.dir.path().join("elsewhere");
        let store = if store_is_there { steno.store() } else { elsewhere };
        let said = steno.run(&["--store", store.to_str().unwrap(), "follow", &RUN[..8], "--wait"]);
        assert!(said.code == 1 && said.err.contains("use its whole UUID"), "{said:?}");
    }
    let waiting = steno.start(&["follow", RUN, "--wait", "--raw"]);
    let mut recorder = recorder(&steno);
    send(&mut recorder, &messages(3));
    finish(&steno, recorder, vec![("waiting", waiting)]);
}

#[test]
fn follow_ends_when_its_reader_leaves() {
    let steno = Steno::new();
    steno.record(&[r#"{"type":"run.started"}"#]);
    let command = steno.shell("\"$0\" follow \"$1\" | head -n 1", &[RUN]);
    let said = run(command, b"");
    assert_eq!((said.code, said.out.lines().count()), (0, 1), "{said:?}");
}

#[test]
fn live_session_reads_as_a_conversation() {
    let steno = Steno::new();
    let mut recorder = recorder(&steno);
    send(&mut recorder, &[message("first")]);
    let mut follower = steno.start(&["follow"]);
    let header = until(&mut follower, " you │ first");
    assert!(header.contains("live"), "{header}");
    send(&mut recorder, &[message("second")]);
    assert!(follower.line().contains("     │ second"));
    finish(&steno, recorder, Vec::new());
    assert_eq!(follower.ended().code, 0);
    let late = steno.run(&["follow", RUN, "--from", "2"]).out;
    assert!(late.contains("second") && !late.contains("│ first"), "{late}");
}

#[test]
fn old_session_without_an_end_is_not_live() {
    let steno = Steno::new();
    steno.recorded(RUN, &[serde_json::from_str(&message("first")).unwrap()]);
    let mut follower = steno.start(&["follow", RUN]);
    let header = until(&mut follower, " you │ first");
    assert!(!header.contains("live"), "{header}");
}

#[test]
fn latest_session_is_named_if_none_is_live() {
    let steno = Steno::new();
    steno.recorded(RUN, &[serde_json::from_str(&message("first")).unwrap()]);
    let said = steno.run(&["follow"]);
    assert!(said.code == 1 && said.err.contains(&format!("the latest is {RUN}")), "{said:?}");
    assert!(said.err.contains("`steno show last`"), "{said:?}");
}

/// An event of a turn.
fn turn_event(kind: &str, child: Option<&str>, payload: &Value) -> String {
    let mut event = json!({ "type": kind, "timestamp": TIME, "path": "turn-0001", "payload": payload });
    if let Some(child) = child {
        event["child_run_id"] = child.into();
    }
    event.to_string()
}

fn said(role: &str, text: &str) -> String {
    let blocks = json!([{ "type": "text", "fidelity": "agent_emitted", "text": text }]);
    turn_event(&format!("message.{role}"), None, &json!({ "role": role, "blocks": blocks }))
}

#[test]
fn subagent_is_named_while_it_runs_and_shown_when_its_call_ends() {
    let steno = Steno::new();
    let child = id(9);
    let turn = turn_event("step.started", None, &json!({ "name": "turn-0001", "kind": "turn" }));
    let step = json!({ "name": "counter", "kind": "subagent", "tool_call_id": "c1" });
    let call = json!({ "name": "Task", "call_id": "c1", "class": "agent", "input": { "description": "Count" },
        "output": null, "fidelity": "agent_emitted" });
    let mut recorder = recorder(&steno);
    let begin = [
        turn.clone(),
        said("user", "How many?"),
        turn_event("tool.call", None, &call),
        turn_event("step.call_workflow.started", Some(&child), &step),
    ];
    send(&mut recorder, &begin);
    let mut follower = steno.start(&["follow", RUN]);
    let running = until(&mut follower, "(`steno follow` with this id shows it)");
    assert!(running.contains(&format!("↳ child run {child}  counter  open")), "{running}");
    let work = [turn, said("user", "Count the lines."), said("assistant", "There are three.")];
    let answered = steno.run_with(&["record", "--run", &child], format!("{}\n", work.join("\n")).as_bytes());
    assert_eq!(answered.code, 0, "{answered:?}");
    let result = json!({ "name": "Task", "call_id": "c1", "class": "agent", "input": null, "output": "three",
        "outcome": "ok", "fidelity": "agent_emitted" });
    let end = [
        turn_event("tool.result", None, &result),
        turn_event("step.call_workflow.completed", Some(&child), &step),
        COMPLETED.to_owned(),
    ];
    send(&mut recorder, &end);
    assert_eq!(recorder.finish().code, 0);
    let shown = follower.ended();
    assert!(shown.code == 0 && shown.out.contains("┃   ai │ There are three."), "{shown:?}");
}

/// Reads lines up to one that has a text.
fn until(follower: &mut RunningSteno, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        read += &follower.line();
    }
    read
}
