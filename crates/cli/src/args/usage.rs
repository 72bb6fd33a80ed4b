//! The arguments of `steno usage`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use steno_library::UsageColumn;

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "these are flags")]
pub struct UsageArgs {
    /// Read only these files or directories of agents [default: the store, and files that are not archived yet]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Read only the agents' homes, not the store
    #[arg(long, conflicts_with = "paths")]
    pub live: bool,
    /// Columns to group by, in this order, separated by commas [default: day,model]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', hide_default_value = true,
        default_values_t = [UsageGroup(UsageColumn::Day), UsageGroup(UsageColumn::Model)])]
    pub by: Vec<UsageGroup>,
    /// Count only usage at or after this time: `today`, `monday`, `last-week`, `2h`, `3d`, `2026-11-01`
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Count only usage before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Count only sessions of projects whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub project: Option<String>,
    /// Count only sessions of this agent: `claude`, `codex`, `gemini`, `copilot`, …
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Count only models whose names contain this
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Count only sessions on this branch
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Use days, weeks, months and windows of UTC, not of local time
    #[arg(long)]
    pub utc: bool,
    /// Print one line for the status line of Claude Code, whose JSON is read from stdin
    #[arg(long, conflicts_with_all = ["paths", "live", "by", "since", "until", "project", "agent", "model", "branch", "json"])]
    pub statusline: bool,
    /// Do not start a pager on a terminal
    #[arg(long)]
    pub no_pager: bool,
    /// Print one JSON object per row
    #[arg(long)]
    pub json: bool,
}

/// A column that `usage` groups by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageGroup(pub UsageColumn);

impl ValueEnum for UsageGroup {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [UsageGroup; UsageColumn::ALL.len()] = {
            let mut all = [UsageGroup(UsageColumn::Day); UsageColumn::ALL.len()];
            let mut place = 0;
            while place < all.len() {
                all[place] = UsageGroup(UsageColumn::ALL[place]);
                place += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

impl std::fmt::Display for UsageGroup {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.0.name())
    }
}
