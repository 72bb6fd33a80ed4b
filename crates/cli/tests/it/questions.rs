//! The questions that people have about their sessions, each with the command that answers it and what it prints to
//! stdout, over lifelike sessions at a fixed time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use steno_testkit::{golden, needs, places, shared_dir, tool};

use crate::agents_files::{put, session, text};
use crate::kit::{Steno, run};
use crate::lists::filled;

/// When the questions are asked.
const NOW: &str = "2026-11-16 10:00:00";

/// The session that takes minutes to read in a debug build.
const LONGEST: &str = "projects/-home-dev-work-shop/33333333-cccc-4ccc-8ccc-000000000001.jsonl";
/// The session that the agent deletes.
const DELETED: &str = "projects/-home-dev-work-shop/22222222-bbbb-4bbb-8bbb-000000000005.jsonl";

/// The name of the golden file, the question, and the arguments that answer it.
const QUESTIONS: [(&str, &str, &[&str]); 9] = [
    (
        "yesterday",
        "What did my agent do yesterday in a project?",
        &["ls", "--since", "yesterday", "--project", "shop"],
    ),
    ("where", "Where was the retry written?", &["search", "idempotency key"]),
    ("cost", "What did the last week cost?", &["usage", "--since", "7d"]),
    ("cost-by-project", "Which project cost what?", &["usage", "--by", "project", "--since", "7d"]),
    ("touched", "Which sessions touched a file?", &["ls", "--touched", "checkout.py"]),
    ("changes", "What was changed in a file?", &["changes", "checkout.py", "-n", "2"]),
    ("failures", "What failed?", &["failures", "--since", "2026-11-15"]),
    ("gone", "Was anything of mine deleted?", &["ls", "--gone"]),
    ("show", "Show me the latest session comfortably.", &["show", "last", "--no-pager"]),
];

/// When the questions about the sessions that are written by hand are asked. One of these sessions is open.
const NOW_BY_HAND: &str = "2026-06-10 08:00:30";

/// The file of a session that is written by hand, which the agent deletes.
const DELETED_BY_HAND: &str = ".claude/projects/-srv-tokenizer/550e8400-e29b-41d4-a716-446655440000.jsonl";

/// The same, and all other questions, about a few sessions that are written by hand.
const QUESTIONS_BY_HAND: [(&str, &[&str]); 23] = [
    (
        "What did my agent do yesterday in a project?",
        &["ls", "--since", "yesterday", "--until", "today", "--project", "web"],
    ),
    ("Where was the login bug fixed?", &["search", "login bug"]),
    ("What did this week cost?", &["usage", "--since", "7d"]),
    ("What does each day cost?", &["usage", "--by", "day"]),
    ("What does each week cost?", &["usage", "--by", "week"]),
    ("What does each month cost?", &["usage", "--by", "month"]),
    ("Which model cost what?", &["usage", "--by", "model"]),
    ("Which project cost what?", &["usage", "--by", "project"]),
    ("Which agent cost what?", &["usage", "--by", "agent"]),
    ("Which session cost what?", &["usage", "--by", "session"]),
    ("Which branch cost what?", &["usage", "--by", "branch"]),
    ("Which sessions touched a file?", &["ls", "--touched", "src/auth.rs"]),
    ("Which session changed which file?", &["changes"]),
    ("What failed?", &["failures"]),
    ("Which commands failed with an exit code?", &["search", "exit:101"]),
    ("Which sessions had failures?", &["ls", "--failed"]),
    ("Which sessions are live, and which wait for me?", &["ls", "--live"]),
    ("Was anything of mine deleted?", &["ls", "--gone"]),
    ("How do I get it back?", &["restore", "550e"]),
    ("Is it back?", &["ls", "--since", "2026-06-08", "--project", "tokenizer"]),
    ("Show me a session comfortably, and how to resume it.", &["show", "550e", "--no-pager"]),
    ("Show me the prompts and answers only.", &["show", "550e", "-t", "0", "--no-pager"]),
    ("What was the call that failed?", &["show", "0101:7", "-t", "1", "--no-pager"]),
];

