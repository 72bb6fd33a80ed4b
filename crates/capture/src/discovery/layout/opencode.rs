//! `OpenCode`'s home, `~/.local/share/opencode`.
//!
//! All sessions of all projects are in one database, `opencode.db`. It is not captured: a single session could not be
//! removed from a copy, and it has tables for access tokens. Releases before the database had a file for each part of a
//! message, in `storage`; they are not captured either.

use super::super::file_place::FilePlace;

pub(super) const TOPS: [&str; 0] = [];

pub(super) fn place(_names: &[&str]) -> Option<FilePlace> {
    None
}

pub(super) fn may_hold(names: &[&str]) -> bool {
    names.is_empty()
}
