//! Logged entries are complete and numbered without gaps, keep their raw text, and do not disturb recording.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::Value;
use steno_adapters::{Adapter, Source, claude, codex};
use steno_model::{
    EntrySource, EntryType, Frame, LogRecord, Timestamp, TranscriptEntry, TranscriptSummary,
    reconstruct_transcript,
};
use steno_recorder::entries::{EntryCollector, EntryFile, EntryLog, EntryOptions, EntryTime};

const SESSION: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A prompt, a response of two blocks, a result, and a record of an unknown type.
fn session() -> String {
    let envelope = |uuid: u32| {
        format!(r#""uuid":"u{uuid}","sessionId":"{SESSION}","timestamp":"2026-06-08T08:14:4{uuid}.000Z""#)
    };
    [
        format!(r#"{{"type":"user",{},"message":{{"role":"user","content":"Fix the build, please, and then tell me."}}}}"#, envelope(1)),
        format!(
            r#"{{"type":"assistant",{},"message":{{"id":"m1","role":"assistant","content":[{{"type":"text","text":"Looking."}},{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"make"}}}}]}}}}"#,
            envelope(2)
        ),
        format!(r#"{{"type":"user",{},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"ok"}}]}}}}"#, envelope(3)),
        format!(r#"{{"type":"dream",{}}}"#, envelope(4)),
        String::new(),
    ]
    .join("\n")
}

fn collect(collector: &EntryCollector, text: &str) {
    collect_at(collector, "a/b.jsonl", text);
}

fn collect_at(collector: &EntryCollector, path: &str, text: &str) {
    let mut sink = collector.source(Some(path.to_owned()), EntryTime::Record);
    let mut adapter = claude::disk(Source::named("s"));
    adapter.feed(Frame::of_file(0, text.as_bytes()), &mut sink);
    adapter.finish(&mut sink);
}

fn feed(options: EntryOptions) -> TranscriptSummary {
    let collector = EntryCollector::new(options);
    collect(&collector, &session());
    collector.error("the disk hums");
    let [summary] = &collector.stop()[..] else { panic!("one session") };
    summary.clone()
}

/// Runs `work` and returns what it logged.
fn log_of(work: impl FnOnce()) -> Vec<LogRecord> {
    let log = EntryLog::in_memory();
    tracing::subscriber::with_default(log.clone(), work);
    log.lines().iter().map(|line| LogRecord::parse(line).unwrap()).collect()
}

fn logged(options: EntryOptions) -> (Vec<LogRecord>, TranscriptSummary) {
    let mut summary = TranscriptSummary::default();
    let records = log_of(|| summary = feed(options));
    (records, summary)
}

fn entries(options: EntryOptions) -> Vec<TranscriptEntry> {
    reconstruct_transcript(&logged(options).0).unwrap()
}

fn events(records: &[LogRecord]) -> Vec<String> {
    records.iter().map(|record| record.event.to_text().into_owned()).collect()
}

#[test]
fn entries_are_logged_between_start_and_stop() {
    let (records, _) = logged(EntryOptions::default());
    let shown: Vec<_> = records
        .iter()
        .map(|record| format!("{} {}", record.event, record.extra.get("level").unwrap()))
        .collect();
    let entry = "transcript.entry \"DEBUG\"";
    assert_eq!(
        shown,
        [
            "transcript.start \"DEBUG\"",
            "transcript.path_discovered \"DEBUG\"",
            entry,
            entry,
            entry,
            entry,
            entry,
            "transcript.error \"WARNING\"",
            "transcript.stop \"DEBUG\"",
        ]
    );
}

#[test]
fn entry_has_every_envelope_field() {
    let entries = entries(EntryOptions::default());
    let types: Vec<_> = entries.iter().map(TranscriptEntry::entry_type).collect();
    let want = [
        EntryType::UserMessage,
        EntryType::AssistantMessage,
        EntryType::ToolUse,
        EntryType::ToolResult,
        EntryType::Unknown,
    ];
    assert_eq!(types, want);
    let lines = session();
    let sources = [0, 1, 1, 2, 3].map(|line| lines.lines().nth(line).unwrap());
    for (index, (entry, line)) in entries.iter().zip(sources).enumerate() {
        assert_eq!(entry.sequence_number(), index as u64 + 1);
        assert!(entry.prompt_name().is("Fix the build, please, and then"), "{}", entry.prompt_name());
        assert!(entry.adapter().is("claude_agent_sdk"));
        assert!(entry.session_id().unwrap().is(SESSION));
        assert!(entry.raw().unwrap().is(line));
        assert_eq!(entry.detail().unwrap().as_str(), format!(r#"{{"sdk_entry":{line}}}"#));
    }
}

#[test]
fn summary_counts_the_logged_entries() {
    let (records, summary) = logged(EntryOptions::default());
    let mut counted = TranscriptSummary::default();
    reconstruct_transcript(&records).unwrap().iter().for_each(|entry| counted.push(entry));
    assert_eq!(summary, counted);
    let stop: Value = serde_json::from_str(records.last().unwrap().context.as_str()).unwrap();
    let mut want: Value = serde_json::from_str(summary.to_json().as_str()).unwrap();
    want["prompt_name"] = "Fix the build, please, and then".into();
    want["session_id"] = SESSION.into();
    assert_eq!(stop, want);
}

#[test]
fn options_set_prompt_name_and_raw_lines() {
    let named = entries(EntryOptions { prompt_name: Some("review".into()), ..EntryOptions::default() });
    assert!(named.iter().all(|entry| entry.prompt_name().is("review")));
    let bare = entries(EntryOptions { emit_raw: false, ..EntryOptions::default() });
    assert!(bare.len() == named.len() && bare.iter().all(|entry| entry.raw().is_none()));
}

fn subagents_line() -> String {
    format!(
        r#"{{"type":"user","uuid":"u9","isSidechain":true,"agentId":"a1","sessionId":"{SESSION}","message":{{"role":"user","content":"Count the lines."}}}}"#
    )
}

#[test]
fn files_of_a_session_share_one_start_and_stop() {
    // In either order.
    let (own, subagents) = (("a/b.jsonl", session()), ("a/b/agent-a1.jsonl", subagents_line()));
    for files in [[&own, &subagents], [&subagents, &own]] {
        let records = log_of(|| {
            let collector = EntryCollector::new(EntryOptions::default());
            for (path, text) in files {
                collect_at(&collector, path, text);
            }
            assert_eq!(collector.stop().len(), 1);
            assert_eq!(collector.stop().len(), 0, "it is over");
        });
        let entries = reconstruct_transcript(&records).unwrap();
        assert!(entries.iter().all(|entry| entry.prompt_name().is("Fix the build, please, and then")));
        let of_subagent = |entry: &&TranscriptEntry| *entry.source() == EntrySource::subagent("a1");
        assert_eq!(
            entries.iter().filter(of_subagent).map(TranscriptEntry::sequence_number).collect::<Vec<_>>(),
            [1]
        );
        let count = |name: &str| events(&records).iter().filter(|event| *event == name).count();
        assert_eq!((count("transcript.start"), count("transcript.stop")), (1, 1));
        assert_eq!((count("transcript.path_discovered"), count("transcript.subagent_discovered")), (1, 1));
        let stop: Value = serde_json::from_str(records.last().unwrap().context.as_str()).unwrap();
        assert_eq!(stop["entries_by_source"], serde_json::json!({"main": 5, "subagent:a1": 1}));
    }
}

#[test]
fn reopened_file_is_discovered_once() {
    let (first, rest) =
        session().split_once('\n').map(|(first, rest)| (first.to_owned(), rest.to_owned())).unwrap();
    let records = log_of(|| {
        let collector = EntryCollector::new(EntryOptions::default());
        for text in [format!("{first}\n"), rest] {
            collect(&collector, &text);
        }
        collector.stop();
    });
    assert_eq!(events(&records).iter().filter(|event| *event == "transcript.path_discovered").count(), 1);
    assert_eq!(reconstruct_transcript(&records).unwrap().len(), 5);
}

#[test]
fn numbers_continue_over_sessions_with_one_name() {
    let other = session().replace(SESSION, "550e8400-e29b-41d4-a716-446655440001");
    let records = log_of(|| {
        let collector = EntryCollector::new(EntryOptions::default());
        collect(&collector, &session());
        collect(&collector, &other);
        assert_eq!(collector.stop().iter().map(|summary| summary.total_entries).collect::<Vec<_>>(), [5, 5]);
    });
    let entries = reconstruct_transcript(&records).unwrap();
    let numbers: Vec<u64> = entries.iter().map(TranscriptEntry::sequence_number).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
}

#[test]
fn session_is_named_by_a_later_prompt() {
    let titled = format!(
        "{}\n{}garbage\n",
        r#"{"type":"summary","summary":"A title","sessionId":"550e8400-e29b-41d4-a716-446655440000"}"#,
        session()
    );
    let records = log_of(|| {
        let collector = EntryCollector::new(EntryOptions::default());
        collect(&collector, &titled);
        collector.stop();
    });
    let entries = reconstruct_transcript(&records).unwrap();
    assert_eq!(entries.len(), 7);
    assert!(entries.iter().all(|entry| entry.prompt_name().is("Fix the build, please, and then")));
    // An unreadable line is logged unchanged, with a warning.
    assert!(entries.last().unwrap().raw().unwrap().is("garbage"));
    let last = &records[records.len() - 2];
    assert!(last.event.is("transcript.error"), "{}", last.event);
    assert_eq!(last.extra.get("level").unwrap().as_str(), "\"WARNING\"");
}

#[test]
fn session_without_a_prompt_is_named_by_its_id() {
    let line = |number: u32| format!("{{\"type\":\"dream\",\"n\":{number},\"sessionId\":\"{SESSION}\"}}\n");
    for count in [1, 255, 256, 1000] {
        let records = log_of(|| {
            let collector = EntryCollector::new(EntryOptions::default());
            collect(&collector, &(0..count).map(line).collect::<String>());
            collector.stop();
        });
        let entries = reconstruct_transcript(&records).unwrap();
        assert_eq!(entries.len(), count as usize);
        assert!(entries.iter().all(|entry| entry.prompt_name().is(SESSION)));
    }
}

/// Returns the times of the entries for a text.
fn times(mut adapter: Adapter, text: &str, time: EntryTime) -> Vec<String> {
    let records = log_of(|| {
        let collector = EntryCollector::new(EntryOptions::default());
        let mut sink = collector.source(None, time);
        adapter.feed(Frame::of_file(0, text.as_bytes()), &mut sink);
        adapter.finish(&mut sink);
        collector.stop();
    });
    let entries = reconstruct_transcript(&records).unwrap();
    entries.iter().map(|entry| entry.timestamp().to_string()).collect()
}

#[test]
fn live_entries_have_the_capture_time() {
    let of_records = times(claude::disk(Source::named("s")), &session(), EntryTime::Record);
    assert!(of_records.iter().all(|time| time.starts_with("2026-06-08T08:14:4")), "{of_records:?}");
    let before = Timestamp::from_instant(jiff::Timestamp::now()).to_string();
    let live = times(claude::disk(Source::named("s")), &session(), EntryTime::Capture);
    assert!(live.iter().all(|time| *time >= before), "{live:?}");
    // The first message waits for the thread, but keeps its own time.
    let connection = [
        r#"{"dir":"c2s","t":1794727400.000,"msg":{"id":1,"method":"initialize","params":{}}}"#,
        r#"{"dir":"s2c","t":1794727401.000,"msg":{"method":"configWarning","params":{},"emittedAtMs":1}}"#,
        r#"{"dir":"s2c","t":1794727402.000,"msg":{"method":"thread/started","params":{"thread":{"id":"t1"}}}}"#,
        "",
    ];
    let adapter = codex::app_server(Source::named("s")).of_conversation();
    let of_messages = times(adapter, &connection.join("\n"), EntryTime::Message);
    let want = ["2026-11-15T07:23:20.000Z", "2026-11-15T07:23:21.000Z", "2026-11-15T07:23:22.000Z"];
    assert_eq!(of_messages, want);
}

/// Appends the entries of a text to a file, like a process does.
fn append(path: &Path, text: &str) {
    let file = EntryFile::open(path).unwrap();
    tracing::subscriber::with_default(file.log(), || {
        let collector = EntryCollector::appending(EntryOptions::default(), file);
        collect(&collector, text);
        collector.stop();
    });
}

/// Returns the numbers in a log, per prompt and source, in the order of the file.
fn numbers_in(path: &Path) -> BTreeMap<(String, String), Vec<u64>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut numbers: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for line in text.lines() {
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        if record["event"] == "transcript.entry" {
            let context = &record["context"];
            let word = |name: &str| context[name].as_str().unwrap().to_owned();
            let number = context["sequence_number"].as_u64().unwrap();
            numbers.entry((word("prompt_name"), word("source"))).or_default().push(number);
        }
    }
    numbers
}

#[test]
fn log_file_continues_from_its_last_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("entries.jsonl");
    append(&path, &session());
    // The last writer was killed inside a line.
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"event\":\"transcript.entry\",\"context\":{\"prompt");
    std::fs::write(&path, &text).unwrap();
    append(&path, &session());
    let numbers = numbers_in(&path);
    assert_eq!(numbers.into_values().collect::<Vec<_>>(), [(1..=10).collect::<Vec<u64>>()]);
    let after = std::fs::read(&path).unwrap();
    assert!(after.starts_with(&text) && after[text.len()] == b'\n', "nothing is taken away");
}

#[test]
fn end_of_a_too_long_line_is_not_an_entry() {
    const LINE_BYTES_MAX: usize = 128 * 1024 * 1024;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("entries.jsonl");
    append(&path, &session());
    let mut text = std::fs::read_to_string(&path).unwrap();
    let last = text.lines().rfind(|line| line.contains("transcript.entry")).unwrap().to_owned();
    let number = serde_json::from_str::<Value>(&last).unwrap()["context"]["sequence_number"].clone();
    let later = last.replace(&format!("\"sequence_number\":{number}"), "\"sequence_number\":999");
    assert_ne!(later, last);
    text.push_str(&"x".repeat(LINE_BYTES_MAX));
    text.push_str(&later);
    text.push('\n');
    std::fs::write(&path, &text).unwrap();
    append(&path, &session());
    let numbers = numbers_in(&path);
    assert_eq!(numbers.into_values().collect::<Vec<_>>(), [(1..=10).collect::<Vec<u64>>()]);
}

#[test]
fn parallel_writers_number_one_log_without_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("entries.jsonl");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| append(&path, &session())));
        }
    });
    let numbers = numbers_in(&path);
    assert_eq!(numbers.into_values().collect::<Vec<_>>(), [(1..=400).collect::<Vec<u64>>()]);
}

/// A writer that fails.
struct Broken;

impl io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }
}

#[test]
fn failing_log_does_not_fail_recording() {
    let subscriber = EntryLog::to_writer(Broken);
    let summary = tracing::subscriber::with_default(subscriber, || feed(EntryOptions::default()));
    assert_eq!(summary.total_entries, 5);
}

#[test]
fn unwritten_record_uses_no_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("entries.jsonl");
    let file = EntryFile::open(&path).unwrap();
    // The log goes to the failing writer, not to the file.
    let subscriber = EntryLog::to_writer(Broken);
    let summaries = tracing::subscriber::with_default(subscriber, || {
        let collector = EntryCollector::appending(EntryOptions::default(), file);
        collect(&collector, &session());
        collector.stop()
    });
    assert_eq!(summaries.iter().map(|summary| summary.total_entries).sum::<u64>(), 0);
    append(&path, &session());
    assert_eq!(numbers_in(&path).into_values().collect::<Vec<_>>(), [(1..=5).collect::<Vec<u64>>()]);
}
