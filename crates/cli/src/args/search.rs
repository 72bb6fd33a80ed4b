//! Arguments of `steno search`, and the filters of sessions.

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub struct SearchArgs {
    /// What to look for: words, "a phrase", a prefix*, /a regular expression/; limited by `in:`, `tool:`, `path:`, `exit:`
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,
    /// Look for the text as it is, with its case and punctuation
    #[arg(long)]
    pub exact: bool,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Show at most this many sessions; 0 shows all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Leave out this many sessions, to read on after an earlier search
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub skip: usize,
    /// Show at most this many hits of each session; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub hits: usize,
    /// Fit the output into about this many tokens of a language model
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<usize>,
    /// Do not start a pager on a terminal
    #[arg(long)]
    pub no_pager: bool,
    /// Print one JSON object per hit, and a last one that says what was searched
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct IndexArgs {
    #[command(subcommand)]
    pub command: Option<IndexCommand>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub enum IndexCommand {
    /// Delete the index and make it again from the transcripts
    Rebuild,
}

/// Which sessions a command is about.
#[derive(Args, Debug)]
pub struct FilterArgs {
    /// Only sessions with an event since this time: `today`, `monday`, `last-week`, `2h`, `3d`, `2026-11-01`
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only sessions that began before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only sessions of projects whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub project: Option<String>,
    /// Only sessions of this agent: `claude`, `codex`, `gemini`, `copilot`, …
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only sessions with a model whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Only sessions on this branch
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Only sessions that failed or have a failed call
    #[arg(long)]
    pub failed: bool,
    /// Only sessions that changed this file or directory
    #[arg(long, value_name = "PATH")]
    pub touched: Option<String>,
    /// Only sessions that are being recorded, or grew within a minute
    #[arg(long)]
    pub live: bool,
    /// Only sessions that the agent deleted, shortened or rewrote
    #[arg(long)]
    pub gone: bool,
}
