//! Properties over arbitrary input: what is written is read back as it was, and no bytes make a parser panic.

use proptest::collection::vec;
use proptest::prelude::*;
use steno_model::json::{Fields, JsonString, RawJson, depth};
use steno_model::{
    Draft, EntryParts, EntrySource, EntryType, EventType, ExchangeEvent, LogRecord, Payload, RunId,
    SpineDraft, SpineRecord, SpineType, ThreadId, Timestamp, TranscriptEntry, TranscriptSummary, Usage,
    Vocabulary, Word,
};

use crate::any_json::{
    any_extra, event, json_string, payload, raw_json, run_id, seq, string_text, timestamp, value_text, word,
};
use crate::kit::{line, run, time};

fn entry_parts() -> impl Strategy<Value = EntryParts> {
    let source =
        prop_oneof![Just(EntrySource::Main), "[^\\x00]{1,6}".prop_map(|id| EntrySource::subagent(&id))];
    let names = (json_string(), json_string(), prop::sample::select(EntryType::ALL));
    let place = (any::<u64>(), source, timestamp());
    let rest =
        (prop::option::of(json_string()), prop::option::of(raw_json()), prop::option::of(json_string()));
    (names, place, rest).prop_map(
        |(
            (prompt_name, adapter, entry_type),
            (sequence_number, source, timestamp),
            (session_id, detail, raw),
        )| {
            EntryParts {
                prompt_name,
                adapter,
                entry_type,
                sequence_number,
                source,
                timestamp,
                session_id,
                detail,
                raw,
            }
        },
    )
}

fn thread_id() -> impl Strategy<Value = ThreadId> {
    "[a-zA-Z0-9][a-zA-Z0-9_-]{0,40}".prop_map(|text| ThreadId::parse(&text).unwrap())
}

/// Bytes that are nearly a line: cut, doubled, or with a few bytes replaced.
fn nearly_a_line() -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (event(), changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(event, changes, cut, whole)| {
            let mut bytes = event.to_line().into_bytes();
            for (index, byte) in changes {
                let place = index.index(bytes.len());
                bytes[place] = byte;
            }
            if !whole {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        },
    )
}

