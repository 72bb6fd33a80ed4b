//! What the vault costs, and what it spares. Only headers and manifests are read.

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

/// What the vault costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Each source, in the order of their ids.
    pub sources: Vec<SourceUsage>,
    /// The bytes of all generations of all sources, as agents wrote them.
    pub bytes: u64,
    /// The bytes of all chunks that are needed, each counted once.
    pub chunk_bytes: u64,
    /// What these take in packs, with all headers.
    pub stored_bytes: u64,
    /// What manifests take.
    pub manifest_bytes: u64,
    /// What tails take.
    pub tail_bytes: u64,
    /// What packs have beside what is needed: chunks that nobody names, or that stand twice, and what crashes have left.
    pub garbage_bytes: u64,
    /// How many bytes are stored less because equal chunks are stored once.
    pub saved_by_sharing: u64,
    /// How many bytes chunks are shorter that are stored as what differs from others.
    pub saved_by_likeness: u64,
    /// How many bytes the other chunks are shorter for being compressed.
    pub saved_by_compression: u64,
}

/// What a source costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUsage {
    /// The source.
    pub source: SourceId,
    /// What it is.
    pub info: SourceInfo,
    /// How many generations it has.
    pub generations: usize,
    /// How many bytes these have, those in its tail included.
    pub bytes: u64,
    /// The bytes of chunks that no other source needs.
    pub own_chunk_bytes: u64,
    /// What these take in packs. So much, with manifest and tail, forgetting it would free, or less where others are
    /// stored as different from them.
    pub own_stored_bytes: u64,
    /// What its manifest and its tail take.
    pub own_file_bytes: u64,
}

/// A chunk that somebody needs.
#[derive(Default)]
struct Needed {
    user: User,
    len: u32,
    frame_len: u64,
    saved: Saved,
    base: Option<ChunkHash>,
}

/// Who needs a chunk.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum User {
    /// Only what differs from it.
    #[default]
    Chunks,
    One(usize),
    Several,
}

/// What the form of a chunk spares.
#[derive(Clone, Copy, Default)]
enum Saved {
    /// It is not in any pack.
    #[default]
    Unknown,
    ByLikeness(u64),
    ByCompression(u64),
}

type Chunks = HashMap<ChunkHash, Needed, foldhash::fast::FixedState>;

impl Vault {
    /// Adds up what sources, chunks and files take.
    ///
    /// A source whose manifest cannot be read is left out; [`Vault::verify`] tells of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn usage(&self) -> Result<Usage, Error> {
        let mut usage = Usage::default();
        let mut needed = Chunks::default();
        for source in self.sources()? {
            self.add_source(source, &mut usage, &mut needed)?;
        }
        let (packs, pack_bytes) = self.add_packs(&mut needed)?;
        for chunk in needed.values() {
            usage.chunk_bytes += u64::from(chunk.len);
            usage.stored_bytes += chunk.frame_len;
            match chunk.saved {
                Saved::Unknown => {}
                Saved::ByLikeness(bytes) => usage.saved_by_likeness += bytes,
                Saved::ByCompression(bytes) => usage.saved_by_compression += bytes,
            }
            if let User::One(number) = chunk.user {
                usage.sources[number].own_chunk_bytes += u64::from(chunk.len);
                usage.sources[number].own_stored_bytes += chunk.frame_len;
            }
        }
        usage.stored_bytes += FIRST_FRAME * packs;
        usage.garbage_bytes = pack_bytes.saturating_sub(usage.stored_bytes);
        Ok(usage)
    }

    fn add_source(&self, source: SourceId, usage: &mut Usage, needed: &mut Chunks) -> Result<(), Error> {
        let tail = tail_file::read(&**self.disk(), source)?;
        let manifest = match self.manifest(source) {
            Ok(Some(manifest)) => manifest,
            Ok(None) | Err(Error::Damaged { .. } | Error::TooNew { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let number = usage.sources.len();
        for chunk in manifest.chunks() {
            let user = match needed.get(&chunk.hash) {
                None => User::One(number),
                Some(Needed { user: User::One(known), .. }) if *known == number => User::One(number),
                Some(_) => User::Several,
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
        let size = self.disk().identity(&path).map_err(Error::io("look at", &path))?;
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

    /// Learns what needed chunks take, and what these need in turn; returns how many packs there are and how long.
    fn add_packs(&self, needed: &mut Chunks) -> Result<(u64, u64), Error> {
        let disk = &**self.disk();
        let (mut packs, mut pack_bytes) = (0, 0);
        // Whether any of these is a base is known when all packs are.
        let mut others = Chunks::default();
        for pack in pack::list(disk)? {
            let path = VaultFile::Pack(pack).path();
            let size = disk.identity(&path).map_err(Error::io("look at", &path))?;
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

impl Needed {
    fn take(&mut self, header: &Header) {
        let spared = u64::from(header.chunk_len).saturating_sub(u64::from(header.stored_len));
        self.len = header.chunk_len;
        self.frame_len = header.frame_len();
        self.base = header.base();
        self.saved = match header.form {
            Form::Raw | Form::Packed => Saved::ByCompression(spared),
            Form::Differing { .. } => Saved::ByLikeness(spared),
        };
    }
}
