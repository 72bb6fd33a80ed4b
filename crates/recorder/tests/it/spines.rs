//! Spines from session files and traces: each record is written once.

use std::collections::HashMap;
use std::io::{BufRead, Cursor};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use steno_disk::StorePath;
use steno_journal::{Journal, Options, SegmentIndex, SegmentName, Store};
use steno_model::{SpineRecord, ThreadId};
use steno_recorder::spines::{
    Bases, Error, ForgottenRule, SessionFile, SpineWriteReport, record_rollout, record_trace,
};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};

/// Session files by thread.
struct Files(HashMap<&'static str, String>);

impl Bases for Files {
    fn open(&mut self, thread: &str) -> Option<Box<dyn BufRead>> {
        let text = self.0.get(thread)?.clone();
        Some(Box::new(Cursor::new(text.into_bytes())))
    }
}

fn journal(disk: &SimDisk) -> Journal {
    Journal::new(Store::create(Arc::new(disk.clone())).expect("a store"), Options::default())
}

fn record(disk: &SimDisk, name: &str, text: &str) -> Result<SpineWriteReport, Error> {
    let mut bases = Files(HashMap::new());
    let path = Path::new(name);
    let file = SessionFile { path, bytes: &mut text.as_bytes(), unpacked: None };
    record_rollout(&journal(disk), file, &mut bases, ForgottenRule::Stays).map(|(_, written)| written)
}

/// Returns the records of a thread, in order.
fn records(disk: &SimDisk, thread: &str) -> Vec<SpineRecord> {
    let thread = ThreadId::parse(thread).expect("a thread");
    let segments = (0..).map(|index| SegmentName::Records(SegmentIndex(index)).path(&thread));
    let texts = segments.map_while(|path: StorePath| disk.content(&path));
    let lines =
        texts.flat_map(|text| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>());
    lines.filter(|line| !line.is_empty()).map(|line| SpineRecord::parse(&line).expect("a record")).collect()
}

/// Returns a session file with this number of lines.
fn session(lines: usize) -> String {
    let mut text = String::from(
        r#"{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t1","cwd":"/w","git":{"commit_hash":"c0"}}}"#,
    );
    for number in 1..lines {
        let line = match number % 10 {
            9 => r#"{"timestamp":"2026-05-01T10:00:02.000Z","type":"compacted","payload":{"message":"S","replacement_history":[]}}"#.to_owned(),
            _ => format!(r#"{{"timestamp":"2026-05-01T10:00:01.000Z","type":"response_item","payload":{{"type":"message","n":{number}}}}}"#),
        };
        text.push('\n');
        text.push_str(&line);
    }
    text + "\n"
}

#[test]
fn growing_session_continues_its_spine() {
    let disk = SimDisk::new(1);
    let (some, all) = (session(12), session(40));
    let first = record(&disk, "rollout-x-t1.jsonl", &some).unwrap();
    assert_eq!((first.records, first.known), (14, 0), "one more for git, one for a boundary");
    // A line without a newline is not read yet.
    let torn = format!("{some}{{\"type\":\"response_item\",\"payl");
    assert_eq!(record(&disk, "rollout-x-t1.jsonl", &torn).unwrap().records, 0);
    let second = record(&disk, "rollout-x-t1.jsonl.zst", &all).unwrap();
    assert_eq!((second.records, second.known), (31, 14));
    let records = records(&disk, "t1");
    assert!(records.iter().zip(1..).all(|(record, seq)| record.seq.get() == seq));
    let whole = SimDisk::new(2);
    record(&whole, "rollout-x-t1.jsonl", &all).unwrap();
    let payloads =
        |records: Vec<SpineRecord>| records.into_iter().map(|record| record.payload).collect::<Vec<_>>();
    assert_eq!(payloads(records), payloads(self::records(&whole, "t1")));
}

#[test]
fn another_source_of_the_same_thread_is_refused() {
    let disk = SimDisk::new(1);
    record(&disk, "rollout-x-t1.jsonl", &session(3)).unwrap();
    let other = record(&disk, "rollout-y-t1.jsonl", &session(3));
    assert!(matches!(other, Err(Error::OtherSource { .. })), "{other:?}");
    assert_eq!(records(&disk, "t1").len(), 4);
    assert!(matches!(record(&disk, "rollout-z.jsonl", "{}\n"), Err(Error::NoThread { .. })));
}

#[test]
fn reverted_thread_continues_its_spine_from_another_file() {
    let (first, second) = ("rollout-x-t1.jsonl", "rollout-y-t1_u2.jsonl");
    let disk = SimDisk::new(1);
    assert_eq!(record(&disk, first, &session(3)).unwrap().records, 4);
    assert_eq!(record(&disk, second, &session(5)).unwrap().records, 6);
    // Recording either file again adds nothing.
    for (name, lines) in [(first, 3), (second, 5), (first, 3)] {
        assert_eq!(record(&disk, name, &session(lines)).unwrap().records, 0, "{name}");
    }
    assert_eq!(records(&disk, "t1").len(), 10);
    // An earlier file cannot follow a later one, and a file that repeats everything is refused.
    let disk = SimDisk::new(2);
    record(&disk, second, &session(5)).unwrap();
    for name in [first, "rollout-z-t1.jsonl"] {
        let other = record(&disk, name, &session(3));
        assert!(matches!(other, Err(Error::OtherSource { .. })), "{name}: {other:?}");
    }
}

/// Kills the process inside each disk call in turn, and records again.
#[test]
fn crash_in_any_call_records_every_line_once() {
    let text = session(30);
    let calm = SimDisk::new(3);
    record(&calm, "rollout-x-t1.jsonl", &text).unwrap();
    let want: Vec<_> = records(&calm, "t1").into_iter().map(|record| record.payload).collect();
    let mut fired = 0;
    for nth in 1..=calm.calls() {
        let disk = SimDisk::new(nth);
        disk.plan(Fault::DieAt { call: nth });
        let died = record_if_alive(&disk, &text);
        fired += disk.fired();
        let disk = disk.die(Death::Kill);
        record(&disk, "rollout-x-t1.jsonl", &text).unwrap();
        let got: Vec<_> = records(&disk, "t1").into_iter().map(|record| record.payload).collect();
        assert!(got == want, "after call {nth}: {} records instead of {}, {died:?}", got.len(), want.len());
    }
    assert!(fired > 20, "{fired}");
}

fn record_if_alive(disk: &SimDisk, text: &str) -> Option<Result<SpineWriteReport, Error>> {
    let store = Store::create(Arc::new(disk.clone())).ok()?;
    let journal = Journal::new(store, Options::default());
    let mut bases = Files(HashMap::new());
    let path = Path::new("rollout-x-t1.jsonl");
    let file = SessionFile { path, bytes: &mut text.as_bytes(), unpacked: None };
    let recorded = record_rollout(&journal, file, &mut bases, ForgottenRule::Stays);
    Some(recorded.map(|(_, written)| written))
}

#[test]
fn fork_begins_with_the_history_of_its_base() {
    let disk = SimDisk::new(1);
    let parent = session(4);
    let end = parent.lines().take(3).map(|line| line.len() + 1).sum::<usize>();
    let fork = [
        format!(r#"{{"timestamp":"2026-05-01T11:00:00.000Z","type":"session_meta","payload":{{"id":"t2","history_base":{{"thread_id":"t1","end_byte_offset":{end}}}}}}}"#),
        r#"{"timestamp":"2026-05-01T11:00:01.000Z","type":"response_item","payload":{"type":"message","n":"own"}}"#.to_owned(),
        r#"{"timestamp":"2026-05-01T11:00:02.000Z","type":"compacted","payload":{"message":"","replacement_history":[]}}"#.to_owned(),
    ]
    .join("\n") + "\n";
    let mut bases = Files(HashMap::from([("t1", parent)]));
    let path = Path::new("rollout-t2.jsonl");
    let file = SessionFile { path, bytes: &mut fork.as_bytes(), unpacked: None };
    record_rollout(&journal(&disk), file, &mut bases, ForgottenRule::Stays).unwrap();
    let records = records(&disk, "t2");
    let boundary: Value = serde_json::from_str(records.last().unwrap().payload.as_str()).unwrap();
    let numbers: Vec<&Value> =
        boundary["pre_compaction_history"].as_array().unwrap().iter().map(|item| &item["n"]).collect();
    assert_eq!(numbers, [&Value::from(1), &Value::from(2), &Value::from("own")]);
    assert_eq!(boundary.get("pre_incomplete"), None);
}

#[test]
fn each_thread_of_a_trace_has_a_spine() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    std::fs::create_dir(dir.path().join("payloads")).unwrap();
    write(
        "manifest.json",
        r#"{"schema_version":2,"root_thread_id":"t1","started_at_unix_ms":1777629600000}"#,
    );
    write("payloads/1.json", r#"{"cwd": "/w"}"#);
    write("secret", "{}");
    let lines = [
        r#"{"wall_time_unix_ms":1777629600001,"thread_id":null,"codex_turn_id":null,"payload":{"type":"thread_started","thread_id":"t1","metadata_payload":{"raw_payload_id":"1","kind":{"type":"session_metadata"},"path":"payloads/1.json"}}}"#,
        r#"{"wall_time_unix_ms":1777629600002,"thread_id":"t2","codex_turn_id":"u2","payload":{"type":"tool_call_ended","result_payload":{"raw_payload_id":"2","kind":{"type":"tool_result"},"path":"../secret"}}}"#,
    ];
    write("trace.jsonl", &(lines.join("\n") + "\n"));
    let disk = SimDisk::new(1);
    let (threads, written) = record_trace(&journal(&disk), dir.path(), ForgottenRule::Stays).unwrap();
    assert_eq!((threads.len(), written.records), (2, 2));
    assert!(records(&disk, "t1")[0].payload.as_str().contains(r#""session_metadata":{"cwd": "/w"}"#));
    let outside = records(&disk, "t2");
    assert!(!outside[0].payload.as_str().contains("\"payload\":{}"), "{}", outside[0].payload.as_str());
    assert_eq!(
        record_trace(&journal(&disk), dir.path(), ForgottenRule::Stays).unwrap().1,
        SpineWriteReport { known: 2, ..SpineWriteReport::default() }
    );
}
