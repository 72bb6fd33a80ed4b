//! The command line: commands, arguments, help texts.

mod capture;
mod export;
mod groups;
mod receipt;
mod spine;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use steno_journal::Level;
use steno_session::usage::Column;

pub use capture::{
    DoctorArgs, DuArgs, DuGroup, EntriesFileArgs, ForgetArgs, ImportArgs, PauseArgs, RederiveArgs,
    RestoreArgs, ServiceArgs, ServiceCommand, UpArgs, WatchArgs,
};
pub use export::{AtifArgs, CheckArgs, ExportArgs, ExportCommand};
pub use groups::grouped;
pub use receipt::{
    ReceiptArgs, ReceiptCommand, ReceiptExportArgs, ReceiptFormat, ReceiptLsArgs, ReceiptTurnArgs,
    ReceiptVerifyArgs,
};
pub use spine::{
    SnapshotForm, SpineArgs, SpineBundleArgs, SpineCommand, SpineDistillArgs, SpineLsArgs, SpineRecordArgs,
    SpineValidateArgs,
};

/// The flight recorder for AI agents
///
/// Keeps what agents do in a store of plain JSONL transcripts that survive crashes, and answers from them.
#[derive(Debug, Parser)]
#[command(name = "steno", version)]
#[command(after_help = "Exit codes: 0 done; 1 ran, and found nothing or a failed check; 2 wrong use; \
    3 could not (disk, permission); 4 held by another writer.")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Where help has the options that every command takes: apart from those of the command, and last.
const GLOBAL_HEADING: &str = "Global options";

/// Options that every command takes.
#[derive(Args, Debug)]
pub struct Global {
    /// Use this store instead of the one that the settings name
    #[arg(long, global = true, value_name = "DIR", help_heading = GLOBAL_HEADING)]
    pub store: Option<PathBuf>,
    /// Read this config file instead of the usual one
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL_HEADING)]
    pub config: Option<PathBuf>,
    /// Use the sample sessions, in a store of their own
    #[arg(long, global = true, help_heading = GLOBAL_HEADING)]
    pub demo: bool,
    /// Colour the output: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", help_heading = GLOBAL_HEADING)]
    pub color: Option<ColorChoice>,
    /// Say more on stderr
    #[arg(long, short, global = true, help_heading = GLOBAL_HEADING)]
    pub verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// How much an acknowledgement promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelChoice {
    /// Survives the death of the process
    Written,
    /// Survives a power cut
    Synced,
}

