//! Records before the header or the first thread of a Codex source: none is lost, and each keeps its place.

use serde_json::Value;
use steno_adapters::{Adapter, Source, codex};

use crate::reading::{Reading, output, read};

/// The maximum number of records that wait for a run; the next one begins it.
const WAITING_LEN_MAX: usize = 1024;

fn source() -> Source {
    Source::named("s1")
}

fn app_server() -> Adapter {
    codex::app_server(source()).of_conversation()
}

const ROLLOUT: &str = r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001","cli_version":"1.2.3","base_instructions":{"text":"Be brief."}}}"#;
const EXEC: &str = r#"{"type":"thread.started","thread_id":"01a1de00-0000-7000-8000-000000000001"}"#;
const APP_SERVER: &str =
    r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t1","cliVersion":"1.2.3"}}}}"#;

fn surfaces() -> [(&'static str, Adapter, &'static str); 3] {
    [
        ("rollout", codex::rollout(source()), ROLLOUT),
        ("exec", codex::exec(source()), EXEC),
        ("app-server", app_server(), APP_SERVER),
    ]
}

fn read_lines(adapter: Adapter, lines: &[&str]) -> Reading {
    let reading = read(adapter, &[output((lines.join("\n") + "\n").as_bytes())]);
    let positions: Vec<(u64, u64)> = reading.events.iter().map(position).collect();
    assert!(positions.is_sorted_by(|one, next| one < next), "{positions:?}");
    reading
}

fn position(event: &Value) -> (u64, u64) {
    let number = |name: &str| event["evidence"][name].as_u64().unwrap();
    (number("offset"), number("part"))
}

/// Returns the name, evidence offset and evidence length of each step of a kind.
fn places(reading: &Reading, kind: &str) -> Vec<(String, u64, u64)> {
    let steps = reading.of_type("step.completed").filter(|event| event["payload"]["kind"] == kind);
    let place = |event: &Value| {
        let number = |name: &str| event["evidence"][name].as_u64().unwrap();
        (event["payload"]["name"].as_str().unwrap().to_owned(), number("offset"), number("length"))
    };
    steps.map(place).collect()
}

fn unreadable_entries(reading: &Reading) -> usize {
    reading.entries.iter().filter(|entry| entry.is_unreadable).count()
}

#[test]
fn unreadable_lines_before_the_header_keep_their_place() {
    for (name, adapter, first) in surfaces() {
        let reading = read_lines(adapter, &["torn", "[1,2]", first]);
        let want = [("unreadable".to_owned(), 0, 4), ("unreadable".to_owned(), 5, 5)];
        assert_eq!(places(&reading, "unknown"), want, "{name}");
        assert_eq!((reading.runs().len(), unreadable_entries(&reading)), (1, 2), "{name}");
        assert_eq!(reading.events[0]["type"], "run.started", "{name}");
        assert_eq!(reading.of_type("run.started").count(), 1, "{name}");
        if name != "exec" {
            assert_eq!(reading.events[0]["payload"]["source"]["version"], "1.2.3", "{name}");
        }
        assert_eq!(reading.completeness.unreadable, 2, "{name}");
    }
}

#[test]
fn fully_unreadable_source_gives_a_run_with_unknown_records() {
    for (name, adapter, _) in surfaces() {
        let reading = read_lines(adapter, &["torn", "[1,2]"]);
        let want = [("unreadable".to_owned(), 0, 4), ("unreadable".to_owned(), 5, 5)];
        assert_eq!(places(&reading, "unknown"), want, "{name}");
        assert_eq!((reading.of_type("run.started").count(), unreadable_entries(&reading)), (1, 2), "{name}");
    }
}

#[test]
fn no_unreadable_line_before_the_header_is_lost_at_the_limit() {
    for pieces in [WAITING_LEN_MAX - 1, WAITING_LEN_MAX, WAITING_LEN_MAX + 1] {
        for (name, adapter, first) in surfaces() {
            let mut lines = vec!["torn"; pieces];
            lines.push(first);
            let reading = read_lines(adapter, &lines);
            assert_eq!(places(&reading, "unknown").len(), pieces, "{name}");
            assert_eq!(unreadable_entries(&reading), pieces, "{name}");
        }
    }
}

