//! `steno usage`: counts tokens, and marks lower bounds.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use steno_testkit::{needs, shared_dir};

use crate::agents_files::{line, lines, put, session, session_with_subagent, text};
use crate::kit::{RUN, Steno};

/// Captures with the output tokens of each session, and whether these are all that there were.
const CAPTURES: [(&str, &[(u64, bool)]); 7] = [
    ("2.1.197/main", &[(857, true)]),
    ("2.1.325/main", &[(857, true)]),
    ("2.1.325/denied", &[(857, true)]),
    ("2.1.325/control", &[(1026, true)]),
    ("2.1.325/err400", &[(35, true)]),
    ("2.1.325/resume", &[(963, true)]),
    // The responses that made the summary are on record nowhere; the fork's own are.
    ("2.1.325/compact", &[(963, false), (56, true)]),
];

#[test]
fn session_with_final_counts_is_exact() {
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
fn incomplete_file_is_a_lower_bound() {
    let steno = Steno::new();
    let whole = text(&session());
    put(&steno, "whole.jsonl", &whole);
    let said = steno.run(&["usage", "whole.jsonl", "--json"]);
    assert!(said.out.contains(r#""exact":true"#) && said.err.is_empty(), "{said:?}");
    let torn = format!("{whole}{{\"type\":\"assis");
    let broken = whole.replacen('\n', "\n{\"type\":\n", 1);
    for (name, text, words) in
        [("torn.jsonl", torn, "not a complete record"), ("broken.jsonl", broken, "could not be parsed")]
    {
        put(&steno, name, text);
        let said = steno.run(&["usage", name, "--json"]);
        assert!(said.out.contains(r#""exact":false"#) && said.err.contains(words), "{name}: {said:?}");
    }
}

#[test]
fn stream_and_its_copies_count_once() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let steno = Steno::new();
    for name in [
        "codex/0.166.0/app_server/duplex.jsonl",
        "codex/0.166.0/exec_main/stream.ndjson",
        "claude/2.1.325/main/stream.ndjson",
    ] {
        let file = shared.join("captures").join(name);
        let once = steno.run(&["usage", file.to_str().unwrap(), "--by", "session", "--json"]).out;
        let copy = put(&steno, "copy.ndjson", fs::read(&file).unwrap());
        let both = steno.run(&["usage", file.to_str().unwrap(), &copy, "--by", "session", "--json"]).out;
        assert_eq!(both, once, "{name}");
    }
}

#[test]
fn repeated_group_counts_once() {
    let steno = Steno::new();
    put(&steno, "s.jsonl", text(&session()));
    let once = steno.run(&["usage", "s.jsonl", "--by", "day"]).out;
    assert_eq!(steno.run(&["usage", "s.jsonl", "--by", "day,day"]).out, once);
}

const OTHER: &str = "660e8400-e29b-41d4-a716-446655440000";

/// A record of a response with ten output tokens.
fn response(number: u32, session: &str, id: &str) -> Value {
    line(
        number,
        json!({"type": "assistant", "sessionId": session, "cwd": "/srv/shop", "message": {"id": id,
            "model": "claude-x", "role": "assistant", "content": [{"type": "text", "text": id}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 10}}}),
    )
}

fn home_file(session: &str) -> String {
    format!(".claude/projects/-srv-shop/{session}.jsonl")
}

/// A home with two sessions: one with two responses, one with another. All of it is archived.
fn archived() -> Steno {
    let steno = Steno::new();
    put(&steno, &home_file(RUN), text(&[response(1, RUN, "m1"), response(2, RUN, "m2")]));
    put(&steno, &home_file(OTHER), text(&[response(3, OTHER, "m3")]));
    assert_eq!(steno.run(&["import"]).code, 0);
    steno
}

fn append(steno: &Steno, name: &str, record: &Value) {
    let path = steno.dir.path().join(name);
    let before = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{before}{record}\n")).unwrap();
}

/// Checks the number of responses and the message about their sources.
#[track_caller]
fn check(steno: &Steno, args: &[&str], responses: u64, words: &str) {
    let args: Vec<&str> = ["usage", "--by", "provider", "--json"].iter().chain(args).copied().collect();
    let said = steno.run(&args);
    let rows = lines(&said);
    let [row] = &rows[..] else { panic!("{said:?}") };
    let found = (row["responses"].as_u64(), row["output_tokens"].as_u64());
    assert_eq!(found, (Some(responses), Some(responses * 10)), "{said:?}");
    assert!(said.code == 0 && said.err.contains(words), "{said:?}");
}

#[test]
fn deleted_session_is_still_counted() {
    let steno = archived();
    check(&steno, &[], 3, "read 2 runs in the store\n");
    fs::remove_file(steno.dir.path().join(home_file(RUN))).unwrap();
    check(&steno, &[], 3, "read 2 runs in the store\n");
    check(&steno, &["--live"], 1, "read only the agents' files, without deleted sessions");
    fs::remove_file(steno.dir.path().join(home_file(OTHER))).unwrap();
    check(&steno, &[], 3, "read 2 runs in the store\n");
}

#[test]
fn filters_are_part_of_what_was_read() {
    let steno = archived();
    let err = |args: &[&str]| steno.run(&[&["usage"], args].concat()).err;
    assert_eq!(err(&[]), "read 2 runs in the store\n");
    assert_eq!(err(&["--agent", "claude"]), "read 2 runs in the store; 2 sessions match the filters\n");
    assert!(
        err(&["--agent", "codex"]).starts_with("read 2 runs in the store; 0 sessions match the filters\n")
    );
}

#[test]
fn unarchived_files_are_counted_once() {
    let steno = archived();
    // A response continues, another one is added, and a new session begins.
    append(&steno, &home_file(RUN), &response(4, RUN, "m2"));
    append(&steno, &home_file(RUN), &response(5, RUN, "m4"));
    put(&steno, &home_file("770e8400-e29b-41d4-a716-446655440000"), text(&[response(6, OTHER, "m5")]));
    let both = "read 2 runs in the store and 2 files not archived yet\n";
    check(&steno, &[], 5, both);
    assert_eq!(steno.run(&["import"]).code, 0);
    check(&steno, &[], 5, "read 3 runs in the store\n");
    // A file that is rewritten takes nothing back.
    put(&steno, &home_file(OTHER), text(&[response(7, OTHER, "m6")]));
    check(&steno, &[], 6, "1 file not archived yet");
    // One that was imported by its path went on too.
    put(&steno, "elsewhere/s.jsonl", text(&[response(8, RUN, "m7")]));
    check(&steno, &[], 6, "1 file not archived yet");
    assert_eq!(steno.run(&["import", "elsewhere/s.jsonl"]).code, 0);
    check(&steno, &[], 7, "1 file not archived yet");
    append(&steno, "elsewhere/s.jsonl", &response(9, RUN, "m8"));
    check(&steno, &[], 8, "2 files not archived yet");
}

#[test]
fn forgotten_and_excluded_sessions_are_not_counted() {
    let steno = archived();
    assert_eq!(steno.run(&["forget", RUN, "--yes"]).code, 0);
    assert!(steno.dir.path().join(home_file(RUN)).exists());
    check(&steno, &[], 1, "read 1 run in the store\n");
    append(&steno, &home_file(RUN), &response(4, RUN, "m4"));
    check(&steno, &[], 1, "read 1 run in the store\n");
    let mut secret = response(5, "880e8400-e29b-41d4-a716-446655440000", "m5");
    secret["cwd"] = json!("/srv/secret");
    put(&steno, ".claude/projects/-srv-secret/880e8400-e29b-41d4-a716-446655440000.jsonl", text(&[secret]));
    check(&steno, &[], 2, "1 file not archived yet");
    put(&steno, "steno.toml", "exclude_projects = [\"/srv/secret\"]\n");
    check(&steno, &["--config", "steno.toml"], 1, "read 1 run in the store\n");
}

#[test]
fn copies_checkpoints_and_forks_count_once_in_the_store() {
    let steno = archived();
    let whole = [response(1, RUN, "m1"), response(2, RUN, "m2")];
    put(&steno, "backup/copy.jsonl", text(&whole));
    put(&steno, "backup/checkpoint.jsonl", text(&whole[..1]));
    // A fork repeats the responses of its origin under its own name, and continues.
    let fork = "990e8400-e29b-41d4-a716-446655440000";
    let forked: Vec<Value> = [(1, "m1"), (2, "m2"), (9, "m9")]
        .map(|(number, id)| {
            let mut record = response(number, fork, id);
            record["forkedFrom"] = json!({"sessionId": RUN, "messageUuid": record["uuid"]});
            record
        })
        .to_vec();
    put(&steno, &home_file(fork), text(&forked));
    check(&steno, &[], 4, "1 file not archived yet");
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(steno.run(&["import", "backup"]).code, 0);
    check(&steno, &[], 4, "in the store\n");
}

#[test]
fn without_a_store_the_homes_are_read() {
    let steno = Steno::new();
    put(&steno, &home_file(RUN), text(&[response(1, RUN, "m1")]));
    check(&steno, &[], 1, "there is no store at");
    assert!(!steno.store().exists());
    // A store that has archived nothing has nothing of it either.
    steno.recorded(OTHER, &[json!({"type": "run.started", "payload": null})]);
    check(&steno, &[], 1, "read 1 run in the store and 1 file not archived yet\n");
}

#[test]
fn unreadable_record_is_a_lower_bound_in_the_store_too() {
    let whole = text(&session());
    let broken = whole.replacen('\n', "\n{\"type\":\n", 1);
    let torn = format!("{whole}{{\"type\":\"assis");
    let unfinished = whole.trim_end().to_owned();
    for (text, is_exact) in [(&whole, true), (&broken, false), (&torn, false), (&unfinished, true)] {
        let steno = Steno::new();
        put(&steno, &home_file(RUN), text);
        assert_eq!(steno.run(&["import"]).code, 0);
        fs::remove_file(steno.dir.path().join(home_file(RUN))).unwrap();
        let said = steno.run(&["usage", "--json"]);
        assert_eq!(lines(&said)[0]["exact"], json!(is_exact), "{said:?}");
    }
}

#[test]
fn damaged_run_is_named_and_others_are_counted() {
    let steno = archived();
    let path: PathBuf = steno.transcript(OTHER);
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("{\"seq\":1,", "{\"seq\":7,")).unwrap();
    let said = steno.run(&["usage", "--by", "session", "--json"]);
    assert!(said.code == 3 && said.err.contains(OTHER) && said.err.contains("1 of 2 runs"), "{said:?}");
    let rows = lines(&said);
    assert_eq!((rows.len(), &rows[0]["session"], &rows[0]["responses"]), (1, &json!(RUN), &json!(2)));
}

/// A record of a response of a model, with input, output, and tokens written to caches, of which so many for an hour.
fn answer(number: u32, model: &str, [input, output, written, hour]: [u64; 4]) -> Value {
    line(
        number,
        json!({"type": "assistant", "sessionId": RUN, "cwd": "/srv/shop", "message": {"id": format!("m{number}"),
            "model": model, "role": "assistant", "content": [{"type": "text", "text": "Yes."}],
            "stop_reason": "end_turn", "usage": {"input_tokens": input, "output_tokens": output,
            "cache_creation_input_tokens": written, "cache_creation": {"ephemeral_1h_input_tokens": hour}}}}),
    )
}

#[test]
fn cost_is_that_of_the_list_or_of_the_user() {
    let steno = Steno::new();
    // 4 dollars a million for input, 20 for output, 5 and 8 for what is written to a cache.
    let mut records = session();
    records.push(answer(21, "claude-opus-5-5", [1_000, 2_000, 3_000, 1_000]));
    records.push(answer(22, "house-model", [1_000_000, 0, 0, 0]));
    put(&steno, "s.jsonl", text(&records));
    let by_model = |row: &str| {
        let said = steno.run(&["usage", "s.jsonl", "--by", "model", "--json"]);
        lines(&said).into_iter().find(|found| found["model"] == row).unwrap()
    };
    let row = by_model("claude-opus-5-5");
    assert_eq!((&row["cost_usd"], &row["cost_exact"]), (&json!(0.062), &json!(true)), "{row}");
    assert_eq!(row["cache_write_1h_tokens"], 1_000);
    let row = by_model("house-model");
    assert_eq!((&row["cost_usd"], &row["unpriced_models"]), (&Value::Null, &json!(["house-model"])));
    let said = steno.run(&["usage", "s.jsonl", "--by", "model"]);
    assert!(said.out.contains("no price: ") && said.out.contains("`house-model`"), "{said:?}");
    put(&steno, ".config/steno/config.toml", "[prices.\"house-model\"]\ninput = 0.125\noutput = 1\n");
    assert_eq!(by_model("house-model")["cost_usd"], json!(0.125));
}

#[test]
fn file_of_a_session_is_counted_with_its_subagents() {
    let steno = Steno::new();
    session_with_subagent(&steno);
    // Responses of its own.
    let inner = format!("p/{RUN}/subagents/agent-a1.jsonl");
    let text = fs::read_to_string(steno.dir.path().join(&inner)).unwrap();
    put(&steno, &inner, text.replace("\"id\":\"", "\"id\":\"own-"));
    let of = |path: &str| lines(&steno.run(&["usage", path, "--by", "agent", "--json"]))[0].clone();
    let whole = of("p");
    assert_eq!(of(&format!("p/{RUN}.jsonl")), whole);
    assert!(whole["total_tokens"].as_u64() > of(&format!("p/{RUN}/subagents"))["total_tokens"].as_u64());
}

/// A directory of the same name has subagents only if the file is a session of the same agent.
#[test]
fn directory_beside_another_file_is_not_counted() {
    let steno = Steno::new();
    session_with_subagent(&steno);
    put(&steno, "p.jsonl", "{\"x\":1}\n");
    let said = steno.run(&["usage", "p.jsonl", "--json"]);
    assert!(said.code != 0 && said.out.is_empty(), "{said:?}");
    // Beside a session, nothing but its subagents.
    let other = text(&session()).replace(RUN, "660e8400-e29b-41d4-a716-446655440000").replace("m1", "m2");
    put(&steno, "q/other.jsonl", other);
    let alone = steno.run(&["usage", "q/other.jsonl", "--json"]);
    put(&steno, &format!("q/other/{RUN}.jsonl"), text(&session()));
    assert_eq!(steno.run(&["usage", "q/other.jsonl", "--json"]).out, alone.out);
    assert!(alone.code == 0 && !alone.out.is_empty(), "{alone:?}");
}

#[test]
fn missing_path_is_explained() {
    let said = Steno::new().run(&["usage", "550e"]);
    assert!(said.code == 3 && said.err.contains("`steno usage --by session`"), "{said:?}");
}

#[test]
fn own_prices_are_named() {
    let steno = Steno::new();
    put(&steno, "s.jsonl", text(&session()));
    assert!(steno.run(&["usage", "s.jsonl"]).out.trim_end().ends_with("cost at list prices of 2026-11-16"));
    put(&steno, ".config/steno/config.toml", "[prices.\"house-model\"]\ninput = 0.125\noutput = 1\n");
    assert!(steno.run(&["usage", "s.jsonl"]).out.trim_end().ends_with(", and at your own prices"));
}

#[test]
fn usage_is_limited_to_a_time() {
    let steno = Steno::new();
    put(&steno, "s.jsonl", text(&session()));
    let all = steno.run(&["usage", "s.jsonl", "--utc", "--json"]);
    let day = lines(&all)[0]["day"].as_str().unwrap().to_owned();
    assert_eq!(steno.run(&["usage", "s.jsonl", "--utc", "--json", "--since", &day]).out, all.out);
    let said = steno.run(&["usage", "s.jsonl", "--until", "2020-01-01"]);
    assert!(
        said.code == 1 && said.err.contains("no usage found at that time") && said.err.contains("`--until`"),
        "{said:?}"
    );
    let said = steno.run(&["usage", "s.jsonl", "--since", "soon"]);
    assert!(said.code == 2 && said.err.contains("`soon` is not a time"), "{said:?}");
}

#[test]
fn usage_is_limited_to_some_sessions_and_models() {
    let steno = archived();
    let third = "770e8400-e29b-41d4-a716-446655440000";
    let prompt = json!({"cwd": "/srv/blog", "gitBranch": "draft", "sessionId": third, "type": "user",
        "message": {"role": "user", "content": "Write it."}});
    put(&steno, &home_file(third), text(&[line(4, prompt), response(5, third, "m4")]));
    assert_eq!(steno.run(&["import"]).code, 0);
    check(&steno, &["--project", "blog"], 1, "");
    check(&steno, &["--project", "SRV/shop"], 3, "");
    check(&steno, &["--branch", "draft"], 1, "");
    check(&steno, &["--agent", "claude", "--model", "CLAUDE-x"], 4, "");
    let said = steno.run(&["usage", "--agent", "codex"]);
    assert!(said.code == 1 && said.err.contains("matches the filters"), "{said:?}");

    let said = steno.run(&["usage", "--by", "session", "--json", "--project", "blog"]);
    assert_eq!(
        (&lines(&said)[0]["title"], &lines(&said)[0]["session"]),
        (&json!("Write it."), &json!(third))
    );
    let said = steno.run(&["usage", "--by", "session"]);
    assert!(said.out.contains("  Write it.\n"), "{said:?}");
}

#[test]
fn statusline_is_one_line_whatever_comes() {
    let steno = Steno::new();
    let session =
        br#"{"model":{"id":"claude-opus-5-5","display_name":"Opus"},"cost":{"total_cost_usd":1.25}}"#;
    let said = steno.run_with(&["usage", "--statusline"], session);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "Opus \u{b7} $1.25 session \u{b7} $0.00 today\n"),
        "{said:?}"
    );
    for odd in ["", "{", "[]", "null"] {
        let said = steno.run_with(&["usage", "--statusline"], odd.as_bytes());
        assert_eq!((said.code, said.out.as_str()), (0, "$0.00 today\n"), "{odd}: {said:?}");
    }
}
