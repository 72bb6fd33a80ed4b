//! Arguments of the commands that archive agents' files and give them back.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use steno_capture::tail::{Backend, TailOptions};

use crate::settings::Settings;

#[derive(Args, Debug)]
pub struct UpArgs {
    /// Archive what is there and end, without following it
    #[arg(long)]
    pub once: bool,
    /// Do not serve the store over HTTP meanwhile
    #[arg(long)]
    pub no_serve: bool,
    /// Serve at this port; 0 takes any that is free [default: 7836, or any if that is taken]
    #[arg(long, value_name = "N", conflicts_with_all = ["no_serve", "once"])]
    pub port: Option<u16>,
    #[command(flatten)]
    pub tailing: TailingArgs,
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// Print what was archived as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Files or directories, wherever they lie; what is inside is recognised by content [default: the agents' homes]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Archive files that were forgotten too, as if they were new
    #[arg(long, requires = "paths")]
    pub again: bool,
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// Print what was archived as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct RederiveArgs {
    /// The runs, damaged ones too [default: all that await it, and no damaged ones]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct WatchArgs {
    /// Files or directories, wherever they lie [default: the agents' homes]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub tailing: TailingArgs,
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// Print what was archived as one JSON object, and at the end what came since
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "steno forget [OPTIONS] <RUN>\n       steno forget [OPTIONS] --project <PROJECT>\n       steno forget [OPTIONS] --older-than <TIME>"
)]
pub struct ForgetArgs {
    /// A session (its UUID, four or more characters that it begins or ends with, or `last`), as its agent names it, or a file: its session with its subagents, and
    /// the connections that had nothing else. Or a thread that has a trace spine or was on a connection alone
    #[arg(required_unless_present_any = ["project", "older_than"])]
    pub run: Option<String>,
    /// All sessions of a project, by its directory or as its agent names it; `*` stands for anything
    #[arg(long, value_name = "PROJECT", conflicts_with = "run", allow_hyphen_values = true)]
    pub project: Option<String>,
    /// All sessions that nobody has written to for this time, like `90d`
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["run", "project"])]
    pub older_than: Option<jiff::SignedDuration>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Show what would go, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON object a line: sources, runs and spines that go
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct DuArgs {
    /// What a row adds up
    #[arg(long, value_name = "WHAT", default_value = "project")]
    pub by: DuGroup,
    /// Show every row
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object a row, and the totals last
    #[arg(long)]
    pub json: bool,
}

/// What a row of `du` adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DuGroup {
    Agent,
    Project,
    Session,
    File,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print one JSON object a line: homes, the store, what is wrong
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ServiceArgs {
    #[command(subcommand)]
    pub command: ServiceCommand,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ServiceCommand {
    /// Start `steno up` now and at every login
    Install,
    /// Stop it, and start it no more
    Uninstall,
    /// Say whether it is installed, and whether it runs
    Status,
    /// Print the service's file, and change nothing
    Print,
}

#[derive(Args, Debug)]
pub struct PauseArgs {
    /// Go on by itself after this time, like `30m` or `2h`
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub time: Option<jiff::SignedDuration>,
    /// Leave out for good what is written meanwhile: sessions that agents write to during the pause are not archived any
    /// further
    #[arg(long)]
    pub skip: bool,
}

/// Reads a time like `30m`, `2h` or `90 days`.
pub fn parse_time(text: &str) -> Result<jiff::SignedDuration, String> {
    const HOURS_PER_DAY: i64 = 24;
    let text = text.trim();
    let days =
        text.strip_suffix("days").or_else(|| text.strip_suffix("day")).or_else(|| text.strip_suffix('d'));
    let time = match days {
        Some(days) => days
            .trim()
            .parse()
            .ok()
            .and_then(|days: i64| days.checked_mul(HOURS_PER_DAY))
            .map(jiff::SignedDuration::from_hours),
        None => text.parse().ok(),
    };
    time.filter(jiff::SignedDuration::is_positive).ok_or_else(|| "a time like 30m, 2h or 90d".to_owned())
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A session (its UUID, four or more characters that it begins or ends with, or `last`), as its agent names it, or the path of one of its files
    pub run: String,
    /// Write below this directory, and not where the files were: as they lay in the agent's home, else by their names;
    /// where two would be the same, with the whole path that they had
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Give back this generation of the session's own file, and not the last one
    #[arg(long, value_name = "NUMBER")]
    pub generation: Option<u32>,
    /// Show what there is, and write nothing
    #[arg(long)]
    pub list: bool,
    /// Print one JSON object a file
    #[arg(long)]
    pub json: bool,
}

/// Where transcript entries go.
#[derive(Args, Debug)]
pub struct EntriesFileArgs {
    /// Also add the records to this file as transcript entries, one log record a line [default: as the setting `entries` says]
    #[arg(long = "entries", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl EntriesFileArgs {
    /// Returns the file that the flag names, else the one that the settings do.
    pub fn path(&self, settings: &Settings) -> Option<PathBuf> {
        self.file.clone().or_else(|| settings.capture.entries.value.clone())
    }
}

/// How files are followed.
#[derive(Args, Clone, Copy, Debug)]
pub struct TailingArgs {
    /// Look at files every `poll_interval` seconds, and do not rely on the system to tell of changes
    #[arg(long)]
    pub poll: bool,
}

impl TailingArgs {
    /// Returns how files are followed: as the settings say, unless the flag says otherwise.
    pub fn options(self, settings: &Settings) -> TailOptions {
        let options = settings.capture.tail_options();
        if self.poll { TailOptions { backend: Backend::Polling, ..options } } else { options }
    }
}
