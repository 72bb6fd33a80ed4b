//! `usage`: what sessions cost, and where the record has less than they did.

use serde_json::Value;
use steno_testkit::{needs, shared_dir};

use crate::agents_files::{lines, put, session, text};
use crate::kit::Steno;

/// Captures with the output tokens of each session, and whether these are all that there were.
const CAPTURES: [(&str, &[(u64, bool)]); 7] = [
    ("2.1.197/main", &[(857, true)]),
    ("2.1.325/main", &[(857, true)]),
    ("2.1.325/denied", &[(857, true)]),
    ("2.1.325/control", &[(1026, true)]),
    ("2.1.325/err400", &[(35, true)]),
    ("2.1.325/resume", &[(963, true)]),
    // The responses that made the summary are on record nowhere; the fork's own are.
    ("2.1.325/compact", &[(56, true), (963, false)]),
];

#[test]
fn a_session_is_exact_where_its_responses_are_all_that_it_cost() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for (capture, want) in CAPTURES {
        let home = shared.join("captures/claude").join(capture).join("home");
        let said = Steno::new().run(&["usage", home.to_str().unwrap(), "--by", "session", "--json"]);
        let row = |row: &Value| (row["output_tokens"].as_u64().unwrap(), row["exact"] == true);
        let rows: Vec<_> = lines(&said).iter().map(row).collect();
        assert_eq!(rows, want, "{capture}");
    }
}

#[test]
fn a_file_that_has_lost_something_is_a_lower_bound_and_says_so() {
    let steno = Steno::new();
    let whole = text(&session());
    put(&steno, "whole.jsonl", &whole);
    let said = steno.run(&["usage", "whole.jsonl", "--json"]);
    assert!(said.out.contains(r#""exact":true"#) && said.err.is_empty(), "{said:?}");
    let torn = format!("{whole}{{\"type\":\"assis");
    let broken = whole.replacen('\n', "\n{\"type\":\n", 1);
    for (name, text, words) in
        [("torn.jsonl", torn, "no whole record"), ("broken.jsonl", broken, "cannot be read")]
    {
        put(&steno, name, text);
        let said = steno.run(&["usage", name, "--json"]);
        assert!(said.out.contains(r#""exact":false"#) && said.err.contains(words), "{name}: {said:?}");
    }
}

#[test]
fn a_stream_and_its_copies_count_once() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let steno = Steno::new();
    for name in [
        "codex/0.166.0/app_server/duplex.jsonl",
        "codex/0.166.0/exec_main/stream.ndjson",
        "claude/2.1.325/main/stream.ndjson",
    ] {
        let file = shared.join("captures").join(name);
        let once = steno.run(&["usage", file.to_str().unwrap(), "--by", "session", "--json"]).out;
        let copy = put(&steno, "copy.ndjson", std::fs::read(&file).unwrap());
        let both = steno.run(&["usage", file.to_str().unwrap(), &copy, "--by", "session", "--json"]).out;
        assert_eq!(both, once, "{name}");
    }
}

#[test]
fn a_group_is_asked_for_once() {
    let steno = Steno::new();
    put(&steno, "s.jsonl", text(&session()));
    let once = steno.run(&["usage", "s.jsonl", "--by", "day"]).out;
    assert_eq!(steno.run(&["usage", "s.jsonl", "--by", "day,day"]).out, once);
}
