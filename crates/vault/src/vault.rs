//! The vault of a store: opening it, reading from it, listing its sources.

use std::collections::HashSet;
use std::sync::Arc;

use steno_disk::{Disk, Identity};

use crate::chunks::{ChunkStore, LossCount};
use crate::codec::Codec;
use crate::error::Error;
use crate::forget::TombstoneCache;
use crate::gate::{ExclusiveGate, Gate, IndexState};
use crate::ids::{ChunkHash, SourceId};
use crate::limits::Limits;
use crate::manifest::{Manifest, Sighting, SourceInfo};
use crate::names::{self, VaultFile};
use crate::settle::{PackList, settle_packs};
use crate::tail_file;
use crate::tombstones::Tombstones;
use crate::writer::SourceWriter;

/// The evidence of a store.
pub struct Vault {
    disk: Arc<dyn Disk>,
    limits: Limits,
    chunks: ChunkStore,
    gate: Gate,
    tombstone_cache: TombstoneCache,
}

/// Holds off sweeps while a writer relies on chunks that no manifest names yet.
pub(crate) struct SweepGuard {
    vault: Arc<Vault>,
    losses: LossCount,
}

impl SweepGuard {
    /// Syncs all chunks that were put since the guard was taken.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.vault.chunks.sync(self.losses)
    }

    /// Fails if chunks that were put since the guard was taken were lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.vault.chunks.check(self.losses)
    }
}

impl Drop for SweepGuard {
    fn drop(&mut self) {
        self.vault.gate.leave();
    }
}

impl Vault {
    /// Opens the vault of a store for reading.
    #[must_use]
    pub fn open(disk: Arc<dyn Disk>) -> Arc<Self> {
        Self::open_with(disk, Limits::default())
    }

    fn open_with(disk: Arc<dyn Disk>, limits: Limits) -> Arc<Self> {
        let limits = limits.within_format();
        let chunks = ChunkStore::new(Arc::clone(&disk), limits);
        Arc::new(Self {
            disk,
            limits,
            chunks,
            gate: Gate::default(),
            tombstone_cache: TombstoneCache::default(),
        })
    }

    /// Opens the vault of a store for writing. Creates missing directories, settles the packs of processes that died,
    /// and completes an interrupted sweep.
    ///
    /// # Errors
    /// I/O errors.
    pub fn create(disk: Arc<dyn Disk>) -> Result<Arc<Self>, Error> {
        Self::create_with(disk, Limits::default())
    }

    /// Opens the vault of a store for writing, like [`Vault::create`], with the given limits.
    ///
    /// # Errors
    /// I/O errors.
    pub fn create_with(disk: Arc<dyn Disk>, limits: Limits) -> Result<Arc<Self>, Error> {
        for dir in [names::root(), names::packs(), names::sources(), names::tails()] {
            disk.make_dir(&dir).map_err(Error::io("make", &dir))?;
        }
        let vault = Self::open_with(disk, limits);
        let tidied = vault.settle().and_then(|()| vault.hash_names());
        match tidied.and_then(|()| vault.sweep_if_needed().map(|_| ())) {
            // Unsettled packs can be read all the same, and the next process tries again.
            Err(error @ (Error::Damaged { .. } | Error::TooNew { .. } | Error::NoRoom { .. })) => {
                tracing::warn!(%error, "could not clean up after processes that died");
            }
            tidied => tidied?,
        }
        Ok(vault)
    }

