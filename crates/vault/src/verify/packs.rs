//! Checks packs: each frame is decoded, and compared with the chunks that sources name.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use steno_disk::StorePath;

use super::{Finding, Progress, SourceScan, VerifyReport};
use crate::codec::{self, Codec};
use crate::error::Error;
use crate::frame::{Form, Header, Links};
use crate::ids::{ChunkHash, PackId};
use crate::index;
use crate::names::VaultFile;
use crate::pack::{self, FIRST_FRAME, PackReader};
use crate::vault::Vault;

/// How many bases are cached. The chunks of a fork follow one another, and so do their bases.
const BASES_LEN_MAX: usize = 32;

/// What was found out about a chunk.
#[derive(Clone, Copy, Default)]
struct ChunkStatus {
    len: u32,
    /// The length of all its frames, damaged or not.
    frames_len: u64,
    /// Whether one of them is good.
    is_good: bool,
}

/// The pack that frames are from.
struct PackOrigin {
    path: StorePath,
    is_settled: bool,
}

/// A damaged frame.
struct DamagedFrame {
    hash: ChunkHash,
    /// Whether the pack is settled. In an unsettled pack, a frame torn by a crash does not matter if the chunk is also
    /// stored elsewhere.
    is_settled: bool,
    error: Error,
}

/// Everything found in packs.
#[derive(Default)]
pub(super) struct PackScan {
    pub(super) packs: usize,
    pub(super) stored_bytes: u64,
    chunks: HashMap<ChunkHash, ChunkStatus, foldhash::fast::FixedState>,
    /// The base of each chunk, if it has one.
    bases: HashMap<ChunkHash, ChunkHash>,
    damaged: Vec<DamagedFrame>,
    findings: Vec<Finding>,
}

/// Decodes and checks chunks.
#[derive(Default)]
struct ChunkDecoder {
    codec: Codec,
    chunk: Vec<u8>,
    /// Cached bases, by hash and the limit of links they were read with.
    bases: HashMap<(ChunkHash, Links), Vec<u8>>,
    /// The cached bases, oldest first.
    order: VecDeque<(ChunkHash, Links)>,
}

/// The result of checking a frame.
#[derive(Clone, Copy)]
enum FrameOutcome {
    Good,
    Damaged(&'static str),
    /// The frame may be good, but its base is not.
    BaseGone,
}

impl ChunkDecoder {
    fn check(&mut self, vault: &Vault, header: &Header, stored: &[u8]) -> FrameOutcome {
        if crc32fast::hash(stored) != header.stored_sum {
            return FrameOutcome::Damaged("its bytes do not match their checksum");
        }
        let len = header.chunk_len as usize;
        let is_whole = match header.form {
            Form::Raw => ChunkHash::of(stored) == header.hash,
            Form::Packed => {
                self.codec.unpack_into(&mut self.chunk, stored, len)
                    && ChunkHash::of(&self.chunk) == header.hash
            }
            Form::Delta { base, links } => {
                let Some(base) = self.base(vault, base, links) else { return FrameOutcome::BaseGone };
                let chunk = codec::unpack_against(base, stored, len);
                chunk.is_some_and(|chunk| ChunkHash::of(&chunk) == header.hash)
            }
        };
        if is_whole {
            FrameOutcome::Good
        } else {
            FrameOutcome::Damaged("its content does not match its hash")
        }
    }

    fn base(&mut self, vault: &Vault, hash: ChunkHash, links: Links) -> Option<&Vec<u8>> {
        if !self.bases.contains_key(&(hash, links)) {
            let bytes = vault.chunks().read_below(links, &hash, &mut self.codec).ok()?;
            self.bases.insert((hash, links), bytes);
            self.order.push_back((hash, links));
            if self.order.len() > BASES_LEN_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.bases.remove(&oldest);
            }
        }
        self.bases.get(&(hash, links))
    }
}

impl PackScan {
    pub(super) fn read(
        &mut self,
        vault: &Vault,
        named: &SourceScan,
        progress: &mut impl FnMut(Progress),
    ) -> Result<(), Error> {
        let packs = pack::list(&**vault.disk())?;
        let size = |pack: &PackId| vault.disk().identity(&VaultFile::Pack(*pack).path()).ok().flatten();
        let bytes_total = packs.iter().filter_map(size).map(|identity| identity.size_bytes).sum();
        let mut unpacker = ChunkDecoder::default();
        for pack in packs {
            if let Err(error) = self.read_pack(vault, named, pack, &mut unpacker) {
                self.findings.push(Finding { error, affects: Vec::new() });
            }
            progress(Progress { bytes_done: self.stored_bytes, bytes_total });
        }
        Ok(())
    }

