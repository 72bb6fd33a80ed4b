//! stdout: buffered, coloured if wanted, silent once the reader has left.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::rc::Rc;

use anstream::AutoStream;
use anstyle::AnsiColor;
use rustix::event::{PollFd, PollFlags};
use steno_views::{Lines, columns_of, visible};

use crate::args::ColorChoice;
use crate::pager::{Pager, WaitingPage};

/// The stdout of a command. Write errors are kept until [`Output::finish`], so that a command works the same whether
/// or not its output is read.
pub struct Output {
    stream: BufWriter<AutoStream<Box<dyn Write>>>,
    error: Option<io::Error>,
    width: Option<usize>,
    pager: Option<Pager>,
    /// Lines that are held back until it is known whether they need a pager.
    waiting: Option<WaitingPage>,
    /// How many lines of a page were printed.
    page_lines: usize,
}

/// After this many lines of a page, what is there is written, so that a reader can begin while the rest is drawn.
const FIRST_LINES: usize = 12;

impl Output {
    pub fn new(color: ColorChoice) -> Self {
        let choice = match color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::AlwaysAnsi,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        // The choice is about stdout, also if a pager is between.
        let choice = AutoStream::choice(&io::stdout());
        let stream = BufWriter::new(AutoStream::new(stdout_by_blocks(), choice));
        Self { stream, error: None, width: terminal_width(), pager: None, waiting: None, page_lines: 0 }
    }

    /// Returns an output that keeps what is written, up to a number of bytes, as for a terminal of this width.
    pub fn collected(width: usize, bytes_max: usize) -> (Self, CollectedLines) {
        let lines = CollectedLines { bytes: Rc::default(), bytes_max };
        let writer: Box<dyn Write> = Box::new(lines.clone());
        let stream = BufWriter::new(AutoStream::new(writer, anstream::ColorChoice::AlwaysAnsi));
        (Self { stream, error: None, width: Some(width), pager: None, waiting: None, page_lines: 0 }, lines)
    }

    /// Shows the following lines in a pager, if stdout is a terminal, they do not fit on its screen, and a pager can be
    /// started. They are held back until one of this is known.
    pub fn page(&mut self) {
        if let Some(width) = self.width.filter(|_| self.pager.is_none() && self.waiting.is_none()) {
            self.waiting = Some(WaitingPage::new(width, terminal_rows().unwrap_or(0)));
        }
    }

    /// Prints what is held back, without a pager.
    pub fn settle(&mut self) {
        if let Some(page) = self.waiting.take() {
            self.write(page.bytes());
        }
        self.flush();
    }

    /// Tells whether a pager shows the output.
    pub fn has_pager(&self) -> bool {
        self.pager.is_some()
    }

    fn start_pager(&mut self) {
        if let Some((pager, pipe)) = Pager::start(&|name| std::env::var_os(name)) {
            let choice = AutoStream::choice(&io::stdout());
            self.stream = BufWriter::new(AutoStream::new(Box::new(pipe) as Box<dyn Write>, choice));
            self.pager = Some(pager);
        }
        self.settle();
    }

    /// Returns the width of the terminal; `None` if stdout is not a terminal or the width is not known.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Prints a line of a long page, the first ones at once. False if nobody reads it.
    pub fn page_line(&mut self, line: &str) -> bool {
        self.line(line);
        self.page_lines += 1;
        if self.page_lines == FIRST_LINES {
            self.flush();
        }
        !self.is_broken()
    }

    /// Writes a line of our own, which may have colours.
    pub fn line(&mut self, text: &str) {
        let Some(page) = &mut self.waiting else {
            self.write(text.as_bytes());
            return self.write(b"\n");
        };
        page.push(text);
        if page.is_too_long() {
            self.flush();
            self.start_pager();
        }
    }

    /// Writes bytes past any colour handling.
    pub fn raw_line(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.flush() {
            self.error.get_or_insert(error);
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.write_all(b"\n"));
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    /// Writes a JSON line in which every character that steers a terminal is an escape of JSON.
    pub fn json_line(&mut self, json: &str) {
        harmless_pieces(json, |piece| self.write(piece.as_bytes()));
        self.write(b"\n");
    }

    /// Flushes the buffer; returns false when stdout is closed.
    pub fn flush(&mut self) -> bool {
        if let Err(error) = self.stream.flush() {
            self.error.get_or_insert(error);
        }
        self.error.is_none()
    }

    /// Tells whether the reader of stdout has left, even if nothing is written.
    pub fn is_abandoned() -> bool {
        let stdout = io::stdout();
        let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut asked, Some(&now)).is_ok() && asked[0].revents().contains(PollFlags::ERR)
    }

