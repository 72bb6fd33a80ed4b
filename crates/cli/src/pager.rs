//! The pager: a program that shows long output on a terminal.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use steno_views::columns_of;

use crate::recording::warn;

/// The pager if none is set.
const DEFAULT: [&str; 2] = ["less", "-R"];
/// What `less` does if the user has not set it: it ends if everything fits on the screen, passes on colours, and leaves the
/// text on the screen.
const LESS_OPTIONS: &str = "FRX";
/// The exit codes with which a shell says that it cannot start a program.
const NOT_STARTED: [i32; 2] = [126, 127];
/// More than a pipe holds: of a longer output, the pager has read something.
const UNREAD_MAX: usize = 128 * 1024;

/// A pager that runs.
pub struct Pager(Rc<RefCell<PagerProcess>>);

/// What is written to a pager. If the shell cannot start the pager, it goes to stdout.
pub struct PagerInput(Rc<RefCell<PagerProcess>>);

struct PagerProcess {
    child: Child,
    /// `None` once the pager has ended.
    pipe: Option<ChildStdin>,
    /// The variable that names the pager, and its value; `None` for the default.
    setting: Option<(&'static str, OsString)>,
    /// What was written, as long as it is possible that nobody has read it.
    unread: Option<Vec<u8>>,
    /// Whether the output goes to stdout.
    is_direct: bool,
}

impl Pager {
    /// Starts the pager that the settings name: `STENO_PAGER`, else `PAGER`, else `less -R`. Returns it with its input, or
    /// `None` if it cannot be started, or if the name is empty or `cat`.
    pub fn start(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<(Self, PagerInput)> {
        let setting =
            ["STENO_PAGER", "PAGER"].into_iter().find_map(|name| variable(name).map(|value| (name, value)));
        let mut command = match &setting {
            Some((_, name)) if name.is_empty() || name == "cat" => return None,
            Some((_, name)) => {
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
        let pipe = child.stdin.take();
        // Ctrl-C is for the pager: it stops a search, and must not leave the pager without its parent.
        if let Err(error) =
            signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))
        {
            tracing::warn!("cannot ignore SIGINT: {error}");
        }
        let unread = setting.is_some().then(Vec::new);
        let process = PagerProcess { child, pipe, setting, unread, is_direct: false };
        let process = Rc::new(RefCell::new(process));
        Some((Self(Rc::clone(&process)), PagerInput(process)))
    }

    /// Waits until the user leaves it. False if the shell could not start it.
    pub fn wait(self) -> bool {
        let mut process = self.0.borrow_mut();
        process.end();
        !process.is_direct
    }
}

impl PagerProcess {
    /// Waits for the pager. If the shell could not start it, prints what nobody has read.
    fn end(&mut self) {
        self.pipe = None;
        let ended = self.child.wait();
        let unread = self.unread.take();
        let code = ended.ok().and_then(|status| status.code());
        let (Some(unread), Some((variable, name))) = (unread, &self.setting) else { return };
        if code.is_none_or(|code| !NOT_STARTED.contains(&code)) {
            return;
        }
        warn(&format!(
            "cannot start the pager `{}` that `{variable}` names; the output is printed without it",
            name.to_string_lossy()
        ));
        self.is_direct = true;
        let mut stdout = io::stdout().lock();
        // Whoever does not read stdout on a terminal has left it.
        stdout.write_all(&unread).and_then(|()| stdout.flush()).ok();
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(unread) = self.unread.take_if(|unread| unread.len() + bytes.len() > UNREAD_MAX) {
            drop(unread);
        } else if let Some(unread) = &mut self.unread {
            unread.extend_from_slice(bytes);
        }
    }
}

impl Write for PagerInput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut process = self.0.borrow_mut();
        if let Some(pipe) = &mut process.pipe {
            match pipe.write(bytes) {
                Ok(len) => {
                    process.keep(&bytes[..len]);
                    return Ok(len);
                }
                Err(error) if error.kind() == ErrorKind::BrokenPipe && process.unread.is_some() => {
                    process.end();
                }
                Err(error) => return Err(error),
            }
        }
        if process.is_direct { io::stdout().write(bytes) } else { Err(ErrorKind::BrokenPipe.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.0.borrow().is_direct { io::stdout().flush() } else { Ok(()) }
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
