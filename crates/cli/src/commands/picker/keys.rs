//! The terminal in raw mode, and the keys that the user presses.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// How long the rest of a key may take after its escape character.
const REST_OF_KEY: Duration = Duration::from_millis(30);

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Changes the typed words.
    Edit(Edit),
    /// Chooses another line.
    Go(Go),
    Enter,
    /// Ctrl-R.
    Resume,
    Leave,
    /// A key without a meaning here.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Letter(char),
    /// Deletes the last letter.
    Backspace,
    /// Ctrl-W deletes the last word.
    DeleteWord,
    /// Ctrl-U deletes everything.
    DeleteLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// A terminal whose keys arrive one by one, without being shown. Its modes are restored when it is dropped.
pub(super) struct RawTerminal {
    before: Termios,
    bytes: Vec<u8>,
}

impl RawTerminal {
    pub(super) fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(Self { before, bytes: Vec::new() })
    }

    /// Waits for a key; `None` if none was pressed in time, or the terminal changed its size.
    pub(super) fn key(&mut self, patience: Option<Duration>) -> io::Result<Option<Key>> {
        if self.bytes.is_empty() && !self.read(patience)? {
            return Ok(None);
        }
        // A key may take several bytes, which arrive together. An escape character without more is a key by itself.
        while is_beginning(&self.bytes) && self.read(Some(REST_OF_KEY))? {}
        let (key, len) = parse(&self.bytes);
        self.bytes.drain(..len);
        Ok(Some(key))
    }

    fn read(&mut self, patience: Option<Duration>) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        let time = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut asked, time.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut piece = [0; 64];
        let len = rustix::io::read(&stdin, &mut piece)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bytes.extend_from_slice(&piece[..len]);
        Ok(true)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}

/// Returns the rows and columns of the terminal.
pub(super) fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some((size.ws_row.into(), size.ws_col.into()))
}

/// Tells whether bytes are the beginning of a longer key.
fn is_beginning(bytes: &[u8]) -> bool {
    match bytes {
        [0x1b] | [0x1b, b'[' | b'O'] => true,
        [0x1b, b'[', rest @ ..] => rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b';'),
        [first, ..] => bytes.len() < utf8_len(*first),
        [] => false,
    }
}

fn utf8_len(first: u8) -> usize {
    match first {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        0..0xc0 => 1,
    }
}

/// Reads the first key of some bytes, and returns how many of them it takes.
fn parse(bytes: &[u8]) -> (Key, usize) {
    match bytes {
        [0x1b, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';');
            let Some(end) = end else { return (Key::Other, bytes.len()) };
            let key = match (&rest[..end], rest[end]) {
                (_, b'A') => Key::Go(Go::Up),
                (_, b'B') => Key::Go(Go::Down),
                (_, b'H') | (b"1" | b"7", b'~') => Key::Go(Go::First),
                (_, b'F') | (b"4" | b"8", b'~') => Key::Go(Go::Last),
                (b"5", b'~') => Key::Go(Go::PageUp),
                (b"6", b'~') => Key::Go(Go::PageDown),
                _ => Key::Other,
            };
            (key, 2 + end + 1)
        }
        [0x1b] | [0x03 | 0x04, ..] => (Key::Leave, 1),
        [0x1b, _, ..] => (Key::Other, 2),
        [b'\r' | b'\n', ..] => (Key::Enter, 1),
        [0x7f | 0x08, ..] => (Key::Edit(Edit::Backspace), 1),
        [0x10, ..] => (Key::Go(Go::Up), 1),
        [0x0e, ..] => (Key::Go(Go::Down), 1),
        [0x12, ..] => (Key::Resume, 1),
        [0x15, ..] => (Key::Edit(Edit::DeleteLine), 1),
        [0x17, ..] => (Key::Edit(Edit::DeleteWord), 1),
        [0..0x20, ..] => (Key::Other, 1),
        [first, ..] => {
            let len = utf8_len(*first).min(bytes.len());
            let letter = std::str::from_utf8(&bytes[..len]).ok().and_then(|text| text.chars().next());
            (letter.map_or(Key::Other, |letter| Key::Edit(Edit::Letter(letter))), len)
        }
        [] => (Key::Other, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_their_bytes() {
        for (bytes, want) in [
            ("a", Key::Edit(Edit::Letter('a'))),
            ("é", Key::Edit(Edit::Letter('é'))),
            ("語", Key::Edit(Edit::Letter('語'))),
            ("\x1b[A", Key::Go(Go::Up)),
            ("\x1bOB", Key::Go(Go::Down)),
            ("\x1b[1;5A", Key::Go(Go::Up)),
            ("\x1b[5~", Key::Go(Go::PageUp)),
            ("\x1b[6~", Key::Go(Go::PageDown)),
            ("\x1b[200~", Key::Other),
            ("\x1b", Key::Leave),
            ("\x03", Key::Leave),
            ("\x12", Key::Resume),
            ("\r", Key::Enter),
            ("\x7f", Key::Edit(Edit::Backspace)),
            ("\t", Key::Other),
        ] {
            assert_eq!(parse(bytes.as_bytes()), (want, bytes.len()), "{bytes:?}");
            let more = format!("{bytes}x");
            if bytes != "\x1b" {
                assert_eq!(parse(more.as_bytes()), (want, bytes.len()), "{more:?}");
            }
            assert!(!is_beginning(bytes.as_bytes()) || bytes == "\x1b", "{bytes:?}");
        }
        for beginning in [&b"\x1b"[..], b"\x1b[", b"\x1b[1;", b"\xe8\xaa"] {
            assert!(is_beginning(beginning), "{beginning:?}");
        }
        assert_eq!(parse(b"\xff\xff").0, Key::Other);
    }
}
