//! Names of sessions, runs and events in arguments.

use std::fs;

use serde_json::json;

use crate::kit::{CommandOutput, Steno, TIME, id};

const SHOP: &str = "0199aaaa-0000-7000-8000-00000000beef";
const MILL: &str = "0199aaaa-0000-7000-8000-00000000cafe";
/// Begins as the first one ends.
const LAST: &str = "beef0000-0000-7000-8000-000000000001";

/// Three sessions; `LAST` began first, and has the latest event.
fn store() -> Steno {
    let steno = Steno::new();
    let write = |run: &str, dir: &str, (began, ended): (&str, &str), said: &str| {
        let started = json!({"type": "run.started", "timestamp": began,
            "payload": {"name": "codex", "kind": "session", "cwd": dir}});
        let blocks = json!([{"type": "text", "fidelity": "agent_emitted", "text": said}]);
        let message = json!({"type": "message.user", "timestamp": ended, "payload": {"role": "user", "blocks": blocks}});
        steno.recorded(run, &[started, message]);
    };
    write(SHOP, "/srv/shop", (TIME, TIME), "Fix the build.");
    write(MILL, "/srv/mill", ("2026-06-08T08:20:00Z", "2026-06-08T08:20:00Z"), "Grind.");
    write(LAST, "/srv/last", ("2026-06-01T00:00:00Z", "2026-06-08T09:00:00Z"), "Go on.");
    steno
}

#[track_caller]
fn check(said: &CommandOutput, want: &str) {
    assert!(said.code == 0 && said.out.contains(want), "{want}: {said:?}");
}

#[test]
fn end_of_an_id_names_it_like_its_beginning() {
    let steno = store();
    for (name, want) in [
        ("cafe", "Grind."),
        ("CAFE", "Grind."),
        ("800000000000cafe", "Grind."),
        ("8000-00000000cafe", "Grind."),
        ("0001", "Go on."),
        ("beef0", "Go on."),
        ("0beef", "Fix the build."),
    ] {
        for command in ["show", "events"] {
            check(&steno.run(&[command, name]), want);
        }
    }
}

#[test]
fn ambiguous_name_lists_all_candidates() {
    let steno = store();
    let said = steno.run(&["show", "0199"]);
    let want = format!(
        "error: `0199` names 2 sessions\n  {MILL}  2026-06-08 08:20  mill  Grind.\n  {SHOP}  2026-06-08 08:14  shop  Fix the build.\n"
    );
    assert!(said.code == 2 && said.out.is_empty() && said.err.starts_with(&want), "{}", said.err);
    assert!(
        said.err.contains("hint: use more characters; the last four characters of an id"),
        "{}",
        said.err
    );
    // It begins one and ends another.
    let said = steno.run(&["show", "beef"]);
    assert!(said.code == 2 && said.err.contains(SHOP) && said.err.contains(LAST), "{}", said.err);
    let part = "\u{1b}[1mcafe\u{1b}[0m";
    let said = steno.run(&["show", "0199", "--color", "always"]);
    assert!(said.err.contains(part), "{:?}", said.err);
}

#[test]
fn title_is_that_of_ls_everywhere() {
    let steno = store();
    let ids = [MILL, SHOP];
    for run in ids {
        let own = json!({"type": "step.completed", "timestamp": TIME,
            "payload": {"name": "title", "kind": "system", "result": format!("Title of {run}")}});
        steno.recorded(run, &[own]);
    }
    // Without an index the sessions are read, and with one it is asked.
    for has_index in [false, true] {
        let said = steno.run(&["show", "0199"]);
        assert!(said.code == 2 && said.out.is_empty(), "{said:?}");
        for run in ids {
            let line = said.err.lines().find(|line| line.contains(run)).unwrap();
            assert!(line.ends_with(&format!("  Title of {run}")), "{has_index}: {line}");
        }
        assert_eq!(steno.run(&["index"]).out.contains("none"), !has_index, "{has_index}");
        let rows = steno.run(&["ls", "0199", "--json"]).json();
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row["title"], json!(format!("Title of {}", row["run_id"].as_str().unwrap())));
        }
    }
    let mut follower = steno.start(&["follow", SHOP]);
    assert!(follower.line().contains(&format!("Title of {SHOP}")));
    // The latest session is named with its title.
    let own = json!({"type": "step.completed", "timestamp": "2026-06-09T08:00:00Z",
        "payload": {"name": "title", "kind": "system", "result": "The latest"}});
    steno.recorded(LAST, &[own]);
    let said = steno.run(&["follow"]);
    assert!(said.err.contains("\"The latest\""), "{said:?}");
}

