//! Restoring a source as a file on the host.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use steno_disk::{Links, NotRegular, open_regular};

use crate::error::Error;
use crate::manifest::Manifest;
use crate::vault::Vault;

/// What exists at the path where a source is to be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreTarget {
    /// Nothing.
    Absent,
    /// A file with the same content.
    Same,
    /// Something else. It is never overwritten.
    Different,
}

/// Why a source could not be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The vault cannot read it.
    #[error(transparent)]
    Vault(#[from] Error),
    /// The path has something else.
    #[error("`{}` exists and differs from the file to restore", path.display())]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// The operating system reported an error.
    #[error("cannot {doing} `{}`", path.display())]
    System {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The path it was tried on.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Vault {
    /// Tells what exists at a path where a generation of a source is to be restored.
    ///
    /// # Errors
    /// Errors of the vault, or I/O errors.
    pub fn restore_target(
        &self,
        manifest: &Manifest,
        generation: u32,
        path: &Path,
    ) -> Result<RestoreTarget, RestoreError> {
        let failed = |doing| {
            let path = path.to_owned();
            move |source| RestoreError::System { doing, path, source }
        };
        let about = match fs::symlink_metadata(path) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RestoreTarget::Absent),
            Err(error) => return Err(failed("access")(error)),
        };
        if !about.is_file() || about.len() != self.len(manifest, generation)? {
            return Ok(RestoreTarget::Different);
        }
        let mut file = match open_regular(path, Links::Refused) {
            Ok(file) => file,
            // The path was replaced meanwhile.
            Err(error) if NotRegular::inside(&error).is_some() => return Ok(RestoreTarget::Different),
            Err(error) => return Err(failed("open")(error)),
        };
        let mut found = Vec::new();
        let (mut is_same, mut error) = (true, None);
        self.read(manifest, generation, 0, |_, bytes| {
            found.resize(bytes.len(), 0);
            match file.read_exact(&mut found) {
                Ok(()) => is_same = found == bytes,
                Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => is_same = false,
                Err(cause) => error = Some(cause),
            }
            is_same && error.is_none()
        })?;
        match error {
            Some(error) => Err(failed("read")(error)),
            None => Ok(if is_same { RestoreTarget::Same } else { RestoreTarget::Different }),
        }
    }

    /// Writes a generation of a source to a path that does not exist, and syncs it. Parent directories are created; the
    /// modification time is the current time. Nothing is ever overwritten: a file that appears at the path meanwhile
    /// stays.
    ///
    /// # Errors
    /// [`RestoreError::InTheWay`], an error of the vault, or an I/O error. The temporary file is removed then.
    pub fn restore(&self, manifest: &Manifest, generation: u32, path: &Path) -> Result<(), RestoreError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| RestoreError::System { doing, path, source }
        };
        let dir = path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("make", dir))?;
        let temporary = temporary_beside(path);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
        let mut file = made.map_err(failed("make", &temporary))?;
        let written = self.write_to(manifest, generation, &mut file, &temporary).and_then(|()| {
            match rustix::fs::renameat_with(CWD, &temporary, CWD, path, RenameFlags::NOREPLACE) {
                Ok(()) => Ok(()),
                Err(rustix::io::Errno::EXIST) => Err(RestoreError::InTheWay { path: path.to_owned() }),
                Err(error) => Err(failed("name", path)(error.into())),
            }
        });
        if written.is_err() {
            fs::remove_file(&temporary).ok();
        }
        written?;
        let dir = File::open(dir).and_then(|dir| dir.sync_all());
        dir.map_err(failed("sync the directory of", path))
    }

    fn write_to(
        &self,
        manifest: &Manifest,
        generation: u32,
        file: &mut File,
        path: &Path,
    ) -> Result<(), RestoreError> {
        let mut outcome = Ok(());
        self.read(manifest, generation, 0, |_, bytes| {
            outcome = file.write_all(bytes);
            outcome.is_ok()
        })?;
        let outcome = outcome.and_then(|()| file.sync_all());
        outcome.map_err(|source| RestoreError::System { doing: "write", path: path.to_owned(), source })
    }
}

/// The part of a temporary name between the name of the file and a random id.
const BESIDE: &str = ".steno-";

/// Returns a temporary path beside a file that no agent takes for one of its own.
fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!("{BESIDE}{}", uuid::Uuid::new_v4().simple()));
    path.with_file_name(name)
}

/// Tells whether a file is the temporary file of a restore. A killed restore leaves it among the agent's files, and it
/// must not be taken for one of them.
#[must_use]
pub fn is_being_restored(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = name.strip_prefix('.').and_then(|name| name.rsplit_once(BESIDE));
    ending.is_some_and(|(_, id)| id.len() == uuid::fmt::Simple::LENGTH && uuid::Uuid::try_parse(id).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_of_a_restore_are_recognized_by_name() {
        let made = temporary_beside(Path::new("/p/agent-1.jsonl"));
        assert!(is_being_restored(&made), "{}", made.display());
        let id = "1dc64aaa5faa4c52bec423d295fe81f8";
        for name in [
            format!("agent-1.jsonl.steno-{id}"),
            format!(".agent-1.jsonl.steno-{id}.txt"),
            ".agent-1.jsonl.steno-1".to_owned(),
            ".agent-1.jsonl".to_owned(),
        ] {
            assert!(!is_being_restored(&Path::new("/p").join(&name)), "{name}");
        }
    }
}
