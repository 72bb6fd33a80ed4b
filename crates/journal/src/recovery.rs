//! Recovery after a crash: `inspect` says what would be done, `apply` does just that.
//!
//! A torn tail is copied aside, synced, and only then cut off. Bytes that no seal covers are rewritten in place and
//! synced: after a failed sync the page cache may have bytes that the disk does not have, and reading them proves
//! nothing. Every step can be killed and repeated.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use steno_disk::{self as disk, Disk, DiskFile, StorePath, append_all, sync_dir, sync_file};
use steno_model::{RunId, Seq};

use crate::error::Error;
use crate::line_check::TranscriptLines;
use crate::names::RunFile;
use crate::note::{NoteKind, note_once};
use crate::scan::{Ending, Scan, scan};
use crate::seal::{Prefix, Seal, hex, scan_seals};
use crate::sidecar;

/// The state of a run's transcript, and what opening it for appending would change.
pub struct Inspection {
    run: RunId,
    good: Prefix,
    sealed: u64,
    ending: Ending,
    seals_ending: Ending,
}

impl Inspection {
    /// Returns how many bytes the good prefix has.
    #[must_use]
    pub fn good_bytes(&self) -> u64 {
        self.good.len
    }

    /// Returns the number of the last good event.
    #[must_use]
    pub fn seq_last(&self) -> Option<Seq> {
        self.good.seq_last
    }

    /// Returns how many bytes are sealed.
    #[must_use]
    pub fn sealed_bytes(&self) -> u64 {
        self.sealed
    }

    /// Returns what comes after the good prefix.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Returns what comes after the seals in the seals file; the next seal moves it aside.
    #[must_use]
    pub fn seals_ending(&self) -> Ending {
        self.seals_ending
    }

    /// Tells whether `apply` would change anything.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.ending == Ending::Whole && self.sealed == self.good.len
    }

    pub(crate) fn into_prefix(self) -> Prefix {
        self.good
    }
}

/// Inspects a run's transcript without changing anything; a run without one is empty.
///
/// # Errors
/// [`Error::Damaged`] or [`Error::SealBroken`] when it must not be appended to.
pub fn inspect(disk: &dyn Disk, run: RunId) -> Result<Inspection, Error> {
    let path = RunFile::Transcript(run).path();
    let (seals, seals_ending) = scan_seals(disk, run)?;
    let file = disk.open_read(&path).map_err(|source| Error::io("open", &path, source))?;
    let found = match file {
        Some(file) => scan(file, &path, &TranscriptLines(run), seals)?,
        None if seals.is_empty() => {
            Scan { good: Prefix::default(), sealed: 0, seals_held: 0, ending: Ending::Whole }
        }
        None => {
            return Err(Error::SealBroken {
                path,
                differs: None,
                bytes: seals[0].bytes,
                why: "the file is missing",
            });
        }
    };
    Ok(Inspection { run, good: found.good, sealed: found.sealed, ending: found.ending, seals_ending })
}

/// Does what the inspection found: copies and cuts a torn tail, rewrites the unsealed part, seals the result.
///
/// # Errors
/// I/O errors. It is safe to repeat the call later.
pub fn apply(disk: &dyn Disk, found: &Inspection, now: jiff::Timestamp) -> Result<(), Error> {
    let path = RunFile::Transcript(found.run).path();
    if let Ending::Torn { offset, len } = found.ending {
        let seq_last = found.good.seq_last.map_or(0, Seq::get);
        let kept = keep_torn(disk, &path, offset, len)?.file_name().to_owned();
        let noted = NoteKind::Recovered { offset, bytes: len, kept, seq_last };
        note_once(disk, found.run, now, noted)?;
        cut(disk, &path, offset)?;
    }
    if found.sealed < found.good.len {
        make_durable(disk, &path, found.sealed, found.good.len)?;
        let seal = Seal::new(found.run, &found.good, now);
        sidecar::append_line(disk, &RunFile::Seals(found.run).path(), &seal.to_line())?;
    }
    Ok(())
}

/// Copies a torn tail to a separate file and syncs it.
pub(crate) fn keep_torn(
    disk: &dyn Disk,
    path: &StorePath,
    offset: u64,
    len: u64,
) -> Result<StorePath, Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    let file = open_existing(disk, path)?;
    let mut hash = Sha256::new();
    let hashed = for_each_piece(&*file, offset..offset + len, |piece| {
        hash.update(piece);
        Ok(())
    });
    hashed.map_err(failed("read"))?;
    let kept = path.torn(offset, &hex(&hash));
    // The name contains the hash, so a file with that name and length is this tail, copied before a crash.
    let there = disk.identity(&kept).map_err(failed("access"))?;
    if there.is_none_or(|found| found.size_bytes != len) {
        let copy = |into: &dyn DiskFile| copy_range(&*file, offset..offset + len, into);
        disk::replace_with(disk, &kept, copy).map_err(failed("keep the torn tail of"))?;
    }
    Ok(kept)
}

