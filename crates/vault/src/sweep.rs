//! Deleting chunks that nothing names any more.
//!
//! Packs only grow, so a pack with dead frames is rewritten without them, and removed when the new pack is safe. During
//! a sweep no process relies on a chunk that no manifest names.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use steno_disk::{Disk, sync_dir, sync_file};

use crate::chunks::pack_alone;
use crate::codec::Codec;
use crate::error::Error;
use crate::frame::{Header, Links};
use crate::gate::ExclusiveGate;
use crate::ids::{ChunkHash, PackId};
use crate::index;
use crate::names::{self, VaultFile};
use crate::pack::{FIRST_FRAME, PackReader, PackWriter};
use crate::settle::{Frames, PackList, scan, settle_packs};
use crate::vault::Vault;

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// How many packs were removed, including those that were rewritten.
    pub packs_removed: usize,
    /// How many packs were rewritten without their dead frames.
    pub packs_rewritten: usize,
    /// How many packs are being written by running processes. Dead frames in them, and the bases of their deltas, stay
    /// until the next sweep.
    pub packs_busy: usize,
    /// How many chunks were removed.
    pub chunks_removed: usize,
    /// How many bytes shorter all packs together have become.
    pub bytes_freed: u64,
}

/// The frame of a chunk that is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FrameLocation {
    pack: PackId,
    offset: u64,
    header: Header,
}

struct Sweep<'a> {
    vault: &'a Vault,
    disk: &'a dyn Disk,
    codec: Codec,
    /// The chunks that manifests name or busy packs need.
    kept: HashSet<ChunkHash>,
    locations: HashMap<ChunkHash, FrameLocation>,
    swept: SweepReport,
    bytes_removed: u64,
    bytes_written: u64,
}

/// What a sweep does with a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackTask {
    /// Nothing: it has no dead frames.
    Leave,
    /// Rewrite it without its dead frames.
    Rewrite,
    /// Rewrite it and store chunks again whose base is deleted. The base may be in another pack, which has to stay
    /// until then.
    Rebase,
}

/// Deletes chunks that no manifest names, and files that crashes left.
pub(crate) fn sweep(vault: &Vault, alone: &ExclusiveGate) -> Result<SweepReport, Error> {
    let disk = &**vault.disk();
    let named = vault.named_chunks()?;
    alone.announce()?;
    let packs = PackList::read(disk)?;
    settle_packs(disk, &packs, &named)?;
    vault.chunks().forget_locations();
    let mut sweep = Sweep {
        vault,
        disk,
        codec: Codec::default(),
        kept: named,
        locations: HashMap::new(),
        swept: SweepReport { packs_busy: packs.busy.len(), ..SweepReport::default() },
        bytes_removed: 0,
        bytes_written: 0,
    };
    for pack in &packs.busy {
        // Also if no manifest names them: the process knows them and may start to rely on them.
        sweep.kept.extend(scan(disk, *pack)?.iter().filter_map(|(_, header)| header.base()));
    }
    let closed: Vec<PackId> = packs.settled.into_iter().chain(packs.dead).collect();
    for pack in &closed {
        sweep.choose_locations(*pack)?;
    }
    let mut tasks = Vec::new();
    for pack in &closed {
        tasks.push((*pack, sweep.task(*pack)?));
    }
    sweep.run(&tasks)?;
    vault.chunks().forget_locations();
    clean_up(disk)?;
    sweep.swept.bytes_freed = sweep.bytes_removed.saturating_sub(sweep.bytes_written);
    Ok(sweep.swept)
}

