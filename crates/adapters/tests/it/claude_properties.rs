//! Properties of every file of Claude: cuts at any byte and restarts after any event do not change the output.

use serde_json::Value;
use serde_json::value::RawValue;
use steno_adapters::{Adapter, claude};
use steno_model::{Frame, Vocabulary as _};
use steno_testkit::{needs, places, shared_dir};

use crate::reading::{
    Piece, Reading, claude_file, claude_pieces, is_named, output, read, read_unfinished, source_of,
};

/// Files that use all state of the adapter: subagents inline and as progress, background tasks, forks, compaction.
const FILES: [&str; 8] = [
    "recordings/claude/real_2.1.19_agent_progress.jsonl",
    "versions/claude/disk_1.0.100_sub.jsonl",
    "versions/claude/disk_2.1.197_basic_resume_compact.jsonl",
    "versions/claude/disk_2.1.325_fork.jsonl",
    "versions/claude/disk_2.1.325_sub/main.jsonl",
    "versions/claude/stream-json_2.1.325_sub.ndjson",
    "versions/claude/stream-json_2.1.325_compact.ndjson",
    "versions/claude/stream-json_2.1.325_control_bidirectional.ndjson",
];

#[test]
fn output_does_not_depend_on_how_bytes_are_cut() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for name in FILES {
        let path = shared.join(name);
        let whole = adapted(&path);
        let (_, pieces) = claude_file(&path);
        for len in [1, 7, 4096] {
            // Each piece is cut separately: lines of the two directions do not mix.
            let cut: Vec<Piece> = pieces.iter().flat_map(|piece| cut(piece, len)).collect();
            let (adapter, _) = claude_file(&path);
            let reading = read(adapter, &cut);
            assert!(reading.events == whole.events, "{name} in pieces of {len}");
            assert_eq!(reading.entries, whole.entries, "{name} in pieces of {len}");
            assert_eq!(reading.completeness, whole.completeness, "{name} in pieces of {len}");
        }
    }
}

#[test]
fn events_of_the_first_lines_are_a_prefix_of_all_events() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for name in FILES {
        let path = shared.join(name);
        let (_, pieces) = claude_file(&path);
        let lines: Vec<Piece> = pieces.iter().flat_map(lines).collect();
        let (adapter, _) = claude_file(&path);
        let whole = read_unfinished(adapter, &lines);
        for end in 0..lines.len() {
            let (adapter, _) = claude_file(&path);
            let part = read_unfinished(adapter, &lines[..end]);
            assert!(whole.events.starts_with(&part.events), "{name}: the first {end} lines");
        }
    }
}

#[test]
fn restart_after_any_event_continues_without_gaps() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for name in FILES {
        let whole = adapted(&shared.join(name));
        let again = adapted(&shared.join(name));
        for written in 1..whole.events.len() {
            let last = position(&whole.events[written - 1]);
            let rest: Vec<&Value> = again.events.iter().filter(|event| position(event) > last).collect();
            assert!(rest.iter().copied().eq(&whole.events[written..]), "{name}: after event {written}");
        }
    }
}

#[test]
fn rewritten_file_gives_only_new_events() {
    let old = b"{\"type\":\"user\",\"uuid\":\"u1\",\"sessionId\":\"s\",\"timestamp\":\"2026-06-08T08:14:42Z\",\"message\":{\"content\":\"One\"}}\n";
    let new = b"{\"type\":\"user\",\"uuid\":\"u2\",\"sessionId\":\"s\",\"message\":{\"content\":\"Two\"}}\n";
    let mut drafts = Vec::new();
    let mut adapter: Adapter = claude::disk(source_of("x.jsonl".as_ref()));
    adapter.feed(Frame::of_file(0, old), &mut drafts);
    let before = drafts.len();
    let both = [&old[..], new].concat();
    let frame = Frame { generation: 1, ..Frame::of_file(0, &both) };
    adapter.feed(frame, &mut drafts);
    let added: Vec<&str> = drafts[before..].iter().map(|(_, draft)| draft.event_type().as_str()).collect();
    assert_eq!(added, ["step.completed", "step.completed", "step.started", "message.user"]);
}

