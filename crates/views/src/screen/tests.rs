//! Drawn conversations: what each detail shows, narrow and wide terminals, hostile texts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use steno_model::ExchangeEvent;
use steno_session::{Content, Session, SessionBuilder};

use super::*;
use crate::conversation::Conversation;
use crate::digest::SessionDigest;
use crate::testing::{run_id, time};

/// Folds a run from type, path and payload of its events.
fn session(lines: &[Value]) -> Session {
    let mut builder = SessionBuilder::new(run_id(1), Content::Whole);
    for (index, line) in lines.iter().enumerate() {
        let seq = index as u64 + 1;
        let mut event = json!({
            "seq": seq, "run_id": run_id(1).to_string(), "type": line[0], "path": line[1], "iteration": 0,
            "timestamp": time(seq), "payload": line[2],
        });
        for (name, value) in line[3].as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        builder.push(&ExchangeEvent::parse(event.to_string().as_bytes()).unwrap());
    }
    builder.finish()
}

/// Draws a run; colours are not shown.
fn drawn(lines: &[Value], width: Option<usize>, detail: Detail) -> Vec<String> {
    drawn_as(lines, width, detail, &|_, words, line| line.push_str(words))
}

fn drawn_as(
    lines: &[Value],
    width: Option<usize>,
    detail: Detail,
    paint: &dyn Fn(ScreenTone, &str, &mut String),
) -> Vec<String> {
    let session = session(lines);
    let (conversation, children) = (Conversation::of(&session), BTreeMap::new());
    let style = ScreenStyle {
        paint,
        time: &ToString::to_string,
        width,
        detail,
        is_folded: width.is_some(),
        has_marks: true,
        has_every_step: false,
        is_live: false,
        focus: None,
        children: &children,
        absent_child: "",
        directory: Some("/srv/shop"),
    };
    let mut out = Vec::new();
    let mut sink = |line: &str| {
        out.push(line.to_owned());
        true
    };
    let mut screen = Screen::new(style, &mut sink);
    screen.header(&SessionDigest::of(&session), &conversation, &HeaderFacts::default());
    screen.conversation(&conversation);
    out
}

/// Draws what follows the header.
#[track_caller]
fn check(lines: &[Value], detail: Detail, want: &[&str]) {
    let out = drawn(lines, Some(60), detail);
    let start = out.iter().position(String::is_empty).map_or(0, |blank| blank + 1);
    assert_eq!(out[start..], want.iter().map(ToString::to_string).collect::<Vec<_>>());
}

fn said(role: &str, text: &str) -> Value {
    json!([format!("message.{role}"), "t1", {"role": role, "blocks": [{"type": "text", "text": text}]}])
}

fn thought(text: &str) -> Value {
    json!(["message.assistant", "t1", {"role": "assistant", "blocks": [{"type": "thinking", "thinking": text}]}])
}

fn turn() -> Value {
    json!(["step.started", "t1", {"name": "t1", "kind": "turn"}])
}

fn call(id: &str, name: &str, class: &str, input: &Value) -> Value {
    json!(["tool.call", "t1", {"name": name, "call_id": id, "class": class, "input": input}])
}

fn result(id: &str, outcome: &str, output: &Value) -> Value {
    json!(["tool.result", "t1", {"call_id": id, "outcome": outcome, "output": output}])
}

/// A turn with something of each kind.
fn work() -> Vec<Value> {
    vec![
        turn(),
        said("user", "The checkout fails when the gateway has a hiccup. Make it retry."),
        thought("Read the code first."),
        said("assistant", "I'll look at **charge**."),
        call("c1", "Read", "other", &json!({"file_path": "/srv/shop/checkout.py"})),
        result("c1", "ok", &json!("def charge")),
        call("c2", "Grep", "other", &json!({"pattern": "Error", "path": "/srv/shop"})),
        result("c2", "ok", &json!("a.py:1\nb.py:2")),
        call(
            "c3",
            "Edit",
            "file_change",
            &json!({"file_path": "/srv/shop/checkout.py", "old_string": "a\nb = 1", "new_string": "a\nb = 2"}),
        ),
        result("c3", "ok", &json!("The file was updated.")),
        call("c4", "Bash", "command", &json!({"command": "pytest -q"})),
        result("c4", "failed", &json!("Exit code 1\n\u{1b}[31mE  assert 1 == 3\u{1b}[0m\n1 failed")),
        call("c5", "Write", "file_change", &json!({"file_path": "/etc/x", "content": "y"})),
        result("c5", "denied", &json!("no")),
        said("assistant", "One test fails."),
    ]
}