/// Commands whose output must fit a terminal, whatever its width is.
const ON_TERMINALS: [&[&str]; 15] = [
    &["ls"],
    &["ls", "--runs", "-n", "12"],
    &["ls", "--gone"],
    &["search", "idempotency key"],
    &["search", "/assert \\d/"],
    &["usage"],
    &["usage", "--by", "session"],
    &["usage", "--by", "project,model"],
    &["changes", "checkout.py", "-n", "1"],
    &["failures", "-n", "5"],
    &["show", "1111", "--no-pager"],
    &["show", "1111", "-t", "1", "--no-pager"],
    &["tree", "1111"],
    &["events", "1111"],
    &["receipt", "ls", "--thread", "1111"],
];

/// A store with lifelike sessions, of which the agent has deleted one, and a command that runs others at a fixed time.
fn lifelike(steno: &Steno) -> Option<String> {
    let shared = shared_dir()?;
    let python = tool("python3")?;
    tool("faketime")?;
    let home = steno.store().with_file_name(".claude");
    let mut generator = std::process::Command::new(python);
    let made = generator.arg(shared.join("corpus/demo.py")).arg(&home).status().unwrap();
    assert!(made.success(), "{made}");
    fs::remove_file(home.join(LONGEST)).unwrap();
    let at_now = format!("faketime '{NOW}' \"$0\" \"$@\"");
    let imported = run(steno.shell(&at_now, &["import"]), b"");
    assert_eq!(imported.code, 0, "{imported:?}");
    fs::remove_file(home.join(DELETED)).unwrap();
    Some(at_now)
}

/// Replaces what differs between machines, and directories that are not in the project's files.
fn neutral(steno: &Steno, text: &str) -> String {
    let dir = steno.store().parent().unwrap().display().to_string();
    // The project names no home directory, not even an invented one.
    text.replace(concat!("/ho", "me/dev"), "/srv/dev").replace(&dir, "HOME")
}

#[test]
fn every_question_has_its_answer() {
    let steno = Steno::new();
    let at_now = needs!(lifelike(&steno), "python3, faketime or ../shared is absent");
    for (name, question, args) in QUESTIONS {
        let answer = run(steno.shell(&at_now, args), b"");
        assert_eq!(answer.code, 0, "{question}\n{answer:?}");
        let text = format!("# {question}\n$ steno {}\n{}", args.join(" "), neutral(&steno, &answer.out));
        golden::check(
            places::workspace_root().join(format!("crates/cli/tests/golden/questions/{name}.txt")),
            &text,
        );
    }
}

#[test]
fn every_question_has_its_answer_by_hand() {
    needs!(tool("faketime"), "faketime is not installed");
    let steno = filled();
    let file = steno.dir.path().join(DELETED_BY_HAND);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut lines = session();
    for line in &mut lines {
        line["cwd"] = "/srv/tokenizer".into();
    }
    put(&steno, DELETED_BY_HAND, text(&lines).replace("claude-x", "claude-opus-4-8"));
    let at_now = format!("faketime '{NOW_BY_HAND}' \"$0\" \"$@\"");
    let imported = run(steno.shell(&at_now, &["import"]), b"");
    assert_eq!(imported.code, 0, "{imported:?}");
    let before = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let mut all = String::new();
    for (question, args) in QUESTIONS_BY_HAND {
        let answer = run(steno.shell(&at_now, args), b"");
        assert_eq!(answer.code, 0, "{question}\n{answer:?}");
        assert!(!answer.out.is_empty(), "{question}\n{answer:?}");
        all.push_str(&format!(
            "# {question}\n$ steno {}\n{}\n",
            args.join(" "),
            neutral(&steno, &answer.out)
        ));
    }
    assert_eq!(fs::read(&file).unwrap(), before, "the file is back");
    golden::check(places::workspace_root().join("crates/cli/tests/golden/questions/by-hand.txt"), &all);
}

#[test]
fn page_on_questions_has_each_question_with_its_command() {
    let page = places::read("docs/questions.md");
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("`steno "));
    let rows: Vec<String> = rows.map(str::to_owned).collect();
    let row = |(question, args): (&str, &[&str])| format!("| {question} | `steno {}` |", args.join(" "));
    assert_eq!(rows, QUESTIONS_BY_HAND.map(row));
}

