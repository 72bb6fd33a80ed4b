//! Conversations as text: which lines are cut, and that foreign text is escaped.

use serde_json::{Value, json};

use super::super::{ConversationStyle, styled_text, text};
use super::fold;
use crate::testing::run_id;

fn said(kind: &str, path: &str, blocks: &Value) -> Value {
    let role = kind.trim_start_matches("message.");
    json!([kind, path, {"role": role, "model": "m-1", "blocks": blocks}])
}

fn tool(kind: &str, id: &str, fields: &Value) -> Value {
    let mut payload = json!({"name": "Bash", "call_id": id, "fidelity": "agent_emitted"});
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!([kind, "t1", payload])
}

/// Returns a run with every kind of item.
fn run() -> Vec<Value> {
    let long = (1..=9).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let child = json!({"child_run_id": run_id(2).to_string()});
    vec![
        json!(["run.started", "", {"name": "fix", "kind": "session"}, {"parent_run_id": run_id(9).to_string()}]),
        said("message.user", "", &json!([{"type": "text", "text": "Be kind.", "label": "system_prompt"}])),
        json!(["step.completed", "", {"name": "mode", "kind": "system", "result": {"a": 1}}]),
        json!(["step.started", "t1", {"name": "t1", "kind": "turn"}]),
        said(
            "message.user",
            "t1",
            &json!([{"type": "text", "text": "Fix it.\n\nNow."}, {"type": "hologram"}]),
        ),
        said(
            "message.assistant",
            "t1",
            &json!([
                {"type": "thinking", "thinking": "First.\nThen."}, {"type": "thinking", "thinking": ""},
                {"type": "stream", "chunk": "On "}, {"type": "stream", "chunk": "it."},
                {"type": "tool_use", "tool_id": "c1", "tool_name": "Bash", "tool_input": {"command": "make"}},
            ]),
        ),
        tool("tool.result", "c1", &json!({"output": long, "outcome": "ok"})),
        tool("tool.call", "c2", &json!({"input": {}})),
        tool("tool.result", "c2", &json!({"output": "no rule", "error": "no rule", "outcome": "failed"})),
        tool("tool.call", "c3", &json!({"input": {"task": "look"}})),
        json!(["step.call_workflow.started", "t1", {"name": "explore", "kind": "subagent", "tool_call_id": "c3"}, child]),
        json!(["step.completed", "t1", {"name": "c", "kind": "compaction", "result": "In short."}]),
        json!(["step.completed", "t1", {"name": "api", "kind": "retry", "error": "529"}]),
        json!(["step.completed", "t1", {"name": "t1", "kind": "turn"}]),
    ]
}

const WANT: &str = "\
child run 00000001-0000-4000-8000-000000000000  of 00000009-0000-4000-8000-000000000000  fix  open  1 call without result  1 block of unknown type

system
│ Be kind.

· system mode  a=1

── t1  2026-06-08T00:00:04Z

user
  Fix it.

  Now.
? hologram

assistant  m-1
┊ First.
┊ Then.
┊ (thought not recorded)
  On it.
▸ Bash {\"command\":\"make\"}
│ line 1
│ line 2
│ line 3
│ line 4
│ line 5
│ line 6
│ … 3 more lines

▸ Bash {}
│ failed: no rule

▸ Bash {\"task\":\"look\"}
│ child run 00000002-0000-4000-8000-000000000000  explore  open
│ no result

── the conversation so far was replaced by a summary
│ In short.

· retry api  failed: 529
";

#[test]
fn conversation_is_shown_line_by_line() {
    assert_eq!(text(&fold(&run())), WANT);
}

#[test]
fn tones_do_not_change_text() {
    let toned = styled_text(&fold(&run()), &ConversationStyle::plain(&|_, words| format!("<{words}>")));
    let strip = |text: &str| text.replace(['<', '>'], "");
    assert_eq!(strip(&toned), WANT);
    assert!(toned.contains("<┊> <First.>\n<┊> <Then.>\n"), "{toned}");
    assert!(toned.contains("\n<▸> <Bash> {\"command\""), "{toned}");
}

#[test]
fn foreign_text_is_escaped_and_indented() {
    const HOSTILE: &str = "a\u{1b}[2J\u{202e}\r\nuser\n── t9\n▸ Fake";
    let mut lines = run();
    for line in &mut lines {
        poison(&mut line[2], HOSTILE);
    }
    let shown = text(&fold(&lines));
    let is_bad = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(shown.contains("\\u{1b}[2J") && !shown.contains(is_bad), "{shown}");
    assert_eq!(shown.lines().filter(|line| *line == "user").count(), 1, "{shown}");
    let is_faked = |line: &str| line.starts_with("── t9") || line.starts_with("▸ Fake");
    assert!(shown.contains("  ▸ Fake") && !shown.lines().any(is_faked), "{shown}");
}

/// Appends a text to every string except types and kinds.
fn poison(value: &mut Value, text: &str) {
    match value {
        Value::String(found) => found.push_str(text),
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, text)),
        Value::Object(fields) => {
            for (name, value) in fields {
                if !["type", "kind", "role", "tool_id", "call_id", "tool_call_id", "label", "outcome"]
                    .contains(&&**name)
                {
                    poison(value, text);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