    /// Tells whether writing has failed, so that a long listing can stop.
    pub fn is_broken(&self) -> bool {
        self.error.is_some()
    }

    pub fn finish(self) -> io::Result<()> {
        self.end().1
    }

    /// Finishes, and tells whether a pager has shown the output. A pager that was left early is no failure.
    pub fn finish_page(self) -> bool {
        self.end().0
    }

    fn end(mut self) -> (bool, io::Result<()>) {
        self.settle();
        // The pager waits for the end of its input.
        drop(self.stream);
        let is_paged = self.pager.is_some_and(Pager::wait);
        (is_paged, self.error.take().map_or(Ok(()), Err))
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.write_all(bytes) {
            self.error.get_or_insert(error);
        }
    }
}

/// Returns stdout behind a buffer of our own: the standard library's is written at the end of every line.
fn stdout_by_blocks() -> Box<dyn Write> {
    match rustix::io::fcntl_dupfd_cloexec(io::stdout(), 0) {
        Ok(stdout) => Box::new(BufWriter::new(File::from(stdout))),
        Err(_) => Box::new(io::stdout()),
    }
}

/// What was written to an output that keeps it.
#[derive(Clone)]
pub struct CollectedLines {
    bytes: Rc<RefCell<Vec<u8>>>,
    bytes_max: usize,
}

impl CollectedLines {
    pub fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.bytes.borrow()).lines().map(str::to_owned).collect()
    }
}

impl Write for CollectedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.bytes.borrow_mut();
        if kept.len() >= self.bytes_max {
            // The writer stops, as if a reader had left.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Prints a message on stderr that is neither data nor a warning. On a terminal, it is broken between words.
pub fn notice(text: &str) {
    notice_line(&wrapped_message(&visible(text, Lines::Escape), 0, stderr_width()));
}

/// Prints a message like [`notice`], but never breaks it: it ends with a command that users copy.
pub fn notice_command(text: &str) {
    notice_line(&visible(text, Lines::Escape));
}

fn notice_line(text: &str) {
    // Nothing can be done when stderr is gone.
    writeln!(anstream::stderr(), "{text}").ok();
}

/// Joins parts with a gap, on as many lines as a terminal of this width needs.
pub fn joined_lines(parts: &[String], gap: &str, width: Option<usize>) -> Vec<String> {
    let mut lines = Vec::<String>::new();
    for (number, part) in parts.iter().enumerate() {
        // The end of a gap stays on its line.
        let end = if number + 1 == parts.len() { 0 } else { gap.trim_end().len() };
        let fits = |last: &str, width| columns_of(last) + gap.len() + columns_of(part) + end <= width;
        match lines.last_mut() {
            Some(last) if width.is_none_or(|width| fits(last, width)) => {
                last.push_str(gap);
                last.push_str(part);
            }
            Some(last) => {
                last.push_str(gap.trim_end());
                lines.push(part.clone());
            }
            None => lines.push(part.clone()),
        }
    }
    lines
}

/// Breaks a message between words for a terminal of this width; commands in backticks stay whole. The first line begins
/// after some columns.
pub fn wrapped_message(text: &str, first: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let (mut out, mut columns) = (String::new(), first);
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
            columns = 0;
        }
        let mut is_code = false;
        let words = line.split(|next| {
            is_code ^= next == '`';
            next == ' ' && !is_code
        });
        for (place, word) in words.enumerate() {
            let len = columns_of(word);
            if place > 0 && columns + 1 + len > width {
                out.push_str("\n  ");
                columns = 2;
            } else if place > 0 {
                out.push(' ');
                columns += 1;
            }
            out.push_str(word);
            columns += len;
        }
    }
    out
}

/// Tells whether stdout shows colours.
pub fn colors_are_on() -> bool {
    AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// Asks how wide the terminal is that stdout goes to.
fn terminal_width() -> Option<usize> {
    terminal_width_of(&io::stdout())
}

/// Asks how wide the terminal is that stderr goes to.
pub fn stderr_width() -> Option<usize> {
    terminal_width_of(&io::stderr())
}

/// Asks how many lines the terminal has that stdout goes to.
fn terminal_rows() -> Option<usize> {
    let wish = std::env::var("LINES").ok();
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_row);
    size_of(wish.as_deref(), size)
}

