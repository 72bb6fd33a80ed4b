//! Tests of the server, from outside.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod http;
mod limits;
mod live;
mod receipts;
mod security;
mod test_server;
mod two_runs;
mod unusual_sessions;
