//! Gemini CLI's home, `~/.gemini`.
//!
//! A session is one file, `tmp/<project>/chats/session-<time>-<first eight of its id>.json`, rewritten at each change;
//! recent releases append to `.jsonl` instead, and put subagents into `chats/<session>`. A project is the hash of its
//! path, later a short name that `projects.json` lists. Old files that cannot be read are renamed to
//! `.unreadable-<time>`.

use super::super::file_place::{FilePlace, SessionKey};
use super::{ends_in, is_uuid, shared, sidecar, transcript};

pub(super) const TOPS: [&str; 1] = ["tmp"];

/// A directory in `tmp` that is not a project: programs that the agent downloaded.
const PROGRAMS: &str = "bin";

/// How many characters of a session's id are in its file name.
const SHORT_ID_LEN: usize = 8;

pub(super) fn place(names: &[&str]) -> Option<FilePlace> {
    match *names {
        ["projects.json"] => Some(shared(None, None)),
        ["tmp", PROGRAMS, ..] => None,
        ["tmp", project, ref below @ ..] => in_project(project, below),
        _ => None,
    }
}

pub(super) fn may_hold(names: &[&str]) -> bool {
    match *names {
        [] | ["tmp"] => true,
        ["tmp", project] => project != PROGRAMS,
        ["tmp", PROGRAMS, ..] => false,
        ["tmp", _, "chats", ref below @ ..] => below.len() <= 1,
        ["tmp", _, top, ..] => ["tool-outputs", "plans"].contains(&top) || is_uuid(top),
        [_, ..] => false,
    }
}

fn in_project(project: &str, below: &[&str]) -> Option<FilePlace> {
    let for_all = || Some(shared(None, Some(project)));
    let of = |id: &str| SessionKey::of_project(project, short(id));
    match *below {
        ["chats", name] => chat(project, name),
        ["chats", session, name] if is_record(name) => Some(transcript(of(session), Some(project))),
        // Results that are too long for the session's file.
        ["tool-outputs", dir, _, ..] => match dir.strip_prefix("session-") {
            Some(session) => Some(sidecar(of(session), Some(project))),
            None => for_all(),
        },
        [session, _, ..] if is_uuid(session) => Some(sidecar(of(session), Some(project))),
        // The project's path, the typed prompts, and states that the user saved under a name.
        [".project_root" | "logs.json" | "checkpoint.json"] | ["tool-outputs", _] | ["plans", _, ..] => {
            for_all()
        }
        [name] if name.starts_with("checkpoint-") && ends_in(name, &[".json"]) => for_all(),
        _ => None,
    }
}

fn chat(project: &str, name: &str) -> Option<FilePlace> {
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let id = match stem.strip_prefix("session-") {
        Some(rest) => rest.rsplit_once('-').map_or(rest, |(_, id)| id),
        None => stem,
    };
    let key = SessionKey::of_project(project, id);
    if name.contains(".unreadable-") {
        return Some(sidecar(key, Some(project)));
    }
    is_record(name).then(|| transcript(key, Some(project)))
}

fn is_record(name: &str) -> bool {
    ends_in(name, &[".json", ".jsonl"])
}

fn short(id: &str) -> &str {
    id.get(..SHORT_ID_LEN).unwrap_or(id)
}
