//! The command line: commands, arguments, help texts.

mod capture;
mod export;
mod groups;
mod proxy;
mod reading;
mod receipt;
mod search;
mod spine;
mod usage;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use steno_journal::Level;

pub use capture::{
    DoctorArgs, DuArgs, DuGroup, EntriesFileArgs, ForgetArgs, ImportArgs, PauseArgs, ProxyArgs, RederiveArgs,
    RestoreArgs, RunArgs, ServiceArgs, ServiceCommand, UpArgs, WatchArgs,
};
pub use export::{AtifArgs, CheckArgs, ExportArgs, ExportCommand};
pub use groups::grouped;
pub use proxy::{AppServerArgs, McpArgs};
pub use reading::{ChangesArgs, FailuresArgs, FollowArgs, LsArgs, ShowArgs, ViewArgs};
pub use receipt::{
    ReceiptArgs, ReceiptCommand, ReceiptExportArgs, ReceiptFormat, ReceiptLsArgs, ReceiptTurnArgs,
    ReceiptVerifyArgs,
};
pub use search::{FilterArgs, IndexArgs, IndexCommand, SearchArgs};
pub use spine::{
    SnapshotForm, SpineArgs, SpineBundleArgs, SpineCommand, SpineDistillArgs, SpineLsArgs, SpineRecordArgs,
    SpineValidateArgs,
};
pub use usage::UsageArgs;

/// The flight recorder for AI agents
///
/// Records what agents do in a store of plain JSONL transcripts, and answers questions about it. What was recorded
/// survives crashes.
#[derive(Debug, Parser)]
#[command(name = "steno", version)]
#[command(after_help = "Exit codes: 0 success; 1 nothing found, or a check failed; 2 wrong usage; \
    3 error (disk, permissions); 4 in use by another process.")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The heading of the options that every command takes: help shows them last.
const GLOBAL_HEADING: &str = "Global options";

