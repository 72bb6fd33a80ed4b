//! Every line has an entry, except deltas, which are part of the entry of their item.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use steno_adapters::{Adapter, AdapterEntry, Sink, Source, claude, codex, copilot, open, sniff};
use steno_model::{Draft, EventType, Frame, Lane, Provider, RunId, Vocabulary as _};
use steno_testkit::{needs, places, shared_dir};

use crate::reading::{is_named, source_of};

/// The fields of an entry that these tests compare.
#[derive(Debug, PartialEq)]
struct Entry {
    kind: &'static str,
    source: String,
    session: Option<String>,
    subtype: Option<String>,
    detail: Value,
    accumulated: Option<String>,
    raw: String,
    unreadable: Option<&'static str>,
    offset: u64,
}

#[derive(Default)]
struct Entries(Vec<Entry>);

impl Sink for Entries {
    fn draft(&mut self, _run: RunId, _draft: Draft) {}

    fn wants(&self, _event_type: EventType) -> bool {
        false
    }

    fn wants_entries(&self) -> bool {
        true
    }

    fn entry(&mut self, entry: AdapterEntry<'_>) {
        self.0.push(Entry {
            kind: entry.entry_type.as_str(),
            source: entry.source.to_json().to_text().into_owned(),
            session: entry.session_id.map(str::to_owned),
            subtype: entry.subtype.map(str::to_owned),
            detail: serde_json::from_str(entry.detail).unwrap_or_default(),
            accumulated: entry.accumulated.map(str::to_owned),
            raw: entry.raw.to_owned(),
            unreadable: entry.unreadable,
            offset: entry.offset,
        });
    }
}

fn entries_of(mut adapter: Adapter, bytes: &[u8]) -> Vec<Entry> {
    let mut sink = Entries::default();
    adapter.feed(Frame::of_file(0, bytes), &mut sink);
    adapter.finish(&mut sink);
    sink.0
}

/// Feeds bytes in pieces that do not end at line breaks.
fn entries_in_pieces(mut adapter: Adapter, bytes: &[u8]) -> Vec<Entry> {
    let (mut sink, mut offset) = (Entries::default(), 0);
    for piece in bytes.chunks(97) {
        adapter.feed(Frame::of_file(offset, piece), &mut sink);
        offset += piece.len() as u64;
    }
    adapter.finish(&mut sink);
    sink.0
}

/// Feeds lines one by one; `>` marks lines that are sent to the agent.
fn entries_of_lines(mut adapter: Adapter, lines: &[&str]) -> Vec<Entry> {
    let (mut sink, mut offset) = (Entries::default(), 0);
    for line in lines {
        let sent = line.strip_prefix('>');
        let lane = if sent.is_some() { Lane::ToAgent } else { Lane::FromAgent };
        let bytes = format!("{}\n", sent.unwrap_or(line));
        adapter.feed(Frame { lane, ..Frame::of_file(offset, bytes.as_bytes()) }, &mut sink);
        offset += bytes.len() as u64;
    }
    adapter.finish(&mut sink);
    sink.0
}

/// Returns true if a line is a delta, by its method or type.
fn is_delta(line: &str) -> bool {
    let Ok(record) = serde_json::from_str::<Value>(line) else { return false };
    let record = record.get("msg").filter(|_| record.get("dir").is_some()).unwrap_or(&record);
    let method = record["method"].as_str().unwrap_or_default();
    let is_notice = method.starts_with("item/") && (method.ends_with("/delta") || method.ends_with("Delta"));
    let is_old_notice = method.starts_with("codex/event/") && method.ends_with("_delta");
    let is_piece = record["type"] == "stream_event" && record["event"]["type"] == "content_block_delta";
    let event = record["payload"]["type"].as_str().or(record["msg"]["type"].as_str()).unwrap_or_default();
    let kind = record["type"].as_str().unwrap_or_default();
    let is_copilots = kind.starts_with("assistant.") && kind.ends_with("_delta");
    is_notice || is_old_notice || is_piece || is_copilots || event.ends_with("_delta")
}

