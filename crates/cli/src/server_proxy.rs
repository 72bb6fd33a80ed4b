//! Runs a server behind a client: forwards every byte in both directions, and records.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use steno_capture::proxy::{ProxiedLines, Pump, PumpEnd, tap};
use steno_journal::Journal;
use steno_model::Lane;
use steno_recorder::connection::{
    ConnectionRecorder, ConnectionReport, RecordedConnection, ServerEnd, UnrecordedMessages,
};
use steno_views::count;

use crate::connections;
use crate::failure::{Exit, Failure, Outcome};
use crate::recording::{EntriesLog, warn};
use crate::settings::Settings;

/// A server, and what to do when it has ended.
pub struct ProxiedServer<'a> {
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// How the command is given.
    pub usage: &'static str,
    /// Whether connections that others left are archived too, which may take long.
    pub archives_leftovers: bool,
}

/// Runs the server until it ends. It is started even if nothing can be recorded.
pub fn run(server: &ProxiedServer<'_>, prepared: Result<PreparedRecorder<'_>, Failure>) -> Outcome {
    if let Err(failure) = &prepared {
        warn(&format!("NOTHING IS RECORDED: {}; the server is started anyway", failure.message));
    }
    let mut child = server.start()?;
    let signals = SignalForwarder::to(&child)?;
    let (tap, conversation) = tap();
    let (end_sender, end) = channel();
    let recording = prepared.and_then(|prepared| prepared.record(conversation, end));
    if let Some(to) = child.stdin.take() {
        let (pump, tap) = (Pump { from: io::stdin(), to, lane: Lane::ToAgent }, tap.clone());
        // This thread is not joined: the client may stay silent after the server has ended.
        std::thread::Builder::new().name("steno-to-agent".to_owned()).spawn(move || pump.run(&tap))?;
    }
    if let Some(from) = child.stdout.take() {
        let end = Pump { from, to: io::stdout(), lane: Lane::FromAgent }.run(&tap);
        if let PumpEnd::Failed(error) = end {
            warn(&format!("the connection broke: {error}"));
        }
    }
    drop(tap);
    let status = child.wait()?;
    drop(signals);
    // The recorder waits for this message; without a recorder it is dropped.
    server_end(status).and_then(|end| end_sender.send(end).ok());
    drop(end_sender);
    match recording {
        Ok(recording) => recording.settle(server.archives_leftovers),
        Err(failure) => {
            warn(&format!("NOTHING WAS RECORDED of this connection: {}", failure.message));
            if let Some(hint) = failure.hint {
                warn(&hint);
            }
        }
    }
    Ok(exit_of(status))
}

/// A recorder that has no messages yet.
pub struct PreparedRecorder<'a> {
    settings: &'a Settings,
    journal: Journal,
    recorder: ConnectionRecorder,
    entries: Option<EntriesLog>,
}

impl<'a> PreparedRecorder<'a> {
    /// Takes a recorder, and the log of entries if they are collected.
    pub fn new(
        settings: &'a Settings,
        journal: Journal,
        recorder: ConnectionRecorder,
        entries: Option<EntriesLog>,
    ) -> Self {
        let recorder = match &entries {
            Some(log) => recorder.with_entries(&log.collector),
            None => recorder,
        };
        Self { settings, journal, recorder, entries }
    }

    /// Records in a worker thread; the pumps never wait for it. The last message is how the server ended.
    fn record(
        self,
        conversation: ProxiedLines,
        end: Receiver<ServerEnd>,
    ) -> Result<RecordingThread<'a>, Failure> {
        let Self { settings, journal, mut recorder, entries } = self;
        let spooled = recorder.spooled();
        let record = move || {
            for line in conversation {
                recorder.record(line);
            }
            if let Ok(end) = end.recv() {
                recorder.end(end);
            }
            let (unrecorded, became) = recorder.finish();
            (unrecorded, became.map_err(connections::failure))
        };
        let record = move || match entries {
            Some(log) => log.collecting(record),
            None => record(),
        };
        let thread = std::thread::Builder::new().name("steno-record".to_owned()).spawn(record)?;
        Ok(RecordingThread { settings, journal, spooled, thread })
    }
}

