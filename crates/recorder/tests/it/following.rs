//! Files that change while they are followed, and the end of following.

use std::fs;

use crate::bench::{Bench, Step, append, sources, store, transcript, transcripts};
use crate::sessions::{SESSION, prompt, response, turn};

/// Agents write their last records while they are stopped, and are stopped together with us.
#[test]
fn what_is_written_last_is_recorded_before_following_ends() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let agents = bench.claude(&format!("projects/p/{SESSION}/subagents"));
    fs::write(&path, turn(1, 2)).unwrap();
    let followed = store();
    let step: Step<'_> = Box::new(|| {
        append(&path, &prompt(5));
        fs::create_dir_all(&agents).unwrap();
        fs::write(agents.join("agent-a.jsonl"), prompt(6)).unwrap();
        fs::write(agents.join("agent-a.meta.json"), "{}").unwrap();
    });
    bench.follow(&followed, [step]);
    let imported = store();
    bench.import(&imported);
    assert_eq!(sources(&followed), sources(&imported));
    assert_eq!(transcripts(&followed), transcripts(&imported));
    assert_eq!(sources(&followed).len(), 3);
}

#[test]
fn a_file_that_vanishes_and_comes_back_goes_on() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let aside = bench.path("aside");
    fs::write(&path, turn(1, 2)).unwrap();
    let followed = store();
    let away: Step<'_> = Box::new(|| fs::rename(&path, &aside).unwrap());
    bench.follow(&followed, [away]);
    bench.import(&followed);
    append(&aside, &prompt(5));
    fs::copy(&aside, &path).unwrap();
    bench.follow(&followed, []);
    let again: Step<'_> = Box::new(|| {
        fs::remove_file(&path).unwrap();
        append(&aside, &response(6, 2));
        fs::copy(&aside, &path).unwrap();
    });
    bench.follow(&followed, [again]);
    let imported = store();
    bench.import(&imported);
    assert_eq!(sources(&followed), sources(&imported));
    assert_eq!(transcript(&followed), transcript(&imported));
}

/// Growth hides a change in the middle; what was hidden is found before the file is let go.
#[test]
fn a_change_that_growth_has_hidden_is_found_before_the_file_is_let_go() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let session: String = (1..80).map(prompt).collect();
    fs::write(&path, &session).unwrap();
    let changed = session.replace("Prompt 40:", "PROMPT 40:") + &prompt(80);
    let followed = store();
    let steps: [Step<'_>; 2] = [
        Box::new(|| {
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, changed.as_bytes()).unwrap();
        }),
        Box::new(|| {}),
    ];
    bench.follow(&followed, steps);
    let generations = &sources(&followed)[0].1;
    assert!(generations.last() == Some(&changed), "the last of {} is another", generations.len());
}

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
