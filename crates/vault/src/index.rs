//! Where each chunk stands, and which chunks are worth comparing with: held in memory, made from the packs.
//!
//! Beside each pack that is closed lies a file with the headers of all that counts in it. It is derived: where it is
//! missing, the pack is scanned, and what a manifest names counts.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use steno_disk::{Disk, StorePath, read_full, replace_file};

use crate::cut::Sketch;
use crate::error::Error;
use crate::frame::Header;
use crate::ids::{ChunkHash, PackId};
use crate::names::VaultFile;
use crate::pack::{self, FIRST_FRAME, PackReader};

const MAGIC: [u8; 12] = *b"STENOIDX\x01\0\0\0";
const SUM_BYTES: usize = 4;
/// A pack is bounded, and so is what can be said of it.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// How many chunks are compared with new ones: the newest of those that are stored by themselves.
const ALIKE_LEN_MAX: usize = 64 * 1024;

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which pack, as the index numbers them.
    pub(crate) pack: u32,
    pub(crate) offset: u64,
    /// How long its frame is, and in the highest bit whether it is stored as different from another.
    len_and_form: u32,
}

const DIFFERING: u32 = 1 << 31;

impl Place {
    fn new(pack: u32, offset: u64, header: &Header) -> Self {
        let len = u32::try_from(header.frame_len()).expect("frames are bounded");
        Self { pack, offset, len_and_form: if header.is_differing() { len | DIFFERING } else { len } }
    }

    /// Names a place of which nothing else is known.
    pub(crate) fn unknown(pack: u32, offset: u64) -> Self {
        Self { pack, offset, len_and_form: 0 }
    }

    /// Returns how long the frame is.
    pub(crate) fn frame_len(self) -> u32 {
        self.len_and_form & !DIFFERING
    }

    /// Tells whether the chunk is stored by itself, so that others can be stored as different from it.
    pub(crate) fn stands_alone(self) -> bool {
        self.len_and_form & DIFFERING == 0
    }
}

/// Half of a hash: what is found by it is compared with the whole.
type Key = [u8; 16];
type Places = HashMap<Key, Place, foldhash::fast::FixedState>;

/// All chunks of the vault.
#[derive(Default)]
pub(crate) struct Index {
    packs: Vec<PackId>,
    places: Places,
    /// Further places of chunks that stand more than once, as happens when two processes meet the same bytes.
    others: HashMap<Key, Vec<Place>, foldhash::fast::FixedState>,
    /// Chunks in packs that are being written by others, or were when their process died: to be read, and not to be
    /// relied on.
    unsettled: HashMap<Key, Vec<Place>, foldhash::fast::FixedState>,
    /// The newest chunk with each number of a sketch.
    alike: HashMap<u32, Key, foldhash::fast::FixedState>,
    /// Whose numbers are in `alike`, oldest first.
    sketched: VecDeque<(Key, Sketch)>,
}

impl Index {
    /// Reads what the packs hold. Those that were numbered before keep their numbers: who has found a place may be about
    /// to read from it.
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
                    let place = Place::new(number, offset, &header);
                    index.unsettled.entry(key(&header.hash)).or_default().push(place);
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

    /// Returns the number of a pack, which it gets if it has none.
    pub(crate) fn number_of(&mut self, pack: PackId) -> u32 {
        let found = self.packs.iter().rposition(|known| *known == pack);
        let number = found.unwrap_or_else(|| {
            self.packs.push(pack);
            self.packs.len() - 1
        });
        u32::try_from(number).expect("nobody has so many packs")
    }

    /// Finds a chunk that can be relied on.
    pub(crate) fn find(&self, hash: &ChunkHash) -> Option<Place> {
        self.places.get(&key(hash)).copied()
    }

    /// Finds a chunk that can be relied on and is stored by itself.
    pub(crate) fn find_alone(&self, hash: &ChunkHash) -> Option<Place> {
        // What is stored by itself comes first of all places.
        self.find(hash).filter(|place| place.stands_alone())
    }

    /// Returns all places that have the chunk, also those that nobody has vouched for yet, the best first.
    pub(crate) fn find_all(&self, hash: &ChunkHash) -> Vec<Place> {
        let key = key(hash);
        let more = [self.others.get(&key), self.unsettled.get(&key)];
        self.places.get(&key).into_iter().chain(more.into_iter().flatten().flatten()).copied().collect()
    }

    /// Returns the place of the chunk that is stored by itself and shares most of a sketch, and how many numbers it shares.
    pub(crate) fn find_alike(&self, sketch: &Sketch) -> Option<(Place, usize)> {
        let keys: Vec<&Key> = sketch.iter().filter_map(|number| self.alike.get(number)).collect();
        let shared = |key: &Key| keys.iter().filter(|other| **other == key).count();
        let known = keys.iter().filter_map(|key| Some((*self.places.get(*key)?, shared(key))));
        known.max_by_key(|(_, shared)| *shared)
    }

