//! An in-memory index of all chunks: where each one is, and which ones are similar. Built from the packs.
//!
//! Each closed pack has an index file with the headers of its valid frames. It is derived data: if it is missing, the
//! pack is scanned, and the chunks that manifests name are valid.

mod sketches;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use steno_disk::{Disk, StorePath, read_full, replace_file};

use crate::chunker::Sketch;
use crate::error::Error;
use crate::frame::{Header, Links};
use crate::ids::{ChunkHash, PackId};
use crate::names::VaultFile;
use crate::pack::{self, FIRST_FRAME, PackReader};

use sketches::SketchIndex;

const MAGIC: [u8; 12] = *b"STENOIDX\x01\0\0\0";
const SUM_BYTES: usize = 4;
/// The length of packs is bounded, and so is that of their index files.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The location of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkLocation {
    /// The number of the pack in the index.
    pub(crate) pack: u32,
    pub(crate) offset: u64,
    /// The length of its frame, and its number of links in the highest two bits.
    len_and_links: u32,
}

/// The position of the links. Frames are short enough to leave these bits free.
const LINKS_SHIFT: u32 = 30;

impl ChunkLocation {
    fn new(pack: u32, offset: u64, header: &Header) -> Self {
        let len = u32::try_from(header.frame_len()).expect("frames are bounded");
        Self { pack, offset, len_and_links: len | header.links().to_bits() << LINKS_SHIFT }
    }

    /// Makes a location of which only pack and offset are known.
    pub(crate) fn unknown(pack: u32, offset: u64) -> Self {
        Self { pack, offset, len_and_links: 0 }
    }

    /// Returns the length of the frame.
    pub(crate) fn frame_len(self) -> u32 {
        self.len_and_links & ((1 << LINKS_SHIFT) - 1)
    }

    /// Returns how many other chunks have to be read to decode this one.
    pub(crate) fn links(self) -> Links {
        Links::from_bits(self.len_and_links >> LINKS_SHIFT)
    }
}

/// The first half of a hash. A chunk that is found by it is compared with the whole hash.
type Key = [u8; 16];
type LocationMap = HashMap<Key, ChunkLocation, foldhash::fast::FixedState>;

/// All chunks of the vault.
#[derive(Default)]
pub(crate) struct Index {
    packs: Vec<PackId>,
    locations: LocationMap,
    /// More locations of chunks that are stored more than once. This happens when two processes store the same bytes.
    others: HashMap<Key, Vec<ChunkLocation>, foldhash::fast::FixedState>,
    /// Chunks in packs that other processes write, or wrote when they died. They can be read, but not relied on.
    unsettled: HashMap<Key, Vec<ChunkLocation>, foldhash::fast::FixedState>,
    /// Chunks without a base.
    alone: SketchIndex,
    /// Chunks with one link. They can be the base of a delta with two.
    linked: SketchIndex,
}

impl Index {
    /// Reads the frames of all packs. Packs in `packs` keep their numbers, because another thread may be about to read
    /// from a location.
    pub(crate) fn load(disk: &dyn Disk, packs: Vec<PackId>) -> Result<Self, Error> {
        let mut index = Self { packs, ..Self::default() };
        for pack in pack::list(disk)? {
            let number = index.number_of(pack);
            if let Some(headers) = read_file(disk, pack)? {
                for (offset, header) in &headers {
                    index.insert(number, *offset, header);
                }
            } else if let Some(reader) = PackReader::open(disk, pack)? {
                reader.scan(FIRST_FRAME, |offset, header| {
                    let location = ChunkLocation::new(number, offset, &header);
                    index.unsettled.entry(key(&header.hash)).or_default().push(location);
                })?;
            }
        }
        Ok(index)
    }

    /// Returns the packs by their numbers.
    pub(crate) fn into_packs(self) -> Vec<PackId> {
        self.packs
    }

    /// Returns the pack with a number.
    pub(crate) fn pack(&self, number: u32) -> PackId {
        self.packs[number as usize]
    }

