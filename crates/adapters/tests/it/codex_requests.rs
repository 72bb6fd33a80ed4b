//! Mismatched requests and answers on a connection: each is recorded or counted; `>` marks those of the client.

use serde_json::Value;
use steno_adapters::{Source, codex};

use crate::adapter_output::{Made, made_of_lines, outline};
use crate::reading::{output, read};

const STARTED: &str = r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#;
const TURN: &str = r#"{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}"#;

fn app_server(lines: &[&str]) -> Made {
    let all: Vec<&str> = [STARTED, TURN].iter().chain(lines).copied().collect();
    made_of_lines(codex::app_server(Source::named("s1")), &all)
}

/// Reads messages inside a turn; compares the events, the unknown types, and the number of skipped messages.
#[track_caller]
fn check(lines: &[&str], want: &[&str], unknown: &[&str], bookkeeping: u64) {
    let made = app_server(lines);
    assert_eq!(outline(&made)[2..], *want);
    let names: Vec<&str> = made.completeness.unknown.keys().map(String::as_str).collect();
    assert_eq!((names.as_slice(), made.completeness.bookkeeping), (unknown, bookkeeping));
}

#[test]
fn unreadable_prompt_is_unknown() {
    for params in [
        "7",
        "[]",
        r#"{"threadId":"t1"}"#,
        r#"{"threadId":"t1","input":7}"#,
        r#"{"threadId":"t1","input":[]}"#,
        r#"{"input":[{"type":"text","text":"Go"}]}"#,
    ] {
        for method in ["turn/start", "turn/steer"] {
            let line = format!(r#">{{"id":1,"method":"{method}","params":{params}}}"#);
            let name = format!("request.{method}");
            check(&[&line], &[&format!("turn-0001: unknown {name} null")], &[&name], 0);
        }
    }
}

#[test]
fn prompt_for_an_unannounced_thread_begins_its_run() {
    let made = app_server(&[
        r#">{"id":1,"method":"turn/start","params":{"threadId":"t7","input":[{"type":"text","text":"Go"}]}}"#,
    ]);
    assert_eq!(outline(&made)[2..], [": run", "turn-0001: turn turn-0001 begins", "turn-0001: user text Go"]);
}

#[test]
fn answer_without_a_request_is_unknown() {
    check(
        &[
            r#">{"id":1,"method":"account/read","params":{}}"#,
            r#"{"id":9,"result":{"x":1}}"#,
            r#">{"id":9,"result":{"x":1}}"#,
        ],
        &["turn-0001: unknown response null", "turn-0001: unknown response null"],
        &["response"],
        1,
    );
    // A recording of only the server's side has no requests.
    check(&[r#"{"id":9,"result":{"x":1}}"#], &[], &[], 1);
    check(&[r#"{"id":9,"error":{"message":"no"}}"#], &["turn-0001: error response no"], &[], 0);
    check(
        &[r#">{"id":1,"method":"thread/start","params":{}}"#, r#"{"id":1,"result":{"thread":7}}"#],
        &["turn-0001: unknown response.thread/start null"],
        &["response.thread/start"],
        1,
    );
}

#[test]
fn answer_to_an_unknown_request_is_unknown() {
    check(
        &[
            r#"{"id":3,"method":"item/teleport","params":{"threadId":"t1"}}"#,
            r#">{"id":3,"result":{"where":"here"}}"#,
        ],
        &["turn-0001: unknown request.item/teleport null", "turn-0001: unknown response.item/teleport null"],
        &["request.item/teleport", "response.item/teleport"],
        0,
    );
}

#[test]
fn later_answers_to_a_request_are_skipped() {
    check(
        &[
            r#"{"id":0,"method":"item/tool/requestUserInput","params":{"threadId":"t1","questions":[]}}"#,
            r#">{"id":0,"result":{"answers":{}}}"#,
            r#">{"id":0,"result":{"answers":{"q":1}}}"#,
            r#"{"method":"serverRequest/resolved","params":{"threadId":"t1","requestId":0}}"#,
            r#"{"method":"serverRequest/resolved","params":{"threadId":"t1","requestId":"never"}}"#,
        ],
        &[
            "turn-0001.user_input: user_input 0 begins",
            r#"turn-0001.user_input: user_input 0 {"answers":{}}"#,
        ],
        &[],
        3,
    );
}

#[test]
fn requests_with_the_same_id_are_answered_in_order() {
    let ask = |call: &str| {
        format!(
            r#"{{"id":0,"method":"item/tool/call","params":{{"threadId":"t1","callId":"{call}","tool":"f","arguments":{{}}}}}}"#
        )
    };
    let answer = |text: &str| format!(r#">{{"id":0,"result":{{"contentItems":["{text}"],"success":true}}}}"#);
    check(
        &[&ask("a"), &ask("b"), &answer("A"), &answer("B")],
        &[
            "turn-0001: assistant tool_use f",
            "turn-0001: call a f {}",
            "turn-0001: assistant tool_use f",
            "turn-0001: call b f {}",
            r#"turn-0001: result a ok ["A"]"#,
            r#"turn-0001: result b ok ["B"]"#,
        ],
        &[],
        0,
    );
    let review = r#">{"id":5,"method":"review/start","params":{"threadId":"t1","target":{"type":"custom","instructions":"Look."}}}"#;
    let list = r#">{"id":5,"method":"model/list","params":{}}"#;
    check(
        &[review, list, r#"{"id":5,"error":{"message":"no"}}"#, r#"{"id":5,"error":{"message":"nor"}}"#],
        &[
            r#"turn-0001: system review/start {"target":{"instructions":"Look.","type":"custom"},"threadId":"t1"}"#,
            "turn-0001: error review/start no",
            "turn-0001: error model/list nor",
        ],
        &[],
        1,
    );
}

#[test]
fn tool_call_without_an_id_gets_the_request_id() {
    check(
        &[
            r#"{"id":"r4","method":"item/tool/call","params":{"threadId":"t1","tool":"f","arguments":{"k":1}}}"#,
            r#">{"id":"r4","result":{"other":"shape"}}"#,
        ],
        &[
            "turn-0001: assistant tool_use f",
            r#"turn-0001: call r4 f {"k":1}"#,
            r#"turn-0001: result r4 ok {"other":"shape"}"#,
        ],
        &[],
        0,
    );
}

#[test]
fn items_injected_by_the_client_are_a_fact() {
    check(
        &[r#">{"id":5,"method":"thread/inject_items","params":{"threadId":"t1","items":[{"x":1}]}}"#],
        &[r#"turn-0001: system thread/inject_items {"items":[{"x":1}],"threadId":"t1"}"#],
        &[],
        0,
    );
}

#[test]
fn prompt_refused_during_a_turn_does_not_begin_the_next() {
    let prompt = |id: u32, text: &str| {
        format!(
            r#">{{"id":{id},"method":"turn/start","params":{{"threadId":"t1","input":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let made = app_server(&[
        &prompt(1, "A"),
        r#"{"id":1,"error":{"message":"busy"}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}"#,
        &prompt(2, "B"),
        r#"{"id":2,"result":{"turn":{"id":"u2"}}}"#,
    ]);
    assert_eq!(
        outline(&made)[2..],
        [
            "turn-0001: error turn/start busy",
            "turn-0001: user text A",
            "turn-0001: turn turn-0001 null",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text B",
        ]
    );
    assert_eq!(made.payloads("message.user")[0]["refused"], Value::from("busy"));
}

#[test]
fn prompt_echo_is_skipped_only_in_its_own_turn() {
    let prompt = r#">{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Go on"}]}}"#;
    let turn = |id: &str| {
        format!(r#"{{"method":"turn/started","params":{{"threadId":"t1","turn":{{"id":"{id}"}}}}}}"#)
    };
    let item = r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"userMessage","id":"i1","content":[{"type":"text","text":"Go on"}]}}}"#;
    // Another client started the second turn.
    check(
        &[prompt, &turn("u2"), &turn("u3"), item],
        &[
            "turn-0001: turn turn-0001 null",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text Go on",
            "turn-0002: turn turn-0002 null",
            "turn-0003: turn turn-0003 begins",
            "turn-0003: user text Go on",
        ],
        &[],
        0,
    );
    // An echo may come before the turn has an id.
    check(&[prompt, item], &["turn-0001: user text Go on"], &[], 0);
}

#[test]
fn end_of_another_turn_is_a_fact() {
    check(
        &[
            r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u0","status":"failed","error":{"message":"late"}}}}"#,
        ],
        &[
            r#"turn-0001: system turn/completed {"threadId":"t1","turn":{"error":{"message":"late"},"id":"u0","status":"failed"}}"#,
        ],
        &[],
        0,
    );
}

#[test]
fn exact_usage_is_counted_once_per_response() {
    let usage = |id: &str, usage: &str| {
        format!(
            r#"{{"method":"rawResponse/completed","params":{{"threadId":"t1","responseId":"{id}","usage":{usage}}}}}"#
        )
    };
    let used = r#"{"inputTokens":3}"#;
    check(
        &[&usage("r1", used), &usage("r1", used), &usage("r2", "null")],
        &[r#"turn-0001: assistant used {"inputTokens":3} response"#],
        &[],
        1,
    );
}

#[test]
fn total_adds_only_growth_beyond_exact_usage() {
    let exact = r#"{"method":"rawResponse/completed","params":{"threadId":"t1","responseId":"r1","usage":{"inputTokens":110,"totalTokens":110}}}"#;
    let total = |total: u32| {
        format!(
            r#"{{"method":"thread/tokenUsage/updated","params":{{"threadId":"t1","tokenUsage":{{"total":{{"inputTokens":{total},"totalTokens":{total}}},"last":{{"inputTokens":220,"totalTokens":220}}}}}}}}"#
        )
    };
    check(
        &[exact, &total(110), &total(330), &total(330)],
        &[
            r#"turn-0001: assistant used {"inputTokens":110,"totalTokens":110} response"#,
            r#"turn-0001: assistant used {"inputTokens":220,"totalTokens":220} response"#,
        ],
        &[],
        0,
    );
}

/// The number of prompts at once; comparing all pairs would take long.
const MANY: u32 = 15_000;

#[test]
fn many_prompts_are_matched_in_any_order() {
    let asked = |method: &str, id: u32| {
        format!(
            r#">{{"id":{id},"method":"{method}","params":{{"threadId":"t1","input":[{{"type":"text","text":"{id}"}}]}}}}"#
        )
    };
    let refused = |id: u32| format!(r#"{{"id":{id},"error":{{"message":"busy"}}}}"#);
    let shown = |id: u32| {
        format!(
            r#"{{"method":"item/completed","params":{{"threadId":"t1","item":{{"type":"userMessage","content":[{{"type":"text","text":"{id}"}}]}}}}}}"#
        )
    };
    let count = |method: &str, answer: &dyn Fn(u32) -> String| {
        let lines: Vec<String> =
            (0..MANY).map(|id| asked(method, id)).chain((0..MANY).rev().map(answer)).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        app_server(&lines).payloads("message.user").len()
    };
    assert_eq!(count("turn/start", &refused), MANY as usize);
    assert_eq!(count("turn/start", &shown), MANY as usize);
    assert_eq!(count("turn/steer", &shown), MANY as usize);
}

#[test]
fn prompt_has_its_own_offset_if_no_event_followed_it() {
    let lines = [
        r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t1"}}}}"#,
        r#"{"dir":"c2s","msg":{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"One"}]}}}"#,
        r#"{"dir":"s2c","msg":{"method":"thread/status/changed","params":{"threadId":"t1"}}}"#,
        r#"{"dir":"s2c","msg":{"id":1,"result":{"turn":{"id":"u1"}}}}"#,
        r#"{"dir":"s2c","msg":{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}}"#,
        r#"{"dir":"c2s","msg":{"id":2,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Two"}]}}}"#,
        r#"{"dir":"s2c","msg":{"method":"warning","params":{"threadId":"t1","message":"x"}}}"#,
        r#"{"dir":"s2c","msg":{"id":2,"result":{"turn":{"id":"u2"}}}}"#,
        r#"{"dir":"c2s","msg":{"id":3,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Three"}]}}}"#,
        "",
    ];
    let adapter = codex::app_server(Source::named("s1")).of_conversation();
    let reading = read(adapter, &[output(lines.join("\n").as_bytes())]);
    let offset = |line: usize| lines[..line].iter().map(|line| line.len() as u64 + 1).sum::<u64>();
    let places = |event_type: &str| -> Vec<u64> {
        let events = reading.of_type(event_type);
        events.map(|event| event["evidence"]["offset"].as_u64().unwrap()).collect()
    };
    // A warning followed the second prompt, and the third had no answer.
    assert_eq!(places("message.user"), [offset(1), offset(7), offset(8)]);
    assert_eq!(places("step.started"), [offset(1), offset(7), offset(8)]);
}