/// Returns the lines of a drawn session that are below its only call.
fn below_call(output: &str, width: usize) -> Vec<String> {
    let lines = [
        turn(),
        call("c1", "Bash", "command", &json!({"command": "make"})),
        result("c1", "failed", &json!(output)),
    ];
    let out = drawn(&lines, Some(width), Detail::Changes);
    let start = out.iter().position(|line| line.contains("$ make")).unwrap();
    out[start + 1..].to_vec()
}

#[test]
fn outputs_are_broken_between_words_and_stay_under_the_gutter() {
    let words = "error: the gateway did not answer within the time that was set for it, so the order was neither \
                 charged nor cancelled";
    assert_eq!(
        below_call(words, 80),
        [
            "       error: the gateway did not answer within the time that was set for it, so",
            "       the order was neither charged nor cancelled"
        ]
    );
    assert_eq!(below_call(words, 140), [format!("       {words}")]);
    // A word that is wider than the line is broken anywhere.
    let token = format!("sum {}", "0123456789".repeat(16));
    let want = |columns: usize| -> Vec<String> {
        let letters: Vec<char> = token.chars().collect();
        letters
            .chunks(columns - 7)
            .map(|part| format!("       {}", part.iter().collect::<String>()))
            .collect()
    };
    assert_eq!(below_call(&token, 80), want(80));
    assert_eq!(below_call(&token, 140), want(140));
}

#[test]
fn numbers_for_people_have_commas() {
    let mut lines = vec![turn()];
    for number in 0..1_200 {
        let id = format!("c{number}");
        lines.push(call(&id, "Bash", "command", &json!({"command": "make"})));
        lines.push(result(&id, "failed", &json!("no")));
    }
    let found = json!("a.rs\n".repeat(1_500));
    lines.extend([call("g", "Grep", "other", &json!({"pattern": "x"})), result("g", "ok", &found)]);
    for width in [80, 140] {
        let out = drawn(&lines, Some(width), Detail::Changes).join("\n");
        for want in ["1,201 calls · 1,200 failed", "Grep x (1,500)"] {
            assert!(out.contains(want), "{want}: {}", &out[..400]);
        }
    }
}

#[test]
fn answers_are_prompts_and_last_words() {
    check(
        &work(),
        Detail::Answers,
        &[
            "── t1  2026-06-08T00:00:01Z  open",
            " you │ The checkout fails when the gateway has a hiccup.",
            "     │ Make it retry.",
            "",
            "     ▸ 5 calls  1 failed",
            "  ai │ One test fails.",
        ],
    );
}

#[test]
fn calls_are_lines() {
    check(
        &work(),
        Detail::Calls,
        &[
            "── t1  2026-06-08T00:00:01Z  open",
            " you │ The checkout fails when the gateway has a hiccup.",
            "     │ Make it retry.",
            "",
            "  ai │ I'll look at **charge**.",
            "     ▸ Read checkout.py · Grep Error (2)",
            "     ▸ Edit checkout.py  +1 −1                          1.0s",
            "     ✗ $ pytest -q                            exit 1    1.0s",
            "       E  assert 1 == 3",
            "       1 failed",
            "     ⊘ Write /etc/x                           denied    1.0s",
            "       no",
            "",
            "  ai │ One test fails.",
        ],
    );
}

#[test]
fn changes_are_diffs_and_thoughts_are_shown() {
    let out = drawn(&work(), Some(60), Detail::Changes);
    for want in ["     ┊ Read the code first.", "         a", "       - b = 1", "       + b = 2"] {
        assert!(out.iter().any(|line| line == want), "{want} in {out:#?}");
    }
    assert!(!out.iter().any(|line| line.contains("was updated")), "the diff says it: {out:#?}");
    assert!(!out.iter().any(|line| line.contains("+ y")), "a denied change did not happen: {out:#?}");
}

#[test]
fn everything_shows_inputs_and_outputs() {
    let out = drawn(&work(), Some(60), Detail::Everything).join("\n");
    for want in ["def charge", "a.py:1", "The file was updated.", r#"input {"path":"/srv/shop","pattern""#] {
        assert!(out.contains(want), "{want} in {out}");
    }
}

