//! `steno receipt`: output, errors, and that it changes nothing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use steno_testkit::{needs, places, tool};

use crate::kit::{CommandOutput, Steno, id, run};

const SESSION: &str = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../server/tests/fixtures/receipts")
}

/// A store with the session of the fixtures.
fn store() -> Steno {
    let steno = Steno::new();
    let session = fs::read_to_string(fixtures().join("session.jsonl")).unwrap();
    let lines = session.lines().map(|line| format!("{{{}\n", line.split_once(',').unwrap().1));
    let input = lines.collect::<Vec<_>>().concat();
    let said = steno.run_with(&["record", "--run", SESSION], input.as_bytes());
    assert_eq!((said.code, said.out.lines().count()), (0, 32), "{said:?}");
    steno
}

#[track_caller]
fn receipt(steno: &Steno, args: &[&str]) -> CommandOutput {
    let before = steno.look();
    let said = steno.run(&[&["receipt"], args].concat());
    steno.assert_unchanged(&before, &format!("receipt {args:?}"));
    said
}

fn export(steno: &Steno, turn: &str, more: &[&str]) -> CommandOutput {
    receipt(steno, &[&["export", "--thread", SESSION, "--turn", turn], more].concat())
}

#[test]
fn receipts_are_exported_as_json_and_as_text() {
    let steno = store();
    let said = export(&steno, "turn-0001", &["--integrity"]);
    assert_eq!(said.code, 0, "{said:?}");
    // The lines have their fields in another order than those of the fixture, and so other hashes.
    let expected = fs::read_to_string(fixtures().join("expected/run-completed.json")).unwrap();
    let without_integrity = |text: &str| text.split("\"integrity\"").next().unwrap().to_owned();
    assert_eq!(without_integrity(&said.out), without_integrity(&expected));
    assert_eq!(export(&steno, "turn_a", &["--integrity"]).out, said.out, "by the provider's name");
    let text = export(&steno, "turn-0003", &["--format", "text"]).out;
    for line in [
        "approvals       2 required, 0 allowed, 2 denied",
        "turn            turn-0003  completed",
        "claims          local_receipt_only, not_safety_certification, not_provider_compatibility_certification",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let records = fixtures().join("records");
    let said = receipt(
        &steno,
        &["export", "--thread", "thr_1", "--turn", "turn_2", "--records", records.to_str().unwrap()],
    );
    assert_eq!(said.out, fs::read_to_string(fixtures().join("expected/records-failed.json")).unwrap());
}

#[test]
fn turns_are_listed() {
    let steno = store();
    let said = receipt(&steno, &["ls"]);
    let rows: Vec<&str> = said.out.lines().collect();
    assert_eq!(rows.len(), 3, "{said:?}");
    assert!(
        rows[1].starts_with(&format!("{SESSION}  turn-0002  failed       2026-06-02T01:00:20Z")),
        "{rows:?}"
    );
    let json = receipt(&steno, &["ls", "--thread", &SESSION[..8], "--json"]).json();
    assert_eq!((json.len(), &json[2]["provider_id"]), (3, &"turn_c".into()));
    let records = fixtures().join("records");
    let said = receipt(&steno, &["ls", "--records", records.to_str().unwrap()]);
    assert_eq!(said.out.lines().count(), 3, "{said:?}");
    assert_eq!(receipt(&Steno::new(), &["ls"]).code, 1);
}

#[test]
fn newest_session_is_first_and_long_prompts_are_cut() {
    let steno = Steno::new();
    for (run, day, prompt) in [(id(1), "2026-06-02", "Mend it."), (id(2), "2026-06-03", &"why? ".repeat(30))]
    {
        let time = format!("{day}T01:00:00Z");
        let block = json!({"type": "text", "text": prompt, "fidelity": "agent_emitted"});
        let event = |kind: &str, path: &str, payload: Value| json!({"type": kind, "path": path, "timestamp": time, "payload": payload});
        steno.recorded(
            &run,
            &[
                event("run.started", "", json!({"name": "codex", "kind": "session"})),
                event("step.started", "turn-0001", json!({"name": "turn-0001", "kind": "turn"})),
                event("message.user", "turn-0001", json!({"role": "user", "blocks": [block]})),
            ],
        );
    }
    let row = |run: &str, day: &str, prompt: &str| {
        format!("{run}  turn-0001  in_progress  {day}T01:00:00Z      {prompt}\n")
    };
    let want = row(&id(2), "2026-06-03", &format!("{}…", "why? ".repeat(20)))
        + &row(&id(1), "2026-06-02", "Mend it.");
    assert_eq!(receipt(&steno, &["ls"]).out, want);
}

#[test]
fn missing_thread_or_turn_is_named() {
    let steno = store();
    let said = export(&steno, "turn-0009", &[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("has no turn `turn-0009`") && said.err.contains("`turn-0001`"), "{said:?}");
    let records = fixtures().join("records");
    let said = receipt(
        &steno,
        &["export", "--thread", "thr_2", "--turn", "turn_1", "--records", records.to_str().unwrap()],
    );
    assert_eq!(said.code, 1);
    assert!(said.err.contains("turn `turn_1` belongs to thread `thr_1`, not to `thr_2`"), "{said:?}");
    let said = receipt(&steno, &["export", "--thread", "x", "--turn", "y", "--records", "nowhere"]);
    assert_eq!(said.code, 3, "{said:?}");
    for (text, why) in [("{}", "schema_id"), ("not json", "not a receipt"), ("\u{1b}[2J", "not a receipt")] {
        let said = steno.run_with(&["receipt", "verify", "-"], text.as_bytes());
        assert!(said.code == 1 && said.err.contains(why) && !said.err.contains('\u{1b}'), "{said:?}");
    }
}

#[test]
fn receipts_are_verified_against_every_source() {
    let steno = store();
    let path = |name: &str| steno.dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("receipt"), export(&steno, "turn-0002", &["--integrity"]).out).unwrap();
    let lines = receipt(&steno, &["lines", "--thread", SESSION, "--turn", "turn-0002"]).out;
    assert_eq!(lines.lines().count(), 9, "its own eight lines and the run's beginning");
    fs::write(path("lines"), lines).unwrap();
    let transcript = steno.transcript(SESSION).to_str().unwrap().to_owned();
    for args in [&[][..], &["--transcript", &transcript], &["--lines", &path("lines")]] {
        let said = receipt(&steno, &[&["verify", &path("receipt")], args].concat());
        assert!(said.code == 0 && said.out.starts_with("the receipt holds\n"), "{args:?}: {said:?}");
        assert!(said.out.contains("not proven  that the agent's own records are true"), "{said:?}");
    }
    let said = receipt(&steno, &["verify", &path("receipt"), "--json"]);
    let json = &said.json()[0];
    assert_eq!((said.code, &json["holds"], said.err.as_str()), (0, &json!(true), ""));
    assert_eq!(json["final"], true);
    assert_eq!(json["proven"][0], "every field follows from the run in the store");
    let changed = fs::read_to_string(path("receipt")).unwrap();
    let changed = changed.replace("\"command_execution_count\": 1", "\"command_execution_count\": 2");
    fs::write(path("receipt"), changed).unwrap();
    let said = receipt(&steno, &["verify", &path("receipt")]);
    assert_eq!(said.code, 1);
    let why = "`side_effect_boundary.command_execution_count` is 2 in the receipt and 1 in the record";
    assert_eq!((said.out, said.err), ("the receipt does not hold\n".to_owned(), format!("error: {why}\n")));
    let said = receipt(&steno, &["verify", &path("receipt"), "--json"]);
    assert_eq!((said.code, said.json()), (1, vec![json!({"holds": false, "error": why})]));
    assert_eq!(said.err, format!("error: {why}\n"), "whoever looks at a screen sees it too");
}

/// The store, and files that could be mistaken for a receipt or a session.
fn store_with_strange_files() -> Steno {
    let steno = store();
    let plain = export(&steno, "turn-0001", &[]).out;
    let files = [
        ("receipt", export(&steno, "turn-0001", &["--integrity"]).out),
        ("text", export(&steno, "turn-0001", &["--format", "text"]).out),
        ("other-run", plain.replace(SESSION, &id(9))),
        ("layout", plain.replace("  ", " ")),
        ("plain", plain),
        ("empty", String::new()),
    ];
    let at = |name: &str| steno.dir.path().join(name);
    for (name, text) in files {
        fs::write(at(name), text).unwrap();
    }
    fs::write(at("bytes"), b"\xff\x00\n").unwrap();
    fs::create_dir(at("dir")).unwrap();
    places::make_pipe(at("pipe"));
    fs::copy(places::workspace_root().join("docs/examples/claude-session.jsonl"), at("agents.jsonl"))
        .unwrap();
    steno.recorded(&id(1), &[json!({"type": "run.started"})]);
    steno
}

/// Fails unless a command says why it refuses something, and gives a hint where one is wanted.
#[track_caller]
fn refused(steno: &Steno, args: &[&str], code: i32, why: &str, hint: &str) {
    let said = receipt(steno, args);
    let shown = said.err.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
    assert_eq!(said.code, code, "{args:?}: {said:?}");
    assert!(said.err.starts_with("error: ") && said.err.contains(why), "{args:?}: {said:?}");
    assert!(shown.contains(hint), "{args:?}: {said:?}");
}

const NEITHER: &str = "`bytes` is neither a transcript nor a supported agent's file";
const AGENTS: &str = "`agents.jsonl` is a session file of Claude Code, not a transcript";
const SHAPE: &str = "contains `threads`, `turns`, `items` and `events`";

#[test]
fn invalid_session_or_turn_is_refused_with_a_hint() {
    let steno = store_with_strange_files();
    let without_turns = id(1);
    let ls = "`steno receipt ls` lists the turns";
    for (thread, code, why, hint) in [
        (SESSION, 1, "has no turn `turn-0009`", "its turns are `turn-0001`, `turn-0002`, `turn-0003`"),
        (&without_turns, 1, "has no turn `turn-0009`", ls),
        ("9999", 1, "no session begins or ends with `9999`", "`steno ls` lists the sessions"),
        ("x", 2, "`x` is not a session", "`steno ls` lists the sessions"),
        ("dir", 2, "`dir` is a directory, not a transcript", "read an agent's directory"),
        ("agents.jsonl", 2, AGENTS, "`steno events agents.jsonl` shows it"),
        ("pipe", 3, "`pipe` is not a regular file", ""),
        ("empty", 1, "`empty` has no events", ""),
        ("bytes", 1, NEITHER, ""),
    ] {
        for command in ["export", "lines"] {
            refused(&steno, &[command, "--turn", "turn-0009", "--thread", thread], code, why, hint);
        }
        if !why.contains("turn-0009") {
            refused(&steno, &["ls", "--thread", thread], code, why, hint);
        }
    }
    let said = receipt(&steno, &["ls", "--thread", &without_turns]);
    assert!(said.code == 1 && said.err.starts_with("no turns found\nhint: without `--thread`"), "{said:?}");
    let records = fixtures().join("records").to_str().unwrap().to_owned();
    let of_records = |turn| ["export", "--records", &records, "--thread", "thr_1", "--turn", turn];
    let turns = "its turns are `turn_1`, `turn_2`, `turn_3`";
    refused(&steno, &of_records("turn_9"), 1, "has no turn `turn_9`", turns);
    for (dir, why) in [("nowhere", "`nowhere/turns`"), ("dir", "`dir/turns`"), ("empty", "`empty/turns`")] {
        refused(&steno, &["ls", "--records", dir], 3, why, SHAPE);
    }
}

#[test]
fn invalid_receipt_or_source_is_refused_with_a_hint() {
    let steno = store_with_strange_files();
    let records = fixtures().join("records").to_str().unwrap().to_owned();
    let (printed, lines) = ("`steno receipt export`", "`steno receipt lines` prints");
    for (args, code, why, hint) in [
        (&["dir"][..], 3, "`dir` is not a regular file", "`-` for stdin"),
        (&["pipe"], 3, "`pipe` is not a regular file", "`-` for stdin"),
        (&["nowhere"], 3, "cannot read `nowhere`", ""),
        (&["empty"], 1, "not a receipt: it is empty", printed),
        (&["bytes"], 1, "not a receipt: it is not text", printed),
        (&["text"], 1, "not a receipt: not JSON", printed),
        (&["layout"], 1, "the bytes differ", printed),
        (&["other-run"], 1, "no run 09090909", "check it without this store"),
        (&["receipt", "--transcript", "dir"], 2, "`dir` is a directory, not a transcript", ""),
        (&["receipt", "--transcript", "agents.jsonl"], 2, AGENTS, "`steno events agents.jsonl` shows it"),
        (&["receipt", "--transcript", "pipe"], 3, "`pipe` is not a regular file", ""),
        (&["receipt", "--transcript", "bytes"], 1, NEITHER, ""),
        (&["receipt", "--transcript", "empty"], 1, "`empty` has no events", ""),
        (&["receipt", "--lines", "empty"], 1, "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90:1 is missing", lines),
        (&["receipt", "--lines", "bytes"], 1, "line 1 is not an event", lines),
        (&["plain", "--lines", "empty"], 1, "has no `integrity`", "`steno receipt export --integrity`"),
        (&["receipt", "--records", "dir"], 3, "`dir/threads`", SHAPE),
        (&["receipt", "--records", &records], 1, "has no turn `turn-0001`", "with `--records DIR`"),
    ] {
        refused(&steno, &[&["verify"], args].concat(), code, why, hint);
    }
    let said = steno.run(&["--store", "elsewhere", "receipt", "verify", "receipt"]);
    assert!(said.code == 1 && said.err.contains("check it without this store"), "{said:?}");
}

/// A wrong receipt and a receipt that cannot be checked are different results.
#[test]
fn unchecked_receipt_is_not_reported_as_wrong() {
    let steno = store();
    let expected = |name: &str| fixtures().join("expected").join(name).to_str().unwrap().to_owned();
    fs::write(steno.dir.path().join("plain"), export(&steno, "turn-0001", &[]).out).unwrap();
    fs::write(steno.dir.path().join("bytes"), b"\xff\x00").unwrap();
    fs::write(steno.dir.path().join("empty"), "").unwrap();
    let turn = export(&steno, "turn-0001", &[]).out.replace("\"turn-0001\"", "\"turn-0009\"");
    fs::write(steno.dir.path().join("turn"), turn).unwrap();
    let run = export(&steno, "turn-0001", &[]).out.replace(SESSION, &id(9));
    fs::write(steno.dir.path().join("run"), run).unwrap();
    let of_records = expected("records-failed.json");
    let cases: [(&[&str], i32, Value); 9] = [
        (&["plain"], 0, json!(true)),
        (&["bytes"], 1, json!(false)),
        (&["empty"], 1, json!(false)),
        (&["turn"], 1, json!(false)),
        (&["run"], 1, Value::Null),
        (&["plain", "--lines", "empty"], 1, Value::Null),
        (&["plain", "--records", "."], 3, Value::Null),
        (&[&of_records], 1, Value::Null),
        (&["nowhere"], 3, Value::Null),
    ];
    for (args, code, holds) in cases {
        let said = receipt(&steno, &[&["verify", "--json"], args].concat());
        assert_eq!((said.code, said.json().len(), &said.json()[0]["holds"]), (code, 1, &holds), "{args:?}");
        assert_eq!(said.err.is_empty(), code == 0, "{args:?}: {said:?}");
        let said = receipt(&steno, &[&["verify"], args].concat());
        assert_eq!(said.out.contains("does not hold"), holds == json!(false), "{args:?}: {said:?}");
    }
    let said = steno.run_with(&["receipt", "verify", "-", "--lines", "-"], b"{}");
    assert!(
        said.code == 2 && said.err.contains("the receipt and its lines cannot both come from stdin"),
        "{said:?}"
    );
}

#[test]
fn receipt_and_its_lines_have_a_limit() {
    const INPUT_BYTES_MAX: u64 = 1024 * 1024 * 1024;
    let steno = store();
    fs::File::create(steno.dir.path().join("long")).unwrap().set_len(INPUT_BYTES_MAX + 1).unwrap();
    fs::write(steno.dir.path().join("receipt"), export(&steno, "turn-0001", &["--integrity"]).out).unwrap();
    for args in [&["verify", "long"][..], &["verify", "receipt", "--lines", "long"]] {
        let said = receipt(&steno, args);
        let why = format!("cannot read `long`: it has more than {INPUT_BYTES_MAX} bytes");
        assert!(said.code == 3 && said.err.contains(&why), "{args:?}: {said:?}");
    }
}

/// R93: an export opens no file for writing, creates no file, and uses no network.
#[test]
fn export_writes_nothing_under_strace() {
    needs!(tool("strace"), "strace shows what is opened");
    let steno = store();
    let trace = steno.dir.path().join("trace");
    let strace = |args: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=all", "-o", trace.to_str().unwrap()]);
        command.arg(env!("CARGO_BIN_EXE_steno")).arg("--store").arg(steno.store()).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(&trace).unwrap()
    };
    let changes = |trace: &str| {
        let is_change = |line: &&str| {
            let call = line.split_whitespace().nth(1).unwrap_or_default();
            let opens = call.starts_with("open")
                && ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| line.contains(flag));
            let makes = [
                "rename",
                "unlink",
                "mkdir",
                "link",
                "symlink",
                "truncate",
                "ftruncate",
                "chmod",
                "utimens",
                "socket",
                "connect",
            ];
            opens
                || makes.iter().any(|name| {
                    call.starts_with(&format!("{name}(")) || call.starts_with(&format!("{name}at"))
                })
        };
        trace.lines().filter(is_change).map(str::to_owned).collect::<Vec<_>>()
    };
    let found =
        changes(&strace(&["receipt", "export", "--thread", SESSION, "--turn", "turn-0001", "--integrity"]));
    assert_eq!(found, Vec::<String>::new());
    // A control: strace does see the files that a writing command opens.
    assert!(!changes(&strace(&["seal", SESSION])).is_empty());
}

