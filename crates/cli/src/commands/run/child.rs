//! The command, its streams, and the wait for its end.
//!
//! A stream that is a terminal stays one: then the command is started by a leader, in a session with a terminal of its
//! own. Streams that are not terminals are pipes. Standard input is passed on as it is, unless it is recorded or its
//! terminal is ours.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};
use rustix::termios::isatty;
use steno_capture::wrap::{ForwardEnd, Forwarder, SpoolQueue, Stop, StopSignal};
use steno_model::wrap::{ProcessEnd, WrapLane};

use super::background;
use super::leader;
use super::signals::SignalForwarder;
use super::terminal::Terminal;
use crate::recording::warn;

/// How large pipes are made where that is possible, so that commands seldom wait.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;
/// How long the output of programs that the command leaves behind is still recorded.
const LAST_WORDS_MAX: Duration = Duration::from_millis(250);

/// Which of our streams are terminals, and how the command gets its own.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    /// Whether each lane of the command is a terminal.
    terminals: [bool; 3],
    /// Whether standard output and standard error are the same file, so that one pipe keeps their order.
    is_joined: bool,
    /// Whether standard input is recorded.
    is_input_kept: bool,
}

impl Streams {
    /// Looks at the streams of this process.
    pub fn of_this_process(is_input_kept: bool) -> Self {
        let [input, out, err] = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        // If only stdin is a terminal, the command inherits it: another program of the pipeline may read it too.
        let is_read = isatty(input) && (isatty(out) || isatty(err));
        let mut terminals = [false; 3];
        terminals[WrapLane::Out as usize] = isatty(out);
        terminals[WrapLane::Err as usize] = isatty(err);
        terminals[WrapLane::In as usize] = is_read;
        Self { terminals, is_joined: is_same_file(out, err), is_input_kept: is_input_kept && !isatty(input) }
    }

    /// Returns the lanes of the command that are terminals.
    pub fn terminals(self) -> Vec<WrapLane> {
        WrapLane::ALL.into_iter().filter(|lane| self.is_terminal(*lane)).collect()
    }

    fn is_terminal(self, lane: WrapLane) -> bool {
        self.terminals[lane as usize]
    }
}

/// Tells whether two streams are one pipe, socket or regular file.
fn is_same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let (Ok(one), Ok(other)) = (fstat(one), fstat(other)) else { return false };
    let kind = FileType::from_raw_mode(one.st_mode);
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
        && matches!(kind, FileType::Fifo | FileType::RegularFile | FileType::Socket)
}

/// A stream from or to the command.
struct OpenStream {
    from: OwnedFd,
    to: OwnedFd,
    lane: Option<WrapLane>,
}

/// The streams of a command.
#[derive(Default)]
struct OpenStreams {
    /// What it prints.
    outputs: Vec<OpenStream>,
    /// What it reads, if we pass it on.
    input: Option<OpenStream>,
}

impl OpenStreams {
    /// Gives a command its streams.
    fn connect(command: &mut Command, streams: Streams, terminal: Option<&Terminal>) -> io::Result<Self> {
        let mut open = Self::default();
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        if streams.is_joined && terminal.is_none() {
            let write = open.pipe_to(WrapLane::Out, out)?;
            command.stderr(write.try_clone()?).stdout(write);
        } else {
            let out =
                open.output(WrapLane::Out, out, terminal.filter(|_| streams.is_terminal(WrapLane::Out)))?;
            let err =
                open.output(WrapLane::Err, err, terminal.filter(|_| streams.is_terminal(WrapLane::Err)))?;
            command.stdout(out).stderr(err);
        }
        let from = || rustix::stdio::stdin().try_clone_to_owned();
        if let Some(terminal) = terminal.filter(|_| streams.is_terminal(WrapLane::In)) {
            command.stdin(terminal.slave()?);
            open.input = Some(OpenStream { from: from()?, to: terminal.master()?, lane: None });
        } else if streams.is_input_kept {
            let (read, write) = pipe()?;
            command.stdin(read);
            open.input = Some(OpenStream { from: from()?, to: write, lane: Some(WrapLane::In) });
        }
        Ok(open)
    }

    /// Makes a stream on which the command prints.
    fn output(
        &mut self,
        lane: WrapLane,
        to: BorrowedFd<'_>,
        terminal: Option<&Terminal>,
    ) -> io::Result<OwnedFd> {
        let Some(terminal) = terminal else { return self.pipe_to(lane, to) };
        // Both streams may be the terminal, which is forwarded once.
        if terminal.is_new() {
            let (from, to) = (terminal.master()?, to.try_clone_to_owned()?);
            self.outputs.push(OpenStream { from, to, lane: Some(lane) });
        }
        terminal.slave()
    }

    fn pipe_to(&mut self, lane: WrapLane, to: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let (read, write) = pipe()?;
        self.outputs.push(OpenStream { from: read, to: to.try_clone_to_owned()?, lane: Some(lane) });
        Ok(write)
    }
}

