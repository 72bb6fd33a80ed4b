//! What the agent's disk lacks of a session: its file was deleted, shortened or rewritten.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use steno_disk::{Links, open_regular};
use steno_index::SourceRow;
use steno_model::RunId;
use steno_vault::{Manifest, Role, SourceId, Vault};

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
        loss_now(&row, is_source_deleted(&row), vault, LookAt::EveryFile)
    }
}

/// Which files are looked at, beyond whether they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookAt {
    /// Those of which the archive knows a loss: it may have been restored.
    KnownLosses,
    /// Also the others, which may have become shorter since.
    EveryFile,
}

/// Returns what the agent's disk lacks of a file now.
pub(super) fn loss_now(source: &SourceRow, is_deleted: bool, vault: &Vault, look: LookAt) -> Option<Loss> {
    let known = Loss::of(source, is_deleted);
    if is_deleted || known.is_none() && look == LookAt::KnownLosses {
        return known;
    }
    let path = path_of(source)?;
    let Some(manifest) = SourceId::parse(&source.source).and_then(|id| vault.manifest(id).ok()?) else {
        return known;
    };
    match known {
        Some(loss) => {
            let is_back = loss.generation.is_some_and(|number| has_content(path, &manifest, number, vault));
            (!is_back).then_some(loss)
        }
        None => shortened_since(path, &manifest, vault),
    }
}

/// Returns the loss of a file that is shorter than what was archived last.
fn shortened_since(path: &Path, manifest: &Manifest, vault: &Vault) -> Option<Loss> {
    let last = manifest.generation_last().filter(|_| manifest.info.role == Role::Transcript)?;
    let about = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    if about.len() >= vault.len(manifest, last).ok()? {
        return None;
    }
    let at = about.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    let at = at.map(|at| at.to_string());
    Some(Loss { kind: LossKind::Shortened, at, path: path.to_owned(), generation: Some(last) })
}

/// Tells whether a file begins with the content of a generation, as after `steno restore`.
fn has_content(path: &Path, manifest: &Manifest, generation: u32, vault: &Vault) -> bool {
    let Ok(mut file) = open_regular(path, Links::Followed) else { return false };
    let is_long = |len: u64| file.metadata().is_ok_and(|about| about.len() >= len);
    if !vault.len(manifest, generation).is_ok_and(is_long) {
        return false;
    }
    let (mut found, mut is_same) = (Vec::new(), true);
    let read = vault.read(manifest, generation, 0, |_, bytes| {
        found.resize(bytes.len(), 0);
        is_same = file.read_exact(&mut found).is_ok() && found == bytes;
        is_same
    });
    read.is_ok() && is_same
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
