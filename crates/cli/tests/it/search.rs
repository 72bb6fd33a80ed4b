//! `steno search`: finds texts of every kind, in sessions of every agent, with an index that may be lost at any time.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{RUN, Steno, id};

/// Records a session with one text of each kind.
fn filled() -> Steno {
    let steno = Steno::new();
    let message = |role: &str, blocks: Value| json!({ "type": format!("message.{role}"), "path": "turn-0001", "payload": { "role": role, "blocks": blocks } });
    let call = |name: &str, fields: Value| {
        let mut payload = json!({ "name": "Bash", "call_id": "c1", "input": null, "output": null,
            "fidelity": "agent_emitted", "class": "command" });
        for (key, value) in fields.as_object().unwrap() {
            payload[key] = value.clone();
        }
        json!({ "type": name, "path": "turn-0001", "payload": payload })
    };
    steno.recorded(
        RUN,
        &[
            json!({ "type": "run.started", "payload": { "name": "claude", "kind": "session", "cwd": "/srv/shop",
                "git": { "branch": "main" }, "source": { "adapter": "claude/2", "channel": "disk" } } }),
            json!({ "type": "step.started", "path": "turn-0001", "payload": { "name": "turn-0001", "kind": "turn" } }),
            message("user", json!([{ "type": "text", "fidelity": "agent_emitted", "text": "The login fails in src/auth.rs" }])),
            message(
                "assistant",
                json!([
                    { "type": "thinking", "fidelity": "agent_emitted", "thinking": "parseHTTPResponse drops a byte" },
                    { "type": "text", "fidelity": "agent_emitted", "text": "Der Fehler ist die Größe 日本語" },
                ]),
            ),
            call("tool.call", json!({ "input": { "command": "cargo test login" } })),
            call(
                "tool.result",
                json!({ "output": "assertion `left == right` failed\n\u{1b}[31mneedle\u{1b}[0m in a haystack",
                    "outcome": "failed", "exit_code": 101 }),
            ),
        ],
    );
    steno
}

/// Returns the handle and kind of every hit.
#[track_caller]
fn hits(steno: &Steno, args: &[&str]) -> Vec<(u64, String)> {
    let said = steno.run(&[&["search", "--json", "--limit", "0", "--hits", "0"], args].concat());
    assert!(said.code == 0 || said.code == 1, "{said:?}");
    let hits = said.json().into_iter().filter(|object| object["type"] == "hit");
    hits.map(|hit| (hit["seq"].as_u64().unwrap(), hit["kind"].as_str().unwrap().to_owned())).collect()
}

#[track_caller]
fn check(steno: &Steno, args: &[&str], want: &[(u64, &str)]) {
    let want: Vec<(u64, String)> = want.iter().map(|(seq, kind)| (*seq, (*kind).to_owned())).collect();
    let mut found = hits(steno, args);
    found.sort();
    assert_eq!(found, want, "{args:?}");
}

#[test]
fn every_kind_of_text_is_found() {
    let steno = filled();
    check(&steno, &["login"], &[(3, "prompt"), (5, "command")]);
    check(&steno, &["LOGIN", "fails"], &[(3, "prompt")]);
    check(&steno, &["src/auth.rs"], &[(3, "prompt")]);
    check(&steno, &["response"], &[(4, "thought")]);
    check(&steno, &["größe"], &[(4, "answer")]);
    check(&steno, &["本語"], &[(4, "answer")]);
    check(&steno, &["needle"], &[(6, "output")]);
    check(&steno, &["needl*"], &[(6, "output")]);
    check(&steno, &["\"needle in\""], &[(6, "output")]);
    check(&steno, &["\"needle haystack\""], &[]);
    check(&steno, &["/l.ft == /"], &[(6, "output")]);
    check(&steno, &["--exact", "`left == right`"], &[(6, "output")]);
    check(&steno, &["--exact", "`LEFT"], &[]);
    check(&steno, &["nothing"], &[]);
}

