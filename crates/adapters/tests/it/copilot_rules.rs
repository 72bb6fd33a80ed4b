//! The rules of Copilot's adapter, one by one, on lines written by hand.

use steno_adapters::{Source, copilot};

use crate::adapter_output::{Made, made_of_lines, outline, outline_of_runs};

const SESSION: &str = "3c000000-0000-4000-8000-000000000001";

/// Makes an event; what stands in the data is JSON without its braces.
fn event(kind: &str, data: &str) -> String {
    format!(r#"{{"type":"{kind}","data":{{{data}}}}}"#)
}

fn start() -> String {
    event("session.start", &format!(r#""sessionId":"{SESSION}""#))
}

/// Reads events after the beginning of a session.
fn read(events: &[String]) -> Made {
    let start = start();
    let lines: Vec<&str> = [&start].into_iter().chain(events).map(String::as_str).collect();
    made_of_lines(copilot::events(Source::named("s1")), &lines)
}

/// Compares the outline of a session, without its first line.
#[track_caller]
fn check(events: &[String], want: &[&str]) {
    let made = read(events);
    assert_eq!(outline(&made)[1..], *want);
    assert_eq!(made.completeness.unknown.len(), 0, "{:?}", made.completeness.unknown);
}

fn user(text: &str, interaction: &str) -> String {
    event("user.message", &format!(r#""content":"{text}","interactionId":"{interaction}""#))
}

fn says(text: &str, interaction: &str) -> String {
    event("assistant.message", &format!(r#""content":"{text}","interactionId":"{interaction}""#))
}

fn calls(id: &str, input: &str) -> String {
    let request = format!(r#"{{"toolCallId":"{id}","name":"bash","arguments":{input}}}"#);
    event("assistant.message", &format!(r#""content":"","toolRequests":[{request}]"#))
}

fn done(id: &str, more: &str) -> String {
    event("tool.execution_complete", &format!(r#""toolCallId":"{id}",{more}"#))
}

const OK: &str = r#""success":true,"result":{"content":"x"}"#;

#[test]
fn turn_is_an_interaction_and_not_a_round() {
    check(
        &[
            user("One", "i1"),
            event("assistant.turn_start", r#""turnId":"0","interactionId":"i1""#),
            says("Eins", "i1"),
            event("assistant.turn_end", r#""turnId":"0""#),
            event("assistant.turn_start", r#""turnId":"1","interactionId":"i1""#),
            user("More", "i1"),
            says("Mehr", "i1"),
            event("assistant.turn_start", r#""turnId":"0","interactionId":"i2""#),
            says("Zwei", "i2"),
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text One",
            "turn-0001: assistant text Eins",
            "turn-0001: user text More",
            "turn-0001: assistant text Mehr",
            "turn-0001: turn turn-0001 null",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: assistant text Zwei",
        ],
    );
}

#[test]
fn prompt_without_an_id_takes_that_of_the_next_record() {
    check(
        &[
            event("user.message", r#""content":"One""#),
            says("Eins", "i1"),
            says("Still", "i1"),
            event("user.message", r#""content":"Two""#),
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text One",
            "turn-0001: assistant text Eins",
            "turn-0001: assistant text Still",
            "turn-0001: turn turn-0001 null",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text Two",
        ],
    );
}

#[test]
fn ended_turn_that_continues_ends_again() {
    let idle = event("assistant.idle", "");
    check(
        &[
            user("One", "i1"),
            idle.clone(),
            idle.clone(),
            says("Late", "i1"),
            idle,
            event("abort", r#""reason":"r""#),
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text One",
            "turn-0001: turn turn-0001 null",
            "turn-0001: assistant text Late",
            "turn-0001: turn turn-0001 null",
            // Nothing was going on any more.
            "turn-0001: system abort \"r\"",
        ],
    );
}

#[test]
fn turn_that_an_error_ended_has_failed() {
    let error = event("session.error", r#""errorType":"query","message":"400 no""#);
    let idle = event("assistant.idle", "");
    check(
        &[
            user("One", "i1"),
            error.clone(),
            idle.clone(),
            user("Two", "i2"),
            error,
            says("Still here", "i2"),
            idle,
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text One",
            "turn-0001: error query 400 no",
            "turn-0001: turn turn-0001 400 no",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text Two",
            "turn-0002: error query 400 no",
            "turn-0002: assistant text Still here",
            "turn-0002: turn turn-0002 null",
        ],
    );
}

#[test]
fn each_request_that_is_made_again_is_one_retry() {
    let failure = event("model.call_failure", r#""statusCode":503,"retryAttempt":0,"errorMessage":"busy""#);
    let call = event("model.call_start", r#""turnId":"0""#);
    let told = event("assistant.turn_retry", r#""turnId":"0","reason":"api_error""#);
    let shown = event("session.info", r#""infoType":"model_retry","message":"Retrying""#);
    let round = event("assistant.turn_start", r#""turnId":"0","interactionId":"i1""#);
    let retries = |events: &[&String]| {
        let all: Vec<String> = [&round].iter().chain(events).map(|event| (*event).clone()).collect();
        let made = read(&all);
        assert_eq!(made.completeness.unknown.len(), 0);
        let steps = made.steps("step.completed", "retry");
        assert!(steps.iter().all(|step| step["error"] == "busy" && step["result"]["status"] == 503));
        steps.len()
    };
    assert_eq!(retries(&[&call, &failure, &told, &shown, &call]), 1, "1.0.102");
    assert_eq!(retries(&[&failure, &shown, &failure, &shown]), 2, "1.0.63");
    assert_eq!(retries(&[&call, &failure, &call, &failure, &call]), 2, "1.0.88");
    assert_eq!(retries(&[&call, &failure]), 0, "it is not made again");
    assert_eq!(retries(&[&call, &failure, &round, &call]), 0, "the next round is another request");
}

#[test]
fn message_of_copilot_itself_is_marked() {
    let made = read(&[
        event("session.model_change", r#""newModel":"m0""#),
        says("Old", "i1"),
        event("assistant.message", r#""content":"New","model":"m1","apiCallId":"a1""#),
        calls("c1", "{}"),
    ]);
    let messages = made.payloads("message.assistant");
    let marks = messages.iter().map(|message| (message["model"].as_str(), message["made_by"].as_str()));
    let want = [(Some("m0"), None), (Some("m1"), None), (None, Some("copilot"))];
    assert_eq!(marks.collect::<Vec<_>>(), want);
}

#[test]
fn call_is_recorded_once_and_its_changes_amend_it() {
    let start = |input: &str| {
        event("tool.execution_start", &format!(r#""toolCallId":"c1","toolName":"bash","arguments":{input}"#))
    };
    check(
        &[
            calls("c1", r#"{"a":1}"#),
            start(r#"{"a":1}"#),
            event("tool.execution_start", r#""toolCallId":"c1","toolName":"bash""#),
            start(r#"{"a":2}"#),
            done("c1", OK),
            done("c1", OK),
            done("c1", r#""success":false,"error":{"message":"no","code":"timeout"}"#),
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: assistant tool_use bash",
            r#"turn-0001: call c1 bash {"a":1}"#,
            r#"turn-0001: amend c1 {"input":{"a":2},"name":"bash"}"#,
            r#"turn-0001: result c1 ok "x""#,
            r#"turn-0001: amend c1 {"error":"no","error_code":"timeout","outcome":"failed","output":"no"}"#,
        ],
    );
}

#[test]
fn another_call_with_the_same_id_is_unknown() {
    let made = read(&[calls("c1", r#"{"a":1}"#), calls("c1", r#"{"a":1}"#), calls("c1", r#"{"a":2}"#)]);
    assert_eq!(made.payloads("tool.call").len(), 1);
    assert_eq!(made.completeness.unknown["assistant.message"], 1);
}

/// Returns the outcome and the error of a result.
#[track_caller]
fn check_outcome(result: &str, outcome: &str, exit_code: Option<i64>) {
    let made = read(&[calls("c1", "{}"), done("c1", result)]);
    let result = made.payloads("tool.result")[0].clone();
    assert_eq!((result["outcome"].as_str(), result["exit_code"].as_i64()), (Some(outcome), exit_code));
}

#[test]
fn outcomes_are_those_that_copilot_states() {
    check_outcome(OK, "ok", None);
    check_outcome(r#""success":true,"shellExecution":{"exitCode":3}"#, "ok", Some(3));
    check_outcome(r#""success":true,"shellExecution":{"exitCode":-1.0}"#, "ok", Some(-1));
    check_outcome(
        r#""success":true,"result":{"contents":[{"type":"shell_exit","exitCode":2}]}"#,
        "ok",
        Some(2),
    );
    check_outcome(r#""success":false"#, "failed", None);
    check_outcome(r#""success":false,"error":"no""#, "failed", None);
    check_outcome(r#""error":{"message":"no"}"#, "failed", None);
    for (code, outcome) in [
        ("denied", "denied"),
        ("rejected", "denied"),
        ("aborted", "interrupted"),
        ("cancelled", "interrupted"),
        ("timeout", "failed"),
        ("other", "failed"),
    ] {
        let result = format!(r#""success":false,"error":{{"message":"no","code":"{code}"}}"#);
        check_outcome(&result, outcome, None);
    }
    check_outcome(r#""result":{"content":"x"}"#, "unknown", None);
}

#[test]
fn thought_is_recorded_once_whichever_record_comes_first() {
    let thought =
        |text: &str| event("assistant.reasoning", &format!(r#""reasoningId":"r","content":"{text}""#));
    let response =
        |text: &str| event("assistant.message", &format!(r#""content":"","reasoningText":"{text}""#));
    check(
        &[
            user("Go", "i1"),
            response("A"),
            thought("A"),
            thought("B"),
            response("B"),
            response("A"),
            thought("C"),
            thought("A"),
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text Go",
            "turn-0001: assistant thinking A",
            "turn-0001: assistant thinking B",
            "turn-0001: assistant thinking A",
            "turn-0001: assistant thinking C",
        ],
    );
}

#[test]
fn thought_that_the_next_response_repeats_is_not_new() {
    let thought = event("assistant.reasoning", r#""reasoningId":"r","content":"A""#);
    let response = |signature: &str| {
        let data = format!(r#""content":"x","reasoningText":"A","reasoningOpaque":"{signature}""#);
        event("assistant.message", &data)
    };
    check(
        &[
            response("s1"),
            thought.clone(),
            response("s1"),
            thought,
            response("s2"),
            user("Go", "i2"),
            response("s2"),
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: assistant thinking A, text x",
            "turn-0001: assistant text x",
            "turn-0001: assistant thinking A, text x",
            "turn-0001: turn turn-0001 null",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text Go",
            "turn-0002: assistant thinking A, text x",
        ],
    );
}

#[test]
fn system_prompt_is_recorded_when_it_changes() {
    let prompt = |text: &str| event("system.message", &format!(r#""role":"system","content":"{text}""#));
    check(
        &[prompt("Be kind."), prompt("Be kind."), prompt("Be brief.")],
        &[": user text[system_prompt] Be kind.", ": user text[system_prompt] Be brief."],
    );
}

#[test]
fn response_without_its_own_usage_has_that_of_its_output() {
    let response = r#""content":"Hi","messageId":"m1","apiCallId":"a1","outputTokens":7"#;
    let record =
        event("session.usage_record", r#""usage":{"apiCallId":"a1","inputTokens":9,"outputTokens":7}"#);
    check(
        &[event("assistant.message", response)],
        &[
            "turn-0001: turn turn-0001 begins",
            r#"turn-0001: assistant used at least {"outputTokens":7} response"#,
        ],
    );
    check(
        &[record, event("assistant.message", response)],
        &[
            r#": assistant used {"inputTokens":9,"outputTokens":7} response"#,
            "turn-0001: turn turn-0001 begins",
            "turn-0001: assistant text Hi",
        ],
    );
}

#[test]
fn subagent_that_is_called_again_is_the_same_run() {
    let sub = |kind: &str, data: &str| format!(r#"{{"type":"{kind}","data":{{{data}}},"agentId":"a1"}}"#);
    let begins = |call: &str| sub("subagent.started", &format!(r#""toolCallId":"{call}","agentName":"n""#));
    let ends = |call: &str| sub("subagent.completed", &format!(r#""toolCallId":"{call}","agentName":"n""#));
    let made = read(&[
        calls("c1", "{}"),
        begins("c1"),
        sub("user.message", r#""content":"One","interactionId":"s1""#),
        ends("c1"),
        ends("c1"),
        calls("c2", "{}"),
        begins("c2"),
        sub("user.message", r#""content":"Two","interactionId":"s2""#),
        ends("c2"),
    ]);
    let lines = outline_of_runs(&made);
    let below: Vec<&str> = lines.iter().map(String::as_str).filter(|line| line.starts_with("1 ")).collect();
    assert_eq!(
        below,
        [
            "1 : run",
            "1 turn-0001: turn turn-0001 begins",
            "1 turn-0001: user text One",
            "1 turn-0001: turn turn-0001 null",
            "1 turn-0002: turn turn-0002 begins",
            "1 turn-0002: user text Two",
        ]
    );
    let children = lines.iter().filter(|line| line.contains("child n"));
    assert_eq!(children.count(), 4, "each call begins and ends it once: {lines:?}");
}

#[test]
fn first_record_that_names_a_subagent_begins_its_run() {
    let made = read(&[
        calls("c1", "{}"),
        r#"{"type":"assistant.message","data":{"content":"Hi","parentToolCallId":"c1"},"agentId":"a1"}"#
            .to_owned(),
        event("assistant.message", r#""content":"By call","parentToolCallId":"c1""#),
        r#"{"type":"subagent.started","data":{"toolCallId":"c1","agentName":"n"},"agentId":"a1"}"#.to_owned(),
    ]);
    let lines = outline_of_runs(&made);
    let below: Vec<&str> = lines.iter().map(String::as_str).filter(|line| line.starts_with("1 ")).collect();
    let want = ["1 : run", "1 turn-0001: turn turn-0001 begins"];
    assert_eq!(below[..2], want);
    assert_eq!(below.len(), 4, "{below:?}");
    let child = made.events.iter().find(|event| event["type"] == "step.call_workflow.started").unwrap();
    let began = made.events.iter().find(|event| event["parent_run_id"] == *SESSION).unwrap();
    assert_eq!(child["child_run_id"], began["run_id"]);
}

/// Reads a file without the beginning of its session.
fn read_headless(file_name: Option<&str>, lines: &[String]) -> Vec<String> {
    let source = Source { file_name: file_name.map(str::to_owned), ..Source::named("s1") };
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let made = made_of_lines(copilot::events(source), &lines);
    let runs = made.events.iter().filter(|event| event["type"] == "run.started");
    runs.map(|event| event["run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn file_without_its_beginning_is_named_by_others() {
    let owner = event("permission.requested", &format!(r#""requestId":"r","ownerSessionId":"{SESSION}""#));
    let account = format!(r#""usage":{{"inputTokens":1,"accounting":{{"sourceSessionId":"{SESSION}"}}}}"#);
    let account = event("session.usage_record", &account);
    assert_eq!(read_headless(None, &[user("Go", "i1"), owner]), [SESSION]);
    assert_eq!(read_headless(None, &[user("Go", "i1"), account]), [SESSION]);
    assert_eq!(read_headless(Some(&format!("{SESSION}.jsonl")), &[user("Go", "i1")]), [SESSION]);
    let derived = read_headless(Some("events.jsonl"), &[user("Go", "i1")]);
    assert!(derived.len() == 1 && derived != [SESSION], "{derived:?}");
}

#[test]
fn output_begins_without_its_session_when_too_much_waits() {
    let text = "x".repeat(1024 * 1024);
    let lines: Vec<String> = (0..20).map(|_| user(&text, "i1")).chain([user("last", "i1")]).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let result = format!(r#"{{"type":"result","sessionId":"{SESSION}","exitCode":0}}"#);
    let named = |lines: &[&str]| {
        let made = made_of_lines(copilot::stream(Source::named("s1")), lines);
        assert_eq!(made.payloads("run.completed").len(), 1);
        (made.events[0]["run_id"].clone(), made.events[0]["session_run_id"].clone())
    };
    let (late, without) = named(&[&lines[..], &[&result]].concat());
    let (early, with) = named(&[&lines[..5], &[&result]].concat());
    assert_eq!(late, early, "the same run either way");
    assert_eq!((without.as_str(), with.as_str()), (None, Some(SESSION)));
}
