//! The canonical shape (R76): the typed API gives the checked-in lines byte for byte, and reading one and writing it
//! back changes nothing. The file was written by hand; it holds every event type, every block type, and the
//! optional fields both there and left out.

use std::collections::BTreeSet;

use steno_model::json::RawJson;
use steno_model::{
    BlockContent, BlockType, CallId, ContentBlock, Draft, EventType, ExchangeEvent, Fidelity, MessagePayload,
    Payload, Role, Seq, StepPayload, ToolPayload, Vocabulary,
};
use steno_testkit::{golden, places};

use crate::kit::{OTHER_RUN, extra, json, other_run, run, time};

const GOLDEN: &str = "tests/golden/canonical.jsonl";

/// Returns the golden lines, as they are checked in.
pub fn lines() -> Vec<String> {
    places::read(format!("crates/model/{GOLDEN}")).lines().map(str::to_owned).collect()
}

fn draft(event_type: EventType, payload: &Payload) -> Draft {
    Draft::new(event_type, payload).unwrap()
}

fn step(name: &str, kind: &str) -> StepPayload {
    StepPayload::new(name, kind)
}

fn with_field(draft: Draft, name: &'static str, value: &str) -> Draft {
    draft.with_field(name, json(value)).unwrap()
}

fn runs() -> Vec<Draft> {
    let started = StepPayload {
        extra: extra(r#"{"source":{"channel":"disk","adapter":"claude/1"}}"#),
        ..step("claude", "session")
    };
    let completed = StepPayload {
        error: Some("step `test` failed".into()),
        result: Some(json(r#"{"steps":3}"#)),
        ..step("review", "workflow")
    };
    vec![
        draft(EventType::RunStarted, &Payload::Null),
        draft(EventType::RunStarted, &Payload::Step(started)).child_of(other_run()),
        draft(EventType::RunCompleted, &Payload::Null),
        draft(EventType::RunCompleted, &Payload::Step(completed)),
    ]
}

fn steps() -> Vec<Draft> {
    let in_loop = |event_type, payload: StepPayload| {
        let draft = draft(event_type, &Payload::Step(payload)).at("loop.body").in_iteration(2);
        with_field(with_field(draft, "loop", "[0,2]"), "attempt", "1")
    };
    let failed = StepPayload {
        error: Some("exit code 3".into()),
        result: Some(json(r#"{"stdout":"boom\n","exit_code":3}"#)),
        ..step("body", "command")
    };
    let approval = StepPayload {
        result: Some(json(r#"{"decision":"denied","by":"host"}"#)),
        extra: extra(r#"{"tool_call_id":"toolu_01"}"#),
        ..step("be1b", "approval")
    };
    let unknown = draft(EventType::StepCompleted, &Payload::Step(step("new-type", "unknown")));
    let evidence = r#"{"source":"s1","generation":0,"offset":9012,"length":88,"part":0}"#;
    let analyze = Payload::Step(step("analyze", "agent"));
    vec![
        draft(EventType::StepStarted, &analyze).at("analyze"),
        in_loop(EventType::StepStarted, step("body", "command")),
        draft(EventType::StepCompleted, &analyze).at("analyze"),
        in_loop(EventType::StepCompleted, failed),
        draft(EventType::StepCompleted, &Payload::Step(approval)).at("turn-0001.approval"),
        with_field(with_field(unknown, "evidence", evidence), "session_run_id", &format!("\"{OTHER_RUN}\"")),
    ]
}

fn child_runs() -> Vec<Draft> {
    let deploy = step("deploy", "call_workflow");
    let ended = StepPayload { result: Some(RawJson::null()), ..deploy.clone() };
    let call = |event_type, step| Draft::calling(event_type, other_run(), &Payload::Step(step)).unwrap();
    let started = call(EventType::CallWorkflowStarted, deploy);
    let completed = call(EventType::CallWorkflowCompleted, ended).child_of(other_run());
    [started, completed].map(|draft| draft.at("deploy")).into()
}

fn messages() -> Vec<Draft> {
    let (agent, router) = (Fidelity::AgentEmitted, Fidelity::Router);
    let system = ContentBlock {
        extra: extra(r#"{"label":"system_prompt"}"#),
        ..ContentBlock::text(router, "You are terse.")
    };
    let user =
        MessagePayload::new(Role::User, vec![ContentBlock::text(router, "Review main.go for bugs."), system]);
    let text = "tab\t quote\" backslash\\ NUL\0 é 😀 /";
    let answer = MessagePayload {
        extra: extra(r#"{"response":"msg_01","model":"m-1","usage":{"output_tokens":72},"final":true}"#),
        ..MessagePayload::new(Role::Assistant, vec![ContentBlock::text(agent, text)])
    };
    let tool_use = BlockContent::ToolUse {
        tool_name: Some("Read".into()),
        tool_id: Some("toolu_01".into()),
        tool_input: Some(json(r#"{"path":"main.go"}"#)),
    };
    let tool_result =
        BlockContent::ToolResult { tool_id: Some("toolu_01".into()), tool_content: Some(RawJson::null()) };
    let blocks = [
        (agent, BlockContent::Thinking(Some("First I should...".into()))),
        (agent, tool_use),
        (router, tool_result),
        (router, BlockContent::Command(Some("go test ./...".into()))),
        (agent, BlockContent::Stream(Some("Fou".into()))),
    ];
    let single = |(fidelity, content)| {
        MessagePayload::new(Role::Assistant, vec![ContentBlock::new(fidelity, content)])
    };
    let assistant = [MessagePayload::new(Role::Assistant, vec![]), answer];
    let assistant = assistant.into_iter().chain(blocks.map(single));
    let assistant = assistant.map(|payload| draft(EventType::MessageAssistant, &Payload::Message(payload)));
    let user = draft(EventType::MessageUser, &Payload::Message(user));
    std::iter::once(user).chain(assistant).map(|draft| draft.at("analyze")).collect()
}

fn tools() -> Vec<Draft> {
    let (agent, router) = (Fidelity::AgentEmitted, Fidelity::Router);
    let (read, exec) = (CallId::from("toolu_01"), CallId::from("call_62"));
    let call = ToolPayload::call("Read", read.clone(), json(r#"{"path":"main.go"}"#), router);
    let input = json(r#"{"n":123456789012345678901234567890,"n":1.50}"#);
    let bare_call = ToolPayload {
        output: None,
        extra: extra(r#"{"class":"command"}"#),
        ..ToolPayload::call("exec_command", exec.clone(), input, agent)
    };
    let result = ToolPayload::result("Read", read, json(r#""package main\n""#), router);
    let failed = ToolPayload {
        input: None,
        error: Some("exit code 3".into()),
        extra: extra(r#"{"outcome":"failed","exit_code":3}"#),
        ..ToolPayload::result("exec_command", exec, json(r#""partial\nboom\n""#), agent)
    };
    let events = [
        (EventType::ToolCall, call),
        (EventType::ToolCall, bare_call),
        (EventType::ToolResult, result),
        (EventType::ToolResult, failed),
    ];
    events.map(|(event_type, payload)| draft(event_type, &Payload::Tool(payload)).at("analyze")).into()
}

#[test]
fn typed_events_match_the_golden_file() {
    let drafts = [runs(), steps(), child_runs(), messages(), tools()].concat();
    let mut text = Vec::new();
    for (seq, draft) in (1..).zip(drafts) {
        draft.encode(run(), time).write_line(Seq::new(seq).unwrap(), &mut text);
    }
    golden::check(GOLDEN, &String::from_utf8(text).unwrap());
}

#[test]
fn golden_lines_round_trip() {
    for line in lines() {
        let event = ExchangeEvent::parse_strict(line.as_bytes()).unwrap();
        assert_eq!(event.to_line(), line);
        assert_eq!(event.payload().to_json(), event.payload, "{line}");
    }
}

#[test]
fn golden_lines_are_accepted_as_drafts() {
    for line in lines() {
        let (head, tail) = line.split_once(',').unwrap();
        let seq = Seq::new(head.strip_prefix("{\"seq\":").unwrap().parse().unwrap()).unwrap();
        let mut again = Vec::new();
        let draft = Draft::parse(format!("{{{tail}").as_bytes(), run()).unwrap();
        draft.encode(run(), || panic!("every golden line has a time")).write_line(seq, &mut again);
        assert_eq!(String::from_utf8(again).unwrap(), format!("{line}\n"));
    }
}

#[test]
fn golden_lines_use_every_word_of_the_vocabularies() {
    let events: Vec<_> =
        lines().iter().map(|line| ExchangeEvent::parse_strict(line.as_bytes()).unwrap()).collect();
    let event_types: BTreeSet<_> = events.iter().filter_map(|event| event.event_type.known()).collect();
    assert_eq!(event_types, EventType::ALL.iter().copied().collect());
    let payloads: Vec<_> = events.iter().map(ExchangeEvent::payload).collect();
    let blocks = payloads.iter().flat_map(Payload::blocks);
    let block_types: BTreeSet<_> = blocks.filter_map(|block| block.block_type().known()).collect();
    assert_eq!(block_types, BlockType::ALL.iter().copied().collect());
}