    pub(crate) fn insert(&mut self, pack: u32, offset: u64, header: &Header) {
        let key = key(&header.hash);
        let mut place = Place::new(pack, offset, header);
        match self.places.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(place);
            }
            Entry::Occupied(entry) if *entry.get() == place => return,
            Entry::Occupied(mut entry) => {
                if place.stands_alone() && !entry.get().stands_alone() {
                    std::mem::swap(entry.get_mut(), &mut place);
                }
                self.others.entry(key).or_default().push(place);
            }
        }
        if header.is_differing() {
            return;
        }
        if self.sketched.len() >= ALIKE_LEN_MAX
            && let Some((old, sketch)) = self.sketched.pop_front()
        {
            for number in sketch {
                if self.alike.get(&number) == Some(&old) {
                    self.alike.remove(&number);
                }
            }
        }
        self.sketched.push_back((key, header.sketch));
        self.alike.extend(header.sketch.map(|number| (number, key)));
    }

    /// Forgets a chunk that was not made safe after all, where it stands in one pack.
    pub(crate) fn remove(&mut self, pack: u32, hash: &ChunkHash) {
        let key = key(hash);
        if let Some(others) = self.others.get_mut(&key) {
            others.retain(|place| place.pack != pack);
        }
        if self.places.get(&key).is_some_and(|place| place.pack == pack) {
            let next = self.others.get_mut(&key).and_then(Vec::pop);
            match next {
                Some(next) => self.places.insert(key, next),
                None => self.places.remove(&key),
            };
        }
    }
}

fn key(hash: &ChunkHash) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&hash.as_bytes()[..16]);
    key
}

/// Writes the file beside a pack.
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

/// Reads the file beside a pack: the headers of what counts in it. `None` when there is none that can be relied on.
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

/// Reads a whole file; `None` when it is not there, or too long to be ours.
pub(crate) fn read_whole(disk: &dyn Disk, path: &StorePath) -> Result<Option<Vec<u8>>, Error> {
    let opened = disk.open_read(path).map_err(Error::io("open", path))?;
    let Some(file) = opened else { return Ok(None) };
    let size = file.identity().map_err(Error::io("look at", path))?.size_bytes;
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
        let sketch = crate::cut::sketch(&name.repeat(100));
        Header { hash: ChunkHash::of(name), form, chunk_len: 9, stored_len: 9, stored_sum: 0, sketch }
    }

    #[test]
    fn chunks_are_found_by_hash_and_by_likeness_until_they_are_removed() {
        let mut index = Index::default();
        let pack = index.number_of(PackId::chance());
        let (plain, differing) =
            (header(b"a", Form::Packed), header(b"b", Form::Differing(ChunkHash::of(b"a"))));
        index.insert(pack, 12, &plain);
        index.insert(pack, 130, &differing);
        assert_eq!(index.find(&plain.hash).map(|place| place.offset), Some(12));
        assert_eq!(
            index.find_alike(&plain.sketch).map(|(place, shared)| (place.offset, shared)),
            Some((12, 6))
        );
        assert_eq!(index.find(&differing.hash).map(|place| place.offset), Some(130));
        assert_eq!(index.find_alike(&differing.sketch), None);
        index.remove(pack, &plain.hash);
        assert_eq!((index.find(&plain.hash), index.find_alike(&plain.sketch)), (None, None));
    }

    #[test]
    fn of_several_places_the_one_comes_first_that_others_can_build_on() {
        let mut index = Index::default();
        let packs = [PackId::chance(), PackId::chance()].map(|pack| index.number_of(pack));
        let (plain, differing) =
            (header(b"a", Form::Packed), header(b"a", Form::Differing(ChunkHash::of(b"b"))));
        index.insert(packs[0], 16, &differing);
        assert_eq!(index.find_alone(&plain.hash), None);
        index.insert(packs[1], 16, &plain);
        index.insert(packs[1], 16, &plain);
        assert_eq!(index.find_alone(&plain.hash).map(|place| place.pack), Some(packs[1]));
        assert_eq!(index.find_all(&plain.hash).len(), 2);
        index.remove(packs[1], &plain.hash);
        assert_eq!(index.find(&plain.hash).map(|place| place.pack), Some(packs[0]));
        index.remove(packs[0], &plain.hash);
        assert_eq!(index.find_all(&plain.hash), []);
    }

    #[test]
    fn what_is_compared_with_is_bounded() {
        let mut index = Index::default();
        for number in 0..u32::try_from(ALIKE_LEN_MAX).unwrap() + 10 {
            let hash = ChunkHash::of(&number.to_le_bytes());
            let sketch = std::array::from_fn(|place| number * 8 + u32::try_from(place).unwrap());
            let header =
                Header { hash, form: Form::Packed, chunk_len: 1, stored_len: 1, stored_sum: 0, sketch };
            index.insert(0, number.into(), &header);
        }
        assert_eq!(index.sketched.len(), ALIKE_LEN_MAX);
        assert_eq!(index.alike.len(), ALIKE_LEN_MAX * 6);
        assert_eq!(index.places.len(), ALIKE_LEN_MAX + 10);
    }
}
