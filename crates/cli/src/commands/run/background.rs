//! Programs that a command leaves in the background go on printing. `run` has ended then, so another process forwards
//! what they print, without recording it. Without it they would be killed by SIGPIPE.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::setsid;
use steno_capture::wrap::{ForwardEnd, Forwarder, SpoolQueue, Stop};

/// The first argument of the process.
pub const ARGUMENT: &str = "__wrap-background";

/// Starts a process that forwards a stream until its last writer closes it.
///
/// # Errors
/// The process cannot be started.
pub fn start(from: OwnedFd, to: OwnedFd) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ARGUMENT).stdin(from).stdout(to).stderr(Stdio::null()).current_dir("/");
    command.spawn().map(drop)
}

/// Forwards standard input to standard output.
pub fn main() -> ExitCode {
    // Ctrl-C at the terminal is not for us.
    setsid().ok();
    let forward = || -> io::Result<ForwardEnd> {
        let (from, to) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        let from = from.try_clone_to_owned()?;
        let (_running, stop) = Stop::new()?;
        Ok(Forwarder { from, to, lane: None, stop }.run(&SpoolQueue::default()))
    };
    match forward() {
        Ok(ForwardEnd::Closed | ForwardEnd::Unread) => ExitCode::SUCCESS,
        Ok(ForwardEnd::Stopped(_) | ForwardEnd::Failed(_)) | Err(_) => ExitCode::FAILURE,
    }
}
