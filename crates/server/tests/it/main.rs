//! What the crate promises, tested from outside.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod api_kit;
mod http;
mod limits;
mod live;
mod odd_sessions;
mod receipts;
mod security;
mod two_runs;
