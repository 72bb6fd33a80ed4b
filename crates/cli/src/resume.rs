//! The command with which an agent resumes a session.

use steno_views::digest::SessionDigest;

/// Returns the command that resumes a session in its agent; `None` for agents that cannot.
pub fn resume_command(digest: &SessionDigest) -> Option<String> {
    if digest.parent.is_some() {
        return None;
    }
    let id = digest.id;
    let command = match digest.provider.as_deref()? {
        "claude" => format!("claude --resume {id}"),
        "codex" => format!("codex resume {id}"),
        "gemini" => format!("gemini --resume {id}"),
        "copilot" => format!("copilot --resume={id}"),
        "opencode" => format!("opencode --session {id}"),
        _ => return None,
    };
    Some(match digest.directory.as_deref() {
        Some(directory) => format!("cd {} && {command}", quoted(directory)),
        None => command,
    })
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