fn terminal_width_of(stream: &(impl io::IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let wish = std::env::var("COLUMNS").ok();
    let size = rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col);
    size_of(wish.as_deref(), size)
}

/// Chooses a width or height: the user's setting first, then the system's. A terminal that reports 0 does not know it.
fn size_of(wish: Option<&str>, size: Option<u16>) -> Option<usize> {
    let wish = wish.and_then(|wish| wish.trim().parse().ok());
    [wish, size.map(usize::from)].into_iter().flatten().find(|width| *width > 0)
}

/// Writes characters that control a terminal as `\u` escapes. In JSON they occur only inside strings, so the value
/// stays the same.
pub fn harmless_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    harmless_pieces(json, |piece| out.push_str(piece));
    out
}

/// Passes on the parts of [`harmless_json`], so that a very long line is not copied.
pub fn harmless_pieces(json: &str, mut each: impl FnMut(&str)) {
    let mut rest = json;
    while let Some((at, letter)) = rest.char_indices().find(|(_, letter)| is_steering(*letter)) {
        each(&rest[..at]);
        for unit in letter.encode_utf16(&mut [0; 2]) {
            each(&format!("\\u{unit:04x}"));
        }
        rest = &rest[at + letter.len_utf8()..];
    }
    each(rest);
}

fn is_steering(letter: char) -> bool {
    // A tab or carriage return outside of strings is white space, and may stay; inside it is escaped already.
    if letter.is_ascii_graphic() || matches!(letter, ' ' | '\t' | '\r') {
        return false;
    }
    matches!(visible(letter.encode_utf8(&mut [0; 4]), Lines::Keep), std::borrow::Cow::Owned(_))
}

/// The word for `damaged` in output for people; JSON has `damaged`.
const DAMAGED: &str = "DAMAGED";

/// Returns the word for a state in output for people.
pub fn state_word(state: &str) -> &str {
    if state == "damaged" { DAMAGED } else { state }
}

/// Returns the coloured word that begins a line about damage.
pub fn damaged() -> String {
    let bad = AnsiColor::Red.on_default().bold();
    format!("{bad}{DAMAGED}{bad:#}")
}

/// Returns a size for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut scaled = bytes;
    let mut tenths = 0;
    while scaled >= 1_000 && unit + 1 < UNITS.len() {
        tenths = scaled % 1_000 / 100;
        scaled /= 1_000;
        unit += 1;
    }
    if unit == 0 || scaled >= 100 {
        format!("{scaled} {}", UNITS[unit])
    } else {
        format!("{scaled}.{tenths} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_broken_between_words() {
        let check = |text, first, want: &str| assert_eq!(wrapped_message(text, first, Some(20)), want);
        check("one two three", 7, "one two three");
        check("one two three four", 7, "one two three\n  four");
        check("give `steno show last` or\nanother", 6, "give\n  `steno show last`\n  or\nanother");
        check("a-word-that-is-wider-than-the-line", 0, "a-word-that-is-wider-than-the-line");
        assert_eq!(wrapped_message("one two three four five six", 0, None), "one two three four five six");
    }

    #[test]
    fn width_comes_from_the_user_or_the_system() {
        for (wish, size, want) in [
            (Some("60"), Some(120), Some(60)),
            (Some("wide"), Some(120), Some(120)),
            (None, Some(120), Some(120)),
            (None, Some(0), None),
            (Some("0"), Some(120), Some(120)),
            (None, None, None),
        ] {
            assert_eq!(size_of(wish, size), want, "{wish:?} {size:?}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (bytes, want) in
            [(0, "0 B"), (999, "999 B"), (1_000, "1.0 KB"), (3_456_000, "3.4 MB"), (213_000_000, "213 MB")]
        {
            assert_eq!(size(bytes), want);
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let json = "{\"a\":\"\u{9b}2J \u{202e}é\u{7f}\",\t\"b\":1}";
        let harmless = harmless_json(json);
        assert_eq!(harmless, "{\"a\":\"\\u009b2J \\u202eé\\u007f\",\t\"b\":1}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&harmless), read(json));
    }
}
