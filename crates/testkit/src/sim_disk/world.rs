//! The state of the simulated disk: what is durable, what is only in the cache, and what a power cut leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use steno_disk::Identity;

use super::Death;
use crate::dice::Dice;

const SECTOR_BYTES: usize = 512;

/// A call that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A directory is made.
    MakeDir,
    /// A file is made.
    Create,
    /// Bytes are written.
    Write,
    /// A file is cut.
    Truncate,
    /// A file is synced.
    Sync,
    /// A directory is synced.
    SyncDir,
    /// Everything is synced.
    SyncWhole,
    /// A file is renamed.
    Rename,
    /// A file or a directory is deleted.
    Remove,
    /// A file is opened to read. That changes nothing, and is not counted among the calls.
    OpenRead,
}

/// A fault that fires once.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The process dies inside its nth call that changes something, a write perhaps half done.
    DieAt {
        /// Which call, counted from 1 and from now.
        call: u64,
    },
    /// The nth call of a kind fails.
    Fail {
        /// Which kind.
        kind: Call,
        /// Which one, counted from 1 and from now.
        nth: u64,
        /// With which error.
        error: i32,
    },
}

#[derive(Default)]
pub(super) struct Inode {
    /// What the disk has.
    durable: Vec<u8>,
    /// What readers see.
    pub(super) cache: Vec<u8>,
    /// What has been done since the last sync.
    unsynced: Vec<FileChange>,
    links: u64,
}

enum FileChange {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { len: usize },
}

/// A change of names; undone by a power cut unless its directory was synced.
enum NameChange {
    Link { path: String, inode: usize },
    Rename { from: String, to: String },
    Unlink { path: String },
}

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LockState {
    Alone,
    /// Shared by this many.
    Shared(u32),
}

