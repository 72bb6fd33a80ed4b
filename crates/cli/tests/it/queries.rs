//! R82: the documented jq queries give right answers on a recorded run.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use steno_testkit::{needs, tool};

use crate::kit::{RUN, Steno, TIME, id};

const EVERY_EVENT: &str = ".";

const PAIRS: &str = r#"
  [.[] | select(.type == "tool.call" or .type == "tool.result")]
  | group_by(.payload.call_id)
  | map({
      call_id: .[0].payload.call_id,
      name: .[0].payload.name,
      input: (map(select(.type == "tool.call"))[0].payload.input),
      output: (map(select(.type == "tool.result"))[0].payload.output)
    })
"#;

const TEXTS: &str = r#"select(.type == "message.assistant")
  | .payload.blocks[]
  | select(.type == "text")
  | .text"#;

const MONOTONIC: &str = "[.[].seq] | . == (sort)";

const STEPS: &str = r#"select(.type == "step.started")
  | "\(.seq)\t\(.path)\t\(.payload.kind)\t\(.payload.name)""#;

const CHILDREN: &str = r#"select(.type == "step.call_workflow.started") | .child_run_id"#;

const FIDELITIES: &str = r#"
  [.[] | select(.type == "tool.call")]
  | group_by(.payload.fidelity)
  | map({fidelity: .[0].payload.fidelity, count: length})
"#;

/// The product's own check: the monotonic one passes with duplicates and gaps.
const CONTIGUOUS: &str = "[.[].seq] == [range(1; length + 1)]";

fn event(kind: &str, path: &str, payload: Value) -> Value {
    let mut event = json!({ "type": kind, "path": path, "timestamp": TIME });
    event["payload"] = payload;
    event
}

fn step(name: &str, kind: &str) -> Value {
    json!({ "name": name, "kind": kind })
}

fn call(name: &str, call_id: &str, input: &Value, fidelity: &str) -> Value {
    let payload =
        json!({ "name": name, "call_id": call_id, "input": input, "output": null, "fidelity": fidelity });
    event("tool.call", "review.analyze", payload)
}

fn result(name: &str, call_id: &str, output: &Value, fidelity: &str) -> Value {
    let payload =
        json!({ "name": name, "call_id": call_id, "input": null, "output": output, "fidelity": fidelity });
    event("tool.result", "review.analyze", payload)
}

fn message(role: &str, blocks: &Value) -> Value {
    let payload = json!({ "role": role, "blocks": blocks });
    event(&format!("message.{role}"), "review.analyze", payload)
}

fn calls_child(kind: &str, path: &str, child: &str) -> Value {
    let mut event = event(kind, path, step(path, "call_workflow"));
    event["child_run_id"] = json!(child);
    event
}

/// A run with everything the queries ask for: pairs that overlap, a call without result, texts among other blocks,
/// nested steps, two child runs, both fidelities.
fn events() -> Vec<Value> {
    let text = |text: &str| json!({ "type": "text", "fidelity": "agent_emitted", "text": text });
    let tool_use = json!({ "type": "tool_use", "fidelity": "agent_emitted", "tool_name": "Read", "tool_id": "c-read",
        "tool_input": { "path": "main.go" } });
    let thinking = json!({ "type": "thinking", "fidelity": "agent_emitted", "thinking": "First the file." });
    vec![
        event("run.started", "", step("nightly", "workflow")),
        event("step.started", "review", step("review", "parallel")),
        event("step.started", "review.analyze", step("analyze", "agent")),
        message(
            "user",
            &json!([{ "type": "text", "fidelity": "router", "text": "Review main.go for bugs." }]),
        ),
        message("assistant", &json!([thinking, text("I read the file."), tool_use])),
        call("Read", "c-read", &json!({ "path": "main.go" }), "agent_emitted"),
        call("Bash", "c-bash", &json!({ "cmd": "go test ./..." }), "router"),
        call("Bash", "a-dangling", &json!({ "cmd": "sleep 1000" }), "router"),
        result("Bash", "c-bash", &json!({ "stdout": "ok", "code": 0 }), "router"),
        result("Read", "c-read", &json!("package main\n"), "agent_emitted"),
        message("assistant", &json!([text("Found 2 issues.\nBoth in `main`."), text("")])),
        message("assistant", &json!([])),
        event("step.completed", "review.analyze", step("analyze", "agent")),
        calls_child("step.call_workflow.started", "fix", &id(0xA1)),
        calls_child("step.call_workflow.completed", "fix", &id(0xA1)),
        calls_child("step.call_workflow.started", "deploy", &id(0xB2)),
        event("step.started", "review.lint", step("lint", "command")),
        event("step.completed", "review.lint", step("lint", "command")),
        event("step.completed", "review", step("review", "parallel")),
        event("run.completed", "", step("nightly", "workflow")),
    ]
}

