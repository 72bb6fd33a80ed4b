//! What `steno show` prints of a session of each agent: in a pipe, and on terminals of two widths.

use std::fmt::Write as _;
use std::path::PathBuf;

use steno_testkit::{golden, needs, places, tool};

use crate::kit::Steno;

/// The hand-written sessions that the adapters are tested with.
fn session(name: &str) -> PathBuf {
    places::workspace_root().join("crates/adapters/tests/golden").join(name)
}

#[track_caller]
fn check(agent: &str, name: &str) {
    let steno = Steno::new();
    let file = session(name);
    let mut shown = String::new();
    for detail in ["0", "2", "4"] {
        let said = steno.run(&["show", file.to_str().unwrap(), "-t", detail]);
        writeln!(shown, "$ steno show {name} -t {detail}\n{}", said.out).unwrap();
    }
    golden::check(format!("tests/golden/show/{agent}.txt"), &shown);
}

#[test]
fn sessions_of_claude_are_conversations() {
    check("claude", "claude/blocks.in.jsonl");
}

#[test]
fn sessions_of_codex_are_conversations() {
    check("codex", "codex/rollout_blocks.in.jsonl");
}

#[test]
fn sessions_of_gemini_are_conversations() {
    check("gemini", "gemini/chat_blocks.in.jsonl");
}

#[test]
fn sessions_of_copilot_are_conversations() {
    check("copilot", "copilot/blocks.in.jsonl");
}

#[test]
fn sessions_of_opencode_are_conversations() {
    check("opencode", "opencode/blocks.in.jsonl");
}

/// On a terminal lines are wrapped to its width, in colours unless they are off.
#[test]
fn terminals_of_any_width_are_filled() {
    needs!(tool("script"), "script, which makes a terminal, is not installed");
    let steno = Steno::new();
    let file = session("codex/rollout_blocks.in.jsonl");
    for (columns, color) in [(80, "never"), (120, "never"), (80, "always")] {
        let command = format!(
            "COLUMNS={columns} {} --color {color} show --no-pager {}",
            env!("CARGO_BIN_EXE_steno"),
            file.display()
        );
        let script = format!("script -qec '{command}' /dev/null");
        let shown = String::from_utf8(steno.shell(&script, &[]).output().unwrap().stdout).unwrap();
        let shown = shown.replace("\r\n", "\n").replace('\u{1b}', "␛");
        golden::check(format!("tests/golden/show/terminal_{columns}_{color}.txt"), &shown);
    }
}
