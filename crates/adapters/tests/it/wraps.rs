//! The output of commands that `steno run` started: agents are recognised, other output is one step.

use serde_json::{Value, json};
use steno_adapters::{RecordAt, RecordFraming, Source, SourceLines, open, sniff};
use steno_model::wrap::{LostBytes, ProcessEnd, WrapControl, WrapHeader, WrapLane};
use steno_model::{Lane, RunId, Timestamp};

use crate::reading::{Piece, Reading, read, read_unfinished};

const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";
const SESSION: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","uuid":"u1","cwd":"/w","model":"m"}"#;
const SAID: &str = r#"{"type":"assistant","session_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","uuid":"u2","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"Hello."}]}}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","session_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","uuid":"u3","is_error":false,"result":"Hello."}"#;

fn time(seconds: u32) -> Timestamp {
    Timestamp::from_unix_seconds(1_794_727_400.0 + f64::from(seconds)).unwrap()
}

/// A wrap that grows.
struct Wrap {
    bytes: Vec<u8>,
    seconds: u32,
}

impl Wrap {
    fn new() -> Self {
        let header = WrapHeader {
            run: RunId::parse(RUN).unwrap(),
            name: None,
            command: vec!["/usr/bin/agent".into(), "-p".into()],
            cwd: Some("/w".into()),
            terminals: Vec::new(),
            started: time(0),
        };
        Self { bytes: header.to_bytes(), seconds: 0 }
    }

    fn note(mut self, control: &WrapControl) -> Self {
        self.seconds += 1;
        self.bytes.extend(control.to_bytes(&time(self.seconds)));
        self
    }

    fn frame(self, lane: WrapLane, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut wrap = self.note(&WrapControl::Frame { lane, len: bytes.len() as u64 });
        wrap.bytes.extend_from_slice(bytes);
        wrap.bytes.push(b'\n');
        wrap
    }

    fn out(self, bytes: impl AsRef<[u8]>) -> Self {
        self.frame(WrapLane::Out, bytes)
    }

    fn ended(self, code: i32) -> Vec<u8> {
        self.note(&WrapControl::Ended(ProcessEnd::Code(code))).bytes
    }
}

fn pieces(bytes: &[u8], len: usize) -> Vec<Piece> {
    let piece = |bytes: &[u8]| Piece { lane: Lane::FromAgent, captured: None, bytes: bytes.to_vec() };
    bytes.chunks(len).map(piece).collect()
}

fn adapter() -> steno_adapters::Adapter {
    let sniffed = sniff(&Wrap::new().bytes).unwrap();
    open(&sniffed, Source::named("s1")).unwrap()
}

/// Reads a wrap, and checks that its positions increase and lead to records.
#[track_caller]
fn events(bytes: &[u8]) -> Reading {
    events_framed(bytes, RecordFraming::Lines)
}

/// Does the same with output whose records may be documents.
#[track_caller]
fn events_framed(bytes: &[u8], framing: RecordFraming) -> Reading {
    let whole = read(adapter(), &pieces(bytes, bytes.len()));
    for len in [1, 7, 64] {
        assert_eq!(read(adapter(), &pieces(bytes, len)).lines, whole.lines, "in pieces of {len}");
    }
    let place = |event: &Value, name: &str| event["evidence"][name].as_u64().unwrap();
    let places: Vec<(u64, u64, u64)> = whole
        .events
        .iter()
        .map(|event| (place(event, "offset"), place(event, "part"), place(event, "length")))
        .collect();
    assert!(places.is_sorted_by(|one, other| (one.0, one.1) < (other.0, other.1)), "{places:?}");
    let mut found = vec![false; places.len()];
    let (mut lines, mut starts) = (SourceLines::framed(framing), Vec::new());
    let mut look = |line: steno_adapters::SourceLine<'_>| {
        starts.push(line.offset);
        for (found, (offset, _, length)) in found.iter_mut().zip(&places) {
            *found |= line.record(*offset, *length) != RecordAt::Nothing && line.covers(*offset);
        }
    };
    for (number, byte) in bytes.iter().enumerate() {
        lines.feed(number as u64, &[*byte], &mut look);
    }
    lines.finish(&mut look);
    for (found, (offset, _, length)) in found.iter().zip(&places) {
        assert!(*found || *length == 0, "no record at {offset} with {length} bytes");
    }
    assert!(starts.is_sorted(), "lines come as they begin");
    whole
}

