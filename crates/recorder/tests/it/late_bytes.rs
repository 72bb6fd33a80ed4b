//! Bytes that a writer appends to a file after it was replaced.

use std::fs;
use std::io::Write as _;

use crate::bench::{Bench, Step, append, copy, sources, store, transcript};
use crate::sessions::{SESSION, prompt, response, turn};

#[test]
fn late_bytes_change_nothing_after_a_kill() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, turn(1, 2)).unwrap();
    let mut old = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let (whole, killed) = (store(), store());
    let steps: [Step<'_>; 3] = [
        Box::new(|| {
            fs::rename(&path, bench.path("aside")).unwrap();
            fs::write(&path, prompt(10)).unwrap();
        }),
        Box::new(|| {
            old.write_all(prompt(11).as_bytes()).unwrap();
            append(&path, &prompt(12));
        }),
        Box::new(|| {
            copy(&whole, &killed);
            append(&path, &prompt(11));
            append(&path, &response(13, 1));
        }),
    ];
    bench.follow(&whole, steps);
    assert_eq!(sources(&whole)[0].1[0], turn(1, 2) + &prompt(11), "the late bytes are kept");
    bench.follow(&killed, []);
    assert_eq!(sources(&killed), sources(&whole));
    assert_eq!(transcript(&killed), transcript(&whole));
}
