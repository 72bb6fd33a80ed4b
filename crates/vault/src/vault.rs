//! The vault as a whole.

use std::collections::HashSet;
use std::sync::Arc;

use steno_disk::Disk;

use crate::chunks::{self, Chunks};
use crate::codec::Codec;
use crate::error::Error;
use crate::gate::{Gate, Since};
use crate::ids::{ChunkHash, SourceId};
use crate::manifest::{Manifest, SourceInfo};
use crate::names::{self, VaultFile};
use crate::tail_file;
use crate::writer::SourceWriter;

/// The evidence of a store.
pub struct Vault {
    disk: Arc<dyn Disk>,
    chunks: Chunks,
    gate: Gate,
}

/// Kept while a chunk is relied on that no manifest names yet.
pub(crate) struct Entered(Arc<Vault>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.gate.leave();
    }
}

impl Vault {
    /// Opens the vault of a store to read.
    #[must_use]
    pub fn open(disk: Arc<dyn Disk>) -> Arc<Self> {
        Arc::new(Self { chunks: Chunks::new(Arc::clone(&disk)), disk, gate: Gate::default() })
    }

    /// Opens the vault of a store to write, makes what is missing of it, and settles what processes have left that died.
    ///
    /// # Errors
    /// What the system says, or [`Error::Damaged`] when a manifest cannot be read that would have to be.
    pub fn create(disk: Arc<dyn Disk>) -> Result<Arc<Self>, Error> {
        for dir in [names::root(), names::packs(), names::sources(), names::tails()] {
            disk.make_dir(&dir).map_err(Error::io("make", &dir))?;
        }
        let vault = Self::open(disk);
        chunks::settle_packs(&*vault.disk, || vault.named_chunks())?;
        Ok(vault)
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(crate) fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Result<Entered, Error> {
        if self.gate.enter(&*self.disk)? == Since::Swept {
            self.chunks.forget_places();
        }
        Ok(Entered(Arc::clone(self)))
    }

    /// Lists the sources, in the order of their ids.
    ///
    /// # Errors
    /// What the system says.
    pub fn sources(&self) -> Result<Vec<SourceId>, Error> {
        let dir = names::sources();
        let names = self.disk.list(&dir).map_err(Error::io("list", &dir))?;
        let source = |name: &String| {
            let Some(VaultFile::Manifest(source)) = VaultFile::parse(dir.below(name).as_str()) else {
                return None;
            };
            Some(source)
        };
        Ok(names.iter().filter_map(source).collect())
    }

    /// Reads the manifest of a source; `None` when it has none.
    ///
    /// # Errors
    /// [`Error::Damaged`] when it is not as it was, [`Error::TooNew`], or what the system says.
    pub fn manifest(&self, source: SourceId) -> Result<Option<Manifest>, Error> {
        Manifest::read(&*self.disk, source)
    }

    /// Opens a source to write, which makes the caller its one owner.
    ///
    /// # Errors
    /// [`Error::Held`] when it has another owner, [`Error::Damaged`], or what the system says.
    pub fn write(
        self: &Arc<Self>,
        source: SourceId,
        info: &SourceInfo,
        now: &str,
    ) -> Result<SourceWriter, Error> {
        SourceWriter::open(Arc::clone(self), source, info, now)
    }

    /// Hands over the bytes of a generation from an offset on, piece by piece, until there are no more or `each` says no.
    ///
    /// # Errors
    /// [`Error::MissingChunk`] or [`Error::DamagedChunk`] when they are not all there, or what the system says.
    pub fn read(
        &self,
        manifest: &Manifest,
        generation: u32,
        offset: u64,
        mut each: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), Error> {
        let missing = || Error::NoSuchBytes { source_id: manifest.id, generation, offset };
        let content = manifest.generations.get(generation as usize).ok_or_else(missing)?;
        let mut codec = Codec::default();
        let mut start = 0;
        for chunk in &content.chunks {
            let end = start + u64::from(chunk.len);
            if offset < end {
                let bytes = self.chunks.read(&chunk.hash, &mut codec)?;
                let known = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
                if !each(start + known as u64, bytes.get(known..).unwrap_or_default()) {
                    return Ok(());
                }
            }
            start = end;
        }
        let from = start.max(offset);
        let frames = tail_file::read(&*self.disk, manifest.id)?;
        let rest = tail_file::bytes_from(&frames, generation, from);
        if !rest.is_empty() {
            each(from, &rest);
        }
        Ok(())
    }

    /// Returns how many bytes a generation has, those in its tail included.
    ///
    /// # Errors
    /// What the system says.
    pub fn len(&self, manifest: &Manifest, generation: u32) -> Result<u64, Error> {
        let chunked = manifest.generations.get(generation as usize).map_or(0, |content| content.len);
        let frames = tail_file::read(&*self.disk, manifest.id)?;
        Ok(chunked + tail_file::bytes_from(&frames, generation, chunked).len() as u64)
    }

    /// Ends the pack that this process writes: others can rely on its chunks then. The next chunk begins another.
    ///
    /// # Errors
    /// What the system says.
    pub fn close_pack(&self) -> Result<(), Error> {
        self.chunks.close_pack()
    }

    /// Returns the chunks that manifests name.
    fn named_chunks(&self) -> Result<HashSet<ChunkHash>, Error> {
        let mut named = HashSet::new();
        for source in self.sources()? {
            let Some(manifest) = self.manifest(source)? else { continue };
            let chunks = manifest.generations.iter().flat_map(|generation| &generation.chunks);
            named.extend(chunks.map(|chunk| chunk.hash));
        }
        Ok(named)
    }
}