fn jq(jq: &Path, args: &[&str], file: &Path) -> String {
    let output = Command::new(jq).args(args).arg(file).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn documented_queries_give_right_answers() {
    let program = needs!(tool("jq"), "jq is not installed");
    let steno = Steno::new();
    let (events, file) = (events(), steno.transcript(RUN));
    // Two writers, one after the other: the second continues after the first.
    steno.recorded(RUN, &events[..7]);
    steno.recorded(RUN, &events[7..]);

    let decoded = jq(&program, &[EVERY_EVENT], &file);
    let decoded: Vec<Value> =
        serde_json::Deserializer::from_str(&decoded).into_iter().map(Result::unwrap).collect();
    let want = events.iter().zip(1..).map(|(event, seq)| {
        let mut event = event.clone();
        event["seq"] = json!(seq);
        event["run_id"] = json!(RUN);
        event["iteration"] = json!(0);
        event
    });
    assert_eq!(decoded, want.collect::<Vec<_>>());

    let check_json = |query: &str, want: Value| {
        let got: Value = serde_json::from_str(&jq(&program, &["-s", query], &file)).unwrap();
        assert_eq!(got, want, "{query}");
    };
    check_json(
        PAIRS,
        json!([
            { "call_id": "a-dangling", "name": "Bash", "input": { "cmd": "sleep 1000" }, "output": null },
            { "call_id": "c-bash", "name": "Bash", "input": { "cmd": "go test ./..." }, "output": { "stdout": "ok", "code": 0 } },
            { "call_id": "c-read", "name": "Read", "input": { "path": "main.go" }, "output": "package main\n" },
        ]),
    );
    check_json(MONOTONIC, json!(true));
    check_json(CONTIGUOUS, json!(true));
    check_json(
        FIDELITIES,
        json!([{ "fidelity": "agent_emitted", "count": 1 }, { "fidelity": "router", "count": 2 }]),
    );

    let check_text =
        |query: &str, want: &str| assert_eq!(jq(&program, &["-r", query], &file), want, "{query}");
    check_text(TEXTS, "I read the file.\nFound 2 issues.\nBoth in `main`.\n\n");
    let steps =
        "2\treview\tparallel\treview\n3\treview.analyze\tagent\tanalyze\n17\treview.lint\tcommand\tlint\n";
    check_text(STEPS, steps);
    check_text(CHILDREN, &format!("{}\n{}\n", id(0xA1), id(0xB2)));
}

#[test]
fn verify_finds_gaps_that_the_documented_query_misses() {
    let program = needs!(tool("jq"), "jq is not installed");
    let steno = Steno::new();
    steno.recorded(RUN, &events());
    let file = steno.transcript(RUN);
    let lines = steno.text(RUN);
    let mut without_fifth: Vec<&str> = lines.split_inclusive('\n').collect();
    let fifth = without_fifth.remove(4);
    let mut fifth_twice: Vec<&str> = lines.split_inclusive('\n').collect();
    fifth_twice.insert(4, fifth);
    let (without_fifth, fifth_twice) = (without_fifth.concat(), fifth_twice.concat());
    for (name, text, whole) in
        [("whole", &lines, true), ("a gap", &without_fifth, false), ("a duplicate", &fifth_twice, false)]
    {
        std::fs::write(&file, text).unwrap();
        assert_eq!(jq(&program, &["-s", MONOTONIC], &file), "true\n", "{name}");
        assert_eq!(jq(&program, &["-s", CONTIGUOUS], &file), format!("{whole}\n"), "{name}");
        // The seals would tell as well; here it is the numbers.
        std::fs::remove_file(steno.beside(RUN, "seals.jsonl")).ok();
        assert_eq!(steno.run(&["verify", RUN]).code, i32::from(!whole), "{name}");
    }
}