/// Gives bytes to every parser of foreign input.
fn feed(bytes: &[u8]) {
    if let Ok(event) = ExchangeEvent::parse(bytes) {
        assert_eq!(ExchangeEvent::parse(event.to_line().as_bytes()), Ok(event.clone()));
        assert_eq!(Payload::read(&event.payload().to_json()), event.payload());
        let _ = (event.unknowns(), event.loop_indices(), event.attempt(), event.timestamp.instant());
    }
    let _ = ExchangeEvent::parse_strict(bytes);
    let _ = SpineRecord::parse(bytes);
    if let Ok(draft) = Draft::parse(bytes, run()) {
        let mut out = Vec::new();
        draft.encode(run(), time).write_line(steno_model::Seq::FIRST, &mut out);
        assert!(ExchangeEvent::parse_strict(&out[..out.len() - 1]).is_ok());
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = (depth(text), Timestamp::parse(text), RunId::parse(text), ThreadId::parse(text));
    let _ = (text.parse::<RunId>(), LogRecord::parse(text).map(|record| record.entry()));
    if let Ok(raw) = RawJson::parse(text) {
        assert_eq!(raw.as_str(), text.trim_matches([' ', '\t', '\n', '\r']).replace(['\n', '\r'], " "));
        let _ = (TranscriptEntry::parse(&raw), Payload::read(&raw));
        for event_type in EventType::ALL {
            let _ = Draft::from_raw_payload(*event_type, raw.clone());
        }
        if let Some(usage) = Usage::read(&raw) {
            let _ = (usage.counts().count(), usage.clone().max(usage));
        }
    }
}

proptest! {
    #[test]
    fn any_value_round_trips(text in value_text()) {
        let raw = RawJson::parse(&text).unwrap();
        prop_assert_eq!(raw.as_str(), text.as_str());
        prop_assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn any_payload_round_trips(payload in payload()) {
        prop_assert_eq!(Payload::read(&payload.to_json()), payload);
    }

    #[test]
    fn any_event_round_trips(event in event()) {
        let line = event.to_line();
        prop_assert!(!line.contains(['\n', '\r']));
        let read = ExchangeEvent::parse(line.as_bytes()).unwrap();
        prop_assert_eq!(read.to_line(), line);
        prop_assert_eq!(read, event);
    }

    #[test]
    fn strict_reader_refuses_exactly_events_with_unknowns(event in event()) {
        let marked = event.unknowns() != steno_model::Unknowns::default();
        let strict = ExchangeEvent::parse_strict(event.to_line().as_bytes());
        prop_assert_eq!(strict.as_ref().is_err_and(steno_model::Error::is_unknown_type), marked);
        prop_assert_eq!(strict.is_ok(), !marked);
    }

    #[test]
    fn envelope_and_event_count_the_same_unknown_blocks(event in event()) {
        let line = event.to_line();
        let envelope = steno_model::Envelope::parse(line.as_bytes()).unwrap();
        prop_assert_eq!(envelope.unknown_block_types(), event.unknown_block_types());
        prop_assert_eq!(event.unknown_block_types().len(), event.unknowns().block_types);
    }

    #[test]
    fn written_drafts_equal_their_events(
        (result, more, path) in (value_text(), value_text(), string_text()),
        extra in any_extra(),
        (parent, seq) in (prop::option::of(run_id()), seq()),
    ) {
        let payload = format!(r#"{{"name":"n","kind":"k","result":{result},"more":{more}}}"#);
        let sent = format!(r#"{{"type":"step.completed","path":{path},"payload":{payload}}}"#);
        let mut draft = Draft::parse(sent.as_bytes(), run()).unwrap();
        for (key, value) in extra.iter() {
            // A duplicate name is refused, and the draft is dropped with it.
            draft = draft.clone().with_field(key.clone(), value.clone()).unwrap_or(draft);
        }
        let draft = parent.map_or(draft.clone(), |parent| draft.child_of(parent));
        let encoded = draft.encode(run(), time);
        let mut line = Vec::new();
        encoded.write_line(seq, &mut line);
        let event = encoded.into_event(seq);
        prop_assert_eq!(line.pop(), Some(b'\n'));
        prop_assert_eq!(event.to_line().into_bytes(), line.clone());
        prop_assert_eq!(event.payload.as_str(), payload);
        prop_assert_eq!(ExchangeEvent::parse_strict(&line).unwrap(), event);
    }

    #[test]
    fn draft_keeps_its_extra_fields(fields in vec(value_text(), 0..4)) {
        let fields: Vec<_> =
            fields.iter().enumerate().map(|(index, value)| format!(r#","\ud800{index}":{value}"#)).collect();
        let sent = format!(r#"{{"type":"run.started"{}}}"#, fields.concat());
        let draft = Draft::parse(sent.as_bytes(), run()).unwrap();
        let event = draft.encode(run(), time).into_event(steno_model::Seq::FIRST);
        let want = line("run.started", "null");
        prop_assert_eq!(event.to_line(), format!("{}{}}}", want.strip_suffix('}').unwrap(), fields.concat()));
    }

    #[test]
    fn any_entry_round_trips(parts in entry_parts()) {
        let entry = TranscriptEntry::from_parts(parts);
        prop_assert_eq!(TranscriptEntry::parse(&entry.to_json()).unwrap(), entry.clone());
        let record = LogRecord::of_entry(&entry);
        let read = LogRecord::parse(&record.to_line()).unwrap();
        prop_assert_eq!(&read, &record);
        prop_assert_eq!(read.entry().unwrap(), Some(entry));
    }

    #[test]
    fn summary_counts_add_up(entries in vec(entry_parts(), 0..12)) {
        let mut summary = TranscriptSummary::default();
        let entries: Vec<_> = entries.into_iter().map(TranscriptEntry::from_parts).collect();
        for entry in &entries {
            summary.push(entry);
        }
        prop_assert_eq!(summary.total_entries, entries.len() as u64);
        prop_assert_eq!(summary.entries_by_type.values().sum::<u64>(), summary.total_entries);
        prop_assert_eq!(summary.entries_by_source.values().sum::<u64>(), summary.total_entries);
        prop_assert_eq!(summary.sources.len(), summary.entries_by_source.len());
        let written = serde_json::to_value(&summary).unwrap();
        let by_source = written["entries_by_source"].as_object().unwrap();
        prop_assert_eq!(by_source.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), summary.total_entries);
    }

    #[test]
    fn any_spine_record_round_trips(
        (thread_id, seq, timestamp) in (thread_id(), seq(), timestamp()),
        (record_type, payload, extra) in (word::<SpineType>(), raw_json(), any_extra()),
    ) {
        let record = SpineRecord { thread_id, seq, timestamp, record_type, payload, extra };
        prop_assert_eq!(SpineRecord::parse(record.to_line().as_bytes()).unwrap(), record.clone());
        if let Word::Known(known) = record.record_type {
            let draft = SpineDraft::new(known, time(), record.payload.clone()).unwrap();
            let mut line = Vec::new();
            draft.write_line(&record.thread_id, seq, &mut line);
            let read = SpineRecord::parse(&line[..line.len() - 1]).unwrap();
            let extra = steno_model::json::Extra::default();
            prop_assert_eq!(read, SpineRecord { timestamp: time(), extra, ..record });
        }
    }

    #[test]
    fn token_decodes_like_serde_json(token in string_text()) {
        let string = crate::kit::token(&token);
        prop_assert_eq!(string.as_raw(), token.as_str());
        // Other programs refuse lone surrogates or replace them, so that only texts without one can be compared.
        if let Ok(text) = serde_json::from_str::<String>(&token) {
            prop_assert_eq!(string.to_text(), text.as_str());
            prop_assert!(string.is(&text));
            prop_assert_eq!(JsonString::from_text(&text).to_string(), text);
        }
    }

    #[test]
    fn usage_keeps_the_larger_count(mine in vec((0..4_u8, any::<u32>()), 0..5), theirs in vec((0..4_u8, any::<u32>()), 0..5)) {
        let usage = |counts: &[(u8, u32)]| {
            let fields: Vec<_> = counts.iter().map(|(name, count)| format!(r#""n{name}":{count}"#)).collect();
            Usage::read(&crate::kit::json(&format!("{{{}}}", fields.join(",")))).unwrap()
        };
        let last = |counts: &[(u8, u32)], name| counts.iter().rev().find(|(key, _)| *key == name).map(|found| found.1);
        let most = |counts: &[(u8, u32)], name| counts.iter().filter(|(key, _)| *key == name).map(|found| found.1).max();
        let both = usage(&mine).max(usage(&theirs));
        for name in 0..4 {
            let want = last(&mine, name).max(most(&theirs, name)).map(u64::from);
            prop_assert_eq!(both.count(&format!("n{name}")), want);
        }
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(bytes in vec(any::<u8>(), 0..64)) {
        feed(&bytes);
    }

    #[test]
    fn arbitrary_text_causes_no_panic(text in "[\\[\\]{}\":,\\\\u0-9a-fnltr.eE+ -]{0,48}") {
        feed(text.as_bytes());
        let _ = Fields::parse(&text).map(|fields| fields.duplicate().is_some());
    }

    #[test]
    fn damaged_lines_cause_no_panic(bytes in nearly_a_line()) {
        feed(&bytes);
    }
}
