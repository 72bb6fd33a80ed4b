//! Rollouts record everything twice: what is the second record of the same, and what only looks like one.

use steno_adapters::{Source, codex};

use crate::made::{made_of_lines, outline};

const META: &str = r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#;
const BEGIN: &str = r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#;
const END: &str = r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1"}}"#;
const SPEAKS: &str = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#;

/// A prompt as the model sees it.
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

/// Reads lines after a header; returns what was said, prompts and answers alike.
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
fn a_prompt_with_other_words_is_another_prompt_even_right_after_it() {
    let want = ["turn-0001: user text One", "turn-0001: user text Two"];
    check(&[BEGIN, &user("One"), &model("Two")], &want);
    check(&[BEGIN, &model("One"), &user("Two")], &want);
    check(&[BEGIN, &user("One"), &model("One")], &want[..1]);
    check(&[BEGIN, &model("One"), &user("One ")], &["turn-0001: user text One", "turn-0001: user text One "]);
}

#[test]
fn the_same_words_in_a_later_turn_are_said_again() {
    let want = ["turn-0001: user text Go on", "turn-0002: user text Go on"];
    // Each turn has one of the two records only.
    check(&[BEGIN, &user("Go on"), END, BEGIN, &model("Go on")], &want);
    check(&[BEGIN, &model("Go on"), END, BEGIN, &user("Go on")], &want);
    check(&[BEGIN, &model("Go on"), BEGIN, &user("Go on")], &want);
    // And each has both.
    check(&[BEGIN, &model("Go on"), &user("Go on"), END, BEGIN, &model("Go on"), &user("Go on")], &want);
}

#[test]
fn before_turns_were_recorded_an_answer_comes_between_two_of_them() {
    check(
        &[&model("Go on"), SPEAKS, &user("Go on")],
        &["turn-0001: user text Go on", "turn-0001: assistant text Done.", "turn-0002: user text Go on"],
    );
}

#[test]
fn prompts_that_came_together_are_paired_by_their_words() {
    let want = ["turn-0001: user text One", "turn-0001: user text Two"];
    check(&[BEGIN, &model("One"), &model("Two"), &user("One"), &user("Two")], &want);
    check(&[BEGIN, &user("One"), &user("Two"), &model("One"), &model("Two")], &want);
    // Said twice in one turn, it is there twice.
    check(
        &[BEGIN, &model("One"), &user("One"), &model("One"), &user("One")],
        &["turn-0001: user text One", "turn-0001: user text One"],
    );
}

#[test]
fn what_only_the_second_record_of_a_prompt_has_is_kept() {
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
fn a_picture_that_only_the_second_record_of_a_prompt_has_is_kept() {
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
fn words_that_only_the_user_was_shown_are_said_when_the_turn_ends() {
    let told = event("agent_message", "message", "Only here.");
    let thought = event("agent_reasoning", "text", "Hm.");
    let want = ["turn-0001: assistant thinking Hm.", "turn-0001: assistant text Only here."];
    check(&[BEGIN, &thought, &told, END], &want);
    check(&[BEGIN, &thought, &told, BEGIN], &want);
    let item = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"m1","content":[{"type":"Text","text":"Only here."}]}}}"#;
    check(&[BEGIN, item, END], &want[1..]);
    // Without records of turns the next prompt ends one.
    check(
        &[&user("One"), &told, &user("Two")],
        &["turn-0001: user text One", want[1], "turn-0002: user text Two"],
    );
}

#[test]
fn words_that_the_response_has_too_are_said_once() {
    let told = event("agent_message", "message", "Done.");
    let want = ["turn-0001: assistant text Done."];
    check(&[BEGIN, &told, SPEAKS, END], &want);
    check(&[BEGIN, SPEAKS, &told, END], &want);
    // The user is not shown what Codex marks as its own.
    let marked = SPEAKS.replace("Done.", "Done.<oai-mem-citation>a.md:1-2</oai-mem-citation>");
    check(
        &[BEGIN, &told, &marked, END],
        &["turn-0001: assistant text Done.<oai-mem-citation>a.md:1-2</oai-mem-citation>"],
    );
    let item = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"m1","content":[{"type":"Text","text":"It is done."}]}}}"#;
    // Other words are other words, even with the response's id.
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