/// A command that runs.
pub struct WrappedChild {
    pid: Pid,
    streams: OpenStreams,
    terminal: Option<Arc<Terminal>>,
}

impl WrappedChild {
    /// Starts a command.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(words: &[OsString], variables: &[(&str, String)], streams: Streams) -> io::Result<Self> {
        let is_on_terminal = streams.is_terminal(WrapLane::Out) || streams.is_terminal(WrapLane::Err);
        let mut terminal =
            if is_on_terminal { Some(Terminal::open(streams.is_terminal(WrapLane::In))?) } else { None };
        let mut command = if is_on_terminal {
            leader::command(words)?
        } else {
            let (program, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
            let mut command = Command::new(program);
            command.args(rest);
            command
        };
        command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
        let streams = OpenStreams::connect(&mut command, streams, terminal.as_ref())?;
        // Before the command prints anything: our terminal must not change it.
        if let Some(terminal) = &terminal {
            terminal.enter();
        }
        let child = command.spawn()?;
        // The command has its ends of the pipes now; ours would keep the pipes open.
        drop(command);
        if let Some(terminal) = &mut terminal {
            terminal.close_slave();
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { pid, streams, terminal: terminal.map(Arc::new) })
    }

    /// Forwards until the command has ended.
    ///
    /// # Errors
    /// A thread cannot be started, or the wait fails.
    pub fn forward(self, queue: &SpoolQueue) -> io::Result<ProcessEnd> {
        let Self { pid, streams: OpenStreams { outputs, input }, terminal } = self;
        let signals = SignalForwarder::start(pid, terminal.clone())?;
        let (stop, signal) = Stop::new()?;
        let mut threads = Vec::new();
        for stream in outputs {
            threads.push(forward(stream, signal.try_clone()?, queue)?);
        }
        if let Some(stream) = input {
            // This thread is not joined: it waits until our standard input ends, which may be never.
            let (never, signal) = Stop::new()?;
            std::mem::forget(never);
            forward(stream, signal, queue)?;
        }
        // If the command stops, this process stops too, and continues with it.
        let end = wait(pid, |change| {
            if change.stopped() {
                signals.stop_with(pid, terminal.as_deref());
            } else {
                signals.continued();
            }
        })?;
        if terminal.is_none() {
            wait_for_last_words(&threads);
        }
        stop.stop();
        for thread in threads {
            if let Ok(stream) = thread.join() {
                stream.settle();
            }
        }
        drop(signals);
        if let Some(terminal) = &terminal {
            terminal.leave();
        }
        Ok(end)
    }
}

/// A stream that is not forwarded by us any more.
struct ForwardedStream {
    end: ForwardEnd,
    to: OwnedFd,
}

impl ForwardedStream {
    /// Leaves a stream that others have open to another process.
    fn settle(self) {
        match self.end {
            ForwardEnd::Stopped(from) => {
                if let Err(error) = background::start(from, self.to) {
                    warn(&format!("cannot forward the output of programs in the background: {error}"));
                }
            }
            ForwardEnd::Failed(error) => warn(&format!("cannot forward the output: {error}")),
            ForwardEnd::Closed | ForwardEnd::Unread => {}
        }
    }
}

fn forward(
    stream: OpenStream,
    stop: StopSignal,
    queue: &SpoolQueue,
) -> io::Result<JoinHandle<ForwardedStream>> {
    let queue = queue.clone();
    let OpenStream { from, to, lane } = stream;
    std::thread::Builder::new().name("steno-forward".to_owned()).spawn(move || {
        let end = Forwarder { from, to: to.as_fd(), lane, stop }.run(&queue);
        ForwardedStream { end, to }
    })
}

/// Waits a moment for programs that outlive the command only briefly, such as the last of `exec > >(tee log)`.
fn wait_for_last_words(threads: &[JoinHandle<ForwardedStream>]) {
    let begun = Instant::now();
    while !threads.iter().all(JoinHandle::is_finished) && begun.elapsed() < LAST_WORDS_MAX {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Makes a pipe that is not inherited, as large as possible.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    #[cfg(target_os = "linux")]
    rustix::pipe::fcntl_setpipe_size(&write, PIPE_BYTES).ok();
    Ok((read.into(), write.into()))
}

/// Waits for the end of a process. Calls `changed` each time it stops or continues.
pub(super) fn wait(pid: Pid, mut changed: impl FnMut(WaitStatus)) -> io::Result<ProcessEnd> {
    loop {
        let status = match waitpid(Some(pid), WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
            Ok(Some((_, status))) => status,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(code) = status.exit_status() {
            return Ok(ProcessEnd::Code(code));
        }
        if let Some(signal) = status.terminating_signal() {
            return Ok(ProcessEnd::Signal(signal));
        }
        changed(status);
    }
}
