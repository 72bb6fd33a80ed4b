//! Claude Code's home, `~/.claude`.
//!
//! Up to 1.0 a session is one file, `projects/<project>/<session>.jsonl`. In 2.0 subagents have separate files beside
//! it, `agent-<id>.jsonl`; since 2.1 in `<session>/subagents`, with a `.meta.json` each, and large results in
//! `<session>/tool-results`. The rest is shared: a session can be resumed without it, but users want to keep it.

use super::super::file_place::{FilePlace, SessionKey};
use super::{ends_in, is_uuid, shared, sidecar, transcript};

pub(super) const TOPS: [&str; 5] = ["projects", "todos", "tasks", "plans", "file-history"];

/// Claude's notes on a project.
const NOTES: &str = "memory";

pub(super) fn place(names: &[&str]) -> Option<FilePlace> {
    match *names {
        ["history.jsonl"] | ["plans", _, ..] => Some(shared(None, None)),
        ["projects", project, name] => beside_sessions(project, name),
        ["projects", project, NOTES, ..] => Some(shared(None, Some(project))),
        ["projects", project, session, .., name] if is_uuid(session) => {
            let key = SessionKey::of_project(project, session);
            let is_transcript = names[3] == "subagents" && is_agent(name) && ends_in(name, &[".jsonl"]);
            Some(if is_transcript { transcript(key, Some(project)) } else { sidecar(key, Some(project)) })
        }
        // `<session>-agent-<agent>.json`
        ["todos", name] => Some(shared(name.get(..36).and_then(session_key), None)),
        // `tasks` may also have the list of a team, under its name.
        ["tasks" | "file-history", session, _, ..] => Some(shared(session_key(session), None)),
        _ => None,
    }
}

pub(super) fn may_hold(names: &[&str]) -> bool {
    match *names {
        ["projects", _, session, ..] => is_uuid(session) || session == NOTES,
        [top, ..] => TOPS.contains(&top),
        [] => true,
    }
}

/// Classifies a file in a project's directory.
fn beside_sessions(project: &str, name: &str) -> Option<FilePlace> {
    if name == "sessions-index.json" {
        return Some(shared(None, Some(project)));
    }
    let (stem, ending) = name.split_once('.')?;
    if !is_uuid(stem) && !is_agent(stem) {
        return None;
    }
    let key = SessionKey::of_project(project, stem);
    match ending {
        "jsonl" => Some(transcript(key, Some(project))),
        "meta.json" => Some(sidecar(key, Some(project))),
        _ => None,
    }
}

fn is_agent(name: &str) -> bool {
    name.starts_with("agent-")
}

fn session_key(name: &str) -> Option<SessionKey> {
    is_uuid(name).then(|| SessionKey::of_id(name))
}
