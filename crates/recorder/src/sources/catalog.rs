//! Which sources the vault has, by path, by file and by name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use steno_adapters::{AdapterAge, adapter_age};
use steno_capture::tail::{Cursor, FileId};
use steno_journal::Store;
use steno_model::{Provider, RunId, Word};
use steno_vault::{AdapterProgress, Manifest, ManifestOutline, Outlines, SourceId, SourceInfo};

use super::cursors;
use super::source::runs_named;

/// A file name that more files share than this does not identify any of them.
const NAMESAKES_MAX: usize = 4;

/// What is known about a source that no process is writing.
#[derive(Clone, Debug)]
pub(crate) struct KnownSource {
    pub(crate) id: SourceId,
    /// Where it was last.
    pub(crate) path: PathBuf,
    /// Its provider, if it was recognised.
    pub(crate) provider: Option<Word<Provider>>,
    /// How far it was read, if its last owner reached the end.
    pub(crate) cursor: Option<Cursor>,
    /// Whether everything that was read has become events, where events are wanted.
    pub(crate) is_done: bool,
    /// Whether an older adapter derived its runs.
    pub(crate) is_older: bool,
    /// The runs that have to exist.
    runs: Vec<RunId>,
}

/// The sources of a vault.
#[derive(Default)]
pub(crate) struct Catalog {
    known: HashMap<PathBuf, KnownSource>,
    by_file: HashMap<FileId, PathBuf>,
    by_name: HashMap<OsString, BTreeSet<PathBuf>>,
}

impl Catalog {
    /// Takes the outlines of all manifests. A damaged manifest is logged and skipped.
    pub(crate) fn of(outlines: &Outlines) -> Self {
        let mut catalog = Self::default();
        for ManifestOutline { id, info, cursor, adapted, .. } in &outlines.sources {
            catalog.put(KnownSource::from_parts(*id, info, cursor.as_deref(), adapted.as_ref()));
        }
        for (id, error) in &outlines.unreadable {
            tracing::warn!(source = %id, %error, "a manifest cannot be read");
        }
        catalog
    }

    pub(crate) fn at(&self, path: &Path) -> Option<&KnownSource> {
        self.known.get(plain_name(path))
    }

    /// Returns the sources that a moved file may belong to: those whose last path is gone and that have the same inode
    /// or the same file name. The inode may have been reused, and a process that was killed did not save it.
    pub(crate) fn may_be(&self, path: &Path, file: FileId) -> Vec<KnownSource> {
        let name = plain_name(path).file_name();
        let named = name.and_then(|name| self.by_name.get(name)).filter(|named| named.len() <= NAMESAKES_MAX);
        let paths = self.by_file.get(&file).into_iter().chain(named.into_iter().flatten());
        let known = paths.filter_map(|path| self.known.get(path));
        known.filter(|known| !known.path.exists()).cloned().collect()
    }

    /// Returns the sources at other paths whose files have the same name.
    pub(crate) fn namesakes(&self, path: &Path) -> Vec<&KnownSource> {
        let path = plain_name(path);
        let named = path.file_name().and_then(|name| self.by_name.get(name));
        let named = named.filter(|named| named.len() <= NAMESAKES_MAX);
        let others = named.into_iter().flatten().filter(|other| *other != path);
        others.filter_map(|other| self.known.get(other)).collect()
    }

    pub(crate) fn put(&mut self, known: KnownSource) {
        let key = plain_name(&known.path).to_owned();
        if let Some(cursor) = &known.cursor {
            self.by_file.insert(cursor.stamp.file, key.clone());
        }
        if let Some(name) = key.file_name() {
            self.by_name.entry(name.to_owned()).or_default().insert(key.clone());
        }
        self.known.insert(key, known);
    }

    /// Removes the former path of a source that has moved.
    pub(crate) fn moved_from(&mut self, path: &Path) {
        let key = plain_name(path);
        self.known.remove(key);
        if let Some(name) = key.file_name()
            && let Some(named) = self.by_name.get_mut(name)
        {
            named.remove(key);
            if named.is_empty() {
                self.by_name.remove(name);
            }
        }
    }

    /// Tells whether an older adapter derived the runs of any source that is not given up.
    pub(crate) fn has_older(&self, is_given_up: impl Fn(SourceId) -> bool) -> bool {
        self.known.values().any(|known| known.is_older && !is_given_up(known.id))
    }

    /// Tells whether a run of any source that is not given up may be missing.
    pub(crate) fn has_missing(&self, store: &Store, is_given_up: impl Fn(SourceId) -> bool) -> bool {
        let Ok(there) = store.runs() else { return false };
        let there: HashSet<RunId> = there.into_iter().collect();
        let is_missing = |known: &KnownSource| known.runs.iter().any(|run| !there.contains(run));
        self.known.values().any(|known| is_missing(known) && !is_given_up(known.id))
    }