fn types(reading: &Reading) -> Vec<&str> {
    reading.events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// Removes what depends on where bytes are in the file, and when they came.
fn without_places(reading: &Reading) -> Vec<Value> {
    let mut events = reading.events.clone();
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        event.remove("evidence");
        event.remove("timestamp");
    }
    events
}

#[test]
fn output_over_many_lines_is_one_record_of_its_session() {
    let document = json!({"session_id": SESSION, "response": "Hello.", "stats": {"models": {"m": {"tokens":
        {"prompt": 5, "candidates": 2, "total": 7, "cached": 0, "thoughts": 0, "tool": 0}}}}});
    let document = format!("{document:#}\n");
    let (begin, end) = document.split_at(document.len() / 2);
    let bytes = Wrap::new().out("Loaded.\n").out(begin).frame(WrapLane::Err, "Warning\n").out(end).ended(0);
    let reading = events_framed(&bytes, RecordFraming::Documents);
    let session = json!(RunId::parse(SESSION).unwrap().to_string());
    let said: Vec<&Value> =
        reading.events.iter().filter(|event| event["type"] == "message.assistant").collect();
    assert_eq!(said.len(), 2);
    assert_eq!(said[0]["payload"]["blocks"][0]["text"], "Hello.");
    assert_eq!(reading.events[0]["session_run_id"], session);
    assert_eq!(said[1]["payload"]["usage"]["prompt"], 5);
    let unknown = reading.events.iter().filter(|event| event["payload"]["kind"] == "unknown").count();
    assert_eq!(unknown, 1, "only the text before the document");
    assert_eq!(types(&reading).last(), Some(&"run.completed"));
}

#[test]
fn plain_command_is_one_step_with_its_output() {
    let bytes = Wrap::new().out("one\ntwo").frame(WrapLane::Err, b"bad\xff\n").ended(3);
    let read = events(&bytes);
    assert_eq!(types(&read), ["run.started", "step.started", "step.completed", "run.completed"]);
    assert!(read.events.iter().all(|event| event["run_id"] == RUN));
    let started = &read.events[0]["payload"];
    assert_eq!(
        (&started["name"], &started["kind"], &started["cwd"]),
        (&json!("agent"), &json!("command"), &json!("/w"))
    );
    assert_eq!(started["wrap"]["command"], json!(["/usr/bin/agent", "-p"]));
    let done = &read.events[2]["payload"];
    let result = json!({"exit_code": 3, "stdout": "one\ntwo", "stdout_bytes": 7, "stderr": "bad\u{fffd}\n", "stderr_bytes": 5});
    assert_eq!(
        (&done["kind"], &done["error"], &done["result"]),
        (&json!("command"), &json!("exit code 3"), &result)
    );
    assert_eq!(read.events[3]["payload"]["exit_code"], 3);
    assert_eq!(read.entries.len(), 2);
}

#[test]
fn agent_is_recognised_and_its_session_is_named() {
    let text = format!("{INIT}\n{SAID}\n{RESULT}\n");
    let bytes = Wrap::new().out("starting…\n").out(&text).frame(WrapLane::Err, "warning\n").ended(0);
    let read = events(&bytes);
    let first = &read.events[0];
    assert_eq!((&first["run_id"], &first["session_run_id"]), (&json!(RUN), &json!(SESSION)));
    assert_eq!(first["payload"]["source"]["channel"], "stream");
    assert_eq!(first["payload"]["wrap"]["command"][0], "/usr/bin/agent");
    assert!(read.events.iter().all(|event| event["run_id"] == RUN));
    let last = read.events.last().unwrap();
    assert_eq!((&last["type"], &last["payload"]["exit_code"]), (&json!("run.completed"), &json!(0)));
    let stderr = &read.events[read.events.len() - 2]["payload"];
    assert_eq!((&stderr["name"], &stderr["result"]["stderr"]), (&json!("stderr"), &json!("warning\n")));
    assert_eq!(read.completeness.unknown.len(), 0);
}