impl Sweep<'_> {
    /// Chooses which frame of each chunk is kept.
    fn choose_locations(&mut self, pack: PackId) -> Result<(), Error> {
        for (offset, header) in self.frames(pack)? {
            if !self.kept.contains(&header.hash) {
                continue;
            }
            let home = FrameLocation { pack, offset, header };
            let is_better = match self.locations.get(&header.hash).copied() {
                Some(other) => self.worth(home)? > self.worth(other)?,
                None => true,
            };
            if is_better {
                self.locations.insert(header.hash, home);
            }
        }
        Ok(())
    }

    /// Rates a frame: an undamaged frame is better, and so is one with fewer links, because it can be the base of
    /// others.
    fn worth(&self, home: FrameLocation) -> Result<(bool, Reverse<Links>), Error> {
        let reader = PackReader::open(self.disk, home.pack)?;
        let is_whole = reader.map_or(Ok(false), |reader| reader.is_whole(home.offset, &home.header))?;
        Ok((is_whole, Reverse(home.header.links())))
    }

    fn frames(&self, pack: PackId) -> Result<Frames, Error> {
        Ok(index::read_file(self.disk, pack)?.unwrap_or_default())
    }

    fn is_live(&self, pack: PackId, offset: u64, header: &Header) -> bool {
        self.locations.get(&header.hash).is_some_and(|home| (home.pack, home.offset) == (pack, offset))
    }

    /// Tells whether the base of a chunk is deleted.
    fn loses_base(&self, header: &Header) -> bool {
        // A chunk that loses its base is stored again without one.
        let stays = |base| self.locations.get(&base).is_some_and(|home| home.header.links() < header.links());
        header.base().is_some_and(|base| !stays(base))
    }

    fn task(&self, pack: PackId) -> Result<PackTask, Error> {
        let Some(reader) = PackReader::open(self.disk, pack)? else { return Ok(PackTask::Leave) };
        let mut live_bytes = FIRST_FRAME;
        let mut task = PackTask::Leave;
        for (offset, header) in self.frames(pack)? {
            if self.is_live(pack, offset, &header) {
                live_bytes += header.frame_len();
                if self.loses_base(&header) {
                    task = PackTask::Rebase;
                }
            }
        }
        let has_dead_bytes = reader.len()? != live_bytes || live_bytes == FIRST_FRAME;
        Ok(if task == PackTask::Leave && has_dead_bytes { PackTask::Rewrite } else { task })
    }

    fn run(&mut self, tasks: &[(PackId, PackTask)]) -> Result<(), Error> {
        let of =
            |wanted: PackTask| tasks.iter().filter(move |(_, task)| *task == wanted).map(|(pack, _)| *pack);
        // Rewrite all of these before any is removed: each may have the base of another one's chunks.
        for pack in of(PackTask::Rebase) {
            self.rewrite(pack)?;
        }
        for pack in of(PackTask::Rebase) {
            self.remove(pack)?;
        }
        // One after the other, so that it needs disk space for one pack only.
        for pack in of(PackTask::Rewrite) {
            self.rewrite(pack)?;
            self.remove(pack)?;
        }
        Ok(())
    }

    /// Copies the live frames of a pack into a new one and syncs it.
    fn rewrite(&mut self, pack: PackId) -> Result<(), Error> {
        let frames = self.frames(pack)?;
        let all = frames.len();
        let live: Frames =
            frames.into_iter().filter(|(offset, header)| self.is_live(pack, *offset, header)).collect();
        self.swept.chunks_removed += all - live.len();
        if live.is_empty() {
            return Ok(());
        }
        let Some(reader) = PackReader::open(self.disk, pack)? else { return Ok(()) };
        let mut writer = PackWriter::create(self.disk)?;
        let new = writer.id;
        let written = self.copy(&live, &reader, &mut writer);
        if written.is_err() {
            // No other process knows it yet.
            self.remove(new).ok();
        }
        let len = written?;
        self.swept.packs_rewritten += 1;
        self.bytes_written += len;
        Ok(())
    }

    fn copy(&mut self, live: &Frames, reader: &PackReader, writer: &mut PackWriter) -> Result<u64, Error> {
        let mut headers = Frames::new();
        for (offset, header) in live {
            let (header, stored) = match self.stored_anew(header) {
                Some(anew) => anew,
                None => (*header, stored_at(reader, *offset, header)?),
            };
            headers.push((writer.add(&header, &stored), header));
            if writer.waiting_len() >= self.vault.limits().waiting_bytes_max() {
                writer.flush()?;
            }
        }
        writer.flush()?;
        let (file, path) = writer.file();
        sync_file(&*file).map_err(Error::not_synced(&path))?;
        index::write_file(self.disk, writer.id, &headers)?;
        Ok(writer.len())
    }

    /// Encodes a chunk without a base if its base is deleted.
    fn stored_anew(&mut self, header: &Header) -> Option<(Header, Vec<u8>)> {
        if !self.loses_base(header) {
            return None;
        }
        let chunk = self.vault.chunks().read(&header.hash, &mut self.codec).ok()?;
        let (form, packed) = pack_alone(&chunk, &mut self.codec);
        let stored = packed.unwrap_or(chunk);
        let stored_len = u32::try_from(stored.len()).expect("chunks are bounded");
        Some((Header { form, stored_len, stored_sum: crc32fast::hash(&stored), ..*header }, stored))
    }

    /// Removes a pack with its index and lock.
    fn remove(&mut self, pack: PackId) -> Result<(), Error> {
        if let Some(reader) = PackReader::open(self.disk, pack)? {
            self.bytes_removed += reader.len()?;
            self.swept.packs_removed += 1;
        }
        // The pack goes after its index: an index without a pack would never be cleaned up.
        for file in [VaultFile::PackIndex(pack), VaultFile::Pack(pack), VaultFile::PackLock(pack)] {
            let path = file.path();
            self.disk.remove(&path).map_err(Error::io("delete", &path))?;
        }
        let dir = names::packs();
        sync_dir(self.disk, &dir).map_err(Error::not_synced(&dir))
    }
}

