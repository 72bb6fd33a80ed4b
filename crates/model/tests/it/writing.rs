//! The edge of the writer: what a draft takes and how it completes it, what it refuses and with which error.

use steno_model::json::RawJson;
use steno_model::limits::{DEPTH_MAX, LINE_BYTES_MAX};
use steno_model::{
    BlockContent, CallId, ContentBlock, Draft, Error, EventType, ExchangeEvent, Fidelity, MessagePayload,
    Payload, Role, Seq, SpineDraft, SpineType, StepPayload, Timestamp, ToolPayload,
};

use crate::cases;
use crate::kit::{OTHER_RUN, RUN, TIME, json, line, other_run, run, sent, time, written};

#[track_caller]
fn check_refused(line: &[u8], want: &Error) {
    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    let error = Draft::parse(line, run()).expect_err(&shown);
    if matches!(want, Error::NotJson { .. }) {
        assert!(matches!(error, Error::NotJson { .. }), "{error:?} for {shown}");
    } else {
        assert_eq!(error, *want, "{shown}");
    }
    let text = error.to_string();
    assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
}

#[track_caller]
fn check_written(sent: &str, want: &str) {
    assert_eq!(written(sent.as_bytes()).as_deref(), Ok(want), "{sent}");
}

#[test]
fn invalid_lines_are_refused_with_a_reason() {
    for refusal in cases::refused() {
        check_refused(refusal.line.as_bytes(), &refusal.error);
    }
}

