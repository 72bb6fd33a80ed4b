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
    /// Write sessions as ATIF trajectories, version 1.8
    ///
    /// One step of the agent for each response of the model, results under their calls, subagents inside the trajectory
    /// that began them, exact metrics. Pictures and other media become files in `media`, called by their hash. The same
    /// record always gives the same bytes; `docs/atif.md` says what becomes what.
    ///
    /// A session without a step cannot be written. It is said, and the others are written; if it was named the exit code is
    /// 1, and with `--all` it is left out and counted.
    Atif(AtifArgs),
    /// Check ATIF trajectories, more strictly than Harbor does
    ///
    /// Exit code 1 means that a file is no valid trajectory. `docs/atif.md` lists the rules.
    Check(CheckArgs),
}

#[derive(Args, Debug)]
pub struct AtifArgs {
    /// A session (its UUID, four or more characters that it begins or ends with, or `last`), as its agent names it, a transcript file, or a file or directory of an agent
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub runs: Vec<String>,
    /// Write every session of the store
    #[arg(long, conflicts_with = "runs")]
    pub all: bool,
    /// Where to: `x.json` for one trajectory, `x.jsonl` for one a line, `-` for stdout, which takes no media, and else a
    /// directory, with `<run>.json` for each
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// Replace files that are there already
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object a trajectory, and one for all
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Trajectories; of a file that ends in `.jsonl`, one a line; of a directory every `.json` and `.jsonl` in it; `-` for
    /// stdin
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<PathBuf>,
    /// Print one JSON object a finding, and one a file
    #[arg(long)]
    pub json: bool,
}
