//! The tail of a source: the synced bytes at its end that are not cut into chunks yet.
//!
//! A tail is a sequence of frames, each with the offset of its bytes and a checksum. Frames whose bytes are already in
//! chunks are ignored, so the tail need not change at the moment when bytes move into a pack.

use std::sync::Arc;

use steno_disk::{Disk, DiskFile, StorePath, append_all, replace_with, sync_dir, sync_file};

use crate::error::Error;
use crate::ids::SourceId;
use crate::index::read_whole;
use crate::names::VaultFile;
use crate::pack::check_in_place;

const MAGIC: [u8; 4] = *b"STAL";
const HEADER_BYTES: usize = 28;
const SUM_BYTES: usize = 4;

/// The content of a tail.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) frames: Vec<TailFrame>,
    /// The offset of the first damaged frame. An incomplete last frame, left by a crash, is not damage.
    pub(crate) damaged_at: Option<u64>,
    /// The length of the file.
    pub(crate) len: u64,
}

/// A frame: bytes of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TailFrame {
    pub(crate) generation: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads the tail of a source up to an incomplete or damaged frame.
pub(crate) fn read(disk: &dyn Disk, source: SourceId) -> Result<Tail, Error> {
    let bytes = read_whole(disk, &VaultFile::Tail(source).path())?.unwrap_or_default();
    Ok(parse(&bytes))
}

impl Tail {
    /// Returns the bytes of a generation from `offset` up to the first gap.
    pub(crate) fn bytes_from(&self, generation: u32, mut offset: u64) -> Vec<u8> {
        let mut found = Vec::new();
        for frame in self.frames.iter().filter(|frame| frame.generation == generation) {
            let end = frame.offset + frame.bytes.len() as u64;
            if frame.offset <= offset && offset < end {
                let known = usize::try_from(offset - frame.offset).expect("it is inside the frame");
                found.extend_from_slice(&frame.bytes[known..]);
                offset = end;
            }
        }
        found
    }

    /// Tells whether it ends with an incomplete frame.
    pub(crate) fn is_unfinished(&self) -> bool {
        let whole: usize = self.frames.iter().map(|frame| HEADER_BYTES + frame.bytes.len()).sum();
        self.len > whole as u64
    }

    /// Fails when a frame is damaged.
    pub(crate) fn check(&self, source: SourceId) -> Result<(), Error> {
        let damaged = |offset| {
            let (path, why) = (VaultFile::Tail(source).path(), "a frame does not match its checksum");
            Err(Error::Damaged { path, offset, why })
        };
        self.damaged_at.map_or(Ok(()), damaged)
    }
}

fn parse(bytes: &[u8]) -> Tail {
    let mut tail = Tail { len: bytes.len() as u64, ..Tail::default() };
    let mut rest = bytes;
    while let Some((frame, after)) = read_frame(rest) {
        tail.frames.push(frame);
        rest = after;
    }
    if !is_unfinished(rest) {
        tail.damaged_at = Some((bytes.len() - rest.len()) as u64);
    }
    tail
}

/// Tells whether these bytes can be the rest of a frame that was being written: it ends too early, or has zeros where a
/// power cut took bytes, and no whole frame follows.
fn is_unfinished(rest: &[u8]) -> bool {
    let Some(header) = rest.first_chunk::<HEADER_BYTES>() else { return true };
    let has_lost_bytes = match read_header(header) {
        Some((_, _, len, _)) => {
            rest.get(HEADER_BYTES..HEADER_BYTES + len).is_none_or(|bytes| bytes.contains(&0))
        }
        None => is_torn_header(header),
    };
    let frames_after = || (1..rest.len()).filter(|at| rest[*at..].starts_with(&MAGIC));
    has_lost_bytes && frames_after().all(|at| read_frame(&rest[at..]).is_none())
}

/// Tells whether a header has zeros at its beginning or at its end.
fn is_torn_header(header: &[u8; HEADER_BYTES]) -> bool {
    let (before, sum) = header.split_at(HEADER_BYTES - SUM_BYTES);
    let whole = crc32fast::hash(before).to_le_bytes();
    let ends_in_zeros =
        (0..SUM_BYTES).any(|at| sum[..at] == whole[..at] && sum[at..].iter().all(|byte| *byte == 0));
    ends_in_zeros || header.starts_with(&[0; MAGIC.len()])
}