#[test]
fn valid_lines_keep_their_payload() {
    for sent in cases::accepted() {
        let recorded = written(sent.as_bytes()).unwrap_or_else(|error| panic!("{error}: {sent}"));
        let payload = sent.split_once(r#""payload":"#).and_then(|(_, rest)| rest.strip_suffix('}')).unwrap();
        assert!(recorded.ends_with(&format!(r#","payload":{payload}}}"#)), "{recorded}");
        let event = ExchangeEvent::parse_strict(recorded.as_bytes()).unwrap();
        assert_eq!(event.to_line(), recorded);
    }
}

#[test]
fn unknown_words_differ_from_broken_lines_when_writing() {
    for refusal in cases::refused() {
        let error = Draft::parse(refusal.line.as_bytes(), run()).unwrap_err();
        let unknown = matches!(
            refusal.error,
            Error::UnknownEventType { .. } | Error::UnknownBlockType { .. } | Error::UnknownWord { .. }
        );
        assert_eq!(error.is_unknown_type(), unknown, "{}", refusal.line);
    }
}

#[test]
fn missing_fields_are_filled_in() {
    let want = line("run.started", "null");
    check_written(r#"{"type":"run.started"}"#, &want);
    check_written(r#"{"type":"run.started","payload":null}"#, &want);
    check_written(r#"{"type":"run.started","timestamp":null,"path":"","iteration":0}"#, &want);
    check_written(r#"{"type":"run.started","parent_run_id":null,"child_run_id":""}"#, &want);
    for run_id in [format!("\"{RUN}\""), format!("\"{}\"", RUN.to_uppercase()), "null".into(), "\"\"".into()]
    {
        check_written(&format!(r#"{{"run_id":{run_id},"type":"run.started"}}"#), &want);
    }
}

#[test]
fn white_space_and_escapes_in_known_fields_are_ignored() {
    let want = line("run.started", "null");
    check_written("{\"type\":\"run.started\"}\r", &want);
    check_written("  {\t\"type\" : \"run.started\" }\n", &want);
    check_written("{\r\n  \"type\": \"run.started\",\r\n  \"payload\": null\r\n}\r\n", &want);
    check_written(r#"{"t\u0079pe":"run\u002estarted","\u0070ayload":null}"#, &want);
}

#[test]
fn fields_are_written_in_the_canonical_order() {
    let sent = format!(
        r#"{{"mine":{{"b":1}},"payload":{{"kind":"k","name":"n"}},"timestamp":"{TIME}","iteration":18446744073709551615,"path":"a.b","type":"step.started","child_run_id":"{OTHER_RUN}","parent_run_id":"{OTHER_RUN}","run_id":"{RUN}","loop":[0]}}"#
    );
    let want = format!(
        r#"{{"seq":1,"run_id":"{RUN}","parent_run_id":"{OTHER_RUN}","child_run_id":"{OTHER_RUN}","type":"step.started","path":"a.b","iteration":18446744073709551615,"timestamp":"{TIME}","payload":{{"kind":"k","name":"n"}},"mine":{{"b":1}},"loop":[0]}}"#
    );
    check_written(&sent, &want);
}

#[test]
fn times_are_written_in_utc() {
    for (text, want) in [
        (TIME, TIME),
        ("2024-01-15T10:30:00.123+00:00", "2024-01-15T10:30:00.123+00:00"),
        ("2024-01-15T10:30:00-00:00", "2024-01-15T10:30:00-00:00"),
        ("2026-06-08t08:14:42z", "2026-06-08t08:14:42z"),
        ("2026-06-08T08:14:42.123456789Z", "2026-06-08T08:14:42.123456789Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:60Z"),
        ("2026-06-08T10:14:42.5+02:00", "2026-06-08T08:14:42.5Z"),
        ("2026-01-01T00:30:00+05:30", "2025-12-31T19:00:00Z"),
    ] {
        let sent = format!(r#"{{"type":"run.started","timestamp":"{text}"}}"#);
        check_written(&sent, &line("run.started", "null").replace(TIME, want));
    }
}

#[test]
fn invalid_utf8_is_refused_with_its_offset() {
    check_refused(b"\xff", &Error::NotUtf8 { offset: 0 });
    check_refused(b"{\"type\":\"run.started\",\"a\":\"\xc3\"}", &Error::NotUtf8 { offset: 27 });
    // UTF-8 has no surrogates; only JSON's escapes do.
    check_refused(b"{\"a\":\"\xed\xa0\x80\"}", &Error::NotUtf8 { offset: 6 });
}

#[test]
fn depth_is_refused_one_level_past_the_limit() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let with_field = |levels| format!(r#"{{"type":"run.started","deep":{}}}"#, nested(levels));
    let with_result = |levels| {
        sent(EventType::StepCompleted, &format!(r#"{{"name":"n","kind":"k","result":{}}}"#, nested(levels)))
    };
    assert!(written(with_field(DEPTH_MAX).as_bytes()).is_ok());
    assert!(written(with_result(DEPTH_MAX - 1).as_bytes()).is_ok());
    let too_deep = Error::TooDeep { depth: DEPTH_MAX + 1 };
    check_refused(with_field(DEPTH_MAX + 1).as_bytes(), &too_deep);
    check_refused(with_result(DEPTH_MAX).as_bytes(), &too_deep);
    check_refused(with_field(100_000).as_bytes(), &Error::TooDeep { depth: 100_000 });
}

#[test]
fn typed_draft_that_is_too_deep_is_refused() {
    let nested = |levels: usize| json(&format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
    let step = |levels| {
        let step = StepPayload { result: Some(nested(levels)), ..StepPayload::new("n", "k") };
        Draft::new(EventType::StepCompleted, &Payload::Step(step)).map(|_| ())
    };
    assert_eq!(step(DEPTH_MAX - 1), Ok(()));
    assert_eq!(step(DEPTH_MAX), Err(Error::TooDeep { depth: DEPTH_MAX + 1 }));
    // What was read may be deeper than what is written, so that an extra field is looked at again.
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
    let value = crate::kit::extra(&deep).get("a").unwrap().clone();
    let draft = Draft::new(EventType::RunStarted, &Payload::Null).unwrap();
    assert_eq!(draft.with_field("deep", value), Err(Error::TooDeep { depth: DEPTH_MAX + 1 }));
}

#[test]
fn length_is_refused_at_the_limit() {
    let shell = r#"{"type":"run.started","a":""}"#.len();
    let of_length = |bytes: usize| format!(r#"{{"type":"run.started","a":"{}"}}"#, "x".repeat(bytes - shell));
    assert!(Draft::parse(of_length(LINE_BYTES_MAX - 1).as_bytes(), run()).is_ok());
    let bytes = LINE_BYTES_MAX as u64 + 1;
    check_refused(of_length(LINE_BYTES_MAX).as_bytes(), &Error::TooLong { bytes });
}

#[test]
fn line_is_never_longer_than_line_bytes_max() {
    for seq in [1, 10, u64::MAX] {
        let encoded = Draft::new(EventType::RunStarted, &Payload::Null).unwrap().encode(run(), time);
        let mut out = Vec::new();
        encoded.write_line(Seq::new(seq).unwrap(), &mut out);
        assert!(out.len() <= encoded.line_bytes_max());
        assert_eq!(out.len() == encoded.line_bytes_max(), seq == u64::MAX);
    }
}

#[test]
fn lines_with_many_fields_are_fast() {
    let names: Vec<String> = (0..200_000).map(|number| format!(r#""f{number}":0"#)).collect();
    let sent = format!(r#"{{"type":"run.started",{}}}"#, names.join(","));
    assert!(written(sent.as_bytes()).is_ok());
    let twice = sent.replace("\"f199999\"", "\"f0\"");
    check_refused(twice.as_bytes(), &Error::DuplicateField { field: "f0".into() });
}

#[test]
fn built_draft_equals_the_parsed_line() {
    let payload = Payload::Step(StepPayload::new("n", "k"));
    let built = Draft::calling(EventType::CallWorkflowStarted, other_run(), &payload)
        .unwrap()
        .at("a.b")
        .in_iteration(3)
        .at_time(time())
        .child_of(other_run())
        .with_field("loop", json("[3]"))
        .unwrap();
    assert_eq!((built.event_type(), built.timestamp()), (EventType::CallWorkflowStarted, Some(&time())));
    let sent = format!(
        r#"{{"type":"step.call_workflow.started","path":"a.b","iteration":3,"timestamp":"{TIME}","parent_run_id":"{OTHER_RUN}","child_run_id":"{OTHER_RUN}","payload":{{"name":"n","kind":"k"}},"loop":[3]}}"#
    );
    assert_eq!(Draft::parse(sent.as_bytes(), run()), Ok(built));
}

#[test]
fn call_workflow_events_need_a_child_run() {
    let payload = Payload::Step(StepPayload::new("n", "call_workflow"));
    let missing = Error::MissingField { field: "child_run_id" };
    for event_type in [EventType::CallWorkflowStarted, EventType::CallWorkflowCompleted] {
        assert_eq!(Draft::new(event_type, &payload), Err(missing.clone()));
        for child in ["", r#","child_run_id":null"#, r#","child_run_id":"""#] {
            let sent = format!(r#"{{"type":"{event_type}"{child},"payload":{{"name":"n","kind":"k"}}}}"#);
            check_refused(sent.as_bytes(), &missing);
        }
    }
    assert_eq!(
        <EventType as steno_model::Vocabulary>::ALL
            .iter()
            .filter(|event_type| event_type.calls_a_run())
            .count(),
        2
    );
}

#[test]
fn extra_field_must_be_new() {
    let draft = || Draft::new(EventType::RunStarted, &Payload::Null).unwrap();
    for name in [
        "seq",
        "run_id",
        "parent_run_id",
        "child_run_id",
        "type",
        "path",
        "iteration",
        "timestamp",
        "payload",
    ] {
        let error = Error::DuplicateField { field: name.into() };
        assert_eq!(draft().with_field(name, RawJson::null()), Err(error));
    }
    let once = draft().with_field("mine", RawJson::null()).unwrap();
    let error = Error::DuplicateField { field: "mine".into() };
    assert_eq!(once.with_field("mine", RawJson::null()), Err(error));
}

#[test]
fn typed_drafts_are_checked_like_parsed_lines() {
    let check = |event_type, payload: &Payload, want: Error| {
        assert_eq!(Draft::new(event_type, payload), Err(want), "{payload:?}");
    };
    let (user, assistant) = (Role::User, Role::Assistant);
    let message = |role, blocks| Payload::Message(MessagePayload::new(role, blocks));
    let wrong_role = Error::WrongField { field: "role", wanted: "assistant" };
    check(EventType::MessageAssistant, &message(user, vec![]), wrong_role);
    let unknown = ContentBlock::new(Fidelity::Router, BlockContent::Unknown("hologram".into()));
    let unknown_block = Error::UnknownBlockType { found: "hologram".into() };
    check(EventType::MessageAssistant, &message(assistant, vec![unknown]), unknown_block);
    let empty = ContentBlock::new(Fidelity::Router, BlockContent::Stream(None));
    check(
        EventType::MessageAssistant,
        &message(assistant, vec![empty]),
        Error::MissingField { field: "chunk" },
    );
    let mut step = StepPayload::new("n", "k");
    step.extra.push("role", json("1"));
    let forbidden = Error::ForbiddenField { field: "role", reason: "it marks a message" };
    check(EventType::StepStarted, &Payload::Step(step), forbidden);
    let call = ToolPayload::call("n", CallId::from("c"), json("1"), Fidelity::Router);
    let no_output = ToolPayload { output: None, ..call };
    check(EventType::ToolResult, &Payload::Tool(no_output), Error::MissingField { field: "output" });
    let wanted = "an object with `name` and `kind`";
    let event_type = EventType::StepStarted;
    check(event_type, &Payload::Blocks(vec![]), Error::WrongPayload { event_type, wanted });
}

#[test]
fn clock_is_used_only_for_a_missing_time() {
    let draft = Draft::new(EventType::RunStarted, &Payload::Null).unwrap();
    let later = || Timestamp::parse("2030-01-01T00:00:00Z").unwrap();
    let filled = draft.clone().encode(run(), later).into_event(Seq::FIRST);
    assert_eq!(filled.timestamp, later());
    let given = draft.at_time(time()).encode(run(), || panic!("nobody asked")).into_event(Seq::FIRST);
    assert_eq!(given.timestamp, time());
}

#[test]
fn time_of_a_record_is_converted_to_utc_or_dropped() {
    let draft = Draft::new(EventType::RunStarted, &Payload::Null).unwrap();
    let from_record = |text: &str| draft.clone().at_time(Timestamp::from_record(text.into()));
    assert_eq!(from_record("yesterday").timestamp(), None);
    assert_eq!(from_record("2026-06-08T10:14:42.123+02:00").timestamp(), Some(&time()));
    assert_eq!(from_record(TIME).timestamp(), Some(&time()));
    let spine = |text: &str| {
        SpineDraft::new(SpineType::Event, Timestamp::from_record(text.into()), RawJson::null()).map(|_| ())
    };
    assert_eq!(spine(TIME), Ok(()));
    assert!(matches!(spine("yesterday"), Err(Error::WrongField { field: "timestamp", .. })));
}

#[test]
fn too_deep_spine_record_is_refused() {
    let spine = |levels: usize| {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let payload = crate::kit::extra(&deep).get("a").unwrap().clone();
        SpineDraft::new(SpineType::Event, time(), payload).map(|_| ())
    };
    assert_eq!(spine(DEPTH_MAX), Ok(()));
    assert_eq!(spine(DEPTH_MAX + 1), Err(Error::TooDeep { depth: DEPTH_MAX + 1 }));
}
