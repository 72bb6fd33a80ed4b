//! Arbitrary events in any order give a valid trajectory.

use proptest::prelude::*;
use serde_json::{Value, json};
use steno_model::ExchangeEvent;

use steno_session::{Content, SessionBuilder};

use super::super::{Family, NoFiles, NoMedia, Run, Severity, validate};
use super::OnePicture;

fn word() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!("a"),
        json!("b"),
        json!("\u{0}é"),
        json!(1),
        json!(null),
        json!({"a": [1]}),
    ])
}

fn output() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!("text"),
        json!(null),
        json!([{"type": "text", "text": "a"}, {"type": "image", "data": "Zg==", "mimeType": "image/png"}]),
        json!([{"type": "image", "data": 7}, {"type": "x"}]),
        json!({"content": [{"type": "text"}], "isError": true}),
        json!([[], 1]),
        json!(12.5),
    ])
}

fn blocks() -> impl Strategy<Value = Value> {
    let block = (0..8_u8, word(), output()).prop_map(|(kind, word, output)| match kind {
        0 => json!({"type": "text", "text": word}),
        1 => json!({"type": "thinking", "thinking": word}),
        2 => json!({"type": "tool_use", "tool_name": word, "tool_id": word, "tool_input": output}),
        3 => json!({"type": "tool_result", "tool_id": word, "tool_content": output}),
        4 => json!({"type": "stream", "chunk": word}),
        5 => json!({"type": "text", "text": "", "label": "image", "size_bytes": 3}),
        6 => json!({"type": "text", "text": word, "label": "system_prompt"}),
        _ => output,
    });
    prop::collection::vec(block, 0..4).prop_map(Value::Array)
}

fn payload() -> impl Strategy<Value = Value> {
    let kinds = ["turn", "approval", "amend", "compaction", "retry", "unknown", "subagent", "session"];
    let step = (prop::sample::select(kinds.to_vec()), word(), output(), word()).prop_map(|(kind, name, result, id)| {
        json!({"name": name, "kind": kind, "result": result, "error": id, "tool_call_id": id, "response": name, "settings": {"effort": id}})
    });
    let tool = (word(), output(), output(), prop::bool::ANY).prop_map(|(id, input, output, is_router)| {
        json!({"name": id, "call_id": id, "input": input, "output": output, "fidelity": if is_router { "router" } else { "agent_emitted" }, "error": id, "exit_code": output})
    });
    let scopes = prop::sample::select(vec!["response", "turn", "session", "other"]);
    let message = (blocks(), word(), scopes, 0..90_u64, prop::bool::ANY).prop_map(|(blocks, response, scope, count, is_whole)| {
        let count = if is_whole { json!(count) } else { json!(-1.5) };
        let usage = json!({"input_tokens": count, "output_tokens": count, "cached_input_tokens": 40});
        json!({"role": "assistant", "blocks": blocks, "response": response, "usage": usage, "usage_scope": scope, "final": is_whole})
    });
    prop_oneof![step, tool, message, output()]
}

fn event() -> impl Strategy<Value = Value> {
    let types = vec![
        "run.started",
        "run.completed",
        "step.started",
        "step.completed",
        "step.call_workflow.started",
        "step.call_workflow.completed",
        "message.user",
        "message.assistant",
        "tool.call",
        "tool.result",
        "other",
    ];
    let paths = prop::sample::select(vec!["", "turn-1", "turn-2", "turn-1.approval"]);
    (prop::sample::select(types), paths, payload(), 1..4_u32, prop::option::weighted(0.2, word())).prop_map(
        |(kind, path, payload, child, copied)| {
            let mut event = json!({"seq": 1, "run_id": id(1), "child_run_id": id(child), "type": kind, "path": path, "iteration": 0, "timestamp": path, "payload": payload});
            if let Some(copied) = copied {
                event["copied_from"] = copied;
            }
            event
        },
    )
}

fn id(number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

fn folded(events: &[Value], number: u32) -> Run {
    let mut builder = SessionBuilder::new(steno_model::RunId::parse(&id(number)).unwrap(), Content::Whole);
    for event in events {
        let mut event = event.clone();
        event["run_id"] = id(number).into();
        event["evidence"] = json!({"source": "s", "generation": 0, "offset": 0, "length": 1, "part": 0});
        builder.push(&ExchangeEvent::parse(event.to_string().as_bytes()).unwrap());
    }
    Run::of(builder.finish(), &mut OnePicture)
}

proptest! {
    #[test]
    fn arbitrary_events_give_a_valid_trajectory(
        runs in prop::collection::vec(prop::collection::vec(event(), 0..40), 1..4),
    ) {
        let runs = (1..).zip(&runs).map(|(number, events)| {
            let run = folded(events, number);
            (run.id, run)
        });
        let family = Family::new(runs.collect());
        for root in family.roots() {
            let Some(trajectory) = family.trajectory(root, &mut NoMedia) else { continue };
            let findings = validate(&trajectory.json, &mut NoFiles);
            let errors: Vec<_> = findings.iter().filter(|found| found.severity == Severity::Error).collect();
            prop_assert!(errors.is_empty(), "{errors:?}\n{}", trajectory.json);
        }
    }
}
