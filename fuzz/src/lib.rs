//! Checks of the adapters' fuzz targets: for any bytes an adapter does not panic, gives the same drafts however the
//! bytes are cut, and gives each run's events in the order of their positions; and its drafts can be read again.
//!
//! An input is a plain file, so that samples are seeds and findings can be inspected. The cuts come from its checksum.

mod dice;
mod distill;
mod mutate;
mod spine;

use std::collections::HashMap;
use std::fmt::Debug;

use steno_adapters::{Adapter, AdapterEntry, Completeness, Sink, Source, sniff};
use steno_model::{Draft, Evidence, ExchangeEvent, Frame, Lane, Position, RunId, Seq, Timestamp};

use dice::Dice;
pub use distill::check_tasks;
pub use mutate::mutate;
pub use spine::{check_segment, check_tar};

/// Makes the adapter of a surface.
type Open = fn(Source) -> Adapter;

/// Checks any input.
///
/// # Panics
/// If a check fails.
pub fn check(open: Open, input: &[u8]) {
    let whole = read(open, input, &[input.len()]);
    for (run, draft) in &whole.drafts {
        readable(*run, draft);
    }
    positions_increase(&whole.drafts);
    let mut dice = Dice::of(input);
    let cut = read(open, input, &cuts(input.len(), &mut dice));
    same(&whole.drafts, &cut.drafts);
    same(&whole.entries, &cut.entries);
    assert_eq!(whole.completeness, cut.completeness, "another cut counts otherwise");
    survive_disorder(open, input, &mut dice);
}

/// The output of an adapter for an input.
struct Reading {
    drafts: Vec<(RunId, Draft)>,
    entries: Vec<String>,
    completeness: Completeness,
}

#[derive(Default)]
struct Collected {
    drafts: Vec<(RunId, Draft)>,
    entries: Vec<String>,
}

impl Sink for Collected {
    fn draft(&mut self, run: RunId, draft: Draft) {
        self.drafts.push((run, draft));
    }

    fn wants_entries(&self) -> bool {
        true
    }

    fn entry(&mut self, entry: AdapterEntry<'_>) {
        let AdapterEntry { run, entry_type, timestamp, text, subtype, detail, raw, .. } = entry;
        let lengths = (detail.len(), raw.len());
        self.entries.push(format!("{run} {entry_type:?} {timestamp:?} {text:?} {subtype:?} {lengths:?}"));
    }
}

fn adapter(open: Open, input: &[u8]) -> Adapter {
    let adapter = open(Source { file_name: Some("fuzz.jsonl".to_owned()), ..Source::named("s1") });
    let is_conversation = sniff(input).is_some_and(|sniffed| sniffed.is_conversation);
    if is_conversation { adapter.of_conversation() } else { adapter }
}

/// Feeds an input in pieces that end at the given places.
fn read(open: Open, input: &[u8], ends: &[usize]) -> Reading {
    let mut adapter = adapter(open, input);
    let mut sink = Collected::default();
    let mut start = 0;
    for end in ends {
        adapter.feed(Frame::of_file(start as u64, &input[start..*end]), &mut sink);
        start = *end;
    }
    adapter.finish(&mut sink);
    let completeness = adapter.completeness().clone();
    Reading { drafts: sink.drafts, entries: sink.entries, completeness }
}

/// Checks that another cut gives the same output; shows the first difference.
fn same<T: PartialEq + Debug>(whole: &[T], cut: &[T]) {
    for (whole, cut) in whole.iter().zip(cut) {
        assert_eq!(whole, cut, "whole, and in pieces");
    }
    assert_eq!(whole.len(), cut.len(), "whole, and in pieces");
}

/// Draws places to cut at; small pieces and large ones, and some that are empty.
fn cuts(len: usize, dice: &mut Dice) -> Vec<usize> {
    let longest = [3, 40, 400, 4000][dice.below(4)];
    let mut ends = Vec::new();
    let mut end = 0;
    while end < len {
        end = len.min(end + dice.below(longest));
        ends.push(end);
    }
    ends
}

/// Checks that a strict reader accepts the line of a draft.
fn readable(run: RunId, draft: &Draft) {
    let mut line = Vec::new();
    let unknown = || Timestamp::from_record("".into());
    draft.clone().encode(run, unknown).write_line(Seq::FIRST, &mut line);
    if let Err(error) = ExchangeEvent::parse_strict(&line) {
        panic!("cannot read what was written: {error}\n{}", String::from_utf8_lossy(&line));
    }
}

fn positions_increase(drafts: &[(RunId, Draft)]) {
    let mut last: HashMap<RunId, Position> = HashMap::new();
    for (run, draft) in drafts {
        let event = draft.clone().encode(*run, || Timestamp::from_record("".into())).into_event(Seq::FIRST);
        let evidence = event.extra.get("evidence").and_then(Evidence::read);
        let position = evidence.expect("every event has its evidence").position;
        if let Some(before) = last.insert(*run, position) {
            assert!(before < position, "{before:?} comes before {position:?} in {run}");
        }
    }
}

/// Feeds mixed lanes, missing and repeated bytes, and rewritten sources: the output is not checked, but the adapter
/// must not panic.
fn survive_disorder(open: Open, input: &[u8], dice: &mut Dice) {
    let mut adapter = adapter(open, input);
    let mut sink = Collected::default();
    let mut generation = 0;
    let mut start = 0;
    for end in cuts(input.len(), dice) {
        let lane = if dice.below(4) == 0 { Lane::ToAgent } else { Lane::FromAgent };
        generation += u32::from(dice.below(64) == 0);
        let from = if dice.below(16) == 0 { dice.below(end + 1) } else { start };
        let frame = Frame { lane, generation, ..Frame::of_file(from as u64, &input[from.min(end)..end]) };
        adapter.feed(frame, &mut sink);
        start = end;
        if dice.below(32) == 0 {
            adapter.finish(&mut sink);
        }
    }
    adapter.finish(&mut sink);
    for (run, draft) in &sink.drafts {
        readable(*run, draft);
    }
}
