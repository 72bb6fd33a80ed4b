//! The command with which an agent resumes a session.

use steno_library::Library;
use steno_model::{Provider, Vocabulary as _};
use steno_views::digest::SessionDigest;
use steno_views::shell_word;

use crate::settings::Settings;

/// Returns the command that resumes a session of the store: if the agent deleted, shortened or rewrote its file, what is
/// missing comes back first.
pub fn resume_again(digest: &SessionDigest, library: &Library, settings: &Settings) -> Option<String> {
    let resume = resume_command(digest)?;
    let Some(loss) = library.file_loss(digest.id) else { return Some(resume) };
    let restore = loss.restore_command(&digest.id.to_string(), &settings.store_flags());
    Some(format!("{restore} && {resume}"))
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
    let (command, needs_directory) = match Provider::find(digest.provider.as_deref()?)? {
        Provider::Claude => (format!("claude --resume {id}"), true),
        Provider::Codex => (format!("codex resume {id}"), false),
        Provider::Gemini => (format!("gemini --resume {id}"), true),
        Provider::Copilot => (format!("copilot --resume={id}"), false),
        Provider::OpenCode => (format!("opencode --session {}", shell_word(own_name(digest)?)), true),
    };
    Some(match digest.directory.as_deref() {
        Some(directory) => format!("cd {} && {command}", shell_word(directory)),
        None if needs_directory => format!("{command}  # in the project's directory"),
        None => command,
    })
}

/// Returns the agent's own name of a session, which must not look like an option.
fn own_name(digest: &SessionDigest) -> Option<&str> {
    digest.own_name.as_deref().filter(|name| !name.starts_with('-'))
}