    /// Settles the packs of processes that died, unless another process relies on chunks right now.
    fn settle(&self) -> Result<(), Error> {
        if PackList::read(&*self.disk)?.dead.is_empty() {
            return Ok(());
        }
        let Some(alone) = ExclusiveGate::take(&*self.disk, 1)? else { return Ok(()) };
        let packs = PackList::read(&*self.disk)?;
        let named = self.named_chunks()?;
        alone.announce()?;
        settle_packs(&*self.disk, &packs, &named)?;
        Ok(())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(crate) fn chunks(&self) -> &ChunkStore {
        &self.chunks
    }

    pub(crate) fn forgotten(&self) -> Result<Arc<Tombstones>, Error> {
        self.tombstone_cache.tombstones(&*self.disk)
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Result<SweepGuard, Error> {
        if self.gate.enter(&*self.disk)? == IndexState::Stale {
            self.chunks.forget_locations();
        }
        Ok(SweepGuard { vault: Arc::clone(self), losses: self.chunks.losses() })
    }

    /// Lists the sources, in the order of their ids.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sources(&self) -> Result<Vec<SourceId>, Error> {
        let dir = names::sources();
        let names = self.disk.list(&dir).map_err(Error::io("list", &dir))?;
        Ok(names.iter().filter_map(|name| VaultFile::in_sources(name)).collect())
    }

    /// Lists the sources with the identities of their manifests.
    ///
    /// # Errors
    /// I/O errors.
    pub fn manifest_files(&self) -> Result<Vec<(SourceId, Identity)>, Error> {
        let dir = names::sources();
        let found = self.disk.identities(&dir, &|name| VaultFile::in_sources(name).is_some());
        let found = found.map_err(Error::io("list", &dir))?;
        Ok(found
            .into_iter()
            .filter_map(|(name, found)| Some((VaultFile::in_sources(&name)?, found)))
            .collect())
    }

    /// Reads the manifest of a source; `None` when it has none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::TooNew`], or an I/O error.
    pub fn manifest(&self, source: SourceId) -> Result<Option<Manifest>, Error> {
        Manifest::read(&*self.disk, source)
    }

    /// Opens a source for writing. The caller becomes its only owner.
    ///
    /// # Errors
    /// [`Error::Locked`] when it has another owner, [`Error::Forgotten`] when it was forgotten, [`Error::Damaged`], or
    /// an I/O error.
    pub fn write(
        self: &Arc<Self>,
        source: SourceId,
        info: &SourceInfo,
        seen: impl Into<Sighting>,
    ) -> Result<SourceWriter, Error> {
        SourceWriter::open(Arc::clone(self), source, info, &seen.into())
    }

    /// Passes the bytes of a generation to `each`, beginning at an offset, until the end or until `each` returns false.
    ///
    /// Bytes that were added after the manifest was read may be included.
    ///
    /// # Errors
    /// [`Error::MissingChunk`], [`Error::DamagedChunk`] or [`Error::Damaged`] when bytes are missing,
    /// [`Error::Forgotten`] when the source was forgotten meanwhile, or an I/O error. The bytes before that have been
    /// passed on.
    pub fn read(
        &self,
        manifest: &Manifest,
        generation: u32,
        mut offset: u64,
        mut each: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), Error> {
        let mut codec = Codec::default();
        let mut newer = None;
        loop {
            let manifest: &Manifest = newer.as_ref().unwrap_or(manifest);
            let missing = || Error::NoSuchBytes { source_id: manifest.id, generation, offset };
            let content = manifest.generations.get(generation as usize).ok_or_else(missing)?;
            let mut start = 0;
            for chunk in &content.chunks {
                let end = start + u64::from(chunk.len);
                if offset < end {
                    let bytes = self.chunks.read(&chunk.hash, &mut codec)?;
                    let known = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
                    if !each(start + known as u64, bytes.get(known..).unwrap_or_default()) {
                        return Ok(());
                    }
                    offset = end;
                }
                start = end;
            }
            let from = start.max(offset);
            let tail = tail_file::read(&*self.disk, manifest.id)?;
            let rest = tail.bytes_from(generation, from);
            if !rest.is_empty() {
                each(from, &rest);
                return tail.check(manifest.id);
            }
            // The tail may have moved into chunks after the manifest was read.
            newer = match self.manifest_if_changed(manifest)? {
                Some(newer) => Some(newer),
                None => return tail.check(manifest.id),
            };
            offset = from;
        }
    }

    /// Reads a manifest again; `None` when it did not change.
    ///
    /// A manifest that disappeared was forgotten, and its tail with it: the bytes that are left are not complete.
    fn manifest_if_changed(&self, known: &Manifest) -> Result<Option<Manifest>, Error> {
        let path = VaultFile::Manifest(known.id).path();
        let identity = self.disk.identity(&path).map_err(Error::io("access", &path))?;
        match identity {
            None if known.good_len > 0 => return Err(Error::Forgotten { source_id: known.id }),
            None => return Ok(None),
            Some(identity) if identity.size_bytes == known.good_len => return Ok(None),
            Some(_) => {}
        }
        let newer = self.manifest(known.id)?;
        Ok(newer.filter(|newer| newer.good_len != known.good_len))
    }

    /// Returns how many bytes a generation has, including those in the tail.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the tail is damaged, or an I/O error.
    pub fn len(&self, manifest: &Manifest, generation: u32) -> Result<u64, Error> {
        let chunked = manifest.generations.get(generation as usize).map_or(0, |content| content.len);
        let tail = tail_file::read(&*self.disk, manifest.id)?;
        tail.check(manifest.id)?;
        Ok(chunked + tail.bytes_from(generation, chunked).len() as u64)
    }

    /// Returns the size of all its files on disk, without the outlines: they repeat what the manifests say.
    ///
    /// # Errors
    /// I/O errors.
    pub fn disk_bytes(&self) -> Result<u64, Error> {
        let root = names::root();
        let is_counted =
            |name: &str| VaultFile::of(&root.below(name)).is_some_and(|file| file != VaultFile::Outlines);
        let found = self.disk.identities(&root, &is_counted).map_err(Error::io("list", &root))?;
        let mut bytes = found.iter().map(|(_, found)| found.size_bytes).sum();
        for dir in [names::packs(), names::sources(), names::tails()] {
            bytes += self.disk.size_of_files(&dir).map_err(Error::io("list", &dir))?;
        }
        Ok(bytes)
    }

    /// Closes the pack that this process writes, so that others can rely on its chunks. The next chunk begins a new
    /// pack.
    ///
    /// # Errors
    /// I/O errors.
    pub fn close_pack(&self) -> Result<(), Error> {
        self.chunks.close_pack()
    }

    /// Returns the chunks that manifests name.
    pub(crate) fn named_chunks(&self) -> Result<HashSet<ChunkHash>, Error> {
        let mut named = HashSet::new();
        for source in self.sources()? {
            let Some(manifest) = self.manifest(source)? else { continue };
            named.extend(manifest.chunks().map(|chunk| chunk.hash));
        }
        Ok(named)
    }
}
