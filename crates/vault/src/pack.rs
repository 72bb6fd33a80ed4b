//! Packs: files with chunks. One process appends to a pack, all processes read it.

use std::sync::Arc;

use steno_disk::{Disk, DiskFile, LockGuard, StorePath, append_all, read_full, sync_dir, sync_file};

use crate::error::Error;
use crate::frame::{HEADER_BYTES_MAX, Header, MAGIC};
use crate::ids::PackId;
use crate::limits::CHUNK_BYTES_LIMIT;
use crate::names::VaultFile;

/// The magic at the beginning of a pack. The format version and the CRC-32 of both follow.
const PACK_MAGIC: [u8; 8] = *b"STENOPAK";
const PREAMBLE_BYTES: usize = 16;
/// The version that we write. Version 1 had no deltas whose base is a delta.
const PACK_VERSION: u32 = 2;
/// The offset of the first frame.
pub(crate) const FIRST_FRAME: u64 = PREAMBLE_BYTES as u64;
/// How many bytes are read at a time to find frames.
const WINDOW_BYTES: usize = 64 * 1024;
/// How many bytes are read at a time to read all frames: several of the longest ones.
const WALK_BYTES: usize = 16 * (CHUNK_BYTES_LIMIT + HEADER_BYTES_MAX);

/// The only writer of a pack.
pub(crate) struct PackWriter {
    pub(crate) id: PackId,
    path: StorePath,
    file: Arc<dyn DiskFile>,
    /// The length of the file.
    written: u64,
    /// Frames that are not yet written.
    waiting: Vec<u8>,
    _lock: Box<dyn LockGuard>,
}

impl PackWriter {
    /// Begins a pack.
    pub(crate) fn create(disk: &dyn Disk) -> Result<Self, Error> {
        let id = PackId::random();
        let lock_path = VaultFile::PackLock(id).path();
        let lock = disk.try_lock(&lock_path).map_err(Error::io("lock", &lock_path))?;
        let lock = lock.expect("the name of the lock is new");
        let path = VaultFile::Pack(id).path();
        let file = disk.create(&path).map_err(Error::io("make", &path))?;
        let begun = append_all(&*file, &preamble(PACK_VERSION))
            .map_err(Error::io("write", &path))
            .and_then(|()| sync_file(&*file).map_err(Error::not_synced(&path)))
            .and_then(|()| sync_dir(disk, &path.dir()).map_err(Error::not_synced(&path)));
        if let Err(error) = begun {
            // Otherwise each retry on a full disk would leave one more file.
            disk.remove(&path).ok();
            disk.remove(&lock_path).ok();
            return Err(error);
        }
        Ok(Self { id, path, file, written: FIRST_FRAME, waiting: Vec::new(), _lock: lock })
    }

    /// Returns where the next frame will begin.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    /// Returns how many bytes are not yet written.
    pub(crate) fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a frame; returns its offset. The frame is not safe before [`PackWriter::flush`] and a sync.
    pub(crate) fn add(&mut self, header: &Header, stored: &[u8]) -> u64 {
        let offset = self.len();
        header.write(&mut self.waiting);
        self.waiting.extend_from_slice(stored);
        offset
    }

    /// Writes the buffered frames.
    ///
    /// When there is no space, they stay buffered and the partial write is undone. After any other failure the pack
    /// must not be used again.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if let Err(error) = append_all(&*self.file, &self.waiting) {
            self.file.truncate(self.written).map_err(Error::not_synced(&self.path))?;
            return Err(Error::io("write", &self.path)(error));
        }
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Returns up to `len` bytes at an offset, if they are not yet written.
    pub(crate) fn waiting_at(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset.checked_sub(self.written)?).ok()?;
        let bytes = self.waiting.get(start..)?;
        Some(bytes[..len.min(bytes.len())].to_vec())
    }

    /// Returns the file, to sync what was flushed.
    pub(crate) fn file(&self) -> (Arc<dyn DiskFile>, StorePath) {
        (Arc::clone(&self.file), self.path.clone())
    }
}

