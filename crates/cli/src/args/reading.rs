//! Arguments of the commands that list and show sessions.

use clap::Args;
use steno_model::RunId;

use super::{EventFormat, FilterArgs};
use crate::time_words::TimeForm;

/// How much `show` and `follow` show.
const DETAIL: u8 = 2;

/// Arguments of `tree` and `show`.
#[derive(Args, Debug)]
pub struct ViewArgs {
    /// A session (its UUID, four or more characters of its beginning or end, or `last`), a transcript file, or an
    /// agent's file or directory; `RUN:SEQ` (only for `show`) is the turn of an event
    pub run: String,
    /// Show every system step, instead of one line for several in a row
    #[arg(long)]
    pub all: bool,
    /// Do not start a pager on a terminal
    #[arg(long)]
    pub no_pager: bool,
    /// Print one JSON object per line: a tree (`tree`), or the conversation of a session (`show`)
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ShowArgs {
    #[command(flatten)]
    pub view: ViewArgs,
    /// How much to show: 0 prompts and final answers, 1 calls as lines, 2 diffs and outputs of commands, 3 outputs of all
    /// calls, 4 everything
    #[arg(short = 't', long, value_name = "LEVEL", default_value_t = DETAIL, value_parser = clap::value_parser!(u8).range(0..=4))]
    pub detail: u8,
    /// List the branches of the session: copies that continued differently, each with its first event as RUN:SEQ
    #[arg(long, conflicts_with = "all")]
    pub branches: bool,
    /// List where each prompt, call, result, approval, usage and end comes from: the run and its channel
    #[arg(long, conflicts_with_all = ["all", "branches"])]
    pub channels: bool,
}

impl ShowArgs {
    /// Returns the arguments of `steno show RUN`.
    pub fn of(run: RunId) -> Self {
        let view = ViewArgs { run: run.to_string(), all: false, no_pager: false, json: false };
        Self { view, detail: DETAIL, branches: false, channels: false }
    }
}

#[derive(Args, Debug)]
pub struct FollowArgs {
    /// A session or a run: its UUID, four or more characters of its beginning or end, or `last`; without it, the
    /// session that is being recorded
    pub run: Option<String>,
    /// How much to show, as with `steno show`
    #[arg(short = 't', long, value_name = "LEVEL", default_value_t = DETAIL, value_parser = clap::value_parser!(u8).range(0..=4))]
    pub detail: u8,
    /// Show one line per event instead of a conversation
    #[arg(long)]
    pub events: bool,
    /// Start with this event of the run, and read no other run
    #[arg(long, value_name = "SEQ", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub from: u64,
    #[command(flatten)]
    pub form: EventFormat,
    /// Wait for a run that does not exist yet; needs its whole UUID
    #[arg(long)]
    pub wait: bool,
}

/// The options that choose sessions.
const FILTERS: [&str; 10] =
    ["since", "until", "project", "agent", "model", "branch", "failed", "touched", "live", "gone"];

#[derive(Args, Debug)]
pub struct LsArgs {
    /// Only sessions whose title, project or branch contains these words
    #[arg(value_name = "WORD", conflicts_with = "runs")]
    pub words: Vec<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// List at most this many sessions or runs; 0 lists all [default: 40 on a terminal, else all]
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
    #[command(flatten)]
    pub time: TimeArgs,
    /// List every run, including subagents, copies, streams and connections; filters do not apply
    #[arg(long, conflicts_with_all = FILTERS)]
    pub runs: bool,
    /// Do not start a pager on a terminal
    #[arg(long)]
    pub no_pager: bool,
    /// Print one JSON object per session, or per run with `--runs`
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ChangesArgs {
    /// Only changes of this file, or of files in this directory
    pub path: Option<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// List at most this many changes; 0 lists all [default: 20 on a terminal, else all]
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
    #[command(flatten)]
    pub time: TimeArgs,
    /// Do not start a pager on a terminal
    #[arg(long)]
    pub no_pager: bool,
    /// Print one JSON object per changed file
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct FailuresArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    /// List at most this many failures; 0 lists all [default: 20 on a terminal, else all]
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
    #[command(flatten)]
    pub time: TimeArgs,
    /// Do not start a pager on a terminal
    #[arg(long)]
    pub no_pager: bool,
    /// Print one JSON object per call
    #[arg(long)]
    pub json: bool,
}

/// How a list shows times.
#[derive(Args, Clone, Copy, Debug)]
pub struct TimeArgs {
    /// Show local times instead of ages
    #[arg(long)]
    pub local: bool,
    /// Show times in UTC instead of ages
    #[arg(long, conflicts_with = "local")]
    pub utc: bool,
}

impl TimeArgs {
    pub fn form(self) -> TimeForm {
        match (self.utc, self.local) {
            (true, _) => TimeForm::Utc,
            (false, true) => TimeForm::Local,
            (false, false) => TimeForm::Age,
        }
    }
}