/// What the files of a session of Claude Code say, read as plain JSON.
#[derive(Debug, Default)]
struct PlainAnswers {
    /// The output tokens of each response.
    output: BTreeMap<String, u64>,
    models: BTreeSet<String>,
    days: BTreeSet<String>,
    /// The tool and the exit code of each call that failed.
    failures: Vec<(String, Option<i64>)>,
    /// The paths that were changed, the latest first.
    changes: Vec<String>,
}

impl PlainAnswers {
    fn of(home: &Path) -> Self {
        let (mut plain, mut uses) = (Self::default(), BTreeMap::<String, Value>::new());
        let is_session = |path: &Path| path.extension().is_some_and(|end| end == "jsonl");
        for name in places::files_below(&home.join("projects")) {
            let path = home.join("projects").join(name);
            if !is_session(&path) {
                continue;
            }
            for line in fs::read_to_string(path).unwrap().lines() {
                let record: Value = serde_json::from_str(line).unwrap();
                plain.take(&record, &mut uses);
            }
        }
        plain.failures.sort();
        plain.changes.reverse();
        plain
    }

    fn take(&mut self, record: &Value, uses: &mut BTreeMap<String, Value>) {
        let message = &record["message"];
        // Errors of the API are written like answers of a model.
        if record["type"] == "assistant" && message["model"] != "<synthetic>" {
            let tokens = self.output.entry(message["id"].as_str().unwrap().to_owned()).or_default();
            *tokens = message["usage"]["output_tokens"].as_u64().unwrap().max(*tokens);
            self.models.insert(message["model"].as_str().unwrap().to_owned());
            self.days.insert(record["timestamp"].as_str().unwrap()[..10].to_owned());
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let id = |name: &str| block[name].as_str().unwrap().to_owned();
            if block["type"] == "tool_use" {
                uses.insert(id("id"), block.clone());
            } else if block["type"] == "tool_result" && record["type"] == "user" {
                let call = &uses[&id("tool_use_id")];
                let (name, is_error) = (call["name"].as_str().unwrap(), block["is_error"] == true);
                if is_error {
                    let code = block["content"].as_str().and_then(|text| text.strip_prefix("Exit code "));
                    let code = code.and_then(|text| text.lines().next()?.parse().ok());
                    self.failures.push((name.to_owned(), code));
                } else if matches!(name, "Edit" | "Write") {
                    self.changes.push(call["input"]["file_path"].as_str().unwrap().to_owned());
                }
            }
        }
    }
}

#[test]
fn answers_about_captures_are_those_of_plain_json() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let (mut failures, mut changes) = (0, 0);
    for capture in ["2.1.325/main", "2.1.325/err400", "2.1.197/main"] {
        let steno = Steno::new();
        let home = steno.store().with_file_name(".claude");
        let captured = shared.join("captures/claude").join(capture).join("home");
        for name in places::files_below(&captured) {
            fs::create_dir_all(home.join(&name).parent().unwrap()).unwrap();
            fs::copy(captured.join(&name), home.join(&name)).unwrap();
        }
        let plain = PlainAnswers::of(&home);
        assert_eq!(steno.run(&["import"]).code, 0);
        check_usage(&steno, &plain);
        let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
        let rows = steno.run(&["failures", "--json"]).json();
        // Errors outside of calls have no tool.
        let calls = rows.iter().filter(|row| !row["tool"].is_null());
        let mut found: Vec<_> = calls.map(|row| (text(row, "tool"), row["exit_code"].as_i64())).collect();
        found.sort();
        assert_eq!(found, plain.failures, "{capture}");
        let rows = steno.run(&["changes", "--json"]).json();
        let found: Vec<_> = rows.iter().map(|row| text(row, "path")).collect();
        assert_eq!(found, plain.changes, "{capture}");
        let sessions = steno.run(&["ls", "--json"]).json();
        let id = text(&sessions[0], "run_id");
        for path in &plain.changes {
            assert_eq!(text(&steno.run(&["ls", "--touched", path, "--json"]).json()[0], "run_id"), id);
        }
        for code in plain.failures.iter().filter_map(|(_, code)| *code) {
            let hits = steno.run(&["search", &format!("exit:{code}"), "--json"]).json();
            assert!(hits.iter().any(|hit| hit["run_id"] == id.as_str()), "{capture}: {hits:?}");
        }
        let shown = steno.run(&["show", &id, "--no-pager"]).out;
        assert!(shown.contains(&format!("claude --resume {id}")), "{capture}: {shown}");
        check_deletion(&steno, &home, &id);
        (failures, changes) = (failures + plain.failures.len(), changes + plain.changes.len());
    }
    assert!(failures > 4 && changes > 2, "{failures} failures, {changes} changes");
}

