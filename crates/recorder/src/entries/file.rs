//! A log file of entries that several processes may append to: numbers are assigned under its lock (R5).

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::EntryLog;
use super::numbers::EntryNumbers;

/// How long to wait for another process that appends to the file, which takes no longer than one line.
const LOCK_WAIT: Duration = Duration::from_millis(2);
const LOCK_TRIES_MAX: u32 = 2500;
/// The longest line that can be an entry, which has the text of an event in other JSON. Another program may have written to
/// the file.
const LINE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// A file that log records about entries are appended to.
pub struct EntryFile {
    path: PathBuf,
    file: Arc<File>,
    /// Whether it is a regular file. A pipe or a terminal cannot be read back.
    is_regular: bool,
    /// Up to where its lines were read.
    read_to: u64,
    /// Its length before the line that is being appended.
    locked_at: Option<u64>,
    /// Whether nothing more is appended, after an error.
    is_given_up: bool,
    is_warned: bool,
}

impl EntryFile {
    /// Opens a file for appending; creates it if it does not exist.
    ///
    /// # Errors
    /// An I/O error.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_regular = path.metadata().map_or(true, |about| about.is_file());
        let mut options = OpenOptions::new();
        options.append(true).create(true).read(is_regular).mode(0o600);
        let file = Arc::new(options.open(path)?);
        Ok(Self {
            path: path.to_owned(),
            file,
            is_regular,
            read_to: 0,
            locked_at: None,
            is_given_up: false,
            is_warned: false,
        })
    }

    /// Returns the layer that writes log records into the file.
    #[must_use]
    pub fn log(&self) -> EntryLog {
        EntryLog::to_writer(WholeLines { file: Arc::clone(&self.file), line: Vec::new() })
    }

    /// Reads the numbers that the file has so far.
    pub(super) fn catch_up(&mut self, numbers: &mut EntryNumbers) {
        if self.lock(numbers) && self.locked_at.take().is_some() {
            self.file.unlock().ok();
        }
    }

    /// Locks the file and reads what others have appended; false if nothing can be appended.
    pub(super) fn lock(&mut self, numbers: &mut EntryNumbers) -> bool {
        if self.is_given_up {
            return false;
        }
        if !self.is_regular {
            return true;
        }
        let locked = self.wait_for_lock().and_then(|()| self.read_on(numbers));
        match locked {
            Ok(end) => self.locked_at = Some(end),
            Err(error) => {
                self.file.unlock().ok();
                self.give_up(&error);
            }
        }
        !self.is_given_up
    }

    /// Unlocks the file; false if nothing was appended. Removes half a line.
    pub(super) fn unlock(&mut self) -> bool {
        let Some(before) = self.locked_at.take() else { return !self.is_regular };
        let is_added = self.is_line_added(before);
        match is_added {
            Ok(true) => {}
            Ok(false) => self.warn("a record could not be added, and is left out"),
            Err(error) => self.give_up(&error),
        }
        self.file.unlock().ok();
        !self.is_given_up && self.read_to > before
    }

    fn is_line_added(&mut self, before: u64) -> io::Result<bool> {
        let end = self.file.metadata()?.len();
        let mut last = [0];
        let mut file = &*self.file;
        if end > before {
            file.seek(SeekFrom::Start(end - 1))?;
            file.read_exact(&mut last)?;
        }
        let is_whole = last == *b"\n";
        if end > before && !is_whole {
            self.file.set_len(before)?;
        }
        self.read_to = if is_whole { end } else { before };
        Ok(is_whole)
    }

    fn wait_for_lock(&self) -> io::Result<()> {
        for _ in 0..LOCK_TRIES_MAX {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_WAIT),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds it"))
    }

    /// Reads the lines that were appended since; returns the length of the file.
    fn read_on(&mut self, numbers: &mut EntryNumbers) -> io::Result<u64> {
        let mut end = self.file.metadata()?.len();
        // It was truncated or replaced.
        if end < self.read_to {
            self.read_to = 0;
        }
        if end == self.read_to {
            return Ok(end);
        }
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.read_to))?;
        let (mut reader, mut line) = (BufReader::new(file.take(end - self.read_to)), Vec::new());
        let (mut is_whole, mut is_rest) = (true, false);
        while reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? > 0 {
            is_whole = line.ends_with(b"\n");
            // A longer line is not an entry.
            if !is_rest && (is_whole || (line.len() as u64) < LINE_BYTES_MAX) {
                numbers.read(&line);
            }
            is_rest = !is_whole;
            line.clear();
        }
        if !is_whole {
            // Its writer died. The incomplete text stays, on a separate line.
            file.write_all(b"\n")?;
            end += 1;
        }
        self.read_to = end;
        Ok(end)
    }

    fn give_up(&mut self, error: &io::Error) {
        self.is_given_up = true;
        tracing::warn!("cannot add to `{}`: {error}; no more entries are logged", self.path.display());
    }

    fn warn(&mut self, text: &str) {
        if !std::mem::replace(&mut self.is_warned, true) {
            tracing::warn!("`{}`: {text}", self.path.display());
        }
    }
}

/// Writes each line with one call. A failed write is not retried.
struct WholeLines {
    file: Arc<File>,
    line: Vec<u8>,
}

impl Write for WholeLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if self.line.ends_with(b"\n") {
            (&*self.file).write_all(&std::mem::take(&mut self.line))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
