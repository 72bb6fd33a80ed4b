//! What a store answers: receipts of turns, and the local HTTP API in front of everything.
//!
//! [`receipts`] builds and checks receipts from runs of the store, from transcript files and from directories of records.
//! Nothing here writes to any of these.

pub mod http;
pub mod live;
pub mod receipts;