/// Tells whether a line is a piece of a text that goes on in the next line, in Gemini's stream or over ACP.
fn is_continued(line: &str, next: Option<&str>) -> bool {
    let text_of = |line: &str| {
        let record: Value = serde_json::from_str(line).ok()?;
        if record["type"] == "message" && record["role"] == "assistant" && record["delta"] == true {
            return Some(Value::Null);
        }
        let record = record.get("msg").filter(|_| record.get("dir").is_some()).unwrap_or(&record);
        let (params, update) = (&record["params"], &record["params"]["update"]);
        let kind = update["sessionUpdate"].as_str()?;
        let is_chunk = ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"].contains(&kind);
        is_chunk.then(|| json!([params["sessionId"], kind, update["messageId"]]))
    };
    text_of(line).is_some_and(|text| next.and_then(text_of) == Some(text))
}

/// Counts over all files.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    files: u64,
    lines: u64,
    deltas: u64,
    entries: u64,
    unknown: u64,
}

fn check_file(path: &Path, tally: &mut Tally) {
    let bytes = places::read_bytes(path);
    let open_it = || sniff(&bytes).and_then(|sniffed| open(&sniffed, source_of(path)));
    let (Some(adapter), Some(again)) = (open_it(), open_it()) else { return };
    let entries = entries_of(adapter, &bytes);
    assert_eq!(entries_in_pieces(again, &bytes), entries, "{}", path.display());
    tally.files += 1;
    tally.entries += entries.len() as u64;
    tally.unknown += entries.iter().filter(|entry| entry.kind == "unknown").count() as u64;
    let mut by_offset: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in &entries {
        *by_offset.entry(entry.offset).or_default() += 1;
    }
    let mut start = 0;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let end = start + line.len() as u64;
        let text = String::from_utf8_lossy(line);
        let next = lines.peek().map(|next| String::from_utf8_lossy(next));
        if !text.trim().is_empty() {
            tally.lines += 1;
            let has_entry = by_offset.range(start..end).next().is_some();
            let is_delta = is_delta(&text) || is_continued(&text, next.as_deref());
            tally.deltas += u64::from(is_delta);
            assert!(has_entry != is_delta, "{}: has entry: {has_entry}: {text}", path.display());
        }
        start = end;
    }
}

#[test]
fn every_line_of_every_sample_has_an_entry() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let mut tally = Tally::default();
    let agents = || Provider::ALL.iter().map(|provider| provider.as_str());
    let kinds = ["captures", "versions", "recordings"].into_iter();
    let of_agents = kinds.flat_map(|kind| agents().map(move |agent| (kind, agent)));
    for (kind, agent) in of_agents.chain([("versions", "mcp")]) {
        let root = shared.join(kind).join(agent);
        if !root.exists() {
            continue;
        }
        // A document's records are not its lines.
        let is_document = |file: &str| is_named(file, "json") || file.contains("json_output/stream");
        for file in places::files_below(&root).into_iter().filter(|file| !is_document(file)) {
            check_file(&root.join(file), &mut tally);
        }
    }
    assert!(tally.files > 110 && tally.deltas > 0, "{tally:?}");
}

const SESSION: &str = "0f000000-0000-4000-8000-000000000001";

fn source() -> Source {
    Source::named("s1")
}

/// Shows entries: type, subtype if any, and source unless it is the main agent.
fn shown(entries: &[Entry]) -> Vec<String> {
    let show = |entry: &Entry| {
        let subtype = entry.subtype.as_ref().map(|subtype| format!("({subtype})")).unwrap_or_default();
        let source = if entry.source == "main" { String::new() } else { format!(" {}", entry.source) };
        format!("{}{subtype}{source}", entry.kind)
    };
    entries.iter().map(show).collect()
}

