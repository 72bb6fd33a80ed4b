//! What the vault promises: bytes come back as they were, whatever was done to their file and to the process.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod crashes;
mod faults;
mod forgetting;
mod formats;
mod keeping;
mod kit;
mod model;
mod packs;
mod rewriting;
mod threads;
mod verifying;
mod weighing;
