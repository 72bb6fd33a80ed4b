//! Settling packs whose process died: decides which of their frames are valid, and writes the index file beside each.
//!
//! Only the chunks that manifests name, and the bases of these, were synced for certain. Settling requires that no
//! process relies on a chunk that no manifest names.

use std::collections::{HashMap, HashSet};

use steno_disk::{Disk, overwrite_all, sync_file};

use crate::error::Error;
use crate::frame::{Header, Links};
use crate::ids::{ChunkHash, PackId};
use crate::index;
use crate::names::VaultFile;
use crate::pack::{self, FIRST_FRAME, PackReader};

/// The frames of a pack, with their offsets.
pub(crate) type Frames = Vec<(u64, Header)>;

/// The packs of a vault, by state.
#[derive(Default)]
pub(crate) struct PackList {
    /// Closed, with an index file.
    pub(crate) settled: Vec<PackId>,
    /// Being written by a running process.
    pub(crate) busy: Vec<PackId>,
    /// Left by processes that died.
    pub(crate) dead: Vec<PackId>,
}

impl PackList {
    pub(crate) fn read(disk: &dyn Disk) -> Result<Self, Error> {
        let mut packs = Self::default();
        for pack in pack::list(disk)? {
            let lock_path = VaultFile::PackLock(pack).path();
            // The lock first, then the file: closing a pack does it in the opposite order.
            let is_open = disk.is_locked(&lock_path).map_err(Error::io("access", &lock_path))?;
            if is_open {
                packs.busy.push(pack);
            } else if index::read_file(disk, pack)?.is_some() {
                packs.settled.push(pack);
            } else {
                packs.dead.push(pack);
            }
        }
        Ok(packs)
    }
}

/// Reads the headers of all frames in a pack.
pub(crate) fn scan(disk: &dyn Disk, pack: PackId) -> Result<Frames, Error> {
    let mut frames = Frames::new();
    if let Some(reader) = PackReader::open(disk, pack)? {
        reader.scan(FIRST_FRAME, |offset, header| frames.push((offset, header)))?;
    }
    Ok(frames)
}

/// Writes the index files of packs whose process died; returns how many there were.
pub(crate) fn settle_packs(
    disk: &dyn Disk,
    packs: &PackList,
    named: &HashSet<ChunkHash>,
) -> Result<usize, Error> {
    if packs.dead.is_empty() {
        return Ok(0);
    }
    let mut settling =
        PackSettler { named, counting: named.clone(), settled: HashMap::new(), unsettled: HashMap::new() };
    let mut deltas = Vec::new();
    for pack in &packs.settled {
        for (_, header) in index::read_file(disk, *pack)?.unwrap_or_default() {
            deltas.extend(header.base().map(|base| (header.hash, base)));
            settling.add_settled(&header);
        }
    }
    for pack in &packs.busy {
        for (_, header) in scan(disk, *pack)? {
            settling.counting.extend(header.base());
            *settling.unsettled.entry(header.hash).or_default() += 1;
        }
    }
    let mut dead = Vec::new();
    for pack in &packs.dead {
        let frames = scan(disk, *pack)?;
        for (_, header) in &frames {
            deltas.extend(header.base().map(|base| (header.hash, base)));
            *settling.unsettled.entry(header.hash).or_default() += 1;
        }
        dead.push((*pack, frames));
    }
    settling.count_bases(&deltas);
    for (pack, frames) in dead {
        settling.settle(disk, pack, frames)?;
    }
    Ok(packs.dead.len())
}

struct PackSettler<'a> {
    named: &'a HashSet<ChunkHash>,
    /// The chunks that manifests name, and the bases of these.
    counting: HashSet<ChunkHash>,
    /// The chunks of settled packs, each with its smallest number of links.
    settled: HashMap<ChunkHash, Links>,
    /// How many frames a chunk has in the other packs.
    unsettled: HashMap<ChunkHash, usize>,
}

impl PackSettler<'_> {
    /// Adds the bases of all counting chunks, and the bases of those.
    fn count_bases(&mut self, deltas: &[(ChunkHash, ChunkHash)]) {
        let mut len = 0;
        while len < self.counting.len() {
            len = self.counting.len();
            for (hash, base) in deltas {
                if self.counting.contains(hash) {
                    self.counting.insert(*base);
                }
            }
        }
    }

    fn add_settled(&mut self, header: &Header) {
        let fewest = self.settled.entry(header.hash).or_insert(Links::MAX);
        *fewest = header.links().min(*fewest);
    }

    /// Tells whether a settled pack has the chunk with as few links.
    fn is_superfluous(&self, header: &Header) -> bool {
        self.settled.get(&header.hash).is_some_and(|fewest| *fewest <= header.links())
    }

    fn settle(&mut self, disk: &dyn Disk, pack: PackId, frames: Frames) -> Result<(), Error> {
        let mut kept = Frames::new();
        let mut is_doubtful = false;
        for (offset, header) in frames {
            let places = self.unsettled.get(&header.hash).copied().unwrap_or_default();
            self.unsettled.insert(header.hash, places.saturating_sub(1));
            if !self.counting.contains(&header.hash) || self.is_superfluous(&header) {
                continue;
            }
            let stands_elsewhere = places > 1 || self.settled.contains_key(&header.hash);
            if stands_elsewhere || !self.named.contains(&header.hash) {
                // A manifest may name this chunk, or a delta of it, because of another frame. This frame may never have
                // been synced and may be incomplete.
                let reader = PackReader::open(disk, pack)?;
                if !reader.map_or(Ok(false), |reader| reader.is_whole(offset, &header))? {
                    continue;
                }
                is_doubtful = true;
            }
            kept.push((offset, header));
        }
        if is_doubtful {
            write_over_itself(disk, pack, &kept)?;
        }
        index::write_file(disk, pack, &kept)?;
        for (_, header) in &kept {
            self.add_settled(header);
        }
        Ok(())
    }
}

/// Writes frames again at their offsets and syncs them. After a failed sync the page cache may show bytes that never
/// reached the disk, and a second sync alone would not write them.
fn write_over_itself(disk: &dyn Disk, pack: PackId, frames: &Frames) -> Result<(), Error> {
    let path = VaultFile::Pack(pack).path();
    let Some(reader) = PackReader::open(disk, pack)? else { return Ok(()) };
    let file = disk.open_overwrite(&path).map_err(Error::io("open", &path))?;
    for (offset, header) in frames {
        let len = usize::try_from(header.frame_len()).expect("frames are bounded");
        let frame = reader.bytes(*offset, len)?;
        overwrite_all(&*file, &frame, *offset).map_err(Error::io("write", &path))?;
    }
    sync_file(&*file).map_err(Error::not_synced(&path))
}
