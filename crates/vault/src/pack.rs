//! Packs: files that chunks are appended to, each by one process, and read from by all.

use std::sync::Arc;

use steno_disk::{Disk, DiskFile, LockGuard, StorePath, append_all, read_full, sync_dir, sync_file};

use crate::error::Error;
use crate::frame::{BadHeader, HEADER_BYTES_MAX, Header, MAGIC};
use crate::ids::PackId;
use crate::names::VaultFile;

/// What a pack begins with: its magic and the version of its format.
const PREAMBLE: [u8; 12] = *b"STENOPAK\x01\0\0\0";
/// The version that we write.
pub(crate) const PACK_VERSION: u32 = 1;
/// Where the first frame begins.
pub(crate) const FIRST_FRAME: u64 = PREAMBLE.len() as u64;
/// When a pack is as long as this, the next one is begun.
pub(crate) const PACK_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// How many bytes wait before they are written together.
const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// How much is read at a time to find frames.
const WINDOW_BYTES: usize = 64 * 1024;

/// The one writer of a pack.
pub(crate) struct PackWriter {
    pub(crate) id: PackId,
    path: StorePath,
    file: Arc<dyn DiskFile>,
    /// How long the file is.
    written: u64,
    /// Frames that are not yet written.
    waiting: Vec<u8>,
    _lock: Box<dyn LockGuard>,
}

impl PackWriter {
    /// Begins a pack.
    pub(crate) fn create(disk: &dyn Disk) -> Result<Self, Error> {
        let id = PackId::chance();
        let lock_path = VaultFile::PackLock(id).path();
        let lock = disk.try_lock(&lock_path).map_err(Error::io("lock", &lock_path))?;
        let lock = lock.expect("nobody else has a lock with a new name");
        let path = VaultFile::Pack(id).path();
        let file = disk.create(&path).map_err(Error::io("make", &path))?;
        append_all(&*file, &PREAMBLE).map_err(Error::io("write", &path))?;
        sync_file(&*file).map_err(Error::not_synced(&path))?;
        sync_dir(disk, &path.dir()).map_err(Error::not_synced(&path))?;
        Ok(Self { id, path, file, written: FIRST_FRAME, waiting: Vec::new(), _lock: lock })
    }

    /// Returns where the next frame will begin.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    /// Adds a frame; returns where it begins. It is not safe before [`PackWriter::flush`] and a sync.
    pub(crate) fn add(&mut self, header: &Header, stored: &[u8]) -> Result<u64, Error> {
        if self.waiting.len() >= WAITING_BYTES_MAX {
            self.flush()?;
        }
        let offset = self.len();
        header.write(&mut self.waiting);
        self.waiting.extend_from_slice(stored);
        Ok(offset)
    }

    /// Writes the frames that wait.
    ///
    /// After a failure they wait still, and what was written of them is taken back.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if let Err(error) = append_all(&*self.file, &self.waiting) {
            self.file.truncate(self.written).map_err(Error::io("cut", &self.path))?;
            return Err(Error::io("write", &self.path)(error));
        }
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Returns the file, to sync what was flushed.
    pub(crate) fn file(&self) -> (Arc<dyn DiskFile>, &StorePath) {
        (Arc::clone(&self.file), &self.path)
    }
}

/// A pack to read from.
pub(crate) struct PackReader {
    pub(crate) path: StorePath,
    file: Arc<dyn DiskFile>,
}

/// Bytes of a pack that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Where they begin.
    pub(crate) offset: u64,
    /// How many there are.
    pub(crate) len: u64,
    /// Whether the pack ends with them, as it does when its process died while it wrote.
    pub(crate) is_last: bool,
}

