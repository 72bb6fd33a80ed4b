//! Why there is no receipt, or why one does not hold.

use std::path::PathBuf;

use steno_model::RunId;
use steno_views::receipt::{Difference, IntegrityError, Mismatch};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run cannot be read.
    #[error(transparent)]
    Journal(#[from] steno_journal::Error),
    /// The store cannot be looked through.
    #[error(transparent)]
    Library(#[from] steno_library::Error),
    /// There is no such turn.
    #[error("thread `{thread}` has no turn `{turn}`")]
    NoSuchTurn {
        /// The thread.
        thread: String,
        /// What was asked for.
        turn: String,
        /// The turns that there are.
        turns: Vec<String>,
    },
    /// The provider has given several turns one name.
    #[error("`{turn}` is the name of {} turns of thread `{thread}`", turns.len())]
    Ambiguous {
        /// The thread.
        thread: String,
        /// What was asked for.
        turn: String,
        /// The turns that are called so.
        turns: Vec<String>,
    },
    /// Records do not belong together.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// What is to be checked is no receipt.
    #[error("this is no receipt: {0}")]
    NoReceipt(String),
    /// The receipt says something else than the record.
    #[error("`{}` is {} in the receipt, and {} by the record", .0.field, said(.0.said.as_ref()), said(.0.found.as_ref()))]
    Differs(Difference),
    /// The receipt says the same in other bytes.
    #[error("the receipt says what the record does, and not in the same bytes: it was written anew")]
    OtherBytes,
    /// The lines that were shown are not those of the receipt.
    #[error(transparent)]
    Lines(#[from] IntegrityError),
    /// The receipt has nothing to check lines with.
    #[error("the receipt has no `integrity`, and so nothing to check lines with")]
    NoIntegrity,
    /// The receipt is made of a run whose transcript is not there.
    #[error("the receipt is made of run {run} too, and its transcript is not given")]
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

fn said(value: Option<&String>) -> &str {
    value.map_or("not there", String::as_str)
}

impl Error {
    /// Tells whether the record cannot be read, or is another than the one that the receipt was made from.
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
