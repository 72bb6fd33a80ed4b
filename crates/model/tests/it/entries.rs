//! Entries (R1 to R5, R28): the envelope and its keys, the nine types, sources, the summary, the log record around.

use serde_json::json as value;
use steno_model::json::RawJson;
use steno_model::{
    EntryParts, EntrySource, EntryType, Error, LogRecord, Timestamp, TranscriptEntry, TranscriptSummary,
    Vocabulary,
};

use crate::kit::{TIME, extra, json, meaning, time, token};

const ENTRY: &str = r#"{"prompt_name":"review","adapter":"claude_agent_sdk","entry_type":"tool_use","sequence_number":3,"source":"subagent:a1","timestamp":"2026-06-08T08:14:42.123Z","session_id":"s","detail":{"n":1e400,"n":1},"raw":"{\"a\":\"\\ud800\"}"}"#;

fn parts(entry_type: EntryType, source: EntrySource) -> EntryParts {
    EntryParts {
        prompt_name: "review".into(),
        adapter: "claude_agent_sdk".into(),
        entry_type,
        sequence_number: 1,
        source,
        timestamp: time(),
        session_id: None,
        detail: None,
        raw: None,
    }
}

fn entry(entry_type: EntryType, source: EntrySource, timestamp: &str) -> TranscriptEntry {
    let timestamp = Timestamp::from_record(timestamp.into());
    TranscriptEntry::from_parts(EntryParts { timestamp, ..parts(entry_type, source) })
}

/// Reads a context and writes it back.
#[track_caller]
fn check(context: &str) -> TranscriptEntry {
    let entry = TranscriptEntry::parse(&json(context)).unwrap();
    assert_eq!(entry.to_json().as_str(), context);
    assert_eq!(TranscriptEntry::parse(&entry.to_json()), Ok(entry.clone()));
    entry
}

#[track_caller]
fn check_refused(context: &str, want: Error) {
    assert_eq!(TranscriptEntry::parse(&json(context)), Err(want), "{context}");
}