    /// Returns the number of a pack; assigns one if it has none.
    pub(crate) fn number_of(&mut self, pack: PackId) -> u32 {
        let found = self.packs.iter().rposition(|known| *known == pack);
        let number = found.unwrap_or_else(|| {
            self.packs.push(pack);
            self.packs.len() - 1
        });
        u32::try_from(number).expect("there are fewer packs than that")
    }

    /// Finds a reliable location of a chunk.
    pub(crate) fn find(&self, hash: &ChunkHash) -> Option<ChunkLocation> {
        self.locations.get(&key(hash)).copied()
    }

    /// Finds a reliable location of a chunk with fewer than `links` links.
    pub(crate) fn find_below(&self, hash: &ChunkHash, links: Links) -> Option<ChunkLocation> {
        // `find` returns the location with the fewest links.
        self.find(hash).filter(|location| location.links() < links)
    }

    /// Returns all locations of a chunk, unreliable ones too, the best first.
    pub(crate) fn find_all(&self, hash: &ChunkHash) -> Vec<ChunkLocation> {
        let key = key(hash);
        let more = [self.others.get(&key), self.unsettled.get(&key)];
        self.locations.get(&key).into_iter().chain(more.into_iter().flatten().flatten()).copied().collect()
    }

    /// Returns the location of the chunk that shares the most numbers of a sketch and can be a base, and how many it
    /// shares.
    pub(crate) fn find_similar(&self, sketch: &Sketch) -> Option<(ChunkLocation, usize)> {
        let location = |key: &Key| self.locations.get(key).copied();
        let (linked, alone) = (self.linked.find(sketch, location), self.alone.find(sketch, location));
        // Of two equally good ones, `max_by_key` returns the later: the one without a base.
        linked.into_iter().chain(alone).max_by_key(|(_, shared)| *shared)
    }

    pub(crate) fn insert(&mut self, pack: u32, offset: u64, header: &Header) {
        let key = key(&header.hash);
        let mut location = ChunkLocation::new(pack, offset, header);
        match self.locations.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(location);
            }
            Entry::Occupied(entry) if *entry.get() == location => return,
            Entry::Occupied(mut entry) => {
                if location.links() < entry.get().links() {
                    std::mem::swap(entry.get_mut(), &mut location);
                }
                self.others.entry(key).or_default().push(location);
            }
        }
        match header.links() {
            Links::NONE => self.alone.insert(key, header.sketch),
            links if links < Links::MAX => self.linked.insert(key, header.sketch),
            _ => {}
        }
    }

    /// Removes the location of a chunk in one pack, because it was not synced.
    pub(crate) fn remove(&mut self, pack: u32, hash: &ChunkHash) {
        let key = key(hash);
        if let Some(others) = self.others.get_mut(&key) {
            others.retain(|location| location.pack != pack);
        }
        if self.locations.get(&key).is_some_and(|location| location.pack == pack) {
            let others = self.others.entry(key).or_default();
            let best = (0..others.len()).min_by_key(|at| others[*at].links());
            match best.map(|at| others.swap_remove(at)) {
                Some(next) => self.locations.insert(key, next),
                None => self.locations.remove(&key),
            };
        }
    }
}

fn key(hash: &ChunkHash) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&hash.as_bytes()[..16]);
    key
}

/// Writes the index file of a pack.
pub(crate) fn write_file(disk: &dyn Disk, pack: PackId, headers: &[(u64, Header)]) -> Result<(), Error> {
    let path = VaultFile::PackIndex(pack).path();
    let mut bytes = MAGIC.to_vec();
    for (offset, header) in headers {
        bytes.extend_from_slice(&offset.to_le_bytes());
        header.write(&mut bytes);
    }
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    replace_file(disk, &path, &bytes).map_err(Error::io("write", &path))
}

