//! Receipts have the same bytes everywhere and no private content, and every change is found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use steno_disk::{RealDisk, StorePath, open_host_file};
use steno_journal::{Journal, Level, Options, Reader, Store};
use steno_model::receipt::Receipt;
use steno_model::{Draft, RunId};
use steno_server::receipts::{Directory, Error, ReadOptions, ReceiptSession, Reference, export, verify};
use steno_testkit::golden;
use steno_views::receipt::{text, to_json};

const RUN: &str = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";
const TURNS: [(&str, &str, &str); 3] = [
    ("turn-0001", "turn_1", "completed"),
    ("turn-0002", "turn_2", "failed"),
    ("turn-0003", "turn_3", "approval-denied"),
];
const PROVEN: ReadOptions = ReadOptions { has_integrity: true, runs: None, is_unnamed: false, turn: None };

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/receipts")
}

fn expected(name: &str) -> String {
    fs::read_to_string(fixtures().join("expected").join(format!("{name}.json"))).unwrap()
}

fn reader(path: &Path) -> Reader {
    Reader::of_file(open_host_file(path).unwrap(), StorePath::outside(path), None).until_now().unwrap()
}

fn of_file(path: &Path, turn: &str, wanted: ReadOptions) -> Result<String, Error> {
    let read = ReceiptSession::of_readers(vec![reader(path)], wanted)?;
    read.receipt(turn).map(|receipt| to_json(&receipt))
}

/// Returns the lines of a receipt.
fn lines_of(path: &Path, turn: &str) -> Vec<u8> {
    let read = ReceiptSession::of_readers(vec![reader(path)], ReadOptions::default()).unwrap();
    let seqs = read.lines_of(turn).unwrap().remove(0).1;
    let text = fs::read_to_string(path).unwrap();
    let lines =
        text.lines().zip(1..).filter(|(_, seq)| seqs.contains(seq)).map(|(line, _)| format!("{line}\n"));
    lines.collect::<String>().into_bytes()
}

/// Returns a store with the session.
fn store(dir: &Path) -> Store {
    let disk = Arc::new(RealDisk::create(dir).unwrap());
    let journal = Journal::new(Store::create(disk).unwrap(), Options::default());
    let run = RunId::parse(RUN).unwrap();
    let recorder = journal.record(run).unwrap();
    for line in fs::read_to_string(fixtures().join("session.jsonl")).unwrap().lines() {
        let mut draft: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        draft.remove("seq");
        let draft = Draft::parse(Value::from(draft).to_string().as_bytes(), run).unwrap();
        recorder.record(draft, Level::Written).unwrap();
    }
    recorder.close().unwrap();
    Store::open(Arc::new(RealDisk::open(dir).unwrap().unwrap())).unwrap()
}

#[test]
fn receipts_match_the_golden_files() {
    for (of_run, of_records, name) in TURNS {
        let found = of_file(&fixtures().join("session.jsonl"), of_run, PROVEN).unwrap();
        golden::check(fixtures().join(format!("expected/run-{name}.json")), &found);
        let found = Directory::new(&fixtures().join("records")).receipt("thr_1", of_records).unwrap();
        golden::check(fixtures().join(format!("expected/records-{name}.json")), &to_json(&found));
    }
}

#[test]
fn text_receipts_match_the_golden_files() {
    let check = |name: &str, receipt: Result<Receipt, Error>| {
        golden::check(fixtures().join(format!("expected/{name}.txt")), &text(&receipt.unwrap(), None));
    };
    let (session, records) = (fixtures().join("session.jsonl"), Directory::new(&fixtures().join("records")));
    for (of_run, of_records, name) in TURNS {
        let run = ReceiptSession::of_readers(vec![reader(&session)], PROVEN).unwrap();
        check(&format!("run-{name}"), run.receipt(of_run));
        check(&format!("records-{name}"), records.receipt("thr_1", of_records));
    }
}

