//! `steno follow` for a session that several channels record at the same time: it reads as one conversation. Each test
//! writes an event and waits for what it shows before it writes the next one.

use serde_json::{Value, json};
use steno_testkit::{needs, shared_dir};

use crate::kit::{RUN, RunningSteno, Steno, TIME, id};

/// A run of the session, and the process that records it.
struct Channel(RunningSteno);

impl Channel {
    /// Begins a run of the session on a channel. The agent's own file has the id of the session.
    fn begin(steno: &Steno, run: &str, channel: &str) -> Self {
        let recorder = steno.start(&["record", "--run", run, "--level", "written"]);
        let source = json!({ "provider": "claude", "channel": channel });
        let payload = json!({ "name": "claude", "kind": "session", "source": source });
        let mut started = json!({ "type": "run.started", "timestamp": TIME, "payload": payload });
        if run != RUN {
            started["session_run_id"] = RUN.into();
        }
        let mut channel = Self(recorder);
        channel.send(&started);
        channel
    }

    /// Sends an event and waits until it is recorded.
    fn send(&mut self, event: &Value) {
        self.0.send(&event.to_string());
        let answer = self.0.line();
        assert!(answer.contains("\"seq\":"), "{event}\n{answer}");
    }

    fn end(mut self) {
        self.send(&json!({ "type": "run.completed", "timestamp": TIME, "payload": null }));
        assert_eq!(self.0.finish().code, 0);
    }
}

fn event(kind: &str, path: &str, payload: &Value) -> Value {
    json!({ "type": kind, "timestamp": TIME, "path": path, "payload": payload })
}

fn turn() -> Value {
    event("step.started", "turn-0001", &json!({ "name": "turn-0001", "kind": "turn", "turn_id": "t1" }))
}

fn message(role: &str, id: Option<&str>, text: &str) -> Value {
    let blocks = json!([{ "type": "text", "fidelity": "agent_emitted", "text": text }]);
    event(&format!("message.{role}"), "turn-0001", &json!({ "role": role, "id": id, "blocks": blocks }))
}

fn call(id: &str, name: &str, class: &str, input: &Value) -> Value {
    let payload = json!({ "name": name, "call_id": id, "class": class, "input": input, "output": null,
        "fidelity": "agent_emitted" });
    event("tool.call", "turn-0001", &payload)
}

fn command(id: &str, command: &str) -> Value {
    call(id, "Bash", "command", &json!({ "command": command }))
}

fn result(id: &str, outcome: &str, output: &str) -> Value {
    let payload = json!({ "name": "tool", "call_id": id, "input": null, "output": output, "outcome": outcome,
        "fidelity": "agent_emitted" });
    event("tool.result", "turn-0001", &payload)
}

/// The request for an approval, or its answer.
fn approval(call: &str, answer: Option<&Value>) -> Value {
    let mut payload = json!({ "name": call, "kind": "approval", "tool_call_id": call });
    if let Some(answer) = answer {
        payload["result"] = answer.clone();
    }
    let kind = if answer.is_some() { "step.completed" } else { "step.started" };
    event(kind, "turn-0001.approval", &payload)
}

/// A call as a router saw it, without the agent's id.
fn routed(output: Option<&str>) -> Value {
    let mut payload = json!({ "name": "mcp__s__add", "call_id": "r1", "input": { "a": 1 }, "output": null,
        "fidelity": "router", "class": "mcp", "server": "s", "tool": "add", "id_available": false });
    if let Some(output) = output {
        (payload["input"], payload["output"], payload["outcome"]) = (Value::Null, output.into(), "ok".into());
    }
    event(if output.is_some() { "tool.result" } else { "tool.call" }, "", &payload)
}

fn turn_end() -> Value {
    event(
        "step.completed",
        "turn-0001",
        &json!({ "name": "turn-0001", "kind": "turn", "ended_by": "record" }),
    )
}

/// Reads lines up to one that has a text.
fn until(follower: &mut RunningSteno, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        read += &follower.line();
    }
    read
}

/// Reads lines up to one that has a text, and compares them.
#[track_caller]
fn check(follower: &mut RunningSteno, want: &[&str]) {
    let read = until(follower, want[want.len() - 1]);
    assert_eq!(read.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(), want);
}

/// Returns the lines of a conversation, without those about its header, its turns, and what is not decided yet.
fn facts(text: &str) -> Vec<String> {
    let conversation = text.split_once("── turn-0001").map_or("", |(_, rest)| rest);
    let is_passing =
        |line: &str| line.contains("running") || line.contains("asked, no answer") || line.starts_with("── ");
    let lines = conversation.lines().skip(1).filter(|line| !is_passing(line));
    let mut lines: Vec<String> = lines.map(str::to_owned).filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines
}

