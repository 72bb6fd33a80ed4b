//! Properties of every source of Codex and of recorded connections: cuts, restarts and other sources read beside it do not change the output.
//!
//! Hand-written sessions are always tested, the samples of `../shared` if they are present.

use std::iter::repeat_n;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;
use steno_adapters::{Adapter, codex};
use steno_model::{Draft, Frame, RunId};
use steno_testkit::{needs, places, shared_dir};

use crate::codex_files::{adapter_for, all_samples, pieces_of};
use crate::copilot_files::{self, copilot_pieces};
use crate::golden_pairs::{acp_pieces, codex_pieces, gemini_pieces, http_pieces, mcp_pieces};
use crate::reading::{Piece, Reading, claude_pieces, output, read, read_unfinished, source_of};

/// A source that can be read again and again.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) open: Box<dyn Fn() -> Adapter>,
    pub(crate) pieces: Vec<Piece>,
}

impl Sample {
    pub(crate) fn read(&self) -> Reading {
        read((self.open)(), &self.pieces)
    }

    /// Returns the pieces, cut so that none is longer than the next of these lengths.
    pub(crate) fn cut(&self, lengths: &[usize]) -> Vec<Piece> {
        let mut lengths = lengths.iter().copied().cycle();
        let mut cut = Vec::new();
        for piece in &self.pieces {
            let mut rest = &piece.bytes[..];
            while !rest.is_empty() {
                let (bytes, after) = rest.split_at(lengths.next().unwrap_or(1).clamp(1, rest.len()));
                cut.push(Piece { bytes: bytes.to_vec(), ..piece.clone() });
                rest = after;
            }
        }
        cut
    }
}

/// Returns the hand-written sessions of a provider.
pub(crate) fn by_hand(provider: &str) -> Vec<Sample> {
    let directory = places::workspace_root().join("crates/adapters/tests/golden").join(provider);
    let open = match provider {
        "codex" => codex_pieces,
        "copilot" => copilot_pieces,
        "gemini" => gemini_pieces,
        "http" => http_pieces,
        "acp" => acp_pieces,
        "mcp" => mcp_pieces,
        _ => claude_pieces,
    };
    let names = places::files_below(&directory).into_iter().filter(|name| name.contains(".in."));
    let sample = |name: String| {
        let bytes = places::read_bytes(directory.join(&name));
        let (_, pieces) = open(&name, &bytes);
        let opened = name.clone();
        Sample { name, open: Box::new(move || open(&opened, &bytes).0), pieces }
    };
    names.map(sample).collect()
}

/// Returns the samples of the shared directory.
fn shared(directory: &std::path::Path) -> Vec<Sample> {
    let sample = |path: PathBuf| {
        let pieces = pieces_of(&path).into_iter();
        let pieces = pieces.map(|(lane, bytes)| Piece { lane, captured: None, bytes }).collect();
        Sample { name: path.display().to_string(), open: Box::new(move || adapter_for(&path)), pieces }
    };
    let copilots = |path: PathBuf| {
        let pieces = vec![output(&places::read_bytes(&path))];
        let name = path.display().to_string();
        Sample { name, open: Box::new(move || copilot_files::adapter_for(&path)), pieces }
    };
    let samples = all_samples(directory).into_iter().map(sample);
    samples.chain(copilot_files::all_samples(directory).into_iter().map(copilots)).collect()
}

#[track_caller]
pub(crate) fn check_same(name: &str, got: &Reading, want: &Reading) {
    assert!(got.lines == want.lines, "{name}: events");
    assert_eq!(got.entries, want.entries, "{name}: entries");
    assert_eq!(got.completeness, want.completeness, "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn output_does_not_depend_on_how_bytes_are_cut(lengths in prop::collection::vec(1_usize..400, 1..20)) {
        for sample in ["codex", "copilot", "http", "mcp", "acp"].into_iter().flat_map(by_hand) {
            let cut = read((sample.open)(), &sample.cut(&lengths));
            check_same(&sample.name, &cut, &sample.read());
        }
    }

    #[test]
    fn interleaved_sources_do_not_affect_each_other(
        turns in prop::collection::vec((any::<bool>(), 1_usize..300), 1..60),
        picked in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let samples: Vec<Sample> = ["codex", "claude", "copilot", "gemini"].into_iter().flat_map(by_hand).collect();
        let pair = [&samples[picked.0.index(samples.len())], &samples[picked.1.index(samples.len())]];
        let alone = pair.map(|sample| drafts_of(&mut (sample.open)(), &sample.pieces));
        prop_assert_eq!(interleaved(pair, &turns), alone);
    }
}

/// The drafts of a source, in order.
type Drafts = Vec<(RunId, Draft)>;

fn drafts_of(adapter: &mut Adapter, pieces: &[Piece]) -> Drafts {
    let (mut drafts, mut offset) = (Vec::new(), 0);
    for piece in pieces {
        feed(adapter, piece, &mut offset, &mut drafts);
    }
    adapter.finish(&mut drafts);
    drafts
}

