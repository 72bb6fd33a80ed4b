//! The command with which an agent resumes a session.

use steno_library::Library;
use steno_views::digest::SessionDigest;

/// Returns the command that resumes a session of the store: if the agent deleted its file, that comes back first.
pub fn resume_again(digest: &SessionDigest, library: &Library) -> Option<String> {
    let resume = resume_command(digest)?;
    let run = digest.id;
    Some(if library.is_file_deleted(run) { format!("steno restore {run} && {resume}") } else { resume })
}

/// Returns the command that resumes a session in its agent; `None` for agents that cannot.
///
/// Claude Code and Gemini CLI find only sessions of the directory that they are started in. If the record does not name
/// it, a comment of the shell says so.
pub fn resume_command(digest: &SessionDigest) -> Option<String> {
    if digest.parent.is_some() {
        return None;
    }
    let id = digest.id;
    let (command, needs_directory) = match digest.provider.as_deref()? {
        "claude" => (format!("claude --resume {id}"), true),
        "codex" => (format!("codex resume {id}"), false),
        "gemini" => (format!("gemini --resume {id}"), true),
        "copilot" => (format!("copilot --resume={id}"), false),
        "opencode" => (format!("opencode --session {}", quoted(own_name(digest)?)), true),
        _ => return None,
    };
    Some(match digest.directory.as_deref() {
        Some(directory) => format!("cd {} && {command}", quoted(directory)),
        None if needs_directory => format!("{command}  # in the project's directory"),
        None => command,
    })
}

/// Returns the agent's own name of a session, which must not look like an option.
fn own_name(digest: &SessionDigest) -> Option<&str> {
    digest.own_name.as_deref().filter(|name| !name.starts_with('-'))
}

/// Returns a word for a shell, in quotes if it needs them.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, want) in [("/srv/shop", "/srv/shop"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(quoted(word), want);
        }
    }
}
