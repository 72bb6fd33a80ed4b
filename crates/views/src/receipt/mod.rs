//! Receipts of turns, built from their records alone (003).
//!
//! The same records give the same bytes. Counts come from known kinds of items and names of events, never from free text.
//! What is not known is null, with a reason.

mod approvals;
mod build;
mod compare;
mod facts;
mod integrity;
pub mod merkle;
mod pretty;
mod text;

pub use approvals::Approvals;
pub use build::{Mismatch, MissingEvents, ReceiptInput, RecordOrigin, build};
pub use compare::{Difference, first_difference};
pub use facts::{Channel, TurnFacts};
pub use integrity::{IntegrityError, Prover, check_lines};
pub use text::text;

use pretty::pretty;
use steno_model::receipt::Receipt;

/// Returns a receipt as it is written to a file: the same bytes for the same receipt.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "receipts are strings and numbers")]
pub fn to_json(receipt: &Receipt) -> String {
    let compact = serde_json::to_string(receipt).expect("receipts are strings and numbers");
    let mut text = pretty(&compact);
    text.push('\n');
    text
}
