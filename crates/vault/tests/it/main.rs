//! What the vault promises: bytes come back as they were, whatever was done to their file and to the process.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod crashes;
mod faults;
mod forget;
mod formats;
mod kit;
mod model;
mod packs;
mod rewrite;
mod round_trip;
mod threads;
mod usage;
mod verify;
