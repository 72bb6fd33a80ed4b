//! A session with more runs than are open at a time.

use std::fs;

use crate::bench::{Bench, Step, append, sources, store, transcripts};
use crate::sessions::{SESSION, sidechain};

/// The number of subagents that work at the same time.
const SUBAGENTS: u32 = 30;
/// The number of records of each subagent.
const ROUNDS: u32 = 3;

/// Returns one record of each subagent.
fn round(number: u32) -> String {
    let write = |subagent: u32| {
        let own = |round: u32| round * 100 + subagent;
        sidechain(own(number), number.checked_sub(1).map(own))
    };
    (1..=SUBAGENTS).map(write).collect()
}

#[test]
fn run_that_was_closed_for_others_continues() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, round(0)).unwrap();
    let followed = store();
    let add = |number: u32| -> Step<'_> {
        let path = path.clone();
        Box::new(move || append(&path, &round(number)))
    };
    bench.follow(&followed, (1..ROUNDS).map(add));
    let whole = store();
    bench.import(&whole);
    let again = store();
    fs::remove_file(&path).unwrap();
    for number in 0..ROUNDS {
        append(&path, &round(number));
        bench.import(&again);
    }
    let runs = transcripts(&whole);
    let prompts = |text: &String| text.matches(r#""type":"message.user""#).count();
    let mut counts: Vec<usize> = runs.values().map(prompts).collect();
    counts.sort_unstable();
    let each = std::iter::repeat_n(ROUNDS as usize, SUBAGENTS as usize);
    assert_eq!(counts, std::iter::once(0).chain(each).collect::<Vec<_>>());
    for other in [&followed, &again] {
        assert_eq!((sources(other), transcripts(other)), (sources(&whole), runs.clone()));
    }
}
