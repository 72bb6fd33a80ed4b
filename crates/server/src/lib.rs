//! Receipts of turns, live events, and the local HTTP API over a store.
//!
//! [`receipts`] builds and checks receipts from runs of the store, from transcript files and from directories of records.
//! Nothing here writes to them.

pub mod http;
pub mod live;
pub mod receipts;
