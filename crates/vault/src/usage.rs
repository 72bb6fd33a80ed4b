//! How much disk space the vault uses, and how much it saves. Reads only headers and manifests.

use std::collections::HashMap;

use crate::error::Error;
use crate::frame::{Form, Header};
use crate::ids::{ChunkHash, SourceId};
use crate::index;
use crate::manifest::SourceInfo;
use crate::names::VaultFile;
use crate::pack::{self, FIRST_FRAME};
use crate::settle::scan;
use crate::tail_file;
use crate::vault::Vault;

/// The disk usage of the vault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The sources, ordered by id.
    pub sources: Vec<SourceUsage>,
    /// The bytes of all generations of all sources, as agents wrote them.
    pub bytes: u64,
    /// The bytes of all chunks that are needed, each counted once.
    pub chunk_bytes: u64,
    /// The space of these in packs, with all headers.
    pub stored_bytes: u64,
    /// The space of manifests.
    pub manifest_bytes: u64,
    /// The space of tails.
    pub tail_bytes: u64,
    /// The rest of the packs: chunks that no manifest names or that are stored twice, and bytes that crashes left.
    pub garbage_bytes: u64,
    /// How many bytes are saved because equal chunks are stored once.
    pub saved_by_sharing: u64,
    /// How many bytes are saved by storing chunks as deltas.
    pub saved_by_delta: u64,
    /// How many bytes are saved by compressing the other chunks.
    pub saved_by_compression: u64,
}

/// The disk usage of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUsage {
    /// The source.
    pub source: SourceId,
    /// What it is.
    pub info: SourceInfo,
    /// How many generations it has.
    pub generations: usize,
    /// How many bytes these have, including the tail.
    pub bytes: u64,
    /// The bytes of chunks that no other source needs.
    pub own_chunk_bytes: u64,
    /// The space of these in packs. Forgetting the source frees this much, and its manifest and tail; or less, where
    /// other chunks are deltas of these.
    pub own_stored_bytes: u64,
    /// The space of its manifest and its tail.
    pub own_file_bytes: u64,
}

/// A chunk that is in use.
#[derive(Default)]
struct NeededChunk {
    user: ChunkUser,
    len: u32,
    frame_len: u64,
    saved: ChunkSaving,
    base: Option<ChunkHash>,
}

/// Which sources use a chunk.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ChunkUser {
    /// None: only deltas of it.
    #[default]
    ChunkTable,
    One(usize),
    Several,
}

/// What is saved by the form of a chunk.
#[derive(Clone, Copy, Default)]
enum ChunkSaving {
    /// The chunk is not in any pack.
    #[default]
    Unknown,
    ByDelta(u64),
    ByCompression(u64),
}

type ChunkTable = HashMap<ChunkHash, NeededChunk, foldhash::fast::FixedState>;