    /// Returns the last paths of all sources.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.known.values().map(|known| &known.path)
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

/// Returns when a source's file was last written to, as far as recorded.
#[must_use]
pub fn last_written(manifest: &Manifest) -> Option<jiff::Timestamp> {
    let cursor = manifest.cursor.as_deref().and_then(cursors::read)?;
    jiff::Timestamp::from_nanosecond(cursor.stamp.modified_ns.into()).ok()
}

impl KnownSource {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let Manifest { id, info, cursor, adapted, .. } = manifest;
        Self::from_parts(*id, info, cursor.as_deref(), adapted.as_ref())
    }

    fn from_parts(
        id: SourceId,
        info: &SourceInfo,
        cursor: Option<&RawValue>,
        adapted: Option<&AdapterProgress>,
    ) -> Self {
        let cursor = cursor.and_then(cursors::read);
        let is_done = cursor.as_ref().is_some_and(|cursor| match adapted {
            None => true,
            Some(adapted) => (adapted.generation, adapted.offset) == (cursor.generation, cursor.offset()),
        });
        Self {
            id,
            path: info.path.0.clone(),
            provider: info.provider.clone(),
            cursor,
            is_done,
            is_older: is_older(adapted),
            runs: runs_expected(info, adapted),
        }
    }
}

/// Tells whether the runs of a source were last derived by an older adapter.
pub(crate) fn is_older(adapted: Option<&AdapterProgress>) -> bool {
    adapted.is_some_and(|adapted| adapter_age(&adapted.adapter) == AdapterAge::Older)
}

/// Returns the runs that must exist because a source was made into them. A filtered source has none, nor one that a
/// newer `steno` derived: only that version can derive it again.
pub(crate) fn runs_expected(info: &SourceInfo, adapted: Option<&AdapterProgress>) -> Vec<RunId> {
    let age = adapted.map_or(AdapterAge::Unknown, |adapted| adapter_age(&adapted.adapter));
    if info.is_filtered || age == AdapterAge::Newer { Vec::new() } else { runs_named(adapted) }
}

/// Returns the possible ids of sources that were first seen at a path, in order.
pub(crate) fn ids_at(path: &Path) -> impl Iterator<Item = SourceId> {
    (0..).map(|turn| SourceId::derive(plain_name(path), turn))
}

/// Returns the id of the source that was first seen at a path, before anything else was there.
pub(crate) fn first_id_at(path: &Path) -> SourceId {
    SourceId::derive(plain_name(path), 0)
}

/// Tells whether two paths have the same file name with a UUID in it. They belong to the same session, even if the
/// content differs.
pub(crate) fn is_named_alone(path: &Path, other: &Path) -> bool {
    const UUID_LEN: usize = uuid::fmt::Hyphenated::LENGTH;
    let name = |path| plain_name(path).file_name().map(OsStr::as_bytes);
    let is_uuid = |part: &[u8]| uuid::Uuid::try_parse_ascii(part).is_ok();
    name(path) == name(other) && name(path).is_some_and(|name| name.windows(UUID_LEN).any(is_uuid))
}

/// Returns the path of a file when it is not compressed. Codex compresses a session's file and unpacks it before it
/// continues: both names are one source.
pub(crate) fn plain_name(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    match bytes.strip_suffix(b".zst").filter(|plain| plain.ends_with(b".jsonl")) {
        Some(plain) => Path::new(OsStr::from_bytes(plain)),
        None => path,
    }
}

/// Returns the path of a file when it is compressed; `None` for files that are never compressed.
pub(crate) fn packed_name(path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b".jsonl").then(|| PathBuf::from(OsString::from_vec([bytes, b".zst"].concat())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_a_uuid_identifies_a_session() {
        let check = |path: &str, other: &str, want| {
            assert_eq!(is_named_alone(Path::new(path), Path::new(other)), want, "{path} {other}");
        };
        let (uuid, another) =
            ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440001");
        check(&format!("/a/{uuid}.jsonl"), &format!("/b/{uuid}.jsonl.zst"), true);
        check(&format!("/a/r-{uuid}_x.jsonl"), &format!("/b/r-{uuid}_x.jsonl"), true);
        check(&format!("/a/{uuid}.jsonl"), &format!("/a/{another}.jsonl"), false);
        check("/a/events.jsonl", "/b/events.jsonl", false);
    }

    #[test]
    fn plain_and_packed_names_are_converted() {
        let (plain, packed) = (Path::new("/a/r.jsonl"), Path::new("/a/r.jsonl.zst"));
        assert_eq!((plain_name(plain), plain_name(packed)), (plain, plain));
        assert_eq!(plain_name(Path::new("/a/r.zst")), Path::new("/a/r.zst"));
        assert_eq!(packed_name(plain).as_deref(), Some(packed));
        assert_eq!((packed_name(packed), packed_name(Path::new("/a/r.json"))), (None, None));
    }
}