#[test]
fn several_channels_read_as_one_conversation() {
    let steno = Steno::new();
    let mut stream = Channel::begin(&steno, &id(3), "stream");
    stream.send(&turn());
    stream.send(&message("user", Some("p1"), "Clean up."));
    // The session has no file yet, and is found by the run of its stream.
    let mut follower = steno.start(&["follow", &id(3)]);
    until(&mut follower, " you │ Clean up.");
    stream.send(&command("c1", "rm -r build"));
    check(&mut follower, &["     ▸ $ rm -r build  running"]);
    let mut client = Channel::begin(&steno, &id(2), "app-server");
    for event in [turn(), message("user", None, "Clean up."), command("c1", "rm -r build")] {
        client.send(&event);
    }
    client.send(&approval("c1", None));
    check(&mut follower, &["     ▸ $ rm -r build  running", "       asked, no answer"]);
    // The file has the whole history, and gives the order from now on.
    let mut disk = Channel::begin(&steno, RUN, "disk");
    for event in [turn(), message("user", Some("p1"), "Clean up."), command("c1", "rm -r build")] {
        disk.send(&event);
    }
    client.send(&approval("c1", Some(&json!({ "decision": "allowed", "by": "user", "scope": "once" }))));
    check(&mut follower, &["     ▸ $ rm -r build  running", "       allowed by user (once)"]);
    disk.send(&result("c1", "ok", "removed"));
    check(&mut follower, &["     ▸ $ rm -r build", "       removed"]);
    stream.send(&result("c1", "ok", "removed"));
    client.send(&result("c1", "ok", "removed"));
    let mut router = Channel::begin(&steno, &id(4), "mcp");
    disk.send(&call("c2", "mcp__s__add", "mcp", &json!({ "a": 1 })));
    check(&mut follower, &["     ▸ mcp__s__add a=1  running"]);
    // What the router saw is more exact than what the agent reports.
    router.send(&routed(None));
    router.send(&routed(Some("two")));
    check(&mut follower, &["     ▸ mcp__s__add a=1", "       two"]);
    disk.send(&result("c2", "unknown", "two"));
    client.send(&message("assistant", Some("i1"), "Done."));
    check(&mut follower, &["  ai │ Done."]);
    for channel in [&mut disk, &mut stream] {
        channel.send(&message("assistant", Some("m1"), "Done."));
        channel.send(&turn_end());
    }
    for channel in [disk, client, stream, router] {
        channel.end();
    }
    let said = follower.ended();
    assert_eq!((said.code, &*said.err), (0, ""), "{said:?}");
    let shown = steno.run(&["show", RUN]).out;
    assert_eq!(facts(&said.out), facts(&shown), "{}\n{shown}", said.out);
    // Whoever comes later sees what `show` shows.
    assert_eq!(facts(&steno.run(&["follow", RUN]).out), facts(&shown));
}

#[test]
fn session_that_is_recorded_now_is_followed_with_all_its_runs() {
    let steno = Steno::new();
    let mut disk = Channel::begin(&steno, RUN, "disk");
    let mut client = Channel::begin(&steno, &id(2), "app-server");
    for event in [turn(), message("user", Some("p1"), "Clean up."), command("c1", "make")] {
        disk.send(&event);
        client.send(&event);
    }
    for event in [approval("c1", None), approval("c1", Some(&json!({ "decision": "denied", "by": "user" })))]
    {
        client.send(&event);
    }
    let mut follower = steno.start(&["follow"]);
    let read = until(&mut follower, "denied by user");
    assert!(read.contains("⊘ $ make"), "{read}");
    disk.end();
    client.send(&message("assistant", Some("i1"), "As you like."));
    check(&mut follower, &["  ai │ As you like."]);
    client.end();
    assert_eq!(follower.ended().code, 0);
}

#[test]
fn events_and_a_first_event_are_those_of_one_run() {
    let steno = Steno::new();
    let mut disk = Channel::begin(&steno, RUN, "disk");
    let mut client = Channel::begin(&steno, &id(2), "app-server");
    for event in [turn(), message("user", Some("p1"), "Clean up."), message("assistant", Some("m1"), "Done.")]
    {
        disk.send(&event);
    }
    for event in [turn(), command("c1", "make")] {
        client.send(&event);
    }
    disk.end();
    client.end();
    assert_eq!(steno.run(&["follow", RUN, "--raw"]).out, steno.text(RUN));
    let late = steno.run(&["follow", RUN, "--from", "4"]).out;
    assert!(
        late.contains("ai │ Done.") && !late.contains("Clean up.\n\n") && !late.contains("$ make"),
        "{late}"
    );
    let whole = steno.run(&["follow", RUN]).out;
    assert!(whole.contains("ai │ Done.") && whole.contains("$ make"), "{whole}");
}