impl From<LevelChoice> for Level {
    fn from(choice: LevelChoice) -> Self {
        match choice {
            LevelChoice::Written => Self::Written,
            LevelChoice::Synced => Self::Synced,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Archive every agent on this machine, and follow it
    ///
    /// Every byte of the agents' files is kept, each version of a file that is rewritten included, and their records
    /// become events of runs. A second start passes over what has not changed. Ctrl-C ends it; `--once` does not follow.
    Up(UpArgs),
    /// Archive what the agents have written, once
    ///
    /// Every byte of their files is kept, and their records become events of runs. Files that have not changed since
    /// are passed over. Files that another `steno` is recording are left to it: that is 0 if it follows them, as it keeps
    /// what comes. If nobody follows, and others hold every file that may have news, nothing was archived and it is 1.
    Import(ImportArgs),
    /// Archive what the agents have written, and follow them
    ///
    /// What another `steno` follows already is left to it, and taken over when that one ends.
    Watch(WatchArgs),
    /// Derive runs again from the archive
    ///
    /// A newer `steno` may read more of agents' files than the one that archived them. The bytes are in the archive, so that
    /// runs are derived anew also when the agent has deleted its files. `up` and `import` do this too. The old transcripts
    /// are kept beside the new ones. A transcript that is missing is made again. One that is damaged is made again only if its
    /// RUN is named, and kept beside the new one. What another `steno` is recording is left alone, and it ends with 4.
    Rederive(RederiveArgs),
    /// Write an agent's files of a session back, byte for byte
    ///
    /// The session's own file, those of its subagents, and what lies beside them. They get the time of now, so that the
    /// agent's cleanup does not take them again at once, and the agent can go on with the session. Files that are there
    /// already stay as they are; if one of them differs, nothing is written.
    Restore(RestoreArgs),
    /// Delete sessions from the archive for good
    ///
    /// Their files with all copies, their lines in files that sessions share, their transcripts, and the trace spines of their
    /// threads. A tombstone without names stays, so that they are not archived again; the agent's own files are left alone.
    /// What somebody is writing is not forgotten.
    Forget(ForgetArgs),
    /// Show what takes up space in the archive
    ///
    /// `alone` is what forgetting a row would free: bytes that others share count for nobody. `source` is what the files
    /// have, every generation included.
    Du(DuArgs),
    /// Check agents and store, and say how to fix problems
    Doctor(DoctorArgs),
    /// Run `steno up` at every login
    ///
    /// A user unit of systemd on Linux, an agent of launchd on macOS. It uses this program, this store, and the agents'
    /// homes that this shell's variables name. Where it cannot be started, nothing is left installed, and `install` ends
    /// with 3.
    Service(ServiceArgs),
    /// Pause recording
    ///
    /// Stops every way in: `up` and `watch` leave agents' files alone, `import`, `record`, `spine record` and recording over
    /// HTTP are refused, and `app-server` hands messages on without recording them. When the command returns, nothing is
    /// recorded any more. What agents write to their files meanwhile is archived when recording goes on, unless `--skip` is
    /// given.
    Pause(PauseArgs),
    /// Resume recording after a pause
    Resume,
    /// Record events from stdin, one JSON object per line
    ///
    /// Each line is an event without `seq`; each is answered on stdout, in order, by {"seq":N,"level":"synced"}
    /// or {"error":"line N: …"}. A line that is refused leaves nothing in the transcript, and a new run begins
    /// with its first good line. `run_id`, `path`, `iteration` and `timestamp` may be left out.
    Record(RecordArgs),
    /// Show the events of a run
    ///
    /// Agents' files may hold several runs: as text, a line names the run whenever another one goes on. Numbers begin
    /// with 1 in each file, and a copy of a run that came before is named with its file. Files that were compressed
    /// with zstd (`.zst`) are read as they are.
    Events(EventsArgs),
    /// Show the steps of a session as a tree
    ///
    /// Agents' files may hold several sessions: each is a tree, the oldest first, with the subagents whose files were
    /// read below it. Several files of one session are merged. A session's file brings the subagents in the directory
    /// beside it.
    ///
    /// `open` means that the record has no end. A session of an agent can be taken up again tomorrow, so that its files
    /// never say that it is over.
    Tree(ViewArgs),
    /// Show a session as a conversation
    ///
    /// What people and models say is whole, and what tools give is shortened; `--json` has all of it, one object a run.
    /// Child runs and subagents come after the run that began them. Several files of one session are merged. A
    /// session's file brings the subagents in the directory beside it.
    ///
    /// Copies of a session that went on differently are branches. They are not shown here; `--branches` lists them.
    ///
    /// `open` means that the record has no end. A session of an agent can be taken up again tomorrow, so that its files
    /// never say that it is over.
    Show(ShowArgs),
    /// Show the events of a run as they are recorded
    ///
    /// Ends when the run has completed and nobody records it any more.
    Follow(FollowArgs),
    /// List the sessions in the store
    ///
    /// A session is an agent's own file with its subagents, and with what was recorded of it elsewhere. The part of an id that
    /// is enough to name it is bold: its beginning, or its end where that is shorter.
    ///
    /// A quick look: of each run its length, its first and its last event, and where its seals end. So `damaged`
    /// is certain, and any other state is not a promise: what lies between, only `steno verify` reads. Sessions of which
    /// the archive has files and no events are no runs; how many there are is said on stderr.
    Ls(LsArgs),
    /// Check transcripts, seals, trace spines and evidence
    ///
    /// Without a run, all trace spines are checked too, and every pack, manifest and tail of the evidence: damage is told
    /// with the threads and sessions it touches, and the rest stays readable. With a run its transcript alone is checked,
    /// and not the spine of its thread: `steno spine validate` does that.
    ///
    /// A transcript that was cut after a whole line, with its seals deleted or cut too, is good in itself. Only
    /// seals that were kept elsewhere show that, with `--expect`.
    Verify(VerifyArgs),
    /// Seal runs, and print their last seals
    ///
    /// A seal vouches for all bytes up to it. Keep the printed lines elsewhere, and `steno verify --expect FILE`
    /// shows whether a transcript was cut or changed since. Opening a run also moves a torn tail aside.
    Seal(SealArgs),
    /// Show a session as transcript entries, one log record per line
    ///
    /// Each record is `{"event":"transcript.entry","context":{…}}`; `transcript.start` and `transcript.stop` stand around
    /// those of a file.
    Entries(EntriesArgs),
    /// Show how many tokens sessions used
    ///
    /// The store has every session that was ever archived, also those that an agent has deleted since. Files of Claude Code
    /// and Codex that are not archived yet, and the ends of those that went on, are read in the agents' homes, those that
    /// `CLAUDE_CONFIG_DIR` and `CODEX_HOME` name among them. What was forgotten or is excluded is not read. Without a store,
    /// and with `--live`, the homes alone are read. A line on stderr says which it was.
    ///
    /// A response counts once, however many records, resumed sessions and forks repeat it. `exact` is false where the
    /// record has less than the final counts, or a file could not be read; then it is at least so much. Days are days in
    /// UTC. Input is what was read for the first time, without cached tokens, which have columns of their own; what a
    /// subagent used counts under its session.
    Usage(UsageArgs),
    /// Make, list and verify receipts of turns
    Receipt(ReceiptArgs),
    /// Record, check, bundle and distill trace spines
    Spine(SpineArgs),
    /// Write sessions in other formats, and check such files
    Export(ExportArgs),
    /// Serve the store over HTTP, on this machine only
    ///
    /// Listens on 127.0.0.1 alone. Every request has to show the token, which is made anew at each start and stands in a
    /// file of the store that only its owner can read. `docs/api.md` describes the API, and `/v1/openapi.json` too.
    Serve(ServeArgs),
    /// Record between a client and `codex app-server`
    ///
    /// Point the client at `steno app-server -- codex app-server` instead of `codex app-server`. Every byte is handed on
    /// first, in both directions; what was said becomes runs, and a trace spine for each thread. Where nothing can be
    /// recorded, since the store cannot be written to, that is said loudly at the beginning and at the end, and the server
    /// runs all the same. The exit code is the server's.
    AppServer(AppServerArgs),
    /// Show the settings and where each comes from
    Config(ConfigArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
}

#[derive(Args, Debug)]
pub struct RecordArgs {
    /// The run's UUID; a run that is there already goes on after its last event
    #[arg(long, value_name = "UUID")]
    pub run: String,
    /// What an acknowledgement promises [default: synced]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<LevelChoice>,
    #[command(flatten)]
    pub always: AlwaysJson,
}

/// `--json` of commands that print nothing else: taken so that a script can ask every command alike.
#[derive(Args, Debug)]
pub struct AlwaysJson {
    /// Print one JSON object a line, as it does anyway
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// A run (its UUID, four or more characters that it begins or ends with, or `last`), a transcript file, or a file or
    /// directory of an agent; `RUN:SEQ` is one event
    pub run: String,
    /// Begin with this event
    #[arg(long, value_name = "SEQ", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub from: u64,
    /// Show only events of this type; may be given again
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    #[command(flatten)]
    pub form: EventFormat,
    /// Fail at the first event or block of an unknown type; of agents' files, also at what cannot be read
    #[arg(long)]
    pub strict: bool,
    /// Of agents' files, show whose they are, what they carry and how much was understood
    #[arg(long, conflicts_with_all = ["from", "types", "strict", "raw"])]
    pub completeness: bool,
}

/// How events are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct EventFormat {
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Print the recorded lines byte for byte, terminal controls included; of agents' files, the events made of them
    #[arg(long)]
    pub raw: bool,
}

#[derive(Args, Debug)]
pub struct EntriesArgs {
    /// Archived sessions (a UUID, four or more characters that it begins or ends with, or `last`), or files and directories
    /// of agents
    #[arg(value_name = "SESSION|PATH", required = true)]
    pub what: Vec<std::ffi::OsString>,
    /// Name the prompt [default: its first words, or the session's id]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Leave the source lines out of the entries
    #[arg(long)]
    pub no_raw: bool,
    /// Print the records byte for byte, terminal controls included
    #[arg(long)]
    pub raw_output: bool,
    #[command(flatten)]
    pub always: AlwaysJson,
}

#[derive(Args, Debug)]
pub struct UsageArgs {
    /// Files or directories of agents to read alone [default: the store, and what is not archived yet]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Read the agents' homes alone, and not the store
    #[arg(long, conflicts_with = "paths")]
    pub live: bool,
    /// What a row adds up, in this order, with commas between [default: day,model]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', hide_default_value = true,
        default_values_t = [UsageGroup::Day, UsageGroup::Model])]
    pub by: Vec<UsageGroup>,
    /// Print one JSON object a row
    #[arg(long)]
    pub json: bool,
}

