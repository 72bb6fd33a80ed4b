//! The tail of a source: the bytes at its end that are not yet cut into chunks, safe all the same.
//!
//! A tail is a row of frames, each with the place of its bytes and a checksum. Frames that chunks have overtaken are
//! passed over, so that nothing has to happen at once when bytes move from the tail into a pack.

use std::sync::Arc;

use steno_disk::{Disk, DiskFile, StorePath, append_all, replace_with, sync_dir, sync_file};

use crate::error::Error;
use crate::ids::SourceId;
use crate::index::read_whole;
use crate::names::VaultFile;

const MAGIC: [u8; 4] = *b"STAL";
const HEADER_BYTES: usize = 24;

/// Bytes of a source that a tail holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TailFrame {
    pub(crate) generation: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads the tail of a source up to what a crash has left unfinished.
pub(crate) fn read(disk: &dyn Disk, source: SourceId) -> Result<Vec<TailFrame>, Error> {
    let bytes = read_whole(disk, &VaultFile::Tail(source).path())?.unwrap_or_default();
    let mut rest = &bytes[..];
    let mut frames = Vec::new();
    while let Some((frame, after)) = read_frame(rest) {
        frames.push(frame);
        rest = after;
    }
    Ok(frames)
}

/// Returns the bytes that frames hold from `offset` of a generation on, as far as they go without a gap.
pub(crate) fn bytes_from(frames: &[TailFrame], generation: u32, mut offset: u64) -> Vec<u8> {
    let mut found = Vec::new();
    for frame in frames.iter().filter(|frame| frame.generation == generation) {
        let end = frame.offset + frame.bytes.len() as u64;
        if frame.offset <= offset && offset < end {
            let known = usize::try_from(offset - frame.offset).expect("it lies inside of the frame");
            found.extend_from_slice(&frame.bytes[known..]);
            offset = end;
        }
    }
    found
}

fn read_frame(bytes: &[u8]) -> Option<(TailFrame, &[u8])> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("it has four bytes"));
    let offset = u64::from_le_bytes(header[8..16].try_into().expect("it has eight bytes"));
    let end = HEADER_BYTES.checked_add(number(16) as usize)?;
    let content = bytes.get(HEADER_BYTES..end)?;
    let is_whole = header[..4] == MAGIC && number(20) == sum(&header[..20], content);
    let frame = TailFrame { generation: number(4), offset, bytes: content.to_vec() };
    is_whole.then(|| (frame, &bytes[end..]))
}

fn header(generation: u32, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).expect("tails are cut long before");
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&generation.to_le_bytes());
    header.extend_from_slice(&offset.to_le_bytes());
    header.extend_from_slice(&len.to_le_bytes());
    header.extend_from_slice(&sum(&header, bytes).to_le_bytes());
    header
}

fn sum(header: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(bytes);
    hasher.finalize()
}

/// The tail of a source that is being written.
pub(crate) struct TailWriter {
    path: StorePath,
    file: Arc<dyn DiskFile>,
    pub(crate) len: u64,
}

impl TailWriter {
    /// Puts a tail in place that holds these bytes and nothing else.
    pub(crate) fn create(
        disk: &dyn Disk,
        source: SourceId,
        generation: u32,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let path = VaultFile::Tail(source).path();
        let header = header(generation, offset, bytes);
        let write = |file: &dyn DiskFile| append_all(file, &header).and_then(|()| append_all(file, bytes));
        replace_with(disk, &path, write).map_err(Error::io("write", &path))?;
        let file = disk.open_append(&path).map_err(Error::io("open", &path))?;
        Ok(Self { path, file, len: (HEADER_BYTES + bytes.len()) as u64 })
    }

    /// Adds bytes and syncs them.
    ///
    /// When there is no room, nothing has changed. After any other failure this tail is not to be used again.
    pub(crate) fn append(&mut self, generation: u32, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut frame = header(generation, offset, bytes);
        frame.extend_from_slice(bytes);
        if let Err(error) = append_all(&*self.file, &frame) {
            self.file.truncate(self.len).map_err(Error::not_synced(&self.path))?;
            return Err(Error::io("write", &self.path)(error));
        }
        sync_file(&*self.file).map_err(Error::not_synced(&self.path))?;
        self.len += frame.len() as u64;
        Ok(())
    }
}

/// Takes away a tail that chunks have overtaken.
pub(crate) fn remove(disk: &dyn Disk, source: SourceId) -> Result<(), Error> {
    let path = VaultFile::Tail(source).path();
    disk.remove(&path).map_err(Error::io("delete", &path))?;
    sync_dir(disk, &path.dir()).map_err(Error::not_synced(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(generation: u32, offset: u64, bytes: &[u8]) -> TailFrame {
        TailFrame { generation, offset, bytes: bytes.to_vec() }
    }

    #[test]
    fn a_frame_is_read_whole_or_not_at_all() {
        let mut bytes = header(3, 99, b"hello");
        bytes.extend_from_slice(b"hello");
        assert_eq!(read_frame(&bytes), Some((frame(3, 99, b"hello"), &[][..])));
        for at in 0..bytes.len() {
            assert_eq!(read_frame(&bytes[..at]), None);
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(read_frame(&flipped), None, "byte {at}");
        }
    }

    #[test]
    fn bytes_are_put_together_from_where_chunks_end() {
        let frames = [frame(0, 0, b"abc"), frame(0, 3, b"def"), frame(1, 0, b"xy"), frame(0, 8, b"gap")];
        assert_eq!(bytes_from(&frames, 0, 0), b"abcdef");
        assert_eq!(bytes_from(&frames, 0, 4), b"ef");
        assert_eq!(bytes_from(&frames, 0, 6), b"");
        assert_eq!(bytes_from(&frames, 1, 0), b"xy");
        assert_eq!(bytes_from(&frames, 2, 0), b"");
    }
}