/// Options that every command takes.
#[derive(Args, Debug)]
pub struct Global {
    /// Use this store instead of the configured one
    #[arg(long, global = true, value_name = "DIR", help_heading = GLOBAL_HEADING)]
    pub store: Option<PathBuf>,
    /// Read this config file instead of the default one
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL_HEADING)]
    pub config: Option<PathBuf>,
    /// Use the sample sessions, in a separate store
    #[arg(long, global = true, help_heading = GLOBAL_HEADING)]
    pub demo: bool,
    /// When to use colors: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", help_heading = GLOBAL_HEADING)]
    pub color: Option<ColorChoice>,
    /// Print more details to stderr
    #[arg(long, short, global = true, help_heading = GLOBAL_HEADING)]
    pub verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// What an acknowledgement guarantees.
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
    /// Archive the agents' files on this machine, and follow them
    ///
    /// Keeps every byte of the agents' files, including each version of a file that is rewritten, and turns their
    /// records into events of runs. Files that have not changed since they were last archived are skipped. Press Ctrl-C
    /// to stop. With `--once`, `up` stops as soon as everything is archived.
    Up(UpArgs),
    /// Archive agents' files, once
    ///
    /// Keeps every byte of the files, and turns their records into events of runs. Files that have not changed since
    /// they were last archived are skipped. Files that another `steno` is recording are skipped too: if that `steno`
    /// follows them, nothing is lost and the exit code is 0. If no `steno` follows them and nothing else was archived,
    /// the exit code is 1.
    Import(ImportArgs),
    /// Archive agents' files, then follow them
    ///
    /// Files that another `steno` follows are skipped. `watch` takes them over when that `steno` ends.
    Watch(WatchArgs),
    /// Derive runs again from the stored files
    ///
    /// A newer `steno` may understand more of an agent's files than the one that archived them. The store keeps the
    /// bytes of these files, so runs can be derived again even if the agent has deleted them. `up` and `import` do
    /// this too. The old transcripts are kept next to the new ones.
    ///
    /// A missing transcript is derived again. A damaged transcript is derived again only if its RUN is named, and the
    /// damaged one is kept. Files that another `steno` is recording are skipped, and the exit code is 4.
    Rederive(RederiveArgs),
    /// Write the files of a session back, byte for byte
    ///
    /// Restores the session's own file, the files of its subagents, and the files stored next to them. The files get
    /// the current time, so that the agent's cleanup does not delete them at once and the agent can resume the session.
    /// Existing files are not changed. If one of them differs from the stored file, nothing is written, unless
    /// `--replace` renames it first. The command that resumes the session is printed to stderr.
    Restore(RestoreArgs),
    /// Delete sessions from the store permanently
    ///
    /// Deletes their files with all copies, their lines in files that several sessions share, their transcripts, and
    /// the trace spines of their threads. A tombstone without names remains, so that the sessions are not archived
    /// again. The agent's own files are not changed. A session that is being recorded is not deleted.
    Forget(ForgetArgs),
    /// Show what takes up space in the store
    ///
    /// `alone` is the space that the files of a row take in the vault; bytes shared with other rows are not counted.
    /// Forgetting the sessions of a row frees this space, and that of their transcripts. `source` is the size of the
    /// files, including every generation.
    Du(DuArgs),
    /// Check agents and store, and say how to fix problems
    Doctor(DoctorArgs),
    /// Run `steno up` at every login
    ///
    /// Installs a systemd user unit on Linux, or a launchd agent on macOS. The service uses this program, this store,
    /// and the agents' homes that are set in the environment of this shell. If the service cannot be started, nothing
    /// stays installed and the exit code is 3.
    Service(ServiceArgs),
    /// Pause recording
    ///
    /// During a pause, `up` and `watch` do not read agents' files; `import`, `record`, `spine record` and recording
    /// through the HTTP API fail; `app-server`, `mcp`, `proxy` and `run` forward without recording. When `pause`
    /// returns, nothing is recorded any more. What agents write to their files during the pause is archived afterwards,
    /// unless `--skip` is given.
    Pause(PauseArgs),
    /// Resume recording after a pause
    Resume,
    /// Record events from stdin, one JSON object per line
    ///
    /// Each line is an event without `seq`. For each line, `record` prints one answer on stdout, in order:
    /// {"seq":N,"level":"synced"}, or {"error":"line N: …"} if the line is refused. A refused line leaves nothing in
    /// the transcript. A new run is created by its first valid line. `run_id`, `path`, `iteration` and `timestamp`
    /// are optional.
    Record(RecordArgs),
    /// Show the events of a run
    ///
    /// An agent's file may contain several runs: the text output then names the run whenever it changes. Events are
    /// numbered from 1 in each file. If several files contain a run, further copies are shown with the name of their
    /// file. Files compressed with zstd (`.zst`) are read directly.
    Events(EventsArgs),
    /// Show the steps of a session as a tree
    ///
    /// Agents' files may contain several sessions: each one is a tree, the oldest first, with its subagents below it.
    /// Several files of one session are merged. With a session's file, the subagents in the directory next to it are
    /// read too.
    ///
    /// `open` means that the end of the last turn is not recorded.
    Tree(ViewArgs),
    /// Show a session as a conversation
    ///
    /// The header says what the session is, what it used, and what its record lacks. Messages are shown in full,
    /// changes as diffs, commands with exit code and duration; `-t` sets how much is shown. On a terminal, long outputs
    /// are folded, and what is longer than the screen is shown in a pager (`STENO_PAGER`, else `PAGER`, else `less -R`).
    /// In a pipe nothing is folded or wrapped. `--json` prints everything, one object per session.
    ///
    /// Subagents are shown below the call that started them, with less detail. Several files of one session are merged.
    /// With a session's file, the subagents in the directory next to it are read too.
    ///
    /// Copies of a session that continued differently are branches. They are not shown here; `--branches` lists them.
    ///
    /// `open` means that the end of the last turn is not recorded.
    Show(ShowArgs),
    /// Show a session as it is recorded
    ///
    /// The output has the form of `steno show`. A call without a result is shown as running. All runs of the session are
    /// read as one conversation, also those that begin later. A fact that comes late is printed below the line of its
    /// call. Without RUN, `follow` shows the session that is being recorded. If there is none, it names the latest
    /// session, and on a terminal it waits for the next one. `--events`, `--json` and `--raw` print the events of one run
    /// instead.
    ///
    /// Stops when all runs of the session are completed and no process records them.
    Follow(FollowArgs),
    /// List the sessions in the store
    ///
    /// The session with the latest event comes first. A row covers the agent's own file, other recordings of the same
    /// session, and its subagents. `+2` stands for two child sessions, `×3` for three recordings. On a terminal, the
    /// shortest part of the id that names the session is shown, and the title is cut to fit; a pipe gets everything.
    ///
    /// Marks: `●` live (being recorded, or grown within a minute), `?` waiting for an approval, `○` done, `✗` failed,
    /// `⊘` interrupted, `·` without a recorded end, `◌` deleted, shortened or rewritten by the agent, `!` damaged. Chat
    /// files of Gemini CLI never record the end of the last turn.
    ///
    /// Sessions that have stored files but no events are not listed; their number is printed to stderr. `docs/lists.md`
    /// describes the output of `--json`.
    Ls(LsArgs),
    /// Search the texts of all sessions
    ///
    /// All words must be in the same text: a prompt, an answer, a thought, the arguments of a call, or its output. A
    /// word matches whole words and parts of identifiers, in any case. `"two words"` is a phrase, `pre*` a prefix and
    /// `/expression/` a regular expression. `in:prompt,answer,thought,command,output` limits the kinds of text;
    /// `tool:NAME`, `path:TEXT` and `exit:CODE` limit the calls. In a shell, put the whole query in single quotes.
    ///
    /// `steno show 7c9e:12` opens the hit that is listed as `7c9e:12`. The last line says what was searched.
    Search(SearchArgs),
    /// Show the state of the search index, or rebuild it
    ///
    /// Everything in the index comes from the transcripts. `search` and `up` bring it up to date, and a damaged index
    /// is rebuilt automatically.
    Index(IndexArgs),
    /// Show which session changed which file, as patches
    ///
    /// The latest change comes first, over all agents. Changes are those of the agents' editing tools that succeeded;
    /// what shell commands changed is not known. PATH is the end of a path, or a directory. `steno show 7c9e:12` opens
    /// the change that is listed as `7c9e:12`.
    Changes(ChangesArgs),
    /// List the calls, commands and turns that failed
    ///
    /// The latest comes first, with its exit code, its command and the line of its output that says most about the
    /// failure: a failed assertion or an exception, else an error message, else the last line.
    /// Commands of `steno run` and errors of agents outside of calls, such as API errors, are listed too.
    /// `steno show 7c9e:12` opens the call that is listed as `7c9e:12`. Denied and interrupted calls are not failures.
    Failures(FailuresArgs),
    /// Check transcripts, seals, trace spines and evidence
    ///
    /// Without RUN, the whole store is checked: transcripts, trace spines, and every pack, manifest and tail of the
    /// evidence. Damage is reported with the threads and sessions that it affects; everything else stays readable.
    /// With RUN, only its transcript is checked; `steno spine validate` checks the spine of its thread.
    ///
    /// A transcript that was cut after a whole line, and whose seals were deleted or cut too, passes the check. Only
    /// seals that were kept elsewhere reveal the cut: compare with `--expect`.
    Verify(VerifyArgs),
    /// Seal runs, and print their last seals
    ///
    /// A seal is a hash over all bytes before it. Keep the printed lines elsewhere: `steno verify --expect FILE` then
    /// shows whether a transcript was cut or changed. Sealing also moves an incomplete
    /// last line (a torn tail) to another file.
    Seal(SealArgs),
    /// Show a session as transcript entries, one log record per line
    ///
    /// Each record is `{"event":"transcript.entry","context":{…}}`. `transcript.start` and `transcript.stop` mark the
    /// beginning and the end of a session.
    Entries(EntriesArgs),
    /// Show how many tokens sessions used, and what they cost
    ///
    /// Reads every session in the store, including those that the agent has deleted since. Files that are not archived
    /// yet, or only in part, are read from the agents' homes, including those that `CLAUDE_CONFIG_DIR`, `CODEX_HOME`,
    /// `GEMINI_CLI_HOME` and `COPILOT_HOME` name. Forgotten and excluded sessions are not read. Without a store, or
    /// with `--live`, only the homes are read. A line on stderr says what was read.
    ///
    /// Each response counts once, even if several records, resumed sessions and forks repeat it. `exact` is false if
    /// the record has no final counts or a file could not be read: the numbers are then a lower bound. Days are
    /// those of local time. Input does not include cached tokens, which have their own columns. What a subagent used
    /// counts for its session. Rows grouped by time are in order of time; all others begin with the most expensive.
    Usage(UsageArgs),
    /// Export, list and verify receipts of turns
    Receipt(ReceiptArgs),
    /// Record, check, bundle and distill trace spines
    Spine(SpineArgs),
    /// Export sessions to other formats, and check such files
    Export(ExportArgs),
    /// Serve the store over HTTP, on this machine only
    ///
    /// Listens on 127.0.0.1 only. Every request needs the token, which is created at each start and written to a file
    /// in the store that only its owner can read. `docs/api.md` and `/v1/openapi.json` describe the API.
    Serve(ServeArgs),
    /// Run a command, and record what it prints
    ///
    /// Agents are recognised by the JSON that they print, which becomes a session: `claude -p --output-format
    /// stream-json`, `codex exec --json`, `gemini --output-format stream-json` or `json`, `copilot -p --output-format
    /// json` and `opencode run --format json`. The output of other commands is kept as plain text. Every byte is
    /// forwarded before it is recorded, terminals stay terminals, signals are passed on, and the exit code is that of
    /// the command. A second process records. If the store cannot be written to, nothing is recorded: `run` warns, and
    /// the command runs anyway.
    ///
    /// `run` ends when the command ends. If the command leaves programs in the background, their later output is still
    /// forwarded but not recorded. On a terminal they get SIGHUP, as when a terminal window is closed.
    ///
    /// The command finds the id of its run in the variable `STENO_RUN`.
    Run(RunArgs),
    /// Record the messages between a client and `codex app-server`
    ///
    /// Configure the client to start `steno app-server -- codex app-server` instead of `codex app-server`. Every byte
    /// is forwarded first, in both directions. The messages are recorded as runs, and as one trace spine per thread. If
    /// the store cannot be written to, nothing is recorded: `app-server` warns at the beginning and at the end, and the
    /// server runs anyway. The exit code is that of the server.
    AppServer(AppServerArgs),
    /// Record the tool calls between an agent and an MCP server
    ///
    /// Configure the agent to start `steno mcp -- SERVER` instead of the server, or let `--wrap-config` do it for all
    /// servers of a configuration file. Every byte is forwarded first, in both directions. Calls and results are
    /// recorded as a run of the session that the agent names, or that `STENO_RUN` names. If the store cannot be
    /// written to, nothing is recorded, and the server runs anyway. The exit code is that of the server.
    Mcp(McpArgs),
    /// Record model calls over HTTP, as a proxy in front of an API
    ///
    /// Listens on 127.0.0.1 and forwards every request to the upstream, and nowhere else. Answers are passed on as they
    /// come. Set the base URL of an agent or a program to the address that is printed at the start. Calls of the APIs
    /// of Anthropic (Messages), OpenAI (Responses, Chat Completions) and Gemini (`generateContent`) become runs. Keys
    /// and cookies are never recorded. If the store cannot be written to, nothing is recorded, and requests are
    /// forwarded anyway. Press Ctrl-C to stop.
    Proxy(ProxyArgs),
    /// Show the settings and where each comes from
    Config(ConfigArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
}

