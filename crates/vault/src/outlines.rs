//! The manifests of a vault without their chunks, in one file, so that not every manifest has to be read again.
//!
//! The file is derived. An outline counts only as long as the file of its manifest looks as it did when it was read.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use steno_disk::{Disk, Identity, StorePath, replace_file, sync_dir};

use crate::checksum_lines::{read_lines, write_line};
use crate::error::Error;
use crate::ids::SourceId;
use crate::index::read_whole;
use crate::manifest::{AdapterProgress, Manifest, SourceInfo};
use crate::names::{self, VaultFile};
use crate::tail_file;
use crate::vault::Vault;

/// The version of the file. A file of another version is not read.
const VERSION: u32 = 1;

/// A manifest without its chunks.
#[derive(Clone, Debug)]
pub struct ManifestOutline {
    /// The source.
    pub id: SourceId,
    /// What it is.
    pub info: SourceInfo,
    /// How far it was read, in the format of its reader.
    pub cursor: Option<Box<RawValue>>,
    /// How far it was turned into events.
    pub adapted: Option<AdapterProgress>,
    /// The lengths of its generations, oldest first, without the bytes in the tail.
    pub generation_lens: Vec<u64>,
    /// How the file of the manifest looked before it was read.
    mark: FileMark,
}

/// The outlines of all sources of a vault.
#[derive(Debug, Default)]
pub struct Outlines {
    /// Those that can be read, in the order of their ids.
    pub sources: Vec<ManifestOutline>,
    /// The sources whose manifests cannot be read.
    pub unreadable: Vec<(SourceId, Error)>,
    /// Whether the file has the same outlines, and no other.
    is_saved: bool,
}

/// How a file looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileMark {
    inode: u64,
    size: u64,
    changed: i64,
}