    fn read_pack(
        &mut self,
        vault: &Vault,
        named: &SourceScan,
        pack: PackId,
        unpacker: &mut ChunkDecoder,
    ) -> Result<(), Error> {
        let disk = &**vault.disk();
        // A sweep may have removed it meanwhile.
        let Some(reader) = PackReader::open(disk, pack)? else { return Ok(()) };
        self.packs += 1;
        self.stored_bytes += reader.len()?;
        let listed = index::read_file(disk, pack)?;
        let mut unseen: HashMap<u64, Header> = listed.iter().flatten().copied().collect();
        let from = PackOrigin { path: reader.path.clone(), is_settled: listed.is_some() };
        let mut is_needed = false;
        reader.walk(|offset, header, stored| {
            // The index file lists the valid frames, if there is one; the others were left by crashes.
            if unseen.remove(&offset).is_none() && from.is_settled {
                return Ok(());
            }
            is_needed |= named.is_named(&header.hash);
            let outcome = unpacker.check(vault, header, stored);
            self.take(&from, offset, header, outcome);
            Ok(())
        })?;
        // The index file has the hashes of frames whose headers are damaged or cut off.
        let size = reader.len()?;
        let mut unseen: Vec<(u64, Header)> = unseen.into_iter().collect();
        unseen.sort_unstable_by_key(|(offset, _)| *offset);
        for (offset, header) in unseen {
            is_needed |= named.is_named(&header.hash);
            let is_cut = offset + header.frame_len() > size;
            let why = if is_cut { "its pack ends before its frame does" } else { "its header is damaged" };
            self.take(&from, offset, &header, FrameOutcome::Damaged(why));
        }
        if is_needed && !reader.begins_well {
            let (path, why) = (from.path, "its preamble is damaged");
            return Err(Error::Damaged { path, offset: 0, why });
        }
        Ok(())
    }

    fn take(&mut self, from: &PackOrigin, offset: u64, header: &Header, outcome: FrameOutcome) {
        let chunk = self.chunks.entry(header.hash).or_default();
        chunk.len = header.chunk_len;
        chunk.frames_len += header.frame_len();
        match outcome {
            FrameOutcome::Good => chunk.is_good = true,
            FrameOutcome::BaseGone => {}
            FrameOutcome::Damaged(why) => {
                let hash = header.hash;
                let error = Error::DamagedChunk { hash, path: from.path.clone(), offset, why };
                self.damaged.push(DamagedFrame { hash, is_settled: from.is_settled, error });
            }
        }
        if let Some(base) = header.base() {
            self.bases.insert(header.hash, base);
        }
    }

    /// Returns the base of a chunk, and the base of that.
    fn bases_of(&self, hash: &ChunkHash) -> impl Iterator<Item = ChunkHash> {
        let first = self.bases.get(hash).copied();
        let all = std::iter::successors(first, |base| self.bases.get(base).copied());
        // Frames of several processes can form a cycle when taken together.
        all.take(Links::MAX.to_bits() as usize)
    }

    /// Counts the chunks in use, and reports damaged and missing ones with the sources they affect.
    pub(super) fn conclude(self, vault: &Vault, named: &SourceScan, verified: &mut VerifyReport) {
        let mut needed_len = FIRST_FRAME * self.packs as u64;
        // The sources that need an unreadable chunk: they name it, or a delta of it.
        let mut needed_by: HashMap<ChunkHash, BTreeSet<u32>> = HashMap::new();
        let mut bases = HashSet::new();
        for (hash, len) in named.chunks() {
            let known = self.chunks.get(&hash).copied().unwrap_or_default();
            verified.chunks += 1;
            verified.chunk_bytes += u64::from(len);
            needed_len += known.frames_len;
            bases.extend(self.bases_of(&hash).filter(|base| !named.is_named(base)));
            if known.is_good {
                continue;
            }
            needed_by.entry(hash).or_default().extend(named.sources_of(&hash));
            for base in self.bases_of(&hash) {
                needed_by.entry(base).or_default().extend(named.sources_of(&hash));
            }
        }
        for base in &bases {
            let known = self.chunks.get(base).copied().unwrap_or_default();
            verified.chunks += 1;
            verified.chunk_bytes += u64::from(known.len);
            needed_len += known.frames_len;
        }
        verified.garbage_bytes = self.stored_bytes.saturating_sub(needed_len);
        verified.findings.extend(self.findings);
        let len_of =
            |hash: &ChunkHash| self.chunks.get(hash).filter(|chunk| chunk.is_good).map(|chunk| chunk.len);
        verified.findings.extend(named.with_other_lengths(len_of));
        let damaged: HashSet<ChunkHash> = self.damaged.iter().map(|damaged| damaged.hash).collect();
        for DamagedFrame { hash, is_settled, error } in self.damaged {
            let numbers = needed_by.get(&hash).cloned().unwrap_or_default();
            let is_needed = named.is_named(&hash) || bases.contains(&hash);
            if is_needed && (is_settled || !numbers.is_empty()) {
                verified.findings.push(Finding { error, affects: named.affected(numbers) });
            }
        }
        let mut missing: Vec<_> = needed_by.into_iter().filter(|(hash, _)| !damaged.contains(hash)).collect();
        missing.sort_unstable_by_key(|(hash, _)| *hash);
        let mut codec = Codec::default();
        for (hash, numbers) in missing {
            // If only its base is unreadable, that is reported for the base. If it can be read by now, it was being
            // moved.
            let is_known = self.bases.get(&hash).is_some_and(|_| self.chunks.contains_key(&hash));
            if is_known || vault.chunks().read(&hash, &mut codec).is_ok() {
                continue;
            }
            let error = Error::MissingChunk { hash };
            verified.findings.push(Finding { error, affects: named.affected(numbers) });
        }
    }
}