/// How many times as much as something else a command may cost that is to cost about the same. Reading a session once
/// for each turn would cost thousands of times as much.
const SLACK: u64 = 10;

/// Returns the processor time that a command takes, in milliseconds and at least that of two ticks of the clock: the
/// least of three runs, since other tests share the processor and its caches.
#[track_caller]
fn cost(steno: &Steno, args: &[&str]) -> u64 {
    (0..3).map(|_| cost_of_one_run(steno, args)).min().unwrap()
}

#[track_caller]
fn cost_of_one_run(steno: &Steno, args: &[&str]) -> u64 {
    let said = run(steno.shell("\"$0\" \"$@\" > /dev/null && times", args), b"");
    // The shell's own times are on the first line, those of its children on the second: `0m1.234s 0m0.010s`.
    let time = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        let (seconds, fraction) = seconds.split_once(['.', ','])?;
        let ms: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
        Some(minutes.parse::<u64>().ok()? * 60_000 + seconds.parse::<u64>().ok()? * 1000 + ms)
    };
    let times: Option<Vec<u64>> =
        said.out.lines().nth(1).map(|line| line.split(' ').filter_map(time).collect());
    let times = times.filter(|times| times.len() == 2).unwrap_or_else(|| panic!("{args:?}: {said:?}"));
    times.iter().sum::<u64>().max(20)
}