/// Reads the index file of a pack: the headers of its valid frames. `None` when there is no valid file.
pub(crate) fn read_file(disk: &dyn Disk, pack: PackId) -> Result<Option<Vec<(u64, Header)>>, Error> {
    let path = VaultFile::PackIndex(pack).path();
    Ok(read_whole(disk, &path)?.as_deref().and_then(parse))
}

fn parse(bytes: &[u8]) -> Option<Vec<(u64, Header)>> {
    let (content, sum) = bytes.split_last_chunk::<SUM_BYTES>()?;
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut rest = content.strip_prefix(&MAGIC)?;
    let mut headers = Vec::new();
    while !rest.is_empty() {
        let offset = take_number(&mut rest)?;
        let header = Header::read(rest).ok()?;
        rest = &rest[header.header_len()..];
        headers.push((offset, header));
    }
    Some(headers)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

/// Reads a whole file; `None` when it does not exist or is too long.
pub(crate) fn read_whole(disk: &dyn Disk, path: &StorePath) -> Result<Option<Vec<u8>>, Error> {
    let opened = disk.open_read(path).map_err(Error::io("open", path))?;
    let Some(file) = opened else { return Ok(None) };
    let size = file.identity().map_err(Error::io("access", path))?.size_bytes;
    if size > FILE_BYTES_MAX {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(size).expect("it is bounded")];
    let read = read_full(&*file, &mut bytes, 0).map_err(Error::io("read", path))?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Form;

    fn header(name: &[u8], form: Form) -> Header {
        let sketch = crate::chunker::sketch(&name.repeat(100));
        Header { hash: ChunkHash::of(name), form, chunk_len: 9, stored_len: 9, stored_sum: 0, sketch }
    }

    fn delta(base: &[u8], links: u32) -> Form {
        Form::Delta { base: ChunkHash::of(base), links: Links::from_bits(links) }
    }

    #[test]
    fn chunks_are_found_by_hash_and_sketch_until_removed() {
        let mut index = Index::default();
        let pack = index.number_of(PackId::random());
        let plain = header(b"a", Form::Packed);
        let once = header(b"b", delta(b"a", 1));
        let twice = header(b"c", delta(b"b", 2));
        index.insert(pack, 12, &plain);
        index.insert(pack, 130, &once);
        index.insert(pack, 260, &twice);
        assert_eq!(index.find(&plain.hash).map(|location| location.offset), Some(12));
        assert_eq!(
            index.find_similar(&plain.sketch).map(|(location, shared)| (location.offset, shared)),
            Some((12, 6))
        );
        assert_eq!(index.find(&once.hash).map(|location| location.offset), Some(130));
        assert_eq!(index.find_similar(&once.sketch).map(|(location, _)| location.offset), Some(130));
        assert_eq!(index.find(&twice.hash).map(|location| location.offset), Some(260));
        assert_eq!(index.find_similar(&twice.sketch), None, "it cannot be a base");
        index.remove(pack, &plain.hash);
        assert_eq!((index.find(&plain.hash), index.find_similar(&plain.sketch)), (None, None));
    }

    #[test]
    fn location_with_fewest_links_comes_first() {
        let mut index = Index::default();
        let packs = [(); 3].map(|()| index.number_of(PackId::random()));
        let forms = [delta(b"b", 2), delta(b"c", 1), Form::Packed];
        let plain = ChunkHash::of(b"a");
        for (pack, form) in packs.into_iter().zip(forms) {
            assert_eq!(index.find_below(&plain, header(b"a", form).links()), None);
            index.insert(pack, 16, &header(b"a", form));
            index.insert(pack, 16, &header(b"a", form));
            assert_eq!(index.find(&plain).map(|location| location.pack), Some(pack));
        }
        assert_eq!(index.find_all(&plain).len(), 3);
        for at in [2, 1, 0] {
            assert_eq!(index.find(&plain).map(|location| location.pack), Some(packs[at]));
            index.remove(packs[at], &plain);
        }
        assert_eq!(index.find_all(&plain), []);
    }
}
