//! All chunks: stored once, found by hash, compared with others, read back and checked.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steno_disk::{Disk, sync_file};

use crate::codec::{self, Codec};
use crate::cut::sketch;
use crate::error::Error;
use crate::frame::{Form, Header};
use crate::ids::{ChunkHash, PackId};
use crate::index::{self, Index, Place};
use crate::manifest::ChunkRef;
use crate::names::VaultFile;
use crate::pack::{FIRST_FRAME, PACK_BYTES_MAX, PackReader, PackWriter};

/// How many packs are kept open to read.
const READERS_MAX: usize = 16;

/// The chunks of a vault, as one process sees them.
pub(crate) struct Chunks {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: Option<Index>,
    writer: Option<Writer>,
    readers: HashMap<PackId, Arc<PackReader>>,
}

/// The pack that this process writes.
struct Writer {
    pack: PackWriter,
    /// What it holds, for the file beside it.
    headers: Vec<(u64, Header)>,
    /// How many of these are not yet synced.
    unsynced: usize,
}

/// Where the chunk stands that is likely to be like the next one: the one after the last that was alike.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hint(Option<(PackId, u64)>);

impl Chunks {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets where chunks stand.
    pub(crate) fn forget_places(&self) {
        let mut state = self.state();
        state.index = None;
        state.readers.clear();
    }

    /// Stores a chunk unless it is there. It is not safe before [`Chunks::sync`].
    pub(crate) fn put(&self, chunk: &[u8], hint: &mut Hint, codec: &mut Codec) -> Result<ChunkRef, Error> {
        let hash = ChunkHash::of(chunk);
        let len = u32::try_from(chunk.len()).expect("chunks are bounded");
        if let Some(place) = self.find(&hash)? {
            *hint = self.after(place);
            return Ok(ChunkRef { hash, len });
        }
        let sketch = sketch(chunk);
        let mut header =
            Header { hash, form: Form::Raw, chunk_len: len, stored_len: 0, stored_sum: 0, sketch };
        let base = self.base_for(&header, *hint, codec)?;
        let (form, next, packed) = smallest(chunk, base, codec);
        (header.form, *hint) = (form, next);
        let stored = packed.as_deref().unwrap_or(chunk);
        header.stored_len = u32::try_from(stored.len()).expect("chunks are bounded");
        header.stored_sum = crc32fast::hash(stored);
        self.state().add(&*self.disk, &header, stored)?;
        Ok(ChunkRef { hash, len })
    }

