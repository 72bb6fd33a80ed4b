//! Gives a source's bytes back as a file of the host.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use steno_disk::{Links, NotRegular, open_regular};

use crate::error::Error;
use crate::manifest::Manifest;
use crate::vault::Vault;

/// What stands where a source is to be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Nothing,
    /// A file with the same bytes.
    Same,
    /// Something else, which is never written over.
    Different,
}

/// Why a source could not be given back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The vault does not have it whole.
    #[error(transparent)]
    Vault(#[from] Error),
    /// Something else stands there.
    #[error("`{}` is there, and is not what would be restored", path.display())]
    InTheWay {
        /// Where.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} `{}`", path.display())]
    System {
        /// What was tried, as a verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Vault {
    /// Tells what stands at a path where a generation of a source is to be restored.
    ///
    /// # Errors
    /// What the vault or the system says.
    pub fn standing_at(
        &self,
        manifest: &Manifest,
        generation: u32,
        path: &Path,
    ) -> Result<Standing, RestoreError> {
        let failed = |doing| {
            let path = path.to_owned();
            move |source| RestoreError::System { doing, path, source }
        };
        let about = match fs::symlink_metadata(path) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
            Err(error) => return Err(failed("look at")(error)),
        };
        if !about.is_file() || about.len() != self.len(manifest, generation)? {
            return Ok(Standing::Different);
        }
        let mut file = match open_regular(path, Links::Refused) {
            Ok(file) => file,
            // Something else took the path meanwhile.
            Err(error) if NotRegular::inside(&error).is_some() => return Ok(Standing::Different),
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
            None => Ok(if is_same { Standing::Same } else { Standing::Different }),
        }
    }

    /// Writes a generation of a source to a path where nothing stands, synced, with the time of now; directories above
    /// it are made. Nothing is ever written over: whoever takes the path meanwhile keeps it.
    ///
    /// # Errors
    /// [`RestoreError::InTheWay`], or what the vault or the system says; nothing is left behind then.
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

/// What stands between a file's name and what makes the name of the one that is written beside it.
const BESIDE: &str = ".steno-";

/// Names a file beside another that no agent takes for one of its own.
fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!("{BESIDE}{}", uuid::Uuid::new_v4().simple()));
    path.with_file_name(name)
}

/// Tells whether a file is one that is written beside the one that is given back. Until it has its name, and if whoever
/// wrote it was killed, it lies among the agent's files and is none of them.
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
    fn what_is_being_restored_is_known_by_its_name() {
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
