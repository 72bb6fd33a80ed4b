//! Cuts, gaps, pauses and rewrites, which all providers share.

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
fn repeated_bytes_are_skipped() {
    let text = format!("{}{}", line(1), line(2));
    let whole = fed(&[(0, 0, text.as_bytes())]);
    assert_eq!(fed(&[(0, 0, &text.as_bytes()[..50]), (0, 20, &text.as_bytes()[20..])]), whole);
    assert_eq!(fed(&[(0, 0, text.as_bytes()), (0, 3, &text.as_bytes()[3..9])]), whole);
}

#[test]
fn gap_in_the_bytes_loses_only_its_own_record() {
    let text = format!("{}{}{}", line(1), line(2), line(3));
    let bytes = text.as_bytes();
    let (cut, on) = (line(1).len() + 30, line(1).len() + 60);
    let (drafts, completeness) = fed(&[(0, 0, &bytes[..cut]), (0, on as u64, &bytes[on..])]);
    assert_eq!((completeness.records, completeness.unreadable), (2, 2));
    assert!(!drafts.is_empty());
}

#[test]
fn rewritten_source_repeats_no_event_and_reports_vanished_records() {
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

/// A writer that was killed before its newline leaves two records on one line.
#[test]
fn two_records_on_the_first_line_of_a_generation_are_read_in_any_pieces() {
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
fn read_once_keeps_no_earlier_records() {
    let text = format!("{}{}", line(1), line(2));
    let mut adapter = claude::disk(Source::named("s")).read_once();
    let mut out = Vec::new();
    adapter.feed(Frame::of_file(0, text.as_bytes()), &mut out);
    adapter.finish(&mut out);
    assert_eq!(out, fed(&[(0, 0, text.as_bytes())]).0);
    assert!(adapter.memory.seen.is_none());
}

#[test]
fn pause_at_any_byte_changes_nothing() {
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
fn too_deep_value_does_not_affect_the_rest_of_its_record() {
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
fn last_line_without_a_newline_is_read_if_complete() {
    let text = format!("{}{}", line(1), line(2));
    let whole = fed(&[(0, 0, text.as_bytes())]);
    assert_eq!(fed(&[(0, 0, text.trim_end().as_bytes())]), whole);
    let (drafts, completeness) = fed(&[(0, 0, &text.as_bytes()[..text.len() - 9])]);
    assert!(drafts.len() < whole.0.len());
    assert_eq!(completeness.torn_bytes, (line(2).len() - 9) as u64);
}

#[test]
fn unreadable_line_is_reported_once_over_all_generations() {
    let text = format!("{}garbage\n", line(1));
    let generations: Vec<_> = (0..3).map(|generation| (generation, 0, text.as_bytes())).collect();
    let (drafts, completeness) = fed(&generations);
    assert_eq!(completeness.unreadable, 1);
    assert_eq!(format!("{drafts:?}").matches("unreadable").count(), 1);
}