#[test]
fn receipts_contain_no_thoughts_and_no_output() {
    for (_, _, name) in TURNS {
        for text in [expected(&format!("run-{name}")), expected(&format!("records-{name}"))] {
            for word in ["look first", "4711", "deployed late", "raw output", "raw thought", "make test"] {
                assert!(!text.contains(word), "{name}: {word}");
            }
        }
    }
}

#[test]
fn turns_are_found_by_step_and_by_provider_id() {
    let path = fixtures().join("session.jsonl");
    let by_step = of_file(&path, "turn-0001", ReadOptions::default()).unwrap();
    assert_eq!(of_file(&path, "turn_a", ReadOptions::default()).unwrap(), by_step);
    let missing = of_file(&path, "turn-0009", ReadOptions::default());
    assert!(matches!(missing, Err(Error::NoSuchTurn { turns, .. }) if turns.len() == 3));
    let directory = Directory::new(&fixtures().join("records"));
    for (thread, turn) in
        [("thr_9", "turn_1"), ("thr_1", "turn_9"), ("../threads/thr_1", "turn_1"), ("", "turn_1")]
    {
        assert!(matches!(directory.receipt(thread, turn), Err(Error::NoSuchTurn { .. })), "{thread} {turn}");
    }
    let said = directory.receipt("thr_1", "turn_9");
    assert!(matches!(said, Err(Error::NoSuchTurn { turns, .. }) if turns == ["turn_1", "turn_2", "turn_3"]));
    // A turn of another thread.
    assert!(matches!(directory.receipt("thr_2", "turn_1"), Err(Error::Mismatch(_))));
}

#[test]
fn mismatched_records_are_rejected_and_gaps_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let (from, to) = (fixtures().join("records").join(name), dir.path().join(name));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    let files = ["threads/thr_1.json", "turns/turn_1.json", "items/item_1.json", "items/item_2.json"];
    files.into_iter().chain(["items/item_4.json", "events/thr_1.jsonl"]).for_each(copy);
    let directory = Directory::new(dir.path());
    let receipt = directory.receipt("thr_1", "turn_1").unwrap();
    assert_eq!(receipt.unavailable[0].reason, "1 of 4 items that the turn names are not in the record");
    // The count is unknown, because the missing item may be a command.
    assert_eq!(receipt.side_effect_boundary.command_execution_count, None);
    // Without the other thread its event is missing. An event before the turn is not missing.
    let missing = receipt.source_event_lineage.missing_event_ranges.unwrap();
    assert_eq!(serde_json::to_string(&missing).unwrap(), r#"[{"first_seq":12,"last_seq":12}]"#);
    // A line that is not a record.
    let events = fs::read_to_string(dir.path().join("events/thr_1.jsonl")).unwrap();
    fs::write(dir.path().join("events/thr_1.jsonl"), format!("{events}{{torn\n")).unwrap();
    let receipt = directory.receipt("thr_1", "turn_1").unwrap();
    assert_eq!(receipt.source_event_lineage.missing_event_ranges, None);
    let reasons: Vec<&str> = receipt.unavailable.iter().map(|one| one.reason.as_str()).collect();
    assert!(reasons.contains(&"1 records of events cannot be read"), "{reasons:?}");
    let item = fs::read_to_string(dir.path().join("items/item_2.json")).unwrap();
    fs::write(dir.path().join("items/item_2.json"), item.replace("turn_1", "turn_2")).unwrap();
    assert!(matches!(directory.receipt("thr_1", "turn_1"), Err(Error::Mismatch(_))));
}

#[test]
fn too_large_records_file_is_rejected() {
    const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("turns")).unwrap();
    let path = dir.path().join("turns/long.jsonl");
    fs::File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    let said = Directory::new(dir.path()).turns(None).unwrap_err().to_string();
    assert_eq!(said, format!("cannot read `{}`: it has more than {FILE_BYTES_MAX} bytes", path.display()));
}

