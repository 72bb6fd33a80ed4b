//! The command line of `steno spine`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub struct SpineArgs {
    #[command(subcommand)]
    pub what: SpineDo,
}

#[derive(Debug, Subcommand)]
pub enum SpineDo {
    /// List the spines of the store
    ///
    /// A quick look: what is sealed is not read, so only `damaged` is certain. `spine validate` reads all of it.
    Ls(SpineLsArgs),
    /// Record sessions of Codex as spines
    ///
    /// From its session files, from what it writes below `CODEX_ROLLOUT_TRACE_ROOT`, or from the archive. What a spine has
    /// already is not written again, so that a session that has grown is gone on with. `steno app-server` records live.
    Record(SpineRecordArgs),
    /// Check a spine or a bundle, rule by rule
    ///
    /// Every line, number, payload and artifact, and every segment against its meta file; of a bundle, all that it says of
    /// itself. Changes nothing. A segment that a crash left open, a torn end of it, and numbers that somebody else left out
    /// are told and are no errors. Exit code 1 means that there is an error. `docs/format/spine.md` lists the rules.
    Validate(SpineValidateArgs),
    /// Put a spine with its rollout and artifacts into a directory or an archive
    ///
    /// The same spine always gives the same bytes. Nothing is ever written over. Shell snapshots, which hold secrets, are
    /// left out unless asked for; what is left out is said, and stands in `bundle.json`.
    Bundle(SpineBundleArgs),
}

#[derive(Args, Debug)]
pub struct SpineLsArgs {
    /// Print one JSON object a spine
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct SpineRecordArgs {
    /// A session file, the directory of a trace, or a thread of the archive
    #[arg(required = true, value_name = "FILE|DIR|THREAD")]
    pub sources: Vec<String>,
    /// Print one JSON object a source
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct SpineValidateArgs {
    /// A directory of segments, a bundle (directory, `.tar.zst` or `.tar`), or a thread of the store [default: every spine
    /// of the store]
    #[arg(value_name = "DIR|BUNDLE|THREAD")]
    pub what: Option<String>,
    /// If there is no error, seal what a crash left open; a torn end is moved aside and kept
    #[arg(long)]
    pub repair: bool,
    /// Print one JSON object a finding, and one for each spine at its end
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct SpineBundleArgs {
    /// The thread, or the beginning of its id
    pub thread: String,
    /// Where to: `FILE.tar.zst`, or else a directory; nothing may stand there
    #[arg(long, short, value_name = "DIR|FILE.tar.zst")]
    pub output: PathBuf,
    /// Put shell snapshots in too: every variable that was exported, keys and tokens among them
    #[arg(long)]
    pub with_snapshot: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
