//! What a process knows about chunks: the index, the pack that it writes, the packs that it has open.

use std::collections::HashMap;
use std::sync::Arc;

use steno_disk::{Disk, DiskFile, StorePath};

use super::{ChunkLocation, Index};
use crate::error::Error;
use crate::frame::Header;
use crate::ids::PackId;
use crate::index;
use crate::limits::Limits;
use crate::names::VaultFile;
use crate::pack::{PackReader, PackWriter};

/// How many packs are kept open for reading.
const READERS_MAX: usize = 16;

/// How often chunks were lost before they were synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossCount(u64);

/// The result of adding a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddOutcome {
    /// The chunk is stored, by this call or by another thread.
    Stored,
    /// Its base was lost meanwhile.
    BaseGone,
}

#[derive(Default)]
pub(super) struct ChunkState {
    index: Option<Index>,
    /// The numbers of packs while there is no index.
    packs: Vec<PackId>,
    writer: Option<OpenPack>,
    readers: HashMap<PackId, Arc<PackReader>>,
    pub(super) losses: LossCount,
    /// The pack that was given up last.
    lost: Option<StorePath>,
}

/// The pack that this process writes.
struct OpenPack {
    pack: PackWriter,
    /// Its frames, for the index file.
    headers: Vec<(u64, Header)>,
    /// How many of these are not yet synced.
    unsynced: usize,
}

impl ChunkState {
    pub(super) fn forget_locations(&mut self) {
        if let Some(index) = self.index.take() {
            self.packs = index.into_packs();
        }
        self.readers.clear();
    }

    /// Returns the index; loads it if necessary.
    pub(super) fn index(&mut self, disk: &dyn Disk) -> Result<&mut Index, Error> {
        let index = match self.index.take() {
            Some(index) => index,
            None => self.load(disk)?,
        };
        Ok(self.index.insert(index))
    }

    /// Loads the index, including the chunks of our own pack.
    fn load(&self, disk: &dyn Disk) -> Result<Index, Error> {
        let mut index = Index::load(disk, self.packs.clone())?;
        if let Some(writer) = &self.writer {
            let number = index.number_of(writer.pack.id);
            for (offset, header) in &writer.headers {
                index.insert(number, *offset, header);
            }
        }
        Ok(index)
    }

    /// Returns the pack with a number.
    pub(super) fn pack(&self, number: u32) -> PackId {
        self.index.as_ref().map_or_else(|| self.packs[number as usize], |index| index.pack(number))
    }

    /// Opens a pack for reading; `None` when it was removed.
    pub(super) fn reader(&mut self, disk: &dyn Disk, number: u32) -> Result<Option<Arc<PackReader>>, Error> {
        let pack = self.pack(number);
        if let Some(reader) = self.readers.get(&pack) {
            return Ok(Some(Arc::clone(reader)));
        }
        let Some(reader) = PackReader::open(disk, pack)?.map(Arc::new) else { return Ok(None) };
        if self.readers.len() >= READERS_MAX {
            self.readers.clear();
        }
        self.readers.insert(pack, Arc::clone(&reader));
        Ok(Some(reader))
    }

    /// Returns up to `len` bytes of our own pack that are not yet written.
    pub(super) fn waiting_at(&self, location: ChunkLocation, len: usize) -> Option<Vec<u8>> {
        let writer = self.writer.as_ref().filter(|writer| writer.pack.id == self.pack(location.pack))?;
        writer.pack.waiting_at(location.offset, len)
    }

    /// Returns the length of our own pack.
    pub(super) fn pack_len(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.pack.len())
    }

    /// Adds a chunk to our own pack.
    pub(super) fn add(
        &mut self,
        disk: &dyn Disk,
        limits: &Limits,
        header: &Header,
        stored: &[u8],
    ) -> Result<AddOutcome, Error> {
        let index = self.index(disk)?;
        if index.find(&header.hash).is_some() {
            return Ok(AddOutcome::Stored);
        }
        if header.base().is_some_and(|base| index.find_below(&base, header.links()).is_none()) {
            return Ok(AddOutcome::BaseGone);
        }
        if self.writer.as_ref().is_some_and(|writer| writer.pack.waiting_len() >= limits.waiting_bytes_max())
        {
            // If this fails, the buffered chunks are lost, and perhaps the base of this chunk with them.
            self.flush()?;
        }
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => OpenPack { pack: PackWriter::create(disk)?, headers: Vec::new(), unsynced: 0 },
        };
        let offset = writer.pack.add(header, stored);
        writer.headers.push((offset, *header));
        writer.unsynced += 1;
        let pack = writer.pack.id;
        self.writer = Some(writer);
        let index = self.index(disk)?;
        let number = index.number_of(pack);
        index.insert(number, offset, header);
        Ok(AddOutcome::Stored)
    }

    /// Writes the buffered frames; gives up the pack when that fails permanently.
    fn flush(&mut self) -> Result<(), Error> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let flushed = writer.pack.flush();
        if flushed.as_ref().is_err_and(|error| !error.changed_nothing()) {
            let pack = writer.pack.id;
            self.give_up_pack(pack);
        }
        flushed
    }

    /// Writes the buffered frames; returns the file to sync, and how many chunks of the pack are safe after that.
    #[expect(clippy::type_complexity, reason = "taken apart on the spot")]
    pub(super) fn flush_to_sync(
        &mut self,
    ) -> Result<Option<(PackId, Arc<dyn DiskFile>, StorePath, usize)>, Error> {
        if self.writer.as_ref().is_none_or(|writer| writer.unsynced == 0) {
            return Ok(None);
        }
        self.flush()?;
        Ok(self.writer.as_ref().map(|writer| {
            let (file, path) = writer.pack.file();
            (writer.pack.id, file, path, writer.headers.len())
        }))
    }

    /// Records that the first `count` chunks of a pack are safe.
    pub(super) fn settle(&mut self, pack: PackId, count: usize) {
        if let Some(writer) = self.writer.as_mut().filter(|writer| writer.pack.id == pack) {
            writer.unsynced = writer.unsynced.min(writer.headers.len() - count);
        }
    }

    /// Fails when chunks were lost since then: a manifest must not name them.
    pub(super) fn check(&self, since: LossCount) -> Result<(), Error> {
        match &self.lost {
            Some(path) if self.losses != since => {
                let cause = std::io::Error::other("a shared sync failed");
                Err(Error::not_synced(path)(cause))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Gives up a pack whose sync failed: its unsynced chunks are no longer valid.
    pub(super) fn give_up_pack(&mut self, pack: PackId) {
        let Some(writer) = self.writer.take_if(|writer| writer.pack.id == pack) else { return };
        self.losses.0 += 1;
        self.lost = Some(VaultFile::Pack(pack).path());
        let synced = writer.headers.len() - writer.unsynced;
        if let Some(index) = &mut self.index {
            let number = index.number_of(pack);
            for (_, header) in &writer.headers[synced..] {
                index.remove(number, &header.hash);
            }
        }
    }

    /// Gives up our own pack.
    pub(super) fn give_up_own_pack(&mut self) {
        if let Some(pack) = self.writer.as_ref().map(|writer| writer.pack.id) {
            self.give_up_pack(pack);
        }
    }

    /// Closes our own pack unless it has unsynced chunks; returns whether no pack is open any more.
    pub(super) fn close_pack(&mut self, disk: &dyn Disk) -> Result<bool, Error> {
        let Some(writer) = self.writer.take_if(|writer| writer.unsynced == 0) else {
            return Ok(self.writer.is_none());
        };
        index::write_file(disk, writer.pack.id, &writer.headers)?;
        Ok(true)
    }
}
