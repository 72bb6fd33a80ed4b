//! The pager: a program that shows long output on a terminal.

use std::ffi::OsString;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The pager if none is set.
const DEFAULT: [&str; 2] = ["less", "-R"];
/// What `less` does if the user has not set it: it ends if everything fits on the screen, passes on colours, and leaves the
/// text on the screen.
const LESS_OPTIONS: &str = "FRX";

/// A pager that runs.
pub struct Pager(Child);

impl Pager {
    /// Starts the pager that the settings name: `STENO_PAGER`, else `PAGER`, else `less -R`. Returns it with its input, or
    /// `None` if it cannot be started, or if the name is empty or `cat`.
    pub fn start(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<(Self, ChildStdin)> {
        let mut command = match variable("STENO_PAGER").or_else(|| variable("PAGER")) {
            Some(name) if name.is_empty() || name == "cat" => return None,
            Some(name) => {
                // Users set options too, so a shell reads it.
                let mut command = Command::new("sh");
                command.arg("-c").arg(name);
                command
            }
            None => {
                let mut command = Command::new(DEFAULT[0]);
                command.arg(DEFAULT[1]);
                command
            }
        };
        if variable("LESS").is_none() {
            command.env("LESS", LESS_OPTIONS);
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let pipe = child.stdin.take()?;
        // Ctrl-C is for the pager: it stops a search, and must not leave the pager without its parent.
        if let Err(error) =
            signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))
        {
            tracing::warn!("cannot ignore SIGINT: {error}");
        }
        Some((Self(child), pipe))
    }

    /// Waits until the user leaves it.
    pub fn wait(mut self) {
        self.0.wait().ok();
    }
}
