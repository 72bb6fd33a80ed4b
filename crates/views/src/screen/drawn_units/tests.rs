//! Sessions that grow on several channels: what is drawn piece by piece is what is drawn at once.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use steno_model::ExchangeEvent;
use steno_session::{Content, RunEvents, merge_borrowed};

use super::*;
use crate::screen::{ScreenState, ScreenStyle};
use crate::testing::{run_id, time};

/// A run on a channel: type, path and payload of its events.
type Channel = (&'static str, Vec<Value>);

/// The events of a run, as many as it has so far.
fn run_events(number: u32, (channel, lines): &Channel, len: usize) -> RunEvents {
    let head =
        json!(["run.started", "", {"name": "agent", "kind": "session", "source": {"channel": channel}}]);
    let event = |(index, line): (usize, &Value)| {
        let seq = index as u64 + 1;
        let whole = json!({
            "seq": seq, "run_id": run_id(number).to_string(), "type": line[0], "path": line[1], "iteration": 0,
            "timestamp": time(seq), "payload": line[2], "session_run_id": run_id(1).to_string(),
        });
        ExchangeEvent::parse(whole.to_string().as_bytes()).unwrap()
    };
    let events = [&head].into_iter().chain(lines).take(len).enumerate().map(event).collect();
    RunEvents { id: run_id(number), events }
}

/// Draws a session of several runs each time that one of them has grown.
struct LiveScreen {
    channels: Vec<Channel>,
    lens: Vec<usize>,
    drawn: DrawnUnits,
    state: ScreenState,
    lines: Vec<String>,
}

impl LiveScreen {
    fn new(channels: &[Channel]) -> Self {
        let lens = vec![0; channels.len()];
        let (drawn, state) = (DrawnUnits::default(), ScreenState::default());
        Self { channels: channels.to_vec(), lens, drawn, state, lines: Vec::new() }
    }

    fn conversation(&self) -> Conversation {
        let runs = self.channels.iter().zip(&self.lens).zip(1..).filter(|((_, len), _)| **len > 0);
        let runs: Vec<RunEvents> = runs.map(|((of, len), number)| run_events(number, of, *len)).collect();
        Conversation::of(&merge_borrowed(run_id(1), &runs, Content::Whole))
    }

    fn with_screen(state: ScreenState, draw: impl FnOnce(&mut Screen<'_>)) -> (ScreenState, Vec<String>) {
        let mut lines = Vec::new();
        let children = BTreeMap::new();
        let style = ScreenStyle {
            paint: &|_, words, line| line.push_str(words),
            time: &ToString::to_string,
            width: None,
            detail: Detail::Changes,
            is_folded: false,
            has_marks: true,
            has_every_step: false,
            is_live: true,
            focus: None,
            children: &children,
            absent_child: "",
            directory: None,
        };
        let mut sink = |line: &str| {
            lines.push(line.to_owned());
            true
        };
        let mut screen = Screen::new(style, &mut sink).after(state);
        draw(&mut screen);
        let state = screen.state();
        (state, lines)
    }

    /// Lets a run have some more events; returns what is drawn then.
    fn grow(&mut self, channel: usize, more: usize) -> Vec<String> {
        let whole = self.channels[channel].1.len() + 1;
        self.lens[channel] = whole.min(self.lens[channel] + more);
        let conversation = self.conversation();
        let drawn = &mut self.drawn;
        let (state, lines) = Self::with_screen(self.state, |screen| screen.news(&conversation, drawn, false));
        self.state = state;
        self.lines.extend(lines.iter().cloned());
        lines
    }

    /// Draws the session at once.
    fn shown(&self) -> Vec<String> {
        let conversation = self.conversation();
        Self::with_screen(ScreenState::default(), |screen| screen.conversation(&conversation)).1
    }
}

fn turn(path: &str, id: Option<&str>) -> Value {
    json!(["step.started", path, {"name": path, "kind": "turn", "turn_id": id}])
}

fn turn_end(path: &str, by: &str) -> Value {
    json!(["step.completed", path, {"name": path, "kind": "turn", "ended_by": by}])
}

fn prompt(path: &str, id: Option<&str>, text: &str) -> Value {
    json!(["message.user", path, {"role": "user", "id": id, "blocks": [{"type": "text", "text": text}]}])
}

fn words(path: &str, id: &str, text: &str) -> Value {
    json!(["message.assistant", path, {"role": "assistant", "id": id, "blocks": [{"type": "text", "text": text}]}])
}

fn call(path: &str, id: &str, command: &str) -> Value {
    json!(["tool.call", path, {"name": "Bash", "call_id": id, "input": {"command": command}, "output": null,
        "fidelity": "agent_emitted", "class": "command"}])
}

fn result(path: &str, id: &str, outcome: &str, output: &str) -> Value {
    json!(["tool.result", path, {"name": "Bash", "call_id": id, "input": null, "output": output,
        "fidelity": "agent_emitted", "outcome": outcome}])
}

fn approval(path: &str, call: &str, scope: &str) -> [Value; 2] {
    let at = format!("{path}.approval");
    [
        json!(["step.started", at, {"name": call, "kind": "approval", "tool_call_id": call}]),
        json!(["step.completed", at, {"name": call, "kind": "approval", "tool_call_id": call,
            "result": {"decision": "allowed", "by": "user", "scope": scope}}]),
    ]
}

fn router(id: &str, output: &str) -> [Value; 2] {
    [
        json!(["tool.call", "", {"name": "mcp__s__add", "call_id": id, "input": {"a": 1}, "output": null,
            "fidelity": "router", "class": "mcp", "server": "s", "tool": "add", "id_available": false}]),
        json!(["tool.result", "", {"name": "mcp__s__add", "call_id": id, "input": null, "output": output,
            "fidelity": "router", "outcome": "ok"}]),
    ]
}

fn mcp_call(path: &str, id: &str) -> Value {
    json!(["tool.call", path, {"name": "mcp__s__add", "call_id": id, "input": {"a": 1}, "output": null,
        "fidelity": "agent_emitted", "class": "mcp"}])
}

#[track_caller]
fn check(lines: &[String], want: &[&str]) {
    assert_eq!(lines, want);
}

#[test]
fn facts_of_another_channel_are_drawn_when_they_come() {
    let disk = vec![
        turn("turn-0001", Some("t1")),
        prompt("turn-0001", Some("p1"), "Clean up."),
        call("turn-0001", "c1", "rm -r build"),
        result("turn-0001", "c1", "ok", "removed"),
        words("turn-0001", "m1", "Done."),
        turn_end("turn-0001", "record"),
    ];
    let [asked, allowed] = approval("turn-0001", "c1", "once");
    let client = vec![
        turn("turn-0001", Some("t1")),
        prompt("turn-0001", None, "Clean up."),
        call("turn-0001", "c1", "rm -r build"),
        asked,
        allowed,
        result("turn-0001", "c1", "ok", "removed"),
        words("turn-0001", "i1", "Done."),
        turn_end("turn-0001", "record"),
    ];
    let mut live = LiveScreen::new(&[("disk", disk), ("app-server", client)]);
    let heading = "── turn-0001  2026-06-08T00:00:02Z  open";
    check(&live.grow(1, 4), &[heading, " you │ Clean up.", "", "     ▸ $ rm -r build  running"]);
    check(&live.grow(0, 4), &[]);
    check(&live.grow(1, 1), &["     ▸ $ rm -r build  running", "       asked, no answer"]);
    check(&live.grow(1, 1), &["     ▸ $ rm -r build  running", "       allowed by user (once)"]);
    check(&live.grow(0, 1), &["     ▸ $ rm -r build  1.0s", "       removed"]);
    check(&live.grow(1, 3), &["", "  ai │ Done."]);
    check(&live.grow(0, 2), &[]);
}

#[test]
fn approval_that_comes_after_the_result_is_a_line_of_its_own() {
    let disk = vec![
        turn("turn-0001", Some("t1")),
        call("turn-0001", "c1", "make"),
        result("turn-0001", "c1", "ok", "built"),
        turn("turn-0002", Some("t2")),
        words("turn-0002", "m2", "Next."),
        words("turn-0002", "m3", "Last."),
    ];
    let mut client = vec![turn("turn-0001", Some("t1")), call("turn-0001", "c1", "make")];
    client.extend(approval("turn-0001", "c1", "always"));
    let mut live = LiveScreen::new(&[("disk", disk), ("app-server", client)]);
    live.grow(0, 6);
    let first = "── turn-0001  2026-06-08T00:00:02Z  open";
    let again = "     ▸ $ make  1.0s";
    check(&live.grow(1, 5), &["", first, again, "       allowed by user (always)"]);
    // What comes next belongs to another turn than the last line.
    check(&live.grow(0, 1), &["", "── turn-0002  2026-06-08T00:00:05Z  open", "  ai │ Last."]);
}

#[test]
fn call_of_a_router_is_drawn_once() {
    let disk = vec![
        turn("turn-0001", Some("t1")),
        mcp_call("turn-0001", "c1"),
        result("turn-0001", "c1", "unknown", "2"),
        words("turn-0001", "m1", "Two."),
    ];
    let mut live = LiveScreen::new(&[("disk", disk), ("mcp", router("r1", "2").to_vec())]);
    // Its run has no turns, and another id for the call.
    check(&live.grow(1, 3), &["     ▸ mcp__s__add a=1  1.0s", "       2"]);
    let rest = live.grow(0, 5);
    check(&rest, &["", "── turn-0001  2026-06-08T00:00:02Z  open", "  ai │ Two."]);
}

#[test]
fn router_result_that_differs_is_drawn_below_the_call() {
    let disk = vec![
        turn("turn-0001", Some("t1")),
        mcp_call("turn-0001", "c1"),
        result("turn-0001", "c1", "failed", "the connection was closed"),
    ];
    let mut live = LiveScreen::new(&[("disk", disk), ("mcp", router("r1", "2").to_vec())]);
    live.grow(0, 4);
    check(&live.grow(1, 3), &["     ▸ mcp__s__add a=1", "       2"]);
}

#[test]
fn run_with_the_whole_history_adds_only_what_was_not_drawn() {
    let mut disk = Vec::new();
    for number in 1..4 {
        let path = format!("turn-000{number}");
        disk.extend([
            turn(&path, None),
            prompt(&path, Some(&format!("p{number}")), "Go on."),
            words(&path, &format!("m{number}"), "Done."),
            turn_end(&path, "record"),
        ]);
    }
    // It has the last turn only, under another name.
    let stream = vec![
        turn("turn-0001", None),
        prompt("turn-0001", Some("p3"), "Go on."),
        words("turn-0001", "m3", "Done."),
    ];
    let mut live = LiveScreen::new(&[("disk", disk), ("stream", stream)]);
    check(
        &live.grow(1, 4),
        &["── turn-0001  2026-06-08T00:00:02Z  open", " you │ Go on.", "", "  ai │ Done."],
    );
    let first = ["", "── turn-0001  2026-06-08T00:00:02Z  3.0s", " you │ Go on.", "", "  ai │ Done."];
    let second = ["", "── turn-0002  2026-06-08T00:00:06Z  3.0s", " you │ Go on.", "", "  ai │ Done."];
    check(&live.grow(0, 13), &[first, second].concat());
}

#[test]
fn run_whose_ids_are_its_own_is_not_drawn_again() {
    // The ids of `codex exec` are valid in its own run, so beside another run it adds nothing.
    let exec = vec![
        turn("turn-0001", None),
        call("turn-0001", "item_1", "make"),
        result("turn-0001", "item_1", "ok", "built"),
        words("turn-0001", "item_2", "Done."),
    ];
    let disk = vec![
        turn("turn-0001", Some("t1")),
        prompt("turn-0001", None, "Build it."),
        call("turn-0001", "c1", "make"),
        result("turn-0001", "c1", "ok", "built"),
        words("turn-0001", "m1", "Done."),
        words("turn-0001", "m2", "Really."),
    ];
    let mut live = LiveScreen::new(&[("disk", disk), ("exec", exec)]);
    live.grow(1, 5);
    check(&live.grow(0, 6), &["", " you │ Build it."]);
    check(&live.grow(0, 1), &["", "  ai │ Really."]);
}

#[test]
fn turn_that_comes_back_ends_no_drawing() {
    // With each run that joins, the turn is read from another event, and in the end from the first one again.
    let of = |ids: [&str; 2], prompt_id: Option<&str>| {
        vec![
            turn("turn-0001", None),
            prompt("turn-0001", prompt_id, "Go on."),
            words("turn-0001", ids[0], "I do."),
            call("turn-0001", ids[1], "make"),
            result("turn-0001", ids[1], "ok", "built"),
            turn_end("turn-0001", "record"),
        ]
    };
    let disk = of(["m1", "c1"], Some("p1"));
    let (acp, http) = (of(["acp-2", "item_3"], None), of(["m1", "c1"], None));
    let mut live = LiveScreen::new(&[("disk", disk), ("acp", acp), ("http", http)]);
    for (channel, more) in [(2, 5), (1, 3), (2, 2), (0, 9), (1, 9)] {
        live.grow(channel, more);
    }
    assert_eq!(live.lines.iter().filter(|line| line.contains("I do.")).count(), 1, "{:#?}", live.lines);
}

#[test]
fn change_that_only_the_result_has_is_drawn_with_the_result() {
    let input = json!({"file_path": "a.py", "content": "new"});
    let payload = json!({"name": "Write", "call_id": "c1", "input": input, "output": null,
        "fidelity": "agent_emitted", "class": "file_change"});
    let mut answer = result("turn-0001", "c1", "ok", "written");
    answer[2]["patch"] = "@@ -1,1 +1,1 @@\n-old\n+new\n".into();
    let lines = vec![turn("turn-0001", None), json!(["tool.call", "turn-0001", payload]), answer];
    let mut live = LiveScreen::new(&[("disk", lines)]);
    let running = live.grow(0, 3).join("\n");
    assert!(running.contains("Write a.py") && running.contains("running"), "{running}");
    let ended = live.grow(0, 1).join("\n");
    let both = format!("{running}\n{ended}");
    assert_eq!(both.matches("+ new").count(), 1, "{both}");
    assert!(ended.contains("▸ Write a.py"), "{both}");
}

#[test]
fn interruption_is_drawn_when_it_comes() {
    let failed =
        json!(["step.completed", "turn-0001", {"name": "turn-0001", "kind": "turn", "error": "overloaded"}]);
    let lines = vec![turn("turn-0001", None), words("turn-0001", "m1", "One."), failed];
    let mut live = LiveScreen::new(&[("disk", lines)]);
    live.grow(0, 3);
    check(&live.grow(0, 1), &["     · failed: overloaded"]);
}

#[test]
fn text_in_chunks_is_drawn_when_it_is_complete() {
    let chunk = |text: &str| {
        json!(["message.assistant", "turn-0001", {"role": "assistant", "response": "r1",
        "blocks": [{"type": "stream", "chunk": text}]}])
    };
    let lines = vec![turn("turn-0001", None), chunk("Hel"), chunk("lo."), turn_end("turn-0001", "record")];
    let mut live = LiveScreen::new(&[("acp", lines)]);
    live.grow(0, 2);
    check(&live.grow(0, 1), &[]);
    check(&live.grow(0, 1), &[]);
    check(&live.grow(0, 1), &["  ai │ Hello."]);
}

/// A turn of a session: its words, and for each call whether it is asked for, and how it ends.
type PlannedTurn = (u8, Vec<(u8, bool, Option<bool>)>);

/// Makes the runs of a session: the agent's file, a connection with approvals and other ids, and a stream that began
/// later.
fn channels(turns: &[PlannedTurn], first: usize) -> Vec<Channel> {
    let (mut disk, mut client, mut stream) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (say, calls)) in turns.iter().enumerate() {
        let path = format!("turn-{number:04}");
        let id = format!("t{number}");
        let streamed = format!("turn-{:04}", number.saturating_sub(first));
        let mut add = |line: &dyn Fn(&str) -> Value| {
            disk.push(line(&path));
            if number >= first {
                stream.push(line(&streamed));
            }
        };
        add(&|path| turn(path, Some(&id)));
        add(&|path| prompt(path, Some(&format!("p{number}")), &format!("prompt {say}")));
        add(&|path| words(path, &format!("m{number}"), &format!("word {say}")));
        client.push(turn(&path, Some(&id)));
        client.push(prompt(&path, None, &format!("prompt {say}")));
        client.push(words(&path, &format!("i{number}"), &format!("word {say}")));
        for (place, (what, is_asked, end)) in calls.iter().enumerate() {
            let id = format!("c{number}-{place}");
            let command = format!("run {what}");
            add(&|path| call(path, &id, &command));
            client.push(call(&path, &id, &command));
            if *is_asked {
                client.extend(approval(&path, &id, &format!("scope {id}")));
            }
            if let Some(is_ok) = end {
                let outcome = if *is_ok { "ok" } else { "failed" };
                add(&|path| result(path, &id, outcome, &format!("output {what}")));
                client.push(result(&path, &id, outcome, &format!("output {what}")));
            }
        }
        add(&|path| turn_end(path, "record"));
        client.push(turn_end(&path, "record"));
    }
    vec![("disk", disk), ("app-server", client), ("stream", stream)]
}

/// Counts the lines that have one of these words.
fn counts(lines: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let is_fact =
        |line: &&String| ["prompt ", "word ", "output ", "scope "].iter().any(|word| line.contains(word));
    for line in lines.iter().filter(is_fact) {
        *counts.entry(line.trim().replace("you │ ", "").replace("│ ", "")).or_default() += 1;
    }
    counts
}

/// Counts the calls: those that have ended, and those that are running. The last line about a call counts.
fn calls(lines: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines.iter().filter(|line| line.contains("$ run ") && !line.ends_with("running")) {
        let words: Vec<&str> = line.split_whitespace().skip(1).take(3).collect();
        *counts.entry(words.join(" ")).or_default() += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_fact_is_drawn_once_however_channels_grow(
        turns in prop::collection::vec((0..2_u8, prop::collection::vec((0..2_u8, any::<bool>(), prop::option::weighted(0.8, any::<bool>())), 0..3)), 1..4),
        first in 0..3_usize,
        steps in prop::collection::vec((0..3_usize, 1..6_usize), 0..40),
    ) {
        let channels = channels(&turns, first.min(turns.len() - 1));
        let mut live = LiveScreen::new(&channels);
        for (channel, more) in steps {
            live.grow(channel, more);
        }
        for channel in 0..channels.len() {
            live.grow(channel, usize::MAX / 2);
        }
        let shown = live.shown();
        prop_assert_eq!(counts(&live.lines), counts(&shown), "{}\n\n{}", live.lines.join("\n"), shown.join("\n"));
        for (call, count) in calls(&shown) {
            let drawn = calls(&live.lines).get(&call).copied().unwrap_or_default();
            prop_assert!(drawn >= count, "{call}: {drawn} of {count}\n{}", live.lines.join("\n"));
        }
        // Nothing new is drawn if nothing has grown.
        prop_assert_eq!(live.grow(0, 1), Vec::<String>::new());
    }
}
