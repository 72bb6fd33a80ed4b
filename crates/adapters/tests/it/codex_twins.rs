//! Rollouts record prompts and answers twice: tests which records are pairs and which only look like pairs.

use steno_adapters::{Source, codex};

use crate::adapter_output::{made_of_lines, outline};

const META: &str = r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#;
const BEGIN: &str = r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#;
const END: &str = r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1"}}"#;
const SPEAKS: &str = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#;

/// A prompt as the model gets it.
fn model(text: &str) -> String {
    format!(
        r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    )
}

/// A prompt as the user sees it.
fn user(text: &str) -> String {
    format!(r#"{{"type":"event_msg","payload":{{"type":"user_message","message":"{text}"}}}}"#)
}

fn event(kind: &str, field: &str, text: &str) -> String {
    format!(r#"{{"type":"event_msg","payload":{{"type":"{kind}","{field}":"{text}"}}}}"#)
}

/// Reads lines after a header; compares prompts, answers and facts.
#[track_caller]
fn check(lines: &[&str], want: &[&str]) {
    let all: Vec<&str> = [META].iter().chain(lines).copied().collect();
    let made = made_of_lines(codex::rollout(Source::named("s1")), &all);
    let shown = outline(&made);
    let said: Vec<&str> = shown
        .iter()
        .map(String::as_str)
        .filter(|line| line.contains(": user ") || line.contains(": assistant ") || line.contains("system"))
        .collect();
    assert_eq!(said, want);
}

#[test]
fn adjacent_prompts_with_different_text_are_two_messages() {
    let want = ["turn-0001: user text One", "turn-0001: user text Two"];
    check(&[BEGIN, &user("One"), &model("Two")], &want);
    check(&[BEGIN, &model("One"), &user("Two")], &want);
    check(&[BEGIN, &user("One"), &model("One")], &want[..1]);
    check(&[BEGIN, &model("One"), &user("One ")], &["turn-0001: user text One", "turn-0001: user text One "]);
}

#[test]
fn equal_prompts_in_two_turns_are_two_messages() {
    let want = ["turn-0001: user text Go on", "turn-0002: user text Go on"];
    // Each turn has only one of the two records.
    check(&[BEGIN, &user("Go on"), END, BEGIN, &model("Go on")], &want);
    check(&[BEGIN, &model("Go on"), END, BEGIN, &user("Go on")], &want);
    check(&[BEGIN, &model("Go on"), BEGIN, &user("Go on")], &want);
    // Each turn has both records.
    check(&[BEGIN, &model("Go on"), &user("Go on"), END, BEGIN, &model("Go on"), &user("Go on")], &want);
}

#[test]
fn answer_separates_equal_prompts_without_turn_records() {
    check(
        &[&model("Go on"), SPEAKS, &user("Go on")],
        &["turn-0001: user text Go on", "turn-0001: assistant text Done.", "turn-0002: user text Go on"],
    );
}

#[test]
fn adjacent_prompts_are_paired_by_text() {
    let want = ["turn-0001: user text One", "turn-0001: user text Two"];
    check(&[BEGIN, &model("One"), &model("Two"), &user("One"), &user("Two")], &want);
    check(&[BEGIN, &user("One"), &user("Two"), &model("One"), &model("Two")], &want);
    // A prompt that was sent twice in a turn is recorded twice.
    check(
        &[BEGIN, &model("One"), &user("One"), &model("One"), &user("One")],
        &["turn-0001: user text One", "turn-0001: user text One"],
    );
}

#[test]
fn mention_in_only_the_second_record_is_kept() {
    let item = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","id":"i1","content":[{"type":"text","text":"Read @a"},{"type":"mention","name":"a","path":"app://a"}]}}}"#;
    check(
        &[BEGIN, &model("Read @a"), item],
        &[
            "turn-0001: user text Read @a",
            r#"turn-0001: system mention {"name":"a","path":"app://a","type":"mention"}"#,
        ],
    );
    check(&[BEGIN, item, &model("Read @a")], &["turn-0001: user text Read @a, text[mention] "]);
}

#[test]
fn picture_in_only_the_second_record_is_kept() {
    let shown = r#"{"type":"event_msg","payload":{"type":"user_message","message":"Look","images":["data:x"],"local_images":[]}}"#;
    check(
        &[BEGIN, &model("Look"), shown],
        &["turn-0001: user text Look", r#"turn-0001: system image {"size_bytes":8}"#],
    );
    let sent = model("Look").replace("}]", r#"},{"type":"input_image","image_url":"data:x"}]"#);
    check(&[BEGIN, &sent, shown], &["turn-0001: user text Look, text[input_image] "]);
    check(&[BEGIN, shown, &sent], &["turn-0001: user text Look, text[image] "]);
}

#[test]
fn text_in_display_events_only_is_recorded_at_the_turn_end() {
    let told = event("agent_message", "message", "Only here.");
    let thought = event("agent_reasoning", "text", "Hm.");
    let want = ["turn-0001: assistant thinking Hm.", "turn-0001: assistant text Only here."];
    check(&[BEGIN, &thought, &told, END], &want);
    check(&[BEGIN, &thought, &told, BEGIN], &want);
    let item = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"m1","content":[{"type":"Text","text":"Only here."}]}}}"#;
    check(&[BEGIN, item, END], &want[1..]);
    // Without turn records the next prompt ends a turn.
    check(
        &[&user("One"), &told, &user("Two")],
        &["turn-0001: user text One", want[1], "turn-0002: user text Two"],
    );
}

#[test]
fn text_in_display_event_and_response_is_recorded_once() {
    let told = event("agent_message", "message", "Done.");
    let want = ["turn-0001: assistant text Done."];
    check(&[BEGIN, &told, SPEAKS, END], &want);
    check(&[BEGIN, SPEAKS, &told, END], &want);
    // Codex removes its own markup before it displays a text.
    let marked = SPEAKS.replace("Done.", "Done.<oai-mem-citation>a.md:1-2</oai-mem-citation>");
    check(
        &[BEGIN, &told, &marked, END],
        &["turn-0001: assistant text Done.<oai-mem-citation>a.md:1-2</oai-mem-citation>"],
    );
    let item = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"m1","content":[{"type":"Text","text":"It is done."}]}}}"#;
    // A different text is kept, even with the id of the response.
    let named = SPEAKS.replace(r#""role""#, r#""id":"m1","role""#);
    check(&[BEGIN, item, &named, END], &[want[0], "turn-0001: assistant text It is done."]);
    check(
        &[BEGIN, SPEAKS, &event("agent_message", "message", "on"), END],
        &[want[0], "turn-0001: assistant text on"],
    );
    let thought = r#"{"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}}"#;
    check(
        &[
            BEGIN,
            &event("agent_reasoning", "text", "a"),
            &event("agent_reasoning", "text", "b"),
            thought,
            END,
        ],
        &["turn-0001: assistant thinking a\n\nb"],
    );
}
