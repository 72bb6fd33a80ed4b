//! A process is killed while it records: the next one writes the same events, each once.

use std::collections::BTreeMap;
use std::fs;

use steno_testkit::sim_disk::SimDisk;

use crate::bench::{Bench, Step, append, copy, copy_of, sources, store, transcript_path, transcripts};
use crate::sessions::{SESSION, prompt, response, results, turn};

/// Returns the offsets at which a transcript is cut: after and inside every line.
fn cuts(text: &str) -> Vec<usize> {
    let mut cuts = vec![0];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        cuts.extend([start + 1, start + line.len() / 2, start + line.len() - 1, start + line.len()]);
        start += line.len();
    }
    cuts
}

/// Cuts each transcript of a killed store at each offset, records again, and compares with an undisturbed store.
fn check_every_cut(bench: &Bench, killed: &SimDisk, want: &SimDisk, record_again: fn(&Bench, &SimDisk)) {
    let want = transcripts(want);
    let mut count = 0;
    for (run, text) in &transcripts(killed) {
        for cut in cuts(text) {
            let again = copy_of(killed);
            again.tamper(&transcript_path(run), &text.as_bytes()[..cut]);
            record_again(bench, &again);
            assert_same(&transcripts(&again), &want, &format!("{run} cut at {cut}"));
            count += 1;
        }
    }
    assert!(count > 20, "only {count} cuts");
}

#[track_caller]
fn assert_same(found: &BTreeMap<String, String>, want: &BTreeMap<String, String>, about: &str) {
    for (run, want) in want {
        let found = found.get(run).map_or("", String::as_str);
        let mut both = found.lines().zip(want.lines());
        let differing = both.find(|(found, want)| found != want);
        let counts = (found.lines().count(), want.lines().count());
        assert!(found == want, "{about}: {run} differs, {counts:?} lines: {differing:#?}");
    }
    assert_eq!(found.len(), want.len(), "{about}");
}

fn import(bench: &Bench, store: &SimDisk) {
    bench.import(store);
}

fn follow(bench: &Bench, store: &SimDisk) {
    bench.follow(store, []);
}

#[test]
fn kill_between_two_events_changes_nothing() {
    let bench = Bench::new();
    let session = turn(1, 3) + &prompt(5) + response(6, 4).trim_end();
    fs::write(bench.claude(&format!("projects/p/{SESSION}.jsonl")), session).unwrap();
    let (whole, killed, imported) = (store(), store(), store());
    bench.follow(&whole, [Box::new(|| copy(&whole, &killed)) as Step<'_>]);
    bench.import(&imported);
    assert_same(&transcripts(&imported), &transcripts(&whole), "import");
    assert_same(&transcripts(&killed), &transcripts(&whole), "before the end");
    check_every_cut(&bench, &killed, &whole, import);
    check_every_cut(&bench, &killed, &whole, follow);
}

/// The second generation repeats a record that had no newline in the first; it is read only once.
#[test]
fn kill_in_any_generation_changes_nothing() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, turn(1, 2) + response(5, 2).trim_end()).unwrap();
    let (whole, killed) = (store(), store());
    let steps: [Step<'_>; 4] = [
        Box::new(|| fs::write(&path, response(4, 0) + &response(5, 2) + &results(6, 5, 2)).unwrap()),
        Box::new(|| append(&path, &prompt(7))),
        Box::new(|| fs::write(&path, prompt(8) + response(9, 3).trim_end()).unwrap()),
        Box::new(|| copy(&whole, &killed)),
    ];
    bench.follow(&whole, steps);
    let generations = &sources(&killed)[0].1;
    assert_eq!(generations.len(), 3, "{generations:#?}");
    assert_same(&transcripts(&killed), &transcripts(&whole), "before the end");
    check_every_cut(&bench, &killed, &whole, import);
    check_every_cut(&bench, &killed, &whole, follow);
}
