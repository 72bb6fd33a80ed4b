//! Calls that the user or a rule refused, or that Codex could not run, recognized by Codex's text.
//!
//! The output of a command never stands alone: Codex writes an exit code or a time before it. So a tool cannot pretend
//! that it was refused.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};

use crate::run::Class;
use crate::wire::RawField as _;

/// The output for a refused command or patch: its start, and a text that it contains.
const COMMANDS: [(&str, &str); 9] = [
    ("exec_command failed", "CreateProcess { message: \"Rejected("),
    ("exec command rejected by user", ""),
    ("patch rejected by user", ""),
    ("patch rejected: ", "rejected by user approval settings"),
    ("`", "` rejected: "),
    ("rejected: blocked by policy", ""),
    ("approval policy is ", "; reject command"),
    ("This action was rejected due to unacceptable risk.", ""),
    ("Command blocked by PreToolUse hook", ""),
];

/// Codex's text for a refused call of an MCP server.
const MCP: &str = "user rejected MCP tool call";

/// Returns true if a text says that its call was refused.
pub(super) fn is_rejection(text: &str, class: Class) -> bool {
    match class {
        Class::Command | Class::FileChange => {
            COMMANDS.iter().any(|(begins, has)| text.starts_with(begins) && text.contains(has))
        }
        Class::Mcp => text == MCP,
        Class::Agent | Class::Other => false,
    }
}

/// Returns the text of an output that says that its call was refused. Most outputs need not be decoded for this.
pub(super) fn rejection_in(output: &RawJson, class: Class) -> Option<JsonString> {
    let raw = output.as_str();
    let may_be = |begins: &str| raw.strip_prefix('"').is_some_and(|text| text.starts_with(begins));
    let is_likely = may_be(MCP) || COMMANDS.iter().any(|(begins, _)| may_be(begins));
    let text = output.read::<&RawValue>().ok().filter(|_| is_likely).string()?;
    is_rejection(&text.to_text(), class).then_some(text)
}

/// Codex's text for a patch that does not fit its files, and for a call of a tool that it does not have: the name follows.
const BAD_PATCH: &str = "apply_patch verification failed: ";
const NO_TOOL: [&str; 2] = ["unsupported call: ", "unsupported custom tool call: "];

/// Returns the text of an output that says that Codex could not run its call. A tool whose output is this text would have
/// to name itself in it.
pub(super) fn failure_in(output: &RawJson, class: Class, name: &str) -> Option<JsonString> {
    let raw = output.as_str();
    let may_be = |begins: &str| raw.strip_prefix('"').is_some_and(|text| text.starts_with(begins));
    let is_likely = may_be(BAD_PATCH) || NO_TOOL.iter().any(|begins| may_be(begins));
    let text = output.read::<&RawValue>().ok().filter(|_| is_likely).string()?;
    let words = text.to_text();
    let is_bad_patch = matches!(class, Class::Command | Class::FileChange) && words.starts_with(BAD_PATCH);
    let is_no_tool =
        !name.is_empty() && NO_TOOL.iter().any(|begins| words.strip_prefix(begins) == Some(name));
    (is_bad_patch || is_no_tool).then(|| text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, class: Class, want: bool) {
        let output = JsonString::from(text).to_json();
        assert_eq!(
            (is_rejection(text, class), rejection_in(&output, class).is_some()),
            (want, want),
            "{text}"
        );
    }

    #[test]
    fn rejections_are_recognized_by_their_text() {
        for text in [
            r#"exec_command failed: CreateProcess { message: "Rejected(\"rejected by user\")" }"#,
            r#"exec_command failed for `/bin/sh -c 'rm x'`: CreateProcess { message: "Rejected(\"`rm` rejected: blocked by policy\")" }"#,
            "exec command rejected by user",
            "`rm -rf x` rejected: blocked by policy",
            "approval policy is Never; reject command — you should not ask for escalated permissions",
            "This action was rejected due to unacceptable risk. It deletes files.",
        ] {
            check(text, Class::Command, true);
            check(text, Class::Other, false);
        }
        check("patch rejected by user", Class::FileChange, true);
        let outside = "patch rejected: writing outside of the project; rejected by user approval settings";
        check(outside, Class::FileChange, true);
        check("user rejected MCP tool call", Class::Mcp, true);
    }

    #[test]
    fn failures_and_tool_output_are_not_rejections() {
        for text in [
            r#"exec_command failed: CreateProcess { message: "No such file or directory" }"#,
            "exec_command failed: UnknownSessionId",
            "Exit code: 1\nWall time: 0 seconds\nOutput:\nexec command rejected by user",
            "Chunk ID: a\nOutput:\n`x` rejected: blocked by policy",
            "apply_patch verification failed: patch rejected by user",
            "patch rejected: empty patch",
            "user rejected MCP tool call",
            "",
        ] {
            check(text, Class::Command, false);
        }
        check("the user rejected MCP tool call", Class::Mcp, false);
    }

    #[test]
    fn calls_that_codex_could_not_run_are_recognized_by_their_text() {
        let check = |text: &str, class: Class, name: &str, want: bool| {
            let output = JsonString::from(text).to_json();
            assert_eq!(failure_in(&output, class, name).is_some(), want, "{text}");
        };
        let bad_patch = "apply_patch verification failed: Failed to find src/gone.py";
        check(bad_patch, Class::FileChange, "apply_patch", true);
        check(bad_patch, Class::Command, "shell", true);
        check(bad_patch, Class::Mcp, "mcp__x__y", false);
        check(&format!("Output:\n{bad_patch}"), Class::Command, "shell", false);
        check("unsupported call: no_tool", Class::Other, "no_tool", true);
        check("unsupported custom tool call: no_tool", Class::Other, "no_tool", true);
        check("unsupported call: no_tool", Class::Other, "other_tool", false);
        check("unsupported call: ", Class::Other, "", false);
    }
}
