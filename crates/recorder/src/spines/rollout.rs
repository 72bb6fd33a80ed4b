//! A session file of Codex, recorded as a spine.

use std::io::BufRead;
use std::path::Path;

use steno_adapters::codex::spine::{Base, History, RolloutFold, SpineMade};
use steno_journal::{Journal, Level};
use steno_model::{Packing, ThreadId};

use super::{Error, Forgotten, SourceName, SpineRecorder, Written};

/// How often a fork may go on from a fork.
const FORKS_MAX: usize = 16;

/// Finds the session files of other threads, which forks go on from.
pub trait Bases {
    /// Opens the file of a thread, from its beginning on and without compression.
    fn open(&mut self, thread: &str) -> Option<Box<dyn BufRead>>;
}

/// A session file to record.
pub struct SessionFile<'a> {
    /// Where it lies.
    pub path: &'a Path,
    /// Its bytes as its agent wrote them.
    pub bytes: &'a mut dyn BufRead,
    /// What they were unpacked from, if they were packed.
    pub unpacked: Option<Packing>,
}

/// Records what a session file has that its thread's spine has not.
///
/// # Errors
/// [`Error::Forgotten`] when its session was, or what the file, or the journal, says.
pub fn record_rollout(
    journal: &Journal,
    file: SessionFile<'_>,
    bases: &mut dyn Bases,
    forgotten: Forgotten,
) -> Result<(Vec<ThreadId>, Written), Error> {
    let mut recorder: Option<SpineRecorder> = None;
    let SessionFile { path, bytes, unpacked } = file;
    fold_rollout(path, bytes, bases, &mut |thread, made| {
        let recorder = recorder.get_or_insert_with(|| {
            let source = SourceName::of_rollout(&file_name(path, thread), thread);
            let recorder = SpineRecorder::new(journal.clone(), source, Level::Written);
            recorder.with_forgotten(forgotten).with_packing(unpacked)
        });
        recorder.write(thread, made)
    })?;
    recorder.ok_or_else(|| Error::NoThread { path: path.to_owned() })?.close()
}

/// Hears of a record of a thread.
pub(crate) type HearMade<'a> = &'a mut dyn FnMut(&ThreadId, SpineMade) -> Result<(), Error>;

/// Folds a session file, with the history that it goes on from.
pub(crate) fn fold_rollout(
    path: &Path,
    file: &mut dyn BufRead,
    bases: &mut dyn Bases,
    hear: HearMade<'_>,
) -> Result<(), Error> {
    let mut fold = RolloutFold::of_file(path.display().to_string());
    let mut waiting = Vec::new();
    let mut is_begun = false;
    each_line(path, file, None, &mut |offset, line| {
        waiting.extend(fold.line(offset, line));
        let Some(thread) = fold.thread().cloned() else { return Ok(()) };
        if !is_begun {
            is_begun = true;
            if let Some(history) = fold.base().and_then(|base| history_of(base, bases, FORKS_MAX)) {
                fold.give_base(history);
            }
        }
        waiting.drain(..).try_for_each(|made| hear(&thread, made))
    })
}

/// Returns what a session file is called in evidence: its name, wherever it lies and however it is packed.
fn file_name(path: &Path, thread: &ThreadId) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|name| name.starts_with("rollout-"));
    name.map_or_else(|| thread.to_string(), |name| name.trim_end_matches(".zst").to_owned())
}

/// Folds the history that a fork goes on from.
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
    read.ok().map(|()| fold.history().clone())
}

/// Hears of a line and where it begins.
pub(crate) type Hear<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), Error>;

/// Hands out the whole lines of a file, up to some byte. One without its newline has not been written to its end.
pub(crate) fn each_line(
    path: &Path,
    file: &mut dyn BufRead,
    bytes_max: Option<u64>,
    hear: Hear<'_>,
) -> Result<(), Error> {
    let (mut offset, mut line) = (0, Vec::new());
    while bytes_max.is_none_or(|max| offset < max) {
        line.clear();
        let read = file.read_until(b'\n', &mut line);
        let read = read.map_err(|source| Error::Source { path: path.to_owned(), source })?;
        let Some(whole) = line.strip_suffix(b"\n") else { return Ok(()) };
        if !whole.trim_ascii().is_empty() {
            hear(offset, whole)?;
        }
        offset += read as u64;
    }
    Ok(())
}