/// What a row of `usage` adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum UsageGroup {
    Day,
    Provider,
    Model,
    Session,
}

impl UsageGroup {
    pub fn column(self) -> Column {
        match self {
            Self::Day => Column::Day,
            Self::Provider => Column::Provider,
            Self::Model => Column::Model,
            Self::Session => Column::Session,
        }
    }
}

impl std::fmt::Display for UsageGroup {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.column().name())
    }
}

/// What `tree` and `show` are asked for.
#[derive(Args, Debug)]
pub struct ViewArgs {
    /// A session (its UUID, four or more characters that it begins or ends with, or `last`), a transcript file, or a file or
    /// directory of an agent; of `show`, `RUN:SEQ` is the turn of an event
    pub run: String,
    /// Show each step of the system, also where many follow each other
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object a line: a tree, or a run's conversation
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ShowArgs {
    #[command(flatten)]
    pub view: ViewArgs,
    /// List the branches of the session: copies that went on differently, each with its first event as RUN:SEQ
    #[arg(long, conflicts_with = "all")]
    pub branches: bool,
}

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Listen at this port; 0 takes any that is free [default: 7836]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// Print a link that lets one browser in, once
    #[arg(long)]
    pub link: bool,
    /// Print where it serves as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the description of the API, which is an `OpenAPI` document, and end
    #[arg(long)]
    pub openapi: bool,
}

