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
    /// The receipt is built from the record alone, and always has the same bytes. A value that the record does not
    /// have is null, and listed under `unavailable` with the reason. Receipts contain no reasoning and no tool
    /// output. Nothing is written to the store.
    Export(ReceiptExportArgs),
    /// List the turns that have a receipt
    Ls(ReceiptLsArgs),
    /// Print the lines that a receipt is made from, byte for byte
    ///
    /// With these lines and a receipt with `integrity`, anyone can check both without the store: see `receipt verify
    /// --lines`.
    Lines(ReceiptTurnArgs),
    /// Verify a receipt: build it again, and show the first difference
    ///
    /// The receipt is checked against the store or, with an option, against a transcript file, a directory of records,
    /// or only the lines that it is made from. The output says what this proves and what it does not. Exit code 1 means
    /// that the receipt does not hold, or that there is nothing to check it against.
    Verify(ReceiptVerifyArgs),
}

/// Names a turn of a session.
#[derive(Args, Debug)]
pub struct ReceiptTurnArgs {
    /// The session: its UUID, four or more characters of its beginning or end, `last`, or a transcript file; with
    /// `--records`, the id of a thread
    #[arg(long, value_name = "THREAD")]
    pub thread: String,
    /// The turn, like `turn-0001`, or the agent's own name for it
    #[arg(long, value_name = "TURN")]
    pub turn: String,
}

#[derive(Args, Debug)]
pub struct ReceiptExportArgs {
    #[command(flatten)]
    pub of: ReceiptTurnArgs,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub format: ReceiptFormat,
    /// Add hashes of the lines that the receipt is made from, and proofs that they are lines of their runs
    #[arg(long, conflicts_with = "records")]
    pub integrity: bool,
    /// Read a directory of records (`threads/`, `turns/`, `items/`, `events/`) instead of the store
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReceiptFormat {
    /// For programs, and for `receipt verify`
    Json,
    /// For people
    Text,
}

#[derive(Args, Debug)]
pub struct ReceiptLsArgs {
    /// List only the turns of this session
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// Read a directory of records instead of the store
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// Print one JSON object per turn
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ReceiptVerifyArgs {
    /// The receipt, as printed by `receipt export`; `-` for stdin
    #[arg(value_name = "FILE")]
    pub receipt: PathBuf,
    /// Check against this transcript file only; repeat it for a session of several runs
    #[arg(long = "transcript", value_name = "FILE")]
    pub transcripts: Vec<PathBuf>,
    /// Check only against the lines that the receipt is made from
    #[arg(long, value_name = "FILE", conflicts_with = "transcripts")]
    pub lines: Option<PathBuf>,
    /// Check against a directory of records
    #[arg(long, value_name = "DIR", conflicts_with_all = ["transcripts", "lines"])]
    pub records: Option<PathBuf>,
    /// Print one JSON object; `holds` is null if the receipt could not be checked
    #[arg(long)]
    pub json: bool,
}
