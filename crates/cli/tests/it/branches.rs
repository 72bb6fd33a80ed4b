//! Copies of a session that continued differently: `show` counts them, and `--branches` lists them.

use serde_json::{Value, json};

use crate::kit::{Steno, id};

/// A run of a session file: its start, and messages with their ids and minutes.
fn write(steno: &Steno, run: &str, said: &[(&str, u32, &str)]) {
    let time = |minute: u32| format!("2026-06-08T08:{minute:02}:00Z");
    let source = json!({"channel": "disk", "adapter": "claude/2"});
    let mut started = json!({"type": "run.started", "timestamp": time(0),
        "payload": {"name": "claude", "kind": "session", "source": source}});
    if run != id(1) {
        started["session_run_id"] = id(1).into();
    }
    let message = |(message, minute, text): &(&str, u32, &str)| {
        let blocks = json!([{"type": "text", "fidelity": "agent_emitted", "text": text}]);
        json!({"type": "message.user", "timestamp": time(*minute),
            "payload": {"role": "user", "id": message, "blocks": blocks}})
    };
    let events: Vec<Value> = std::iter::once(started).chain(said.iter().map(message)).collect();
    steno.recorded(run, &events);
}

/// A session with a main line and two branches.
fn session() -> Steno {
    let steno = Steno::new();
    write(
        &steno,
        &id(1),
        &[("m1", 1, "Begin."), ("m2", 2, "Use Go."), ("m3", 3, "Test it."), ("m4", 4, "Ship it.")],
    );
    write(&steno, &id(2), &[("m1", 1, "Begin."), ("b1", 5, "\n Use Rust.\nNow."), ("b2", 6, "Check it.")]);
    write(&steno, &id(3), &[("m1", 1, "Begin."), ("m2", 2, "Use Go."), ("c1", 7, "Stop.\u{1b}[2J")]);
    steno
}

#[test]
fn show_counts_branches_and_names_the_command() {
    let steno = session();
    let said = steno.run(&["show", &id(1)]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.lines().any(|line| line == "2 branches"), "{}", said.out);
    assert!(!said.out.contains("Use Rust."), "{}", said.out);
    let hint = format!("2 branches not shown: `steno show {} --branches` lists them", id(1));
    assert!(said.err.contains(&hint), "{}", said.err);
    assert_eq!(steno.run(&["show", &id(1), "--json"]).json()[0]["branches"], 2);
}

#[test]
fn branches_are_listed_with_event_length_time_and_words() {
    let steno = session();
    let said = steno.run(&["show", &id(1), "--branches"]);
    let want = [
        format!("{}:3  2 events  last written 2026-06-08 08:06  Use Rust.", id(2)),
        format!("{}:4  1 event  last written 2026-06-08 08:07  Stop.\\u{{1b}}[2J", id(3)),
    ];
    let mut lines: Vec<&str> = said.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((said.code, lines), (0, want.iter().map(String::as_str).collect()), "{said:?}");
    let mut rows = steno.run(&["show", &id(2), "--branches", "--json"]).json();
    rows.sort_by_key(|row| row["run"].to_string());
    let row = json!({"session_id": id(1), "run": id(2), "seq": 3, "events": 2,
        "last_at": "2026-06-08T08:06:00Z", "words": "Use Rust."});
    assert_eq!((rows.len(), &rows[0]), (2, &row));
    // Listed branches can be shown.
    assert!(steno.run(&["events", &format!("{}:3", id(2))]).out.contains("Use Rust."));
}

#[test]
fn session_without_branches_does_not_mention_them() {
    let steno = Steno::new();
    write(&steno, &id(1), &[("m1", 1, "Begin.")]);
    let said = steno.run(&["show", &id(1)]);
    assert!(!said.out.contains("branch") && said.err.is_empty(), "{said:?}");
    let said = steno.run(&["show", &id(1), "--branches"]);
    assert!(said.code == 1 && said.err.contains("has no branches"), "{said:?}");
}