#[derive(Args, Debug)]
pub struct AppServerArgs {
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// The server and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

#[derive(Args, Debug)]
pub struct FollowArgs {
    /// A run: its UUID, four or more characters that it begins or ends with, or `last`
    pub run: String,
    /// Begin with this event
    #[arg(long, value_name = "SEQ", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub from: u64,
    #[command(flatten)]
    pub form: EventFormat,
    /// Wait for a run that does not exist yet, given by its whole UUID
    #[arg(long)]
    pub wait: bool,
}

#[derive(Args, Debug)]
pub struct LsArgs {
    /// List every run: subagents, copies, streams and connections too
    #[arg(long)]
    pub runs: bool,
    /// Print one JSON object a session, or with `--runs` a run
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Runs (UUID, four or more characters of its beginning or end, or `last`) or transcript files; all runs, spines and evidence of the store when none is given
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare with seals that were kept elsewhere, one a line; says which runs the file does not name
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Print one JSON object a line: runs, spines, connections, evidence
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(override_usage = "steno seal [OPTIONS] <RUN>...\n       steno seal [OPTIONS] --all")]
pub struct SealArgs {
    /// Runs: UUID, four or more characters of its beginning or end, or `last`
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub runs: Vec<String>,
    /// Seal every run of the store that nobody records
    #[arg(long, conflicts_with = "runs")]
    pub all: bool,
    #[command(flatten)]
    pub always: AlwaysJson,
}

#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// Print one JSON object a setting
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}
