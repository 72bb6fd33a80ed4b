//! Tests of the vault: bytes read back unchanged, whatever happens to their file and to the process.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod crashes;
mod faults;
mod forget;
mod formats;
mod kit;
mod model;
mod outlines;
mod packs;
mod rewrite;
mod round_trip;
mod shared_crashes;
mod threads;
mod usage;
mod verify;