#[test]
fn claude_bookkeeping_gives_unknown_entries_in_file_order() {
    let head = format!(r#""sessionId":"{SESSION}","timestamp":"2026-06-08T08:14:42.000Z""#);
    let lines = [
        // Neither line has a session id or a time.
        r#"{"type":"file-history-snapshot","messageId":"m"}"#.to_owned(),
        r#"{"type":"summary","summary":"Another session","leafUuid":"x"}"#.to_owned(),
        format!(r#"{{"type":"user","uuid":"u1",{head},"message":{{"role":"user","content":"Go"}}}}"#),
        format!(r#"{{"type":"last-prompt",{head},"lastPrompt":"Go"}}"#),
        format!(r#"{{"type":"user","uuid":"u1",{head},"message":{{"role":"user","content":"Go"}}}}"#),
        format!(r#"{{"type":"system","subtype":"compact_boundary","uuid":"u2",{head}}}"#),
        format!(
            r#"{{"type":"attachment","uuid":"u3",{head},"attachment":{{"type":"prompt_snapshot","systemPrompt":["Be kind."]}}}}"#
        ),
        format!(r#"{{"type":"dream","uuid":"u4",{head}}}"#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let entries = entries_of_lines(claude::disk(source()), &lines);
    let want = [
        "unknown",
        "system_event(title)",
        "user_message",
        "unknown",
        // The repeated line.
        "unknown",
        "system_event(compaction)",
        "user_message",
        "unknown",
    ];
    assert_eq!(shown(&entries), want);
    for (entry, line) in entries.iter().zip(&lines) {
        assert_eq!(entry.raw, *line);
        assert_eq!(entry.detail, serde_json::from_str::<Value>(line).unwrap());
    }
}

#[test]
fn file_of_bookkeeping_only_has_entries() {
    let lines =
        [r#"{"type":"file-history-snapshot","messageId":"m"}"#, r#"{"type":"last-prompt","lastPrompt":"x"}"#];
    assert_eq!(shown(&entries_of_lines(claude::disk(source()), &lines)), ["unknown", "unknown"]);
}

#[test]
fn invalid_json_gives_unknown_entries_with_a_reason() {
    let user = format!(
        r#"{{"type":"user","uuid":"u1","sessionId":"{SESSION}","timestamp":"2026-06-08T08:14:42.000Z","message":{{"role":"user","content":"Go"}}}}"#
    );
    let meta = r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#;
    let init = format!(r#"{{"type":"system","subtype":"init","session_id":"{SESSION}"}}"#);
    let thread = r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#;
    let start = format!(r#"{{"type":"session.start","data":{{"sessionId":"{SESSION}"}},"id":"e1"}}"#);
    let prompt = r#"{"type":"user.message","data":{"content":"Go"},"id":"e1"}"#;
    let surfaces: [(Adapter, &str); 6] = [
        (claude::disk(source()), &user),
        (claude::stream(source()), &init),
        (codex::rollout(source()), meta),
        (codex::app_server(source()), thread),
        (copilot::events(source()), &start),
        (copilot::stream(source()), prompt),
    ];
    for (adapter, first) in surfaces {
        let text = format!("before\n{first}\ngarbage\n[1]\ntorn {{");
        let entries = entries_of(adapter, text.as_bytes());
        let bad: Vec<_> = entries.iter().filter(|entry| entry.unreadable.is_some()).collect();
        let raw: Vec<&str> = bad.iter().map(|entry| entry.raw.as_str()).collect();
        assert_eq!(raw, ["before", "garbage", "[1]", "torn {"], "{first}");
        assert!(bad.iter().all(|entry| entry.kind == "unknown"));
        assert!(entries.is_sorted_by_key(|entry| entry.offset), "{first}");
    }
}

/// A notice of a connection about the thread `t1`.
fn notice(method: &str, params: &str) -> String {
    format!(r#"{{"method":"{method}","params":{{"threadId":"t1",{params}}}}}"#)
}

#[test]
fn item_without_text_has_the_text_of_its_deltas() {
    let delta = |method: &str, item: &str, text: &str| {
        notice(&format!("item/{method}"), &format!(r#""itemId":"{item}","delta":"{text}""#))
    };
    let done = |item: &str| notice("item/completed", &format!(r#""item":{item}"#));
    let lines = [
        r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#.to_owned(),
        delta("agentMessage/delta", "m1", "All "),
        delta("agentMessage/delta", "m2", "Other"),
        delta("agentMessage/delta", "m1", "is well."),
        done(r#"{"type":"agentMessage","id":"m1","text":""}"#),
        done(r#"{"type":"agentMessage","id":"m2","text":"Other words."}"#),
        notice("item/reasoning/summaryPartAdded", r#""itemId":"r1","summaryIndex":0"#),
        delta("reasoning/summaryTextDelta", "r1", "One."),
        notice("item/reasoning/summaryPartAdded", r#""itemId":"r1","summaryIndex":1"#),
        delta("reasoning/summaryTextDelta", "r1", "Two."),
        done(r#"{"type":"reasoning","id":"r1","summary":[],"content":[]}"#),
        notice(
            "item/started",
            r#""item":{"type":"commandExecution","id":"c1","command":"ls","status":"inProgress"}"#,
        ),
        delta("commandExecution/outputDelta", "c1", "a\\n"),
        delta("commandExecution/outputDelta", "c1", "b\\n"),
        done(r#"{"type":"commandExecution","id":"c1","command":"ls","status":"completed","exitCode":0}"#),
        // These two are never completed.
        delta("commandExecution/outputDelta", "c2", "x"),
        delta("agentMessage/delta", "m3", "Half a"),
        notice("turn/completed", r#""turn":{"id":"u1","status":"interrupted"}"#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let entries = entries_of_lines(codex::app_server(source()), &lines);
    let said: Vec<_> =
        entries.iter().map(|entry| (entry.kind, entry.accumulated.as_deref().unwrap_or("-"))).collect();
    let want = [
        ("unknown", "-"),
        ("assistant_message", "All is well."),
        ("assistant_message", "-"),
        ("unknown", "-"),
        ("unknown", "-"),
        ("thinking", "One.\n\nTwo."),
        ("tool_use", "-"),
        ("tool_result", "a\nb\n"),
        ("assistant_message", "Half a"),
        ("system_event", "-"),
    ];
    assert_eq!(said, want);
}

#[test]
fn unknown_notices_have_their_parameters_and_thread() {
    let lines = [
        r#">{"id":1,"method":"thread/start","params":{"cwd":"/w"}}"#,
        r#"{"id":1,"result":{"thread":{"id":"t1"}}}"#,
        r#"{"method":"item/holodeck/opened","params":{"threadId":"t1","door":3}}"#,
        r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"agentMessage","id":"m1","text":""}}}"#,
        r#"{"method":"turn/diff/updated","params":{"threadId":"t1","diff":"x"}}"#,
        r#"{"method":"thread/started","params":{"thread":{"id":"t2","parentThreadId":"t1"}}}"#,
        r#"{"method":"thread/status/changed","params":{"threadId":"t2","status":"idle"}}"#,
    ];
    let entries = entries_of_lines(codex::app_server(source()), &lines);
    let want =
        ["unknown", "unknown", "unknown", "unknown", "unknown", "unknown subagent:t2", "unknown subagent:t2"];
    assert_eq!(shown(&entries), want);
    for (entry, line) in entries.iter().zip(lines) {
        let record: Value = serde_json::from_str(line.trim_start_matches('>')).unwrap();
        assert_eq!(entry.detail, *record.get("params").unwrap_or(&record), "{line}");
        assert_eq!(entry.raw, line.trim_start_matches('>'));
    }
}

#[test]
fn entries_of_subagents_name_their_session() {
    let meta = r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000002","source":{"subagent":{"thread_spawn":{"parent_thread_id":"01a1de00-0000-7000-8000-000000000001"}}}}}"#;
    let side = format!(
        r#"{{"type":"user","uuid":"u1","isSidechain":true,"agentId":"a1","sessionId":"{SESSION}","timestamp":"2026-06-08T08:14:42.000Z","message":{{"role":"user","content":"Go"}}}}"#
    );
    let surfaces: [(Adapter, &[&str], &str, &str); 3] = [
        (
            codex::rollout(source()),
            &[meta],
            "subagent:01a1de00-0000-7000-8000-000000000002",
            "01a1de00-0000-7000-8000-000000000001",
        ),
        (claude::disk(source()), &[&side], "subagent:a1", SESSION),
        (
            codex::app_server(source()),
            &[
                r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#,
                r#"{"method":"thread/started","params":{"thread":{"id":"t2","parentThreadId":"t1"}}}"#,
            ],
            "subagent:t2",
            "t1",
        ),
    ];
    for (adapter, lines, source, session) in surfaces {
        let entries = entries_of_lines(adapter, lines);
        let last = entries.last().unwrap();
        assert_eq!((last.source.as_str(), last.session.as_deref()), (source, Some(session)));
    }
}

#[test]
fn record_of_an_earlier_generation_gives_no_second_entry() {
    let line = |id: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{id}\",\"sessionId\":\"{SESSION}\",\"timestamp\":\"2026-06-08T08:14:42.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"Go\"}}}}\n"
        )
    };
    let book = "{\"type\":\"last-prompt\",\"lastPrompt\":\"Go\"}\n";
    let (mut adapter, mut sink) = (claude::disk(source()), Entries::default());
    adapter.feed(Frame::of_file(0, (line("u1") + book).as_bytes()), &mut sink);
    let rewritten = line("u1") + book + &line("u2");
    adapter.feed(Frame { generation: 1, ..Frame::of_file(0, rewritten.as_bytes()) }, &mut sink);
    assert_eq!(shown(&sink.0), ["user_message", "unknown", "user_message"]);
}
