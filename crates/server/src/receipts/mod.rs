//! Receipts from stored sessions: export, and verification of given receipts.
//!
//! `steno-views` builds a receipt. This module reads its records, and writes nothing (R93).

mod directory;
mod error;
mod session;
mod superseded;
mod verify;

pub use directory::Directory;
pub use error::Error;
pub use session::{ReadOptions, ReceiptSession, RunSelection};
pub use verify::{Reference, VerifyReport, verify};

use steno_journal::Store;
use steno_model::RunId;
use steno_model::receipt::Receipt;

/// Exports the receipt of a turn of a session.
///
/// # Errors
/// When there is no such run or turn, or the run cannot be read.
pub fn export(store: &Store, run: RunId, turn: &str, wanted: ReadOptions) -> Result<Receipt, Error> {
    let wanted = ReadOptions { turn: Some(turn.to_owned()), ..wanted };
    ReceiptSession::of_store(store, run, wanted)?.receipt(turn)
}