#[test]
fn errors_outside_of_calls_are_found_and_are_failures() {
    let steno = filled();
    let step = |kind: &str, name: &str, error: &str| {
        json!({ "type": "step.completed", "path": "turn-0001",
            "payload": { "name": name, "kind": kind, "error": error } })
    };
    let text = "API Error: 400 the request is bad";
    let overload = "529 Scripted overload";
    steno.recorded(
        RUN,
        &[step("retry", "api", overload), step("error", "unknown", text), step("turn", "turn-0001", text)],
    );
    check(&steno, &["API Error"], &[(8, "output")]);
    check(&steno, &["--exact", overload], &[(7, "output")]);
    check(&steno, &["/request is b.d/"], &[(8, "output")]);
    check(&steno, &["bad tool:a"], &[]);
    let failures = steno.run(&["failures", "--json"]).json();
    let found: Vec<_> = failures.iter().map(|row| (&row["seq"], &row["class"])).collect();
    assert_eq!(found, [(&json!(8), &json!("error")), (&json!(5), &json!("command"))]);
    assert_eq!((&failures[0]["line"], &failures[0]["tool"]), (&json!(text), &json!(null)));
    let said = steno.run(&["failures"]).out;
    assert!(said.contains(&format!("✗  {text}\n")) && said.matches(text).count() == 1, "{said}");
    assert_eq!(steno.run(&["ls", "--failed", "--json"]).json()[0]["failures"], 2);
    let shown = steno.run(&["show", RUN]).out;
    assert!(shown.contains("2 failed"), "{shown}");
}

#[test]
fn prompt_comes_before_a_shorter_command() {
    let found = hits(&filled(), &["login"]);
    assert_eq!(found, [(3, "prompt".to_owned()), (5, "command".to_owned())]);
}

#[test]
fn fields_and_filters_limit_the_search() {
    let steno = filled();
    check(&steno, &["login", "in:prompt"], &[(3, "prompt")]);
    check(&steno, &["tool:bash", "exit:!0", "login"], &[(5, "command")]);
    check(&steno, &["tool:bash", "exit:0", "login"], &[]);
    check(&steno, &["exit:101"], &[(5, "command"), (6, "output")]);
    check(
        &steno,
        &["login", "--project", "shop", "--agent", "claude", "--branch", "main", "--failed"],
        &[(3, "prompt"), (5, "command")],
    );
    for other in [["--project", "web"], ["--agent", "codex"], ["--branch", "dev"], ["--until", "2020-01-01"]]
    {
        check(&steno, &[&["login"], &other[..]].concat(), &[]);
        let searched = steno.run(&[&["search", "login", "--json"], &other[..]].concat()).json();
        assert_eq!((&searched[0]["sessions"], &searched[0]["prompts"]), (&json!(0), &json!(0)), "{other:?}");
    }
}

#[test]
fn handle_opens_the_hit() {
    let steno = filled();
    let said = steno.run(&["search", "needle", "--color", "never"]);
    assert_eq!(said.code, 0, "{said:?}");
    let line = said.out.lines().find(|line| line.contains("output")).unwrap();
    let handle = line.split_whitespace().next().unwrap();
    assert_eq!(handle, format!("{}:6", &RUN[..4]));
    let shown = steno.run(&["show", handle]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.out.contains("needle"), "{}", shown.out);
    assert!(!said.out.contains('\u{1b}'), "control characters are escaped: {}", said.out);
    let last = said.out.lines().last().unwrap();
    assert_eq!(
        last,
        "1 hit in 1 session; searched 5 texts of 1 session: prompts, answers, thoughts, commands, outputs"
    );
}

#[test]
fn wrong_queries_are_explained() {
    let steno = filled();
    for (query, why) in [
        ("!!", "no word to look for"),
        ("\"open", "not closed"),
        ("in:dream x", "not a kind of text"),
        ("/a(/", "regular expression"),
    ] {
        let said = steno.run(&["search", query]);
        assert_eq!(said.code, 2, "{query}: {said:?}");
        assert!(said.err.contains(why) && said.err.contains("hint:"), "{query}: {}", said.err);
    }
    let said = steno.run(&["search", "x", "--since", "soon"]);
    assert!(said.code == 2 && said.err.contains("is not a time"), "{said:?}");
}