/// Cuts a file at an offset and syncs it.
pub(crate) fn cut(disk: &dyn Disk, path: &StorePath, len: u64) -> Result<(), Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    let file = disk.open_append(path).map_err(failed("open"))?;
    file.truncate(len).map_err(failed("cut"))?;
    sync_file(&*file).map_err(failed("sync"))
}

/// Rewrites bytes of a file in place, so that the next sync writes to disk what reading showed.
pub(crate) fn write_again(disk: &dyn Disk, path: &StorePath, from: u64, to: u64) -> Result<(), Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    let read = open_existing(disk, path)?;
    let file = disk.open_overwrite(path).map_err(failed("open"))?;
    let mut offset = from;
    let written = for_each_piece(&*read, from..to, |piece| {
        disk::overwrite_all(&*file, piece, offset)?;
        offset += piece.len() as u64;
        Ok(())
    });
    written.map_err(failed("write"))
}

/// Rewrites bytes of a file in place, and syncs the file and its directory.
pub(crate) fn make_durable(disk: &dyn Disk, path: &StorePath, from: u64, to: u64) -> Result<(), Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    write_again(disk, path, from, to)?;
    let file = disk.open_append(path).map_err(failed("open"))?;
    sync_file(&*file).map_err(failed("sync"))?;
    sync_dir(disk, &path.dir()).map_err(failed("sync the directory of"))
}

/// Copies a whole file and syncs both. Does nothing if the copy exists or the file does not.
pub(crate) fn keep_copy(disk: &dyn Disk, path: &StorePath, copy: &StorePath) -> Result<(), Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    if disk.identity(copy).map_err(failed("access"))?.is_some() {
        return Ok(());
    }
    let Some(file) = disk.open_read(path).map_err(failed("open"))? else { return Ok(()) };
    let len = file.identity().map_err(failed("access"))?.size_bytes;
    disk::replace_with(disk, copy, |into| copy_range(&*file, 0..len, into)).map_err(failed("keep a copy of"))
}

/// Copies everything that a handle can read into a new file and syncs it.
pub(crate) fn copy_aside(disk: &dyn Disk, from: &dyn DiskFile, to: &StorePath, len: u64) -> io::Result<()> {
    const PIECE_BYTES: usize = 1024 * 1024;
    let file = disk.create(to)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < len {
        let read = disk::read_full(from, &mut piece, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        append_all(&*file, &piece[..read])?;
        offset += read as u64;
    }
    sync_file(&*file)?;
    sync_dir(disk, &to.dir())
}

/// Reads bytes of a file in pieces.
pub(crate) fn read_range(
    disk: &dyn Disk,
    path: &StorePath,
    range: Range<u64>,
    mut take: impl FnMut(&[u8]),
) -> Result<(), Error> {
    let file = open_existing(disk, path)?;
    let read = for_each_piece(&*file, range, |piece| {
        take(piece);
        Ok(())
    });
    read.map_err(|source| Error::io("read", path, source))
}

fn open_existing(disk: &dyn Disk, path: &StorePath) -> Result<Arc<dyn DiskFile>, Error> {
    let failed = |source| Error::io("open", path, source);
    disk.open_read(path).map_err(failed)?.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}

/// Copies bytes of a file to the end of another. Zeros become a hole, because a crash can leave any number of them.
fn copy_range(from: &dyn DiskFile, range: Range<u64>, into: &dyn DiskFile) -> io::Result<()> {
    let mut len = 0;
    for_each_piece(from, range, |piece| {
        len += piece.len() as u64;
        if piece.iter().all(|byte| *byte == 0) { into.truncate(len) } else { append_all(into, piece) }
    })
}

/// Reads bytes of a file in pieces, so that memory use does not depend on their number.
fn for_each_piece(
    file: &dyn DiskFile,
    range: Range<u64>,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    const PIECE_BYTES: u64 = 1024 * 1024;
    let mut piece = Vec::new();
    let mut offset = range.start;
    while offset < range.end {
        let wanted = PIECE_BYTES.min(range.end - offset);
        piece.resize(usize::try_from(wanted).unwrap_or(0), 0);
        if disk::read_full(file, &mut piece, offset)? < piece.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        take(&piece)?;
        offset += wanted;
    }
    Ok(())
}