/// Writes a transcript by hand with `n` turns, each at the given path.
fn long_session(steno: &Steno, turns: usize, path: impl Fn(usize) -> String) -> String {
    let mut lines = Vec::new();
    let mut event = |kind: &str, path: &str, payload: Value| {
        lines.push(
            json!({"seq": lines.len() + 1, "run_id": SESSION, "type": kind, "path": path, "iteration": 0,
            "timestamp": "2026-06-02T01:00:00Z", "payload": payload}),
        );
    };
    event("run.started", "", json!({"name": "x", "kind": "session"}));
    for turn in 0..turns {
        let path = path(turn);
        let step = json!({"name": path, "kind": "turn", "turn_id": format!("t{turn}")});
        let block = json!({"type": "text", "text": "Go on.", "fidelity": "agent_emitted"});
        event("step.started", &path, step.clone());
        event("message.user", &path, json!({"role": "user", "blocks": [block]}));
        event("step.completed", &path, step);
    }
    let lines = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
    let file = steno.dir.path().join("long.jsonl");
    fs::write(&file, lines).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn receipt_reads_a_long_session_once() {
    let steno = Steno::new();
    let check = |file: &str| {
        let pass = cost(&steno, &["tree", file]);
        for args in [&["ls", "--json"][..], &["export", "--turn", "t7"]] {
            let args = [&["receipt"], args, &["--thread", file]].concat();
            let found = cost(&steno, &args);
            assert!(found <= SLACK * pass, "{args:?} takes {found} ms, and `tree` {pass} ms");
        }
    };
    check(&long_session(&steno, 20_000, |turn| format!("turn-{turn:05}")));
    // As a step of a loop has it.
    check(&long_session(&steno, 4_000, |_| "turn".to_owned()));
}

#[test]
fn receipt_of_records_reads_each_items_file_once() {
    const ITEMS: usize = 400;
    let steno = Steno::new();
    let dir = steno.dir.path().join("records");
    let write = |name: &str, records: &[Value]| {
        fs::create_dir_all(dir.join(name)).unwrap();
        let lines = records.iter().map(|record| format!("{record}\n")).collect::<Vec<_>>().concat();
        fs::write(dir.join(name).join("all.jsonl"), lines).unwrap();
    };
    let turn = |id: &str, items: std::ops::Range<usize>| {
        let ids: Vec<String> = items.map(|item| format!("item_{item}")).collect();
        json!({"id": id, "thread_id": "thr_1", "status": "completed", "item_ids": ids})
    };
    let item = |turn: &str, number: usize| {
        json!({"id": format!("item_{number}"), "turn_id": turn, "kind": "command_execution", "status": "completed",
            "detail": "x".repeat(20_000)})
    };
    write("threads", &[json!({"id": "thr_1"})]);
    write("turns", &[turn("few", 0..1), turn("many", 1..ITEMS)]);
    write("items", &(0..ITEMS).map(|at| item(if at == 0 { "few" } else { "many" }, at)).collect::<Vec<_>>());
    write("events", &[]);
    let dir = dir.to_str().unwrap();
    let args = |turn| ["receipt", "export", "--thread", "thr_1", "--records", dir, "--turn", turn];
    let said = steno.run(&args("many"));
    assert!(said.out.contains("\"command_execution_count\": 399"), "{said:?}");
    let (few, many) = (cost(&steno, &args("few")), cost(&steno, &args("many")));
    assert!(many <= SLACK * few, "{many} ms for all items, and {few} ms for one");
}

/// The agent's own file and a connection that shows the questions are one session.
#[test]
fn receipt_of_two_runs_needs_both_transcripts() {
    const CONNECTION: &str = "11111111-0c5e-4d3b-9a57-6f2b8c4e1a90";
    let steno = Steno::new();
    let line = |kind: &str, path: &str, payload: Value| {
        json!({"type": kind, "path": path, "payload": payload, "session_run_id": SESSION}).to_string() + "\n"
    };
    let start = |channel: &str, carries: &[&str]| {
        let source = json!({"channel": channel, "carries": carries});
        line("run.started", "", json!({"name": "codex", "kind": "session", "source": source}))
    };
    let turn =
        line("step.started", "turn-0001", json!({"name": "turn-0001", "kind": "turn", "turn_id": "t"}));
    let end = line("step.completed", "turn-0001", json!({"name": "turn-0001", "kind": "turn"}));
    let call = json!({"name": "x", "call_id": "c", "input": {}, "output": null, "fidelity": "agent_emitted", "class": "command"});
    let call = line("tool.call", "turn-0001", call);
    let result = json!({"name": "x", "call_id": "c", "input": null, "output": "", "fidelity": "agent_emitted", "outcome": "ok"});
    let result = line("tool.result", "turn-0001", result);
    let approval = |kind: &str, result: Value| {
        let payload = json!({"name": "q", "kind": "approval", "tool_call_id": "c", "result": result});
        line(kind, "turn-0001.approval", payload)
    };
    let (asked, answered) =
        (approval("step.started", json!(null)), approval("step.completed", json!({"decision": "allowed"})));
    let own = [&start("disk", &["calls"]), &turn, &call, &result, &end].map(String::as_str).concat();
    let other = [&start("app-server", &["calls", "approvals"]), &turn, &call, &asked, &answered, &result];
    let other = other.map(String::as_str).concat();
    for (run, lines) in [(CONNECTION, other), (SESSION, own)] {
        assert_eq!(steno.run_with(&["record", "--run", run], lines.as_bytes()).code, 0);
    }
    let said = export(&steno, "turn-0001", &["--integrity"]);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(found["side_effect_boundary"]["approval_allowed_count"], 1);
    assert_eq!(found["tool_lineage"]["tool_call_count"], 1);
    let path = steno.dir.path().join("receipt").to_str().unwrap().to_owned();
    fs::write(&path, said.out).unwrap();
    let file = |run: &str| steno.transcript(run).to_str().unwrap().to_owned();
    let both = ["verify", &path, "--transcript", &file(SESSION), "--transcript", &file(CONNECTION)];
    let said = receipt(&steno, &both);
    assert!(said.code == 0 && said.out.starts_with("the receipt holds\n"), "{said:?}");
    let said = receipt(&steno, &["verify", &path, "--transcript", &file(SESSION), "--json"]);
    assert_eq!((said.code, &said.json()[0]["holds"]), (1, &json!(null)), "{said:?}");
    let turns = receipt(&steno, &["ls"]).out;
    assert_eq!(turns.lines().count(), 1, "each turn once: {turns}");
}
