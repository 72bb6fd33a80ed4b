//! Excluded and forgotten data is in no byte of the store: tested with a canary in every place that an agent writes
//! to, and an independent reader of the formats.

mod attacks;
mod exclusion;
mod forgetting;
mod pausing;
mod recordings;
mod requests;
pub mod scan;
pub mod world;

use std::path::Path;

use crate::kit::{CommandOutput, Steno};
use scan::places_of;

const SECRET: &str = "zq7secret";
const PUBLIC: &str = "zq7public";

#[track_caller]
fn done(said: &CommandOutput) {
    assert_eq!(said.code, 0, "{said:?}");
}

/// Fails if a canary, in plain text or as agents encode pictures, is anywhere in the store.
#[track_caller]
fn assert_absent(steno: &Steno, canary: &str, context: &str) {
    for text in [canary.to_owned(), world::base64_of(&canary[..canary.len() / 3 * 3])] {
        let places = places_of(&steno.store(), &text);
        assert!(places.is_empty(), "{context}: `{text}` is in {places:?}");
    }
}

fn is_present(steno: &Steno, text: &str) -> bool {
    !places_of(&steno.store(), text).is_empty()
}

/// Fails unless a text is in the store, which shows that the scan works.
#[track_caller]
fn assert_present(steno: &Steno, text: &str) {
    assert!(is_present(steno, text), "`{text}` is not in the store");
}

/// The files of agents, by place.
const PLACES: [&str; 19] = [
    " prompt",
    "-command",
    " title",
    " subagent",
    " tool result",
    "-file.txt",
    " todo",
    " task",
    " file before the edit",
    " plan",
    " typed",
    " codex prompt",
    "-codex",
    " codex typed",
    " codex title",
    " gemini prompt",
    " gemini typed",
    " copilot prompt",
    " copilot title",
];

/// Fails unless everything of a project is in the store.
#[track_caller]
fn assert_whole(steno: &Steno, canary: &str) {
    for place in PLACES {
        assert_present(steno, &format!("{canary}{place}"));
    }
}

/// Copies a directory.
fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_dir(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}