impl From<Identity> for FileMark {
    fn from(found: Identity) -> Self {
        Self { inode: found.inode, size: found.size_bytes, changed: found.changed_ns }
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutlineLine {
    /// The first line.
    Outlines { version: u32 },
    /// A source.
    Source(Box<StoredOutline>),
}

#[derive(Serialize, Deserialize)]
struct StoredOutline {
    id: String,
    manifest: FileMark,
    info: SourceInfo,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    adapted: Option<AdapterProgress>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cursor: Option<Box<RawValue>>,
    lens: Vec<u64>,
}

impl ManifestOutline {
    fn of(manifest: Manifest, mark: FileMark) -> Self {
        let generation_lens = manifest.generations.iter().map(|generation| generation.len).collect();
        let Manifest { id, info, cursor, adapted, .. } = manifest;
        Self { id, info, cursor, adapted, generation_lens, mark }
    }

    /// Returns the number and the length of the last generation.
    fn last(&self) -> Option<(u32, u64)> {
        (0..).zip(self.generation_lens.iter().copied()).last()
    }

    fn read(stored: StoredOutline) -> Option<Self> {
        let StoredOutline { id, manifest: mark, info, adapted, cursor, lens } = stored;
        Some(Self { id: SourceId::parse(&id)?, info, cursor, adapted, generation_lens: lens, mark })
    }

    fn to_line(&self) -> OutlineLine {
        OutlineLine::Source(Box::new(StoredOutline {
            id: self.id.to_string(),
            manifest: self.mark,
            info: self.info.clone(),
            adapted: self.adapted.clone(),
            cursor: self.cursor.clone(),
            lens: self.generation_lens.clone(),
        }))
    }
}

impl Outlines {
    /// Returns bytes that are the same as long as every manifest that can be read stays as it is.
    #[must_use]
    pub fn fingerprint(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for outline in &self.sources {
            let FileMark { inode, size, changed } = outline.mark;
            bytes.extend_from_slice(outline.id.to_string().as_bytes());
            for number in [inode, size, changed.cast_unsigned()] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }

    /// Returns the content of the file.
    fn to_text(&self) -> String {
        let mut text = String::new();
        let lines = self.sources.iter().map(ManifestOutline::to_line);
        for line in [OutlineLine::Outlines { version: VERSION }].into_iter().chain(lines) {
            let line = serde_json::to_string(&line).expect("our own lines are strings and numbers");
            write_line(&line, &mut text);
        }
        text
    }
}

impl Vault {
    /// Returns the outlines of all sources. Reads only manifests that are new or changed since the outlines were saved.
    ///
    /// # Errors
    /// I/O errors of the vault as a whole.
    pub fn outlines(&self) -> Result<Outlines, Error> {
        self.outlines_since(read_file(&**self.disk()))
    }

    fn outlines_since(&self, known: Outlines) -> Result<Outlines, Error> {
        let Outlines { sources, is_saved, .. } = known;
        let mut before: HashMap<SourceId, ManifestOutline, foldhash::fast::FixedState> =
            sources.into_iter().map(|outline| (outline.id, outline)).collect();
        let mut found = Outlines { is_saved, ..Outlines::default() };
        for (id, identity) in self.manifest_files()? {
            let mark = FileMark::from(identity);
            let is_known = before.get(&id).is_some_and(|outline| outline.mark == mark);
            if let Some(outline) = is_known.then(|| before.remove(&id)).flatten() {
                found.sources.push(outline);
                continue;
            }
            match self.manifest(id) {
                Ok(None) => {}
                Ok(Some(manifest)) => {
                    found.is_saved = false;
                    found.sources.push(ManifestOutline::of(manifest, mark));
                }
                Err(error) => found.unreadable.push((id, error)),
            }
        }
        // The rest are changed or gone, and must not stay in the file.
        found.is_saved &= before.is_empty();
        Ok(found)
    }

    /// Returns how many bytes all generations of these sources have, including those in tails.
    ///
    /// # Errors
    /// [`Error::Damaged`] when a tail is damaged, or an I/O error.
    pub fn source_bytes(&self, outlines: &Outlines) -> Result<u64, Error> {
        let (disk, dir) = (&**self.disk(), names::tails());
        // Few sources have a tail.
        let tails = disk.list(&dir).map_err(Error::io("list", &dir))?;
        let mut bytes = outlines.sources.iter().flat_map(|outline| &outline.generation_lens).sum();
        for name in tails {
            let Some(VaultFile::Tail(id)) = VaultFile::parse(dir.below(&name).as_str()) else { continue };
            let place = outlines.sources.binary_search_by_key(&id, |outline| outline.id);
            let Some((last, chunked)) = place.ok().and_then(|place| outlines.sources[place].last()) else {
                continue;
            };
            let tail = tail_file::read(disk, id)?;
            tail.check(id)?;
            bytes += tail.bytes_from(last, chunked).len() as u64;
        }
        Ok(bytes)
    }

    /// Saves outlines, unless the file has them. Nothing is saved while another process forgets something, or when a
    /// manifest has changed since the outlines were read: the next process saves them then.
    ///
    /// # Errors
    /// I/O errors. They can be ignored: the manifests are read instead.
    pub fn save_outlines(&self, outlines: &mut Outlines) -> Result<(), Error> {
        if outlines.is_saved {
            return Ok(());
        }
        // Who forgets holds this lock until the file is deleted. What is in it when we hold the lock is deleted later.
        let Some(_lock) = self.lock_tombstones(1)? else { return Ok(()) };
        if self.forgotten()?.is_sweep_due() || !self.has_manifests_of(outlines)? {
            return Ok(());
        }
        let (disk, path) = (&**self.disk(), VaultFile::Outlines.path());
        remove_files(disk, StorePath::is_temporary)?;
        replace_file(disk, &path, outlines.to_text().as_bytes()).map_err(Error::io("write", &path))?;
        outlines.is_saved = true;
        Ok(())
    }

    /// Tells whether the manifests of all outlines look as they did when they were read.
    fn has_manifests_of(&self, outlines: &Outlines) -> Result<bool, Error> {
        let there = self.manifest_files()?;
        let is_there = |outline: &ManifestOutline| {
            let place = there.binary_search_by_key(&outline.id, |(id, _)| *id);
            place.is_ok_and(|place| FileMark::from(there[place].1) == outline.mark)
        };
        Ok(outlines.sources.iter().all(is_there))
    }
}

/// Deletes the file, and what dead processes left of it: something in it is forgotten. The caller holds the lock of the
/// tombstones.
pub(crate) fn remove_file(disk: &dyn Disk) -> Result<(), Error> {
    let dir = names::root();
    match remove_files(disk, |_| true)? {
        0 => Ok(()),
        _ => sync_dir(disk, &dir).map_err(Error::not_synced(&dir)),
    }
}

/// Deletes those of the file and its temporary files that are not wanted; returns how many.
fn remove_files(disk: &dyn Disk, is_unwanted: impl Fn(&StorePath) -> bool) -> Result<usize, Error> {
    let dir = names::root();
    let found = disk.list(&dir).map_err(Error::io("list", &dir))?;
    let is_ours = |path: &StorePath| VaultFile::of(path) == Some(VaultFile::Outlines);
    let found = found.iter().map(|name| dir.below(name));
    let found: Vec<StorePath> = found.filter(|path| is_ours(path) && is_unwanted(path)).collect();
    for path in &found {
        disk.remove(path).map_err(Error::io("delete", path))?;
    }
    Ok(found.len())
}

/// Reads the file; empty if it is missing, damaged or of another version.
fn read_file(disk: &dyn Disk) -> Outlines {
    let bytes = read_whole(disk, &VaultFile::Outlines.path()).ok().flatten().unwrap_or_default();
    parse(&bytes).unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Option<Outlines> {
    let mut outlines = Outlines { is_saved: true, ..Outlines::default() };
    let mut is_known = false;
    let read = read_lines(
        bytes,
        |_, _| (),
        |_, text| {
            match serde_json::from_str(&text).map_err(|_| ())? {
                OutlineLine::Outlines { version } => is_known = version == VERSION,
                OutlineLine::Source(stored) if is_known => {
                    outlines.sources.push(ManifestOutline::read(*stored).ok_or(())?);
                }
                OutlineLine::Source(_) => return Err(()),
            }
            Ok(())
        },
    );
    (read == Ok(bytes.len() as u64) && is_known).then_some(outlines)
}