#[test]
fn receipt_verifies_against_store_file_lines_and_records() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let run = RunId::parse(RUN).unwrap();
    let transcript = dir.path().join(format!("transcripts/{RUN}.jsonl"));
    for (turn, _, name) in TURNS {
        for wanted in [ReadOptions::default(), PROVEN] {
            let receipt = to_json(&export(&store, run, turn, wanted).unwrap());
            verify(&receipt, Reference::Store(&store)).unwrap();
            verify(&receipt, Reference::Transcripts(vec![reader(&transcript)])).unwrap();
        }
        let receipt = to_json(&export(&store, run, turn, PROVEN).unwrap());
        let lines = lines_of(&transcript, turn);
        let proven = verify(&receipt, Reference::Lines(&lines)).unwrap();
        assert!(proven.open.iter().any(|open| open.contains("how many lines the run had")), "{proven:?}");
        let directory = Directory::new(&fixtures().join("records"));
        let of_records = expected(&format!("records-{name}"));
        let proven = verify(&of_records, Reference::Directory(&directory)).unwrap();
        assert!(
            !proven.open.iter().any(|open| open.contains("--integrity")),
            "a directory has none: {proven:?}"
        );
        let elsewhere = verify(&of_records, Reference::Store(&store));
        assert!(matches!(elsewhere, Err(Error::NoSuchTurn { turns, .. }) if turns.is_empty()));
    }
    let plain = to_json(&export(&store, run, "turn-0001", ReadOptions::default()).unwrap());
    assert!(matches!(verify(&plain, Reference::Lines(b"")), Err(Error::NoIntegrity)));
}

/// Receipts of older versions have one tree and no runs. A receipt with an older way of counting is recognized.
#[test]
fn receipts_of_older_versions_still_verify() {
    let path = fixtures().join("session.jsonl");
    let older = |name: &str| fs::read_to_string(fixtures().join(format!("older/run-{name}.json"))).unwrap();
    for (turn, _, name) in TURNS.into_iter().filter(|(_, _, name)| *name != "failed") {
        verify(&older(name), Reference::Transcripts(vec![reader(&path)])).unwrap();
        verify(&older(name), Reference::Lines(&lines_of(&path, turn))).unwrap();
        let without_tree = older(name).split(",\n  \"integrity\"").next().unwrap().to_owned() + "\n}\n";
        verify(&without_tree, Reference::Transcripts(vec![reader(&path)])).unwrap();
    }
    // Older versions counted a command without a result.
    let found = verify(&older("failed"), Reference::Transcripts(vec![reader(&path)]));
    let field = "side_effect_boundary.command_execution_count";
    assert!(matches!(&found, Err(Error::Differs(at)) if at.field == field), "{found:?}");
}

/// A run may continue after its receipt was exported.
#[test]
fn receipt_verifies_after_the_run_has_grown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grown.jsonl");
    let session = fs::read_to_string(fixtures().join("session.jsonl")).unwrap();
    let receipt = expected("run-completed");
    let more = session.lines().next().unwrap().replace("\"seq\":1,", "\"seq\":33,");
    fs::write(&path, format!("{session}{more}\n")).unwrap();
    verify(&receipt, Reference::Transcripts(vec![reader(&path)])).unwrap();
    // A shorter file is found.
    let shorter: String = session.split_inclusive('\n').take(31).collect();
    fs::write(&path, shorter).unwrap();
    assert!(verify(&receipt, Reference::Transcripts(vec![reader(&path)])).is_err());
}

#[test]
fn every_flipped_transcript_byte_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flipped.jsonl");
    let session = fs::read(fixtures().join("session.jsonl")).unwrap();
    let receipt = expected("run-completed");
    fs::write(&path, &session).unwrap();
    verify(&receipt, Reference::Transcripts(vec![reader(&path)])).unwrap();
    for at in 0..session.len() {
        let mut flipped = session.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).unwrap();
        assert!(verify(&receipt, Reference::Transcripts(vec![reader(&path)])).is_err(), "byte {at}");
    }
}

