//! Arguments of the commands that archive agents' files and give them back, and of the proxy.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use steno_capture::tail::{Backend, TailOptions};

use crate::settings::Settings;

#[derive(Args, Debug)]
pub struct UpArgs {
    /// Archive what is there and stop, without following
    #[arg(long)]
    pub once: bool,
    /// Do not serve the store over HTTP
    #[arg(long)]
    pub no_serve: bool,
    /// Serve on this port; 0 takes any free port [default: 7836, or any free port if 7836 is taken]
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
    /// Files or directories anywhere; what they contain is detected by content [default: the agents' homes]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Archive forgotten files too, as if they were new
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
    /// The runs, which may be damaged [default: every run that an older `steno` derived, except damaged ones]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct WatchArgs {
    /// Files or directories anywhere [default: the agents' homes]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub tailing: TailingArgs,
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// Print what was archived as one JSON object, and at the end what was archived since
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ProxyArgs {
    /// The server that requests are forwarded to, like `https://api.anthropic.com`
    #[arg(long, value_name = "URL")]
    pub upstream: String,
    /// Listen on this port; 0 takes any free port [default: 7837]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// Also trust the certificates in this PEM file [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// Print the address as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "steno forget [OPTIONS] <RUN>\n       steno forget [OPTIONS] --project <PROJECT>\n       steno forget [OPTIONS] --older-than <TIME>"
)]
pub struct ForgetArgs {
    /// A session (its UUID, four or more characters of its beginning or end, `last`, or the agent's own name for it),
    /// one of its files, or a thread. Subagents of the session are deleted too, and so are connections that recorded
    /// only this session
    #[arg(required_unless_present_any = ["project", "older_than"])]
    pub run: Option<String>,
    /// All sessions of a project: its directory, or the agent's own name for it; `*` matches any text
    #[arg(long, value_name = "PROJECT", conflicts_with = "run", allow_hyphen_values = true)]
    pub project: Option<String>,
    /// All sessions that were not written to for this long, like `90d`
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["run", "project"])]
    pub older_than: Option<jiff::SignedDuration>,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Show what would be deleted, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON object per line: sources, runs and spines to delete
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct DuArgs {
    /// What to group the rows by
    #[arg(long, value_name = "WHAT", default_value = "project")]
    pub by: DuGroup,
    /// Show all rows
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object per row, and the totals last
    #[arg(long)]
    pub json: bool,
}

/// What `du` groups its rows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DuGroup {
    Agent,
    Project,
    Session,
    File,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print one JSON object per line: homes, the store, findings
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
    /// Stop `steno up`, and no longer start it at login
    Uninstall,
    /// Show whether the service is installed and running
    Status,
    /// Print the service file, and change nothing
    Print,
}

#[derive(Args, Debug)]
pub struct PauseArgs {
    /// Resume automatically after this time, like `30m` or `2h`
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub time: Option<jiff::SignedDuration>,
    /// Never archive what agents write during the pause: sessions that they write to are not archived any further
    #[arg(long)]
    pub skip: bool,
}

/// Parses a time like `30m`, `2h` or `90 days`.
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
    time.filter(jiff::SignedDuration::is_positive)
        .ok_or_else(|| "expected a time like 30m, 2h or 90d".to_owned())
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A session (its UUID, four or more characters of its beginning or end, `last`, or the agent's own name for it),
    /// or the path of one of its files
    pub run: String,
    /// Write below this directory instead of the original place. Files keep their path below the agent's home, or
    /// else their name; if two files would get the same name, they keep their whole path
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Restore this generation of the session's own file instead of the last one
    #[arg(long, value_name = "NUMBER")]
    pub generation: Option<u32>,
    /// Replace files that differ from the stored ones, and keep the replaced files as `NAME.replaced-1`
    #[arg(long)]
    pub replace: bool,
    /// List the files and whether each is on disk, and write nothing
    #[arg(long)]
    pub list: bool,
    /// Print one JSON object per file
    #[arg(long)]
    pub json: bool,
}

/// The file that transcript entries are written to.
#[derive(Args, Debug)]
pub struct EntriesFileArgs {
    /// Also append the records to this file as transcript entries, one log record per line [default: the setting
    /// `entries`]
    #[arg(long = "entries", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl EntriesFileArgs {
    /// Returns the file that the flag names, or else the one that the settings name.
    pub fn path(&self, settings: &Settings) -> Option<PathBuf> {
        self.file.clone().or_else(|| settings.capture.entries.value.clone())
    }
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// Name of the run [default: the name of the program]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Also record what the command reads from stdin, unless stdin is a terminal
    #[arg(long)]
    pub input: bool,
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// How files are followed.
#[derive(Args, Clone, Copy, Debug)]
pub struct TailingArgs {
    /// Check files every `poll_interval` seconds instead of waiting for change notifications of the system
    #[arg(long)]
    pub poll: bool,
}

impl TailingArgs {
    /// Returns how files are followed: by the flag, or else by the settings.
    pub fn options(self, settings: &Settings) -> TailOptions {
        let options = settings.capture.tail_options();
        if self.poll { TailOptions { backend: Backend::Polling, ..options } } else { options }
    }
}
