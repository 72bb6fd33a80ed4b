//! Rare but possible sessions: their receipts follow the documented rules, and verify against their lines alone.

use serde_json::{Value, json};
use steno_disk::{StorePath, open_host_file};
use steno_journal::Reader;
use steno_server::receipts::{Error, ReadOptions, ReceiptSession, Reference, verify};
use steno_views::receipt::to_json;

const RUN: &str = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";

/// A session file.
struct SessionFile {
    dir: tempfile::TempDir,
    lines: Vec<String>,
}

impl SessionFile {
    fn new(events: &[(&str, &str, Value)]) -> Self {
        let line = |((kind, path, payload), seq): (&(&str, &str, Value), u64)| {
            let (run, time) = (RUN, format!("2026-06-02T01:00:{:02}Z", seq % 60));
            json!({"seq": seq, "run_id": run, "type": kind, "path": path, "iteration": 0, "timestamp": time, "payload": payload}).to_string()
        };
        Self { dir: tempfile::tempdir().unwrap(), lines: events.iter().zip(1..).map(line).collect() }
    }

    fn reader(&self) -> Reader {
        let path = self.dir.path().join("session.jsonl");
        std::fs::write(&path, self.lines.join("\n") + "\n").unwrap();
        Reader::of_file(open_host_file(&path).unwrap(), StorePath::outside(&path), None).until_now().unwrap()
    }

    fn read(&self, has_integrity: bool) -> ReceiptSession {
        ReceiptSession::of_readers(
            vec![self.reader()],
            ReadOptions { has_integrity, ..ReadOptions::default() },
        )
        .unwrap()
    }

    /// Returns the receipt of each turn, verified against every reference.
    #[track_caller]
    fn receipts(&self) -> Vec<Value> {
        let turns: Vec<String> = self.read(false).records.turns.iter().map(|turn| turn.id.clone()).collect();
        let check = |turn: &String| {
            let text = to_json(&self.read(true).receipt(turn).unwrap());
            verify(&text, Reference::Transcripts(vec![self.reader()]))
                .unwrap_or_else(|error| panic!("{turn}: {error}"));
            let seqs = self.read(false).lines_of(turn).unwrap().remove(0).1;
            let lines = seqs.iter().map(|seq| self.lines[usize::try_from(seq - 1).unwrap()].clone() + "\n");
            let lines = lines.collect::<Vec<_>>().concat();
            verify(&text, Reference::Lines(lines.as_bytes()))
                .unwrap_or_else(|error| panic!("{turn}, lines: {error}"));
            // A receipt with the id of another thread is refused.
            let other = text.replacen(RUN, "00000000-0000-4000-8000-000000000000", 1);
            for against in [Reference::Transcripts(vec![self.reader()]), Reference::Lines(lines.as_bytes())] {
                let found = verify(&other, against);
                assert!(matches!(&found, Err(Error::Differs(at)) if at.field == "thread.id"), "{found:?}");
            }
            serde_json::from_str(&text).unwrap()
        };
        turns.iter().map(check).collect()
    }
}

fn begin(path: &str) -> (&str, &str, Value) {
    ("step.started", path, json!({"name": path, "kind": "turn", "turn_id": "t"}))
}

fn end(path: &str) -> (&str, &str, Value) {
    ("step.completed", path, json!({"name": path, "kind": "turn"}))
}

fn call<'a>(path: &'a str, id: &str) -> (&'static str, &'a str, Value) {
    (
        "tool.call",
        path,
        json!({"name": "x", "call_id": id, "input": null, "output": null, "fidelity": "router", "class": "command"}),
    )
}

fn result<'a>(path: &'a str, id: &str) -> (&'static str, &'a str, Value) {
    (
        "tool.result",
        path,
        json!({"name": "x", "call_id": id, "input": null, "output": "", "fidelity": "router", "outcome": "ok"}),
    )
}

fn run(carries: &Value) -> (&'static str, &'static str, Value) {
    ("run.started", "", json!({"name": "x", "kind": "session", "source": {"carries": carries}}))
}

fn counts(receipt: &Value) -> (u64, u64, Vec<&str>, Vec<&str>) {
    let tools = &receipt["tool_lineage"];
    let ids = |name: &str| tools[name].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let count = |name: &str| tools[name].as_u64().unwrap();
    (
        count("tool_call_count"),
        count("tool_result_count"),
        ids("unmatched_tool_call_ids"),
        ids("unmatched_tool_result_ids"),
    )
}

