//! The session of Claude's records: those before the session id, those after another session, and late ones.

use serde_json::Value;
use steno_adapters::{Adapter, Source, claude};

use crate::adapter_output::{Made, made_of_lines, outline_of_runs};

/// The maximum number of records that wait for a session; the last of them begins the run.
const WAITING_LEN_MAX: usize = 1024;

const NAMED: [&str; 2] = [
    r#"{"type":"mode","mode":"normal","sessionId":"0f000000-0000-4000-8000-000000000001","version":"1.2.3"}"#,
    r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","claude_code_version":"1.2.3","model":"m"}"#,
];

fn surfaces() -> [(Adapter, &'static str); 2] {
    let source = || Source::named("s1");
    [(claude::disk(source()), NAMED[0]), (claude::stream(source()), NAMED[1])]
}

fn position(event: &Value) -> (u64, u64) {
    let number = |name: &str| event["evidence"][name].as_u64().unwrap();
    (number("offset"), number("part"))
}

fn read(adapter: Adapter, lines: &[&str]) -> Made {
    let made = made_of_lines(adapter, lines);
    let positions: Vec<(u64, u64)> = made.events.iter().map(position).collect();
    assert!(positions.is_sorted_by(|one, next| one < next), "{positions:?}");
    made
}

fn unknown(made: &Made) -> u64 {
    made.completeness.unknown.values().sum()
}

#[test]
fn records_before_the_session_id_are_counted_like_later_ones() {
    let odd = r#"{"type":"user","message":{"content":[{"type":"hologram"}]}}"#;
    let says = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"hologram"}]}}"#;
    let records = [
        r#"{"type":"hologram"}"#,
        odd,
        says,
        r#"{"type":"user","message":7}"#,
        r#"{"type":"user","message":{"content":[]}}"#,
        "torn",
    ];
    for at in 0..2 {
        let of = || surfaces().into_iter().nth(at).unwrap();
        let after = |lines: &[&str]| {
            let (adapter, named) = of();
            read(adapter, &[&[named], lines].concat()).completeness
        };
        let before = |lines: &[&str]| {
            let (adapter, named) = of();
            read(adapter, &[lines, &[named]].concat()).completeness
        };
        let never = |lines: &[&str]| read(of().0, lines).completeness;
        let want = after(&records);
        assert_eq!((want.unknown.len(), want.bookkeeping, want.unreadable), (3, 1, 1), "{want:?}");
        assert_eq!(before(&records), want);
        let alone = never(&records);
        assert_eq!((alone.unknown, alone.bookkeeping), (want.unknown, want.bookkeeping));
    }
}

#[test]
fn no_record_before_the_session_id_is_lost_at_the_limit() {
    let record = r#"{"type":"hologram"}"#;
    for count in [WAITING_LEN_MAX - 1, WAITING_LEN_MAX, WAITING_LEN_MAX + 1] {
        for (adapter, named) in surfaces() {
            let mut lines = vec![record; count];
            lines.push(named);
            let made = read(adapter, &lines);
            assert_eq!(made.steps("step.completed", "unknown").len(), count);
            assert_eq!(unknown(&made), count as u64);
        }
    }
}

#[test]
fn file_with_a_late_session_id_is_not_a_copy() {
    let mut lines = vec![r#"{"type":"summary","summary":"A title"}"#; WAITING_LEN_MAX];
    let prompt = r#"{"type":"user","uuid":"p","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"content":"Go."}}"#;
    let other = prompt.replace("000000000001", "000000000002");
    lines.extend([prompt, &other]);
    let made = read(claude::disk(Source::named("s1")), &lines);
    let copied: Vec<bool> = made
        .events
        .iter()
        .filter(|event| event["type"] == "message.user")
        .map(|event| !event["copied_from"].is_null())
        .collect();
    assert_eq!(copied, [false, true]);
}

fn init(session: u32) -> String {
    format!(r#"{{"type":"system","subtype":"init","session_id":"{}","model":"m"}}"#, name(session))
}

fn says(session: u32, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","session_id":"{}","message":{{"id":"{text}","content":"{text}"}}}}"#,
        name(session)
    )
}

fn result(session: u32) -> String {
    format!(r#"{{"type":"result","subtype":"success","session_id":"{}"}}"#, name(session))
}

fn name(session: u32) -> String {
    format!("0f000000-0000-4000-8000-00000000000{session}")
}

#[track_caller]
fn check(frames: &[String], want: &[&str]) {
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let made = read(claude::stream(Source::named("s1")), &frames);
    assert_eq!(outline_of_runs(&made), want);
}

#[test]
fn returning_session_continues_its_run() {
    check(
        &[
            init(1),
            says(1, "One"),
            init(2),
            says(2, "Two"),
            says(1, "More"),
            result(1),
            result(2),
            init(1),
            says(1, "Again"),
        ],
        &[
            "0 : run",
            r#"0 : system init {"model":"m"}"#,
            "0 turn-0001: turn turn-0001 begins",
            "0 turn-0001: assistant text One",
            "1 : run",
            r#"1 : system init {"model":"m"}"#,
            "1 turn-0001: turn turn-0001 begins",
            "1 turn-0001: assistant text Two",
            "0 turn-0001: assistant text More",
            "0 turn-0001: turn turn-0001 null",
            "1 turn-0001: turn turn-0001 null",
            "0 turn-0002: turn turn-0002 begins",
            "0 turn-0002: assistant text Again",
        ],
    );
}

#[test]
fn late_notice_about_a_session_does_not_make_it_current() {
    let late = format!(r#"{{"type":"system","subtype":"status","session_id":"{}"}}"#, name(1));
    let other = format!(r#"{{"type":"system","subtype":"status","session_id":"{}"}}"#, name(7));
    let frames = [
        init(1),
        says(1, "One"),
        init(2),
        late,
        r#">{"type":"user","message":{"content":"Go."}}"#.to_owned(),
        other,
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let shown = outline_of_runs(&read(claude::stream(Source::named("s1")), &frames));
    let starts: Vec<&str> = shown[6..].iter().map(|line| line.split('{').next().unwrap().trim()).collect();
    assert_eq!(
        starts,
        [
            "0 turn-0001: system status",
            "1 turn-0001: turn turn-0001 begins",
            "1 turn-0001: user text Go.",
            "1 turn-0001: system status",
        ]
    );
}

#[test]
fn late_answer_belongs_to_the_session_of_its_request() {
    let asks = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"f","input":{},"tool_use_id":"t1"}}"#;
    let denies = r#">{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"deny"}}}"#;
    let frames = [init(1), says(1, "One"), asks.to_owned(), init(2), denies.to_owned()];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let shown = outline_of_runs(&read(claude::stream(Source::named("s1")), &frames));
    assert!(shown.last().unwrap().starts_with("0 turn-0001.approval: approval r1 {"), "{shown:?}");
}