#[test]
fn entry_with_every_key_round_trips() {
    let entry = check(ENTRY);
    assert_eq!((entry.prompt_name(), entry.adapter()), (&"review".into(), &"claude_agent_sdk".into()));
    assert_eq!((entry.entry_type(), entry.sequence_number()), (EntryType::ToolUse, 3));
    assert_eq!((entry.source(), entry.timestamp()), (&EntrySource::subagent("a1"), &time()));
    assert_eq!(
        (entry.session_id(), entry.detail()),
        (Some(&"s".into()), Some(&json(r#"{"n":1e400,"n":1}"#)))
    );
    assert_eq!(entry.raw().unwrap().to_text(), r#"{"a":"\ud800"}"#);
}

#[test]
fn required_keys_are_required() {
    for field in ["prompt_name", "adapter", "entry_type", "sequence_number", "source", "timestamp"] {
        check_refused(&ENTRY.replace(&format!("\"{field}\""), "\"x\""), Error::MissingField { field });
        let doubled = ENTRY.replacen('{', &format!(r#"{{"{field}":"1","#), 1);
        check_refused(&doubled, Error::DuplicateField { field: field.into() });
    }
    for field in ["prompt_name", "adapter", "entry_type", "source", "timestamp"] {
        let wrong = ENTRY.replacen(&format!(r#""{field}":"#), &format!(r#""{field}":7,"x":"#), 1);
        check_refused(&wrong, Error::WrongField { field, wanted: "a string" });
    }
    for number in ["-1", "1.5", "\"3\"", "null", "18446744073709551616"] {
        let wrong = ENTRY.replace(r#""sequence_number":3"#, &format!(r#""sequence_number":{number}"#));
        check_refused(&wrong, Error::WrongField { field: "sequence_number", wanted: "a whole number" });
    }
    check_refused("[]", Error::NotAnObject);
}

#[test]
fn optional_keys_may_be_absent_or_null() {
    let bare = TranscriptEntry::from_parts(parts(EntryType::Error, EntrySource::Main));
    let text = format!(
        r#"{{"prompt_name":"review","adapter":"claude_agent_sdk","entry_type":"error","sequence_number":1,"source":"main","timestamp":"{TIME}"}}"#
    );
    assert_eq!(check(&text), bare);
    let null = text.replacen('}', r#","session_id":null,"raw":null}"#, 1);
    assert_eq!(TranscriptEntry::parse(&json(&null)), Ok(bare));
    for (field, wanted) in [("session_id", "a string or null"), ("raw", "a string or null")] {
        let wrong = text.replacen('}', &format!(r#","{field}":7}}"#), 1);
        check_refused(&wrong, Error::WrongField { field, wanted });
    }
}

#[test]
fn unknown_keys_survive() {
    check(&ENTRY.replace(r#""raw":"#, r#""raw":"","level":[1,1],"\ud800":"#));
}

#[test]
fn entry_type_outside_the_nine_counts_as_unknown() {
    assert_eq!(
        EntryType::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>(),
        [
            "user_message",
            "assistant_message",
            "tool_use",
            "tool_result",
            "thinking",
            "system_event",
            "token_usage",
            "error",
            "unknown"
        ]
    );
    for word in EntryType::ALL {
        let entry = check(&ENTRY.replace("tool_use", word.as_str()));
        assert_eq!((entry.entry_type(), entry.check_strict()), (*word, Ok(())));
    }
    for (word, found) in [("hologram", "hologram".into()), (r"\ud800", token(r#""\ud800""#))] {
        let entry = check(&ENTRY.replace("tool_use", word));
        let error = Error::UnknownWord { vocabulary: "entry type", found };
        assert!(error.is_unknown_type());
        assert_eq!((entry.entry_type(), entry.check_strict()), (EntryType::Unknown, Err(error)));
    }
}

#[test]
fn other_sources_than_main_and_subagent_are_kept() {
    let source = |text: &str| check(&ENTRY.replace("subagent:a1", text)).source().clone();
    assert_eq!(source("main"), EntrySource::Main);
    assert_eq!(source("subagent:b:c"), EntrySource::subagent("b:c"));
    assert_eq!(source(r"subagent:\ud800"), EntrySource::Subagent(token(r#""subagent:\ud800""#)));
    for other in ["subagent:", "Main", "", "sidecar:1"] {
        assert_eq!(source(other), EntrySource::Other(other.into()));
    }
}

#[test]
fn summary_counts_types_sources_and_times() {
    let mut summary = TranscriptSummary::default();
    assert_eq!(summary, TranscriptSummary { total_entries: 0, ..TranscriptSummary::default() });
    let (main, child) = (EntrySource::Main, EntrySource::subagent("z"));
    let future = TranscriptEntry::parse(&json(&ENTRY.replace("tool_use", "hologram"))).unwrap();
    summary.push(&entry(EntryType::UserMessage, child.clone(), "2026-01-02T00:00:00Z"));
    summary.push(&entry(EntryType::ToolUse, main.clone(), "2026-01-03T00:00:00Z"));
    summary.push(&future);
    summary.push(&entry(EntryType::Unknown, main.clone(), "2026-01-01T00:00:00Z"));
    let want = TranscriptSummary {
        total_entries: 4,
        entries_by_type: [(EntryType::UserMessage, 1), (EntryType::ToolUse, 1), (EntryType::Unknown, 2)]
            .into(),
        entries_by_source: [(child.clone(), 1), (main.clone(), 2), (EntrySource::subagent("a1"), 1)].into(),
        sources: vec![child, main, EntrySource::subagent("a1")],
        first_timestamp: Some(Timestamp::from_record("2026-01-02T00:00:00Z".into())),
        last_timestamp: Some(Timestamp::from_record("2026-01-01T00:00:00Z".into())),
    };
    assert_eq!(summary, want);
}

#[test]
fn summary_is_written_with_the_specified_names() {
    let empty = serde_json::to_string(&TranscriptSummary::default()).unwrap();
    assert_eq!(
        empty,
        r#"{"total_entries":0,"entries_by_type":{},"entries_by_source":{},"sources":[],"first_timestamp":null,"last_timestamp":null}"#
    );
    let mut summary = TranscriptSummary::default();
    summary.push(&entry(EntryType::Thinking, EntrySource::Main, TIME));
    summary.push(&entry(EntryType::Thinking, EntrySource::subagent("b"), "later"));
    summary.push(&entry(EntryType::Error, EntrySource::subagent("a"), "last"));
    assert_eq!(
        serde_json::to_value(&summary).unwrap(),
        value!({
            "total_entries": 3,
            "entries_by_type": {"error": 1, "thinking": 2},
            "entries_by_source": {"main": 1, "subagent:a": 1, "subagent:b": 1},
            "sources": ["main", "subagent:b", "subagent:a"],
            "first_timestamp": TIME,
            "last_timestamp": "last",
        })
    );
}

#[test]
fn sources_that_decode_alike_are_summed_when_written() {
    let mut summary = TranscriptSummary::default();
    for spelling in [r#""subagent:\ud800""#, r#""subagent:\ud801""#] {
        summary.push(&entry(EntryType::Error, EntrySource::Subagent(token(spelling)), TIME));
    }
    let written = serde_json::to_value(&summary).unwrap();
    assert_eq!(written["entries_by_source"], value!({"subagent:\u{fffd}": 2}));
}

#[test]
fn log_record_has_an_entry() {
    let entry = TranscriptEntry::parse(&json(ENTRY)).unwrap();
    let record = LogRecord::of_entry(&entry);
    let line = format!(r#"{{"event":"transcript.entry","context":{ENTRY}}}"#);
    assert_eq!(record.to_line(), line);
    assert_eq!(LogRecord::parse(&line), Ok(record.clone()));
    assert_eq!(record.entry(), Ok(Some(entry)));
}

#[test]
fn log_record_keeps_fields_of_the_logger() {
    let line =
        r#"{"level":"DEBUG","event":"transcript.\u0073top","context":{"total_entries":1},"level":1.50}"#;
    let record = LogRecord::parse(line).unwrap();
    assert_eq!((record.entry(), &record.extra), (Ok(None), &extra(r#"{"level":"DEBUG","level":1.50}"#)));
    let written = record.to_line();
    assert_eq!(LogRecord::parse(&written), Ok(record));
    assert_eq!(meaning(&written), meaning(line));
}

#[test]
fn invalid_log_records_are_refused() {
    for (line, want) in [
        (r#"{"context":{}}"#, Error::MissingField { field: "event" }),
        (r#"{"event":"transcript.entry"}"#, Error::MissingField { field: "context" }),
        (r#"{"event":1,"context":{}}"#, Error::WrongField { field: "event", wanted: "a string" }),
        ("[]", Error::NotAnObject),
    ] {
        assert_eq!(LogRecord::parse(line), Err(want), "{line}");
    }
    let empty = LogRecord {
        context: RawJson::null(),
        ..LogRecord::parse(r#"{"event":"transcript.entry","context":1}"#).unwrap()
    };
    assert_eq!(empty.entry(), Err(Error::NotAnObject));
}
