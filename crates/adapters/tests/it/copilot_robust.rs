//! Copilot's adapters and bad luck: any cut gives the same, and nothing in a record makes them panic.

use std::collections::BTreeMap;

use serde_json::Value;
use steno_model::Lane;
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::feed;
use crate::codex_robust::spoiled;
use crate::copilot_files::{adapter_for, all_samples};
use crate::reading::{output, read_paused};

#[test]
fn any_cut_gives_the_same_events() {
    let shared = needs!(shared_dir(), "there are no samples");
    for path in all_samples(&shared) {
        let pieces = [(Lane::FromAgent, places::read_bytes(&path))];
        let whole = feed(adapter_for(&path), &pieces, usize::MAX);
        for chunk in [1, 7] {
            let cut = feed(adapter_for(&path), &pieces, chunk);
            assert!(cut.events == whole.events, "{} in pieces of {chunk}", path.display());
            assert_eq!(cut.completeness, whole.completeness, "{}", path.display());
        }
    }
}

#[test]
fn file_cut_anywhere_begins_like_the_whole() {
    let shared = needs!(shared_dir(), "there are no samples");
    for path in all_samples(&shared) {
        let bytes = places::read_bytes(&path);
        let whole = read_paused(adapter_for(&path), &[output(&bytes)]);
        assert!(whole.lines.len() > 3, "{}", path.display());
        for cut in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            let part = read_paused(adapter_for(&path), &[output(&bytes[..cut])]);
            assert!(whole.lines.starts_with(&part.lines), "{} cut at {cut}", path.display());
        }
    }
}

#[test]
fn no_record_makes_an_adapter_panic() {
    let shared = needs!(shared_dir(), "there are no samples");
    let mut tried: BTreeMap<String, u32> = BTreeMap::new();
    for path in all_samples(&shared) {
        let text = places::read(&path);
        let mut spoil: Vec<String> = text.lines().take(8).map(str::to_owned).collect();
        for line in text.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let count =
                tried.entry(format!("{} {}", record["type"], record["agentId"].is_null())).or_default();
            *count += 1;
            if *count > 1 {
                continue;
            }
            spoil.push(line.to_owned());
            spoiled(&record, 4, &mut |record| spoil.push(record.to_string()));
        }
        let made = feed(adapter_for(&path), &[(Lane::FromAgent, spoil.join("\n").into_bytes())], usize::MAX);
        assert!(!made.events.is_empty(), "{}", path.display());
    }
    assert!(tried.len() > 40, "{}", tried.len());
}