    /// Makes everything that was put so far survive a power cut.
    ///
    /// After a failure what was put since the last success has to be put again.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let (file, path, pack, count) = {
            let mut state = self.state();
            let Some(writer) = &mut state.writer else { return Ok(()) };
            if writer.unsynced == 0 {
                return Ok(());
            }
            writer.pack.flush()?;
            let (file, path) = writer.pack.file();
            (file, path.clone(), writer.pack.id, writer.headers.len())
        };
        // Not under the lock: others go on storing meanwhile.
        let synced = sync_file(&*file).map_err(Error::not_synced(&path));
        let mut state = self.state();
        match &synced {
            Ok(()) => state.settle(pack, count),
            Err(_) => state.give_up_pack(pack),
        }
        synced
    }

    /// Ends the pack that is being written, so that all others can rely on it.
    pub(crate) fn close_pack(&self) -> Result<(), Error> {
        self.sync()?;
        self.state().close_pack(&*self.disk)
    }

    /// Reads a chunk and checks it.
    pub(crate) fn read(&self, hash: &ChunkHash, codec: &mut Codec) -> Result<Vec<u8>, Error> {
        // Somebody may have begun a pack, or moved chunks, since the places were learned.
        if self.state().find_anywhere(&*self.disk, hash)?.is_none() {
            self.forget_places();
        }
        let place = self.state().find_anywhere(&*self.disk, hash)?;
        let place = place.ok_or(Error::MissingChunk { hash: *hash })?;
        self.read_at(place, hash, codec)
    }

    fn read_at(&self, place: Place, hash: &ChunkHash, codec: &mut Codec) -> Result<Vec<u8>, Error> {
        let reader = self.state().reader(&*self.disk, place.pack)?;
        let frame = reader.frame(place.offset, place.frame_len as usize)?;
        let damaged =
            |why| Error::DamagedChunk { hash: *hash, path: reader.path.clone(), offset: place.offset, why };
        let header = Header::read(&frame).ok().filter(|header| header.hash == *hash);
        let header = header.ok_or_else(|| damaged("its header is not what was written"))?;
        let stored = frame.get(header.header_len()..).unwrap_or_default();
        if crc32fast::hash(stored) != header.stored_sum {
            return Err(damaged("its bytes are not what was written"));
        }
        let len = header.chunk_len as usize;
        let chunk = match header.form {
            Form::Raw => Some(stored.to_vec()),
            Form::Packed => codec.unpack(stored, len),
            Form::Differing(base) => {
                let base = self.read(&base, codec)?;
                codec::unpack_against(&base, stored, len)
            }
        };
        chunk
            .filter(|chunk| ChunkHash::of(chunk) == *hash)
            .ok_or_else(|| damaged("its bytes do not have its hash"))
    }

    fn find(&self, hash: &ChunkHash) -> Result<Option<Place>, Error> {
        Ok(self.state().index(&*self.disk)?.find(hash))
    }

    fn after(&self, place: Place) -> Hint {
        let state = self.state();
        let index = state.index.as_ref();
        Hint(index.map(|index| (index.pack(place.pack), place.offset + u64::from(place.frame_len))))
    }

    /// Finds a chunk to compare a new one with: one that is alike by its sketch, else the one that the hint names.
    fn base_for(&self, new: &Header, hint: Hint, codec: &mut Codec) -> Result<Option<Base>, Error> {
        let alike = self.state().index(&*self.disk)?.find_alike(&new.sketch);
        let place = match alike {
            Some(place) => Some(place),
            None => self.place_of(hint)?,
        };
        let Some(place) = place else { return Ok(None) };
        let next = self.after(place);
        let reader = self.state().reader(&*self.disk, place.pack)?;
        let Ok(header) = reader.header(place.offset)? else { return Ok(None) };
        let hash = match header.form {
            // Bases stand by themselves, so that reading takes two chunks at most.
            Form::Differing(base) => base,
            Form::Raw | Form::Packed => header.hash,
        };
        // A base that cannot be read is no reason not to store: the chunk then stands by itself.
        let Ok(bytes) = self.read(&hash, codec) else { return Ok(None) };
        Ok(Some(Base { hash, bytes, next }))
    }

    /// Returns the place that a hint names, if a frame stands there.
    fn place_of(&self, hint: Hint) -> Result<Option<Place>, Error> {
        let Hint(Some((pack, offset))) = hint else { return Ok(None) };
        let mut state = self.state();
        let number = state.index(&*self.disk)?.number_of(pack);
        let reader = state.reader(&*self.disk, number)?;
        drop(state);
        let Ok(header) = reader.header(offset)? else { return Ok(None) };
        Ok(self.find(&header.hash)?.filter(|place| (place.pack, place.offset) == (number, offset)))
    }
}

/// A chunk that another is stored as different from.
struct Base {
    hash: ChunkHash,
    bytes: Vec<u8>,
    next: Hint,
}

/// Chooses how a chunk is stored; `None` for its bytes as they are.
fn smallest(chunk: &[u8], base: Option<Base>, codec: &mut Codec) -> (Form, Hint, Option<Vec<u8>>) {
    let differing = base.and_then(|base| Some((codec::pack_against(&base.bytes, chunk)?, base)));
    let packed = match &differing {
        // Nothing that stands by itself becomes so small.
        Some((differing, _)) if differing.len() < chunk.len() / 16 => None,
        _ => codec.pack(chunk),
    };
    let plain_len = packed.as_ref().map_or(chunk.len(), Vec::len);
    match (differing, packed) {
        // What is stored by itself can serve as a base, and is read faster: it may be somewhat larger.
        (Some((differing, base)), _) if differing.len() < plain_len / 4 * 3 => {
            (Form::Differing(base.hash), base.next, Some(differing))
        }
        (_, Some(packed)) => (Form::Packed, Hint(None), Some(packed)),
        (_, None) => (Form::Raw, Hint(None), None),
    }
}

impl State {
    fn index(&mut self, disk: &dyn Disk) -> Result<&mut Index, Error> {
        let index = match self.index.take() {
            Some(index) => index,
            None => self.load(disk)?,
        };
        Ok(self.index.insert(index))
    }

    /// Learns where chunks stand, those in our own pack included.
    fn load(&mut self, disk: &dyn Disk) -> Result<Index, Error> {
        let mut index = Index::load(disk)?;
        if let Some(writer) = &mut self.writer {
            let number = index.number_of(writer.pack.id);
            writer.headers.iter().for_each(|(offset, header)| index.insert(number, *offset, header));
        }
        Ok(index)
    }

    /// Returns the place of a chunk in any pack, also in one that another process is writing.
    fn find_anywhere(&mut self, disk: &dyn Disk, hash: &ChunkHash) -> Result<Option<Place>, Error> {
        let index = self.index(disk)?;
        Ok(index.find(hash).or_else(|| index.find_unsettled(hash)))
    }

