//! Cuts, gaps, pauses and rewriting, whatever the provider.

use steno_model::{Draft, EventType, RunId};

use super::*;
use crate::claude;

const SESSION: &str = "550e8400-e29b-41d4-a716-446655440000";

fn line(number: u32) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"sessionId\":\"{SESSION}\",\"timestamp\":\"2026-06-08T08:14:42.123Z\",\"message\":{{\"content\":\"{number}\"}}}}\n"
    )
}

fn fed(frames: &[(u32, u64, &[u8])]) -> (Vec<(RunId, Draft)>, Completeness) {
    let mut adapter = claude::disk(Source::named("s"));
    let mut out = Vec::new();
    for (generation, offset, bytes) in frames {
        adapter.feed(Frame { generation: *generation, ..Frame::of_file(*offset, bytes) }, &mut out);
    }
    adapter.finish(&mut out);
    (out, adapter.completeness().clone())
}

#[test]
fn bytes_seen_before_are_passed_over() {
    let text = format!("{}{}", line(1), line(2));
    let whole = fed(&[(0, 0, text.as_bytes())]);
    assert_eq!(fed(&[(0, 0, &text.as_bytes()[..50]), (0, 20, &text.as_bytes()[20..])]), whole);
    assert_eq!(fed(&[(0, 0, text.as_bytes()), (0, 3, &text.as_bytes()[3..9])]), whole);
}

#[test]
fn a_gap_costs_the_record_that_it_is_in_and_no_other() {
    let text = format!("{}{}{}", line(1), line(2), line(3));
    let bytes = text.as_bytes();
    let (cut, on) = (line(1).len() + 30, line(1).len() + 60);
    let (drafts, completeness) = fed(&[(0, 0, &bytes[..cut]), (0, on as u64, &bytes[on..])]);
    assert_eq!((completeness.records, completeness.unreadable), (2, 2));
    assert!(!drafts.is_empty());
}

#[test]
fn a_rewritten_source_gives_no_event_twice_and_tells_what_vanished() {
    let before = format!("{}{}", line(1), line(2));
    let after = format!("{}{}", line(2), line(3));
    let (drafts, completeness) = fed(&[(0, 0, before.as_bytes()), (1, 0, after.as_bytes())]);
    let (plain, _) = fed(&[(0, 0, format!("{before}{}", line(3)).as_bytes())]);
    assert_eq!(drafts.len(), plain.len() + 2, "and that it was rewritten, and what it has lost");
    let shown = format!("{drafts:?}");
    assert!(shown.contains(r#""name":"rewritten","kind":"system","result":{"records_before":2}"#), "{shown}");
    let lost = format!(r#""result":{{"generation":0,"offset":0,"length":{}}}"#, line(1).trim_end().len());
    assert!(shown.contains(&format!(r#""name":"vanished","kind":"system",{lost}"#)), "{shown}");
    assert_eq!(completeness.vanished, 1);
}

/// Two records in one line are what a writer leaves that was killed before its newline.
#[test]
fn a_generation_that_begins_with_a_glued_line_is_the_same_however_it_came() {
    let glued = format!("{}{}", line(2).trim_end(), line(3));
    let whole = fed(&[(0, 0, line(1).as_bytes()), (1, 0, glued.as_bytes())]);
    let mut positions: Vec<_> =
        whole.0.iter().map(|(_, draft)| format!("{:?}", draft.field("evidence"))).collect();
    positions.dedup();
    assert_eq!(positions.len(), whole.0.len());
    let mut adapter = claude::disk(Source::named("s"));
    let mut out = Vec::new();
    let cut = line(2).trim_end().len();
    adapter.feed(Frame::of_file(0, line(1).as_bytes()), &mut out);
    adapter.feed(Frame { generation: 1, ..Frame::of_file(0, &glued.as_bytes()[..cut]) }, &mut out);
    adapter.pause(&mut out);
    adapter.feed(Frame { generation: 1, ..Frame::of_file(cut as u64, &glued.as_bytes()[cut..]) }, &mut out);
    adapter.finish(&mut out);
    assert_eq!(out, whole.0);
}

#[test]
fn a_source_that_is_read_once_remembers_nothing() {
    let text = format!("{}{}", line(1), line(2));
    let mut adapter = claude::disk(Source::named("s")).read_once();
    let mut out = Vec::new();
    adapter.feed(Frame::of_file(0, text.as_bytes()), &mut out);
    adapter.finish(&mut out);
    assert_eq!(out, fed(&[(0, 0, text.as_bytes())]).0);
    assert!(adapter.memory.seen.is_none());
}

#[test]
fn pausing_anywhere_changes_nothing() {
    let text = format!("{{\"type\":\"dream\"}}\n{}{}", line(1), line(2));
    let bytes = text.as_bytes();
    let whole = fed(&[(0, 0, bytes)]).0;
    for cut in 0..bytes.len() {
        let mut adapter = claude::disk(Source::named("s"));
        let mut out = Vec::new();
        adapter.feed(Frame::of_file(0, &bytes[..cut]), &mut out);
        adapter.pause(&mut out);
        adapter.pause(&mut out);
        adapter.feed(Frame::of_file(cut as u64, &bytes[cut..]), &mut out);
        adapter.finish(&mut out);
        assert_eq!(out, whole, "cut at {cut}");
    }
}

#[test]
fn a_value_that_nests_too_deep_costs_nothing_but_itself() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(
        "{{\"type\":\"assistant\",\"uuid\":\"u\",\"sessionId\":\"{SESSION}\",\"message\":{{\"id\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"Look.\"}},{{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Read\",\"input\":{deep}}}]}}}}\n"
    );
    let (drafts, _) = fed(&[(0, 0, text.as_bytes())]);
    let types: Vec<_> = drafts.iter().map(|(_, draft)| draft.event_type()).collect();
    assert_eq!(types, [EventType::RunStarted, EventType::MessageAssistant, EventType::ToolCall]);
    let shown = format!("{drafts:?}");
    assert!(shown.contains("Look.") && shown.contains("too_deep"));
}

#[test]
fn a_last_line_without_a_newline_is_read_when_it_is_whole() {
    let text = format!("{}{}", line(1), line(2));
    let whole = fed(&[(0, 0, text.as_bytes())]);
    assert_eq!(fed(&[(0, 0, text.trim_end().as_bytes())]), whole);
    let (drafts, completeness) = fed(&[(0, 0, &text.as_bytes()[..text.len() - 9])]);
    assert!(drafts.len() < whole.0.len());
    assert_eq!(completeness.torn_bytes, (line(2).len() - 9) as u64);
}

#[test]
fn what_cannot_be_read_is_told_once_over_all_generations() {
    let text = format!("{}garbage\n", line(1));
    let generations: Vec<_> = (0..3).map(|generation| (generation, 0, text.as_bytes())).collect();
    let (drafts, completeness) = fed(&generations);
    assert_eq!(completeness.unreadable, 1);
    assert_eq!(format!("{drafts:?}").matches("unreadable").count(), 1);
}