/// Also sessions whose last events have the same time.
#[test]
fn last_counts_in_the_order_of_ls() {
    let steno = Steno::new();
    let times = ["08:00:02", "08:00:01", "08:00:02", "08:00:02.000001", "08:00:03"];
    for (number, time) in (1..).zip(times) {
        let begin = json!({ "type": "run.started", "timestamp": format!("2026-06-08T{time}Z"),
            "payload": { "name": "claude", "kind": "session" } });
        steno.recorded(&id(number), &[begin]);
    }
    let last =
        |back: usize| steno.run(&["show", &format!("last~{back}"), "--json"]).json()[0]["run_id"].clone();
    let named = || (0..times.len()).map(last).collect::<Vec<_>>();
    let without_index = named();
    let listed: Vec<_> =
        steno.run(&["ls", "--json"]).json().iter().map(|row| row["run_id"].clone()).collect();
    assert_eq!(listed, [5, 1, 3, 4, 2].map(|number| json!(id(number))));
    assert_eq!(without_index, listed);
    assert_eq!(named(), listed, "with an index");
}

#[test]
fn last_names_recent_sessions() {
    let steno = store();
    for (name, want) in
        [("last", "Go on."), ("last~0", "Go on."), ("last~1", "Grind."), ("last~2", "Fix the build.")]
    {
        check(&steno.run(&["show", name]), want);
        check(&steno.run(&["events", name]), want);
    }
    let said = steno.run(&["show", "last~3"]);
    assert!(said.code == 1 && said.err.contains("the store has 3 sessions"), "{said:?}");
    for name in ["last~", "last~x", "lasting"] {
        assert_eq!(steno.run(&["show", name]).code, 2, "{name}");
    }
    assert_eq!(Steno::new().run(&["show", "last"]).code, 1);
    // A file with that name wins.
    fs::copy(steno.transcript(SHOP), steno.dir.path().join("last")).unwrap();
    check(&steno.run(&["show", "last"]), "Fix the build.");
}

#[test]
fn event_is_named_by_run_and_number() {
    let steno = store();
    for name in ["cafe:2", "last~1:2", &format!("{MILL}:2"), &format!("store/transcripts/{MILL}.jsonl:2")] {
        let said = steno.run(&["events", name, "--json"]);
        let seqs: Vec<u64> = said.json().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!((said.code, seqs), (0, vec![2]), "{name}: {said:?}");
    }
    let said = steno.run(&["events", "cafe:3"]);
    assert!(said.code == 1 && said.err.contains("no matching events in `cafe:3`"), "{said:?}");
    for bad in ["cafe:0", "cafe:", "cafe:x"] {
        assert_eq!(steno.run(&["events", bad]).code, 2, "{bad}");
    }
}

#[test]
fn turn_of_an_event_is_shown_alone() {
    let steno = store();
    let run = "88880000-0000-4000-8000-000000000008";
    let mut events = vec![
        json!({"type": "run.started", "timestamp": TIME, "payload": {"name": "codex", "kind": "session"}}),
    ];
    for number in 1..=3 {
        let path = format!("turn-000{number}");
        let blocks =
            json!([{"type": "text", "fidelity": "agent_emitted", "text": format!("Prompt {number}.")}]);
        events.push(json!({"type": "step.started", "path": path, "payload": {"name": path, "kind": "turn"}}));
        events.push(
            json!({"type": "message.user", "path": path, "payload": {"role": "user", "blocks": blocks}}),
        );
    }
    steno.recorded(run, &events);
    for (seq, want) in [(2, 1), (3, 1), (4, 2), (5, 2), (7, 3)] {
        let said = steno.run(&["show", &format!("8888:{seq}")]);
        check(&said, &format!("Prompt {want}."));
        assert_eq!(said.out.matches("Prompt ").count(), 1, "{seq}: {said:?}");
    }
    let said = steno.run(&["show", "8888:8"]);
    assert!(
        said.code == 1 && said.err.contains(&format!("there is no event {run}:8: the last event is 7")),
        "{said:?}"
    );
    let said = steno.run(&["tree", "8888:2"]);
    assert!(said.code == 2 && said.err.contains("`steno show 8888:2`"), "{said:?}");
}

