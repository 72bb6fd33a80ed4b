//! The metadata of a file, and opening a file together with its metadata.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use steno_disk::{Links, NotRegular, open_regular};

use super::error::Error;

/// How old a file's times must be so that any later change shows in them. Kernels before 6.13 take the time of a change
/// from a clock that ticks every 1 to 10 ms: two changes within a tick have the same time.
const SETTLED_AFTER: Duration = Duration::from_millis(50);

/// Identifies a file on this machine. The inode of a deleted file may be reused for the next file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Its device.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
}

/// The metadata of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The file.
    pub file: FileId,
    /// Its length.
    pub size_bytes: u64,
    /// Its modification time, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Its change time, which programs cannot set, in nanoseconds since 1970.
    pub changed_ns: i64,
    /// Whether any later change is certain to show in the times.
    pub settled: bool,
}

impl Stamp {
    /// Tells whether two stamps can be those of one unchanged file.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let Self { file, size_bytes, modified_ns, changed_ns, settled: _ } = *other;
        self.file == file
            && self.size_bytes == size_bytes
            && self.modified_ns == modified_ns
            && self.changed_ns == changed_ns
    }

    /// Stamps the path, without following a link; `None` when it does not exist.
    pub(super) fn at(path: &Path) -> io::Result<Option<Self>> {
        none_if_absent(fs::symlink_metadata(path).map(|metadata| Self::of_metadata(&metadata)))
    }

    /// Stamps the directory at the path, following links; `None` when there is none that can be read.
    pub(super) fn of_dir(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        metadata.is_dir().then(|| Self::of_metadata(&metadata))
    }

    /// Stamps an open file.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::of_metadata(&file.metadata()?))
    }

    fn of_metadata(metadata: &Metadata) -> Self {
        let changed_ns = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now_ns = i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX);
        let age_ns = u64::try_from(now_ns.saturating_sub(changed_ns)).unwrap_or(0);
        Self {
            file: FileId { device: metadata.dev(), inode: metadata.ino() },
            size_bytes: metadata.size(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns,
            settled: Duration::from_nanos(age_ns) > SETTLED_AFTER,
        }
    }
}

/// Opens the regular file at the path for reading; `None` when it does not exist.
///
/// Only the last part of the path must not be a link; whether the home may be behind a link is decided by discovery.
pub(super) fn open_followed(path: &Path) -> Result<Option<(File, Stamp)>, Error> {
    let opened = none_if_absent(open_regular(path, Links::Refused));
    let Some(file) = opened.map_err(|error| match NotRegular::inside(&error) {
        Some(NotRegular { found }) => Error::NotRegular { path: path.to_owned(), found },
        None => Error::system(path, "open", error),
    })?
    else {
        return Ok(None);
    };
    let stamp = Stamp::of(&file).map_err(|error| Error::system(path, "stat", error))?;
    Ok(Some((file, stamp)))
}

fn none_if_absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn nanoseconds(seconds: i64, fraction_ns: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(fraction_ns)
}
