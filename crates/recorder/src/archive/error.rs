//! What can keep a source from being recorded.

use std::path::PathBuf;

/// Why a source was not recorded. Nothing is lost by it: the source is taken up again where it was left.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its bytes could not be kept.
    #[error("cannot keep `{}`", path.display())]
    Vault {
        /// The file.
        path: PathBuf,
        /// What the vault says.
        #[source]
        source: steno_vault::Error,
    },
    /// Its events could not be written.
    #[error("cannot record the events of `{}`", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What the journal says.
        #[source]
        source: steno_journal::Error,
    },
    /// It could not be read.
    #[error(transparent)]
    Tail(#[from] steno_capture::tail::Error),
    /// What the vault knows of its sources could not be read.
    #[error("cannot read the vault")]
    Catalog(#[source] steno_vault::Error),
}

impl Error {
    pub(crate) fn vault(path: &std::path::Path) -> impl FnOnce(steno_vault::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Vault { path, source }
    }

    /// Tells whether another process has the source or one of its runs.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(
            self,
            Self::Vault { source: steno_vault::Error::Held { .. }, .. }
                | Self::Journal { source: steno_journal::Error::Held { .. }, .. }
        )
    }

    /// Tells whether the source was forgotten, and is not to be recorded again.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        matches!(self, Self::Vault { source: steno_vault::Error::Forgotten { .. }, .. })
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
}
