//! Calls that were not made because the user or a rule refused them, where only Codex's own words say so.
//!
//! What a command printed never stands alone in an output: Codex writes an exit code or a time before it. So a tool
//! cannot pretend to have been refused.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};

use crate::run::Class;
use crate::wire::RawField as _;

/// How the answer to a command or a patch that was refused begins, and what it has besides.
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

/// What Codex says of a call to an MCP server that was refused.
const MCP: &str = "user rejected MCP tool call";

/// Tells whether what is said of a call is that it was refused.
pub(super) fn is_rejection(text: &str, class: Class) -> bool {
    match class {
        Class::Command | Class::FileChange => {
            COMMANDS.iter().any(|(begins, has)| text.starts_with(begins) && text.contains(has))
        }
        Class::Mcp => text == MCP,
        Class::Agent | Class::Other => false,
    }
}

/// Returns the words of an output that says that its call was refused; most outputs need not be decoded for it.
pub(super) fn rejection_in(output: &RawJson, class: Class) -> Option<JsonString> {
    let raw = output.as_str();
    let may_be = |begins: &str| raw.strip_prefix('"').is_some_and(|text| text.starts_with(begins));
    let is_likely = may_be(MCP) || COMMANDS.iter().any(|(begins, _)| may_be(begins));
    let text = output.read::<&RawValue>().ok().filter(|_| is_likely).string()?;
    is_rejection(&text.to_text(), class).then_some(text)
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
    fn refusals_are_known_by_codexs_words() {
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
    fn failures_and_what_tools_print_are_no_refusals() {
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
}
