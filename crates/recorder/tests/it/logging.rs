//! Entries as they are logged: complete, numbered without gaps, given back exactly, and never in anybody's way.

use std::io;

use steno_adapters::{Source, claude};
use steno_model::{
    EntrySource, EntryType, Frame, LogRecord, TranscriptEntry, TranscriptSummary, reconstruct_transcript,
};
use steno_recorder::entries::{Discovered, EntryLog, EntryNumbers, EntryOptions, EntrySink, FirstPrompts};
use tracing_subscriber::layer::SubscriberExt as _;

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

fn feed(options: EntryOptions) -> TranscriptSummary {
    let mut sink = EntrySink::begin(options);
    sink.discovered("a/b.jsonl", Discovered::Main);
    let mut adapter = claude::disk(Source::named("s"));
    adapter.feed(Frame::of_file(0, session().as_bytes()), &mut sink);
    adapter.finish(&mut sink);
    sink.error("the disk hums");
    sink.stop()
}

fn logged(options: EntryOptions) -> (Vec<LogRecord>, TranscriptSummary) {
    let log = EntryLog::in_memory();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    let summary = tracing::subscriber::with_default(subscriber, || feed(options));
    (log.lines().iter().map(|line| LogRecord::parse(line).unwrap()).collect(), summary)
}

fn entries(options: EntryOptions) -> Vec<TranscriptEntry> {
    reconstruct_transcript(&logged(options).0).unwrap()
}

#[test]
fn entries_stand_between_start_and_stop_at_their_levels() {
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
            "transcript.error \"WARN\"",
            "transcript.stop \"DEBUG\"",
        ]
    );
}

#[test]
fn an_entry_has_its_whole_envelope() {
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
fn the_summary_counts_what_was_logged() {
    let (records, summary) = logged(EntryOptions::default());
    let mut counted = TranscriptSummary::default();
    reconstruct_transcript(&records).unwrap().iter().for_each(|entry| counted.push(entry));
    assert_eq!(summary, counted);
    assert_eq!(records.last().unwrap().context, summary.to_json());
}

#[test]
fn names_lines_and_the_whole_log_can_be_chosen() {
    let named = entries(EntryOptions { prompt_name: Some("review".into()), ..EntryOptions::default() });
    assert!(named.iter().all(|entry| entry.prompt_name().is("review")));
    let bare = entries(EntryOptions { emit_raw: false, ..EntryOptions::default() });
    assert!(bare.len() == named.len() && bare.iter().all(|entry| entry.raw().is_none()));
    let (records, summary) = logged(EntryOptions { is_on: false, ..EntryOptions::default() });
    assert_eq!((records, summary), (Vec::new(), TranscriptSummary::default()));
}

#[test]
fn a_subagents_file_has_the_name_of_its_session() {
    let log = EntryLog::in_memory();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    let subagents = format!(
        r#"{{"type":"user","uuid":"u9","isSidechain":true,"agentId":"a1","sessionId":"{SESSION}","message":{{"role":"user","content":"Count the lines."}}}}"#
    );
    tracing::subscriber::with_default(subscriber, || {
        let mut numbers = EntryNumbers::default();
        for text in [session(), subagents] {
            let mut sink = EntrySink::resume(EntryOptions::default(), numbers);
            let mut adapter = claude::disk(Source::named("s"));
            adapter.feed(Frame::of_file(0, text.as_bytes()), &mut sink);
            adapter.finish(&mut sink);
            numbers = sink.stop_to_resume().1;
        }
    });
    let records: Vec<_> = log.lines().iter().map(|line| LogRecord::parse(line).unwrap()).collect();
    let entries = reconstruct_transcript(&records).unwrap();
    let last = entries.last().unwrap();
    assert_eq!((last.source(), last.sequence_number()), (&EntrySource::subagent("a1"), 1));
    assert!(last.prompt_name().is("Fix the build, please, and then"), "{}", last.prompt_name());
}

#[test]
fn a_session_is_named_by_its_prompt_also_where_that_is_not_its_first_entry() {
    let titled = format!(
        "{}\n{}",
        r#"{"type":"summary","summary":"A title","sessionId":"550e8400-e29b-41d4-a716-446655440000"}"#,
        session()
    );
    let mut prompts = FirstPrompts::default();
    let mut adapter = claude::disk(Source::named("s"));
    adapter.feed(Frame::of_file(0, titled.as_bytes()), &mut prompts);
    assert!(prompts.is_found());
    let mut numbers = EntryNumbers::default();
    numbers.know(prompts);
    let log = EntryLog::in_memory();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    tracing::subscriber::with_default(subscriber, || {
        let mut sink = EntrySink::resume(EntryOptions::default(), numbers);
        let mut adapter = claude::disk(Source::named("s"));
        adapter.feed(Frame::of_file(0, format!("{titled}garbage\n").as_bytes()), &mut sink);
        adapter.finish(&mut sink);
    });
    let records: Vec<_> = log.lines().iter().map(|line| LogRecord::parse(line).unwrap()).collect();
    let entries = reconstruct_transcript(&records).unwrap();
    assert_eq!(entries.len(), 7);
    assert!(entries.iter().all(|entry| entry.prompt_name().is("Fix the build, please, and then")));
    // What cannot be read is there as it came.
    assert!(entries.last().unwrap().raw().unwrap().is("garbage"));
}

/// A log that cannot be written to.
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
fn a_log_that_cannot_be_written_to_fails_nobody() {
    let subscriber = tracing_subscriber::registry().with(EntryLog::to_writer(Broken));
    let summary = tracing::subscriber::with_default(subscriber, || feed(EntryOptions::default()));
    assert_eq!(summary.total_entries, 5);
}