/// Each table of usage adds up to the tokens of all responses.
#[track_caller]
fn check_usage(steno: &Steno, plain: &PlainAnswers) {
    for by in ["day", "week", "month", "model", "project", "agent", "session", "branch"] {
        let rows = steno.run(&["usage", "--by", by, "--utc", "--json"]).json();
        let sum: u64 = rows.iter().map(|row| row["output_tokens"].as_u64().unwrap()).sum();
        assert_eq!(sum, plain.output.values().sum::<u64>(), "{by}: {rows:?}");
        let names =
            || rows.iter().filter_map(|row| Some(row[by].as_str()?.to_owned())).collect::<BTreeSet<_>>();
        match by {
            "model" => assert_eq!(names(), plain.models),
            "day" => assert_eq!(names(), plain.days),
            _ => {}
        }
    }
}

/// A session that the agent deletes is listed with the command that writes it back, byte for byte.
#[track_caller]
fn check_deletion(steno: &Steno, home: &Path, id: &str) {
    assert_eq!(steno.run(&["ls", "--gone"]).out, "");
    let files = places::files_below(home).into_iter();
    let file = files.map(|name| home.join(name)).find(|file| file.ends_with(format!("{id}.jsonl"))).unwrap();
    let before = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let gone = steno.run(&["ls", "--gone", "--json"]).json();
    assert_eq!((gone.len(), gone[0]["run_id"].as_str()), (1, Some(id)));
    assert_eq!(steno.run(&["restore", id]).code, 0);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(steno.run(&["ls", "--gone"]).out, "");
}

#[test]
fn answers_fit_the_terminal() {
    let steno = Steno::new();
    let at_now = needs!(lifelike(&steno), "python3, faketime or ../shared is absent");
    needs!(tool("script"), "script, which makes a terminal, is not installed");
    for (columns, color) in [(80, "never"), (140, "never"), (80, "always")] {
        let (mut all, mut wide) = (String::new(), Vec::new());
        for args in ON_TERMINALS {
            let quoted: Vec<String> = args.iter().map(|arg| format!("\"{arg}\"")).collect();
            let command = format!(
                "PAGER=cat COLUMNS={columns} {} --color {color} {} </dev/null",
                env!("CARGO_BIN_EXE_steno"),
                quoted.join(" ")
            );
            let script = at_now.replace("\"$0\" \"$@\"", &format!("script -qec '{command}' /dev/null"));
            let shown = String::from_utf8(steno.shell(&script, &[]).output().unwrap().stdout).unwrap();
            let plain = anstream::adapter::strip_str(&shown).to_string();
            // What is copied stays whole: commands, and the lines of patches.
            let is_whole = |line: &str| {
                line.starts_with("── resume: ") || (args[0] == "changes" && line.starts_with(['+', '-', ' ']))
            };
            let is_wide = |line: &&str| line.chars().count() > columns && !is_whole(line);
            wide.extend(plain.lines().filter(is_wide).map(|line| format!("{args:?}: {line}")));
            let shown = neutral(&steno, &shown).replace("\r\n", "\n").replace('\u{1b}', "␛");
            all.push_str(&format!("$ steno {}\n{shown}\n", args.join(" ")));
        }
        assert!(wide.is_empty(), "wider than {columns}:\n{}", wide.join("\n"));
        let file = format!("crates/cli/tests/golden/terminals/{columns}_{color}.txt");
        golden::check(places::workspace_root().join(file), &all);
    }
}
