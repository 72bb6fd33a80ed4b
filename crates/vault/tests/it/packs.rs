//! Reads packs as `docs/format/vault.md` describes them, with separate code.

use std::collections::HashMap;

use steno_testkit::sim_disk::SimDisk;
use steno_vault::{ChunkHash, VaultFile};
use zstd::zstd_safe::DCtx;

pub const PREAMBLE_BYTES: usize = 16;
const FIXED_BYTES: usize = 40;
const RAW: u8 = 0;
const DIFFERING: u8 = 2;
/// A delta of a delta.
const DIFFERING_TWICE: u8 = 3;

/// A frame as it stands in a pack.
#[derive(Clone, Debug)]
pub struct Frame {
    pub path: String,
    pub offset: usize,
    pub form: u8,
    pub hash: ChunkHash,
    pub base: Option<ChunkHash>,
    pub chunk_len: usize,
    pub header_len: usize,
    pub stored: Vec<u8>,
}

/// All frames in all packs, also those that no manifest names.
pub fn all_frames(disk: &SimDisk) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (path, bytes) in disk.snapshot() {
        if !matches!(VaultFile::parse(&path), Some(VaultFile::Pack(_))) {
            continue;
        }
        let mut offset = PREAMBLE_BYTES;
        while offset < bytes.len() {
            match frame(&path, &bytes, offset) {
                Some(frame) => {
                    offset += frame.header_len + frame.stored.len();
                    frames.push(frame);
                }
                None => offset += 1,
            }
        }
    }
    frames
}

fn frame(path: &str, bytes: &[u8], offset: usize) -> Option<Frame> {
    let header = bytes.get(offset..)?.strip_prefix(b"SCHK").map(|_| &bytes[offset..])?;
    let number = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let hash = |at: usize| Some(ChunkHash::from_bytes(header.get(at..at + 32)?.try_into().ok()?));
    let form = *header.get(4)?;
    let has_base = [DIFFERING, DIFFERING_TWICE].contains(&form);
    let base = if has_base { Some(hash(FIXED_BYTES + 32)?) } else { None };
    let header_len = FIXED_BYTES + 32 + usize::from(has_base) * 32 + 8;
    if crc32fast::hash(header.get(..header_len - 4)?) != number(header_len - 4)? {
        return None;
    }
    let stored = header.get(header_len..header_len + number(12)? as usize)?.to_vec();
    let (path, hash, chunk_len) = (path.to_owned(), hash(FIXED_BYTES)?, number(8)? as usize);
    Some(Frame { path, offset, form, hash, base, chunk_len, header_len, stored })
}

/// Counts the deltas of deltas.
pub fn deltas_of_deltas(disk: &SimDisk) -> usize {
    all_frames(disk).iter().filter(|frame| frame.form == DIFFERING_TWICE).count()
}

/// All chunks, decoded.
pub fn all_chunks(disk: &SimDisk) -> HashMap<ChunkHash, Vec<u8>> {
    let mut chunks = HashMap::new();
    let mut frames = all_frames(disk);
    // Deltas come after their bases.
    frames.sort_by_key(|frame| frame.form);
    for frame in &frames {
        let mut chunk = Vec::with_capacity(frame.chunk_len);
        let base = frame.base.map(|base| chunks.get(&base).expect("its base is there"));
        if frame.form == RAW {
            chunk.clone_from(&frame.stored);
        } else {
            let mut context = DCtx::create();
            if let Some(base) = base {
                let base: &Vec<u8> = base;
                context.ref_prefix(base).unwrap();
            }
            context.decompress(&mut chunk, &frame.stored).unwrap();
        }
        assert!(ChunkHash::of(&chunk) == frame.hash);
        chunks.insert(frame.hash, chunk);
    }
    chunks
}
