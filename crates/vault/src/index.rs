//! Where each chunk stands, and which chunks are worth comparing with: held in memory, made from the packs.
//!
//! Beside each pack that is closed lies a file with the headers of all that counts in it. It is derived: where it is
//! missing, the pack is scanned, and what a manifest names counts.

use std::collections::{HashMap, VecDeque};

use steno_disk::{Disk, StorePath, read_full, replace_file};

use crate::cut::Sketch;
use crate::error::Error;
use crate::frame::{Form, Header};
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
    pub(crate) frame_len: u32,
}

/// Half of a hash: what is found by it is compared with the whole.
type Key = [u8; 16];

/// All chunks of the vault.
#[derive(Default)]
pub(crate) struct Index {
    packs: Vec<PackId>,
    places: HashMap<Key, Place, foldhash::fast::FixedState>,
    /// Chunks in packs that are being written by others, or were when their process died: to be read, and not to be
    /// relied on.
    unsettled: HashMap<Key, Place, foldhash::fast::FixedState>,
    /// The newest chunk with each number of a sketch.
    alike: HashMap<u32, Key, foldhash::fast::FixedState>,
    /// Whose numbers are in `alike`, oldest first.
    sketched: VecDeque<(Key, Sketch)>,
}

impl Index {
    /// Reads what the packs hold.
    pub(crate) fn load(disk: &dyn Disk) -> Result<Self, Error> {
        let mut index = Self::default();
        for pack in pack::list(disk)? {
            let number = index.number_of(pack);
            if let Some(headers) = read_file(disk, pack)? {
                for (offset, header) in &headers {
                    index.insert(number, *offset, header);
                }
            } else if let Some(reader) = PackReader::open(disk, pack)? {
                reader.scan(FIRST_FRAME, |offset, header| index.insert_unsettled(number, offset, &header))?;
            }
        }
        Ok(index)
    }

    /// Returns the pack with a number.
    pub(crate) fn pack(&self, number: u32) -> PackId {
        self.packs[number as usize]
    }

    /// Returns the number of a pack, which it gets if it has none.
    pub(crate) fn number_of(&mut self, pack: PackId) -> u32 {
        let found = self.packs.iter().position(|known| *known == pack);
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

    /// Finds a chunk that nobody has vouched for yet.
    pub(crate) fn find_unsettled(&self, hash: &ChunkHash) -> Option<Place> {
        self.unsettled.get(&key(hash)).copied()
    }

    /// Returns the place of a chunk that is stored by itself and shares part of a sketch.
    pub(crate) fn find_alike(&self, sketch: &Sketch) -> Option<Place> {
        sketch.iter().find_map(|number| self.places.get(self.alike.get(number)?)).copied()
    }

    fn insert_unsettled(&mut self, pack: u32, offset: u64, header: &Header) {
        self.unsettled.insert(key(&header.hash), place(pack, offset, header));
    }

    pub(crate) fn insert(&mut self, pack: u32, offset: u64, header: &Header) {
        let key = key(&header.hash);
        self.places.insert(key, place(pack, offset, header));
        if matches!(header.form, Form::Differing(_)) {
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

    /// Forgets a chunk that was not made safe after all.
    pub(crate) fn remove(&mut self, hash: &ChunkHash) {
        self.places.remove(&key(hash));
    }
}

fn place(pack: u32, offset: u64, header: &Header) -> Place {
    let frame_len = u32::try_from(header.frame_len()).expect("frames are bounded");
    Place { pack, offset, frame_len }
}

fn key(hash: &ChunkHash) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&hash.as_bytes()[..16]);
    key
}

/// Returns the packs that are not being written and have no file beside them: those of processes that died.
pub(crate) fn unsettled(disk: &dyn Disk) -> Result<Vec<PackId>, Error> {
    let mut found = Vec::new();
    for pack in pack::list(disk)? {
        let lock_path = VaultFile::PackLock(pack).path();
        // First the lock, then the file: whoever closes a pack does it the other way round.
        let is_open = disk.is_locked(&lock_path).map_err(Error::io("look at", &lock_path))?;
        if !is_open && read_file(disk, pack)?.is_none() {
            found.push(pack);
        }
    }
    Ok(found)
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
        assert_eq!(index.find_alike(&plain.sketch).map(|place| place.offset), Some(12));
        assert_eq!(index.find(&differing.hash).map(|place| place.offset), Some(130));
        assert_eq!(index.find_alike(&differing.sketch), None);
        index.remove(&plain.hash);
        assert_eq!((index.find(&plain.hash), index.find_alike(&plain.sketch)), (None, None));
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