/// Reads the header of a frame: generation, offset, length and checksum.
fn read_header(header: &[u8; HEADER_BYTES]) -> Option<(u32, u64, usize, u32)> {
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("it has four bytes"));
    let offset = u64::from_le_bytes(header[8..16].try_into().expect("it has eight bytes"));
    let is_whole = header[..4] == MAGIC && number(24) == crc32fast::hash(&header[..24]);
    is_whole.then(|| (number(4), offset, number(16) as usize, number(20)))
}

fn read_frame(bytes: &[u8]) -> Option<(TailFrame, &[u8])> {
    let (generation, offset, len, sum) = read_header(bytes.first_chunk()?)?;
    let (content, after) = bytes[HEADER_BYTES..].split_at_checked(len)?;
    let frame = TailFrame { generation, offset, bytes: content.to_vec() };
    (crc32fast::hash(content) == sum).then_some((frame, after))
}

fn header(generation: u32, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).expect("tails are cut long before");
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&generation.to_le_bytes());
    header.extend_from_slice(&offset.to_le_bytes());
    header.extend_from_slice(&len.to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    let sum = crc32fast::hash(&header);
    header.extend_from_slice(&sum.to_le_bytes());
    header
}

/// Writes the tail of a source.
pub(crate) struct TailWriter {
    path: StorePath,
    file: Arc<dyn DiskFile>,
    pub(crate) len: u64,
}

impl TailWriter {
    /// Replaces the tail by one with only these bytes.
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
    /// When there is no space, nothing has changed. After any other failure this tail must not be used again.
    pub(crate) fn append(
        &mut self,
        disk: &dyn Disk,
        generation: u32,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let mut frame = header(generation, offset, bytes);
        frame.extend_from_slice(bytes);
        if let Err(error) = append_all(&*self.file, &frame) {
            self.file.truncate(self.len).map_err(Error::not_synced(&self.path))?;
            return Err(Error::io("write", &self.path)(error));
        }
        sync_file(&*self.file).map_err(Error::not_synced(&self.path))?;
        check_in_place(disk, &self.path, &*self.file)?;
        self.len += frame.len() as u64;
        Ok(())
    }
}

/// Removes a tail whose bytes are all in chunks.
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

    fn written(generation: u32, offset: u64, bytes: &[u8]) -> Vec<u8> {
        [&header(generation, offset, bytes), bytes].concat()
    }

    #[test]
    fn damaged_frames_differ_from_incomplete_ones() {
        let first = written(3, 99, b"hello");
        let whole = [first.clone(), written(3, 104, b"world")].concat();
        let want = vec![frame(3, 99, b"hello"), frame(3, 104, b"world")];
        assert_eq!(parse(&whole), Tail { frames: want.clone(), damaged_at: None, len: whole.len() as u64 });
        for at in 0..whole.len() {
            let (count, start) = if at < first.len() { (0, 0) } else { (1, first.len() as u64) };
            let check = |bytes: &[u8], damaged_at, what: &str| {
                let tail = Tail { frames: want[..count].to_vec(), damaged_at, len: bytes.len() as u64 };
                assert_eq!(parse(bytes), tail, "{what} at {at}");
            };
            check(&whole[..at], None, "cut");
            if at >= first.len() {
                check(&[&whole[..at], &vec![0; whole.len() - at]].concat(), None, "zeros from");
            }
            let mut flipped = whole.clone();
            flipped[at] ^= 0x80;
            check(&flipped, Some(start), "flipped");
        }
    }

    #[test]
    fn zeros_before_a_good_frame_are_damage() {
        let first = written(0, 0, b"hello");
        let holed = [&first[..30], &[0; 3], &written(0, 5, b"world")].concat();
        assert_eq!(parse(&holed).damaged_at, Some(0));
    }

    #[test]
    fn tail_bytes_continue_after_chunks() {
        let frames = vec![frame(0, 0, b"abc"), frame(0, 3, b"def"), frame(1, 0, b"xy"), frame(0, 8, b"gap")];
        let tail = Tail { frames, ..Tail::default() };
        assert_eq!(tail.bytes_from(0, 0), b"abcdef");
        assert_eq!(tail.bytes_from(0, 4), b"ef");
        assert_eq!(tail.bytes_from(0, 6), b"");
        assert_eq!(tail.bytes_from(1, 0), b"xy");
        assert_eq!(tail.bytes_from(2, 0), b"");
    }
}
