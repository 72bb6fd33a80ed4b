//! What the agent's disk lacks of a session: its file was deleted, shortened or rewritten.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use steno_index::SourceRow;
use steno_model::RunId;

use crate::Library;
use crate::indexed::source_row;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// It no longer exists.
    Deleted,
    /// It became shorter.
    Shortened,
    /// Its content was replaced.
    Rewritten,
}

impl LossKind {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Shortened => "shortened",
            Self::Rewritten => "rewritten",
        }
    }
}

/// What the agent's disk lacks of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What happened.
    pub kind: LossKind,
    /// When it was noticed. For a deleted file: when the file was last archived, since it was deleted after that.
    pub at: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// The generation that still has the content; `None` for the last one.
    pub generation: Option<u32>,
}

impl Loss {
    /// Returns what is missing of a file, which may be gone; `None` if it is as it was archived.
    pub(super) fn of(source: &SourceRow, is_deleted: bool) -> Option<Self> {
        let path = path_of(source)?.to_owned();
        if is_deleted {
            let at = source.seen_at.clone();
            return Some(Self { kind: LossKind::Deleted, at, path, generation: None });
        }
        let loss = source.loss.as_ref()?;
        let kind = if loss.kind == "shortened" { LossKind::Shortened } else { LossKind::Rewritten };
        Some(Self { kind, at: loss.at.clone(), path, generation: Some(loss.generation) })
    }

    /// Returns the command that brings the file of a session back. `store_flags` are the flags that name the store, each
    /// after a space.
    #[must_use]
    pub fn restore_command(&self, session: &str, store_flags: &str) -> String {
        let generation = self.generation.map(|number| format!(" --generation {number} --replace"));
        format!("steno restore {session}{}{store_flags}", generation.unwrap_or_default())
    }
}

impl Library {
    /// Returns what the agent's disk lacks of the file of a session. `None` if the store does not have the session.
    #[must_use]
    pub fn file_loss(&self, session: RunId) -> Option<Loss> {
        let head = self.head(session).ok()??;
        let source = head.source.filter(|_| head.channel.as_deref() == Some("disk"))?;
        let vault = self.vault().ok()?;
        let row = source_row(&vault.manifest(source).ok()??, vault);
        Loss::of(&row, is_source_deleted(&row))
    }
}

/// Returns the path of a source; a damaged manifest has none.
fn path_of(source: &SourceRow) -> Option<&Path> {
    let path = Path::new(OsStr::from_bytes(&source.path));
    (!path.as_os_str().is_empty()).then_some(path)
}

/// Tells whether the file of a source is gone.
pub(super) fn is_source_deleted(source: &SourceRow) -> bool {
    path_of(source).is_some_and(is_deleted)
}

/// Tells whether a file is gone. An agent may have compressed it.
fn is_deleted(path: &Path) -> bool {
    let is_absent = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let mut packed = path.as_os_str().to_owned();
    packed.push(".zst");
    is_absent(path) && is_absent(Path::new(&packed))
}
