//! Bytes as frames of zstd, compressed or stored as they are, and the choice between the two.
//!
//! A wrap is one zstd stream. Short pieces are stored: compressed one by one they would hardly become smaller, and the
//! vault compresses them together. Long ones are compressed if that takes less time than writing them: memory for a
//! file that grows by gigabytes can be slower than the compressor.

use std::io;
use std::time::Duration;

/// The most bytes of a block.
pub(super) const BLOCK_BYTES_MAX: usize = 128 * 1024;
/// The bytes before each stored block.
pub(super) const BLOCK_HEAD_BYTES: usize = 3;
/// What follows the bytes of a lane in a stored frame: the head of a block, and LF.
pub(super) const STORED_END_BYTES: usize = BLOCK_HEAD_BYTES + 1;
/// What follows a compressed frame: LF in a stored one.
pub(super) const PACKED_END_BYTES: usize = FRAME_HEAD_BYTES + BLOCK_HEAD_BYTES + 1;

/// The bytes before the first block of a stored frame.
const FRAME_HEAD_BYTES: usize = 9;

/// The magic, and a descriptor: the size of the content follows in four bytes, and the window has that size.
const FRAME_BEGIN: [u8; 5] = [0x28, 0xb5, 0x2f, 0xfd, 0xa0];
/// The level of compression. Higher ones are slower than most disks.
const LEVEL: i32 = 1;
/// The other way is tried again after this many frames.
const FRAMES_BETWEEN_TRIALS: u32 = 32;

/// The place of a block in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockPlace {
    /// Another block follows.
    Inside,
    /// It is the last one.
    Last,
}

/// Returns the beginning of a stored block.
pub(super) fn block_head(len: usize, place: BlockPlace) -> [u8; BLOCK_HEAD_BYTES] {
    let len = u32::try_from(len).expect("a block has at most 128 KiB");
    let [low, middle, high, _] = (len << 3 | u32::from(place == BlockPlace::Last)).to_le_bytes();
    [low, middle, high]
}

/// Returns bytes as a stored frame.
pub(super) fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_HEAD_BYTES + BLOCK_HEAD_BYTES + bytes.len());
    frame.extend_from_slice(&frame_head(bytes.len()));
    let mut left = bytes.len();
    for block in bytes.chunks(BLOCK_BYTES_MAX) {
        left -= block.len();
        let place = if left == 0 { BlockPlace::Last } else { BlockPlace::Inside };
        frame.extend_from_slice(&block_head(block.len(), place));
        frame.extend_from_slice(block);
    }
    frame
}

/// Returns the beginning of a stored frame with a line, so many bytes, and LF: everything before the first of the bytes.
pub(super) fn stored_begin(line: &[u8], len: usize) -> Vec<u8> {
    let mut begin = frame_head(line.len() + len + 1).to_vec();
    begin.extend_from_slice(&block_head(line.len(), BlockPlace::Inside));
    begin.extend_from_slice(line);
    begin.extend_from_slice(&block_head(len.min(BLOCK_BYTES_MAX), BlockPlace::Inside));
    begin
}

/// Returns the end of such a frame, with LF.
pub(super) fn stored_end() -> [u8; STORED_END_BYTES] {
    let [low, middle, high] = block_head(1, BlockPlace::Last);
    [low, middle, high, b'\n']
}

fn frame_head(len: usize) -> [u8; FRAME_HEAD_BYTES] {
    let size = u32::try_from(len).expect("a frame is shorter than 4 GiB").to_le_bytes();
    let mut head = [0; FRAME_HEAD_BYTES];
    head[..FRAME_BEGIN.len()].copy_from_slice(&FRAME_BEGIN);
    head[FRAME_BEGIN.len()..].copy_from_slice(&size);
    head
}

/// Compresses bytes to frames, always in the same memory.
pub(super) struct FramePacker {
    compressor: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
}

impl FramePacker {
    /// Takes the memory of the compressor.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { compressor: zstd::bulk::Compressor::new(LEVEL)?, packed: Vec::new() })
    }

    /// Returns frames with a line, these bytes, and LF. Only the bytes are compressed.
    ///
    /// # Errors
    /// An error of zstd.
    pub(super) fn pack(&mut self, line: &[u8], bytes: &[u8]) -> io::Result<&[u8]> {
        let (line, end) = (stored(line), stored(b"\n"));
        let room = line.len() + zstd::zstd_safe::compress_bound(bytes.len()) + end.len();
        self.packed.resize(room.max(self.packed.len()), 0);
        self.packed[..line.len()].copy_from_slice(&line);
        let len = self.compressor.compress_to_buffer(bytes, &mut self.packed[line.len()..])?;
        let packed = line.len() + len;
        self.packed[packed..packed + end.len()].copy_from_slice(&end);
        Ok(&self.packed[..packed + end.len()])
    }
}

