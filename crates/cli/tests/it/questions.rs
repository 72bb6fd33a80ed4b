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

#[test]
fn every_question_has_its_answer() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let python = needs!(tool("python3"), "python3 is not installed");
    needs!(tool("faketime"), "faketime is not installed");
    let steno = Steno::new();
    let home = steno.store().with_file_name(".claude");
    let mut generator = std::process::Command::new(python);
    let made = generator.arg(shared.join("corpus/demo.py")).arg(&home).status().unwrap();
    assert!(made.success(), "{made}");
    fs::remove_file(home.join(LONGEST)).unwrap();
    let at_now = format!("faketime '{NOW}' \"$0\" \"$@\"");
    let imported = run(steno.shell(&at_now, &["import"]), b"");
    assert_eq!(imported.code, 0, "{imported:?}");
    fs::remove_file(home.join(DELETED)).unwrap();

    for (name, question, args) in QUESTIONS {
        let answer = run(steno.shell(&at_now, args), b"");
        assert_eq!(answer.code, 0, "{question}\n{answer:?}");
        // The project names no home directory, not even an invented one.
        let out = answer.out.replace(concat!("/ho", "me/dev"), "/srv/dev");
        let text = format!("# {question}\n$ steno {}\n{out}", args.join(" "));
        golden::check(
            places::workspace_root().join(format!("crates/cli/tests/golden/questions/{name}.txt")),
            &text,
        );
    }
}
