//! Runs of requests to a model beside the agent's own file, which has other ids for the same calls.

use serde_json::{Value, json};

use super::tests::{run, run_id};
use super::*;
use crate::usage::{TokenUsage, Tokens, UsageBuilder};

fn turn() -> Value {
    json!(["step.started", "turn-0001", {"name": "turn-0001", "kind": "turn"}])
}

/// A response that makes a call; its use block and its usage are in records of their own.
fn response(response: &str, call: &str, command: &str) -> [Value; 3] {
    let input = json!({"command": command});
    let anonymous = call.starts_with("call-").then_some(false);
    [
        json!(["message.assistant", "turn-0001", {"role": "assistant", "response": response,
            "blocks": [{"type": "tool_use", "tool_name": "sh", "tool_id": call, "tool_input": input}]}]),
        json!(["tool.call", "turn-0001", {"name": "sh", "call_id": call, "input": input, "output": null,
            "fidelity": "agent_emitted", "class": "command", "id_available": anonymous}]),
        json!(["message.assistant", "turn-0001", {"role": "assistant", "response": response, "blocks": [],
            "usage": {"input": 10, "output": 1}, "usage_scope": "response", "final": true}]),
    ]
}

fn answer(call: &str, agents: Option<&str>) -> Value {
    json!(["tool.result", "turn-0001", {"name": "sh", "call_id": call, "input": null, "output": "out",
        "fidelity": "agent_emitted", "outcome": "ok", "agent_call_id": agents}])
}

/// The agent's own file, with three equal calls and one whose result the client never sent to the model.
fn file() -> RunEvents {
    let calls = ["sh__a", "sh__b", "x#0-0", "x#0-1"].into_iter().enumerate();
    let events = calls.flat_map(|(place, call)| {
        let [used, made, usage] = response(&format!("own-{place}"), call, "ls");
        [used, made, usage, answer(call, None)]
    });
    run(1, "disk", &[turn()].into_iter().chain(events).collect::<Vec<_>>())
}

/// The requests: the results come in another order than the calls.
fn requests() -> RunEvents {
    let made = (1..=4).flat_map(|number| response(&format!("g{number}"), &format!("call-{number}"), "ls"));
    let answers = [answer("call-2", Some("b")), answer("call-1", Some("a")), answer("call-3", Some("x#0-0"))];
    run(2, "http", &[turn()].into_iter().chain(made).chain(answers).collect::<Vec<_>>())
}

#[test]
fn calls_of_requests_are_those_of_the_agents_file() {
    for runs in [vec![file(), requests()], vec![requests(), file()]] {
        let session = merge(run_id(1), runs, Content::Whole);
        let calls: Vec<(String, bool)> = session
            .calls
            .iter()
            .map(|call| {
                let is_matched = call.extra.iter().any(|(name, _)| name.is("id_matched"));
                (call.id.as_ref().unwrap().to_text().into_owned(), is_matched)
            })
            .collect();
        let want = ["sh__a", "sh__b", "x#0-0", "x#0-1"].map(|id| (id.to_owned(), false));
        assert_eq!(calls, want);
        assert_eq!(session.turns.len(), 1);
        let used = session.used.unwrap();
        assert_eq!((used.responses, used.tokens.input, used.is_lower_bound), (4, 40, false));
        // The requests add no message.
        assert_eq!(session.messages.iter().filter(|message| !message.blocks.is_empty()).count(), 4);
    }
}

#[test]
fn usage_of_merged_runs_counts_once() {
    for runs in [vec![file(), requests()], vec![requests(), file()]] {
        let mut builder = UsageBuilder::new();
        builder.push_session(run_id(1), runs);
        let used: Vec<TokenUsage> = builder.finish().into_values().collect();
        let tokens = Tokens { input: 40, output: 4, ..Tokens::default() };
        assert_eq!(used, [TokenUsage { responses: 4, tokens, is_lower_bound: false }]);
    }
}

#[test]
fn call_that_the_agents_file_lacks_is_another_call() {
    let made = response("g1", "call-1", "pwd").to_vec();
    let told = [response("g2", "call-2", "ls").to_vec(), vec![answer("call-2", Some("later"))]].concat();
    let other = run(2, "http", &[vec![turn()], made, told].concat());
    let session = merge(run_id(1), vec![file(), other], Content::Whole);
    let ids: Vec<String> =
        session.calls.iter().map(|call| call.id.as_ref().unwrap().to_text().into_owned()).collect();
    // The file may be behind: a call with an id waits for its record, and is not matched with an equal call.
    assert_eq!(ids.len(), 6, "{ids:?}");
    assert!(ids.contains(&"call-1".to_owned()) && ids.contains(&"call-2".to_owned()), "{ids:?}");
}
