//! `steno record`: one answer per line, in order, and only accepted events in the file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::json;
use steno_model::limits::LINE_BYTES_MAX;

use crate::kit::{RUN, Steno, TIME, answer, json, run};

/// An event that is accepted, and its line as the first of its run.
const GOOD: &str = r#"{"type":"run.started","timestamp":"2026-06-08T08:14:42.123Z","payload":null}"#;

fn good_line(seq: u64) -> String {
    format!(
        r#"{{"seq":{seq},"run_id":"{RUN}","type":"run.started","path":"","iteration":0,"timestamp":"{TIME}","payload":null}}"#
    ) + "\n"
}

/// Returns the transcript that `input` gives; every line of it must be accepted.
#[track_caller]
fn transcript(input: &str) -> String {
    let steno = Steno::new();
    let said = steno.run_with(&["record", "--run", RUN], format!("{input}\n").as_bytes());
    let want: String = (1..).take(input.lines().count()).map(|seq| answer(seq, "synced")).collect();
    assert_eq!((said.code, &*said.out, &*said.err), (0, &*want, ""), "{input}");
    steno.text(RUN)
}

#[test]
fn each_line_is_answered_in_order_with_its_number_and_level() {
    let cases: [(&[&str], &str); 3] =
        [(&[], "synced"), (&["--level", "synced"], "synced"), (&["--level", "written"], "written")];
    for (args, level) in cases {
        let steno = Steno::new();
        let args = [&["record", "--run", RUN], args].concat();
        let said = steno.run_with(&args, format!("{GOOD}\n{GOOD}\n{GOOD}\n").as_bytes());
        let want: String = (1..=3).map(|seq| answer(seq, level)).collect();
        assert_eq!((said.code, &*said.out, &*said.err), (0, &*want, ""), "{args:?}");
        let lines: String = (1..=3).map(good_line).collect();
        assert_eq!(steno.text(RUN), lines, "{args:?}");
    }
}

/// Sends a bad line between two good ones. It gets one error in its place, and the file has the good ones alone.
#[track_caller]
fn check_refused(bad: &[u8]) {
    let steno = Steno::new();
    let input = [GOOD.as_bytes(), bad, GOOD.as_bytes()].join(&b'\n');
    let said = steno.run_with(&["record", "--run", RUN], &input);
    let shown = String::from_utf8_lossy(&bad[..bad.len().min(200)]);
    let answers: Vec<&str> = said.out.lines().collect();
    let [first, refusal, last] = answers[..] else { panic!("`{shown}` gave {answers:?}") };
    assert_eq!(said.code, 1, "{shown}: {refusal}");
    assert_eq!((first, last), (answer(1, "synced").trim_end(), answer(2, "synced").trim_end()), "{shown}");
    let refusal = json(refusal);
    let why = refusal["error"].as_str().unwrap_or_default();
    assert!(why.len() > "line 2: ".len() && refusal == json!({ "error": why }), "`{shown}` gave {refusal}");
    assert!(why.starts_with("line 2: "), "`{shown}` gave {refusal}");
    assert_eq!(steno.text(RUN), good_line(1) + &good_line(2), "{shown}");
}

#[test]
fn line_that_is_not_a_json_object_is_refused() {
    let cases: [&[u8]; 16] = [
        b"",
        b"   ",
        b"nonsense",
        b"[]",
        br#"[{"type":"run.started","payload":null}]"#,
        br#""run.started""#,
        b"null",
        b"1",
        br#"{"type":"run.started","payload":null"#,
        br#"{"type":"run.started","payload":null}}"#,
        br#"{"type":"run.started","payload":null} {"type":"run.started","payload":null}"#,
        br#"{"type":"run.started","payload":null,}"#,
        br#"{"type":"run.started","payload":NaN}"#,
        b"{\"type\":\"run.started\",\"payload\":null,\"x\":\"\0\"}",
        b"\xef\xbb\xbf{\"type\":\"run.started\",\"payload\":null}",
        b"{\"type\":\"run.started\",\"payload\":null,\"x\":\"\xff\"}",
    ];
    cases.into_iter().for_each(check_refused);
}

