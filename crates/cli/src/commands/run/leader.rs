//! The leader of the session in which a command has its terminal.
//!
//! A command that stops (Ctrl-Z) must have a parent in its session that is not in its process group; otherwise the
//! system ignores the stop. So this small process starts the command and waits for it, like a shell.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process, kill_process_group, setsid};
use rustix::termios::{isatty, tcsetpgrp};
use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;

use super::child::wait;
use super::{NOT_FOUND, NOT_STARTED, exit_of};
use steno_model::wrap::ProcessEnd;

/// The first argument of the process.
pub const ARGUMENT: &str = "__wrap-leader";

/// How long the terminal stays after the end of the command. Nobody notices it.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// Returns the command that starts a leader. Its streams are those of the command.
pub fn command(words: &[OsString]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ARGUMENT).args(words);
    Ok(command)
}

/// Runs the leader.
pub fn main(words: &[OsString]) -> ExitCode {
    match lead(words) {
        Ok(end) => ExitCode::from(exit_of(end).code()),
        Err(error) => {
            let program = words.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            let shown = steno_views::visible(&program, steno_views::Lines::Escape);
            writeln!(io::stderr(), "error: cannot start `{shown}`: {error}").ok();
            ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
        }
    }
}

fn lead(words: &[OsString]) -> io::Result<ProcessEnd> {
    let (program, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    // Standard input may be another terminal, which is not that of this session.
    let terminal = streams.into_iter().rev().find(|stream| isatty(stream)).ok_or(io::ErrorKind::NotFound)?;
    setsid()?;
    ioctl_tiocsctty(terminal)?;
    // Until the command has the terminal, its keys and size changes send signals to us. Later we are in the background:
    // SIGTTOU must not stop us.
    let signals = Signals::new([SIGINT, SIGQUIT, SIGTSTP, SIGWINCH, SIGTTOU])?;
    // The command inherits which signals are ignored, so a handler for those must wait until it has started. The others
    // need theirs before: a signal in between would end this process instead of reaching the command.
    let ignored = ignored_signals();
    let (late, early): (Vec<i32>, Vec<i32>) = [SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT]
        .into_iter()
        .partition(|signal| ignored.is_none_or(|mask| mask >> (signal - 1) & 1 == 1));
    for signal in early {
        signals.handle().add_signal(signal)?;
    }
    let child = Command::new(program).args(rest).process_group(0).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    for signal in late {
        signals.handle().add_signal(signal)?;
    }
    let handle = signals.handle();
    forward_signals(pid, signals)?;
    tcsetpgrp(terminal, pid).ok();
    let end = wait(pid, |status| {
        if !status.stopped() {
            return;
        }
        // It may have been stopped because it used the terminal before it was in the foreground.
        let was_early = matches!(status.stopping_signal(), Some(SIGTTIN | SIGTTOU));
        if !was_early {
            // Our parent sees this, and stops too. It continues us.
            signal_hook::low_level::raise(SIGSTOP).ok();
        }
        tcsetpgrp(terminal, pid).ok();
        kill_process_group(pid, Signal::CONT).ok();
    })?;
    // Its number may soon be that of another process.
    handle.close();
    // The terminal ends with this process. The system then discards what the command has just printed, if a thread of the
    // system has not moved it to the other side yet. Nothing tells when it has, so this is likely, not certain.
    std::thread::sleep(LAST_WORDS);
    Ok(end)
}

/// Returns the signals that this process ignores, a bit each, where the system tells.
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Passes signals on to the command.
fn forward_signals(pid: Pid, mut signals: Signals) -> io::Result<()> {
    std::thread::Builder::new().name("steno-signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            let Some(named) = Signal::from_named_raw(signal) else { continue };
            match signal {
                SIGTTOU | SIGCONT => {}
                SIGTERM | SIGUSR1 | SIGUSR2 => drop(kill_process(pid, named)),
                // The terminal sends these to all programs in the foreground.
                _ => drop(kill_process_group(pid, named)),
            }
        }
    })?;
    Ok(())
}