#[derive(Args, Debug)]
pub struct RecordArgs {
    /// UUID of the run; an existing run continues after its last event
    #[arg(long, value_name = "UUID")]
    pub run: String,
    /// What an acknowledgement guarantees [default: synced]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<LevelChoice>,
    #[command(flatten)]
    pub always: AlwaysJson,
}

/// `--json` of commands that always print JSON. It is accepted so that scripts can pass it to every command.
#[derive(Args, Debug)]
pub struct AlwaysJson {
    /// Print one JSON object per line (the only output format)
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// A run (its UUID, four or more characters of its beginning or end, or `last`), a transcript file, or an agent's
    /// file or directory; `RUN:SEQ` is one event
    pub run: String,
    /// Start with this event
    #[arg(long, value_name = "SEQ", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub from: u64,
    /// Show only events of this type; can be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    #[command(flatten)]
    pub form: EventFormat,
    /// Fail at the first event or block of an unknown type; in agents' files, also at unreadable records
    #[arg(long)]
    pub strict: bool,
    /// For agents' files, show which agent wrote them, what they contain and how much of it was understood
    #[arg(long, conflicts_with_all = ["from", "types", "strict", "raw"])]
    pub completeness: bool,
}

/// How events are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct EventFormat {
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Print the recorded lines byte for byte, including terminal control characters; for agents' files, the events
    /// derived from them
    #[arg(long)]
    pub raw: bool,
}