#[test]
fn header_says_what_the_record_lacks() {
    let out = drawn(&work(), None, Detail::Answers);
    let end = out.iter().position(String::is_empty).unwrap();
    assert_eq!(
        out[..end],
        [
            "The checkout fails when the gateway has a hiccup. Make it retry.".to_owned(),
            "2026-06-08T00:00:01Z · 14s · open · 1 prompt · 5 calls · 1 failed · 1 denied".to_owned(),
            format!("run {}", run_id(1)),
            "not recorded: approvals, tokens".to_owned(),
        ]
    );
}

#[test]
fn long_outputs_are_folded_on_a_terminal_and_whole_in_a_pipe() {
    let output = (1..=50).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
    let lines = [
        turn(),
        call("c1", "Bash", "command", &json!({"command": "seq 50"})),
        result("c1", "ok", &json!(output)),
    ];
    let folded = drawn(&lines, Some(60), Detail::Changes);
    assert!(folded.iter().any(|line| line == "       ⋯ 44 more lines, shown by -t 4"), "{folded:#?}");
    assert!(folded.iter().any(|line| line == "       50"), "the end is shown: {folded:#?}");
    for whole in [drawn(&lines, None, Detail::Changes), drawn(&lines, Some(60), Detail::Everything)] {
        assert!(whole.iter().filter(|line| line.starts_with("       ")).count() >= 50, "{whole:#?}");
    }
}

#[test]
fn system_steps_are_out_of_the_way() {
    let step = |name: &str| json!(["step.completed", "", {"name": name, "kind": "system", "result": "x"}]);
    let lines = [step("env"), step("env"), step("model"), step("local_command")];
    let body = |detail| drawn(&lines, Some(60), detail).split_off(3);
    assert_eq!(body(Detail::Changes), ["     · system local_command  x"]);
    assert_eq!(
        body(Detail::Outputs),
        ["     · 3 system steps: env ×2, model", "     · system local_command  x"]
    );
    assert_eq!(body(Detail::Everything).len(), 4);
}

#[test]
fn markdown_is_drawn_to_the_width() {
    let text = "# Title\n\n1. one two three four five six seven eight nine ten eleven\n2. two\n\n\
        | a | b |\n|---|--:|\n| x | 12 |\n\n```sh\nls\n```\n\n> quoted\n";
    let out = drawn(&[turn(), said("assistant", text)], Some(40), Detail::Calls);
    let from = out.iter().position(|line| line.contains("Title")).unwrap();
    assert_eq!(
        out[from..],
        [
            "  ai │ # Title",
            "     │",
            "     │ 1. one two three four five six",
            "     │    seven eight nine ten eleven",
            "     │ 2. two",
            "     │",
            "     │ a │  b",
            "     │ ──┼───",
            "     │ x │ 12",
            "     │",
            "     │ ```sh",
            "     │ ls",
            "     │ ```",
            "     │",
            "     │ > quoted",
        ]
    );
}

/// The texts of a hostile agent: escape sequences, reversed text, wide and combining letters, long lines.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "[\\x00-\\x1f\\x7f\u{9b}\u{202e}\u{200b}a\u{1b}\\[\\]0-9;m]{0,80}",
        "[日本語e\u{301}\u{1f469}\u{200d} ]{0,200}",
        "[#>*_`|\\[\\]()\n -]{0,80}",
        "x{0,3000}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_control_character_is_drawn_and_lines_fit(
        (prompt, answer, output, command) in (hostile(), hostile(), hostile(), hostile()),
        width in 50..120_usize,
        detail in 0..5_usize,
    ) {
        let lines = [
            turn(),
            said("user", &prompt),
            thought(&answer),
            said("assistant", &answer),
            call("c1", &command, "command", &json!({"command": command})),
            result("c1", "failed", &json!(output)),
            call("c2", "Edit", "file_change", &json!({"path": command, "old_str": output, "new_str": answer})),
            result("c2", "ok", &json!(output)),
        ];
        for width in [Some(width), None] {
            for line in drawn(&lines, width, Detail::ALL[detail]) {
                prop_assert!(!line.contains(char::is_control), "{line:?}");
                prop_assert!(!line.contains(['\u{202e}', '\u{200b}', '\u{9b}']), "{line:?}");
                if let Some(width) = width {
                    prop_assert!(crate::columns_of(&line) <= width, "{line:?} in {width}");
                }
            }
        }
    }
}
