//! Receipts from what is stored: export, and checking of those that somebody shows.
//!
//! A receipt is built by `steno-views`; here its records are read, and nothing is written (R93).

mod directory;
mod error;
mod session;
mod superseded;
mod verify;

pub use directory::Directory;
pub use error::Error;
pub use session::{ReadSession, Wanted, WantedRun};
pub use verify::{Against, Proven, verify};

use steno_journal::Store;
use steno_model::RunId;
use steno_model::receipt::Receipt;

/// Exports the receipt of a turn of a session.
///
/// # Errors
/// When there is no such run or turn, or the run cannot be read.
pub fn export(store: &Store, run: RunId, turn: &str, wanted: Wanted) -> Result<Receipt, Error> {
    let wanted = Wanted { turn: Some(turn.to_owned()), ..wanted };
    ReadSession::of_store(store, run, wanted)?.receipt(turn)
}
