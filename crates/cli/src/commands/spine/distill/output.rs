//! Writes a task under a temporary name until it is complete. Replaces nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use steno_disk::{discard, give_name};
use steno_exports::harbor::TaskFile;

use crate::failure::{Failure, already_exists, cannot};

/// Returns an unused path in the same directory.
pub fn sibling(path: &Path, what: &str) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(path).map_err(|error| cannot("find", path, &error))?;
    let name = path.file_name().ok_or_else(|| Failure::usage("the output has no name"))?.to_string_lossy();
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(|error| cannot("make the directory", dir, &error))?;
    Ok(path.with_file_name(format!(".{name}.steno-{}-{what}", std::process::id())))
}

/// Writes the files of a task into a new directory.
pub fn write(path: &Path, files: &[TaskFile]) -> Result<(), Failure> {
    let temporary = sibling(path, "task")?;
    let written = write_all(&temporary, files).map_err(|error| cannot("write", path, &error));
    let named = written.and_then(|()| {
        give_name(&temporary, path).map_err(|error| {
            let is_there = error.kind() == io::ErrorKind::AlreadyExists;
            if is_there { already_exists(path) } else { cannot("name", path, &error) }
        })
    });
    if named.is_err() {
        discard(&temporary);
    }
    named
}

fn write_all(dir: &Path, files: &[TaskFile]) -> io::Result<()> {
    fs::create_dir(dir)?;
    for file in files {
        let path = dir.join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        let mode = if file.is_executable { 0o755 } else { 0o644 };
        let mut written = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        written.write_all(&file.bytes)?;
        written.sync_all()?;
    }
    Ok(())
}
