//! Prompts that Claude Code records or prints more than once: each is recorded once, equal ones in two turns twice.

use steno_adapters::{Source, claude};

use crate::adapter_output::{Made, made_of_lines, outline};

const SESSION: &str = r#"{"type":"mode","mode":"normal","sessionId":"0f000000-0000-4000-8000-000000000001"}"#;

fn prompt(text: &str, more: &str) -> String {
    format!(r#"{{"type":"user"{more},"message":{{"content":"{text}"}}}}"#)
}

fn queue(operation: &str, text: Option<&str>) -> String {
    let content = text.map(|text| format!(r#","content":"{text}""#)).unwrap_or_default();
    format!(r#"{{"type":"queue-operation","operation":"{operation}"{content}}}"#)
}

fn handed(text: &str, more: &str) -> String {
    format!(r#"{{"type":"attachment","attachment":{{"type":"queued_command","prompt":"{text}"{more}}}}}"#)
}

fn words(made: &Made) -> Vec<String> {
    let is_told =
        |line: &String| line.contains(": user ") || line.contains("begins") || line.contains("queue");
    outline(made).into_iter().filter(is_told).collect()
}

/// Reads records of a session file; compares turns, prompts and queue operations.
#[track_caller]
fn check_file(records: &[&str], want: &[&str]) {
    let all: Vec<&str> = [SESSION].iter().chain(records).copied().collect();
    let made = made_of_lines(claude::disk(Source::named("s1")), &all);
    assert_eq!(words(&made), want);
    assert!(made.completeness.unknown.is_empty());
}

const FROM_QUEUE: &str = r#","promptSource":"queued""#;
const GO: [&str; 2] = ["turn-0001: turn turn-0001 begins", "turn-0001: user text Go"];
const AGAIN: [&str; 2] = ["turn-0002: turn turn-0002 begins", "turn-0002: user text Go"];

#[test]
fn equal_prompts_in_two_turns_are_two_messages() {
    check_file(&[&prompt("Go", ""), &prompt("Go", "")], &[GO[0], GO[1], AGAIN[0], AGAIN[1]]);
}

#[test]
fn queued_prompt_is_recorded_once() {
    let (enqueue, dequeue) = (queue("enqueue", Some("Go")), queue("dequeue", None));
    check_file(&[&enqueue, &dequeue, &prompt("Go", FROM_QUEUE)], &GO);
    // It is recorded twice if it was queued twice.
    let twice = [&enqueue, &enqueue, &dequeue, &prompt("Go", ""), &dequeue, &prompt("Go", FROM_QUEUE)];
    check_file(&twice.map(String::as_str), &[GO[0], GO[1], AGAIN[0], AGAIN[1]]);
}

#[test]
fn queued_prompt_that_begins_a_later_turn_is_recorded_once() {
    let (enqueue, dequeue) = (queue("enqueue", Some("Go")), queue("dequeue", None));
    let told =
        ["turn-0001: turn turn-0001 begins", "turn-0001: user text One", "turn-0001: user text Go", AGAIN[0]];
    let one = prompt("One", "");
    check_file(&[&one, &enqueue, &handed("Go", ""), &prompt("Go", FROM_QUEUE)], &told);
    check_file(&[&one, &enqueue, &handed("Go", ""), &dequeue, &prompt("Go", FROM_QUEUE)], &told);
    check_file(&[&one, &handed("Go", r#","source_uuid":"q1""#), &prompt("Go", r#","uuid":"q1""#)], &told);
    // The user types it once more, or has queued it twice.
    let both = [told[0], told[1], told[2], AGAIN[0], AGAIN[1]];
    check_file(&[&one, &enqueue, &handed("Go", ""), &prompt("Go", "")], &both);
    check_file(&[&one, &enqueue, &enqueue, &handed("Go", ""), &dequeue, &prompt("Go", FROM_QUEUE)], &both);
}

#[test]
fn prompt_removed_from_the_queue_is_recorded_with_its_text() {
    let made = made_of_lines(
        claude::disk(Source::named("s1")),
        &[
            SESSION,
            &queue("enqueue", Some("One")),
            &queue("enqueue", Some("Two")),
            &queue("enqueue", Some("Three")),
            &queue("remove", None),
            &queue("popAll", None),
            &queue("remove", None),
        ],
    );
    let taken: Vec<String> =
        made.steps("step.completed", "system")[1..].iter().map(|step| step["taken"].to_string()).collect();
    assert_eq!(taken, [r#"["One"]"#, r#"["Two","Three"]"#, "null"]);
    assert_eq!(made.completeness.bookkeeping, 3);
}

/// The maximum number of prompts in a queue.
const QUEUED_LEN_MAX: usize = 256;

#[test]
fn long_queue_loses_no_prompt() {
    for count in [70, QUEUED_LEN_MAX, QUEUED_LEN_MAX + 6] {
        let queued: Vec<String> =
            (0..count).map(|number| queue("enqueue", Some(&number.to_string()))).collect();
        let all = queue("popAll", None);
        let lines: Vec<&str> =
            [SESSION].into_iter().chain(queued.iter().map(String::as_str)).chain([all.as_str()]).collect();
        let made = made_of_lines(claude::disk(Source::named("s1")), &lines);
        let steps = made.steps("step.completed", "system");
        let told = |name: &str| -> Vec<String> {
            let lists = steps.iter().filter_map(|step| step[name].as_array()).flatten();
            lists.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let let_go = count.saturating_sub(QUEUED_LEN_MAX);
        assert_eq!((told("let_go").len(), told("taken").len()), (let_go, count - let_go));
        let want: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        assert_eq!([told("let_go"), told("taken")].concat(), want);
    }
}

const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","model":"m"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success"}"#;

fn sent(text: &str) -> String {
    format!(">{}", prompt(text, ""))
}

fn printed(text: &str) -> String {
    prompt(text, r#","isReplay":true"#)
}

/// Reads frames of a stream; compares turns, prompts, and the number of skipped frames.
#[track_caller]
fn check_stream(frames: &[&str], want: &[&str], bookkeeping: u64) {
    let made = made_of_lines(claude::stream(Source::named("s1")), frames);
    assert_eq!(words(&made), want);
    assert!(made.completeness.unknown.is_empty());
    assert_eq!(made.completeness.bookkeeping, bookkeeping);
}

#[test]
fn sent_prompt_and_its_replay_are_one_message() {
    let (sent, printed) = (sent("Go"), printed("Go"));
    check_stream(&[&sent, INIT, &printed, RESULT], &GO, 1);
    let both = [GO[0], GO[1], AGAIN[0], AGAIN[1]];
    check_stream(&[&sent, INIT, &printed, RESULT, &sent, INIT, &printed, RESULT], &both, 3);
    // Not every host asks for replays, and another host may have sent the second prompt.
    check_stream(&[&sent, INIT, RESULT, &sent, INIT, &printed, RESULT], &both, 2);
    check_stream(&[&sent, INIT, RESULT, INIT, &printed, RESULT], &both, 1);
}

#[test]
fn prompts_with_the_same_id_are_one_message() {
    let named = |id: &str| prompt("Go", &format!(r#","isReplay":true,"uuid":"{id}""#));
    let sent = format!(">{}", prompt("Go", r#","uuid":"a""#));
    check_stream(&[&sent, INIT, &named("a"), &named("a"), RESULT], &GO, 2);
    check_stream(&[&sent, INIT, &named("b"), RESULT], &[GO[0], GO[1], GO[1]], 0);
    // A host may send a prompt again.
    check_stream(&[&sent, INIT, &sent, RESULT], &GO, 1);
    let changed = sent.replace("Go", "Stop");
    check_stream(&[&sent, INIT, &changed, RESULT], &[GO[0], GO[1], "turn-0001: user text Stop"], 0);
}

#[test]
fn prompt_sent_during_a_turn_is_recorded_once() {
    let said = r#"{"type":"assistant","message":{"id":"m","content":"Hm."}}"#;
    let want = [
        GO[0],
        GO[1],
        "turn-0001: user text Two",
        "turn-0001: user text Three",
        AGAIN[0],
        "turn-0003: turn turn-0003 begins",
    ];
    check_stream(
        &[
            &sent("Go"),
            INIT,
            &printed("Go"),
            &sent("Two"),
            &sent("Three"),
            RESULT,
            INIT,
            &printed("Two"),
            said,
            RESULT,
            INIT,
            &printed("Three"),
            said,
            RESULT,
        ],
        &want,
        5,
    );
}

#[test]
fn replayed_command_is_not_a_prompt() {
    let commands = |frames: &[&str]| {
        let made = made_of_lines(claude::stream(Source::named("s1")), frames);
        assert!(made.payloads("message.user").is_empty());
        made.steps("step.completed", "system").iter().filter(|step| step["name"] == "local_command").count()
    };
    assert_eq!(commands(&[&sent("/compact"), INIT, &printed("/compact")]), 1);
    assert_eq!(commands(&[INIT, &printed("/compact")]), 1);
}

#[test]
fn result_sent_by_the_host_belongs_to_its_call() {
    let call = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}}"#;
    let result =
        r#">{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#;
    let made = made_of_lines(claude::stream(Source::named("s1")), &[INIT, call, result]);
    assert_eq!(outline(&made).last().unwrap(), r#"turn-0001: result t1 ok "x""#);
    assert!(made.payloads("message.user").is_empty());
}
