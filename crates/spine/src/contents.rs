//! Reads the content of a spine in a store, in a directory, or in a tar file, which is never unpacked.
//!
//! The caller checks the spine first. If content was damaged after the check, it is left out, or reading fails.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use steno_disk::{Disk, StorePath, read_full};
use steno_journal::{ARTIFACT_BYTES_MAX, ARTIFACTS_DIR, Error, SegmentName, SpineReader};
use steno_model::SpineRecord;

use super::artifact_refs::is_plain_name;
use super::directory::layout_of;
use super::tar::{Kind, TarReader};
use super::tar_bundle::Names;
use super::validator::Layout;
use crate::hash::hex;

/// The maximum number of bytes of a tar file that are kept: segments that come before earlier ones, and artifacts.
const KEPT_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The directory of the rollouts in a bundle.
const ROLLOUT_DIR: &str = "rollout";

/// The artifacts of a spine.
pub struct Artifacts(ArtifactSource);

enum ArtifactSource {
    /// Files below a directory.
    On(Arc<dyn Disk>, StorePath),
    /// Content by name.
    Here(BTreeMap<String, Vec<u8>>),
}

impl Artifacts {
    /// Returns the bytes of an artifact that a record names, if they exist and have the recorded hash.
    #[must_use]
    pub fn read(&self, path: &str, sha256: &str) -> Option<Vec<u8>> {
        let name = path.strip_prefix(ARTIFACTS_DIR)?.strip_prefix('/').filter(|name| is_plain_name(name))?;
        let bytes = match &self.0 {
            ArtifactSource::Here(kept) => kept.get(name)?.clone(),
            ArtifactSource::On(disk, root) => {
                let file = disk.open_read(&root.below(ARTIFACTS_DIR).below(name)).ok()??;
                let size = file.identity().ok()?.size_bytes;
                let size = usize::try_from(size).ok().filter(|size| *size <= ARTIFACT_BYTES_MAX)?;
                let mut bytes = vec![0; size];
                let read = read_full(&*file, &mut bytes, 0).ok()?;
                bytes.truncate(read);
                bytes
            }
        };
        let mut hash = Sha256::new();
        hash.update(&bytes);
        (hex(&hash) == sha256).then_some(bytes)
    }
}

/// Reads the spine in a directory: segments, or a bundle.
///
/// # Errors
///
/// [`Error::Damaged`] with the place, or an error of the system.
pub fn read_directory(disk: Arc<dyn Disk>, each: &mut dyn FnMut(SpineRecord)) -> Result<Artifacts, Error> {
    let root = StorePath::root();
    let records = match layout_of(&*disk)? {
        Layout::Spine => root.clone(),
        Layout::Bundle => root.below("spine"),
    };
    read_records(disk, root, records, each)
}

/// Reads the spine of a store.
///
/// # Errors
///
/// Those of [`read_directory`].
pub fn read_spine(
    store: &steno_journal::Store,
    thread: &steno_model::ThreadId,
    each: &mut dyn FnMut(SpineRecord),
) -> Result<Artifacts, Error> {
    let root = StorePath::spine_of(thread);
    read_records(Arc::clone(store.disk()), root.clone(), root, each)
}

fn read_records(
    disk: Arc<dyn Disk>,
    root: StorePath,
    records: StorePath,
    each: &mut dyn FnMut(SpineRecord),
) -> Result<Artifacts, Error> {
    let mut reader = SpineReader::new(Arc::clone(&disk), records);
    while let Some(record) = reader.read_next()? {
        each(record);
    }
    Ok(Artifacts(ArtifactSource::On(disk, root)))
}

/// Takes a piece of a file, and decides whether the next one is read.
pub type OnPiece<'a> = &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>;

/// Reads a rollout of a bundle in a directory, by its name in `rollout/`, until `each` breaks.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if the bundle does not have it, or an error of the system.
pub fn read_directory_rollout(disk: &dyn Disk, name: &str, each: OnPiece<'_>) -> io::Result<()> {
    const PIECE_BYTES: usize = 256 * 1024;
    let path = StorePath::root().below(ROLLOUT_DIR).below(name);
    let file = disk.open_read(&path)?.ok_or(io::ErrorKind::NotFound)?;
    let (mut piece, mut offset) = (vec![0; PIECE_BYTES], 0);
    loop {
        let read = read_full(&*file, &mut piece, offset)?;
        if read == 0 || each(&piece[..read]).is_break() {
            return Ok(());
        }
        offset += read as u64;
    }
}

/// Reads a rollout of a bundle in an uncompressed tar file, by its name in `rollout/`, until `each` breaks.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if the bundle does not have it, or an error of the reader.
pub fn read_tar_rollout(from: impl Read, name: &str, each: OnPiece<'_>) -> io::Result<()> {
    let (mut tar, mut names) = (TarReader::new(from), Names::default());
    let wanted = format!("{ROLLOUT_DIR}/{name}");
    while let Some(entry) = tar.next()? {
        let name = names.of(&entry).ok().flatten().filter(|_| entry.kind == Kind::File);
        let is_wanted = name.is_some_and(|name| name == wanted);
        let mut flow = ControlFlow::Continue(());
        tar.content(&entry, |piece| {
            if is_wanted && flow.is_continue() {
                flow = each(piece);
            }
        })?;
        if is_wanted {
            return Ok(());
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Reads a bundle in an uncompressed tar file. Segments may be in any order.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] if it is not a bundle, [`io::ErrorKind::OutOfMemory`] if too much of it would have to
/// be kept, or an error of the reader.
pub fn read_tar(from: impl Read, each: &mut dyn FnMut(SpineRecord)) -> io::Result<Artifacts> {
    let (mut tar, mut names) = (TarReader::new(from), Names::default());
    let mut waiting = BTreeMap::<u32, Vec<u8>>::new();
    let mut artifacts = BTreeMap::new();
    let (mut next, mut kept_bytes) = (0, 0);
    while let Some(entry) = tar.next()? {
        let name = names.of(&entry).ok().flatten().filter(|_| entry.kind == Kind::File);
        let segment =
            name.as_deref().and_then(|name| match SegmentName::parse(name.strip_prefix("spine/")?) {
                Some(SegmentName::Records(index)) => Some(index.0),
                Some(SegmentName::Meta(_)) | None => None,
            });
        let artifact = name.as_deref().and_then(|name| name.strip_prefix(ARTIFACTS_DIR)?.strip_prefix('/'));
        let is_wanted =
            segment.is_some() || artifact.is_some() && entry.size_bytes <= ARTIFACT_BYTES_MAX as u64;
        if is_wanted {
            kept_bytes += entry.size_bytes;
        }
        if kept_bytes > KEPT_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, "it needs too much memory"));
        }
        let mut bytes = Vec::new();
        tar.content(&entry, |piece| {
            if is_wanted {
                bytes.extend_from_slice(piece);
            }
        })?;
        if let Some(index) = segment {
            waiting.insert(index, bytes);
        } else if let Some(artifact) = artifact.filter(|_| is_wanted) {
            artifacts.insert(artifact.to_owned(), bytes);
        }
        while let Some(segment) = waiting.remove(&next) {
            kept_bytes -= segment.len() as u64;
            records(&segment, each)?;
            next += 1;
        }
    }
    Ok(Artifacts(ArtifactSource::Here(artifacts)))
}

fn records(segment: &[u8], each: &mut dyn FnMut(SpineRecord)) -> io::Result<()> {
    let lines = segment.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    for line in lines {
        let record =
            SpineRecord::parse(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        each(record);
    }
    Ok(())
}