#[test]
fn output_of_copilot_is_recognised_by_records_that_its_file_has_too() {
    let user = r#"{"type":"user.message","data":{"content":"Hi."},"id":"u1","parentId":null,"timestamp":"2026-11-15T07:23:21.000Z"}"#;
    let live = r#"{"type":"assistant.intent","data":{},"id":"e1","parentId":"u1","timestamp":"2026-11-15T07:23:22.000Z","ephemeral":true}"#;
    let result = format!(
        r#"{{"type":"result","timestamp":"2026-11-15T07:23:23.000Z","sessionId":"{SESSION}","exitCode":0}}"#
    );
    let bytes = Wrap::new().out(format!("{user}\n{live}\n{result}\n")).ended(0);
    let reading = events(&bytes);
    let started = &reading.events[0];
    assert_eq!((&started["run_id"], &started["session_run_id"]), (&json!(RUN), &json!(SESSION)));
    assert!(types(&reading).contains(&"message.user"), "{:?}", types(&reading));
    assert!(!types(&reading).contains(&"unknown"), "{:?}", types(&reading));
}

#[test]
fn events_do_not_depend_on_how_output_is_cut() {
    let text = format!("{INIT}\n{SAID}\n{RESULT}\n");
    let whole = without_places(&events(&Wrap::new().out(&text).ended(0)));
    assert!(whole.len() > 4);
    for cut in (0..text.len()).step_by(13) {
        let (one, two) = text.as_bytes().split_at(cut);
        let bytes = Wrap::new().out(one).frame(WrapLane::In, "").out(two).ended(0);
        assert_eq!(without_places(&events(&bytes)), whole, "cut at {cut}");
    }
    let bytes = text.as_bytes().chunks(5).fold(Wrap::new(), Wrap::out).ended(0);
    assert_eq!(without_places(&events(&bytes)), whole);
}

#[test]
fn agent_may_print_some_lines_before_its_records() {
    let of = |lines: usize| {
        let text = format!("{}{INIT}\n{SAID}\n", "noise\n".repeat(lines));
        events(&Wrap::new().out(text).ended(0)).events[0]["payload"]["kind"].clone()
    };
    assert_eq!((of(0), of(31), of(32)), (json!("session"), json!("session"), json!("command")));
    let long = |len: usize| {
        let text = format!("{}\n{INIT}\n{SAID}\n", "x".repeat(len));
        let bytes = Wrap::new().out(text).ended(0);
        read(adapter(), &pieces(&bytes, 4096)).events[0]["payload"]["kind"].clone()
    };
    assert_eq!((long(1024 * 1024 - INIT.len() - 2), long(1024 * 1024)), (json!("session"), json!("command")));
}

#[test]
fn both_directions_come_in_the_order_in_which_they_begin() {
    let prompt = r#"{"type":"user","message":{"role":"user","content":"Hi."}}"#;
    let (one, two) = SAID.split_at(40);
    let bytes = Wrap::new().out(format!("{INIT}\n")).frame(WrapLane::In, &prompt[..9]);
    let bytes =
        bytes.out(one).frame(WrapLane::In, format!("{}\n", &prompt[9..])).out(format!("{two}\n{RESULT}\n"));
    let read = events(&bytes.note(&WrapControl::Closed(WrapLane::In)).ended(0));
    let said = |event: &&Value| event["type"].as_str().unwrap().starts_with("message.");
    let messages: Vec<&Value> = read.events.iter().filter(said).map(|event| &event["type"]).collect();
    assert_eq!(messages, ["message.user", "message.assistant"]);
}

#[test]
fn run_ends_once_also_if_the_agent_reports_its_own_end() {
    let start = r#"{"type":"user.message","data":{"content":"Go.","interactionId":"i1"},"id":"e1","timestamp":"2026-11-18T04:00:00Z"}"#;
    let turn = r#"{"type":"assistant.turn_start","data":{"turnId":"0","interactionId":"i1"},"id":"e2","ephemeral":true,"timestamp":"2026-11-18T04:00:01Z"}"#;
    let result = format!(
        r#"{{"type":"result","sessionId":"{SESSION}","exitCode":0,"timestamp":"2026-11-18T04:00:02Z"}}"#
    );
    let read = events(&Wrap::new().out(format!("{turn}\n{start}\n{result}\n")).ended(7));
    assert_eq!(read.events[0]["session_run_id"], SESSION, "{:?}", read.events);
    let ends: Vec<&Value> = read.events.iter().filter(|event| event["type"] == "run.completed").collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!((&ends[0]["run_id"], &ends[0]["payload"]["exit_code"]), (&json!(RUN), &json!(7)));
}

