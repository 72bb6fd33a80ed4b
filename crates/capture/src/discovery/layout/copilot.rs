//! Copilot CLI's home, `~/.copilot`.
//!
//! A session is a directory, `session-state/<session>`, with its records in `events.jsonl` and beside them its plan,
//! its checkpoints, files that it keeps, and what rewinding needs. Early releases had `session-state/<session>.jsonl`,
//! the first ones a document in `history-session-state`. `command-history-state` also has what was typed, for all
//! sessions together and without their ids. It is not captured, because a single session could not be removed from it.

use super::super::file_place::{FilePlace, SessionKey};
use super::{sidecar, transcript, uuid_in};

pub(super) const TOPS: [&str; 2] = ["session-state", "history-session-state"];

pub(super) fn place(names: &[&str]) -> Option<FilePlace> {
    match *names {
        ["session-state", name] => {
            let stem = name.strip_suffix(".jsonl").filter(|stem| !is_hidden(stem))?;
            Some(transcript(SessionKey::of_id(stem), None))
        }
        ["session-state", session, _, ..] if is_hidden(session) => None,
        // A lock with the id of its process.
        ["session-state", _, name] if name.starts_with("inuse.") => None,
        ["session-state", session, "events.jsonl"] => Some(transcript(SessionKey::of_id(session), None)),
        ["session-state", session, _, ..] => Some(sidecar(SessionKey::of_id(session), None)),
        ["history-session-state", name] => {
            let stem = name.strip_suffix(".json").or_else(|| name.strip_suffix(".jsonl"))?;
            Some(transcript(SessionKey::of_id(uuid_in(stem).unwrap_or(stem)), None))
        }
        _ => None,
    }
}

pub(super) fn may_hold(names: &[&str]) -> bool {
    match *names {
        ["session-state", session, ..] => !is_hidden(session),
        [top] => TOPS.contains(&top),
        [] => true,
        [_, ..] => false,
    }
}

/// The agent keeps locks between the sessions, in hidden directories.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}
