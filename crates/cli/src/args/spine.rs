//! The command line of `steno spine`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use steno_exports::harbor::{Concern, Span};

#[derive(Args, Debug)]
pub struct SpineArgs {
    #[command(subcommand)]
    pub command: SpineCommand,
}

#[derive(Debug, Subcommand)]
pub enum SpineCommand {
    /// List the spines of the store
    ///
    /// Sealed segments are not read, so only the state `damaged` is certain. `spine validate` reads everything.
    Ls(SpineLsArgs),
    /// Record sessions of Codex as spines
    ///
    /// Sources are Codex's session files, what Codex writes below `CODEX_ROLLOUT_TRACE_ROOT`, or files in the store.
    /// In a directory that is not a trace, every session file is recorded (`rollout-*.jsonl`, with or without zstd
    /// compression). Records that a spine already has are not written again, so a session that has grown is
    /// continued. If one source cannot be recorded, the others are recorded anyway. `steno app-server` records live.
    Record(SpineRecordArgs),
    /// Check a spine or a bundle, rule by rule
    ///
    /// Checks every line, number, payload and artifact, every segment against its meta file, and everything that a
    /// bundle says about itself. Changes nothing. Segments that a crash left open, incomplete
    /// last lines, and numbers skipped by other programs are reported, but are not errors. Exit code 1 means that there
    /// is an error.
    /// `docs/format/spine.md` lists the rules.
    Validate(SpineValidateArgs),
    /// Write a spine with its rollout and artifacts to a bundle
    ///
    /// The same spine always gives the same bytes. Existing files are never overwritten. Shell snapshots contain
    /// secrets: they are left out unless you ask for them, and are then masked. Everything that is left out or
    /// changed is reported, and listed in `bundle.json`.
    Bundle(SpineBundleArgs),
    /// Distill turns of a session into Harbor tasks
    ///
    /// The instruction is what the user said. The environment is the recorded commit with the recorded changes. The
    /// check is a command of the session that succeeded after the last change: tests are preferred to builds, and
    /// builds to linters. Without such a command, the check compares the changes themselves. Nothing is guessed:
    /// if the record lacks something, `task.toml` says so, or the window (the turns of the task) is refused with the
    /// reason. The same bundle always gives the same bytes. `docs/harbor.md` has the rules.
    ///
    /// If a requested window is refused, the exit code is 1; with `--each-turn`, only if no task was made.
    Distill(SpineDistillArgs),
}