#[test]
fn flipped_bytes_and_missing_lines_are_detected() {
    let path = fixtures().join("session.jsonl");
    let receipt = expected("run-failed");
    let lines = lines_of(&path, "turn-0002");
    verify(&receipt, Reference::Lines(&lines)).unwrap();
    for at in 0..lines.len() {
        let mut flipped = lines.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(verify(&receipt, Reference::Lines(&flipped)).is_err(), "byte {at}");
    }
    let split: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    for left_out in 0..split.len() {
        let rest: Vec<u8> = split
            .iter()
            .zip(0..)
            .filter(|(_, at)| *at != left_out)
            .flat_map(|(line, _)| *line)
            .copied()
            .collect();
        assert!(matches!(verify(&receipt, Reference::Lines(&rest)), Err(Error::Lines(_))), "line {left_out}");
    }
    let more = [
        &lines[..],
        lines_of(&path, "turn-0003").split_inclusive(|byte| *byte == b'\n').next_back().unwrap(),
    ]
    .concat();
    assert!(matches!(verify(&receipt, Reference::Lines(&more)), Err(Error::Lines(_))));
}

/// Changes one value after the other, and expects its path in the error.
#[test]
fn every_changed_receipt_value_is_named() {
    let directory = Directory::new(&fixtures().join("records"));
    let text = expected("records-failed");
    let receipt: Value = serde_json::from_str(&text).unwrap();
    let mut places = Vec::new();
    leaves("", &receipt, &mut places);
    assert!(places.len() > 30, "{}", places.len());
    for place in places {
        let mut changed = receipt.clone();
        let value = changed.pointer_mut(&place).unwrap();
        *value = match value {
            Value::Bool(flag) => Value::Bool(!*flag),
            Value::Null => Value::from(7),
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => Value::Null,
        };
        let text = serde_json::to_string_pretty(&changed).unwrap() + "\n";
        let found = verify(&text, Reference::Directory(&directory));
        match found {
            Err(Error::Differs(difference)) => {
                assert_eq!(format!("/{}", difference.field.replace('.', "/")), place);
            }
            // These fields identify the record.
            Err(_) => assert!(["/schema_id", "/thread/id", "/turn/id"].contains(&place.as_str()), "{place}"),
            Ok(_) => panic!("{place} was changed"),
        }
    }
    let compact = receipt.to_string();
    assert!(matches!(verify(&compact, Reference::Directory(&directory)), Err(Error::OtherBytes)));
    for text in ["", "{}", "[]", "null", "{\"schema_id\":\"codewhale.conformance-receipt/v0\"}"] {
        assert!(verify(text, Reference::Directory(&directory)).is_err(), "{text}");
    }
}

fn leaves(place: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(&format!("{place}/{name}"), value, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                leaves(&format!("{place}/{at}"), value, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            out.push(place.to_owned());
        }
    }
}

#[test]
fn notes_become_missing_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let run = RunId::parse(RUN).unwrap();
    let notes = dir.path().join(format!("transcripts/{RUN}.notes.jsonl"));
    let note = |seq: u64| {
        format!(
            "{{\"time\":\"2026-06-02T01:00:00.000Z\",\"kind\":\"refused\",\"count\":3,\"seq_last\":{seq},\"cause\":\"no room\"}}\n"
        )
    };
    fs::write(&notes, note(5) + &note(13) + &note(14)).unwrap();
    let receipt = export(&store, run, "turn-0001", PROVEN).unwrap();
    let ranges = serde_json::to_string(&receipt.source_event_lineage.missing_event_ranges).unwrap();
    let range = |seq| format!("{{\"after_seq\":{seq},\"count\":3,\"what\":\"refused\"}}");
    assert_eq!(ranges, format!("[{},{}]", range(5), range(13)));
    let text = to_json(&receipt);
    verify(&text, Reference::Store(&store)).unwrap();
    let transcript = dir.path().join(format!("transcripts/{RUN}.jsonl"));
    verify(&text, Reference::Transcripts(vec![reader(&transcript)])).unwrap();
    verify(&text, Reference::Lines(&lines_of(&transcript, "turn-0001"))).unwrap();
    fs::remove_file(&notes).unwrap();
    assert!(matches!(verify(&text, Reference::Store(&store)), Err(Error::Differs(_))));
}
