//! The pager: a program that shows long output on a terminal.

use std::ffi::OsString;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use steno_views::columns_of;

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

/// Lines that are held back until they are known not to fit on the screen.
pub struct WaitingPage {
    bytes: Vec<u8>,
    columns: usize,
    rows: usize,
    rows_max: usize,
}

impl WaitingPage {
    /// Makes an empty page for a terminal of this size.
    pub fn new(columns: usize, rows: usize) -> Self {
        // The line below is for the shell.
        Self { bytes: Vec::new(), columns, rows: 0, rows_max: rows.saturating_sub(1) }
    }

    /// Adds a line, which the terminal breaks if it is wider than that.
    pub fn push(&mut self, text: &str) {
        let plain = anstream::adapter::strip_str(text).to_string();
        let rows = plain.split('\n').map(|line| columns_of(line).div_ceil(self.columns.max(1)).max(1));
        self.rows += rows.sum::<usize>();
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\n');
    }

    /// Tells whether the lines need a pager.
    pub fn is_too_long(&self) -> bool {
        self.rows > self.rows_max
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_too_long_if_it_does_not_fit_above_the_prompt() {
        let check = |lines: &[&str], want: bool| {
            let mut page = WaitingPage::new(10, 4);
            for line in lines {
                page.push(line);
            }
            assert_eq!(page.is_too_long(), want, "{lines:?}");
        };
        check(&["a", "", "c"], false);
        check(&["a", "b", "c", "d"], true);
        // The terminal breaks long lines, and colours have no width.
        check(&["0123456789", "01234567890"], false);
        check(&["0123456789", "012345678901234567890"], true);
        check(&["\u{1b}[31m0123456789\u{1b}[0m", "b", "c"], false);
        check(&["a\nb\nc\nd"], true);
        let mut page = WaitingPage::new(10, 0);
        page.push("a");
        assert!(page.is_too_long(), "the height of the terminal is not known");
    }
}