fn from_server(message: &str) -> String {
    format!(r#"{{"dir":"s2c","msg":{message}}}"#)
}

#[test]
fn notices_before_the_first_thread_keep_their_place() {
    let warning = from_server(r#"{"method":"configWarning","params":{"summary":"x"}}"#);
    let unknown = from_server(r#"{"method":"holodeck/opened","params":{}}"#);
    let failed = from_server(r#"{"id":1,"error":{"code":-1,"message":"no"}}"#);
    let asked = r#"{"dir":"c2s","msg":{"id":1,"method":"thread/start","params":{}}}"#;
    let reading = read_lines(app_server(), &[&warning, &unknown, asked, &failed, APP_SERVER]);
    let offset = |lines: &[&str]| lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>();
    let want = [
        ("system", "configWarning", 0, warning.len() as u64),
        ("unknown", "holodeck/opened", offset(&[&warning]), unknown.len() as u64),
        ("error", "thread/start", offset(&[&warning, &unknown, asked]), failed.len() as u64),
    ];
    for (kind, name, offset, length) in want {
        assert_eq!(places(&reading, kind), [(name.to_owned(), offset, length)]);
    }
    let kinds: Vec<String> = reading.entries.iter().map(|entry| entry.kind.to_string()).collect();
    assert_eq!(kinds, ["system_event", "unknown", "unknown", "error", "unknown"]);
}

#[test]
fn no_notice_before_its_thread_is_lost_at_the_limit() {
    let of_none = from_server(r#"{"method":"configWarning","params":{"summary":"x"}}"#);
    let of_another = from_server(r#"{"method":"warning","params":{"threadId":"t9","message":"x"}}"#);
    let unknown = from_server(r#"{"method":"holodeck/opened","params":{"threadId":"t9"}}"#);
    for count in [257, WAITING_LEN_MAX - 1, WAITING_LEN_MAX, WAITING_LEN_MAX + 1, 3 * WAITING_LEN_MAX] {
        for (notice, kind) in [(&of_none, "system"), (&of_another, "system"), (&unknown, "unknown")] {
            let mut lines = vec![notice.as_str(); count];
            assert_eq!(places(&read_lines(app_server(), &lines), kind).len(), count, "{notice}, no thread");
            lines.push(APP_SERVER);
            assert_eq!(places(&read_lines(app_server(), &lines), kind).len(), count, "{notice} before");
            lines.rotate_right(1);
            assert_eq!(places(&read_lines(app_server(), &lines), kind).len(), count, "{notice} after");
        }
    }
}

#[test]
fn waiting_notice_goes_to_its_thread_with_its_entry() {
    let of_second = from_server(r#"{"method":"warning","params":{"threadId":"t2","message":"x"}}"#);
    let second = from_server(r#"{"method":"thread/started","params":{"thread":{"id":"t2"}}}"#);
    let reading = read_lines(app_server(), &[&of_second, APP_SERVER, &second]);
    let runs = reading.runs();
    assert_eq!(runs.len(), 2);
    let types: Vec<&Value> = reading.of_run(&runs[1]).map(|event| &event["type"]).collect();
    assert_eq!(types, ["run.started", "step.completed"]);
    let entries: Vec<String> = reading.entries.iter().map(|entry| entry.run.to_string()).collect();
    // The lines that start the two threads have entries too.
    assert_eq!(entries, [runs[1].clone(), runs[0].clone(), runs[1].clone()]);
}

/// Messages that our recorder could not write are recorded in the run of the first thread.
#[test]
fn missing_messages_are_a_fact() {
    let missing = r#"{"dir":"recorder","t":1794727400.316,"ticket":2,"msg":{"method":"steno/missing","params":{"first_ticket":2,"last_ticket":4,"messages":3,"reason":"behind"}}}"#;
    let reading = read_lines(app_server(), &[APP_SERVER, missing]);
    let told = reading.events.last().unwrap();
    assert_eq!(
        (&told["payload"]["kind"], &told["payload"]["name"]),
        (&"system".into(), &"steno/missing".into())
    );
    assert!(told["payload"].to_string().contains(r#""last_ticket":4"#), "{told}");
}
