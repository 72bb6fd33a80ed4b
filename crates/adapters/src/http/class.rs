//! What a tool does, by its name in the spelling of any known client.

use crate::run::Class;
use crate::{claude, codex};

/// Returns what a tool does, by its name.
pub(super) fn class_of(name: &str) -> Class {
    let known =
        [claude::class_of(name), codex::class_of(name)].into_iter().find(|class| *class != Class::Other);
    if let Some(class) = known {
        return class;
    }
    match name {
        "bash" | "run_shell_command" | "run_terminal_cmd" | "execute_command" | "shell_call"
        | "local_shell" => Class::Command,
        "create" | "edit" | "replace" | "str_replace" | "str_replace_based_edit_tool" | "write_file" => {
            Class::FileChange
        }
        "invoke_agent" | "task" => Class::Agent,
        _ if name.starts_with("mcp_") => Class::Mcp,
        _ => Class::Other,
    }
}
