//! Which sources the vault has, by path and by file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use steno_capture::tail::{Cursor, FileId};
use steno_vault::{Manifest, SourceId, Vault};

use super::cursors;
use super::error::Error;

/// What is known of a source that nobody writes at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: SourceId,
    /// Where it was last.
    pub(crate) path: PathBuf,
    /// How far it was read, if its owner came to its end.
    pub(crate) cursor: Option<Cursor>,
    /// Whether all that was read was made into events, as far as they are wanted.
    pub(crate) is_done: bool,
}

/// The sources of a vault.
#[derive(Default)]
pub(crate) struct Catalog {
    by_path: HashMap<PathBuf, Known>,
    by_file: HashMap<FileId, PathBuf>,
}

impl Catalog {
    /// Reads all manifests. One that is damaged is told and takes nothing from the others.
    pub(crate) fn load(vault: &Vault) -> Result<Self, Error> {
        let mut catalog = Self::default();
        for id in vault.sources().map_err(Error::Catalog)? {
            match vault.manifest(id) {
                Ok(Some(manifest)) => catalog.put(Known::of(&manifest)),
                Ok(None) => {}
                Err(error) => tracing::warn!(source = %id, %error, "a manifest cannot be read"),
            }
        }
        Ok(catalog)
    }

    pub(crate) fn at(&self, path: &Path) -> Option<&Known> {
        self.by_path.get(key(path))
    }

    /// Finds the source of a file that was elsewhere when it was last seen, and is not there any more.
    pub(crate) fn moved_here(&self, file: FileId) -> Option<&Known> {
        let known = self.by_path.get(self.by_file.get(&file)?)?;
        (!known.path.exists()).then_some(known)
    }

    pub(crate) fn put(&mut self, known: Known) {
        let key = key(&known.path).to_owned();
        if let Some(cursor) = &known.cursor {
            self.by_file.insert(cursor.stamp.file, key.clone());
        }
        self.by_path.insert(key, known);
    }

    /// Forgets where a source was that is elsewhere now.
    pub(crate) fn moved_from(&mut self, path: &Path) {
        self.by_path.remove(key(path));
    }

    pub(crate) fn len(&self) -> usize {
        self.by_path.len()
    }
}

/// Returns when a source's file was last written to, as far as its owner has seen.
#[must_use]
pub fn last_written(manifest: &Manifest) -> Option<jiff::Timestamp> {
    let cursor = manifest.cursor.as_deref().and_then(cursors::read)?;
    jiff::Timestamp::from_nanosecond(cursor.stamp.modified_ns.into()).ok()
}

impl Known {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let cursor = manifest.cursor.as_deref().and_then(cursors::read);
        let is_done = cursor.as_ref().is_some_and(|cursor| match &manifest.adapted {
            None => true,
            Some(adapted) => (adapted.generation, adapted.offset) == (cursor.generation, cursor.offset()),
        });
        Self { id: manifest.id, path: manifest.info.path.0.clone(), cursor, is_done }
    }
}

/// What the vault has for a path that the catalog does not know.
pub(crate) enum Standing {
    /// A source that was begun since the catalog was read, by another process or by one that failed.
    Begun(Known),
    /// Nothing: this is the id for it.
    New(SourceId),
}

/// Looks up a path that the catalog does not know.
pub(crate) fn standing(vault: &Vault, path: &Path, again: bool) -> Standing {
    for turn in 0.. {
        let id = SourceId::derive(key(path), turn);
        match vault.manifest(id) {
            // What was here and has moved away keeps its id.
            Ok(Some(manifest)) if key(&manifest.info.path.0) != key(path) => {}
            Ok(Some(manifest)) => return Standing::Begun(Known::of(&manifest)),
            // What was forgotten keeps its id too; whoever wants it again begins another.
            Ok(None) if again && vault.is_forgotten(id).unwrap_or(false) => {}
            // Who writes to one that is damaged, or was forgotten, is told so.
            Ok(None) | Err(_) => return Standing::New(id),
        }
    }
    unreachable!("there are more numbers than sources")
}

/// Codex compresses a session's file and unpacks it again before it goes on: under both names it is one source.
fn key(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_encoded_bytes();
    match bytes.strip_suffix(b".jsonl.zst") {
        Some(_) => {
            use std::os::unix::ffi::OsStrExt as _;
            Path::new(std::ffi::OsStr::from_bytes(&bytes[..bytes.len() - ".zst".len()]))
        }
        None => path,
    }
}