fn adapted(path: &std::path::Path) -> Reading {
    let (adapter, pieces) = claude_file(path);
    read(adapter, &pieces)
}

fn position(event: &Value) -> (u64, u64, u64) {
    let number = |name: &str| event["evidence"][name].as_u64().unwrap();
    (number("generation"), number("offset"), number("part"))
}

fn cut(piece: &Piece, len: usize) -> Vec<Piece> {
    piece.bytes.chunks(len).map(|bytes| Piece { bytes: bytes.to_vec(), ..piece.clone() }).collect()
}

fn lines(piece: &Piece) -> Vec<Piece> {
    let lines = piece.bytes.split_inclusive(|byte| *byte == b'\n');
    lines.map(|bytes| Piece { bytes: bytes.to_vec(), ..piece.clone() }).collect()
}

#[test]
fn invalid_bytes_lose_no_valid_record() {
    let good = |uuid: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"sessionId\":\"s\",\"message\":{{\"content\":\"Hi\"}}}}"
        )
    };
    let bad: [&[u8]; 6] =
        [b"\xff\xfe", b"\0\0\0", b"{\"type\":", b"[1,2]", b"nonsense", b"{\"type\":\"user\",\"uuid\":\"\xff"];
    for bytes in bad {
        let text = [good("1").as_bytes(), b"\n", bytes, b"\n", good("2").as_bytes(), b"\n"].concat();
        let reading = read(claude::disk(source_of("x.jsonl".as_ref())), &[output(&text)]);
        assert_eq!(reading.of_type("message.user").count(), 2, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn session_and_subagent_files_name_the_same_runs() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let mut pairs = 0;
    for name in places::files_below(&shared.join("captures/claude")) {
        let Some((parent, _)) = name.split_once("/subagents/").filter(|_| is_named(&name, "jsonl")) else {
            continue;
        };
        let main = adapted(&shared.join("captures/claude").join(format!("{parent}.jsonl")));
        let child = adapted(&shared.join("captures/claude").join(&name));
        let link = main.of_type("step.call_workflow.started").next().unwrap();
        let begun = child.of_type("run.started").next().unwrap();
        assert_eq!(link["child_run_id"], begun["run_id"], "{name}");
        assert_eq!(begun["parent_run_id"], link["run_id"], "{name}");
        assert_eq!(main.of_type("step.call_workflow.completed").count(), 1, "{name}");
        pairs += 1;
    }
    assert!(pairs >= 6, "only {pairs} pairs");
}

/// Values of unexpected kinds.
const ODD: [&str; 8] =
    ["null", "true", "-1e999", "\"\"", "\"\\ud800\"", "[]", "{}", "[[{\"type\":\"text\"}]]"];

#[test]
fn wrong_kind_of_value_does_not_stop_the_adapter() {
    let directory = places::workspace_root().join("crates/adapters/tests/golden/claude");
    let mut tried = 0;
    for name in places::files_below(&directory).iter().filter(|name| name.contains(".in.")) {
        let text = places::read(directory.join(name));
        for (at, value) in values(&text) {
            for odd in ODD {
                let changed = [&text[..at], odd, &text[at + value..]].concat();
                let (adapter, pieces) = claude_pieces(name, changed.as_bytes());
                let reading = read(adapter, &pieces);
                assert!(!reading.lines.is_empty(), "{name} with {odd} at {at}");
                tried += 1;
            }
        }
    }
    assert!(tried > 5_000, "only {tried} tried");
}

/// Finds the offset and length of the values of fields in a JSON text.
fn values(text: &str) -> Vec<(usize, usize)> {
    let starts = text.match_indices("\":").map(|(at, colon)| at + colon.len());
    let mut found = Vec::new();
    for start in starts {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<&RawValue>();
        if let Some(Ok(value)) = stream.next() {
            found.push((start, value.get().len()));
        }
    }
    found
}
