//! Files outside any store. Opening one never blocks on a pipe, a device or a socket. They may belong to anybody, and
//! are only read.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{self, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::DiskFile;
use crate::real::{RealFile, check_regular};

/// Whether the last part of a path may be a link. The other parts are not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Links are followed: the user named the path.
    Followed,
    /// Links are errors: the path was found by a search, and other users must not redirect it.
    Refused,
}

/// The cause inside an [`io::Error`] when a file is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit.
    pub size_bytes_max: u64,
}

impl TooLong {
    /// Returns the cause, if the error has it.
    #[must_use]
    pub fn inside(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "it has more than {} bytes", self.size_bytes_max)
    }
}

impl std::error::Error for TooLong {}

impl From<TooLong> for io::Error {
    fn from(cause: TooLong) -> Self {
        Self::new(io::ErrorKind::FileTooLarge, cause)
    }
}

/// Opens a regular file on the host for reading.
///
/// # Errors
/// [`NotRegular`](crate::NotRegular) inside the error when the path is something else, or an I/O error.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let (no_follow, stat_flags) = match links {
        Links::Followed => (OFlags::empty(), AtFlags::empty()),
        Links::Refused => (OFlags::NOFOLLOW, AtFlags::SYMLINK_NOFOLLOW),
    };
    // A plain open of a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | no_follow;
    match fs::open(path, flags, Mode::empty()) {
        Ok(fd) => {
            // Checks the file that was opened, not the path.
            check_regular(&fs::fstat(&fd)?)?;
            Ok(File::from(fd))
        }
        Err(error @ (Errno::NOENT | Errno::NOTDIR)) => Err(error.into()),
        // A link gives ELOOP, a socket or a device another error; the type of the file says more.
        Err(error) => {
            if let Ok(stat) = fs::statat(CWD, path, stat_flags) {
                check_regular(&stat)?;
            }
            Err(error.into())
        }
    }
}

/// Opens a file like [`open_regular`], as a [`DiskFile`].
///
/// # Errors
/// As [`open_regular`].
pub fn open_host_file(path: &Path) -> io::Result<Arc<dyn DiskFile>> {
    Ok(Arc::new(RealFile::from(open_regular(path, Links::Followed)?)))
}

/// Reads a whole file, opened as [`open_host_file`] does.
///
/// # Errors
/// [`TooLong`] inside the error when it is longer, even if it grows meanwhile; otherwise as [`open_regular`].
pub fn read_host_file(path: &Path, size_bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, Links::Followed)?;
    // Most files that are too long are recognized before anything is read.
    if file.metadata()?.len() > size_bytes_max {
        return Err(TooLong { size_bytes_max }.into());
    }
    read_up_to(file, size_bytes_max)
}

/// Reads everything, unless that is more than `size_bytes_max`.
///
/// # Errors
/// [`TooLong`] inside the error, or an I/O error.
pub fn read_up_to(from: impl Read, size_bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(size_bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > size_bytes_max { Err(TooLong { size_bytes_max }.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::NotRegular;

    #[track_caller]
    fn check(path: &Path, links: Links, want: Result<&str, &str>) {
        let got = match open_regular(path, links) {
            Ok(file) => Ok(io::read_to_string(file).unwrap()),
            Err(error) => Err(NotRegular::inside(&error)
                .map_or_else(|| error.kind().to_string(), |why| why.found.to_owned())),
        };
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{} {links:?}", path.display());
    }

    #[test]
    fn only_regular_files_are_opened_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::fs::create_dir(at("dir")).unwrap();
        // macOS has no `mknodat`.
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _listener = UnixListener::bind(at("socket")).unwrap();
        for (link, to) in
            [("to-file", "file"), ("to-pipe", "pipe"), ("to-nothing", "nothing"), ("loop", "loop")]
        {
            symlink(to, at(link)).unwrap();
        }
        let link = Err("a symbolic link");
        for (name, followed, refused) in [
            ("file", Ok("text"), Ok("text")),
            ("dir", Err("a directory"), Err("a directory")),
            ("pipe", Err("a FIFO"), Err("a FIFO")),
            ("socket", Err("a socket"), Err("a socket")),
            ("to-file", Ok("text"), link),
            ("to-pipe", Err("a FIFO"), link),
            ("to-nothing", Err("entity not found"), link),
            ("nothing", Err("entity not found"), Err("entity not found")),
            ("file/below", Err("not a directory"), Err("not a directory")),
        ] {
            check(&at(name), Links::Followed, followed);
            check(&at(name), Links::Refused, refused);
        }
        check(&at("loop"), Links::Refused, link);
        assert_eq!(
            open_regular(&at("loop"), Links::Followed).unwrap_err().raw_os_error(),
            Some(Errno::LOOP.raw_os_error())
        );
        check(Path::new("/dev/null"), Links::Refused, Err("a device"));
    }
    #[test]
    fn files_are_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "text").unwrap();
        for (size_bytes_max, fits) in [(5, true), (4, true), (3, false)] {
            let want = if fits { Ok(b"text".to_vec()) } else { Err(Some(TooLong { size_bytes_max })) };
            let checked = |read: io::Result<Vec<u8>>| read.map_err(|error| TooLong::inside(&error));
            assert_eq!(checked(read_host_file(&path, size_bytes_max)), want);
            // For a pipe or a growing file, only the limit on reading helps.
            assert_eq!(checked(read_up_to(&b"text"[..], size_bytes_max)), want);
        }
        let failed = read_host_file(dir.path(), 5).unwrap_err();
        assert_eq!(NotRegular::inside(&failed).map(|why| why.found), Some("a directory"));
        assert_eq!(read_up_to(io::repeat(0), 5).unwrap_err().to_string(), "it has more than 5 bytes");
    }
}