#[test]
fn invalid_utf_8_is_refused_anywhere() {
    // A byte alone, a cut sequence, an encoded surrogate, an overlong slash, beyond the last character.
    for bytes in [&b"\x80"[..], b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"] {
        let places: [(&[u8], &[u8]); 4] = [
            (b"", b""),
            (br#"{"type":"run.started","payload":null,""#, br#"":1}"#),
            (br#"{"type":"run.started","path":""#, br#"","payload":null}"#),
            (br#"{"type":"run.started","payload":{"name":""#, br#"","kind":"k"}}"#),
        ];
        for (before, after) in places {
            check_refused(&[before, bytes, after].concat());
        }
    }
}

#[test]
fn reserved_envelope_fields_are_refused() {
    let cases = [
        r#"{"seq":2,"type":"run.started","payload":null}"#,
        r#"{"seq":null,"type":"run.started","payload":null}"#,
        r#"{"s\u0065q":2,"type":"run.started","payload":null}"#,
        r#"{"run_id":"550e8400-e29b-41d4-a716-446655440001","type":"run.started","payload":null}"#,
        r#"{"run_id":"../x","type":"run.started","payload":null}"#,
        r#"{"run_id":7,"type":"run.started","payload":null}"#,
        r#"{"parent_run_id":"x","type":"run.started","payload":null}"#,
        r#"{"child_run_id":"x","type":"step.call_workflow.started","payload":{"name":"n","kind":"k"}}"#,
        // R58: the parent's start and end of a call name the child.
        r#"{"type":"step.call_workflow.started","payload":{"name":"n","kind":"k"}}"#,
        r#"{"child_run_id":null,"type":"step.call_workflow.completed","payload":{"name":"n","kind":"k"}}"#,
        r#"{"payload":null}"#,
        r#"{"type":null,"payload":null}"#,
        r#"{"type":"session.started","payload":null}"#,
        r#"{"type":"Run.Started","payload":null}"#,
        r#"{"type":"run.started ","payload":null}"#,
        r#"{"type":"","payload":null}"#,
        r#"{"type":"run.started","iteration":-1,"payload":null}"#,
        r#"{"type":"run.started","iteration":"1","payload":null}"#,
        r#"{"type":"run.started","path":7,"payload":null}"#,
        r#"{"type":"run.started","timestamp":"yesterday","payload":null}"#,
        r#"{"type":"run.started","timestamp":"2026-06-08T08:14:42","payload":null}"#,
        r#"{"type":"run.started","timestamp":"2026-02-30T08:14:42Z","payload":null}"#,
        r#"{"type":"run.started","timestamp":1,"payload":null}"#,
        r#"{"type":"run.started","timestamp":"9999-12-31T23:59:59-00:01","payload":null}"#,
    ];
    cases.into_iter().map(str::as_bytes).for_each(check_refused);
}

#[test]
fn repeated_envelope_key_is_refused_in_any_spelling() {
    let cases = [
        r#"{"type":"run.started","type":"run.started","payload":null}"#,
        r#"{"type":"run.started","t\u0079pe":"run.completed","payload":null}"#,
        r#"{"\u0074ype":"run.started","type":"run.started","payload":null}"#,
        r#"{"type":"run.started","payload":null,"payload":null}"#,
        r#"{"type":"run.started","payload":null,"\u0070\u0061yload":{"name":"n","kind":"k"}}"#,
        r#"{"type":"run.started","path":"a","path":"b","payload":null}"#,
        r#"{"type":"run.started","iteration":0,"iter\u0061tion":1,"payload":null}"#,
        r#"{"type":"run.started","timestamp":"2026-06-08T08:14:42Z","timestamp":"2026-06-08T08:14:42Z","payload":null}"#,
        r#"{"type":"run.started","payload":null,"extra":1,"extra":1}"#,
        r#"{"type":"run.started","payload":null,"extra":1,"\u0065xtra":2}"#,
    ];
    cases.into_iter().map(str::as_bytes).for_each(check_refused);
}

#[test]
fn payload_of_the_wrong_shape_is_refused() {
    let cases = [
        ("run.started", "7"),
        ("run.completed", r#""done""#),
        ("step.started", "null"),
        ("step.started", r#"{"kind":"agent"}"#),
        ("step.started", r#"{"name":"n"}"#),
        ("step.started", r#"{"name":"n","kind":7}"#),
        // R51: a reader would take these two for a message and a call.
        ("step.completed", r#"{"name":"n","kind":"k","role":"user"}"#),
        ("step.completed", r#"{"name":"n","kind":"k","call_id":"c"}"#),
        ("step.call_workflow.started", r#"{"role":"user","blocks":[]}"#),
        ("message.user", "null"),
        ("message.user", "[]"),
        ("message.user", r#"{"role":"user"}"#),
        ("message.user", r#"{"role":"assistant","blocks":[]}"#),
        ("message.user", r#"{"role":"system","blocks":[]}"#),
        ("message.assistant", r#"{"role":"user","blocks":[]}"#),
        ("message.assistant", r#"{"role":"assistant","blocks":{}}"#),
        ("message.assistant", r#"{"role":"assistant","blocks":[{"type":"text","text":"x"}]}"#),
        ("message.assistant", r#"{"role":"assistant","blocks":[{"type":"text","fidelity":"router"}]}"#),
        ("message.assistant", r#"{"role":"assistant","blocks":[{"type":"poem","fidelity":"router"}]}"#),
        (
            "message.assistant",
            r#"{"role":"assistant","blocks":[{"type":"text","fidelity":"hearsay","text":"x"}]}"#,
        ),
        ("tool.call", r#"{"name":"n","call_id":"c","output":null,"fidelity":"router"}"#),
        ("tool.call", r#"{"name":"n","input":1,"output":null,"fidelity":"router"}"#),
        ("tool.call", r#"{"name":"n","call_id":7,"input":1,"output":null,"fidelity":"router"}"#),
        ("tool.result", r#"{"name":"n","call_id":"c","input":null,"fidelity":"router"}"#),
        ("tool.result", r#"{"name":"n","call_id":"c","input":null,"output":1,"fidelity":"hearsay"}"#),
        ("tool.result", r#"{"name":"n","call_id":"c","input":null,"output":1}"#),
    ];
    for (kind, payload) in cases {
        check_refused(format!(r#"{{"type":"{kind}","payload":{payload}}}"#).as_bytes());
    }
}

#[test]
fn deeply_nested_line_is_refused() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let inner = if open == "[" { "" } else { "1" };
        let bomb = format!("{}{inner}{}", open.repeat(100_000), close.repeat(100_000));
        check_refused(bomb.as_bytes());
        check_refused(format!(r#"{{"type":"run.started","payload":null,"x":{bomb}}}"#).as_bytes());
        let tool =
            format!(r#"{{"name":"n","call_id":"c","input":{bomb},"output":null,"fidelity":"router"}}"#);
        check_refused(format!(r#"{{"type":"tool.call","payload":{tool}}}"#).as_bytes());
    }
    check_refused("[".repeat(100_000).as_bytes());
}

#[test]
fn line_longer_than_the_limit_is_refused() {
    let text = "x".repeat(LINE_BYTES_MAX);
    check_refused(format!(r#"{{"type":"run.started","payload":null,"x":"{text}"}}"#).as_bytes());
}

/// The limit counts the line with its number, which the sender does not know yet.
#[test]
fn line_too_long_with_its_number_is_refused() {
    let around = r#"{"type":"run.started","payload":{"name":"","kind":"x"}}"#.len();
    let name = "x".repeat(LINE_BYTES_MAX - around - 1);
    check_refused(format!(r#"{{"type":"run.started","payload":{{"name":"{name}","kind":"x"}}}}"#).as_bytes());
}

#[test]
fn too_long_line_is_refused_without_being_kept_in_memory() {
    const LINE_MIB: usize = 1024;
    const MEMORY_MIB: usize = 512;
    let steno = Steno::new();
    let script = format!(
        "{{ echo '{GOOD}'; head -c {LINE_MIB}M /dev/zero; echo; echo '{GOOD}'; }} \
        | {{ ulimit -v {} && exec \"$0\" \"$@\"; }}",
        MEMORY_MIB * 1024
    );
    let said = run(steno.shell(&script, &["record", "--run", RUN]), b"");
    let bytes = LINE_MIB * 1024 * 1024 + 1;
    let refused =
        format!("{{\"error\":\"line 2: line of {bytes} bytes is longer than {LINE_BYTES_MAX} bytes\"}}\n");
    assert_eq!(
        (said.code, said.out),
        (1, answer(1, "synced") + &refused + &answer(2, "synced")),
        "{}",
        said.err
    );
}

#[test]
fn optional_fields_are_filled_in() {
    let sent = format!(r#"{{"type":"run.started","timestamp":"{TIME}"}}"#);
    assert_eq!(transcript(&sent), good_line(1));
    let sent = format!(r#"{{"payload":null,"run_id":"{RUN}","timestamp":"{TIME}","type":"run.started"}}"#);
    assert_eq!(
        transcript(&sent),
        good_line(1),
        "fields are written in one order, and its own id is no other's"
    );
}

#[test]
fn missing_timestamp_is_filled_in_with_a_time_in_utc() {
    for sent in [r#"{"type":"run.started","payload":null}"#, r#"{"type":"run.started","timestamp":null}"#] {
        let line = json(&transcript(sent));
        let time = line["timestamp"].as_str().unwrap();
        let parsed: jiff::Timestamp = time.parse().unwrap();
        let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let (head, fraction) = shape.split_at("0000-00-00T00:00:00".len());
        let digits = fraction.strip_prefix('.').and_then(|rest| rest.strip_suffix('Z')).unwrap_or("0");
        assert_eq!((head, digits.trim_matches('0')), ("0000-00-00T00:00:00", ""), "{time}");
        // The clock of a machine that runs this test is past the day on which the test was written.
        assert!(parsed > TIME.parse().unwrap(), "{time}");
    }
}

#[test]
fn given_timestamp_is_kept() {
    let cases = [
        (TIME, TIME),
        ("2026-06-08T08:14:42Z", "2026-06-08T08:14:42Z"),
        ("2026-06-08T08:14:42.120Z", "2026-06-08T08:14:42.120Z"),
        ("2026-06-08T08:14:42.123456789Z", "2026-06-08T08:14:42.123456789Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        // R41 wants UTC: another offset is the same moment in UTC.
        ("2026-06-08T10:14:42.123+02:00", TIME),
        ("2026-06-07T23:44:42.123-08:30", TIME),
    ];
    for (given, want) in cases {
        let line = json(&transcript(&format!(r#"{{"type":"run.started","timestamp":"{given}"}}"#)));
        assert_eq!(line["timestamp"], json!(want), "{given}");
    }
}

#[test]
fn new_run_is_created_by_its_first_valid_line() {
    let steno = Steno::new();
    for input in ["\n", "nonsense\n", "nonsense\n{}\n"] {
        let said = steno.run_with(&["record", "--run", RUN], input.as_bytes());
        assert_eq!((said.code, said.out.lines().count()), (1, input.lines().count()), "{said:?}");
        let files: Vec<_> = steno.look().into_keys().filter(|name| name.contains(RUN)).collect();
        assert!(files.is_empty(), "{input:?} leaves {files:?}");
        assert_eq!(steno.run(&["ls"]).code, 1, "{input:?}: there is no run");
    }
    let said = steno.record(&["nonsense", GOOD]);
    assert_eq!((said.code, said.out.lines().last()), (1, Some(answer(1, "synced").trim_end())));
    assert_eq!(steno.text(RUN), good_line(1));
}

#[test]
fn run_can_be_opened_without_lines() {
    let steno = Steno::new();
    let said = steno.run(&["record", "--run", RUN]);
    assert_eq!((said.code, &*said.out, &*said.err, &*steno.text(RUN)), (0, "", "", ""));
    let closed = steno.store().join("locks");
    std::fs::remove_dir_all(&closed).unwrap();
    std::os::unix::fs::symlink(steno.dir.path(), &closed).unwrap();
    let said = steno.run(&["record", "--run", &crate::kit::id(1)]);
    assert!(said.code == 3 && said.err.starts_with("error: "), "{said:?}");
}

#[test]
fn second_writer_of_a_new_run_is_refused_at_its_first_event() {
    let steno = Steno::new();
    let mut first = steno.start(&["record", "--run", RUN]);
    let mut second = steno.start(&["record", "--run", RUN]);
    // Both have got past their start when they answer.
    for writer in [&mut first, &mut second] {
        writer.send("nonsense");
        assert!(writer.line().starts_with("{\"error\":\"line 1: "));
    }
    first.send(GOOD);
    assert_eq!(first.line(), answer(1, "synced"));
    second.send(GOOD);
    let said = second.ended();
    assert_eq!((said.code, said.out.lines().count()), (4, 1), "{said:?}");
    assert!(said.err.contains(RUN) && said.err.contains("hint: "), "{}", said.err);
    first.send(GOOD);
    assert_eq!(first.line(), answer(2, "synced"), "the first has noticed nothing");
    assert_eq!(first.finish().code, 1);
    assert_eq!(steno.text(RUN), good_line(1) + &good_line(2));
}

#[test]
fn run_that_cannot_be_created_is_reported_before_its_first_event() {
    let steno = Steno::new();
    steno.record(&[GOOD]);
    std::fs::remove_file(steno.transcript(RUN)).unwrap();
    let before = steno.look();
    let said = steno.run(&["record", "--run", RUN]);
    assert!(said.code == 1 && said.out.is_empty(), "{said:?}");
    assert!(said.err.contains("the file is missing") && said.err.contains("hint: "), "{}", said.err);
    steno.assert_unchanged(&before, "a run of which only the seals are there");
}

#[test]
fn record_accepts_json() {
    let steno = Steno::new();
    let said = steno.run_with(&["record", "--json", "--run", RUN], GOOD.as_bytes());
    assert_eq!((said.code, said.out, &*said.err), (0, answer(1, "synced"), ""));
}

#[test]
fn run_continues_after_its_last_event() {
    let steno = Steno::new();
    let mut want = String::new();
    for seq in [1, 3, 5] {
        let said = steno.record(&[GOOD, "a bad line takes no number", GOOD]);
        let answers: Vec<_> = said.json().into_iter().map(|answer| answer["seq"].clone()).collect();
        assert_eq!(answers, [json!(seq), json!(null), json!(seq + 1)]);
        want += &(good_line(seq) + &good_line(seq + 1));
        assert_eq!(steno.text(RUN), want);
    }
    let upper = RUN.to_uppercase();
    for (spelled, seq) in [(upper.clone(), 7), (RUN.replace('-', ""), 8), (upper.replace('-', ""), 9)] {
        let said = steno.run_with(&["record", "--run", &spelled], GOOD.as_bytes());
        assert_eq!((said.code, said.out), (0, answer(seq, "synced")), "{spelled} is the same UUID");
        want += &good_line(seq);
        assert_eq!(steno.text(RUN), want);
    }
}

/// Foreign JSON whose bytes a tree of values would change.
const FOREIGN: [&str; 16] = [
    "123456789012345678901234567890",
    "-0",
    "1e400",
    "-1.50E+0300",
    "0.10000000000000000000000001",
    r#"{"z":1,"a":2,"m":3}"#,
    r#"{"k":1,"k":2,"k":1}"#,
    r#"{"k":1,"\u006b":2}"#,
    r#"{"":{"":[]}}"#,
    r#""\ud800""#,
    r#""\udc00 \ud800 \ud800\udc00""#,
    r#""\u0000 a\u0000b""#,
    r#""\/ \u002f \u00e9 é \b\f\t""#,
    "[ 1 ,\t2 , { \"a\" : null } ]",
    "\"\u{202e}\u{9b}\u{7f}\u{2028}\u{fffd}\"",
    r#"{"seq":1,"type":"run.started","type":"x","payload":null,"role":"user","call_id":"c"}"#,
];

#[test]
fn foreign_values_are_kept_byte_for_byte() {
    for value in FOREIGN {
        let payloads = [
            (
                "tool.call",
                format!(r#"{{"name":"n","call_id":"c","input":{value},"output":null,"fidelity":"router"}}"#),
            ),
            (
                "tool.result",
                format!(r#"{{"name":"n","call_id":"c","input":null,"output":{value},"fidelity":"router"}}"#),
            ),
            ("step.completed", format!(r#"{{"name":"n","kind":"k","result":{value}}}"#)),
            ("step.completed", format!(r#"{{"kind":"k","own":{value},"name":"n"}}"#)),
            (
                "message.assistant",
                format!(
                    r#"{{"role":"assistant","blocks":[{{"type":"tool_use","fidelity":"router","tool_name":"n","tool_id":"i","tool_input":{value}}}],"usage":{value}}}"#
                ),
            ),
        ];
        for (kind, payload) in payloads {
            let sent = format!(r#"{{"type":"{kind}","payload":{payload},"timestamp":"{TIME}"}}"#);
            let want = format!(
                r#"{{"seq":1,"run_id":"{RUN}","type":"{kind}","path":"","iteration":0,"timestamp":"{TIME}","payload":{payload}}}"#
            );
            assert_eq!(transcript(&sent), want + "\n");
        }
    }
}

#[test]
fn texts_are_kept_byte_for_byte() {
    for text in FOREIGN.into_iter().filter(|value| value.starts_with('"')) {
        let block = format!(r#"{{"type":"text","fidelity":"agent_emitted","text":{text}}}"#);
        let payload = format!(r#"{{"role":"user","blocks":[{block}]}}"#);
        let sent = format!(r#"{{"type":"message.user","payload":{payload}}}"#);
        let line = transcript(&sent);
        assert!(line.ends_with(&format!("\"payload\":{payload}}}\n")), "{line}");
    }
}

#[test]
fn unknown_envelope_fields_are_kept_in_their_order() {
    for value in FOREIGN {
        let extras =
            format!(r#""zeta":{value},"evidence":{{"source":"s1","offset":9012}},"attempt":2,"a":{value}"#);
        let sent = format!(
            r#"{{"zeta":{value},"type":"run.started","evidence":{{"source":"s1","offset":9012}},"attempt":2,"timestamp":"{TIME}","a":{value},"payload":null}}"#
        );
        let want = good_line(1).replace("null}", &format!("null,{extras}}}"));
        assert_eq!(transcript(&sent), want);
    }
}

#[test]
fn last_line_without_newline_counts() {
    let steno = Steno::new();
    for (input, answers) in
        [(GOOD.to_owned(), 1), (format!("{GOOD}\n{GOOD}"), 2), (format!("{GOOD}\r\n{GOOD}"), 2)]
    {
        let said = steno.run_with(&["record", "--run", RUN], input.as_bytes());
        assert_eq!((said.code, said.out.lines().count()), (0, answers), "{said:?}");
    }
    let want: String = (1..=5).map(good_line).collect();
    assert_eq!(steno.text(RUN), want);
}

#[test]
fn files_are_private_under_any_umask() {
    for umask in ["0777", "0000", "0022"] {
        let steno = Steno::new();
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let said = run(steno.shell(&script, &["record", "--run", RUN]), GOOD.as_bytes());
        assert_eq!((said.code, said.out), (0, answer(1, "synced")), "umask {umask}: {}", said.err);
        let found = steno.look();
        assert!(found.contains_key(&format!("/transcripts/{RUN}.jsonl")), "{:?}", found.keys());
        for (name, seen) in found {
            let want = if steno.store().join(&name[name.len().min(1)..]).is_dir() { 0o700 } else { 0o600 };
            assert_eq!(seen.mode & 0o7777, want, "umask {umask}: `{name}`");
        }
    }
}

#[test]
fn all_of_2000_piped_lines_are_answered_and_recorded() {
    for level in ["synced", "written"] {
        let steno = Steno::new();
        let said = steno.run_with(
            &["record", "--run", RUN, "--level", level],
            format!("{GOOD}\n").repeat(2_000).as_bytes(),
        );
        let answers: String = (1..=2_000).map(|seq| answer(seq, level)).collect();
        assert!(said.code == 0 && said.out == answers, "{level}: {}", said.err);
        let lines: String = (1..=2_000).map(good_line).collect();
        assert!(steno.text(RUN) == lines, "{level}: the file has what was sent");
    }
}

#[test]
fn client_gets_each_answer_while_stdin_is_open() {
    for level in ["synced", "written"] {
        let steno = Steno::new();
        let mut live = steno.start(&["record", "--run", RUN, "--level", level]);
        for seq in 1..=50 {
            live.send("not an event");
            assert!(live.line().starts_with("{\"error\":"));
            live.send(GOOD);
            assert_eq!(live.line(), answer(seq, level));
            assert_eq!(steno.text(RUN).lines().count() as u64, seq, "it is in the file when it is answered");
        }
        let said = live.finish();
        assert_eq!((said.code, said.err.lines().next()), (1, Some("error: 50 of 100 lines refused")));
    }
}

#[test]
fn events_are_recorded_if_answers_are_not_read() {
    for answers_read in [0, 1] {
        let steno = Steno::new();
        let mut command = steno.command(&["record", "--run", RUN, "--level", "written"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        for seq in 1..=answers_read {
            writeln!(stdin, "{GOOD}").unwrap();
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert_eq!(line, answer(seq, "written"));
        }
        drop(stdout);
        for _ in answers_read..300 {
            writeln!(stdin, "{GOOD}").unwrap();
        }
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{answers_read} answers read");
        let want: String = (1..=300).map(good_line).collect();
        assert!(steno.text(RUN) == want, "{answers_read} answers read");
    }
}

#[test]
fn signal_leaves_accepted_events_recorded_and_sealed() {
    for signal in ["TERM", "INT"] {
        for level in ["synced", "written"] {
            let steno = Steno::new();
            let mut live = steno.start(&["record", "--run", RUN, "--level", level]);
            (0..20).for_each(|_| live.send(GOOD));
            live.lines(20);
            live.signal(signal);
            live.ended();
            let want: String = (1..=20).map(good_line).collect();
            assert_eq!(steno.text(RUN), want, "{signal} at {level}");
            let seals = std::fs::read_to_string(steno.beside(RUN, "seals.jsonl")).unwrap();
            let seal = json(seals.lines().last().unwrap());
            assert_eq!(
                (&seal["bytes"], &seal["seq_last"]),
                (&json!(want.len()), &json!(20)),
                "{signal} at {level}"
            );
            assert_eq!(steno.run(&["verify", RUN]).code, 0, "{signal} at {level}");
        }
    }
}

#[test]
fn signal_at_the_end_of_input_leaves_the_run_sealed() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        for _ in 0..8 {
            let steno = Steno::new();
            let mut live = steno.start(&["record", "--run", RUN]);
            live.send(GOOD);
            assert_eq!(live.line(), answer(1, "synced"));
            live.signal(signal);
            let said = live.finish();
            // The end of input may have been seen first and the process be gone by then: that is 0.
            assert!(said.code == code || said.code == 0, "{signal}: {said:?}");
            assert!(steno.beside(RUN, "seals.jsonl").exists(), "{signal}: sealed");
        }
    }
}

#[test]
fn lines_read_before_a_signal_are_recorded_whole_or_not_at_all() {
    let steno = Steno::new();
    let mut live = steno.start(&["record", "--run", RUN]);
    (0..500).for_each(|_| live.send(GOOD));
    live.line();
    live.signal("TERM");
    let said = live.ended();
    let accepted = said.out.lines().take_while(|answer| answer.starts_with("{\"seq\":")).count();
    let refused = said.out.lines().filter(|answer| answer.starts_with("{\"error\":")).count();
    assert_eq!(accepted + refused, said.out.lines().count(), "after a refusal nothing is accepted");
    let text = steno.text(RUN);
    let recorded = text.lines().count();
    let want: String = (1..).take(recorded).map(good_line).collect();
    assert!(accepted <= recorded && text == want, "{accepted} accepted, {recorded} recorded");
    let verified = &steno.run(&["verify", "--json", RUN]).json()[0];
    assert_eq!((&verified["ok"], &verified["unsealed_bytes"]), (&json!(true), &json!(0)), "{verified}");
}
