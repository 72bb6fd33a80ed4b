//! Arguments of the commands that list and show sessions.

use clap::Args;

use super::EventFormat;

/// Arguments of `tree` and `show`.
#[derive(Args, Debug)]
pub struct ViewArgs {
    /// A session (its UUID, four or more characters of its beginning or end, or `last`), a transcript file, or an
    /// agent's file or directory; with `show`, `RUN:SEQ` is the turn of an event
    pub run: String,
    /// Show every system step, instead of one line for several in a row
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object per line: a tree, or the conversation of a run
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ShowArgs {
    #[command(flatten)]
    pub view: ViewArgs,
    /// List the branches of the session: copies that continued differently, each with its first event as RUN:SEQ
    #[arg(long, conflicts_with = "all")]
    pub branches: bool,
    /// List where each prompt, call, result, approval, usage and end comes from: the run and its channel
    #[arg(long, conflicts_with_all = ["all", "branches"])]
    pub channels: bool,
}

#[derive(Args, Debug)]
pub struct FollowArgs {
    /// A run: its UUID, four or more characters of its beginning or end, or `last`
    pub run: String,
    /// Start with this event
    #[arg(long, value_name = "SEQ", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub from: u64,
    #[command(flatten)]
    pub form: EventFormat,
    /// Wait for a run that does not exist yet; needs its whole UUID
    #[arg(long)]
    pub wait: bool,
}

#[derive(Args, Debug)]
pub struct LsArgs {
    /// List every run, including subagents, copies, streams and connections
    #[arg(long)]
    pub runs: bool,
    /// Print one JSON object per session, or per run with `--runs`
    #[arg(long)]
    pub json: bool,
}