impl PackReader {
    /// Opens a pack; `None` when it is not there.
    pub(crate) fn open(disk: &dyn Disk, id: PackId) -> Result<Option<Self>, Error> {
        let path = VaultFile::Pack(id).path();
        let opened = disk.open_read(&path).map_err(Error::io("open", &path))?;
        let Some(file) = opened else { return Ok(None) };
        let mut preamble = [0; PREAMBLE.len()];
        let read = read_full(&*file, &mut preamble, 0).map_err(Error::io("read", &path))?;
        let version = u32::from_le_bytes(preamble[8..].try_into().expect("it has four bytes left"));
        if read == preamble.len() && preamble[..8] == PREAMBLE[..8] && version > PACK_VERSION {
            return Err(Error::TooNew { path, found: version.into(), known: PACK_VERSION.into() });
        }
        // A pack whose process died before its first sync may have anything here, and no frame that counts.
        Ok(Some(Self { path, file }))
    }

    /// Reads the header at an offset.
    pub(crate) fn header(&self, offset: u64) -> Result<Result<Header, BadHeader>, Error> {
        let mut bytes = [0; HEADER_BYTES_MAX];
        let read = read_full(&*self.file, &mut bytes, offset).map_err(Error::io("read", &self.path))?;
        Ok(Header::read(&bytes[..read]))
    }

    /// Reads header and stored bytes of the frame at an offset that is `len` long.
    pub(crate) fn frame(&self, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; len];
        let read = read_full(&*self.file, &mut bytes, offset).map_err(Error::io("read", &self.path))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Returns how long the pack is.
    pub(crate) fn len(&self) -> Result<u64, Error> {
        Ok(self.file.identity().map_err(Error::io("look at", &self.path))?.size_bytes)
    }

    /// Hands over every frame's offset and header from `offset` on; returns what lies between them.
    pub(crate) fn scan(&self, mut offset: u64, mut each: impl FnMut(u64, Header)) -> Result<Vec<Gap>, Error> {
        let size = self.len()?;
        let mut window = Window::new(&*self.file, &self.path);
        let mut gaps = Vec::new();
        while offset < size {
            match Header::read(window.at(offset, HEADER_BYTES_MAX)?) {
                Ok(header) if offset + header.frame_len() <= size => {
                    each(offset, header);
                    offset += header.frame_len();
                }
                Ok(_) | Err(_) => {
                    let next = window.find_header(offset + 1, size)?;
                    let end = next.unwrap_or(size);
                    gaps.push(Gap { offset, len: end - offset, is_last: next.is_none() });
                    offset = end;
                }
            }
        }
        Ok(gaps)
    }
}

/// A piece of a file that is kept while one goes through it: small frames come many to a read, and the bytes of large
/// ones are passed over.
struct Window<'a> {
    file: &'a dyn DiskFile,
    path: &'a StorePath,
    start: u64,
    len: usize,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a dyn DiskFile, path: &'a StorePath) -> Self {
        Self { file, path, start: 0, len: 0, bytes: vec![0; WINDOW_BYTES] }
    }

    /// Returns up to `wanted` bytes at an offset, fewer only at the end of the file.
    fn at(&mut self, offset: u64, wanted: usize) -> Result<&[u8], Error> {
        let is_known = self.start <= offset && offset + wanted as u64 <= self.start + self.len as u64;
        if !is_known {
            self.start = offset;
            self.len = read_full(self.file, &mut self.bytes, offset).map_err(Error::io("read", self.path))?;
        }
        let at = usize::try_from(offset - self.start).expect("it lies inside of the window");
        Ok(&self.bytes[at..self.len.min(at + wanted)])
    }

    /// Finds the next frame that is whole.
    fn find_header(&mut self, mut offset: u64, size: u64) -> Result<Option<u64>, Error> {
        while offset < size {
            let piece = self.at(offset, WINDOW_BYTES / 2)?;
            let Some(at) = piece.windows(MAGIC.len()).position(|window| window == MAGIC) else {
                // The magic may stand across the piece's end.
                offset += (piece.len().saturating_sub(MAGIC.len() - 1)).max(1) as u64;
                continue;
            };
            offset += at as u64;
            let header = Header::read(self.at(offset, HEADER_BYTES_MAX)?);
            if header.is_ok_and(|header| offset + header.frame_len() <= size) {
                return Ok(Some(offset));
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
