//! Deleting chunks that nothing names any more.
//!
//! Packs only grow; so one that holds something dead is written anew without it, and removed when the new one is safe.
//! Nobody relies meanwhile on a chunk that no manifest names.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use steno_disk::{Disk, sync_dir, sync_file};

use crate::chunks::pack_alone;
use crate::codec::Codec;
use crate::error::Error;
use crate::frame::{Header, Links};
use crate::gate::Alone;
use crate::ids::{ChunkHash, PackId};
use crate::index;
use crate::names::{self, VaultFile};
use crate::pack::{FIRST_FRAME, PackReader, PackWriter};
use crate::settle::{Frames, Packs, scan, settle_packs};
use crate::vault::Vault;

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many packs are gone, with those that were written anew.
    pub packs_removed: usize,
    /// How many packs were written anew without what was dead in them.
    pub packs_rewritten: usize,
    /// How many packs running processes write. What is dead in them, and what they differ from, stays until the next
    /// sweep.
    pub packs_busy: usize,
    /// How many chunks are gone.
    pub chunks_removed: usize,
    /// By how many bytes all packs together have become shorter.
    pub bytes_freed: u64,
}

/// Where the one frame of a chunk stands that is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Home {
    pack: PackId,
    offset: u64,
    header: Header,
}

struct Sweep<'a> {
    vault: &'a Vault,
    disk: &'a dyn Disk,
    codec: Codec,
    /// What manifests name, and what busy packs need.
    kept: HashSet<ChunkHash>,
    homes: HashMap<ChunkHash, Home>,
    swept: Swept,
    bytes_removed: u64,
    bytes_written: u64,
}

/// What has to be done with a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Nothing in it is dead.
    Leave,
    /// Something is.
    Rewrite,
    /// It has chunks whose base dies, perhaps in another pack, so that one has to stay until they are stored anew.
    Rebase,
}

/// Deletes chunks that nothing names, and whatever else no process has a use for.
pub(crate) fn sweep(vault: &Vault, alone: &Alone) -> Result<Swept, Error> {
    let disk = &**vault.disk();
    let named = vault.named_chunks()?;
    alone.announce()?;
    let packs = Packs::look(disk)?;
    settle_packs(disk, &packs, &named)?;
    vault.chunks().forget_places();
    let mut sweep = Sweep {
        vault,
        disk,
        codec: Codec::default(),
        kept: named,
        homes: HashMap::new(),
        swept: Swept { packs_busy: packs.busy.len(), ..Swept::default() },
        bytes_removed: 0,
        bytes_written: 0,
    };
    for pack in &packs.busy {
        // Whether named or not: its process knows them, and may come to rely on them.
        sweep.kept.extend(scan(disk, *pack)?.iter().filter_map(|(_, header)| header.base()));
    }
    let closed: Vec<PackId> = packs.settled.into_iter().chain(packs.dead).collect();
    for pack in &closed {
        sweep.find_homes(*pack)?;
    }
    let mut tasks = Vec::new();
    for pack in &closed {
        tasks.push((*pack, sweep.task(*pack)?));
    }
    sweep.run(&tasks)?;
    vault.chunks().forget_places();
    clean_up(disk)?;
    sweep.swept.bytes_freed = sweep.bytes_removed.saturating_sub(sweep.bytes_written);
    Ok(sweep.swept)
}

