//! Commands that apply a patch: Codex carries them out itself, and no program runs.

use steno_model::json::RawJson;

use crate::shapes::elements;
use crate::wire::{RawField as _, parse, wire};

/// The command with which a patch is applied.
const COMMAND: &str = "apply_patch";

wire! {
    /// The arguments of a command.
    struct CommandInput { command: "command", cmd: "cmd", }
}

/// Tells whether a command applies a patch: `apply_patch PATCH`, or `apply_patch` with the patch as its input, perhaps
/// after a change of the directory.
pub(super) fn is_patch(input: &RawJson) -> bool {
    // Most commands need not be read.
    if !input.as_str().contains("*** Begin Patch") {
        return false;
    }
    let Ok(fields) = parse::<CommandInput<'_>>(input.as_str()) else { return false };
    let command = fields.command.or(fields.cmd);
    let words = elements(command).unwrap_or_default();
    let script = if words.is_empty() { command } else { words.last().copied() };
    let is_direct = words.first().is_some_and(|word| Some(*word).is(COMMAND));
    is_direct || script.text().is_some_and(|script| is_script(script.trim_start()))
}

fn is_script(script: &str) -> bool {
    let call = match script.strip_prefix("cd ").and_then(|rest| rest.split_once("&&")) {
        // Whatever else comes before it is a program.
        Some((directory, call)) if !directory.contains(['\n', ';', '|']) => call.trim_start(),
        Some(_) | None => script,
    };
    call.strip_prefix(COMMAND).is_some_and(|rest| rest.starts_with([' ', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, want: bool) {
        assert_eq!(is_patch(&RawJson::parse(input).unwrap()), want, "{input}");
    }

    #[test]
    fn command_is_a_patch_if_it_only_applies_one() {
        check(r#"{"command":["apply_patch","*** Begin Patch\n*** End Patch"]}"#, true);
        check(
            r#"{"command":["bash","-lc","apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF"]}"#,
            true,
        );
        check(r#"{"cmd":"cd /srv/shop && apply_patch <<EOF\n*** Begin Patch\n*** End Patch\nEOF"}"#, true);
        check(r#"{"cmd":"cat <<EOF\n*** Begin Patch\nEOF"}"#, false);
        check(r#"{"cmd":"cd a; make && apply_patch <<EOF\n*** Begin Patch\nEOF"}"#, false);
        check(r#"{"cmd":"apply_patches '*** Begin Patch'"}"#, false);
        check(r#"{"cmd":"ls"}"#, false);
        check(r#""*** Begin Patch""#, false);
    }
}