impl Vault {
    /// Returns the disk usage of sources, chunks and files.
    ///
    /// A source whose manifest cannot be read is left out; [`Vault::verify`] reports it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn usage(&self) -> Result<Usage, Error> {
        let mut usage = Usage::default();
        let mut needed = ChunkTable::default();
        for source in self.sources()? {
            self.add_source(source, &mut usage, &mut needed)?;
        }
        let (packs, pack_bytes) = self.add_packs(&mut needed)?;
        for chunk in needed.values() {
            usage.chunk_bytes += u64::from(chunk.len);
            usage.stored_bytes += chunk.frame_len;
            match chunk.saved {
                ChunkSaving::Unknown => {}
                ChunkSaving::ByDelta(bytes) => usage.saved_by_delta += bytes,
                ChunkSaving::ByCompression(bytes) => usage.saved_by_compression += bytes,
            }
            if let ChunkUser::One(number) = chunk.user {
                usage.sources[number].own_chunk_bytes += u64::from(chunk.len);
                usage.sources[number].own_stored_bytes += chunk.frame_len;
            }
        }
        usage.stored_bytes += FIRST_FRAME * packs;
        usage.garbage_bytes = pack_bytes.saturating_sub(usage.stored_bytes);
        Ok(usage)
    }

    fn add_source(&self, source: SourceId, usage: &mut Usage, needed: &mut ChunkTable) -> Result<(), Error> {
        let tail = tail_file::read(&**self.disk(), source)?;
        let manifest = match self.manifest(source) {
            Ok(Some(manifest)) => manifest,
            Ok(None) | Err(Error::Damaged { .. } | Error::TooNew { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let number = usage.sources.len();
        for chunk in manifest.chunks() {
            let user = match needed.get(&chunk.hash) {
                None => ChunkUser::One(number),
                Some(NeededChunk { user: ChunkUser::One(known), .. }) if *known == number => {
                    ChunkUser::One(number)
                }
                Some(_) => ChunkUser::Several,
            };
            let known = needed.entry(chunk.hash).or_default();
            if known.len > 0 {
                usage.saved_by_sharing += u64::from(chunk.len);
            }
            (known.user, known.len) = (user, chunk.len);
        }
        let chunked: u64 = manifest.generations.iter().map(|generation| generation.len).sum();
        let stored = manifest.generations.last().map_or(0, |generation| generation.len);
        let in_tail = tail.bytes_from(manifest.generation_last().unwrap_or_default(), stored).len() as u64;
        let path = VaultFile::Manifest(source).path();
        let size = self.disk().identity(&path).map_err(Error::io("access", &path))?;
        let manifest_bytes = size.map_or(0, |identity| identity.size_bytes);
        usage.bytes += chunked + in_tail;
        usage.manifest_bytes += manifest_bytes;
        usage.tail_bytes += tail.len;
        usage.sources.push(SourceUsage {
            source,
            generations: manifest.generations.len(),
            info: manifest.info,
            bytes: chunked + in_tail,
            own_chunk_bytes: 0,
            own_stored_bytes: 0,
            own_file_bytes: manifest_bytes + tail.len,
        });
        Ok(())
    }

    /// Adds the stored sizes of needed chunks and their bases; returns the number of packs and their total length.
    fn add_packs(&self, needed: &mut ChunkTable) -> Result<(u64, u64), Error> {
        let disk = &**self.disk();
        let (mut packs, mut pack_bytes) = (0, 0);
        // Whether one of these is a base is known after all packs were read.
        let mut others = ChunkTable::default();
        for pack in pack::list(disk)? {
            let path = VaultFile::Pack(pack).path();
            let size = disk.identity(&path).map_err(Error::io("access", &path))?;
            packs += 1;
            pack_bytes += size.map_or(0, |identity| identity.size_bytes);
            let frames = match index::read_file(disk, pack)? {
                Some(frames) => frames,
                None => scan(disk, pack)?,
            };
            for (_, header) in frames {
                let known = match needed.get_mut(&header.hash) {
                    Some(known) => known,
                    None => others.entry(header.hash).or_default(),
                };
                if known.frame_len == 0 {
                    known.take(&header);
                }
            }
        }
        let mut bases: Vec<ChunkHash> = needed.values().filter_map(|chunk| chunk.base).collect();
        while let Some(base) = bases.pop() {
            if let Some(chunk) = others.remove(&base) {
                bases.extend(chunk.base);
                needed.insert(base, chunk);
            }
        }
        Ok((packs, pack_bytes))
    }
}

impl NeededChunk {
    fn take(&mut self, header: &Header) {
        let spared = u64::from(header.chunk_len).saturating_sub(u64::from(header.stored_len));
        self.len = header.chunk_len;
        self.frame_len = header.frame_len();
        self.base = header.base();
        self.saved = match header.form {
            Form::Raw | Form::Packed => ChunkSaving::ByCompression(spared),
            Form::Delta { .. } => ChunkSaving::ByDelta(spared),
        };
    }
}