#[test]
fn run_and_session_name_each_other() {
    let steno = store();
    let wrap = "77770000-0000-4000-8000-000000000007";
    steno.recorded(
        wrap,
        &[json!({"type": "run.started", "timestamp": TIME, "session_run_id": MILL, "payload": {"name": "w", "kind": "command"}})],
    );
    // A session is asked for.
    check(&steno.run(&["show", wrap]), "Grind.");
    check(&steno.run(&["show", "7777"]), "Grind.");
    // A run is asked for.
    check(&steno.run(&["events", wrap, "--raw"]), wrap);
    check(&steno.run(&["events", MILL, "--raw"]), "Grind.");
    check(&steno.run(&["events", "0007", "--raw"]), wrap);
}

#[test]
fn session_id_means_the_run_of_its_own_file() {
    let steno = store();
    let copy = json!({"type": "run.started", "timestamp": TIME, "session_run_id": LAST,
        "payload": {"name": "codex", "kind": "session"}});
    steno.recorded("550e8400-e29b-41d4-a716-4466554400aa", &[copy]);
    for name in ["last", LAST, "beef0"] {
        check(&steno.run(&["events", name]), "Go on.");
        check(&steno.run(&["verify", name]), LAST);
        check(&steno.run(&["events", &format!("{name}:2")]), "Go on.");
    }
}

#[test]
fn damaged_run_is_named_and_other_runs_are_shown() {
    let steno = store();
    let copy = "550e8400-e29b-41d4-a716-4466554400aa";
    let started = json!({"type": "run.started", "timestamp": TIME, "session_run_id": LAST,
        "payload": {"name": "codex", "kind": "session"}});
    steno.recorded(copy, &[started.clone(), started]);
    let text = steno.text(copy);
    let (first, _) = text.split_once('\n').unwrap();
    fs::write(steno.transcript(copy), format!("{first}\nnothing\n{first}\n")).unwrap();
    for command in ["show", "tree"] {
        let said = steno.run(&[command, LAST]);
        assert!(
            said.code == 0 && said.err.contains(&format!("run {copy} is left out")),
            "{command}: {said:?}"
        );
    }
}

#[test]
fn lists_mark_the_shortest_part_of_ids() {
    let steno = Steno::new();
    let used = json!({"role": "assistant", "blocks": [], "response": "r1", "model": "m", "final": true,
        "usage": {"input_tokens": 1, "output_tokens": 2}});
    steno.recorded(
        SHOP,
        &[
            json!({"type": "run.started", "timestamp": TIME, "payload": {"name": "codex", "kind": "session"}}),
            json!({"type": "step.started", "path": "turn-0001", "timestamp": TIME,
                "payload": {"name": "turn-0001", "kind": "turn"}}),
            json!({"type": "message.assistant", "path": "turn-0001", "timestamp": TIME, "payload": used}),
        ],
    );
    for command in [&["ls"][..], &["usage", "--by", "session"], &["receipt", "ls"]] {
        let shown = |color| steno.run(&[command, &["--color", color]].concat()).out;
        assert!(shown("always").contains("\u{1b}[1m0199\u{1b}[0m"), "{command:?}: {}", shown("always"));
        assert!(shown("never").contains(SHOP), "{command:?}: {}", shown("never"));
    }
}