fn feed(adapter: &mut Adapter, piece: &Piece, offset: &mut u64, drafts: &mut Drafts) {
    let captured = piece.captured.as_ref();
    adapter.feed(
        Frame {
            lane: piece.lane,
            generation: 0,
            offset: *offset,
            unpacked: None,
            captured,
            bytes: &piece.bytes,
        },
        drafts,
    );
    *offset += piece.bytes.len() as u64;
}

/// More than the size of any hand-written session.
const BYTES_MAX: usize = 100_000;

/// Feeds two sources alternately, in pieces of these lengths, and then the rest of both.
fn interleaved(pair: [&Sample; 2], turns: &[(bool, usize)]) -> [Drafts; 2] {
    let mut adapters = pair.map(|sample| (sample.open)());
    let lengths =
        |second: bool| turns.iter().filter(|turn| turn.0 == second).map(|turn| turn.1).collect::<Vec<_>>();
    let mut queues = [pair[0].cut(&lengths(false)), pair[1].cut(&lengths(true))].map(Vec::into_iter);
    let (mut drafts, mut offsets) = ([Drafts::new(), Drafts::new()], [0, 0]);
    let order = turns.iter().map(|turn| usize::from(turn.0)).cycle().take(BYTES_MAX);
    let rest = repeat_n(0, BYTES_MAX).chain(repeat_n(1, BYTES_MAX));
    for at in order.chain(rest) {
        if let Some(piece) = queues[at].next() {
            feed(&mut adapters[at], &piece, &mut offsets[at], &mut drafts[at]);
        } else if queues.iter().all(|queue| queue.len() == 0) {
            break;
        }
    }
    assert!(queues.iter().all(|queue| queue.len() == 0), "everything is fed");
    for (adapter, drafts) in adapters.iter_mut().zip(&mut drafts) {
        adapter.finish(drafts);
    }
    drafts
}

/// Checks that positions rise from event to event. A restart relies on it: it writes events after the last position.
#[track_caller]
fn check_restart(sample: &Sample) {
    let (whole, again) = (sample.read(), sample.read());
    check_same(&sample.name, &again, &whole);
    let positions: Vec<(u64, u64, u64)> = whole.lines.iter().map(|line| position(line)).collect();
    for (number, pair) in positions.windows(2).enumerate() {
        assert!(pair[0] < pair[1], "{}: event {} and the next: {pair:?}", sample.name, number + 1);
    }
}

fn position(line: &str) -> (u64, u64, u64) {
    // Strings may contain lone surrogates, which `Value` refuses.
    let fields: std::collections::BTreeMap<&str, &RawValue> = serde_json::from_str(line).unwrap();
    let evidence: Value = serde_json::from_str(fields["evidence"].get()).unwrap();
    let number = |name: &str| evidence[name].as_u64().unwrap();
    (number("generation"), number("offset"), number("part"))
}

#[test]
fn restart_after_any_event_continues_without_gaps() {
    by_hand("codex").iter().for_each(check_restart);
    by_hand("claude").iter().for_each(check_restart);
    by_hand("copilot").iter().for_each(check_restart);
    by_hand("http").iter().for_each(check_restart);
    by_hand("mcp").iter().for_each(check_restart);
    by_hand("acp").iter().for_each(check_restart);
    let directory = needs!(shared_dir(), "there are no samples");
    let samples = shared(&directory);
    assert!(samples.len() > 60, "only {} samples", samples.len());
    samples.iter().for_each(check_restart);
}

/// Records of a rollout: some wait for others, some end the waiting, some do neither.
const ROLLOUT: [&str; 18] = [
    r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#,
    r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000002"}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":1}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1"}}"#,
    r#"{"type":"turn_context","payload":{"model":"m"}}"#,
    r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go"}}"#,
    r#"{"type":"event_msg","payload":{"type":"agent_message","message":"One"}}"#,
    r#"{"type":"event_msg","payload":{"type":"agent_message","message":1}}"#,
    r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"Reasoning","id":"r","summary_text":["a","b"]}}}"#,
    r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One"}]}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call","name":"spawn_agent","arguments":"{}","call_id":"c1"}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"agent_id\":\"a1\"}"}}"#,
    r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CollabAgentToolCall","id":"c1","tool":"spawnAgent","status":"completed","receiver_thread_ids":["a1"],"agents_states":{"a1":{"status":"completed"}}}}}"#,
    r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"McpToolCall","id":"c1","server":1,"status":"completed"}}}"#,
    r#"{"type":"event_msg","payload":{"type":"warning","message":"x"}}"#,
    r#"{"type":"world_state","payload":{}}"#,
    "torn",
];

