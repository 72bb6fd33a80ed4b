//! Open when reading: unknown words are read, marked and written back; only a strict reader refuses them, with an error
//! that differs from that of a broken line (R52, R53).

use steno_model::{Error, EventType, ExchangeEvent, Payload, Unknowns, Word};

use crate::kit::{OTHER_RUN, RUN, TIME, line, token};

/// Reads a line that has something unknown in it, tolerantly and strictly.
#[track_caller]
fn check(line: &str, marks: Unknowns, want: &Error) {
    let event = ExchangeEvent::parse(line.as_bytes()).unwrap();
    assert_eq!(event.unknowns(), marks, "{line}");
    assert_eq!(event.to_line(), line);
    assert_eq!(ExchangeEvent::parse(event.to_line().as_bytes()), Ok(event));
    let error = ExchangeEvent::parse_strict(line.as_bytes()).unwrap_err();
    assert!(error.is_unknown_type(), "{error}");
    assert_eq!(error, *want, "{line}");
}

/// Reads a broken line.
#[track_caller]
fn check_broken(line: &[u8], want: &Error) {
    let shown = String::from_utf8_lossy(line).into_owned();
    for read in [ExchangeEvent::parse, ExchangeEvent::parse_strict] {
        let error = read(line).expect_err(&shown);
        assert!(!error.is_unknown_type(), "{error} for {shown}");
        if matches!(want, Error::NotJson { .. }) {
            assert!(matches!(error, Error::NotJson { .. }), "{error} for {shown}");
        } else {
            assert_eq!(error, *want, "{shown}");
        }
    }
}