impl Sweep<'_> {
    /// Chooses which frame of each chunk is kept.
    fn find_homes(&mut self, pack: PackId) -> Result<(), Error> {
        for (offset, header) in self.frames(pack)? {
            if !self.kept.contains(&header.hash) {
                continue;
            }
            let home = Home { pack, offset, header };
            let is_better = match self.homes.get(&header.hash).copied() {
                Some(other) => self.worth(home)? > self.worth(other)?,
                None => true,
            };
            if is_better {
                self.homes.insert(header.hash, home);
            }
        }
        Ok(())
    }

    /// Rates a frame: what is damaged is no good, and what has fewer links can be what others differ from.
    fn worth(&self, home: Home) -> Result<(bool, Reverse<Links>), Error> {
        let reader = PackReader::open(self.disk, home.pack)?;
        let is_whole = reader.map_or(Ok(false), |reader| reader.is_whole(home.offset, &home.header))?;
        Ok((is_whole, Reverse(home.header.links())))
    }

    fn frames(&self, pack: PackId) -> Result<Frames, Error> {
        Ok(index::read_file(self.disk, pack)?.unwrap_or_default())
    }

    fn is_live(&self, pack: PackId, offset: u64, header: &Header) -> bool {
        self.homes.get(&header.hash).is_some_and(|home| (home.pack, home.offset) == (pack, offset))
    }

    /// Tells whether a chunk is stored as different from one that dies.
    fn loses_base(&self, header: &Header) -> bool {
        // One that loses its own base comes to stand by itself.
        let stays = |base| self.homes.get(&base).is_some_and(|home| home.header.links() < header.links());
        header.base().is_some_and(|base| !stays(base))
    }

    fn task(&self, pack: PackId) -> Result<Task, Error> {
        let Some(reader) = PackReader::open(self.disk, pack)? else { return Ok(Task::Leave) };
        let mut live_bytes = FIRST_FRAME;
        let mut task = Task::Leave;
        for (offset, header) in self.frames(pack)? {
            if self.is_live(pack, offset, &header) {
                live_bytes += header.frame_len();
                if self.loses_base(&header) {
                    task = Task::Rebase;
                }
            }
        }
        let has_dead_bytes = reader.len()? != live_bytes || live_bytes == FIRST_FRAME;
        Ok(if task == Task::Leave && has_dead_bytes { Task::Rewrite } else { task })
    }

    fn run(&mut self, tasks: &[(PackId, Task)]) -> Result<(), Error> {
        let of = |wanted: Task| tasks.iter().filter(move |(_, task)| *task == wanted).map(|(pack, _)| *pack);
        // All of these before any is removed: each may hold what another one's chunks are made whole with.
        for pack in of(Task::Rebase) {
            self.rewrite(pack)?;
        }
        for pack in of(Task::Rebase) {
            self.remove(pack)?;
        }
        // One after the other, so that it takes room for one pack only.
        for pack in of(Task::Rewrite) {
            self.rewrite(pack)?;
            self.remove(pack)?;
        }
        Ok(())
    }

    /// Puts what is live in a pack into a new one, safely.
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
            // Nobody knows it yet.
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

    /// Stores a chunk by itself if what it differs from dies.
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

    /// Removes a pack and what belongs to it.
    fn remove(&mut self, pack: PackId) -> Result<(), Error> {
        if let Some(reader) = PackReader::open(self.disk, pack)? {
            self.bytes_removed += reader.len()?;
            self.swept.packs_removed += 1;
        }
        // The pack last: what lies beside it would be nobody's otherwise.
        for file in [VaultFile::PackIndex(pack), VaultFile::Pack(pack), VaultFile::PackLock(pack)] {
            let path = file.path();
            self.disk.remove(&path).map_err(Error::io("delete", &path))?;
        }
        let dir = names::packs();
        sync_dir(self.disk, &dir).map_err(Error::not_synced(&dir))
    }
}

/// Returns what is stored for a chunk as it is, also when it is damaged: what can be done about that is for others to say.
fn stored_at(reader: &PackReader, offset: u64, header: &Header) -> Result<Vec<u8>, Error> {
    let len = header.stored_len as usize;
    let mut stored = reader.bytes(offset + header.header_len() as u64, len)?;
    stored.resize(len, 0);
    Ok(stored)
}

/// Deletes what crashes have left in the vault's directories and no living process is at.
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
                // Whoever sweeps holds its lock.
                VaultFile::Tombstones => (None, None),
                VaultFile::PackLock(_)
                | VaultFile::SourceLock(_)
                | VaultFile::TombstonesLock
                | VaultFile::SweepLock => continue,
            };
            let is_nobodys = path.is_temporary()
                || match whole.map(VaultFile::path) {
                    Some(whole) => disk.identity(&whole).map_err(Error::io("look at", &whole))?.is_none(),
                    None => false,
                };
            let is_held = match lock.map(VaultFile::path) {
                Some(lock) => disk.is_locked(&lock).map_err(Error::io("look at", &lock))?,
                None => false,
            };
            if is_nobodys && !is_held {
                disk.remove(&path).map_err(Error::io("delete", &path))?;
            }
        }
        // Also when nothing was deleted here: whoever swept before may have died, or failed, before its last sync.
        sync_dir(disk, &dir).map_err(Error::not_synced(&dir))?;
    }
    Ok(())
}
