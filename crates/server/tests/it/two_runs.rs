//! A session in two runs: the agent's file, and a connection with the approvals. Its receipt uses both.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use steno_disk::{RealDisk, StorePath, open_host_file};
use steno_journal::{Journal, Level, Options, Reader, Store};
use steno_model::{Draft, RunId};
use steno_server::receipts::{Error, ReadOptions, ReceiptSession, Reference, export, verify};
use steno_views::receipt::to_json;

const ROLLOUT: &str = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";
const CONNECTION: &str = "11111111-0c5e-4d3b-9a57-6f2b8c4e1a90";
const PROVEN: ReadOptions = ReadOptions { has_integrity: true, runs: None, is_unnamed: false, turn: None };

type EventLine = (&'static str, String, Value);

fn started(channel: &str, carries: &[&str]) -> EventLine {
    let source = json!({"channel": channel, "adapter": "codex/2", "carries": carries});
    ("run.started", String::new(), json!({"name": "codex", "kind": "session", "source": source}))
}

fn turn(path: &str, id: &str) -> EventLine {
    ("step.started", path.to_owned(), json!({"name": path, "kind": "turn", "turn_id": id}))
}

fn end(path: &str) -> EventLine {
    ("step.completed", path.to_owned(), json!({"name": path, "kind": "turn"}))
}

fn words(path: &str, id: &str, kind: &str, text: &str) -> EventLine {
    let field = if kind == "thinking" { "thinking" } else { "text" };
    let block = json!({"type": kind, "fidelity": "agent_emitted", field: text});
    ("message.assistant", path.to_owned(), json!({"role": "assistant", "blocks": [block], "id": id}))
}

fn used(path: &str, id: &str, output: u64) -> EventLine {
    let usage = json!({"output_tokens": output});
    let payload = json!({"role": "assistant", "blocks": [], "response": id, "usage": usage, "usage_scope": "response", "final": true});
    ("message.assistant", path.to_owned(), payload)
}

fn called(path: &str, number: usize, class: &str) -> EventLine {
    let payload = json!({"name": "tool", "call_id": format!("call_{number}"), "input": {}, "output": null,
        "fidelity": "agent_emitted", "class": class});
    ("tool.call", path.to_owned(), payload)
}

fn answered(path: &str, number: usize, outcome: &str) -> EventLine {
    let payload = json!({"name": "tool", "call_id": format!("call_{number}"), "input": null, "output": "o",
        "fidelity": "agent_emitted", "outcome": outcome});
    ("tool.result", path.to_owned(), payload)
}

fn asked(path: &str, number: usize, decision: &str) -> [EventLine; 2] {
    let (name, call, at) = (format!("q{number}"), format!("call_{number}"), format!("{path}.approval"));
    let result = json!({"decision": decision, "by": "host"});
    [
        ("step.started", at.clone(), json!({"name": name, "kind": "approval", "tool_call_id": call})),
        (
            "step.completed",
            at,
            json!({"name": name, "kind": "approval", "tool_call_id": call, "result": result}),
        ),
    ]
}

/// Ten calls: seven are allowed, three are denied. The agent's file has these as failed.
fn rollout() -> Vec<EventLine> {
    let mut lines = vec![started("disk", &["calls", "thinking", "usage"]), turn("turn-0001", "t0")];
    lines.extend([called("turn-0001", 99, "command"), answered("turn-0001", 99, "ok"), end("turn-0001")]);
    lines.extend([turn("turn-0002", "t1"), words("turn-0002", "rs_1", "thinking", "hm")]);
    for number in 0..10 {
        lines.push(called("turn-0002", number, if number < 8 { "command" } else { "file_change" }));
        lines.push(answered("turn-0002", number, if number < 7 { "ok" } else { "failed" }));
    }
    // The connection does not have this call.
    lines.extend([called("turn-0002", 20, "command"), answered("turn-0002", 20, "ok")]);
    lines.extend([words("turn-0002", "m1", "text", "Done"), used("turn-0002", "r1", 100), end("turn-0002")]);
    lines
}

fn connection() -> Vec<EventLine> {
    let carries = &["calls", "thinking", "usage", "approvals"];
    let mut lines = vec![started("app-server", carries), turn("turn-0001", "t1")];
    lines.push(words("turn-0001", "item_1", "thinking", "hm"));
    for number in 0..10 {
        let denied = number >= 7;
        lines.push(called("turn-0001", number, if number < 8 { "command" } else { "file_change" }));
        lines.extend(asked("turn-0001", number, if denied { "denied" } else { "allowed" }));
        lines.push(answered("turn-0001", number, if denied { "denied" } else { "ok" }));
    }
    lines.extend([
        words("turn-0001", "item_2", "text", "Done"),
        used("turn-0001", "x1", 7),
        end("turn-0001"),
    ]);
    // A turn that the agent's file does not have.
    lines.extend([turn("turn-0002", "t9"), words("turn-0002", "item_3", "thinking", "alone")]);
    lines.extend([called("turn-0002", 30, "command"), end("turn-0002")]);
    lines
}

struct TestStore(tempfile::TempDir);

impl TestStore {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(RealDisk::create(dir.path()).unwrap());
        Store::create(disk).unwrap();
        Self(dir)
    }

    fn store(&self) -> Store {
        Store::open(Arc::new(RealDisk::open(self.0.path()).unwrap().unwrap())).unwrap()
    }

    fn path(&self, run: &str) -> PathBuf {
        self.0.path().join(format!("transcripts/{run}.jsonl"))
    }

    fn record(&self, run: &str, lines: &[EventLine]) {
        let id = RunId::parse(run).unwrap();
        let journal = Journal::new(self.store(), Options::default());
        let recorder = journal.record(id).unwrap();
        for (seq, (kind, path, payload)) in (1..).zip(lines) {
            let time = format!("2026-06-02T01:{:02}:{:02}Z", seq / 60, seq % 60);
            let mut draft = json!({"run_id": run, "type": kind, "path": path, "iteration": 0, "timestamp": time,
                "payload": payload});
            if run != ROLLOUT {
                draft["session_run_id"] = ROLLOUT.into();
            }
            recorder.record(Draft::parse(draft.to_string().as_bytes(), id).unwrap(), Level::Written).unwrap();
        }
        recorder.close().unwrap();
    }

    fn export(&self, turn: &str) -> String {
        to_json(&export(&self.store(), RunId::parse(ROLLOUT).unwrap(), turn, PROVEN).unwrap())
    }

    fn readers(&self, runs: &[&str]) -> Vec<Reader> {
        let reader = |path: &Path| {
            Reader::of_file(open_host_file(path).unwrap(), StorePath::outside(path), None)
                .until_now()
                .unwrap()
        };
        runs.iter().map(|run| reader(&self.path(run))).collect()
    }

    /// Returns the lines of a receipt.
    fn lines(&self, turn: &str) -> Vec<u8> {
        let id = RunId::parse(ROLLOUT).unwrap();
        let read = ReceiptSession::of_store(&self.store(), id, ReadOptions::default()).unwrap();
        let mut found = String::new();
        for (run, seqs) in read.lines_of(turn).unwrap() {
            let text = fs::read_to_string(self.path(&run.to_string())).unwrap();
            for (line, _) in text.lines().zip(1..).filter(|(_, seq)| seqs.contains(seq)) {
                found.push_str(line);
                found.push('\n');
            }
        }
        found.into_bytes()
    }

    /// Verifies a receipt against every reference and returns it.
    #[track_caller]
    fn checked(&self, turn: &str) -> Value {
        let text = self.export(turn);
        verify(&text, Reference::Store(&self.store())).unwrap();
        verify(&text, Reference::Transcripts(self.readers(&[ROLLOUT, CONNECTION]))).unwrap();
        verify(&text, Reference::Transcripts(self.readers(&[CONNECTION, ROLLOUT]))).unwrap();
        verify(&text, Reference::Lines(&self.lines(turn))).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

fn both() -> TestStore {
    let archive = TestStore::new();
    archive.record(ROLLOUT, &rollout());
    archive.record(CONNECTION, &connection());
    archive
}

fn approvals(receipt: &Value) -> [Option<u64>; 3] {
    let count = |name: &str| receipt["side_effect_boundary"][format!("approval_{name}_count")].as_u64();
    [count("required"), count("allowed"), count("denied")]
}

#[test]
fn receipt_uses_every_run_and_verifies() {
    let receipt = both().checked("turn-0002");
    assert_eq!(approvals(&receipt), [Some(10), Some(7), Some(3)]);
    let effects = &receipt["side_effect_boundary"];
    // Denied calls did not run, and a failed change changed nothing.
    assert_eq!((&effects["command_execution_count"], &effects["file_change_count"]), (&json!(8), &json!(0)));
    assert_eq!(receipt["tool_lineage"]["tool_call_count"], 11);
    assert_eq!(receipt["usage_evidence"]["usage"], json!({"output_tokens": 100}));
    let lineage = &receipt["source_event_lineage"];
    // The numbers are those of the run that has the turn.
    assert_eq!((&lineage["first_seq"], &lineage["last_seq"]), (&json!(6), &json!(32)));
    assert_eq!(
        lineage["runs"],
        json!([
            {"run_id": ROLLOUT, "tree_size": 32, "adapter": "codex/2"},
            {"run_id": CONNECTION, "tree_size": 50, "adapter": "codex/2"},
        ])
    );
    assert_eq!(receipt["integrity"].as_array().unwrap().len(), 2);
    // The runs have no common id for a thought: it is counted once, and the other is listed.
    assert_eq!(receipt["reasoning_custody"]["item_count"], 1);
    let reason = format!("2 events of run {CONNECTION} left out: no id ties them to the turn");
    let left_out = json!({"field": "source_event_lineage.runs", "reason": reason});
    assert!(receipt["unavailable"].as_array().unwrap().contains(&left_out), "{}", receipt["unavailable"]);
}

#[test]
fn order_of_runs_does_not_matter() {
    let later = TestStore::new();
    later.record(CONNECTION, &connection());
    let alone: Value = serde_json::from_str(&later.export("turn-0001")).unwrap();
    assert_eq!(approvals(&alone), [Some(10), Some(7), Some(3)]);
    assert_eq!(alone["thread"]["id"], ROLLOUT, "the session's id is the agent's own");
    later.record(ROLLOUT, &rollout());
    assert_eq!(later.export("turn-0002"), both().export("turn-0002"));
    assert_eq!(later.export("t1"), later.export("turn-0002"), "by the provider's id of the turn");
}

#[test]
fn older_receipt_verifies_after_a_run_is_added() {
    let archive = TestStore::new();
    archive.record(ROLLOUT, &rollout());
    let text = archive.export("turn-0002");
    let lines = archive.lines("turn-0002");
    archive.record(CONNECTION, &connection());
    assert_ne!(archive.export("turn-0002"), text);
    verify(&text, Reference::Store(&archive.store())).unwrap();
    verify(&text, Reference::Transcripts(archive.readers(&[ROLLOUT]))).unwrap();
    verify(&text, Reference::Transcripts(archive.readers(&[CONNECTION, ROLLOUT]))).unwrap();
    verify(&text, Reference::Lines(&lines)).unwrap();
    // A receipt of both runs needs both.
    let found = verify(&archive.export("turn-0002"), Reference::Transcripts(archive.readers(&[ROLLOUT])));
    assert!(matches!(&found, Err(Error::NotGiven { run }) if run.to_string() == CONNECTION), "{found:?}");
}

#[test]
fn turn_of_one_run_has_its_own_receipt() {
    let receipt = both().checked("turn-0002@app-server");
    let lineage = &receipt["source_event_lineage"];
    assert_eq!((&lineage["first_seq"], &lineage["event_count"]), (&json!(47), &json!(4)));
    assert_eq!(receipt["reasoning_custody"]["items"][0]["id"], "item-run2-48");
    assert_eq!(receipt["tool_lineage"]["unmatched_tool_call_ids"], json!(["call_30"]));
    // The command may have run.
    assert_eq!(receipt["side_effect_boundary"]["command_execution_count"], 0);
    let reason = "a lower bound: the record does not say what became of 1 call";
    let bound = json!({"field": "side_effect_boundary.command_execution_count", "reason": reason});
    assert!(receipt["unavailable"].as_array().unwrap().contains(&bound));
    // The connection carries approvals, so it is known that there were none.
    assert_eq!(approvals(&receipt), [Some(0), Some(0), Some(0)]);
}

#[test]
fn zero_counts_need_a_run_with_the_whole_turn() {
    let archive = TestStore::new();
    archive.record(ROLLOUT, &rollout());
    // The connection was cut off before the turn ended.
    archive.record(CONNECTION, &connection()[..3]);
    let receipt = archive.checked("turn-0002");
    assert_eq!(approvals(&receipt), [None, None, None]);
    let reason = "no source that carries approvals has the whole turn";
    assert!(receipt["unavailable"].as_array().unwrap().iter().any(|one| one["reason"] == reason));
}

#[test]
fn note_marks_a_gap_in_its_run_only() {
    let archive = both();
    let note = |seq: u64| {
        format!(
            "{{\"time\":\"2026-06-02T01:00:00.000Z\",\"kind\":\"dropped\",\"count\":2,\"seq_last\":{seq},\"cause\":\"x\"}}\n"
        )
    };
    let notes = archive.0.path().join(format!("transcripts/{CONNECTION}.notes.jsonl"));
    fs::write(notes, note(20)).unwrap();
    let receipt = archive.checked("turn-0002");
    let range = json!([{"after_seq": 20, "count": 2, "what": "dropped", "run_id": CONNECTION}]);
    assert_eq!(receipt["source_event_lineage"]["missing_event_ranges"], range);
}

#[test]
fn changed_thread_run_or_length_is_detected() {
    let archive = both();
    let text = archive.export("turn-0002");
    let lines = archive.lines("turn-0002");
    let other = "00000000-0000-4000-8000-000000000000";
    let changes = [
        (text.replacen(ROLLOUT, other, 1), "thread.id"),
        (text.replacen("\"tree_size\": 50", "\"tree_size\": 49", 1), "source_event_lineage.runs.1.tree_size"),
        (
            text.replacen("\"adapter\": \"codex/2\"", "\"adapter\": \"codex/9\"", 1),
            "source_event_lineage.runs.0.adapter",
        ),
    ];
    for (changed, field) in changes {
        let found = verify(&changed, Reference::Lines(&lines));
        assert!(matches!(&found, Err(Error::Differs(at)) if at.field == field), "{field}: {found:?}");
        let found = verify(&changed, Reference::Transcripts(archive.readers(&[ROLLOUT, CONNECTION])));
        assert!(found.is_err(), "{field}: {found:?}");
        assert!(verify(&changed, Reference::Store(&archive.store())).is_err(), "{field}");
    }
}

#[test]
fn receipt_of_an_open_turn_is_not_final() {
    let archive = TestStore::new();
    let mut lines = rollout();
    lines.pop();
    archive.record(ROLLOUT, &lines);
    let text = archive.export("turn-0002");
    assert!(text.contains("\"status\": \"in_progress\""));
    let proven = verify(&text, Reference::Store(&archive.store())).unwrap();
    assert!(!proven.is_final && proven.open.iter().any(|open| open.contains("not final")), "{proven:?}");
    let ended = verify(&both().export("turn-0002"), Reference::Store(&both().store())).unwrap();
    assert!(ended.is_final, "{ended:?}");
}