#[test]
fn lost_bytes_are_counted() {
    let lost = |lane, bytes| {
        WrapControl::Lost(LostBytes { lane, bytes, why: "not_written".into(), error: Some("full".into()) })
    };
    let bytes = Wrap::new().out("abc").note(&lost(WrapLane::Out, 10)).note(&lost(WrapLane::Err, 4)).ended(0);
    let read = events(&bytes);
    let result = &read.events[4]["payload"]["result"];
    assert_eq!((&result["stdout_bytes"], &result["stdout_lost_bytes"]), (&json!(3), &json!(10)));
    assert_eq!((&result["stderr_bytes"], &result["stderr_lost_bytes"]), (&json!(0), &json!(4)));
    let losses = read.events.iter().filter(|event| event["payload"]["name"] == "lost");
    let losses: Vec<&Value> = losses.map(|event| &event["payload"]["result"]["bytes"]).collect();
    assert_eq!(losses, [&json!(10), &json!(4)]);
    assert_eq!(read.events.last().unwrap()["payload"]["lost_bytes"], 14);

    // A record that lost its middle is not joined to another.
    let (one, two) = SAID.split_at(40);
    let bytes =
        Wrap::new().out(format!("{INIT}\n{one}")).note(&lost(WrapLane::Out, 5)).out(format!("{two}\n"));
    let read = events(&bytes.ended(0));
    assert!(read.completeness.unreadable >= 2 && !types(&read).contains(&"message.assistant"));
}

#[test]
fn lanes_that_were_left_open_are_named() {
    let left_open = |wrap: Wrap| {
        let wrap = wrap.note(&WrapControl::LeftOpen(WrapLane::Out)).note(&WrapControl::Closed(WrapLane::Err));
        events(&wrap.ended(0)).events.pop().unwrap()["payload"]["left_open"].clone()
    };
    assert_eq!(left_open(Wrap::new().out("plain")), json!(["out"]));
    assert_eq!(left_open(Wrap::new().out(format!("{INIT}\n{SAID}\n{RESULT}\n"))), json!(["out"]));
}

#[test]
fn wrap_cut_at_any_byte_gives_the_first_of_its_events() {
    let lost = LostBytes { lane: WrapLane::Err, bytes: 1, why: "behind".into(), error: None };
    let agent = Wrap::new().out(format!("{INIT}\n{SAID}")).frame(WrapLane::Err, "x").out("\n");
    let agent = agent.note(&WrapControl::Lost(lost)).out(RESULT).ended(0);
    for bytes in [agent, Wrap::new().out("plain\n").ended(1)] {
        let whole = events(&bytes).lines;
        for len in 0..bytes.len() {
            let part = read_unfinished(adapter(), &pieces(&bytes[..len], len.max(1))).lines;
            assert!(whole.starts_with(&part), "cut at {len}");
        }
    }
}

#[test]
fn output_of_a_killed_recording_is_kept_without_an_end() {
    let read = events(&Wrap::new().out("half").bytes);
    assert_eq!(types(&read), ["run.started", "step.started", "step.completed"]);
    let payload = &read.events[2]["payload"];
    assert_eq!((&payload["kind"], &payload["result"]["stdout"]), (&json!("system"), &json!("half")));
}

#[test]
fn nothing_after_damage_is_read() {
    let mut bytes = Wrap::new().out(format!("{INIT}\n{SAID}\n")).bytes;
    bytes.extend([0; 100]);
    bytes.extend(b"\n{\"lane\":\"out\",\"t\":1,\"len\":1}\nx\n");
    let read = events(&bytes);
    assert_eq!((read.completeness.unreadable, read.completeness.records), (1, 2));
    for text in [r#"{"steno":"wrap","version":9}"#, r#"{"steno":"wrap","#] {
        assert_eq!(read_unfinished(adapter(), &pieces(format!("{text}\n").as_bytes(), 4)).lines.len(), 0);
    }
}
