//! Output outside any store: complete under a temporary name, then named, and never in the place of something else.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Gives a complete file or directory its name, and syncs the directory around it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] when something has the name; otherwise an I/O error.
pub fn give_name(temporary: &Path, path: &Path) -> io::Result<()> {
    renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir).and_then(|dir| dir.sync_all())
}

/// Removes incomplete output, as far as possible: what stays has a temporary name.
pub fn discard(temporary: &Path) {
    let removed = if temporary.is_dir() { fs::remove_dir_all(temporary) } else { fs::remove_file(temporary) };
    removed.ok();
}
