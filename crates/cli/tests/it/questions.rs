//! The questions that people have about their sessions, each with the command that answers it and what it prints to
//! stdout, over lifelike sessions at a fixed time.

use std::fs;

use steno_testkit::{golden, needs, places, shared_dir, tool};

use crate::kit::{Steno, run};

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