fn message(blocks: &str) -> String {
    line("message.assistant", &format!(r#"{{"role":"assistant","blocks":[{blocks}]}}"#))
}

#[test]
fn unknown_event_type_is_kept_and_marked() {
    let marks = Unknowns { event_type: true, ..Unknowns::default() };
    for word in [r#""run.paused""#, r#""""#, r#""RUN.STARTED""#, r#""\ud800""#, r#""run\u002epaused""#] {
        let text = line("run.started", r#"{"name":"n","kind":"k"}"#).replace(r#""run.started""#, word);
        check(&text, marks, &Error::UnknownEventType { found: token(word) });
        let event = ExchangeEvent::parse(text.as_bytes()).unwrap();
        assert_eq!((event.event_type.known(), event.event_type.to_json()), (None, token(word)));
    }
}

#[test]
fn unknown_event_type_may_have_any_payload() {
    let marks = Unknowns { event_type: true, ..Unknowns::default() };
    let error = Error::UnknownEventType { found: "future".into() };
    for payload in ["null", "7", "[7]", r#"{"kind":1}"#, r#"{"role":"user","blocks":[]}"#] {
        check(&line("future", payload), marks, &error);
    }
}

#[test]
fn unknown_blocks_are_kept_and_counted() {
    let hologram = r#"{"type":"hologram","fidelity":"router","depth":3,"text":"t"}"#;
    let text = r#"{"type":"text","fidelity":"router","text":"t"}"#;
    let marks = |block_types| Unknowns { block_types, ..Unknowns::default() };
    let error = Error::UnknownBlockType { found: "hologram".into() };
    check(&message(&format!("{text},{hologram}")), marks(1), &error);
    check(&message(&format!("{hologram},{text},{hologram}")), marks(2), &error);
    check(&line("message.user", &format!("[{hologram}]")), marks(1), &error);
    check(
        &message(r#"{"type":"\ud800"}"#),
        marks(1),
        &Error::UnknownBlockType { found: token(r#""\ud800""#) },
    );
}

#[test]
fn unknown_fidelities_and_roles_are_kept_and_counted() {
    let words = |words| Unknowns { words, ..Unknowns::default() };
    let unknown = |vocabulary, found: &str| Error::UnknownWord { vocabulary, found: found.into() };
    let block = r#"{"type":"text","fidelity":"hearsay","text":"t"}"#;
    check(&message(block), words(1), &unknown("fidelity", "hearsay"));
    check(&message(&format!("{block},{block}")), words(2), &unknown("fidelity", "hearsay"));
    let tool = r#"{"name":"n","call_id":"c","input":1,"fidelity":"hearsay"}"#;
    check(&line("tool.call", tool), words(1), &unknown("fidelity", "hearsay"));
    let role = format!(r#"{{"role":"system","blocks":[{block}]}}"#);
    check(&line("message.user", &role), words(2), &unknown("role", "system"));
}

#[test]
fn several_unknowns_are_counted_separately() {
    let payload = r#"{"role":"robot","blocks":[{"type":"hologram","fidelity":"hearsay"}]}"#;
    let marks = Unknowns { event_type: true, block_types: 1, words: 2 };
    check(&line("message.robot", payload), marks, &Error::UnknownEventType { found: "message.robot".into() });
}

#[test]
fn unknown_fields_survive_everywhere() {
    let payload = r#"{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"t","new":[1,1]}],"new":{"b":1,"a":2,"b":3}}"#;
    let text = line("message.user", payload);
    let text = format!(r#"{},"new":1e400,"new":"\ud800","N\u0065w":null}}"#, text.strip_suffix('}').unwrap());
    let event = ExchangeEvent::parse_strict(text.as_bytes()).unwrap();
    assert_eq!((event.unknowns(), event.to_line()), (Unknowns::default(), text));
    assert_eq!(event.payload().to_json().as_str(), payload);
    let pairs = event.extra.clone().into_pairs();
    let names: Vec<_> = pairs.iter().map(|(key, value)| (key.as_raw(), value.as_str())).collect();
    assert_eq!(names, [(r#""new""#, "1e400"), (r#""new""#, r#""\ud800""#), (r#""N\u0065w""#, "null")]);
    assert_eq!(event.extra.get("new").unwrap().as_str(), r#""\ud800""#);
}

#[test]
fn event_with_an_invalid_time_is_read() {
    let text = line("run.started", "null").replace(TIME, "the day before");
    let event = ExchangeEvent::parse_strict(text.as_bytes()).unwrap();
    assert_eq!((event.timestamp.instant(), event.timestamp.to_string()), (None, "the day before".into()));
    assert_eq!(event.to_line(), text);
}

#[test]
fn words_are_compared_decoded() {
    let text = line(r"run.started", "null").replace("run.started", r"run\u002estarted");
    let event = ExchangeEvent::parse_strict(text.as_bytes()).unwrap();
    assert_eq!(event.event_type, Word::Known(EventType::RunStarted));
    assert_eq!(event.to_line(), line("run.started", "null"));
}

#[test]
fn wrong_payload_is_not_an_unknown_word_error() {
    let text = line("message.user", r#"{"role":"user","blocks":[{"text":"t"}]}"#);
    let event = ExchangeEvent::parse_strict(text.as_bytes()).unwrap();
    assert!(matches!(event.payload(), Payload::Other(_)));
    assert_eq!((event.unknowns(), event.to_line()), (Unknowns::default(), text));
}

#[test]
fn absent_runs_are_read_as_absent() {
    for absent in ["null", "\"\""] {
        let text = line("run.started", "null")
            .replace(r#""type""#, &format!(r#""parent_run_id":{absent},"child_run_id":{absent},"type""#));
        let event = ExchangeEvent::parse(text.as_bytes()).unwrap();
        assert_eq!((event.parent_run_id, event.child_run_id), (None, None));
        assert_eq!(event.to_line(), line("run.started", "null"));
    }
}

#[test]
fn broken_lines_are_not_unknown_word_errors() {
    let good = line("run.paused", "null");
    let not_json = Error::NotJson { reason: String::new() };
    for cut in [0, 1, good.len() / 2, good.len() - 1] {
        check_broken(&good.as_bytes()[..cut], &not_json);
    }
    check_broken(format!("{good}{good}").as_bytes(), &not_json);
    check_broken(b"[]", &Error::NotAnObject);
    check_broken(b"[", &not_json);
    check_broken(b"\"run.started\"", &Error::NotAnObject);
    check_broken(b"{\"seq\":\xff}", &Error::NotUtf8 { offset: 7 });
    // A line of its own has no number to name; which line of a file it is, only its reader knows.
    let words = ExchangeEvent::parse(b"{\"seq\":x}").unwrap_err().to_string();
    assert_eq!(words, "not JSON: expected value at column 8");
}

#[test]
fn every_envelope_field_is_required_once() {
    let good = line("run.started", "null");
    for field in ["seq", "run_id", "type", "path", "iteration", "timestamp"] {
        let without = good.replace(&format!(r#""{field}":"#), r#""other":"#);
        check_broken(without.as_bytes(), &Error::MissingField { field });
        let twice = good.replace(r#""payload""#, &format!(r#""{field}":1,"payload""#));
        check_broken(twice.as_bytes(), &Error::DuplicateField { field: field.into() });
    }
    let twice = good.replace(r#""payload""#, r#""p\u0061yload":1,"payload""#);
    check_broken(twice.as_bytes(), &Error::DuplicateField { field: "payload".into() });
    let no_run = good.replace(RUN, "");
    check_broken(no_run.as_bytes(), &Error::MissingField { field: "run_id" });
}

#[test]
fn envelope_field_of_the_wrong_kind_is_refused() {
    let good = line("run.started", "null");
    let (whole_1, whole_0) = ("a whole number from 1", "a whole number from 0");
    let bad_id = steno_model::RunId::parse("../x").unwrap_err();
    let parent = |value: &str| format!(r#""type":"run.started","parent_run_id":{value}"#);
    for (from, to, want) in [
        (r#""seq":1"#, r#""seq":0"#, Error::WrongField { field: "seq", wanted: whole_1 }),
        (r#""seq":1"#, r#""seq":-1"#, Error::WrongField { field: "seq", wanted: whole_1 }),
        (r#""seq":1"#, r#""seq":1.0"#, Error::WrongField { field: "seq", wanted: whole_1 }),
        (r#""seq":1"#, r#""seq":18446744073709551616"#, Error::WrongField { field: "seq", wanted: whole_1 }),
        (r#""seq":1"#, r#""seq":"1""#, Error::WrongField { field: "seq", wanted: whole_1 }),
        (RUN, "../x", bad_id.clone()),
        (&format!("\"{RUN}\""), "7", Error::WrongField { field: "run_id", wanted: "a UUID" }),
        (r#""run.started""#, "null", Error::WrongField { field: "type", wanted: "a string" }),
        (r#""path":"""#, r#""path":null"#, Error::WrongField { field: "path", wanted: "a string" }),
        (r#""iteration":0"#, r#""iteration":-1"#, Error::WrongField { field: "iteration", wanted: whole_0 }),
        (&format!("\"{TIME}\""), "17", Error::WrongField { field: "timestamp", wanted: "a string" }),
        (r#""type":"run.started""#, &parent("\"../x\""), bad_id),
        (
            r#""type":"run.started""#,
            &parent("7"),
            Error::WrongField { field: "parent_run_id", wanted: "a UUID" },
        ),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from} is in no line");
        check_broken(bad.as_bytes(), &want);
    }
    let linked = good.replace(r#""type""#, &format!(r#""child_run_id":"{OTHER_RUN}","type""#));
    assert_eq!(ExchangeEvent::parse(linked.as_bytes()).unwrap().to_line(), linked);
}
