//! Damaged transcripts and excluded projects do not affect other sources.

use std::fs;
use std::sync::Arc;

use steno_journal::{Journal, Options, Store};
use steno_model::RunId;

use crate::bench::{Bench, Step, append, copy, sources, store, transcript_path, transcripts};
use crate::sessions::{SESSION, prompt, response, turn};

const OTHER: &str = "0f000000-0000-4000-8000-000000000002";

#[test]
fn damaged_transcript_loses_no_evidence() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let other = bench.claude(&format!("projects/p/{OTHER}.jsonl"));
    fs::write(&path, turn(1, 2)).unwrap();
    fs::write(&other, turn(1, 2).replace(SESSION, OTHER)).unwrap();
    let (followed, killed) = (store(), store());
    bench.follow(&followed, [Box::new(|| copy(&followed, &killed)) as Step<'_>]);
    // A sealed part is not written again.
    let journal = Journal::new(Store::create(Arc::new(killed.clone())).unwrap(), Options::default());
    journal.record(RunId::parse(SESSION).unwrap()).unwrap().close().unwrap();
    let damaged = transcripts(&killed)[SESSION].replacen("\"seq\":3", "\"seq\":4", 1);
    killed.tamper(&transcript_path(SESSION), damaged.as_bytes());
    append(&path, &prompt(5));
    append(&other, &prompt(5).replace(SESSION, OTHER));
    let more: Step<'_> = Box::new(|| {
        append(&path, &response(6, 2));
        append(&other, &response(6, 2).replace(SESSION, OTHER));
    });
    let health = bench.follow(&killed, [more]);
    assert!(health.events_refused > 0);
    assert_eq!(transcripts(&killed)[SESSION], damaged);
    let whole = store();
    bench.import(&whole);
    assert_eq!(transcripts(&killed)[OTHER], transcripts(&whole)[OTHER]);
    assert_eq!(sources(&killed), sources(&whole));
}

#[test]
fn damaged_unsealed_transcript_is_rewritten_and_kept() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, turn(1, 2)).unwrap();
    let (followed, killed) = (store(), store());
    bench.follow(&followed, [Box::new(|| copy(&followed, &killed)) as Step<'_>]);
    let damaged = transcripts(&killed)[SESSION].replacen("\"seq\":3", "\"seq\":4", 1);
    killed.tamper(&transcript_path(SESSION), damaged.as_bytes());
    let whole = store();
    bench.import(&whole);
    bench.import(&killed);
    assert_eq!(transcripts(&killed)[SESSION], transcripts(&whole)[SESSION]);
    let kept = killed.snapshot().into_iter().filter(|(_, bytes)| bytes == damaged.as_bytes());
    assert_eq!(kept.count(), 1);
}

#[test]
fn excluded_projects_leave_no_trace() {
    let mut bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let secret = bench.claude("projects/-src-secret");
    fs::create_dir_all(&secret).unwrap();
    fs::write(&path, turn(1, 2)).unwrap();
    bench.exclusions.projects = vec!["/src/secret".into()];
    let followed = store();
    let step: Step<'_> = Box::new(|| {
        fs::write(secret.join(format!("{OTHER}.jsonl")), turn(1, 2).replace(SESSION, OTHER)).unwrap();
        append(&path, &prompt(5));
    });
    bench.follow(&followed, [step, Box::new(|| {})]);
    bench.import(&followed);
    assert_eq!(sources(&followed), [(path, vec![turn(1, 2) + &prompt(5)])]);
    assert_eq!(transcripts(&followed).len(), 1);
    let has_secret =
        |(_, bytes): &(String, Vec<u8>)| bytes.windows(OTHER.len()).any(|window| window == OTHER.as_bytes());
    assert!(!followed.snapshot().iter().any(has_secret));
}
