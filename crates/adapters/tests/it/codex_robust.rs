//! Codex's adapters with damaged input: cuts do not change the events, and no record causes a panic.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steno_model::Lane;
use steno_testkit::{needs, shared_dir};

use crate::adapter_output::{Piece, feed};
use crate::codex_files::{adapter_for, all_samples, pieces_of};
use crate::reading::{output, read_paused};

#[test]
fn sample_events_do_not_depend_on_how_bytes_are_cut() {
    let shared = needs!(shared_dir(), "there are no samples");
    for path in all_samples(&shared) {
        let pieces = pieces_of(&path);
        let whole = feed(adapter_for(&path), &pieces, usize::MAX);
        for chunk in [1, 7] {
            let cut = feed(adapter_for(&path), &pieces, chunk);
            assert!(cut.events == whole.events, "{} in pieces of {chunk}", path.display());
            assert_eq!(cut.completeness, whole.completeness, "{}", path.display());
        }
    }
}

#[test]
fn events_of_a_cut_file_are_a_prefix_of_all_events() {
    let shared = needs!(shared_dir(), "there are no samples");
    for path in all_samples(&shared).into_iter().filter(|path| !path.ends_with("duplex.jsonl")) {
        let pieces = pieces_of(&path);
        let [(Lane::FromAgent, bytes)] = &pieces[..] else { continue };
        // Waiting events are written when a source ends. A cut file may continue, so it is only paused.
        let whole = read_paused(adapter_for(&path), &[output(bytes)]);
        let all = feed(adapter_for(&path), &pieces, usize::MAX);
        assert!(all.events.len() >= whole.lines.len(), "{}", path.display());
        for cut in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            let part = read_paused(adapter_for(&path), &[output(&bytes[..cut])]);
            assert!(whole.lines.starts_with(&part.lines), "{} cut at {cut}", path.display());
        }
    }
}

/// Replaces each value in turn with junk, down to a depth.
pub(crate) fn spoiled(value: &Value, depth: u32, each: &mut dyn FnMut(Value)) {
    let junk = [json!(null), json!(1.5), json!([[]]), json!("x\u{0}"), json!({"id": [1]}), json!(-1)];
    junk.into_iter().for_each(&mut *each);
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let mut put = |inner: Value| {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), inner);
                    each(Value::Object(fields));
                };
                spoiled(inner, depth - 1, &mut put);
            }
        }
        Value::Array(items) => {
            for (place, inner) in items.iter().enumerate().take(2) {
                let mut put = |inner: Value| {
                    let mut items = items.clone();
                    items[place] = inner;
                    each(Value::Array(items));
                };
                spoiled(inner, depth - 1, &mut put);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the kind of a record, so that each is tried once.
fn kind_of(record: &Value) -> String {
    let parts = [
        &record["type"],
        &record["method"],
        &record["payload"]["type"],
        &record["payload"]["role"],
        &record["payload"]["item"]["type"],
        &record["params"]["item"]["type"],
        &record["item"]["type"],
        &record["msg"]["type"],
    ];
    let result =
        record["result"].as_object().map(|result| result.keys().cloned().collect::<Vec<_>>().join(","));
    format!("{parts:?} {result:?}")
}

#[test]
fn changed_records_cause_no_panic() {
    let shared = needs!(shared_dir(), "there are no samples");
    let mut tried: BTreeMap<String, u32> = BTreeMap::new();
    for path in all_samples(&shared) {
        let pieces = pieces_of(&path);
        let records: Vec<Piece> = pieces
            .iter()
            .flat_map(|(lane, bytes)| {
                bytes.split_inclusive(|byte| *byte == b'\n').map(|line| (*lane, line.to_vec()))
            })
            .collect();
        let mut spoil: Vec<Piece> = records.iter().take(3).cloned().collect();
        for (lane, line) in &records {
            let record: Value = serde_json::from_slice(line).unwrap();
            let count = tried.entry(kind_of(&record)).or_default();
            *count += 1;
            if *count > 1 {
                continue;
            }
            spoil.push((*lane, line.clone()));
            spoiled(&record, 4, &mut |record| spoil.push((*lane, format!("{record}\n").into_bytes())));
        }
        let made = feed(adapter_for(&path), &spoil, usize::MAX);
        assert!(!made.events.is_empty(), "{}", path.display());
    }
    assert!(tried.len() > 100, "{}", tried.len());
}
