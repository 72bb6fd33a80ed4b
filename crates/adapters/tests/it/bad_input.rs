//! Every kind of bad input between good records, on every surface: no good record is lost, and bad input is counted.

use std::collections::BTreeMap;

use steno_adapters::{Adapter, Completeness, Source, claude, codex, copilot, gemini, opencode};
use steno_model::{BlockContent, EventType, ExchangeEvent, Frame, Payload, Word};

use crate::reading::{Reading, output, read, read_unfinished};

/// A surface with two records: one opens a session, the other has text of the model.
struct Surface {
    name: &'static str,
    adapter: fn() -> Adapter,
    opening: &'static str,
    /// The record before and after the JSON of the text.
    says: (&'static str, &'static str),
    /// The field with the content of a `says` record, up to its value.
    body: &'static str,
}

const SURFACES: [Surface; 10] = [
    Surface {
        name: "Claude's session file",
        adapter: || claude::disk(Source::named("s1")),
        opening: r#"{"type":"user","uuid":"u0","sessionId":"0f000000-0000-4000-8000-000000000001","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"Go"}}"#,
        says: (
            r#"{"type":"assistant","sessionId":"0f000000-0000-4000-8000-000000000001","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"assistant","content":[{"type":"text","text":"#,
            "}]}}",
        ),
        body: r#""message":"#,
    },
    Surface {
        name: "Claude's stream",
        adapter: || claude::stream(Source::named("s1")),
        opening: r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","uuid":"u0","tools":[]}"#,
        says: (
            r#"{"type":"assistant","session_id":"0f000000-0000-4000-8000-000000000001","uuid":"u","message":{"role":"assistant","content":[{"type":"text","text":"#,
            "}]}}",
        ),
        body: r#""message":"#,
    },
    Surface {
        name: "Codex's rollout",
        adapter: || codex::rollout(Source::named("s1")),
        opening: r#"{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#,
        says: (
            r#"{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"#,
            "}]}}",
        ),
        body: r#""payload":"#,
    },
    Surface {
        name: "codex exec",
        adapter: || codex::exec(Source::named("s1")),
        opening: r#"{"type":"thread.started","thread_id":"01a1de00-0000-7000-8000-000000000001"}"#,
        says: (r#"{"type":"item.completed","item":{"type":"agent_message","text":"#, "}}"),
        body: r#""item":"#,
    },
    Surface {
        name: "Codex's app-server",
        adapter: || codex::app_server(Source::named("s1")).of_conversation(),
        opening: r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t1"}}}}"#,
        says: (
            r#"{"dir":"s2c","msg":{"method":"item/completed","params":{"threadId":"t1","item":{"type":"agentMessage","text":"#,
            "}}}}",
        ),
        body: r#""params":"#,
    },
    Surface {
        name: "Copilot's session file",
        adapter: || copilot::events(Source::named("s1")),
        opening: r#"{"type":"session.start","data":{"sessionId":"3c000000-0000-4000-8000-000000000001"},"timestamp":"2026-01-02T03:04:05.000Z"}"#,
        says: (
            r#"{"type":"assistant.message","timestamp":"2026-01-02T03:04:06.000Z","data":{"content":"#,
            "}}",
        ),
        body: r#""data":"#,
    },
    Surface {
        name: "Copilot's output",
        adapter: || copilot::stream(Source::named("s1")),
        // The last line names the session; what comes before it would wait.
        opening: r#"{"type":"session.start","data":{"sessionId":"3c000000-0000-4000-8000-000000000001"},"timestamp":"2026-01-02T03:04:05.000Z"}"#,
        says: (
            r#"{"type":"assistant.message","timestamp":"2026-01-02T03:04:06.000Z","data":{"content":"#,
            "}}",
        ),
        body: r#""data":"#,
    },
    Surface {
        name: "Gemini's chat file",
        adapter: || gemini::chat(Source::named("s1")),
        opening: r#"{"sessionId":"0a000000-0000-4000-8000-000000000001","projectHash":"p","startTime":"2026-01-02T03:04:05.000Z"}"#,
        says: (r#"{"timestamp":"2026-01-02T03:04:06.000Z","type":"gemini","content":[{"text":"#, "}]}"),
        body: r#""type":"#,
    },
    Surface {
        name: "Gemini's stream",
        adapter: || gemini::stream(Source::named("s1")),
        opening: r#"{"type":"init","timestamp":"2026-01-02T03:04:05.000Z","session_id":"0a000000-0000-4000-8000-000000000001"}"#,
        says: (
            r#"{"type":"message","timestamp":"2026-01-02T03:04:06.000Z","role":"assistant","content":"#,
            "}",
        ),
        body: r#""role":"#,
    },
    Surface {
        name: "OpenCode's output",
        adapter: || opencode::stream(Source::named("s1")),
        opening: r#"{"type":"step_start","timestamp":1780906482000,"sessionID":"ses_1","part":{"id":"p0","messageID":"m1"}}"#,
        says: (
            r#"{"type":"text","timestamp":1780906483000,"sessionID":"ses_1","part":{"messageID":"m1","text":"#,
            "}}",
        ),
        body: r#""part":"#,
    },
];

impl Surface {
    /// Returns a record with this text, given as JSON.
    fn says(&self, text: &str) -> String {
        format!("{}{text}{}", self.says.0, self.says.1)
    }

    fn read(&self, bytes: &[u8]) -> Reading {
        read((self.adapter)(), &[output(bytes)])
    }
}

/// The expected output for bytes between two good records.
#[derive(Default)]
struct Wanted {
    /// The texts, as JSON.
    says: Vec<String>,
    records: u64,
    repaired: u64,
    unreadable: u64,
}

impl Wanted {
    fn unreadable(pieces: u64) -> Self {
        Self { unreadable: pieces, ..Self::default() }
    }

    fn says(text: &str) -> Self {
        Self { says: vec![text.to_owned()], records: 1, ..Self::default() }
    }

    fn repaired(text: &str) -> Self {
        Self { repaired: 1, ..Self::says(text) }
    }
}

/// Puts bytes between two good records; compares the texts and the counts.
#[track_caller]
fn check(surface: &Surface, what: &str, between: &[u8], want: &Wanted) {
    let name = format!("{}: {what}", surface.name);
    let (before, after) = (surface.says(r#""before""#), surface.says(r#""after""#));
    let text = [
        surface.opening.as_bytes(),
        b"\n",
        before.as_bytes(),
        b"\n",
        between,
        b"\n",
        after.as_bytes(),
        b"\n",
    ];
    let reading = surface.read(&text.concat());
    let mut says = vec![r#""before""#.to_owned()];
    says.extend(want.says.iter().cloned());
    says.push(r#""after""#.to_owned());
    assert!(said(&reading) == says, "{name}: {:.300}", said(&reading).join(", "));
    let counts = Completeness {
        records: 3 + want.records,
        repaired: want.repaired,
        unreadable: want.unreadable,
        bookkeeping: reading.completeness.bookkeeping,
        unknown: BTreeMap::new(),
        torn_bytes: 0,
        vanished: 0,
    };
    assert_eq!(reading.completeness, counts, "{name}");
    let unknown = reading.events.iter().filter(|event| event["payload"]["kind"] == "unknown").count() as u64;
    assert_eq!(unknown, want.unreadable, "{name}: what cannot be read is on record");
}

/// Returns the texts of the model, as JSON.
fn said(reading: &Reading) -> Vec<String> {
    let mut texts = Vec::new();
    for line in &reading.lines {
        let event = ExchangeEvent::parse(line.trim_end().as_bytes()).unwrap();
        if event.event_type != Word::Known(EventType::MessageAssistant) {
            continue;
        }
        let Payload::Message(message) = event.payload() else { panic!("{line}") };
        for block in message.blocks {
            if let BlockContent::Text(Some(text)) = block.content {
                texts.push(text.to_json().as_str().to_owned());
            }
        }
    }
    texts
}

#[test]
fn unreadable_lines_are_counted_and_recorded() {
    for surface in &SURFACES {
        for value in ["[1,2]", "42", "-1e999", r#""text""#, "null", "true", "[[{}]]"] {
            check(surface, value, value.as_bytes(), &Wanted::unreadable(1));
        }
        for bytes in [&b"\xff\xfe"[..], b"{\"type\":", b"nonsense", b"{\"type\":\"x\xff", b"}{"] {
            check(surface, &String::from_utf8_lossy(bytes), bytes, &Wanted::unreadable(1));
        }
        // Padding that a crash leaves behind is ignored.
        for bytes in [&b""[..], b"\0\0\0\0", b"  \t", b"\r"] {
            check(surface, &format!("{bytes:?}"), bytes, &Wanted::default());
        }
    }
}

#[test]
fn records_on_one_line_are_separated() {
    for surface in &SURFACES {
        let glued = surface.says(r#""one""#) + &surface.says(r#""two""#);
        let want =
            Wanted { says: vec![r#""one""#.into(), r#""two""#.into()], records: 2, ..Wanted::default() };
        check(surface, "two records", glued.as_bytes(), &want);
        let with_nul = surface.says("\"a\0b\"") + "\0\0" + &surface.says(r#""two""#);
        let says = vec![r#""a\u0000b""#.to_owned(), r#""two""#.to_owned()];
        let want = Wanted { says, records: 2, repaired: 1, unreadable: 0 };
        check(surface, "NULs in and between records", with_nul.as_bytes(), &want);
        let with_number = surface.says(r#""one""#) + "7";
        check(
            surface,
            "a number after a record",
            with_number.as_bytes(),
            &Wanted { unreadable: 1, ..Wanted::says(r#""one""#) },
        );
    }
}

#[test]
fn record_after_a_torn_one_on_the_same_line_is_read() {
    for surface in &SURFACES {
        let whole = surface.says(r#""torn""#);
        for cut in [1, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
            let line = [&whole[..cut], &surface.says(r#""whole""#)].concat();
            let want = Wanted { unreadable: 1, ..Wanted::says(r#""whole""#) };
            check(surface, &format!("torn after {cut} bytes"), line.as_bytes(), &want);
            let line =
                [&whole.as_bytes()[..cut], b"\xe2\x82", surface.says(r#""whole""#).as_bytes()].concat();
            check(surface, &format!("torn after {cut} bytes, inside a character"), &line, &want);
        }
    }
}

#[test]
fn text_is_kept_byte_for_byte() {
    let texts = [
        r#""\ud800""#,
        r#""a\udc00b\ud83d""#,
        r#""\u2028\u2029""#,
        "\"\u{2028}\u{2029}\u{85}\"",
        r#""\u0000""#,
        r#""\u0041\/""#,
        "\"\u{feff}\u{fffd}\u{10ffff}\"",
    ];
    for surface in &SURFACES {
        for text in texts {
            check(surface, text, surface.says(text).as_bytes(), &Wanted::says(text));
        }
    }
}

#[test]
fn repaired_records_are_counted() {
    for surface in &SURFACES {
        let with_nul = surface.says("\"a\0b\"");
        check(surface, "a raw NUL", with_nul.as_bytes(), &Wanted::repaired(r#""a\u0000b""#));
        let with_controls = surface.says("\"\x1b[2J\x07\"");
        check(surface, "raw controls", with_controls.as_bytes(), &Wanted::repaired(r#""\u001b[2J\u0007""#));
        let bad = [surface.says.0.as_bytes(), b"\"a\xffb\"", surface.says.1.as_bytes()].concat();
        check(surface, "no UTF-8", &bad, &Wanted::repaired("\"a\u{fffd}b\""));
        // A surrogate encoded as UTF-8, which some programs write, is three invalid bytes.
        let bad = [surface.says.0.as_bytes(), b"\"\xed\xa0\x80\"", surface.says.1.as_bytes()].concat();
        check(surface, "a surrogate as bytes", &bad, &Wanted::repaired("\"\u{fffd}\u{fffd}\u{fffd}\""));
    }
}

#[test]
fn evidence_has_the_length_of_the_original_bytes() {
    for surface in &SURFACES {
        for text in [&b"\"a\0b\""[..], b"\"a\xffb\"", b"\"ab\""] {
            let record = [surface.says.0.as_bytes(), text, surface.says.1.as_bytes()].concat();
            let reading = surface.read(&[surface.opening.as_bytes(), b"\n", &record, b"\n"].concat());
            let evidence = &reading.events.last().unwrap()["evidence"];
            let want = (surface.opening.len() + 1, record.len());
            let number = |name: &str| usize::try_from(evidence[name].as_u64().unwrap()).unwrap();
            assert_eq!((number("offset"), number("length")), want, "{}", surface.name);
        }
    }
}

#[test]
fn byte_order_mark_and_carriage_returns_are_ignored() {
    for surface in &SURFACES {
        let text = format!("\u{feff}{}\r\n{}\r\n", surface.opening, surface.says(r#""x""#));
        let reading = surface.read(text.as_bytes());
        let plain = surface.read(format!("{}\n{}\n", surface.opening, surface.says(r#""x""#)).as_bytes());
        assert_eq!(said(&reading), [r#""x""#], "{}", surface.name);
        assert_eq!(reading.completeness, plain.completeness, "{}", surface.name);
        let types =
            |reading: &Reading| reading.events.iter().map(|event| event["type"].clone()).collect::<Vec<_>>();
        assert_eq!(types(&reading), types(&plain), "{}", surface.name);
    }
}

#[test]
fn line_of_8_mb_is_read() {
    let text = format!("\"{}\"", "x".repeat(8 * 1024 * 1024));
    for surface in &SURFACES {
        check(surface, "8 MB of text", surface.says(&text).as_bytes(), &Wanted::says(&text));
        check(surface, "8 MB of nothing", &text.as_bytes()[1..], &Wanted::unreadable(1));
    }
}

#[test]
fn deep_nesting_does_not_affect_other_records() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for surface in &SURFACES {
        let beside = surface.says(r#""x""#).replacen('{', &format!(r#"{{"deep":{deep},"#), 1);
        check(surface, "deep beside", beside.as_bytes(), &Wanted::says(r#""x""#));
        let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        let beside = surface.says(r#""x""#).replacen('{', &format!(r#"{{"deep":{objects},"#), 1);
        check(surface, "deep objects beside", beside.as_bytes(), &Wanted::says(r#""x""#));
        check(surface, "only opened", "[".repeat(100_000).as_bytes(), &Wanted::unreadable(1));
    }
}

#[test]
fn duplicate_key_loses_no_record() {
    for surface in &SURFACES {
        let twice = surface.says(r#""x""#).replacen('{', r#"{"zz":1,"zz":2,"#, 1);
        check(surface, "unknown keys", twice.as_bytes(), &Wanted::says(r#""x""#));
        let twice = surface.says(r#""x","text":"x""#);
        check(surface, "the text", twice.as_bytes(), &Wanted::says(r#""x""#));
    }
}

#[test]
fn wrong_value_in_place_of_an_object_loses_no_other_record() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for surface in &SURFACES {
        for value in ["[1,[2]]", "7", "null", r#""x""#, "-0.0e-1", "[]", "{}", &deep] {
            let record = surface.says(r#""x""#);
            let (head, _) = record.split_once(surface.body).unwrap();
            let open = head.matches('{').count() - head.matches('}').count();
            let odd = format!("{head}{}{value}{}", surface.body, "}".repeat(open));
            let text = [surface.opening, &surface.says(r#""before""#), &odd, &surface.says(r#""after""#), ""]
                .join("\n");
            let reading = surface.read(text.as_bytes());
            assert_eq!(said(&reading), [r#""before""#, r#""after""#], "{}: {value:.20}", surface.name);
            let Completeness { records, unreadable, .. } = reading.completeness;
            assert_eq!(records + unreadable, 4, "{}: {value:.20}", surface.name);
        }
    }
}

#[test]
fn torn_last_line_is_read_when_its_rest_arrives() {
    for surface in &SURFACES {
        let head = format!("{}\n{}\n", surface.opening, surface.says(r#""x""#));
        let last = surface.says(r#""last""#);
        for cut in 1..last.len() {
            let torn = [&head, &last[..cut]].concat();
            let reading = surface.read(torn.as_bytes());
            assert_eq!(said(&reading), [r#""x""#], "{} cut at {cut}", surface.name);
            let Completeness { torn_bytes, unreadable, records, .. } = reading.completeness;
            assert_eq!(
                (torn_bytes, unreadable, records),
                (cut as u64, 0, 2),
                "{} cut at {cut}",
                surface.name
            );
        }
        let pieces = [
            output(head.as_bytes()),
            output(&last.as_bytes()[..9]),
            output(&last.as_bytes()[9..]),
            output(b"\n"),
        ];
        let reading = read_unfinished((surface.adapter)(), &pieces);
        assert_eq!(said(&reading), [r#""x""#, r#""last""#], "{}", surface.name);
    }
}

/// Records that contain objects that look like records.
const NESTED: [(usize, &str); 5] = [
    (
        0,
        r#"{"type":"progress","uuid":"u1","sessionId":"0f000000-0000-4000-8000-000000000001","timestamp":"2026-01-02T03:04:06.000Z","data":{"type":"agent_progress","agentId":"a1","message":{"type":"assistant","uuid":"u2","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"assistant","content":[]}}}}"#,
    ),
    (
        1,
        r#"{"type":"stream_event","session_id":"0f000000-0000-4000-8000-000000000001","uuid":"u1","event":{"type":"result","uuid":"u2"}}"#,
    ),
    (
        2,
        r#"{"timestamp":"2026-01-02T03:04:06.000Z","type":"compacted","payload":{"message":"x","replacement_history":[{"type":"message","payload":{}}]}}"#,
    ),
    (
        3,
        r#"{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"type":"item.x"},"result":{"id":1,"result":{}},"status":"completed"}}"#,
    ),
    (
        4,
        r#"{"dir":"s2c","msg":{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"failed","error":{"message":"x"}}}}}"#,
    ),
];

#[test]
fn finish_inside_a_record_does_not_change_the_events() {
    for (surface, record) in NESTED.map(|(surface, record)| (&SURFACES[surface], record)) {
        let text = [surface.opening, record, &surface.says(r#""x""#), ""].join("\n");
        let fed = |cut: Option<usize>| {
            let (mut adapter, mut drafts) = ((surface.adapter)(), Vec::new());
            if let Some(cut) = cut {
                adapter.feed(Frame::of_file(0, &text.as_bytes()[..cut]), &mut drafts);
                adapter.finish(&mut drafts);
            }
            let from = cut.unwrap_or_default();
            adapter.feed(Frame::of_file(from as u64, &text.as_bytes()[from..]), &mut drafts);
            adapter.finish(&mut drafts);
            (drafts, adapter.completeness().clone())
        };
        let whole = fed(None);
        for cut in surface.opening.len() + 1..text.len() {
            assert!(fed(Some(cut)) == whole, "{} cut at {cut}: {}", surface.name, &text[..cut]);
        }
    }
}