/// Three archived sessions of Claude, and one of Gemini that has no events.
fn archive() -> Steno {
    let steno = Steno::new();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/claude-session.jsonl");
    let sample = fs::read_to_string(sample).unwrap();
    let write = |path: &str, text: &str| {
        let path = steno.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (session, year) in [(SHOP, "2023-"), (MILL, "2024-"), (LAST, "2025-")] {
        let text = sample.replace("2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee", session).replace("2026-", year);
        write(&format!(".claude/projects/-srv-shop/{session}.jsonl"), &text);
    }
    for id in ["0a1b2c3d", "4e5f6a7b", "4e5f0000", "beef0000"] {
        write(&format!(".gemini/tmp/shop/chats/session-2026-06-08T08-14-{id}.json"), "{\"messages\":[]}");
    }
    assert_eq!(steno.run(&["import"]).code, 0);
    steno
}

#[test]
fn forget_and_restore_take_the_names_of_show() {
    let steno = archive();
    for (name, want) in [
        ("last", LAST),
        ("last~1", MILL),
        ("cafe", MILL),
        ("CAFE", MILL),
        ("800000000000cafe", MILL),
        ("0beef", SHOP),
        (SHOP, SHOP),
        (&SHOP.replace('-', ""), SHOP),
        (&format!(".claude/projects/-srv-shop/{SHOP}.jsonl"), SHOP),
    ] {
        if !name.contains('/') {
            check(&steno.run(&["show", name]), want);
        }
        let file = format!("{want}.jsonl");
        for args in [&["restore", name, "--list"][..], &["forget", name, "--dry-run"]] {
            let said = steno.run(args);
            check(&said, &file);
            assert_eq!(said.out.matches(".jsonl").count(), 1, "{args:?}: {said:?}");
        }
    }
    // An ambiguous name is listed as by `show`.
    let shown = steno.run(&["show", "0199"]);
    for args in [&["restore", "0199", "--list"][..], &["forget", "0199", "--dry-run"]] {
        let said = steno.run(args);
        assert_eq!((said.code, &said.err), (2, &shown.err), "{args:?}");
    }
    for (name, code) in [("last~3", 1), ("ffff", 1), ("no such", 2)] {
        let shown = steno.run(&["show", name]);
        for command in ["restore", "forget"] {
            let said = steno.run(&[command, name]);
            assert_eq!((said.code, &said.err), (code, &shown.err), "{command} {name}");
        }
    }
}

#[test]
fn sessions_without_events_are_named_like_others() {
    let steno = archive();
    for name in ["0a1b2c3d", "0a1b", "2c3d", "shop/0a1b2c3d", "0a1b2c3d-0000-4000-8000-000000000001"] {
        for args in [&["restore", name, "--list"][..], &["forget", name, "--dry-run"]] {
            check(&steno.run(args), "14-0a1b2c3d.json");
        }
        if !name.contains('/') {
            let said = steno.run(&["show", name]);
            assert!(
                said.code == 1 && said.err.contains("`shop/0a1b2c3d` is stored as files without events"),
                "{said:?}"
            );
        }
    }
    // All candidates are listed.
    let said = steno.run(&["restore", "4e5f", "--list"]);
    assert!(
        said.code == 2 && said.err.contains("shop/4e5f6a7b") && said.err.contains("shop/4e5f0000"),
        "{said:?}"
    );
    assert_eq!(steno.run(&["show", "4e5f"]).err, said.err);
    let said = steno.run(&["forget", "beef0", "--dry-run"]);
    assert!(said.code == 2 && said.err.contains("shop/beef0000") && said.err.contains(LAST), "{said:?}");
}

#[test]
fn receipts_take_a_session_without_its_own_file() {
    let steno = Steno::new();
    for run in [id(1), id(2)] {
        let started = json!({"type": "run.started", "timestamp": TIME, "session_run_id": SHOP,
            "payload": {"name": "codex", "kind": "session"}});
        let turn = json!({"type": "step.started", "path": "turn-0001", "timestamp": TIME,
            "payload": {"name": "turn-0001", "kind": "turn", "turn_id": "t1"}});
        steno.recorded(&run, &[started, turn]);
    }
    for name in [SHOP, "beef", "last"] {
        check(&steno.run(&["receipt", "ls", "--thread", name]), "turn-0001");
        check(&steno.run(&["receipt", "export", "--thread", name, "--turn", "turn-0001"]), SHOP);
        check(&steno.run(&["receipt", "lines", "--thread", name, "--turn", "turn-0001"]), "turn-0001");
    }
}