/// Returns the stored bytes of a chunk unchanged, even if they are damaged: a sweep does not judge damage.
fn stored_at(reader: &PackReader, offset: u64, header: &Header) -> Result<Vec<u8>, Error> {
    let len = header.stored_len as usize;
    let mut stored = reader.bytes(offset + header.header_len() as u64, len)?;
    stored.resize(len, 0);
    Ok(stored)
}

/// Deletes files that crashes left in the vault's directories and no running process uses.
fn clean_up(disk: &dyn Disk) -> Result<(), Error> {
    for dir in [names::root(), names::packs(), names::sources(), names::tails()] {
        let entries = disk.list(&dir).map_err(Error::io("list", &dir))?;
        for path in entries.iter().map(|name| dir.below(name)) {
            let owner = path.temporary_of().unwrap_or_else(|| path.clone());
            let Some(file) = VaultFile::parse(owner.as_str()) else { continue };
            let (lock, whole) = match file {
                VaultFile::Pack(pack) => (Some(VaultFile::PackLock(pack)), None),
                VaultFile::PackIndex(pack) => (Some(VaultFile::PackLock(pack)), Some(VaultFile::Pack(pack))),
                VaultFile::Manifest(source) => (Some(VaultFile::SourceLock(source)), None),
                VaultFile::Tail(source) => {
                    (Some(VaultFile::SourceLock(source)), Some(VaultFile::Manifest(source)))
                }
                // The sweep holds the lock of this file.
                VaultFile::Tombstones => (None, None),
                // Forgetting has deleted it, with all temporary ones.
                VaultFile::Outlines
                | VaultFile::PackLock(_)
                | VaultFile::SourceLock(_)
                | VaultFile::TombstonesLock
                | VaultFile::SweepLock => continue,
            };
            let is_nobodys = path.is_temporary()
                || match whole.map(VaultFile::path) {
                    Some(whole) => disk.identity(&whole).map_err(Error::io("access", &whole))?.is_none(),
                    None => false,
                };
            let is_held = match lock.map(VaultFile::path) {
                Some(lock) => disk.is_locked(&lock).map_err(Error::io("access", &lock))?,
                None => false,
            };
            if is_nobodys && !is_held {
                disk.remove(&path).map_err(Error::io("delete", &path))?;
            }
        }
        // Also when nothing was deleted here: an earlier sweep may have died or failed before its last sync.
        sync_dir(disk, &dir).map_err(Error::not_synced(&dir))?;
    }
    Ok(())
}
