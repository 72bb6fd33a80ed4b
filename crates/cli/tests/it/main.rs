//! The `steno` binary as its users meet it.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod kill;
mod kit;