fn preamble(version: u32) -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..8].copy_from_slice(&PACK_MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Fails when the file at a path is no longer the one that was opened: bytes written to it would be lost.
pub(crate) fn check_in_place(disk: &dyn Disk, path: &StorePath, file: &dyn DiskFile) -> Result<(), Error> {
    let there = disk.identity(path).map_err(Error::io("access", path))?;
    let here = file.identity().map_err(Error::io("access", path))?;
    match there {
        Some(there) if there.is_same_file(&here) => Ok(()),
        Some(_) | None => Err(Error::Vanished { path: path.clone() }),
    }
}

/// A pack that is open for reading.
pub(crate) struct PackReader {
    pub(crate) path: StorePath,
    file: Arc<dyn DiskFile>,
    /// Whether the preamble is valid.
    pub(crate) begins_well: bool,
}

impl PackReader {
    /// Opens a pack; `None` when it is not there.
    pub(crate) fn open(disk: &dyn Disk, id: PackId) -> Result<Option<Self>, Error> {
        let path = VaultFile::Pack(id).path();
        let opened = disk.open_read(&path).map_err(Error::io("open", &path))?;
        let Some(file) = opened else { return Ok(None) };
        let mut bytes = [0; PREAMBLE_BYTES];
        read_full(&*file, &mut bytes, 0).map_err(Error::io("read", &path))?;
        let version = u32::from_le_bytes(bytes[8..12].try_into().expect("it has four bytes"));
        // A pack whose process died before its first sync may have any bytes here and no valid frame. If only the
        // preamble is damaged, the frames can still be read.
        let begins_well = bytes == preamble(version);
        if begins_well && version > PACK_VERSION {
            return Err(Error::TooNew { path, found: version.into(), known: PACK_VERSION.into() });
        }
        Ok(Some(Self { path, file, begins_well }))
    }

    /// Returns up to `len` bytes at an offset, fewer only at the end of the pack.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; len];
        let read = read_full(&*self.file, &mut bytes, offset).map_err(Error::io("read", &self.path))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Tells whether the stored bytes of a frame match their checksum.
    pub(crate) fn is_whole(&self, offset: u64, header: &Header) -> Result<bool, Error> {
        let stored = self.bytes(offset + header.header_len() as u64, header.stored_len as usize)?;
        Ok(stored.len() == header.stored_len as usize && crc32fast::hash(&stored) == header.stored_sum)
    }

    /// Returns how long the pack is.
    pub(crate) fn len(&self) -> Result<u64, Error> {
        Ok(self.file.identity().map_err(Error::io("access", &self.path))?.size_bytes)
    }

    /// Passes the offset and header of every frame to `each`, beginning at `offset`.
    pub(crate) fn scan(&self, mut offset: u64, mut each: impl FnMut(u64, Header)) -> Result<(), Error> {
        let size = self.len()?;
        let mut window = Window::new(&*self.file, &self.path, WINDOW_BYTES);
        while let Some((at, header)) = window.next_frame(offset, size)? {
            each(at, header);
            offset = at + header.frame_len();
        }
        Ok(())
    }

    /// Passes the offset, header and stored bytes of every frame to `each`. Reads the whole pack once.
    pub(crate) fn walk(
        &self,
        mut each: impl FnMut(u64, &Header, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let size = self.len()?;
        let window_bytes = usize::try_from(size).unwrap_or(WALK_BYTES).clamp(WINDOW_BYTES, WALK_BYTES);
        let mut window = Window::new(&*self.file, &self.path, window_bytes);
        let mut offset = FIRST_FRAME;
        while let Some((at, header)) = window.next_frame(offset, size)? {
            let len = usize::try_from(header.frame_len()).expect("frames are bounded");
            let frame = window.at(at, len)?;
            each(at, &header, frame.get(header.header_len()..).unwrap_or_default())?;
            offset = at + header.frame_len();
        }
        Ok(())
    }
}

/// A buffered part of a file. One read covers many small frames; the bytes of large frames are skipped.
struct Window<'a> {
    file: &'a dyn DiskFile,
    path: &'a StorePath,
    start: u64,
    len: usize,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a dyn DiskFile, path: &'a StorePath, size: usize) -> Self {
        Self { file, path, start: 0, len: 0, bytes: vec![0; size] }
    }

    /// Finds the first frame at or after an offset.
    fn next_frame(&mut self, offset: u64, size: u64) -> Result<Option<(u64, Header)>, Error> {
        let fits = |header: &Header| offset + header.frame_len() <= size;
        if let Some(header) = Header::read(self.at(offset, HEADER_BYTES_MAX)?).ok().filter(fits) {
            return Ok(Some((offset, header)));
        }
        self.find_header(offset + 1, size)
    }

    /// Returns up to `wanted` bytes at an offset, fewer only at the end of the file.
    fn at(&mut self, offset: u64, wanted: usize) -> Result<&[u8], Error> {
        let is_known = self.start <= offset && offset + wanted as u64 <= self.start + self.len as u64;
        if !is_known {
            self.start = offset;
            self.len = read_full(self.file, &mut self.bytes, offset).map_err(Error::io("read", self.path))?;
        }
        let at = usize::try_from(offset - self.start).expect("it is inside the window");
        Ok(&self.bytes[at..self.len.min(at + wanted)])
    }

    /// Finds the next valid frame.
    fn find_header(&mut self, mut offset: u64, size: u64) -> Result<Option<(u64, Header)>, Error> {
        while offset < size {
            let piece = self.at(offset, WINDOW_BYTES / 2)?;
            let Some(at) = piece.windows(MAGIC.len()).position(|window| window == MAGIC) else {
                // The magic may cross the end of the piece.
                offset += (piece.len().saturating_sub(MAGIC.len() - 1)).max(1) as u64;
                continue;
            };
            offset += at as u64;
            let header = Header::read(self.at(offset, HEADER_BYTES_MAX)?).ok();
            if let Some(header) = header.filter(|header| offset + header.frame_len() <= size) {
                return Ok(Some((offset, header)));
            }
            offset += 1;
        }
        Ok(None)
    }
}

/// Lists the packs.
pub(crate) fn list(disk: &dyn Disk) -> Result<Vec<PackId>, Error> {
    let dir = crate::names::packs();
    let names = disk.list(&dir).map_err(Error::io("list", &dir))?;
    let pack = |name: &String| {
        let Some(VaultFile::Pack(pack)) = VaultFile::parse(dir.below(name).as_str()) else { return None };
        Some(pack)
    };
    Ok(names.iter().filter_map(pack).collect())
}
