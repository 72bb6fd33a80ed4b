//! Lines beside the messages of a conversation: system steps, ends, forks, copies, and content without text.

use serde_json::{Value, json};

use super::super::{ConversationStyle, ConversationTone, styled_text, text};
use super::fold;
use crate::testing::run_id;
use crate::{ParentReport, State};

/// Compares all lines except the first, which is the head.
#[track_caller]
fn check(lines: &[Value], want: &[&str]) {
    let shown = text(&fold(lines));
    let shown: Vec<&str> = shown.lines().skip(1).filter(|line| !line.is_empty()).collect();
    assert_eq!(shown, want);
}

fn system(name: &str, result: &Value) -> Value {
    json!(["step.completed", "", {"name": name, "kind": "system", "result": result}])
}

#[test]
fn system_step_shows_its_key_fields() {
    let command = json!({"parentUuid": "8", "content": "<command-name>/model</command-name><command-args>x</command-args>"});
    check(&[system("local_command", &command)], &["· system local_command  /model x"]);
    check(&[system("interrupt", &json!({"subtype": "interrupt"}))], &["· system interrupt"]);
    check(&[system("a", &json!("\u{1b}[2J"))], &["· system a  \\u{1b}[2J"]);
}

#[test]
fn consecutive_system_steps_share_one_line() {
    let quiet = ["env", "model", "env", "date"].map(|name| system(name, &json!("x")));
    check(&quiet, &["· 4 system steps: env ×2, model, date"]);
    check(&quiet[..2], &["· system env  x", "· system model  x"]);
    let mut mixed = quiet.to_vec();
    mixed.insert(3, system("local_command", &json!("/exit")));
    check(&mixed, &["· 3 system steps: env ×2, model", "· system local_command  /exit", "· system date  x"]);
    let plain = |_: ConversationTone, words: &str| words.to_owned();
    let every = ConversationStyle { has_every_step: true, ..ConversationStyle::plain(&plain) };
    assert_eq!(styled_text(&fold(&quiet), &every).matches("· system ").count(), 4);
}

#[test]
fn picture_is_shown_as_placeholder() {
    let blocks = json!([{"type": "text", "text": "See."}, {"type": "text", "text": "", "label": "image", "size_bytes": 148}]);
    let prompt = json!(["message.user", "", {"role": "user", "blocks": blocks}]);
    check(&[prompt], &["user", "  See.", "  [image, 148 bytes]"]);
}

#[test]
fn unknown_outcome_is_marked() {
    let call = json!(["tool.call", "", {"name": "Bash", "call_id": "c", "input": {}}]);
    let result = |outcome: &str, output: &str| {
        let payload = json!({"name": "Bash", "call_id": "c", "output": output, "outcome": outcome});
        json!(["tool.result", "", payload])
    };
    let unknown = "│ (outcome unknown)";
    check(&[call.clone(), result("unknown", "done")], &["▸ Bash {}", "│ done", unknown]);
    check(&[call.clone(), result("unknown", "")], &["▸ Bash {}", unknown]);
    check(&[call, result("ok", "done")], &["▸ Bash {}", "│ done"]);
}

#[test]
fn failed_turn_shows_its_reason() {
    let error = r#"{"error": {"message": "no such model", "code": "bad"}}"#;
    check(
        &[
            json!(["step.started", "t1", {"name": "t1", "kind": "turn"}]),
            json!(["step.completed", "t1", {"name": "t1", "kind": "turn", "error": error}]),
        ],
        &["── t1  2026-06-08T00:00:01Z  failed: no such model"],
    );
}

#[test]
fn denied_approval_has_its_own_tone() {
    let decided = |decision: &str| json!(["step.completed", "", {"name": "r", "kind": "approval", "result": {"decision": decision, "by": "host"}}]);
    let paint = |tone: ConversationTone, words: &str| format!("<{tone:?} {words}>");
    let shown =
        styled_text(&fold(&[decided("denied"), decided("allowed")]), &ConversationStyle::plain(&paint));
    assert!(shown.contains("<Failed · denied by host>\n<Frame · allowed by host>"), "{shown}");
}

#[test]
fn head_shows_forks_and_parent_reports() {
    let from = run_id(7).to_string();
    let started =
        json!(["run.started", "", {"name": "f", "kind": "session", "forked_from": {"run_id": from}}]);
    let conversation = fold(&[started]);
    let head = |reported: Option<ParentReport>| {
        let plain = |_: ConversationTone, words: &str| words.to_owned();
        styled_text(&conversation, &ConversationStyle { reported, ..ConversationStyle::plain(&plain) })
    };
    let run = run_id(1);
    assert_eq!(head(None), format!("run {run}  f  fork of {from}  open\n"));
    let word = |state, error: Option<&str>| Some(ParentReport { state, error: error.map(Into::into) });
    let want = format!("run {run}  f  fork of {from}  completed (reported by parent)\n");
    assert_eq!(head(word(State::Completed, None)), want);
    assert!(head(word(State::Failed, Some("no"))).ends_with("failed: no (reported by parent)\n"));
}

#[test]
fn copied_turn_says_so_once() {
    let copied = json!({"copied_from": run_id(7).to_string()});
    let turn = |path: &str| json!(["step.started", path, {"name": path, "kind": "turn"}]);
    let said = |role: &str, path: &str, more: &Value| {
        let blocks = json!([{"type": "text", "text": "x"}]);
        json!([format!("message.{role}"), path, {"role": role, "blocks": blocks}, more])
    };
    let from = format!("copied from run {}", run_id(7));
    check(
        &[
            turn("t1"),
            said("user", "t1", &copied),
            said("assistant", "t1", &copied),
            turn("t2"),
            said("user", "t2", &copied),
            said("assistant", "t2", &json!({})),
        ],
        &[
            &format!("── t1  2026-06-08T00:00:01Z  open  {from}"),
            "user",
            "  x",
            "assistant",
            "  x",
            "── t2  2026-06-08T00:00:04Z  open",
            &format!("user  {from}"),
            "  x",
            "assistant",
            "  x",
        ],
    );
}

#[test]
fn cut_lines_fit_the_width() {
    let long = "x".repeat(300);
    let conversation = fold(&[
        json!(["tool.call", "", {"name": "Bash", "call_id": "c", "input": {"command": long}}]),
        json!(["tool.result", "", {"name": "Bash", "call_id": "c", "output": long, "outcome": "ok"}]),
        system("title", &json!(long)),
        json!(["message.user", "", {"role": "user", "blocks": [{"type": "text", "text": long}]}]),
    ]);
    let plain = |_: ConversationTone, words: &str| words.to_owned();
    let shown =
        |width| styled_text(&conversation, &ConversationStyle { width, ..ConversationStyle::plain(&plain) });
    // All lines except the head and the messages, which are not cut.
    let widest = |text: &str| {
        let lines = text.lines().skip(1).filter(|line| !line.starts_with("  "));
        lines.map(|line| line.chars().count()).max().unwrap_or(0)
    };
    assert_eq!(widest(&shown(Some(60))), 60);
    assert_eq!(widest(&shown(Some(3))), widest(&shown(Some(40))), "some of it is shown anywhere");
    assert_eq!(shown(None), text(&conversation));
    assert!(shown(Some(60)).contains(&format!("  {long}\n")));
}
