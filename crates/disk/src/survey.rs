//! Checks the owners and permissions of everything below a store's directory. Changes nothing.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Access, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::real::{RealDisk, this_user};

/// The maximum depth. A store creates at most eight levels.
const DEPTH_MAX: usize = 32;

/// The permissions that only the owner should have.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// Deviations from what a store creates.
#[derive(Debug)]
pub struct Survey {
    /// The owner of the store: that of its `format.json`.
    pub owner: u32,
    /// Whether that is the user of this process.
    pub is_ours: bool,
    /// How many directories give permissions to the group or others, including the store's own.
    pub open_dirs: u64,
    /// How many files do.
    pub open_files: u64,
    /// Files and directories of other users.
    pub foreign: Vec<ForeignEntry>,
    /// Paths below the store that this process may not write to or list, with the error.
    pub closed: Vec<(PathBuf, io::Error)>,
}

/// A file or directory of another user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignEntry {
    /// Its path below the store.
    pub path: PathBuf,
    /// Its owner.
    pub owner: u32,
}

impl RealDisk {
    /// Checks everything below the store's directory.
    ///
    /// # Errors
    /// I/O errors of the store as a whole; those of single files are part of the survey.
    pub fn survey(&self) -> io::Result<Survey> {
        let root = fs::fstat(self.root())?;
        let owner = self.owner()?.unwrap_or(root.st_uid);
        let mut survey = Survey {
            owner,
            is_ours: owner == this_user(),
            open_dirs: 0,
            open_files: 0,
            foreign: Vec::new(),
            closed: Vec::new(),
        };
        // Not for the owner of the directory itself: it may be a mount point that another user created.
        survey.look_at_mode(&root);
        if let Err(error) =
            fs::accessat(self.root(), ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
        {
            survey.close(Path::new("."), error);
        }
        match fs::openat(self.root(), ".", DIR_FLAGS, Mode::empty()) {
            Ok(dir) => survey.look_below(&dir, Path::new(""), DEPTH_MAX),
            Err(error) => survey.close(Path::new("."), error),
        }
        Ok(survey)
    }
}

/// Checks that a directory could be created at a path: its nearest existing ancestor is writable.
///
/// # Errors
/// The path of that ancestor and its I/O error.
pub fn check_can_make(path: &Path) -> Result<(), (PathBuf, io::Error)> {
    let absolute = std::path::absolute(path).map_err(|error| (path.to_owned(), error))?;
    let above = absolute.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    fs::accessat(CWD, above, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|error| (above.to_owned(), error.into()))
}

const DIR_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

impl Survey {
    fn look_below(&mut self, dir: &OwnedFd, path: &Path, depth: usize) {
        let entries = match fs::Dir::read_from(dir) {
            Ok(entries) => entries,
            Err(error) => return self.close(path, error),
        };
        for entry in entries {
            let name = match entry {
                Ok(entry) => entry.file_name().to_owned(),
                Err(error) => return self.close(path, error),
            };
            if !matches!(name.to_bytes(), b"." | b"..") {
                let path = path.join(OsStr::from_bytes(name.to_bytes()));
                if let Err(error) = self.look_at(dir, &name, &path, depth) {
                    self.close(&path, error);
                }
            }
        }
    }

    fn look_at(
        &mut self,
        dir: &OwnedFd,
        name: &std::ffi::CStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), Errno> {
        let stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if stat.st_uid != self.owner {
            self.foreign.push(ForeignEntry { path: path.to_owned(), owner: stat.st_uid });
        }
        // A link has no permissions itself, and is never followed.
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if file_type.is_symlink() {
            return Ok(());
        }
        self.look_at_mode(&stat);
        let search = if file_type.is_dir() { Access::EXEC_OK } else { Access::empty() };
        fs::accessat(dir, name, Access::WRITE_OK | search, AtFlags::EACCESS)?;
        if file_type.is_dir() && depth > 0 {
            self.look_below(&fs::openat(dir, name, DIR_FLAGS, Mode::empty())?, path, depth - 1);
        }
        Ok(())
    }

    fn look_at_mode(&mut self, stat: &Stat) {
        if Mode::from_raw_mode(stat.st_mode).intersects(OTHERS) {
            let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
            *if is_dir { &mut self.open_dirs } else { &mut self.open_files } += 1;
        }
    }

    fn close(&mut self, path: &Path, error: Errno) {
        // A file that disappeared was temporary, or was forgotten.
        if error != Errno::NOENT {
            self.closed.push((path.to_owned(), error.into()));
        }
    }
}
