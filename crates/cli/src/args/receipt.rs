//! The command line of `steno receipt`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Args, Debug)]
pub struct ReceiptArgs {
    #[command(subcommand)]
    pub command: ReceiptCommand,
}

#[derive(Debug, Subcommand)]
pub enum ReceiptCommand {
    /// Print the receipt of a turn
    ///
    /// Built from the record alone, and always the same bytes. What the record does not say is null, and listed under
    /// `unavailable` with the reason. No thought and no tool's output is in it. Nothing is written anywhere.
    Export(ReceiptExportArgs),
    /// List the turns that there are receipts of
    Ls(ReceiptLsArgs),
    /// Print the lines that a receipt is made of, byte for byte
    ///
    /// Whoever has these and a receipt with `integrity` can check both without the store, with `receipt verify --lines`.
    Lines(ReceiptTurnArgs),
    /// Check a receipt: make all of it anew, and name the first difference
    ///
    /// Against the store; or, without one, against a transcript file, a directory of records, or just the lines that it is
    /// made of. Says what that proves, and what not. Exit code 1 means that it does not hold, or that there is nothing to
    /// check it against.
    Verify(ReceiptVerifyArgs),
}

/// Which turn of which session.
#[derive(Args, Debug)]
pub struct ReceiptTurnArgs {
    /// The session: its UUID, four or more characters that it begins or ends with, `last`, or a transcript file; of `--records`, a thread's id
    #[arg(long, value_name = "THREAD")]
    pub thread: String,
    /// The turn, like `turn-0001`, or as its provider calls it
    #[arg(long, value_name = "TURN")]
    pub turn: String,
}

#[derive(Args, Debug)]
pub struct ReceiptExportArgs {
    #[command(flatten)]
    pub of: ReceiptTurnArgs,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub format: ReceiptFormat,
    /// Add hashes of the lines it is made of, and proofs that these are lines of the run
    #[arg(long, conflicts_with = "records")]
    pub integrity: bool,
    /// Read a directory of records (`threads/`, `turns/`, `items/`, `events/`) instead of the store
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReceiptFormat {
    /// For programs, and to be checked
    Json,
    /// For people
    Text,
}

#[derive(Args, Debug)]
pub struct ReceiptLsArgs {
    /// Only turns of this session
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Read a directory of records instead of the store
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// Print one JSON object a turn
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ReceiptVerifyArgs {
    /// The receipt, as `receipt export` has printed it; `-` for stdin
    #[arg(value_name = "FILE")]
    pub receipt: PathBuf,
    /// Check it against this transcript file alone; repeat it for a session of several runs
    #[arg(long = "transcript", value_name = "FILE")]
    pub transcripts: Vec<PathBuf>,
    /// Check it against the lines that it is made of, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "transcripts")]
    pub lines: Option<PathBuf>,
    /// Check it against a directory of records
    #[arg(long, value_name = "DIR", conflicts_with_all = ["transcripts", "lines"])]
    pub records: Option<PathBuf>,
    /// Print one JSON object: `holds` is null if it could not be checked
    #[arg(long)]
    pub json: bool,
}
