//! The layout of each agent's home: pure rules over the names of a path, one file per agent.
//!
//! The rules name what is wanted; everything else is ignored. No rule matches settings and credentials; [`SECRETS`] are
//! also refused below a session's directory, where any name is accepted.

mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;

use steno_model::Provider;

use super::file_place::{FilePlace, Role, SessionKey};

/// The maximum depth of a listing, in a home and below a named path. Agents use up to seven levels; a user's own files
/// that were saved with a session may be deeper.
pub const DEPTH_MAX: usize = 32;

/// Names of files with credentials. They are never listed, in any directory.
///
/// Settings are not listed either (`settings.json`, `config.toml`, `config.json`, `mcp-config.json`, `.claude.json` and
/// its copies in `backups`), because they may contain tokens, nor what Claude stores of a shell's environment
/// (`shell-snapshots`, `session-env`).
pub const SECRETS: [&str; 9] = [
    ".credentials.json",
    ".env",
    ".netrc",
    "auth.json",
    "gemini-credentials.json",
    "google_accounts.json",
    "mcp-oauth-tokens-v2.json",
    "mcp-oauth-tokens.json",
    "oauth_creds.json",
];

/// Large directories of tools, in which no agent keeps sessions.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

/// Classifies the file with these names.
pub(super) fn place(provider: Provider, names: &[&str]) -> Option<FilePlace> {
    let (name, dirs) = names.split_last()?;
    if dirs.len() > DEPTH_MAX || is_left_out(name) || dirs.iter().any(|dir| PASSED_OVER.contains(dir)) {
        return None;
    }
    match provider {
        Provider::Claude => claude::place(names),
        Provider::Codex => codex::place(names),
        Provider::Gemini => gemini::place(names),
        Provider::Copilot => copilot::place(names),
        Provider::OpenCode => opencode::place(names),
    }
}

/// Tells whether the directory with these names may contain files with a place, regardless of its depth.
pub(super) fn may_hold(provider: Provider, names: &[&str]) -> bool {
    if names.iter().any(|name| PASSED_OVER.contains(name)) {
        return false;
    }
    match provider {
        Provider::Claude => claude::may_hold(names),
        Provider::Codex => codex::may_hold(names),
        Provider::Gemini => gemini::may_hold(names),
        Provider::Copilot => copilot::may_hold(names),
        Provider::OpenCode => opencode::may_hold(names),
    }
}

/// Tells whether an agent's file names have only the beginning of a session's id. The records have all of it.
#[must_use]
pub fn has_short_ids(provider: Provider) -> bool {
    match provider {
        Provider::Gemini => true,
        Provider::Claude | Provider::Codex | Provider::Copilot | Provider::OpenCode => false,
    }
}

/// Returns the names of the directories directly below a home that contain files with a place.
pub(super) fn tops(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => &claude::TOPS,
        Provider::Codex => &codex::TOPS,
        Provider::Gemini => &gemini::TOPS,
        Provider::Copilot => &copilot::TOPS,
        Provider::OpenCode => &opencode::TOPS,
    }
}

/// Tells whether a directory with this name is never entered.
pub(super) fn is_passed_over(name: &str) -> bool {
    PASSED_OVER.contains(&name)
}

/// Tells whether a file is ignored in every directory: credentials, locks, databases, and temporary files that will be
/// renamed.
pub(super) fn is_left_out(name: &str) -> bool {
    let is_database = [".db", ".sqlite", ".sqlite3"].iter().any(|kind| {
        let after = name.rfind(kind).map(|at| &name[at + kind.len()..]);
        matches!(after, Some("" | "-wal" | "-shm" | "-journal"))
    });
    let is_passing = ends_in(name, &[".tmp"]) || name.contains(".tmp-") || name.contains(".tmp.");
    let is_secret = SECRETS.contains(&name) || name.starts_with(".env.");
    is_secret || is_database || is_passing || ends_in(name, &[".lock"])
}

fn transcript(session: SessionKey, project: Option<&str>) -> FilePlace {
    FilePlace { role: Role::Transcript, session: Some(session), project: project.map(str::to_owned) }
}

fn sidecar(session: SessionKey, project: Option<&str>) -> FilePlace {
    FilePlace { role: Role::Sidecar, session: Some(session), project: project.map(str::to_owned) }
}

fn shared(session: Option<SessionKey>, project: Option<&str>) -> FilePlace {
    FilePlace { role: Role::Shared, session, project: project.map(str::to_owned) }
}

/// Tells whether a name has one of these extensions, in lower case.
pub(super) fn ends_in(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Tells whether a name is a UUID in the agents' format.
fn is_uuid(name: &str) -> bool {
    name.len() == UUID_LEN
        && name.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

const UUID_LEN: usize = 36;

/// Returns the first UUID in a name.
fn uuid_in(name: &str) -> Option<&str> {
    (0..name.len()).filter_map(|start| name.get(start..start + UUID_LEN)).find(|part| is_uuid(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_recognized() {
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        assert!(is_uuid(uuid));
        for other in ["", &uuid[1..], &uuid.replace('-', "a"), &uuid.replace('e', "g"), &format!("{uuid}0")] {
            assert!(!is_uuid(other), "{other}");
        }
        assert_eq!(uuid_in(&format!("rollout-2026-06-08T08-14-42-{uuid}_{uuid}")), Some(uuid));
        assert_eq!(uuid_in(&format!("ü{uuid}")), Some(uuid));
        assert_eq!(uuid_in("rollout-2026-06-08T08-14-42"), None);
    }

    #[test]
    fn credentials_databases_locks_and_temporary_files_are_left_out() {
        for name in SECRETS {
            assert!(is_left_out(name), "{name}");
        }
        for name in [
            "session.db",
            "s.db-wal",
            "x.sqlite3-shm",
            "inuse.7.lock",
            "a.json.tmp-7",
            "a.tmp.9",
            ".env.local",
        ] {
            assert!(is_left_out(name), "{name}");
        }
        for name in ["events.jsonl", "auth.json.md", "lock", "a.dbx", "tmp-1.txt", "settings.json"] {
            assert!(!is_left_out(name), "{name}");
        }
    }
}