#[test]
fn search_without_a_hit_says_what_to_try() {
    let steno = filled();
    for (query, hint) in [
        (&["zebra"][..], "`--exact` finds any text"),
        (&["zebra OR giraffe"], "`-word` are searched as words"),
        (&["zebra -giraffe"], "`-word` are searched as words"),
        (&["zebra project:shop"], "`project:` was searched as text; the filter is `--project`"),
        (&["zebra", "since:7d"], "the filter is `--since`"),
    ] {
        let said = steno.run(&[&["search"], query].concat());
        assert!(said.code == 1 && said.err.contains(hint), "{query:?}: {said:?}");
    }
}

#[test]
fn new_events_are_found_and_forgotten_ones_are_gone() {
    let steno = filled();
    check(&steno, &["zebra"], &[]);
    steno.recorded(
        RUN,
        &[json!({ "type": "message.user", "path": "turn-0001", "payload": { "role": "user",
            "blocks": [{ "type": "text", "fidelity": "agent_emitted", "text": "A zebra zq7secret." }] } })],
    );
    check(&steno, &["zebra"], &[(7, "prompt")]);
    let has = |text: &str| {
        ["index.db", "index.db-wal"].iter().any(|name| {
            let bytes = fs::read(steno.store().join(name)).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    };
    // The beginning of a term that the one before it has too is not stored again.
    assert!(has("7secret"), "the word is in the index");
    assert_eq!(steno.run(&["forget", RUN, "--yes"]).code, 0);
    assert!(!has("7secret") && !has("zebra"), "and not any more");
    steno
        .recorded(&id(7), &[json!({ "type": "run.started", "payload": { "name": "x", "kind": "session" } })]);
    check(&steno, &["zebra"], &[]);
}

/// Deletes the transcript behind the back of the index, as a `forget` that was killed would.
#[test]
fn words_of_a_deleted_run_leave_the_index_with_the_next_search() {
    let steno = filled();
    check(&steno, &["login"], &[(3, "prompt"), (5, "command")]);
    steno
        .recorded(&id(7), &[json!({ "type": "run.started", "payload": { "name": "x", "kind": "session" } })]);
    fs::remove_file(steno.transcript(RUN)).unwrap();
    check(&steno, &["login"], &[]);
    for name in ["index.db", "index.db-wal"] {
        let bytes = fs::read(steno.store().join(name)).unwrap_or_default();
        assert!(!bytes.windows(5).any(|window| window == b"login"), "{name}");
    }
}

#[test]
fn lost_or_damaged_index_is_made_again() {
    let steno = filled();
    let index = steno.store().join("index.db");
    let want = [(3, "prompt"), (5, "command")];
    check(&steno, &["login"], &want);
    let whole = fs::read(&index).unwrap();
    let damages: [(&str, Vec<u8>); 5] = [
        ("empty", Vec::new()),
        ("no database", b"this is not a database".repeat(400)),
        ("cut", whole[..whole.len() / 2].to_vec()),
        ("zeros inside", {
            let mut bytes = whole.clone();
            bytes[4096..].fill(0);
            bytes
        }),
        ("another version", {
            let mut bytes = whole.clone();
            // The place of `user_version` in the header of SQLite's format.
            bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
            bytes
        }),
    ];
    for (what, bytes) in damages {
        for beside in ["index.db-wal", "index.db-shm"] {
            let _ = fs::remove_file(steno.store().join(beside));
        }
        fs::write(&index, bytes).unwrap();
        check(&steno, &["login"], &want);
        assert!(fs::read(&index).unwrap().starts_with(b"SQLite format 3"), "{what}");
    }
    fs::remove_file(&index).unwrap();
    check(&steno, &["login"], &want);
}

#[test]
fn many_searches_at_once_give_the_same_answer() {
    let steno = filled();
    let want = hits(&steno, &["login"]);
    fs::remove_file(steno.store().join("index.db")).unwrap();
    std::thread::scope(|scope| {
        let searches: Vec<_> = (0..4).map(|_| scope.spawn(|| hits(&steno, &["login"]))).collect();
        for search in searches {
            assert_eq!(search.join().unwrap(), want);
        }
    });
}

#[test]
fn output_fits_a_budget() {
    let steno = filled();
    let said = steno.run(&["search", "login", "--budget", "40", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let objects = said.json();
    assert_eq!(objects.last().unwrap()["type"], "searched");
    assert_eq!(objects.last().unwrap()["hits"], 2);
    assert!(objects.len() < 3, "{}", said.out);
}

#[test]
fn search_with_a_budget_names_how_to_read_on() {
    let steno = filled();
    let begin = json!({ "type": "run.started", "payload": { "name": "codex", "kind": "session" } });
    let prompt = |number: u8| {
        json!({ "type": "message.user", "path": "turn-0001", "payload": { "role": "user",
            "blocks": [{ "type": "text", "fidelity": "agent_emitted", "text": format!("pencil number {number}") }] } })
    };
    for number in 10..16 {
        steno.recorded(&id(number), &[begin.clone(), prompt(number)]);
    }
    let (mut skip, mut found) = (0, Vec::new());
    while found.len() < 6 {
        let skipped = skip.to_string();
        let said = steno.run(&["search", "pencil", "--budget", "400", "--skip", &skipped, "--json"]);
        assert!(said.out.len() <= 400 * 4, "{said:?}");
        let mut objects = said.json();
        let searched = objects.pop().unwrap();
        found.extend(objects);
        let Some(next) = searched["next_skip"].as_u64() else { break };
        assert!(next > skip, "{searched}");
        skip = next;
    }
    let runs: std::collections::BTreeSet<_> = found.iter().map(|hit| hit["run_id"].to_string()).collect();
    assert_eq!((found.len(), runs.len()), (6, 6), "{found:?}");
    let limited = steno.run(&["search", "pencil", "--limit", "2"]).out;
    assert!(limited.contains("6 hits in 6 sessions, 2 shown") && limited.contains("`--skip 2`"), "{limited}");
    let last = steno.run(&["search", "pencil", "--limit", "2", "--skip", "4"]).out;
    assert!(last.contains("2 shown") && !last.contains("--skip"), "{last}");
    let small = steno.run(&["search", "pencil", "--budget", "80"]).out;
    assert!(small.contains("1 shown") && small.contains("`--skip 1`"), "{small}");
    let beyond = steno.run(&["search", "pencil", "--skip", "6"]);
    assert!(
        beyond.code == 1 && beyond.err.contains("6 sessions found, and all of them left out"),
        "{beyond:?}"
    );
}

#[test]
fn last_line_tells_what_damage_hides() {
    let steno = filled();
    let message = |text: &str| {
        json!({ "type": "message.user", "path": "turn-0001", "payload": { "role": "user",
        "blocks": [{ "type": "text", "fidelity": "agent_emitted", "text": text }] } })
    };
    let begin = json!({ "type": "run.started", "payload": { "name": "codex", "kind": "session" } });
    let other = id(7);
    steno.recorded(&other, &[begin, message("login one"), message("login two"), message("login three")]);
    let searched = |args: &[&str]| {
        let said = steno.run(&[&["search", "--json"], args].concat());
        let report = said.json().pop().unwrap();
        (report["damaged_runs"].clone(), report["prompts"].clone())
    };
    assert_eq!(searched(&["login"]), (json!(0), json!(4)));
    assert!(!steno.run(&["search", "login"]).out.contains("damage"));
    let text = steno.text(&other);
    fs::write(steno.transcript(&other), text.replace("login two", "login\u{0}two")).unwrap();
    // What follows the damage is not known, and the last line says so.
    assert_eq!(searched(&["login"]), (json!(1), json!(2)));
    assert_eq!(searched(&["login", "--project", "shop"]), (json!(0), json!(1)));
    let want = "; 1 run searched only up to the damage (`steno verify` says where)";
    let said = steno.run(&["search", "login", "--limit", "0", "--hits", "0"]);
    assert!(said.out.trim_end().ends_with(want), "{said:?}");
    let said = steno.run(&["search", "three"]);
    assert!(said.code == 1 && said.err.contains(want), "{said:?}");
}
