//! Records a session file of Codex as a spine.

use std::io::{self, BufRead};
use std::path::Path;

use steno_adapters::codex::spine::{Base, History, RolloutFold, SpineMade};
use steno_journal::{Journal, Level};
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{Packing, ThreadId};

use super::{Error, ForgottenRule, SourceName, SpineRecorder, SpineWriteReport};

/// The maximum number of forks that continue each other.
const FORKS_MAX: usize = 16;

/// Access to the session files of other threads, which forks continue.
pub trait Bases {
    /// Opens the file of a thread, without compression.
    fn open(&mut self, thread: &str) -> Option<Box<dyn BufRead>>;
}

/// A session file to record.
pub struct SessionFile<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Its bytes, uncompressed.
    pub bytes: &'a mut dyn BufRead,
    /// Its compression.
    pub unpacked: Option<Packing>,
}

/// Records the part of a session file that its thread's spine does not have.
///
/// # Errors
///
/// [`Error::Forgotten`] if its session was forgotten, or an error of the file or the journal.
pub fn record_rollout(
    journal: &Journal,
    file: SessionFile<'_>,
    bases: &mut dyn Bases,
    forgotten: ForgottenRule,
) -> Result<(Vec<ThreadId>, SpineWriteReport), Error> {
    let mut recorder: Option<SpineRecorder> = None;
    let SessionFile { path, bytes, unpacked } = file;
    let mut fold = SessionFileFold::new(path);
    let too_long = each_line(path, bytes, None, &mut |offset, line| {
        let Some((thread, made)) = fold.line(offset, line, bases) else { return Ok(()) };
        let recorder = recorder.get_or_insert_with(|| {
            let source = SourceName::of_rollout(&file_name(path, &thread), &thread);
            let recorder = SpineRecorder::new(journal.clone(), source, Level::Written);
            recorder.with_forgotten(forgotten).with_packing(unpacked)
        });
        made.into_iter().try_for_each(|made| recorder.write(&thread, made))
    })?;
    let recorder = recorder.ok_or_else(|| Error::NoThread { path: path.to_owned() })?;
    let (threads, written) = recorder.close()?;
    Ok((threads, written + SpineWriteReport { refused: too_long, ..SpineWriteReport::default() }))
}

/// Folds a session file line by line, with the history of the thread that it continues.
pub(crate) struct SessionFileFold {
    fold: RolloutFold,
    /// Records that were made before the thread was named.
    waiting: Vec<SpineMade>,
    is_begun: bool,
}

impl SessionFileFold {
    /// Begins the file at a path.
    pub(crate) fn new(path: &Path) -> Self {
        let fold = RolloutFold::of_file(path.display().to_string());
        Self { fold, waiting: Vec::new(), is_begun: false }
    }

    /// Takes a line without its newline, and returns its records; `None` until the file has named its thread.
    pub(crate) fn line(
        &mut self,
        offset: u64,
        line: &[u8],
        bases: &mut dyn Bases,
    ) -> Option<(ThreadId, Vec<SpineMade>)> {
        self.waiting.extend(self.fold.line(offset, line));
        let thread = self.fold.thread().cloned()?;
        if !self.is_begun {
            self.is_begun = true;
            if let Some(history) = self.fold.base().and_then(|base| history_of(base, bases, FORKS_MAX)) {
                self.fold.give_base(history);
            }
        }
        Some((thread, std::mem::take(&mut self.waiting)))
    }
}

/// Returns the name of a session file in evidence. It does not depend on its directory and compression.
fn file_name(path: &Path, thread: &ThreadId) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|name| name.starts_with("rollout-"));
    name.map_or_else(|| thread.to_string(), |name| name.trim_end_matches(".zst").to_owned())
}