#[derive(Args, Debug)]
pub struct SpineLsArgs {
    /// Print one JSON object per spine
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct SpineRecordArgs {
    /// A session file, a directory of session files, a trace directory, or a thread of the store: its id, or the
    /// beginning or end of its id
    #[arg(required_unless_present = "all", value_name = "FILE|DIR|THREAD")]
    pub sources: Vec<String>,
    /// Record every thread of Codex that has a session file in the store
    #[arg(long, conflicts_with = "sources")]
    pub all: bool,
    /// Record forgotten sessions too, as if they were new
    #[arg(long)]
    pub again: bool,
    /// Print one JSON object per source
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct SpineValidateArgs {
    /// A directory of segments, a bundle (directory, `.tar.zst` or `.tar`), or a thread of the store [default: every
    /// spine of the store]
    #[arg(value_name = "DIR|BUNDLE|THREAD")]
    pub what: Option<String>,
    /// If there are no errors, seal segments that a crash left open; an incomplete last line is moved to another file
    #[arg(long)]
    pub repair: bool,
    /// Print one JSON object per finding, and one per spine at its end
    #[arg(long)]
    pub json: bool,
}

/// How shell snapshots are written to a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SnapshotForm {
    /// Without the values of exported variables
    Masked,
    /// Unchanged
    Whole,
}

#[derive(Args, Debug)]
pub struct SpineBundleArgs {
    /// The thread: its id, the beginning or end of its id, or `last`
    pub thread: String,
    /// Output: `FILE.tar.zst`, or else a directory; it must not exist
    #[arg(long, short, value_name = "DIR|FILE.tar.zst")]
    pub output: PathBuf,
    /// Include shell snapshots, with the values of exported variables masked; `whole` includes them unchanged, with
    /// keys and tokens [default: they are left out]
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "masked")]
    pub with_snapshot: Option<SnapshotForm>,
    /// If the thread is a fork, include the rollouts of the threads that it continues
    #[arg(long)]
    pub with_base: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("window").required(true).multiple(false).args(["turns", "seqs", "each_turn", "list"])))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct SpineDistillArgs {
    /// A bundle (directory, `.tar.zst` or `.tar`), a directory of segments, or a thread of the store
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<String>,
    /// The turns of a task: `3`, `2..4` (inclusive), `2..` or `..4`; repeat it for several tasks
    #[arg(long, value_name = "A..B", value_parser = turns)]
    pub turns: Vec<Span>,
    /// The records of a task, by number; they must cover whole turns
    #[arg(long = "seq", value_name = "M..N", value_parser = seqs)]
    pub seqs: Vec<Span>,
    /// Make a task from each suitable turn
    #[arg(long)]
    pub each_turn: bool,
    /// Show the turns and what each would become; write nothing
    #[arg(long)]
    pub list: bool,
    /// Output: the directory of the task, or the parent directory of several tasks
    #[arg(long, short, value_name = "DIR", required_unless_present = "list", conflicts_with = "list")]
    pub output: Option<PathBuf>,
    /// Read the repository from here, and include the recorded commit in the task [default: the task fetches it from
    /// the recorded address when it is built]
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// Directory of the repository during the session, if not the recorded one
    #[arg(long, value_name = "PATH", value_parser = root)]
    pub root: Option<String>,
    /// Base image of the task; the record does not contain it [default: debian:bookworm-slim]
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub image: Option<String>,
    /// Make a task from a doubtful window anyway, with a label; can be repeated
    #[arg(long, value_name = "CONCERN", value_parser = PossibleValuesParser::new(Concern::ALL.map(Concern::as_str)))]
    pub allow: Vec<String>,
    /// Run each task here before it is kept: its check must fail before the solution and succeed after it. This runs
    /// recorded commands on this machine, with your permissions
    #[arg(long = "try", requires = "repo")]
    pub trial: bool,
    /// Leave out `trajectory.json`, the history before the task; agents that cannot start from it refuse the task
    #[arg(long)]
    pub no_trajectory: bool,
    /// Print one JSON object per window
    #[arg(long)]
    pub json: bool,
}

fn turns(text: &str) -> Result<Span, String> {
    // As other commands name a turn.
    let text = text.strip_prefix("turn-").filter(|number| !number.contains("..")).unwrap_or(text);
    let (first, last) = range(text)?;
    let number = |number: u64| u32::try_from(number).map_err(|_| "the number is too large".to_owned());
    Ok(Span::Turns(number(first)?, last.map_or(Ok(u32::MAX), number)?))
}

fn seqs(text: &str) -> Result<Span, String> {
    let (first, last) = range(text)?;
    Ok(Span::Seqs(first, last.unwrap_or(u64::MAX)))
}

/// Parses `A`, `A..B`, `A..` or `..B`; numbers start at 1.
fn range(text: &str) -> Result<(u64, Option<u64>), String> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let wrong = || "use a number from 1, or a range like `2..4`".to_owned();
    let Some((first, last)) = text.split_once("..") else {
        let only = number(text).ok_or_else(wrong)?;
        return Ok((only, Some(only)));
    };
    let first = if first.is_empty() { 1 } else { number(first).ok_or_else(wrong)? };
    let last = if last.is_empty() { None } else { Some(number(last).ok_or_else(wrong)?) };
    match last {
        Some(last) if last < first => Err("the second number is smaller than the first".to_owned()),
        _ => Ok((first, last)),
    }
}

/// Parses an absolute path.
fn root(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && !text.split('/').any(|part| part == "..");
    if is_path { Ok(text.to_owned()) } else { Err("use an absolute path like `/srv/project`".to_owned()) }
}

/// Parses the name of an image; refuses anything that has another meaning in a Dockerfile.
fn image(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let is_image =
        text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_plain);
    if is_image { Ok(text.to_owned()) } else { Err("not the name of an image".to_owned()) }
}
