//! Session files, recorded as spines from their paths or from the vault.

use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::path::Path;
use std::thread::JoinHandle;

use steno_capture::packing::UnpackReader;
use steno_disk::{Links, open_regular};
use steno_journal::Journal;
use steno_library::{Error as LibraryError, FileError, Library, Rollout};
use steno_model::ThreadId;

use super::{Bases, Error, ForgottenRule, RolloutDirs, SessionFile, SpineWriteReport, record_rollout};

/// How much is read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Records the part of the session file at a path that its thread's spine does not have.
///
/// # Errors
///
/// [`Error::Forgotten`], or an error of the file or the journal.
pub fn record_file(
    journal: &Journal,
    path: &Path,
    forgotten: ForgottenRule,
) -> Result<(Vec<ThreadId>, SpineWriteReport), Error> {
    let failed = |doing| move |error| Error::from(LibraryError::from(FileError::of(doing, path, error)));
    let file = open_regular(path, Links::Followed).map_err(failed("open"))?;
    let mut bytes = BufReader::new(UnpackReader::new(file));
    bytes.fill_buf().map_err(failed("read"))?;
    let unpacked = bytes.get_ref().packing();
    // The spine names it, and bundles look for it there.
    let absolute = std::path::absolute(path).map_err(failed("find"))?;
    let mut bases = RolloutDirs(absolute.parent().map(Path::to_owned).into_iter().collect());
    record_rollout(
        journal,
        SessionFile { path: &absolute, bytes: &mut bytes, unpacked },
        &mut bases,
        forgotten,
    )
}

/// Records the part of a thread in the vault that its spine does not have; `None` if the vault has no session file of
/// it.
///
/// # Errors
///
/// [`Error::Forgotten`], or an error of the vault or the journal.
pub fn record_thread(
    journal: &Journal,
    library: &Library,
    thread: &ThreadId,
    forgotten: ForgottenRule,
) -> Result<Option<(Vec<ThreadId>, SpineWriteReport)>, Error> {
    let forgotten = match forgotten {
        ForgottenRule::Again => ForgottenRule::Again,
        ForgottenRule::Stays | ForgottenRule::Archived => ForgottenRule::Archived,
    };
    let mut all: Option<(Vec<ThreadId>, SpineWriteReport)> = None;
    // If turns were taken back, the thread continues in another file.
    for rollout in library.rollouts(thread)? {
        let (path, unpacked) = (rollout.path().to_owned(), rollout.packing()?);
        let file = SessionFile { path: &path, bytes: &mut RolloutReader::open(rollout)?, unpacked };
        let recorded = record_rollout(journal, file, &mut InVault { library }, forgotten);
        let (threads, written) = recorded.map_err(error_of_vault)?;
        let before = all.map_or_else(SpineWriteReport::default, |(_, before)| before);
        all = Some((threads, before + written));
    }
    Ok(all)
}

/// Returns the error of the vault or the library that a reader passed on as an error of the system.
fn error_of_vault(error: Error) -> Error {
    let Error::Source { path, source } = error else { return error };
    match source.downcast::<LibraryError>() {
        Ok(inner) => Error::from(inner),
        Err(source) => Error::Source { path, source },
    }
}

/// The bytes of a session file, which another thread unpacks while they are read: unpacked, a small file can be larger than
/// the memory.
struct RolloutReader {
    pipe: PipeReader,
    unpacking: Option<JoinHandle<Result<(), LibraryError>>>,
}

impl RolloutReader {
    fn open(rollout: Rollout) -> Result<BufReader<Self>, Error> {
        let failed = |error| Error::from(LibraryError::from(FileError::of("read", rollout.path(), error)));
        let (pipe, mut into) = io::pipe().map_err(failed)?;
        // Ends with an error if the reader is dropped before the end.
        let path = rollout.path().to_owned();
        let unpacking = std::thread::Builder::new()
            .name("steno-unpack".to_owned())
            .spawn(move || rollout.write_to(&mut into))
            .map_err(|error| LibraryError::from(FileError::of("read", &path, error)))?;
        Ok(BufReader::with_capacity(PIECE_BYTES, Self { pipe, unpacking: Some(unpacking) }))
    }
}

impl Read for RolloutReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.pipe.read(into)?;
        if read == 0
            && !into.is_empty()
            && let Some(unpacking) = self.unpacking.take()
        {
            let outcome = unpacking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome.map_err(io::Error::other)?;
        }
        Ok(read)
    }
}

/// Session files in the vault that others continue.
struct InVault<'a> {
    library: &'a Library,
}

impl Bases for InVault<'_> {
    fn open(&mut self, id: &str) -> Option<Box<dyn BufRead>> {
        let id = ThreadId::parse(id).ok()?;
        let own = self.library.rollouts(&id).ok()?.into_iter().next();
        let rollout = own.or_else(|| self.library.further_rollout(&id).ok()?)?;
        Some(Box::new(RolloutReader::open(rollout).ok()?))
    }
}
