//! Files that change while they are followed, and the end of following.

use std::fs;

use crate::bench::{Bench, Step, append, sources, store, transcript, transcripts};
use crate::sessions::{SESSION, prompt, response, turn};

/// The first line is torn, and longer than what comes after it.
#[test]
fn a_session_is_recognised_as_soon_as_a_line_tells_whose_it_is() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, "x".repeat(4000) + "\n" + &prompt(1)[..100]).unwrap();
    let followed = store();
    let step: Step<'_> = Box::new(|| append(&path, &prompt(1)[100..]));
    bench.follow(&followed, [step]);
    let imported = store();
    bench.import(&imported);
    assert_eq!(transcript(&followed), transcript(&imported));
}
