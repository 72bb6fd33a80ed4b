//! How turns and runs of Codex end, on every surface.

use serde_json::{Value, json};
use steno_adapters::{Adapter, Source, codex};

use crate::adapter_output::{Made, made_of_lines, outline};

const META: &str = r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001","cli_version":"0.130.0"}}"#;
const STARTED: &str = r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#;

fn event(kind: &str, rest: &str) -> String {
    format!(r#"{{"type":"event_msg","payload":{{"type":"{kind}"{rest}}}}}"#)
}

/// Compares the cause and the error of each turn's end.
#[track_caller]
fn check_turns(adapter: Adapter, lines: &[&str], want: &[&str]) {
    let made = made_of_lines(adapter, lines);
    let shown = |end: &&Value| {
        format!("{} {}", end["ended_by"].as_str().unwrap_or("-"), end["error"].as_str().unwrap_or("-"))
    };
    let ends: Vec<String> = made.steps("step.completed", "turn").iter().map(shown).collect();
    assert_eq!(ends, want);
}

#[test]
fn rollout_turn_end_names_its_cause() {
    let rollout = || codex::rollout(Source::named("s1"));
    let begins = |id: &str| event("task_started", &format!(r#","turn_id":"{id}""#));
    let (first, second) = (begins("u1"), begins("u2"));
    let done = event("task_complete", r#","turn_id":"u1""#);
    let aborted = event("turn_aborted", r#","reason":"interrupted""#);
    check_turns(rollout(), &[META, &first], &[]);
    check_turns(rollout(), &[META, &first, &done, &second], &["record -"]);
    check_turns(rollout(), &[META, &first, &aborted], &["record interrupted"]);
    check_turns(rollout(), &[META, &first, &second, &aborted], &["prompt -", "record interrupted"]);
    // In versions without turn records the next prompt ends a turn.
    let (one, two) =
        (event("user_message", r#","message":"One""#), event("user_message", r#","message":"Two""#));
    let says = event("agent_message", r#","message":"Yes""#);
    check_turns(rollout(), &[META, &one, &says, &two], &["prompt -"]);
}

#[test]
fn exec_and_connection_turn_ends_name_their_cause() {
    let exec = || codex::exec(Source::named("s1"));
    let (thread, begins) = (r#"{"type":"thread.started","thread_id":"t1"}"#, r#"{"type":"turn.started"}"#);
    let failed = r#"{"type":"turn.failed","error":{"message":"overloaded"}}"#;
    check_turns(exec(), &[thread, begins, r#"{"type":"turn.completed"}"#], &["record -"]);
    check_turns(exec(), &[thread, begins, failed], &["record overloaded"]);
    check_turns(exec(), &[thread, begins, begins], &["prompt -"]);
    let app_server = || codex::app_server(Source::named("s1"));
    let turn = |moment: &str, id: &str, rest: &str| {
        format!(r#"{{"method":"turn/{moment}","params":{{"threadId":"t1","turn":{{"id":"{id}"{rest}}}}}}}"#)
    };
    let (begins, others) = (turn("started", "u1", ""), turn("started", "u2", ""));
    let interrupted = turn("completed", "u1", r#","status":"interrupted""#);
    check_turns(app_server(), &[STARTED, &begins, &interrupted], &["record interrupted"]);
    check_turns(app_server(), &[STARTED, &begins, &others], &["prompt -"]);
    let asks =
        r#">{"id":2,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Go"}]}}"#;
    let refused = r#"{"error":{"code":-32600,"message":"busy"},"id":2}"#;
    check_turns(app_server(), &[STARTED, asks, refused], &["record busy"]);
}

/// Reads the file of a connection, with messages of both sides and of the recorder.
fn connection(lines: &[(&str, &str)]) -> Made {
    let line = |(ticket, (dir, said)): (u32, &(&str, &str))| {
        format!(r#"{{"dir":"{dir}","t":1794727400.{ticket:03},"ticket":{ticket},"msg":{said}}}"#)
    };
    let lines: Vec<String> = (1..).zip(lines).map(line).collect();
    let adapter = codex::app_server(Source::named("s1")).of_conversation();
    made_of_lines(adapter, &lines.iter().map(String::as_str).collect::<Vec<_>>())
}

const OTHER: &str = r#"{"method":"thread/started","params":{"thread":{"id":"t2"}}}"#;
const BEGINS: &str = r#"{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}"#;
const ENDED: &str = r#"{"method":"steno/ended","params":{"exit_code":7}}"#;

#[test]
fn server_end_completes_runs_but_no_turns() {
    let made = connection(&[("s2c", STARTED), ("s2c", OTHER), ("s2c", BEGINS), ("recorder", ENDED)]);
    let ends: Vec<&Value> = made.events.iter().filter(|event| event["type"] == "run.completed").collect();
    let [one, other] = ends[..] else { panic!("{ends:?}") };
    assert_ne!(one["run_id"], other["run_id"]);
    for end in [one, other] {
        assert_eq!(end["payload"], json!({"name": "codex", "kind": "session", "exit_code": 7}));
        assert_eq!(
            (end["path"].as_str(), end["timestamp"].as_str()),
            (Some(""), Some("2026-11-15T07:23:20.004Z"))
        );
    }
    assert!(made.steps("step.completed", "turn").is_empty());
    let by_signal = ENDED.replace("exit_code", "signal").replace('7', "15");
    let made = connection(&[("s2c", STARTED), ("recorder", &by_signal)]);
    assert_eq!(made.payloads("run.completed")[0]["signal"], 15);
    assert!(connection(&[("recorder", ENDED)]).events.is_empty());
}

#[test]
fn waiting_prompt_is_written_before_the_run_is_completed() {
    let asks =
        r#"{"id":2,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Go"}]}}"#;
    let made = connection(&[("s2c", STARTED), ("c2s", asks), ("recorder", ENDED)]);
    let shown = outline(&made);
    assert_eq!(shown[1..3], ["turn-0001: turn turn-0001 begins", "turn-0001: user text Go"]);
    assert_eq!((made.events.len(), &made.events[3]["type"]), (4, &json!("run.completed")));
}

#[test]
fn server_end_is_accepted_only_from_the_recorder() {
    for dir in ["s2c", "c2s"] {
        let made = connection(&[("s2c", STARTED), (dir, ENDED), ("s2c", BEGINS)]);
        assert!(made.payloads("run.completed").is_empty(), "{dir}");
    }
    let made = connection(&[("s2c", STARTED), ("s2c", ENDED)]);
    assert_eq!(made.completeness.unknown, [("steno/ended".to_owned(), 1)].into());
    for params in ["null", "{}", "7", r#"{"exit_code":"7"}"#] {
        let said = format!(r#"{{"method":"steno/ended","params":{params}}}"#);
        let made = connection(&[("s2c", STARTED), ("recorder", &said)]);
        assert!(made.payloads("run.completed").is_empty(), "{params}");
        assert_eq!(made.completeness.unknown.len(), 1, "{params}");
    }
}