#[test]
fn result_belongs_to_the_turn_of_its_call() {
    let session =
        SessionFile::new(&[begin("a"), call("a", "c"), end("a"), begin("b"), result("b", "c"), end("b")]);
    let [first, second] = &session.receipts()[..] else { panic!() };
    assert_eq!((counts(first), counts(second)), ((1, 1, vec![], vec![]), (0, 0, vec![], vec![])));
    assert_eq!(
        (&first["source_event_lineage"]["event_count"], &second["source_event_lineage"]["event_count"]),
        (&json!(3), &json!(3))
    );
    // A call outside turns belongs to no turn, and neither does its result.
    let session = SessionFile::new(&[call("", "c"), begin("a"), result("a", "c"), result("a", "d")]);
    assert_eq!(counts(&session.receipts()[0]), (0, 1, vec![], vec!["d"]));
}

#[test]
fn nth_result_belongs_to_nth_call_with_the_same_id() {
    let session =
        SessionFile::new(&[begin("a"), call("a", "c"), call("a", "c"), result("a", "c"), result("a", "c")]);
    assert_eq!(counts(&session.receipts()[0]), (2, 2, vec![], vec![]));
    let session =
        SessionFile::new(&[begin("a"), call("a", "c"), begin("b"), call("b", "c"), result("a", "c")]);
    let receipts = session.receipts();
    assert_eq!(counts(&receipts[0]), (1, 1, vec![], vec![]));
    assert_eq!(counts(&receipts[1]), (1, 0, vec!["c"], vec![]));
}

#[test]
fn nested_turns_and_turns_at_one_path_are_distinct() {
    let inner = "a.s.turn-0001";
    let session = SessionFile::new(&[
        begin("a"),
        call("a", "c"),
        begin(inner),
        result(inner, "c"),
        end(inner),
        end("a"),
    ]);
    let receipts = session.receipts();
    assert_eq!(receipts[0]["source_event_lineage"]["event_count"], 3);
    assert_eq!(
        (receipts[1]["turn"]["id"].as_str(), &receipts[1]["source_event_lineage"]["event_count"]),
        (Some(inner), &json!(3))
    );
    let session = SessionFile::new(&[
        begin("a"),
        call("a", "c"),
        end("a"),
        begin("a"),
        call("a", "d"),
        result("a", "c"),
        end("a"),
    ]);
    let receipts = session.receipts();
    assert_eq!(counts(&receipts[0]), (1, 1, vec![], vec![]));
    assert_eq!(
        (receipts[1]["turn"]["id"].as_str(), counts(&receipts[1])),
        (Some("a@4"), (1, 0, vec!["d"], vec![]))
    );
    // A step that ends inside a turn does not end the turn.
    let session =
        SessionFile::new(&[begin("a"), ("step.completed", "a.x", json!({"name": "x", "kind": "turn"}))]);
    assert_eq!(session.receipts()[0]["turn"]["status"], "in_progress");
}

#[test]
fn last_carries_before_the_turn_end_applies() {
    let available = |events: &[(&str, &str, Value)]| {
        let receipt = &SessionFile::new(events).receipts()[0];
        (
            receipt["reasoning_custody"]["available"].as_bool().unwrap(),
            receipt["reasoning_custody"]["reason"].as_str().map(str::to_owned),
        )
    };
    let (no, unsaid) = (
        Some("the source does not carry reasoning".to_owned()),
        Some("the source does not say whether it carries reasoning".to_owned()),
    );
    assert_eq!(available(&[run(&json!([])), begin("a"), end("a"), run(&json!(["thinking"]))]), (false, no));
    assert_eq!(available(&[run(&json!([])), run(&json!(["thinking"])), begin("a")]), (true, None));
    assert_eq!(
        available(&[run(&json!(["thinking"])), run(&json!(null)), begin("a")]),
        (false, unsaid.clone())
    );
    assert_eq!(available(&[run(&json!("thinking")), begin("a")]), (false, unsaid.clone()));
    assert_eq!(available(&[begin("a")]), (false, unsaid));
}

#[test]
fn usage_with_odd_numbers_is_exported_and_verified() {
    for usage in
        [r#"{"a":1e400}"#, r#"{"a":"\ud800"}"#, r#"{"\ud800":1}"#, r#"{"a":123456789012345678901234567890}"#]
    {
        let mut session = SessionFile::new(&[
            begin("a"),
            (
                "message.assistant",
                "a",
                json!({"role": "assistant", "blocks": [], "usage": "USAGE", "usage_scope": "turn"}),
            ),
        ]);
        session.lines[1] = session.lines[1].replace("\"USAGE\"", usage);
        let text = to_json(&session.read(false).receipt("a").unwrap());
        verify(&text, Reference::Transcripts(vec![session.reader()]))
            .unwrap_or_else(|error| panic!("{usage}: {error}"));
    }
}