/// Folds the history that a fork continues.
fn history_of(base: &Base, bases: &mut dyn Bases, forks_left: usize) -> Option<History> {
    let mut file = bases.open(&base.thread)?;
    let mut fold = RolloutFold::new();
    let mut is_begun = false;
    let mut inner = None;
    let read = each_line(Path::new(&base.thread), &mut *file, base.bytes, &mut |offset, line| {
        fold.line(offset, line);
        if !is_begun && fold.thread().is_some() {
            is_begun = true;
            inner = fold.base().cloned();
            if let Some(history) = inner
                .as_ref()
                .filter(|_| forks_left > 0)
                .and_then(|inner| history_of(inner, bases, forks_left - 1))
            {
                fold.give_base(history);
            }
        }
        Ok(())
    });
    read.ok().map(|_| fold.history().clone())
}

/// Takes a line and its offset.
pub(crate) type OnLine<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), Error>;

/// Reads the complete lines of a file, up to a byte. A last line without a newline is not complete.
///
/// Lines longer than [`LINE_BYTES_MAX`] are skipped and not kept in memory: a few bytes of zstd can unpack to a line of
/// any length. Returns their number; no spine can have them.
pub(crate) fn each_line(
    path: &Path,
    file: &mut dyn BufRead,
    bytes_max: Option<u64>,
    on_line: OnLine<'_>,
) -> Result<u64, Error> {
    let (mut offset, mut line, mut too_long) = (0, Vec::new(), 0);
    while bytes_max.is_none_or(|max| offset < max) {
        line.clear();
        let read = read_line(file, &mut line);
        let Some(read) = read.map_err(|source| Error::Source { path: path.to_owned(), source })? else {
            break;
        };
        if read > LINE_BYTES_MAX as u64 {
            too_long += 1;
        } else if !line.trim_ascii().is_empty() {
            on_line(offset, &line)?;
        }
        offset += read;
    }
    Ok(too_long)
}

/// Reads a line without its newline, and returns its length with it; `None` if there is no newline. At most
/// [`LINE_BYTES_MAX`] bytes of a line are kept.
pub(crate) fn read_line(file: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let mut read = 0;
    loop {
        let piece = match file.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        if piece.is_empty() {
            return Ok(None);
        }
        let newline = memchr::memchr(b'\n', piece);
        let part = &piece[..newline.unwrap_or(piece.len())];
        let room = LINE_BYTES_MAX - line.len();
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(newline.is_some());
        read += used as u64;
        file.consume(used);
        if newline.is_some() {
            return Ok(Some(read));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _};

    use steno_capture::packing::UnpackReader;

    use super::*;

    /// Returns the offset and length of each line, and the number of lines that were too long.
    fn lines(mut file: impl BufRead) -> (Vec<(u64, usize)>, u64) {
        let mut found = Vec::new();
        let too_long = each_line(Path::new("f"), &mut file, None, &mut |offset, line| {
            found.push((offset, line.len()));
            Ok(())
        });
        (found, too_long.unwrap())
    }

    #[test]
    fn line_longer_than_the_limit_is_skipped() {
        let long = |bytes: usize| io::repeat(b'x').take(bytes as u64 - 1).chain(&b"\n{}\ntorn"[..]);
        let max = LINE_BYTES_MAX;
        assert_eq!(lines(BufReader::new(long(max))), (vec![(0, max - 1), (max as u64, 2)], 0));
        assert_eq!(lines(BufReader::new(long(max + 1))), (vec![(max as u64 + 1, 2)], 1));
    }

    #[test]
    fn too_long_unpacked_line_is_not_kept_in_memory() {
        let bytes = LINE_BYTES_MAX as u64 * 4;
        let text = b"{}\n".chain(io::repeat(b'x').take(bytes)).chain(&b"\n[]\n"[..]);
        let packed = zstd::encode_all(text, 1).unwrap();
        assert!(packed.len() < 1024 * 1024, "{}", packed.len());
        let file = BufReader::new(UnpackReader::new(&packed[..]));
        assert_eq!(lines(file), (vec![(0, 2), (bytes + 4, 2)], 1));
        let mut line = Vec::new();
        let mut file = BufReader::new(io::repeat(b'x').take(bytes));
        assert_eq!(read_line(&mut file, &mut line).unwrap(), None);
        assert_eq!(line.len(), LINE_BYTES_MAX);
    }
}
