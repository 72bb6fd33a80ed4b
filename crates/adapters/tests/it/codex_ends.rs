//! How turns and runs of Codex end, on every surface.

use steno_adapters::{Adapter, Source, codex};

use crate::made::made_of_lines;

const META: &str = r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001","cli_version":"0.130.0"}}"#;
const STARTED: &str = r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#;

fn event(kind: &str, rest: &str) -> String {
    format!(r#"{{"type":"event_msg","payload":{{"type":"{kind}"{rest}}}}}"#)
}

/// Compares what ended the turns of a source: what it says, and the error.
#[track_caller]
fn check_turns(adapter: Adapter, lines: &[&str], want: &[&str]) {
    let made = made_of_lines(adapter, lines);
    let shown = |end: &&serde_json::Value| {
        format!("{} {}", end["ended_by"].as_str().unwrap_or("-"), end["error"].as_str().unwrap_or("-"))
    };
    let ends: Vec<String> = made.steps("step.completed", "turn").iter().map(shown).collect();
    assert_eq!(ends, want);
}

#[test]
fn a_turn_of_a_rollout_says_what_ended_it() {
    let rollout = || codex::rollout(Source::named("s1"));
    let begins = |id: &str| event("task_started", &format!(r#","turn_id":"{id}""#));
    let (first, second) = (begins("u1"), begins("u2"));
    let done = event("task_complete", r#","turn_id":"u1""#);
    let aborted = event("turn_aborted", r#","reason":"interrupted""#);
    check_turns(rollout(), &[META, &first], &[]);
    check_turns(rollout(), &[META, &first, &done, &second], &["record -"]);
    check_turns(rollout(), &[META, &first, &aborted], &["record interrupted"]);
    check_turns(rollout(), &[META, &first, &second, &aborted], &["prompt -", "record interrupted"]);
    // Before turns had records, the next prompt ends one.
    let (one, two) =
        (event("user_message", r#","message":"One""#), event("user_message", r#","message":"Two""#));
    let says = event("agent_message", r#","message":"Yes""#);
    check_turns(rollout(), &[META, &one, &says, &two], &["prompt -"]);
}

#[test]
fn a_turn_of_exec_and_of_a_connection_says_what_ended_it() {
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
