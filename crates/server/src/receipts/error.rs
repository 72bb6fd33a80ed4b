//! Why a receipt cannot be built, or is not valid.

use std::path::PathBuf;

use steno_model::RunId;
use steno_views::receipt::{Difference, IntegrityError, Mismatch};

/// Why a receipt cannot be built, or is not valid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run cannot be read.
    #[error(transparent)]
    Journal(#[from] steno_journal::Error),
    /// The store cannot be read.
    #[error(transparent)]
    Library(#[from] steno_library::Error),
    /// There is no such turn.
    #[error("thread `{thread}` has no turn `{turn}`")]
    NoSuchTurn {
        /// The thread.
        thread: String,
        /// The name that was given.
        turn: String,
        /// The turns that there are.
        turns: Vec<String>,
    },
    /// Several turns have the same name.
    #[error("{} turns of thread `{thread}` are named `{turn}`", turns.len())]
    Ambiguous {
        /// The thread.
        thread: String,
        /// The name that was given.
        turn: String,
        /// The turns with this name.
        turns: Vec<String>,
    },
    /// Records do not belong together.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The input is not a receipt.
    #[error("not a receipt: {0}")]
    NoReceipt(String),
    /// A field of the receipt differs from the record.
    #[error("`{}` is {} in the receipt and {} in the record", .0.field, or_missing(.0.in_receipt.as_ref()), or_missing(.0.in_record.as_ref()))]
    Differs(Difference),
    /// The receipt has the right values in other bytes.
    #[error("the values match the record, but the bytes differ: the receipt was reformatted")]
    OtherBytes,
    /// The given lines are not those of the receipt.
    #[error(transparent)]
    Lines(#[from] IntegrityError),
    /// The receipt has no hashes of lines.
    #[error("the receipt has no `integrity`, so its lines cannot be checked")]
    NoIntegrity,
    /// The receipt uses a run whose transcript is missing.
    #[error("the receipt also uses run {run}, and its transcript was not given")]
    NotGiven {
        /// The run.
        run: RunId,
    },
    /// A file of records cannot be read.
    #[error("cannot read `{}`: {why}", path.display())]
    Records {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

fn or_missing(value: Option<&String>) -> &str {
    value.map_or("missing", String::as_str)
}

impl Error {
    /// Tells whether the record cannot be read, or is not the one that the receipt was made from.
    pub(super) fn is_of_record(&self) -> bool {
        match self {
            Self::Journal(steno_journal::Error::NoSuchRun { .. } | steno_journal::Error::Damaged { .. })
            | Self::NoSuchTurn { .. }
            | Self::Ambiguous { .. }
            | Self::Mismatch(_)
            | Self::Differs(_) => true,
            Self::Journal(_)
            | Self::Library(_)
            | Self::NoReceipt(_)
            | Self::OtherBytes
            | Self::NotGiven { .. }
            | Self::Lines(_)
            | Self::NoIntegrity
            | Self::Records { .. } => false,
        }
    }
}
