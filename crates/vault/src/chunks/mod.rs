//! All chunks: stored once, found by hash, compressed against others, read back and checked.

mod delta;
mod state;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steno_disk::{Disk, DiskFile, sync_file};

use crate::chunker::sketch;
use crate::codec::{self, Codec};
use crate::error::Error;
use crate::frame::{Form, Header, Links};
use crate::ids::ChunkHash;
use crate::index::{ChunkLocation, Index};
use crate::limits::Limits;
use crate::manifest::ChunkRef;
use crate::names::VaultFile;
use crate::pack::check_in_place;

use delta::Encoding;
use state::{AddOutcome, ChunkState};

pub(crate) use delta::{BaseHint, pack_alone};
pub(crate) use state::LossCount;

/// How often the index is reloaded before a chunk counts as missing. A sweep may move packs while a process reads.
const LEARN_TRIES: usize = 2;

/// The chunks of a vault, as one process sees them.
pub(crate) struct ChunkStore {
    disk: Arc<dyn Disk>,
    limits: Limits,
    state: Mutex<ChunkState>,
    /// Held during a sync and while a pack is closed. When two threads sync one file at once and that fails, the system
    /// may report it to only one of them.
    syncing: Mutex<()>,
}

impl ChunkStore {
    pub(crate) fn new(disk: Arc<dyn Disk>, limits: Limits) -> Self {
        Self { disk, limits, state: Mutex::default(), syncing: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, ChunkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn syncing(&self) -> MutexGuard<'_, ()> {
        self.syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the index.
    pub(crate) fn forget_locations(&self) {
        self.state().forget_locations();
    }

    /// Returns how often chunks were lost before they were synced.
    pub(crate) fn losses(&self) -> LossCount {
        self.state().losses
    }

    /// Stores a chunk unless it is there. It is not safe before [`ChunkStore::sync`].
    pub(crate) fn put(
        &self,
        chunk: &[u8],
        hint: &mut BaseHint,
        codec: &mut Codec,
    ) -> Result<ChunkRef, Error> {
        let hash = ChunkHash::of(chunk);
        let len = u32::try_from(chunk.len()).expect("chunks are bounded");
        if let Some(location) = self.find(&hash)? {
            *hint = self.after(location);
            return Ok(ChunkRef { hash, len });
        }
        let sketch = sketch(chunk);
        let Encoding { mut form, mut packed, next } = self.choose(chunk, &sketch, *hint, codec)?;
        *hint = next;
        loop {
            let stored = packed.as_deref().unwrap_or(chunk);
            let stored_len = u32::try_from(stored.len()).expect("chunks are bounded");
            let stored_sum = crc32fast::hash(stored);
            let header = Header { hash, form, chunk_len: len, stored_len, stored_sum, sketch };
            match self.state().add(&*self.disk, &self.limits, &header, stored)? {
                AddOutcome::Stored => break,
                AddOutcome::BaseGone => (form, packed) = pack_alone(chunk, codec),
            }
        }
        self.end_long_pack()?;
        Ok(ChunkRef { hash, len })
    }

    /// Syncs everything that was put since `since` was read, so that it survives a power cut.
    ///
    /// # Errors
    /// After [`Error::NoRoom`] the call can be repeated. After any other failure, of this sync or of another one since
    /// then, the chunks have to be put again.
    pub(crate) fn sync(&self, since: LossCount) -> Result<(), Error> {
        let syncing = self.syncing();
        self.sync_pack(&syncing)?;
        self.state().check(since)
    }

    /// Syncs what was put. Not under the lock of the state, so that other threads can store chunks meanwhile.
    fn sync_pack(&self, _syncing: &MutexGuard<'_, ()>) -> Result<(), Error> {
        let Some((pack, file, path, count)) = self.state().flush_to_sync()? else { return Ok(()) };
        let synced = sync_file(&*file)
            .map_err(Error::not_synced(&path))
            .and_then(|()| check_in_place(&*self.disk, &path, &*file));
        let mut state = self.state();
        match &synced {
            Ok(()) => state.settle(pack, count),
            Err(_) => state.give_up_pack(pack),
        }
        synced
    }

    /// Syncs everything that was put, together with other files: `sync` gets the file of the pack, if it has to be
    /// synced.
    ///
    /// # Errors
    /// As [`ChunkStore::sync`].
    pub(crate) fn sync_with(
        &self,
        sync: impl FnOnce(Option<Arc<dyn DiskFile>>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let _syncing = self.syncing();
        let Some((pack, file, path, count)) = self.state().flush_to_sync()? else {
            return sync(None).map_err(Error::not_synced(&crate::names::packs()));
        };
        let synced = sync(Some(Arc::clone(&file)))
            .map_err(Error::not_synced(&path))
            .and_then(|()| check_in_place(&*self.disk, &path, &*file));
        let mut state = self.state();
        match &synced {
            Ok(()) => state.settle(pack, count),
            Err(_) => state.give_up_pack(pack),
        }
        synced
    }

    /// Fails if chunks that were put since `since` was read were lost.
    pub(crate) fn check(&self, since: LossCount) -> Result<(), Error> {
        self.state().check(since)
    }

    /// Gives up the pack that is being written: it is unknown what of it is on the disk.
    pub(crate) fn give_up_pack(&self) {
        self.state().give_up_own_pack();
    }

    /// Closes the pack that is being written, so that other processes can rely on it.
    pub(crate) fn close_pack(&self) -> Result<(), Error> {
        let syncing = self.syncing();
        loop {
            self.sync_pack(&syncing)?;
            // Other threads may have added chunks meanwhile.
            if self.state().close_pack(&*self.disk)? {
                return Ok(());
            }
        }
    }

    fn end_long_pack(&self) -> Result<(), Error> {
        let is_long = |state: &ChunkState| state.pack_len() >= self.limits.pack_bytes_max;
        // One of the threads that see this is enough, and the others do not wait.
        let Ok(syncing) = self.syncing.try_lock() else { return Ok(()) };
        if !is_long(&self.state()) {
            return Ok(());
        }
        self.sync_pack(&syncing)?;
        self.state().close_pack(&*self.disk)?;
        Ok(())
    }

    /// Reads a chunk and checks it.
    pub(crate) fn read(&self, hash: &ChunkHash, codec: &mut Codec) -> Result<Vec<u8>, Error> {
        self.read_below(Links::ANY, hash, codec)
    }

    /// Reads a chunk with fewer than `links` links and checks it.
    pub(crate) fn read_below(
        &self,
        links: Links,
        hash: &ChunkHash,
        codec: &mut Codec,
    ) -> Result<Vec<u8>, Error> {
        let mut tries = 0;
        loop {
            match self.read_known(links, hash, codec) {
                Err(Error::MissingChunk { .. }) if tries < LEARN_TRIES => {
                    // Another process may have begun a pack or moved chunks since the index was loaded.
                    tries += 1;
                    self.forget_locations();
                }
                read => return read,
            }
        }
    }

    /// Reads a chunk from the first known location with fewer than `links` links.
    fn read_known(&self, links: Links, hash: &ChunkHash, codec: &mut Codec) -> Result<Vec<u8>, Error> {
        let mut failed = Error::MissingChunk { hash: *hash };
        let locations = self.state().index(&*self.disk)?.find_all(hash);
        for location in locations.into_iter().filter(|location| location.links() < links) {
            match self.read_at(location, hash, codec) {
                Ok(Some(chunk)) => return Ok(chunk),
                // Its pack was removed.
                Ok(None) => {}
                Err(error @ (Error::DamagedChunk { .. } | Error::MissingChunk { .. })) => failed = error,
                Err(error) => return Err(error),
            }
        }
        Err(failed)
    }

    fn read_at(
        &self,
        location: ChunkLocation,
        hash: &ChunkHash,
        codec: &mut Codec,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(frame) = self.bytes_at(location, location.frame_len() as usize)? else { return Ok(None) };
        let damaged = |why| {
            let path = VaultFile::Pack(self.state().pack(location.pack)).path();
            Error::DamagedChunk { hash: *hash, path, offset: location.offset, why }
        };
        let header = Header::read(&frame).ok().filter(|header| header.hash == *hash);
        let header = header.ok_or_else(|| damaged("its header is damaged"))?;
        let stored = frame.get(header.header_len()..).unwrap_or_default();
        if crc32fast::hash(stored) != header.stored_sum {
            return Err(damaged("its bytes do not match their checksum"));
        }
        let len = header.chunk_len as usize;
        let chunk = match header.form {
            Form::Raw => Some(stored.to_vec()),
            Form::Packed => codec.unpack(stored, len),
            Form::Delta { base, links } => {
                let base = self.read_below(links, &base, codec)?;
                codec::unpack_against(&base, stored, len)
            }
        };
        let chunk = chunk.filter(|chunk| ChunkHash::of(chunk) == *hash);
        chunk.map(Some).ok_or_else(|| damaged("its content does not match its hash"))
    }

    /// Returns up to `len` bytes of a pack at a location; `None` when the pack was removed.
    fn bytes_at(&self, location: ChunkLocation, len: usize) -> Result<Option<Vec<u8>>, Error> {
        let reader = {
            let mut state = self.state();
            if let Some(bytes) = state.waiting_at(location, len) {
                return Ok(Some(bytes));
            }
            state.reader(&*self.disk, location.pack)?
        };
        reader.map(|reader| reader.bytes(location.offset, len)).transpose()
    }

    fn find(&self, hash: &ChunkHash) -> Result<Option<ChunkLocation>, Error> {
        Ok(self.state().index(&*self.disk)?.find(hash))
    }
}
