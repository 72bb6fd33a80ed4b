//! Entries as logs.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod logging;
