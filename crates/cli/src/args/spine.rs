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
    /// A quick look: what is sealed is not read, so only `damaged` is certain. `spine validate` reads all of it.
    Ls(SpineLsArgs),
    /// Record sessions of Codex as spines
    ///
    /// From its session files, from what it writes below `CODEX_ROLLOUT_TRACE_ROOT`, or from the archive. Of a directory that
    /// is no trace, every session file below it is recorded (`rollout-*.jsonl`, compressed with zstd or not). What a spine has
    /// already is not written again, so that a session that has grown is gone on with. One that cannot be recorded takes
    /// nothing from the others. `steno app-server` records live.
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
    /// left out unless asked for, and masked then; what is left out or changed is said, and stands in `bundle.json`.
    Bundle(SpineBundleArgs),
    /// Distill turns of a session into Harbor tasks
    ///
    /// The instruction is what the user said; the environment the recorded commit with the recorded changes; the check a
    /// command of the session that was seen to succeed behind the last change, tests before builds before linters, or else
    /// whether the recorded changes are there. Nothing is guessed: what the record does not have is said in `task.toml`, or
    /// the window is refused with the reason. The same bundle always gives the same bytes. `docs/harbor.md` has the rules.
    ///
    /// A window that was asked for and is refused makes the exit code 1; with `--each-turn` only if nothing is left.
    Distill(SpineDistillArgs),
}

#[derive(Args, Debug)]
pub struct SpineLsArgs {
    /// Print one JSON object a spine
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct SpineRecordArgs {
    /// A session file, a directory of them or of a trace, or a thread of the archive: its id, or the beginning or end of it
    #[arg(required_unless_present = "all", value_name = "FILE|DIR|THREAD")]
    pub sources: Vec<String>,
    /// Record every thread of Codex that the archive has a session file of
    #[arg(long, conflicts_with = "sources")]
    pub all: bool,
    /// Record sessions that were forgotten too, as if they were new
    #[arg(long)]
    pub again: bool,
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

/// How shell snapshots go into a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SnapshotForm {
    /// Without the values of exported variables
    Masked,
    /// As they are
    Whole,
}

#[derive(Args, Debug)]
pub struct SpineBundleArgs {
    /// The thread: its id, the beginning or the end of it, or `last`
    pub thread: String,
    /// Where to: `FILE.tar.zst`, or else a directory; nothing may stand there
    #[arg(long, short, value_name = "DIR|FILE.tar.zst")]
    pub output: PathBuf,
    /// Put shell snapshots in too, with the values of exported variables masked; `whole` as they are, keys and tokens
    /// among them [default: they are left out]
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "masked")]
    pub with_snapshot: Option<SnapshotForm>,
    /// If the thread is a fork, put the rollouts of the threads in that it goes on from
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
    /// The turns of a task: `3`, `2..4` (both included), `2..` or `..4`; may be given again, for a task each
    #[arg(long, value_name = "A..B", value_parser = turns)]
    pub turns: Vec<Span>,
    /// The records of a task, by their numbers; they have to be those of whole turns
    #[arg(long = "seq", value_name = "M..N", value_parser = seqs)]
    pub seqs: Vec<Span>,
    /// Make a task of each turn that can be one
    #[arg(long)]
    pub each_turn: bool,
    /// Show the turns, and what each of them would become; nothing is written
    #[arg(long)]
    pub list: bool,
    /// Where to: the task's own directory, or, of several, the directory that they will lie in
    #[arg(long, short, value_name = "DIR", required_unless_present = "list", conflicts_with = "list")]
    pub output: Option<PathBuf>,
    /// Take the repository from here, and put the recorded commit into the task [default: it is fetched from the recorded
    /// address when the task is built]
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// Where the repository lay in the session, if not where the record says
    #[arg(long, value_name = "PATH", value_parser = root)]
    pub root: Option<String>,
    /// The image to begin with: what a session ran in is not recorded [default: debian:bookworm-slim]
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub image: Option<String>,
    /// Make a task of a doubtful window all the same, with a label; may be given again
    #[arg(long, value_name = "CONCERN", value_parser = PossibleValuesParser::new(Concern::ALL.map(Concern::as_str)))]
    pub allow: Vec<String>,
    /// Run each task here before it is kept: its check has to fail before the solution, and to succeed behind it. This runs
    /// what was recorded, on this machine and with your rights
    #[arg(long = "try", requires = "repo")]
    pub trial: bool,
    /// Leave out `trajectory.json`, what came before: agents that cannot begin with one refuse the task
    #[arg(long)]
    pub no_trajectory: bool,
    /// Print one JSON object a window
    #[arg(long)]
    pub json: bool,
}

fn turns(text: &str) -> Result<Span, String> {
    // As other commands name a turn.
    let text = text.strip_prefix("turn-").filter(|number| !number.contains("..")).unwrap_or(text);
    let (first, last) = range(text)?;
    let number = |number: u64| u32::try_from(number).map_err(|_| "there are not so many turns".to_owned());
    Ok(Span::Turns(number(first)?, last.map_or(Ok(u32::MAX), number)?))
}

fn seqs(text: &str) -> Result<Span, String> {
    let (first, last) = range(text)?;
    Ok(Span::Seqs(first, last.unwrap_or(u64::MAX)))
}

/// Reads `A`, `A..B`, `A..` or `..B`; numbers begin with 1.
fn range(text: &str) -> Result<(u64, Option<u64>), String> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let wrong = || "give a number from 1, or two of them: `2..4`".to_owned();
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

/// Takes a path from the root on.
fn root(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && !text.split('/').any(|part| part == "..");
    if is_path { Ok(text.to_owned()) } else { Err("give a path from the root on: `/srv/project`".to_owned()) }
}

/// Takes the name of an image, and nothing that would be more than that in a Dockerfile.
fn image(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let is_image =
        text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_plain);
    if is_image { Ok(text.to_owned()) } else { Err("this is no name of an image".to_owned()) }
}