pub(super) struct World {
    pub(super) process: u64,
    pub(super) inodes: Vec<Inode>,
    locks: BTreeMap<usize, LockState>,
    pub(super) room: Option<u64>,
    pub(super) short_writes: Option<usize>,
    pub(super) syncs_whole: bool,
    pub(super) calls: u64,
    pub(super) fired: u64,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameChange>,
    dirs: BTreeSet<String>,
    faults: Vec<Fault>,
    dead: bool,
    dice: Dice,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            process: 1,
            inodes: Vec::new(),
            locks: BTreeMap::new(),
            room: None,
            short_writes: None,
            syncs_whole: true,
            calls: 0,
            fired: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            dirs: BTreeSet::new(),
            faults: Vec::new(),
            dead: false,
            dice: Dice::new(seed),
        }
    }

    pub(super) fn plan(&mut self, fault: Fault) {
        self.faults.push(match fault {
            Fault::DieAt { call } => Fault::DieAt { call: self.calls + call },
            Fault::Fail { .. } => fault,
        });
    }

    pub(super) fn check_alive(&self, process: u64) -> io::Result<()> {
        if self.dead || self.process != process {
            return Err(io::Error::other("the process is dead"));
        }
        Ok(())
    }

    /// Counts a call and triggers a planned fault.
    pub(super) fn begin(&mut self, process: u64, kind: Call) -> io::Result<()> {
        self.check_alive(process)?;
        let changes_something = kind != Call::OpenRead;
        self.calls += u64::from(changes_something);
        let calls = self.calls;
        let mut fired = None;
        self.faults.retain_mut(|fault| match fault {
            Fault::DieAt { call } if *call == calls && changes_something => {
                fired = Some(None);
                false
            }
            Fault::Fail { kind: wanted, nth, error } if *wanted == kind => {
                *nth -= 1;
                if *nth == 0 {
                    fired = Some(Some(*error));
                }
                *nth > 0
            }
            Fault::DieAt { .. } | Fault::Fail { .. } => true,
        });
        match fired {
            None => Ok(()),
            Some(Some(error)) => {
                self.fired += 1;
                Err(io::Error::from_raw_os_error(error))
            }
            Some(None) => {
                self.fired += 1;
                self.dead = true;
                Err(io::Error::other("the process is dead"))
            }
        }
    }

    pub(super) fn write(
        &mut self,
        process: u64,
        inode: usize,
        offset: usize,
        bytes: &[u8],
    ) -> io::Result<usize> {
        if let Err(error) = self.begin(process, Call::Write) {
            if self.dead && self.process == process {
                // Killed inside the call: part of the bytes may be in the file.
                let part = self.dice.below(bytes.len() + 1);
                self.inodes[inode].write(offset, &bytes[..part]);
            }
            return Err(error);
        }
        let mut count = bytes.len();
        if let Some(times) = self.short_writes {
            if self.dice.once_in(times) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if self.dice.once_in(times) {
                count = 1 + self.dice.below(bytes.len());
            }
        }
        if let Some(room) = self.room {
            let used: usize = self.inodes.iter().map(|inode| inode.cache.len()).sum();
            let left = usize::try_from(room).unwrap_or(usize::MAX).saturating_sub(used);
            // Existing bytes are overwritten in place.
            let there = self.inodes[inode].cache.len().saturating_sub(offset);
            if left + there == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            count = count.min(left + there);
        }
        self.inodes[inode].write(offset, &bytes[..count]);
        Ok(count)
    }

    /// Takes a lock; false if it is held in a conflicting way.
    pub(super) fn lock(&mut self, inode: usize, how: LockState) -> bool {
        let held = match (self.locks.get(&inode), how) {
            (None, _) => how,
            (Some(LockState::Shared(count)), LockState::Shared(more)) => LockState::Shared(count + more),
            (Some(_), _) => return false,
        };
        self.locks.insert(inode, held);
        true
    }

    pub(super) fn unlock(&mut self, inode: usize) {
        match self.locks.get_mut(&inode) {
            Some(LockState::Shared(count)) if *count > 1 => *count -= 1,
            _ => {
                self.locks.remove(&inode);
            }
        }
    }

    pub(super) fn is_held_alone(&self, inode: usize) -> bool {
        self.locks.get(&inode) == Some(&LockState::Alone)
    }

    pub(super) fn inode_at(&self, path: &str) -> Option<usize> {
        self.names.get(path).copied()
    }

    pub(super) fn identity(&self, inode: usize) -> Identity {
        let found = &self.inodes[inode];
        Identity {
            device: 1,
            inode: inode as u64,
            links: found.links,
            size_bytes: found.cache.len() as u64,
            changed_ns: 0,
        }
    }

    pub(super) fn make_dir(&mut self, dir: &str) {
        self.dirs.insert(dir.to_owned());
    }

    pub(super) fn create(&mut self, path: &str) -> io::Result<usize> {
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        if !dir.is_empty() && !self.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inode = self.inodes.len();
        self.inodes.push(Inode { links: 1, ..Inode::default() });
        self.change_name(NameChange::Link { path: path.to_owned(), inode });
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        if !self.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(&replaced) = self.names.get(to) {
            self.inodes[replaced].links -= 1;
        }
        self.change_name(NameChange::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) {
        if let Some(&inode) = self.names.get(path) {
            self.inodes[inode].links -= 1;
            self.change_name(NameChange::Unlink { path: path.to_owned() });
        }
    }

    /// Removes a directory. A power cut does not restore it: an empty directory would be harmless.
    pub(super) fn remove_dir(&mut self, dir: &str) -> io::Result<()> {
        if !self.list(dir).is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.dirs.remove(dir);
        Ok(())
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    pub(super) fn sync_dir(&mut self, dir: &str) {
        let (synced, rest) =
            std::mem::take(&mut self.unsynced_names).into_iter().partition(|change| change.dir() == dir);
        let synced: Vec<NameChange> = synced;
        for change in &synced {
            change.apply(&mut self.durable_names);
        }
        self.unsynced_names = rest;
    }

    /// Syncs everything, or fails and forgets what was dirty.
    pub(super) fn sync_whole(&mut self, process: u64) -> io::Result<()> {
        let begun = self.begin(process, Call::SyncWhole);
        if begun.is_err() && self.dead {
            return begun;
        }
        for inode in &mut self.inodes {
            if begun.is_ok() { inode.sync() } else { inode.forget_dirty() }
        }
        if begun.is_ok() {
            for change in std::mem::take(&mut self.unsynced_names) {
                change.apply(&mut self.durable_names);
            }
        }
        begun
    }

    pub(super) fn list(&self, dir: &str) -> Vec<String> {
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let below = self.names.keys().chain(&self.dirs).filter_map(|path| path.strip_prefix(&prefix));
        let names: BTreeSet<_> =
            below.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect();
        names.into_iter().collect()
    }

    pub(super) fn tamper(&mut self, path: &str, bytes: &[u8]) {
        if let Some(dir) = path.rsplit_once('/').map(|(dir, _)| dir) {
            self.make_dir(dir);
        }
        let inode = self.inode_at(path).unwrap_or_else(|| {
            let inode = self.inodes.len();
            self.inodes.push(Inode { links: 1, ..Inode::default() });
            self.names.insert(path.to_owned(), inode);
            self.durable_names.insert(path.to_owned(), inode);
            inode
        });
        self.inodes[inode].truncate(0);
        self.inodes[inode].write(0, bytes);
        self.inodes[inode].sync();
    }

    pub(super) fn delete(&mut self, path: &str) {
        if let Some(inode) = self.names.remove(path) {
            self.inodes[inode].links -= 1;
        }
        self.durable_names.remove(path);
    }

    pub(super) fn snapshot(&self) -> Vec<(String, Vec<u8>)> {
        self.names.iter().map(|(path, inode)| (path.clone(), self.inodes[*inode].cache.clone())).collect()
    }

    pub(super) fn end_process(&mut self, death: Death) {
        self.process += 1;
        self.dead = false;
        self.locks.clear();
        self.faults.clear();
        if death == Death::PowerCut {
            self.cut_power();
        }
    }

    fn cut_power(&mut self) {
        let mut dice = self.dice.clone();
        self.dice.roll();
        // Names are journalled in order: some of the last changes are undone.
        let unsynced = std::mem::take(&mut self.unsynced_names);
        let survive = dice.below(unsynced.len() + 1);
        for change in unsynced.iter().take(survive) {
            change.apply(&mut self.durable_names);
        }
        self.names.clone_from(&self.durable_names);
        for inode in &mut self.inodes {
            inode.cut_power(&mut dice);
            inode.links = 0;
        }
        for inode in self.names.values() {
            self.inodes[*inode].links += 1;
        }
    }
}

impl Inode {
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        put(&mut self.cache, offset, bytes);
        self.unsynced.push(FileChange::Write { offset, bytes: bytes.to_vec() });
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.cache.resize(len, 0);
        self.unsynced.push(FileChange::Truncate { len });
    }

    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                FileChange::Write { offset, bytes } => put(&mut self.durable, offset, &bytes),
                FileChange::Truncate { len } => self.durable.resize(len, 0),
            }
        }
    }

    /// After a failed sync the cache keeps data that the disk does not have, and no longer marks it as dirty.
    pub(super) fn forget_dirty(&mut self) {
        self.unsynced.clear();
    }

    /// Keeps a random part of the unsynced changes: each sector separately, lengths with holes of zeros.
    fn cut_power(&mut self, dice: &mut Dice) {
        let orderly = dice.once_in(2);
        for change in std::mem::take(&mut self.unsynced) {
            if orderly && dice.once_in(3) {
                break;
            }
            match change {
                FileChange::Truncate { len } => {
                    if orderly || dice.once_in(2) {
                        self.durable.resize(len, 0);
                    }
                }
                FileChange::Write { offset, bytes } => {
                    for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                        if dice.once_in(2) {
                            let torn =
                                if dice.once_in(4) { dice.below(sector.len() + 1) } else { sector.len() };
                            put(&mut self.durable, offset + index * SECTOR_BYTES, &sector[..torn]);
                        } else if orderly {
                            break;
                        }
                    }
                }
            }
        }
        self.cache.clone_from(&self.durable);
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Link { path, inode } => {
                names.insert(path.clone(), *inode);
            }
            Self::Rename { from, to } => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Self::Unlink { path } => {
                names.remove(path);
            }
        }
    }

    fn dir(&self) -> &str {
        let (Self::Link { path, .. } | Self::Rename { to: path, .. } | Self::Unlink { path }) = self;
        path.rsplit_once('/').map_or("", |(dir, _)| dir)
    }
}

/// Writes bytes at an offset; a gap before the offset becomes zeros.
fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}
