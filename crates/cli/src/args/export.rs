//! The command line of `steno export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub struct ExportArgs {
    #[command(subcommand)]
    pub command: ExportCommand,
}

#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Export sessions as ATIF trajectories, version 1.8
    ///
    /// Each response of the model becomes one agent step, with tool results under their calls, subagents inside the
    /// trajectory that started them, and exact metrics. Images and other media become files in `media`, named by
    /// their hash. The same record always gives the same bytes. `docs/atif.md` describes the mapping.
    ///
    /// A session without steps cannot be exported. The other sessions are exported anyway. If the session was named,
    /// the exit code is 1; with `--all` it is skipped and counted.
    Atif(AtifArgs),
    /// Check ATIF trajectories, more strictly than Harbor does
    ///
    /// Exit code 1 means that a file is not a valid trajectory. `docs/atif.md` lists the rules.
    Check(CheckArgs),
}

#[derive(Args, Debug)]
pub struct AtifArgs {
    /// A session (its UUID, four or more characters of its beginning or end, `last`, or the agent's own name for it),
    /// a transcript file, or an agent's file or directory
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub runs: Vec<String>,
    /// Export every session of the store
    #[arg(long, conflicts_with = "runs")]
    pub all: bool,
    /// Output: `x.json` for one trajectory, `x.jsonl` for one trajectory per line, `-` for stdout (without media), or
    /// else a directory with `<run>.json` for each
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object per trajectory, and a summary
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Trajectories: a `.json` file, a `.jsonl` file with one trajectory per line, a directory with such files, or
    /// `-` for stdin
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<PathBuf>,
    /// Print one JSON object per finding, and one per file
    #[arg(long)]
    pub json: bool,
}