#[derive(Args, Debug)]
pub struct EntriesArgs {
    /// Archived sessions (UUID, four or more characters of its beginning or end, or `last`), or agents' files and
    /// directories
    #[arg(value_name = "SESSION|PATH", required = true)]
    pub what: Vec<std::ffi::OsString>,
    /// Name of the prompt [default: its first words, or the session's id]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Omit the source lines from the entries
    #[arg(long)]
    pub no_raw: bool,
    /// Print the records byte for byte, including terminal control characters
    #[arg(long)]
    pub raw_output: bool,
    #[command(flatten)]
    pub always: AlwaysJson,
}

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Listen on this port; 0 takes any free port [default: 7836]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// Print a login link that one browser can use once
    #[arg(long)]
    pub link: bool,
    /// Print the address as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the OpenAPI description of the API, and exit
    #[arg(long)]
    pub openapi: bool,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Runs (UUID, four or more characters of its beginning or end, or `last`) or transcript files [default: all
    /// runs, spines and evidence of the store]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare with seals that were kept elsewhere, one per line; warns of runs that have no seal in FILE
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Print one JSON object per line: runs, spines, connections, evidence
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(override_usage = "steno seal [OPTIONS] <RUN>...\n       steno seal [OPTIONS] --all")]
pub struct SealArgs {
    /// Runs: UUID, four or more characters of its beginning or end, or `last`
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub runs: Vec<String>,
    /// Seal every run of the store that is not being recorded
    #[arg(long, conflicts_with = "runs")]
    pub all: bool,
    #[command(flatten)]
    pub always: AlwaysJson,
}

#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// Print one JSON object per setting
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}
