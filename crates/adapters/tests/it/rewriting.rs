//! Rewritten sources: if a line is removed or inserted, only that line gives new events.

use serde_json::Value;
use steno_adapters::{Adapter, claude, codex, copilot, gemini};
use steno_model::{Draft, Frame, RunId, Seq, Timestamp};
use steno_testkit::places;

use crate::reading::source_of;

/// Opens the adapter of a file.
type Open = fn(&str) -> Adapter;

const FILES: [(&str, Open); 11] = [
    ("claude/plain.in.jsonl", disk),
    ("claude/blocks.in.jsonl", disk),
    ("claude/background.in.jsonl", disk),
    ("codex/rollout_plain_0_166.in.jsonl", rollout),
    ("codex/rollout_plain_0_130.in.jsonl", rollout),
    ("codex/rollout_blocks.in.jsonl", rollout),
    ("copilot/plain.in.jsonl", events),
    ("copilot/subagents.in.jsonl", events),
    ("copilot/approvals.in.jsonl", events),
    ("gemini/chat_plain.in.jsonl", chat),
    ("gemini/chat_blocks.in.jsonl", chat),
];

fn disk(name: &str) -> Adapter {
    claude::disk(source_of(name.as_ref()))
}

fn rollout(name: &str) -> Adapter {
    codex::rollout(source_of(name.as_ref()))
}

fn chat(name: &str) -> Adapter {
    gemini::chat(source_of(name.as_ref()))
}

fn events(name: &str) -> Adapter {
    copilot::events(source_of(name.as_ref()))
}

/// Returns the steps that each generation after the first adds, as name and result.
fn added(mut adapter: Adapter, generations: &[String]) -> Vec<Vec<(String, Value)>> {
    let mut drafts: Vec<(RunId, Draft)> = Vec::new();
    let mut added = Vec::new();
    for (generation, text) in (0..).zip(generations) {
        drafts.clear();
        adapter.feed(Frame { generation, ..Frame::of_file(0, text.as_bytes()) }, &mut drafts);
        adapter.pause(&mut drafts);
        added.push(drafts.drain(..).map(|(run, draft)| step(run, draft)).collect());
    }
    added.remove(0);
    added
}

fn step(run: RunId, draft: Draft) -> (String, Value) {
    let event = draft.into_event(run, Seq::FIRST, || Timestamp::parse("1999-01-01T00:00:00Z").unwrap());
    let payload: Value = serde_json::from_str(event.payload.as_str()).unwrap();
    (payload["name"].as_str().unwrap_or("?").to_owned(), payload["result"].clone())
}

fn names(steps: &[(String, Value)]) -> Vec<&str> {
    steps.iter().map(|(name, _)| name.as_str()).collect()
}

/// Runs a check for each file and each of its lines except the first, which has the session id.
fn for_each_line(check: impl Fn(&str, Open, &[&str], usize)) {
    for (name, open) in FILES {
        let text = places::read(places::workspace_root().join("crates/adapters/tests/golden").join(name));
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert!(lines.len() > 3, "{name}");
        (1..lines.len()).for_each(|at| check(name, open, &lines, at));
    }
}

#[test]
fn removed_line_is_reported_once() {
    for_each_line(|name, open, lines, at| {
        let less = [&lines[..at], &lines[at + 1..]].concat().concat();
        let steps = added(open(name), &[lines.concat(), less.clone(), less]);
        let is_last = at == lines.len() - 1;
        let want: &[&str] = if is_last { &["rewritten"] } else { &["rewritten", "vanished"] };
        assert_eq!(names(&steps[0]), want, "{name} without line {at}");
        // A removed last line is reported when the next generation begins.
        let told = if is_last { &steps[1] } else { &steps[0] };
        let offset: usize = lines[..at].iter().map(|line| line.len()).sum();
        assert_eq!(told[1].1["offset"], offset, "{name} without line {at}");
        assert_eq!(
            (names(&steps[1]).len(), told[1].1["generation"].as_u64()),
            (1 + usize::from(is_last), Some(0))
        );
    });
}

#[test]
fn inserted_line_gives_the_only_new_event() {
    let dream = "{\"type\":\"dream\",\"timestamp\":\"2026-06-08T08:14:42.123Z\"}\n";
    for_each_line(|name, open, lines, at| {
        let more = [&lines[..at], &[dream], &lines[at..]].concat().concat();
        let steps = added(open(name), &[lines.concat(), more]);
        let names = names(&steps[0]);
        let is_all = names.len() == 2 && names[0] == "rewritten" && names[1].ends_with("dream");
        assert!(is_all, "{name} before line {at}: {names:?}");
    });
}
