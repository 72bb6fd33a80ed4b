//! Why a source could not be recorded.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use steno_model::RunId;

/// The error codes for too many open files, of a process or of the system: `EMFILE` and `ENFILE`.
const TOO_MANY_FILES: [i32; 2] = [24, 23];

/// Why a source was not recorded. No data is lost: recording continues later where it stopped.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Its bytes could not be stored in the vault.
    #[error("cannot store `{}`", path.display())]
    Vault {
        /// The file.
        path: PathBuf,
        /// An error of the vault.
        #[source]
        source: steno_vault::Error,
    },
    /// Its events could not be written.
    #[error("cannot record the events of `{}`", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// An error of the journal.
        #[source]
        source: steno_journal::Error,
    },
    /// Its runs were derived by an older adapter, and have to be derived again first.
    #[error("the runs of `{}` have to be derived again first", path.display())]
    OlderAdapter {
        /// The file.
        path: PathBuf,
    },
    /// A run is damaged and cannot be derived again.
    #[error("run {run} is damaged, and the store does not have the file that it was derived from: {why}")]
    NoEvidence {
        /// The run.
        run: RunId,
        /// What is wrong with it.
        why: String,
    },
    /// The runs of the store could not be read.
    #[error("cannot read the runs")]
    Runs(#[source] steno_journal::Error),
    /// It could not be read.
    #[error(transparent)]
    Tail(#[from] steno_capture::tail::Error),
    /// A pause could not be ended.
    #[error("cannot end the pause")]
    Pause(#[source] io::Error),
    /// The manifests of the vault could not be read.
    #[error("cannot read the vault")]
    Catalog(#[source] steno_vault::Error),
}

impl SourceError {
    pub(crate) fn vault(path: &std::path::Path) -> impl FnOnce(steno_vault::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Vault { path, source }
    }

    /// Tells whether another process holds the source or one of its runs.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(
            self,
            Self::Vault { source: steno_vault::Error::Locked { .. }, .. }
                | Self::Journal { source: steno_journal::Error::Locked { .. }, .. }
        )
    }

    /// Tells whether the source was forgotten and must not be recorded again.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        matches!(self, Self::Vault { source: steno_vault::Error::Forgotten { .. }, .. })
    }

    /// Tells whether the source is damaged in the vault.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Vault { source, .. } if source.is_damage())
    }

    /// Tells whether the disk is full.
    #[must_use]
    pub fn is_no_room(&self) -> bool {
        matches!(
            self,
            Self::Vault { source: steno_vault::Error::NoRoom { .. }, .. }
                | Self::Journal { source: steno_journal::Error::NoRoom { .. }, .. }
        )
    }

    /// Tells whether too many files are open.
    #[must_use]
    pub fn is_too_many_files(&self) -> bool {
        let mut cause: Option<&dyn StdError> = Some(self);
        while let Some(error) = cause {
            // The journal shares one error among all that wait for the same sync.
            let shared = error.downcast_ref::<Arc<io::Error>>().map(Arc::as_ref);
            let code = shared.or_else(|| error.downcast_ref()).and_then(io::Error::raw_os_error);
            if code.is_some_and(|code| TOO_MANY_FILES.contains(&code)) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use steno_disk::StorePath;

    use super::*;

    #[test]
    fn too_many_open_files_are_found_in_causes() {
        let path = || PathBuf::from("a");
        for (code, want) in [(24, true), (23, true), (2, false)] {
            let error = || io::Error::from_raw_os_error(code);
            let vault = steno_vault::Error::NoRoom { path: StorePath::root(), source: error() };
            assert_eq!(SourceError::vault(Path::new("a"))(vault).is_too_many_files(), want, "{code}");
            let journal = steno_journal::Error::NoRoom { path: StorePath::root(), source: Arc::new(error()) };
            assert_eq!(
                SourceError::Journal { path: path(), source: journal }.is_too_many_files(),
                want,
                "{code}"
            );
        }
    }
}