/// How long frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WayToWrite {
    Packed,
    Stored,
}

/// Measures both ways to write long frames, and names the faster one.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Nanoseconds per byte, smoothed.
    packed: Option<f64>,
    stored: Option<f64>,
    frames: u32,
}

impl Pace {
    /// Returns the way to write the next long frame.
    pub(super) fn way(&mut self) -> WayToWrite {
        self.frames = self.frames.wrapping_add(1);
        let faster = match (self.packed, self.stored) {
            (None, _) => return WayToWrite::Packed,
            (Some(_), None) => return WayToWrite::Stored,
            (Some(packed), Some(stored)) if packed <= stored => WayToWrite::Packed,
            (Some(_), Some(_)) => WayToWrite::Stored,
        };
        match (self.frames.is_multiple_of(FRAMES_BETWEEN_TRIALS), faster) {
            (false, way) => way,
            (true, WayToWrite::Packed) => WayToWrite::Stored,
            (true, WayToWrite::Stored) => WayToWrite::Packed,
        }
    }

    /// Takes the time that a frame took.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn measured(&mut self, way: WayToWrite, bytes: usize, took: Duration) {
        let now = took.as_nanos() as f64 / bytes.max(1) as f64;
        let before = match way {
            WayToWrite::Packed => &mut self.packed,
            WayToWrite::Stored => &mut self.stored,
        };
        // A single slow write, as when this thread did not run, says little.
        *before = Some(before.map_or(now, |before| before.mul_add(0.75, now.min(4.0 * before) * 0.25)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(frames: &[u8]) -> Vec<u8> {
        zstd::decode_all(frames).unwrap()
    }

    #[test]
    fn stored_frames_are_read_by_zstd() {
        for len in [1, 2, 255, 256, 65_791, 65_792, BLOCK_BYTES_MAX, BLOCK_BYTES_MAX + 1, 1_048_576] {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251).to_le_bytes()[0]).collect();
            assert!(unpacked(&stored(&bytes)) == bytes, "{len} bytes");
            assert!(unpacked(&stored(&bytes).repeat(3)) == bytes.repeat(3), "{len} bytes, three times");
        }
    }

    #[test]
    fn stored_frame_can_be_written_in_parts() {
        let bytes = vec![b'x'; BLOCK_BYTES_MAX + 7];
        let mut frame = stored_begin(b"line\n", bytes.len());
        frame.extend_from_slice(&bytes[..BLOCK_BYTES_MAX]);
        frame.extend_from_slice(&block_head(7, BlockPlace::Inside));
        frame.extend_from_slice(&bytes[BLOCK_BYTES_MAX..]);
        frame.extend_from_slice(&stored_end());
        assert!(unpacked(&frame) == [b"line\n", &bytes[..], b"\n"].concat());
    }

    #[test]
    fn packer_can_be_used_again() {
        let (zeros, mut again) = (vec![0; 300_000], FramePacker::new().unwrap());
        for bytes in [&b"first"[..], &zeros, &[], b"last"] {
            let frames = again.pack(b"line\n", bytes).unwrap();
            assert!(unpacked(frames) == [b"line\n", bytes, b"\n"].concat());
            assert!(frames.ends_with(&stored(b"\n")) && stored(b"\n").len() == PACKED_END_BYTES);
        }
        assert!(again.pack(b"line\n", &zeros).unwrap().len() < 100);
    }

    /// Returns how many of many frames are packed, if a byte takes so long each way.
    fn packed_of_1000(packed_ns: u64, stored_ns: u64) -> usize {
        let mut pace = Pace::default();
        let ways = (0..1000).map(|_| {
            let way = pace.way();
            let each = if way == WayToWrite::Packed { packed_ns } else { stored_ns };
            pace.measured(way, 1000, Duration::from_nanos(each * 1000));
            way
        });
        ways.filter(|way| *way == WayToWrite::Packed).count()
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_tried_again() {
        assert!((960..1000).contains(&packed_of_1000(1, 4)));
        assert!((1..40).contains(&packed_of_1000(4, 1)));
    }

    #[test]
    fn pace_follows_a_disk_that_becomes_slow() {
        let mut pace = Pace::default();
        for (stored, wanted) in [(1, WayToWrite::Stored), (8, WayToWrite::Packed)] {
            for _ in 0..300 {
                let way = pace.way();
                let each = if way == WayToWrite::Packed { 3 } else { stored };
                pace.measured(way, 1000, Duration::from_nanos(each * 1000));
            }
            let next: Vec<WayToWrite> = (0..8).map(|_| pace.way()).collect();
            assert!(next.iter().filter(|way| **way == wanted).count() >= 7, "{wanted:?}: {next:?}");
        }
    }
}
