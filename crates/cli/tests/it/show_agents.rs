//! What `steno show` prints of a session of each agent: in a pipe, and on terminals of two widths.

use std::path::PathBuf;

use steno_testkit::{golden, needs, places, tool};

use crate::kit::Steno;

/// The hand-written sessions that the adapters are tested with.
fn session(name: &str) -> PathBuf {
    places::workspace_root().join("crates/adapters/tests/golden").join(name)
}

#[track_caller]
fn check(agent: &str, name: &str) {
    let shown = ["0", "2", "4"].map(|detail| show(name, &["-t", detail])).concat();
    golden::check(format!("tests/golden/show/{agent}.txt"), &shown);
}

/// The edits of a session, as they are piped and in colours, in which changed words are marked.
#[track_caller]
fn check_edits(agent: &str, name: &str) {
    let shown = [&["-t", "1"][..], &[], &["--color", "always"]].map(|options| show(name, options)).concat();
    golden::check(format!("tests/golden/show/{agent}_edits.txt"), &shown.replace('\u{1b}', "␛"));
}

fn show(name: &str, options: &[&str]) -> String {
    let file = session(name);
    let arguments = [&["show", file.to_str().unwrap()], options].concat();
    let said = Steno::new().run(&arguments);
    format!("$ steno show {name} {}\n{}\n", options.join(" "), said.out)
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

#[test]
fn edits_of_every_agent_are_diffs_with_line_numbers() {
    check_edits("claude", "claude/edits.in.jsonl");
    check_edits("codex", "codex/rollout_edits.in.jsonl");
    check_edits("copilot", "copilot/edits.in.jsonl");
    check_edits("gemini", "gemini/chat_edits.in.jsonl");
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
