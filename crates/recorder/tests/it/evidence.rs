//! Reads the original bytes of events.

use std::fs;
use std::sync::Arc;

use steno_model::{Evidence, ExchangeEvent, Word};
use steno_recorder::evidence::EvidenceReader;
use steno_testkit::sim_disk::SimDisk;
use steno_vault::Vault;

use crate::bench::{Bench, follow_evidence, store, transcripts};
use crate::sessions::{THREAD, rollout};

/// Returns the evidence of all events, in order.
fn evidence(store: &SimDisk) -> Vec<Evidence> {
    let lines = transcripts(store);
    let lines = lines.values().flat_map(|text| text.lines());
    let event = |line: &str| ExchangeEvent::parse(line.as_bytes()).unwrap();
    lines.map(|line| Evidence::read(event(line).extra.get("evidence").unwrap()).unwrap()).collect()
}

#[test]
fn records_are_read_from_plain_and_packed_generations() {
    let (bench, store) = (Bench::new(), store());
    let text = rollout();
    let dir = bench.codex("sessions/2026/05/01");
    fs::create_dir_all(&dir).unwrap();
    let plain = dir.join(format!("rollout-2026-05-01T10-00-00-{THREAD}.jsonl"));
    let packed = plain.with_extension("jsonl.zst");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(&plain, lines[..lines.len() / 2].concat()).unwrap();
    bench.import(&store);
    // Codex compresses the file after it has grown.
    fs::remove_file(&plain).unwrap();
    fs::write(&packed, zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
    bench.import(&store);
    let mut reader = EvidenceReader::new(Vault::open(Arc::new(store.clone())));
    let mut seen = [0, 0];
    for evidence in evidence(&store) {
        assert_eq!(evidence.unpacked.is_some(), evidence.position.generation == 1, "{evidence:?}");
        seen[evidence.position.generation as usize] += 1;
        for unpacked in [evidence.unpacked.clone(), None, Some(Word::Unknown("of the future".into()))] {
            let record = reader.record(&Evidence { unpacked, ..evidence.clone() }).unwrap();
            let record = String::from_utf8(record).unwrap() + "\n";
            assert!(lines.contains(&record.as_str()), "{evidence:?}: {record}");
        }
        let beyond = Evidence { length: text.len() as u64, ..evidence.clone() };
        assert_eq!(
            reader.record(&beyond).is_some(),
            evidence.position.offset == 0 && evidence.position.generation == 1
        );
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    let report = follow_evidence(&store);
    assert_eq!((report.found, report.all), (seen[0] + seen[1], seen[0] + seen[1]));
}
