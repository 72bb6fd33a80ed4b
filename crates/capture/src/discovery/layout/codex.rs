//! Codex's home, `~/.codex`.
//!
//! A thread is one file, `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, or in `archived_sessions`. The first
//! releases had them right in `sessions`, those before the rewrite in Rust as one document, `.json`. Recent ones compress
//! what is old to `.jsonl.zst`, and add `_<rollout>` to the name when a thread goes back to an earlier state.

use super::super::file_place::{FilePlace, SessionKey};
use super::{shared, sidecar, transcript, uuid_in};

pub(super) const TOPS: [&str; 2] = ["sessions", "archived_sessions"];

pub(super) fn place(names: &[&str]) -> Option<FilePlace> {
    match *names {
        ["history.jsonl" | "session_index.jsonl"] => Some(shared(None, None)),
        [top, .., name] if TOPS.contains(&top) => rollout(name),
        _ => None,
    }
}

pub(super) fn may_hold(names: &[&str]) -> bool {
    names.first().is_none_or(|top| TOPS.contains(top))
}

fn rollout(name: &str) -> Option<FilePlace> {
    if !name.starts_with("rollout-") {
        return None;
    }
    let (stem, ending) = name.split_once('.')?;
    let key = SessionKey::of_id(uuid_in(stem).unwrap_or(stem));
    match ending {
        "jsonl" | "jsonl.zst" | "json" => Some(transcript(key, None)),
        // What a thread waits for.
        "jsonl.timers.json" => Some(sidecar(key, None)),
        _ => None,
    }
}