    fn reader(&mut self, disk: &dyn Disk, number: u32) -> Result<Arc<PackReader>, Error> {
        let pack = self.index(disk)?.pack(number);
        if let Some(writer) = self.writer.as_mut().filter(|writer| writer.pack.id == pack) {
            writer.pack.flush()?;
        }
        if let Some(reader) = self.readers.get(&pack) {
            return Ok(Arc::clone(reader));
        }
        let path = VaultFile::Pack(pack).path();
        let reader = PackReader::open(disk, pack)?;
        let reader = reader.ok_or_else(|| Error::io("open", &path)(std::io::ErrorKind::NotFound.into()))?;
        let reader = Arc::new(reader);
        if self.readers.len() >= READERS_MAX {
            self.readers.clear();
        }
        self.readers.insert(pack, Arc::clone(&reader));
        Ok(reader)
    }

    fn add(&mut self, disk: &dyn Disk, header: &Header, stored: &[u8]) -> Result<(), Error> {
        if self.index(disk)?.find(&header.hash).is_some() {
            // Another thread had the same chunk.
            return Ok(());
        }
        if self.writer.as_ref().is_some_and(|writer| writer.pack.len() >= PACK_BYTES_MAX) {
            self.sync_here()?;
            self.close_pack(disk)?;
        }
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => Writer { pack: PackWriter::create(disk)?, headers: Vec::new(), unsynced: 0 },
        };
        let added = writer.pack.add(header, stored);
        let pack = writer.pack.id;
        if let Ok(offset) = added {
            writer.headers.push((offset, *header));
            writer.unsynced += 1;
        }
        self.writer = Some(writer);
        let offset = added?;
        let index = self.index(disk)?;
        let number = index.number_of(pack);
        index.insert(number, offset, header);
        Ok(())
    }

    /// Syncs the pack under the lock.
    fn sync_here(&mut self) -> Result<(), Error> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.pack.flush()?;
        let (file, path) = writer.pack.file();
        let (path, pack, count) = (path.clone(), writer.pack.id, writer.headers.len());
        match sync_file(&*file) {
            Ok(()) => {
                self.settle(pack, count);
                Ok(())
            }
            Err(error) => {
                self.give_up_pack(pack);
                Err(Error::not_synced(&path)(error))
            }
        }
    }

    /// Takes note that the first `count` chunks of a pack are safe.
    fn settle(&mut self, pack: PackId, count: usize) {
        if let Some(writer) = self.writer.as_mut().filter(|writer| writer.pack.id == pack) {
            writer.unsynced = writer.unsynced.min(writer.headers.len() - count);
        }
    }

    /// Lets go of a pack whose sync has failed: what was not synced in it counts no more.
    fn give_up_pack(&mut self, pack: PackId) {
        let Some(writer) = self.writer.take_if(|writer| writer.pack.id == pack) else { return };
        let synced = writer.headers.len() - writer.unsynced;
        if let Some(index) = &mut self.index {
            writer.headers[synced..].iter().for_each(|(_, header)| index.remove(&header.hash));
        }
    }

    fn close_pack(&mut self, disk: &dyn Disk) -> Result<(), Error> {
        let Some(writer) = self.writer.take_if(|writer| writer.unsynced == 0) else { return Ok(()) };
        index::write_file(disk, writer.pack.id, &writer.headers)
    }
}

/// Writes the files beside packs whose process died. Only chunks that a manifest names, and those that they differ from,
/// were surely synced; the others are left out, and count no more.
pub(crate) fn settle_packs(
    disk: &dyn Disk,
    named: impl FnOnce() -> Result<HashSet<ChunkHash>, Error>,
) -> Result<(), Error> {
    let unsettled = index::unsettled(disk)?;
    if unsettled.is_empty() {
        return Ok(());
    }
    let mut counting = named()?;
    let mut packs = Vec::new();
    for pack in unsettled {
        let Some(reader) = PackReader::open(disk, pack)? else { continue };
        let mut headers = Vec::new();
        reader.scan(FIRST_FRAME, |offset, header| headers.push((offset, header)))?;
        for (_, header) in &headers {
            if let Form::Differing(base) = header.form
                && counting.contains(&header.hash)
            {
                counting.insert(base);
            }
        }
        packs.push((pack, headers));
    }
    for (pack, mut headers) in packs {
        headers.retain(|(_, header)| counting.contains(&header.hash));
        index::write_file(disk, pack, &headers)?;
    }
    Ok(())
}