/// Directories of captures with several channels of one session.
const CAPTURES: [&str; 5] = [
    "claude/2.1.325/main",
    "claude/2.1.325/control",
    "codex/0.166.0/exec_main",
    "codex/0.166.0/app_server",
    "copilot/1.0.102/main_responses",
];

/// How many events of a run are written before another run goes on.
const EVENTS_IN_TURN: usize = 5;

/// Returns the session of a capture that has most runs, how many these are, and the events of all runs, its own first.
fn captured_runs(archive: &Steno) -> (String, usize, Vec<(String, Vec<Value>)>) {
    let sessions = archive.run(&["ls", "--json"]).json();
    let session = sessions.iter().max_by_key(|row| row["runs"].as_u64()).unwrap();
    let session = session["run_id"].as_str().unwrap().to_owned();
    let rows = archive.run(&["ls", "--runs", "--json"]).json();
    let is_own = |row: &Value| row["run_id"] == session.as_str() || row["session_run_id"] == session.as_str();
    let (own, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| is_own(row));
    let events = |row: &&Value| {
        let run = row["run_id"].as_str().unwrap().to_owned();
        let lines = archive.text(&run);
        let events = lines.lines().map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            let fields = event.as_object_mut().unwrap();
            // The recorder gives the numbers.
            fields.remove("seq");
            fields.remove("run_id");
            event
        });
        (run, events.collect::<Vec<_>>())
    };
    let count = own.len();
    (session, count, own.iter().chain(&others).map(events).collect())
}

/// Returns the lines of what was said, each as often as it is there, and all other lines, without durations.
fn texts_and_calls(text: &str) -> [Vec<String>; 2] {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("── "));
    let without_time = |line: &str| {
        let (rest, last) = line.rsplit_once("  ").unwrap_or((line, ""));
        let is_time = last.starts_with(|first: char| first.is_ascii_digit()) && last.ends_with('s');
        if is_time { rest.trim_end().to_owned() } else { line.to_owned() }
    };
    let (mut texts, mut calls): (Vec<String>, Vec<String>) =
        lines.map(without_time).partition(|line| line.contains('│'));
    texts.sort();
    calls.sort();
    calls.dedup();
    [texts, calls]
}

#[test]
fn captured_channels_are_followed_as_they_are_shown() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for capture in CAPTURES {
        let archive = Steno::new();
        let path = shared.join("captures").join(capture);
        archive.run(&["import", path.to_str().unwrap()]);
        let (session, count, runs) = captured_runs(&archive);
        assert!(count > 1, "{capture}: {count}");
        let live = Steno::new();
        let begin = |(run, _): &(String, Vec<Value>)| {
            Channel(live.start(&["record", "--run", run, "--level", "written"]))
        };
        let mut channels: Vec<Channel> = runs.iter().map(begin).collect();
        let mut follower = None;
        let longest = runs.iter().map(|(_, events)| events.len()).max().unwrap();
        for first in (0..longest).step_by(EVENTS_IN_TURN) {
            for (channel, (_, events)) in channels.iter_mut().zip(&runs) {
                events.iter().skip(first).take(EVENTS_IN_TURN).for_each(|event| channel.send(event));
            }
            follower.get_or_insert_with(|| live.start(&["follow", &session]));
        }
        for channel in channels {
            channel.end();
        }
        let output = follower.unwrap().ended();
        assert_eq!(output.code, 0, "{capture}: {output:?}");
        let shown = live.run(&["show", &session, "--no-pager"]).out;
        let conversation = |text: &str| {
            let (_, rest) = text.split_once("── turn-").unwrap();
            rest.split_once('\n').unwrap().1.to_owned()
        };
        let [texts, calls] = texts_and_calls(&conversation(&output.out));
        let [shown_texts, shown_calls] = texts_and_calls(&conversation(&shown));
        assert_eq!(texts, shown_texts, "{capture}\n{}\n=====\n{shown}", output.out);
        for call in &shown_calls {
            assert!(calls.contains(call), "{capture}: {call}\n{}\n=====\n{shown}", output.out);
        }
    }
}