/// The end of a recording: the gaps, and the result.
type RecordingResult = (UnrecordedMessages, Result<ConnectionReport, Failure>);

/// A recording in a worker thread.
struct RecordingThread<'a> {
    settings: &'a Settings,
    journal: Journal,
    spooled: RecordedConnection,
    thread: JoinHandle<RecordingResult>,
}

impl RecordingThread<'_> {
    /// Waits for the recording, reports gaps, and archives it, on request together with connections that others left.
    fn settle(self, archives_leftovers: bool) {
        // What is left is archived after the pause.
        let is_paused = self.journal.store().is_paused(jiff::Timestamp::now());
        match self.thread.join() {
            Ok((unrecorded, became)) => {
                connections::warn_of_gaps(&unrecorded);
                match became {
                    Ok(recorded) if is_paused => report_recorded(&recorded),
                    Ok(recorded) => {
                        report_recorded(&recorded);
                        let settled = connections::import_connection(
                            &self.journal,
                            self.settings,
                            self.spooled,
                            recorded.is_left,
                        );
                        settled.unwrap_or_else(|failure| warn(&failure.message));
                    }
                    // Earlier messages are kept, and tried again below.
                    Err(failure) => warn(&failure.message),
                }
            }
            Err(_) => warn("recording failed"),
        }
        if !is_paused && archives_leftovers {
            connections::import_leftover_connections(&self.journal, self.settings);
        }
    }
}

impl ProxiedServer<'_> {
    fn start(&self) -> Result<Child, Failure> {
        let (program, rest) =
            self.command.split_first().ok_or_else(|| Failure::usage("give the command of the server"))?;
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().map_err(|error| {
            let message = format!("cannot start `{}`: {error}", program.to_string_lossy());
            Failure::could_not(message)
                .with_hint(format!("give the server and its arguments: `{}`", self.usage))
        })
    }
}

/// Opens the file that entries are logged to. A failure is a warning.
pub fn open_entries(args: &crate::args::EntriesFileArgs, settings: &Settings) -> Option<EntriesLog> {
    EntriesLog::open(args, settings).unwrap_or_else(|failure| {
        warn(&format!("no entries are logged: {}", failure.message));
        None
    })
}

fn report_recorded(recorded: &ConnectionReport) {
    tracing::debug!(
        "{} over {}",
        count(recorded.messages, "message"),
        count(recorded.threads.len() as u64, "thread")
    );
    for problem in &recorded.problems {
        warn(problem);
    }
}

fn server_end(status: ExitStatus) -> Option<ServerEnd> {
    status.code().map(ServerEnd::Code).or_else(|| status.signal().map(ServerEnd::Signal))
}

fn exit_of(status: ExitStatus) -> Exit {
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok()).map(Exit::Signal);
    let code = status.code().and_then(|code| u8::try_from(code).ok()).map(Exit::Child);
    signal.or(code).unwrap_or(Exit::Failed)
}

/// Forwards signals to the server.
struct SignalForwarder {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl SignalForwarder {
    fn to(child: &Child) -> Result<Self, Failure> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        // A terminal sends SIGINT to the server itself.
        let is_terminal = rustix::termios::isatty(io::stdin());
        let thread = std::thread::Builder::new().name("steno-signals".to_owned()).spawn(move || {
            for signal in &mut signals {
                let signal =
                    Signal::from_named_raw(signal).filter(|signal| *signal != Signal::INT || !is_terminal);
                if let (Some(pid), Some(signal)) = (pid, signal) {
                    kill_process(pid, signal).ok();
                }
            }
        })?;
        Ok(Self { handle, thread: Some(thread) })
    }
}

impl Drop for SignalForwarder {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