/// Messages of a connection, of the same three kinds.
const CONNECTION: [&str; 12] = [
    r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t1"}}}}"#,
    r#"{"dir":"c2s","msg":{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"A"}]}}}"#,
    r#"{"dir":"c2s","msg":{"id":2,"method":"turn/start","params":{"threadId":"t2","input":[{"type":"text","text":"B"}]}}}"#,
    r#"{"dir":"c2s","msg":{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"C"},1]}}}"#,
    r#"{"dir":"c2s","msg":{"id":3,"method":"turn/steer","params":{"threadId":"t1","input":[{"type":"text","text":"D"}]}}}"#,
    r#"{"dir":"s2c","msg":{"id":1,"result":{"turn":{"id":"u1"}}}}"#,
    r#"{"dir":"s2c","msg":{"id":2,"result":{"turn":{"id":"u2"}}}}"#,
    r#"{"dir":"s2c","msg":{"id":1,"error":{"message":"busy"}}}"#,
    r#"{"dir":"s2c","msg":{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}}"#,
    r#"{"dir":"s2c","msg":{"method":"item/completed","params":{"threadId":"t1","item":{"type":"userMessage","content":[]}}}}"#,
    r#"{"dir":"s2c","msg":{"method":"item/completed","params":{"threadId":"t3","item":{"type":"userMessage","content":[]}}}}"#,
    "torn",
];

proptest! {
    #[test]
    fn positions_rise_for_any_order_of_records(picked in prop::collection::vec(0_usize..ROLLOUT.len(), 1..24)) {
        let rollout = || codex::rollout(source_of("x".as_ref()));
        let connection = || codex::app_server(source_of("x".as_ref())).of_conversation();
        let lines = |pool: &[&'static str]| {
            let lines: Vec<&str> = picked.iter().map(|at| pool[at % pool.len()]).chain([""]).collect();
            lines.join("\n")
        };
        let (name, open): (_, Box<dyn Fn() -> Adapter>) = (format!("{picked:?}"), Box::new(rollout));
        check_restart(&Sample { name: name.clone(), open, pieces: vec![output(lines(&ROLLOUT).as_bytes())] });
        let pieces = vec![output(lines(&CONNECTION).as_bytes())];
        check_restart(&Sample { name, open: Box::new(connection), pieces });
    }
}

#[test]
fn waiting_prompt_keeps_positions_rising() {
    // The turn of the first thread never begins, and the second thread continues.
    let lines = [
        r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t1"}}}}"#,
        r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t2"}}}}"#,
        r#"{"dir":"c2s","msg":{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Lost?"}]}}}"#,
        r#"{"dir":"s2c","msg":{"method":"item/completed","params":{"threadId":"t2","item":{"type":"agentMessage","id":"m","text":"On."}}}}"#,
        "",
    ];
    let pieces = vec![output(lines.join("\n").as_bytes())];
    let open = || codex::app_server(source_of("x".as_ref())).of_conversation();
    let sample = Sample { name: "two threads".to_owned(), open: Box::new(open), pieces };
    assert_eq!(sample.read().of_type("message.user").count(), 1);
    check_restart(&sample);
}

#[test]
fn events_of_the_first_bytes_are_a_prefix_of_all_events() {
    for sample in by_hand("codex").into_iter().chain(by_hand("copilot")).chain(by_hand("http")) {
        let whole = read_unfinished((sample.open)(), &sample.pieces);
        let bytes = &sample.pieces[0].bytes;
        // Recordings over HTTP repeat the conversation in each request, so they are long.
        let step = if bytes.len() > 4096 { 211 } else { 7 };
        for end in (0..bytes.len()).step_by(step) {
            let part = read_unfinished((sample.open)(), &[output(&bytes[..end])]);
            assert!(whole.lines.starts_with(&part.lines), "{}: the first {end} bytes", sample.name);
        }
    }
}

/// Values of unexpected kinds.
const ODD: [&str; 5] = ["null", "-1e999", "\"\\ud800\"", "{}", "[[{\"type\":\"text\"}]]"];

#[test]
fn wrong_kind_of_value_does_not_stop_the_adapter() {
    let mut tried = 0;
    // Every value is replaced, so long files take long.
    let is_short = |sample: &Sample| sample.pieces[0].bytes.len() < 5_000;
    let copilots = by_hand("copilot").into_iter().filter(is_short);
    for sample in by_hand("codex").into_iter().chain(copilots).chain(by_hand("http")) {
        let text = String::from_utf8(sample.pieces[0].bytes.clone()).unwrap();
        let step = if text.len() > 4096 { 13 } else { 1 };
        for (at, len) in values(&text).into_iter().step_by(step) {
            for odd in ODD {
                let changed = [&text[..at], odd, &text[at + len..]].concat();
                let reading = read((sample.open)(), &[output(changed.as_bytes())]);
                let read = reading.completeness.records + reading.completeness.unreadable;
                assert!(read >= 2, "{} with {odd} at {at}", sample.name);
                tried += 1;
            }
        }
    }
    assert!(tried > 5_000, "only {tried} tried");
}

/// Finds the offset and length of the values of fields in a JSON text.
fn values(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for start in text.match_indices("\":").map(|(at, colon)| at + colon.len()) {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<&RawValue>();
        if let Some(Ok(value)) = stream.next() {
            found.push((start, value.get().len()));
        }
    }
    found
}
