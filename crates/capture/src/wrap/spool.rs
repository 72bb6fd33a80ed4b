//! Writes the file of a wrapped command, append only: `docs/format/wrap.md`.
//!
//! The file is one zstd stream, and `pack` decides what is compressed. It is read while it is written, so bytes are
//! never taken back. If a write fails in the middle of a frame, the rest of the frame is kept in memory and written first
//! as soon as possible. Bytes that come meanwhile are counted, and the count is written before the next frame.

use std::any::Any;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use steno_disk::DiskFile;
use steno_model::Timestamp;
use steno_model::wrap::{LostBytes, ProcessEnd, WrapControl, WrapHeader, WrapLane};

use super::pack::{
    BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, BlockPlace, FramePacker, PACKED_END_BYTES, Pace, STORED_END_BYTES,
    WayToWrite, block_head, stored, stored_begin, stored_end,
};

/// Frames up to this size are written by one call.
const SMALL_FRAME_BYTES: usize = 4096;
/// Frames of this size or more are written in the faster way.
const LONG_FRAME_BYTES: usize = 32 * 1024;

/// From this length on, space is reserved in steps of this many bytes, each time when less than this is left.
const RESERVE_FROM: u64 = 4 * 1024 * 1024;
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;
const RESERVE_AHEAD: u64 = 1024 * 1024;

/// Permission to write, as long as it exists.
pub type RecordingPermit = Box<dyn Any + Send>;

/// What a spool needs from the store.
pub trait SpoolHost: Send {
    /// Returns a permission to write; `None` while recording is paused.
    fn enter(&self) -> Option<RecordingPermit>;

    /// Frees the space that was reserved for the last lines of the file.
    fn free_reserve(&mut self);
}

/// The counts of a spool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolReport {
    /// How many bytes are in the file, of all lanes.
    pub written: u64,
    /// How many bytes were forwarded and are not in the file.
    pub lost: u64,
    /// The error of the first write that failed.
    pub error: Option<String>,
    /// Whether the end of the command, or a count of lost bytes, could not be written.
    pub is_untold: bool,
}

/// The bytes of a lane that are lost and not yet noted.
#[derive(Clone, Debug)]
struct Loss {
    bytes: u64,
    why: &'static str,
    error: Option<String>,
    since: Timestamp,
}

/// A frame that is being written.
struct OpenFrame<'a> {
    lane: WrapLane,
    time: &'a Timestamp,
    way: WayToWrite,
    begun: Instant,
}

/// The last frame, of which a part may still have to be written.
#[derive(Clone, Copy)]
struct LastFrame {
    /// How many bytes of a lane it has; 0 for a note.
    bytes: usize,
    /// How many bytes follow them in the file.
    end_bytes: usize,
    way: WayToWrite,
}

impl LastFrame {
    const NOTE: Self = Self { bytes: 0, end_bytes: 0, way: WayToWrite::Stored };

    /// Returns how many of its bytes cannot be read for certain if so many bytes of the file are missing.
    fn unreadable(&self, missing: usize) -> usize {
        let missing = missing.saturating_sub(self.end_bytes);
        match self.way {
            WayToWrite::Packed if missing > 0 => self.bytes,
            WayToWrite::Packed => 0,
            WayToWrite::Stored => {
                let (mut missing, mut unreadable, mut before) = (missing, 0, self.bytes);
                while missing > 0 && before > 0 {
                    let block = (before - 1) % BLOCK_BYTES_MAX + 1;
                    unreadable += missing.min(block);
                    missing = missing.saturating_sub(block + BLOCK_HEAD_BYTES);
                    before -= block;
                }
                unreadable
            }
        }
    }
}

/// Writes the frames of a wrapped command.
pub struct SpoolWriter {
    file: Arc<dyn DiskFile>,
    host: Box<dyn SpoolHost>,
    /// What has to be written before anything else.
    rest: Vec<u8>,
    last_frame: LastFrame,
    losses: [Option<Loss>; 3],
    /// Whether bytes can be moved from a pipe to the file.
    can_move: bool,
    pace: Pace,
    packer: Option<FramePacker>,
    /// Bytes from a pipe.
    buffer: Vec<u8>,
    /// The length of the file.
    len: u64,
    /// The offset up to which space is reserved.
    reserved: u64,
    report: SpoolReport,
}

impl SpoolWriter {
    /// Writes the header of a new file.
    ///
    /// # Errors
    /// An I/O error. The file may then have a part of the header.
    pub fn begin(file: Arc<dyn DiskFile>, host: Box<dyn SpoolHost>, header: &WrapHeader) -> io::Result<Self> {
        let header = stored(&header.to_bytes());
        steno_disk::append_all(&*file, &header)?;
        Ok(Self {
            file,
            host,
            rest: Vec::new(),
            last_frame: LastFrame::NOTE,
            losses: Default::default(),
            can_move: true,
            pace: Pace::default(),
            packer: FramePacker::new().ok(),
            buffer: Vec::new(),
            len: header.len() as u64,
            reserved: RESERVE_FROM,
            report: SpoolReport::default(),
        })
    }

    /// Writes bytes of a lane, or counts them as lost.
    pub fn frame(&mut self, lane: WrapLane, time: &Timestamp, bytes: &[u8]) {
        let Some(_permit) = self.host.enter() else {
            return self.lose(lane, time, bytes.len() as u64, "paused");
        };
        let frame = self.open_frame(lane, time, bytes.len());
        self.frame_or_lose(&frame, bytes);
    }

    /// Writes bytes of a lane that are in a pipe, or counts them as lost. All of them are taken from the pipe.
    pub fn piped_frame(&mut self, lane: WrapLane, time: &Timestamp, pipe: BorrowedFd<'_>, len: usize) {
        let permit = self.host.enter();
        let frame = self.open_frame(lane, time, len);
        if permit.is_some()
            && self.can_move
            && frame.way == WayToWrite::Stored
            && self.begin_piped_frame(&frame, len)
        {
            self.move_blocks(pipe, len);
            return self.finish_frame(&frame, len, STORED_END_BYTES);
        }
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.resize(len.max(bytes.len()), 0);
        let read = read_from(pipe, &mut bytes[..len]);
        if permit.is_some() {
            self.frame_or_lose(&frame, &bytes[..read]);
        } else {
            self.lose(lane, time, len as u64, "paused");
        }
        self.buffer = bytes;
    }

    fn open_frame<'a>(&mut self, lane: WrapLane, time: &'a Timestamp, len: usize) -> OpenFrame<'a> {
        let can_pack = len >= LONG_FRAME_BYTES && self.packer.is_some();
        let way = if can_pack { self.pace.way() } else { WayToWrite::Stored };
        OpenFrame { lane, time, way, begun: Instant::now() }
    }

    fn frame_or_lose(&mut self, frame: &OpenFrame<'_>, bytes: &[u8]) {
        if let Err(error) = self.write_frame(frame, bytes) {
            self.report.error.get_or_insert_with(|| error.to_string());
            self.lose(frame.lane, frame.time, bytes.len() as u64, "not_written");
            if let Some(loss) = &mut self.losses[frame.lane as usize] {
                loss.error.get_or_insert_with(|| error.to_string());
            }
        }
    }

    fn write_frame(&mut self, frame: &OpenFrame<'_>, bytes: &[u8]) -> io::Result<()> {
        self.catch_up()?;
        let mut head = WrapControl::Frame { lane: frame.lane, len: bytes.len() as u64 }.to_bytes(frame.time);
        let end_bytes = match frame.way {
            WayToWrite::Packed => self.put_packed(&head, bytes)?,
            WayToWrite::Stored if bytes.len() <= SMALL_FRAME_BYTES => {
                head.extend_from_slice(bytes);
                head.push(b'\n');
                self.put(&stored(&head))?;
                1
            }
            WayToWrite::Stored => self.put_stored(&head, bytes)?,
        };
        self.finish_frame(frame, bytes.len(), end_bytes);
        Ok(())
    }

    /// Counts a frame whose bytes are written, or will be before all others.
    fn finish_frame(&mut self, frame: &OpenFrame<'_>, bytes: usize, end_bytes: usize) {
        self.report.written += bytes as u64;
        self.last_frame = LastFrame { bytes, end_bytes, way: frame.way };
        if bytes >= LONG_FRAME_BYTES && self.rest.is_empty() {
            self.pace.measured(frame.way, bytes, frame.begun.elapsed());
        }
    }

    /// Writes a compressed frame. Returns how many bytes follow those of the lane.
    fn put_packed(&mut self, head: &[u8], bytes: &[u8]) -> io::Result<usize> {
        let mut packer = self.packer.take();
        let frames = packer.as_mut().ok_or(io::ErrorKind::Unsupported)?.pack(head, bytes);
        let outcome = frames.and_then(|frames| self.put(frames));
        self.packer = packer;
        outcome.map(|()| PACKED_END_BYTES)
    }

    /// Writes a stored frame. Returns how many bytes follow those of the lane.
    fn put_stored(&mut self, head: &[u8], bytes: &[u8]) -> io::Result<usize> {
        let begin = stored_begin(head, bytes.len());
        let blocks: Vec<_> = bytes.chunks(BLOCK_BYTES_MAX).collect();
        let heads: Vec<_> = blocks.iter().map(|block| block_head(block.len(), BlockPlace::Inside)).collect();
        let mut parts = vec![&begin[..]];
        for (number, block) in blocks.iter().enumerate() {
            if number > 0 {
                parts.push(&heads[number]);
            }
            parts.push(block);
        }
        let end = stored_end();
        parts.push(&end);
        self.put_parts(&parts).map(|()| STORED_END_BYTES)
    }

    /// Writes the beginning of a frame; false if nothing of it could be written.
    fn begin_piped_frame(&mut self, frame: &OpenFrame<'_>, len: usize) -> bool {
        if self.catch_up().is_err() {
            return false;
        }
        let head = WrapControl::Frame { lane: frame.lane, len: len as u64 }.to_bytes(frame.time);
        self.put(&stored_begin(&head, len)).is_ok()
    }

    /// Moves the blocks of a frame that has begun from a pipe to the file. What cannot be written is kept.
    fn move_blocks(&mut self, pipe: BorrowedFd<'_>, len: usize) {
        let mut left = len;
        while left > 0 {
            let block = left.min(BLOCK_BYTES_MAX);
            if left < len {
                self.put_or_keep(&block_head(block, BlockPlace::Inside));
            }
            let moved = self.move_from(pipe, block);
            if moved < block {
                let mut bytes = vec![0; block - moved];
                let read = read_from(pipe, &mut bytes);
                self.rest.extend_from_slice(&bytes[..read]);
            }
            left -= block;
        }
        self.put_or_keep(&stored_end());
    }

    /// Moves bytes from a pipe to the file; returns how many.
    fn move_from(&mut self, pipe: BorrowedFd<'_>, len: usize) -> usize {
        let mut moved = 0;
        // If something has to be written first, these bytes wait in memory too.
        while moved < len && self.rest.is_empty() {
            match self.file.append_from_pipe(pipe, len - moved) {
                Ok(0) => break,
                Ok(count) => {
                    moved += count;
                    self.len += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.can_move &= error.kind() != io::ErrorKind::Unsupported;
                    if self.can_move {
                        self.report.error.get_or_insert_with(|| error.to_string());
                    }
                    break;
                }
            }
        }
        moved
    }

    /// Counts bytes that are not written.
    pub fn lose(&mut self, lane: WrapLane, time: &Timestamp, bytes: u64, why: &'static str) {
        self.report.lost += bytes;
        let loss = self.losses[lane as usize].get_or_insert_with(|| Loss {
            bytes: 0,
            why,
            error: None,
            since: time.clone(),
        });
        loss.bytes += bytes;
    }

    /// Writes a note about a lane.
    pub fn note(&mut self, note: &WrapControl, time: &Timestamp) {
        let Some(_permit) = self.host.enter() else { return };
        if self.catch_up().is_ok() {
            self.last_frame = LastFrame::NOTE;
            self.put(&stored(&note.to_bytes(time))).ok();
        }
    }

    /// Writes how the command ended, and returns the counts.
    pub fn end(mut self, end: ProcessEnd, time: &Timestamp) -> SpoolReport {
        let permit = self.host.enter();
        let mut note = Some(stored(&WrapControl::Ended(end).to_bytes(time)));
        // Counts of lost bytes and the end are written even during a pause: they have no content.
        let is_allowed = self.rest.is_empty() || permit.is_some();
        let mut is_told = is_allowed && self.conclude(&mut note).is_ok();
        if is_allowed && !is_told {
            self.host.free_reserve();
            is_told = self.conclude(&mut note).is_ok();
        }
        if self.reserved > RESERVE_FROM {
            // This frees the space reserved after the end. If it fails, the space is freed when the file is deleted.
            self.file.truncate(self.len).ok();
        }
        self.report.is_untold = !is_told || self.losses.iter().any(Option::is_some);
        let torn = self.last_frame.unreadable(self.rest.len()) as u64;
        self.report.written -= torn;
        self.report.lost += torn;
        self.report
    }

    /// Leaves the file as it is, without the end of the command.
    #[must_use]
    pub fn abandon(self) -> SpoolReport {
        SpoolReport { is_untold: true, ..self.report }
    }

    /// Writes everything that is left, and then the last note. The note is taken from its slot when its writing begins.
    fn conclude(&mut self, note: &mut Option<Vec<u8>>) -> io::Result<()> {
        self.catch_up()?;
        if let Some(bytes) = note {
            self.last_frame = LastFrame::NOTE;
            self.put(bytes)?;
            *note = None;
        }
        self.finish_rest()
    }

    /// Reserves space for a long file, which makes writing several times faster on some file systems.
    fn reserve(&mut self) {
        if self.len + RESERVE_AHEAD > self.reserved && self.reserved < u64::MAX && self.len > RESERVE_FROM {
            let from = self.reserved.max(self.len);
            let is_reserved = self.file.reserve(from, RESERVE_BYTES).is_ok();
            self.reserved = if is_reserved { from + RESERVE_BYTES } else { u64::MAX };
        }
    }

    /// Writes the rest of a frame and the counts of lost bytes.
    fn catch_up(&mut self) -> io::Result<()> {
        self.reserve();
        self.finish_rest()?;
        for lane in WrapLane::ALL {
            let Some(loss) = self.losses[lane as usize].take() else { continue };
            let Loss { bytes, why, error, since } = loss.clone();
            let error = error.as_deref().map(Into::into);
            let note = WrapControl::Lost(LostBytes { lane, bytes, why: why.into(), error });
            self.last_frame = LastFrame::NOTE;
            if let Err(error) = self.put(&stored(&note.to_bytes(&since))) {
                self.losses[lane as usize] = Some(loss);
                return Err(error);
            }
        }
        Ok(())
    }

    fn finish_rest(&mut self) -> io::Result<()> {
        while !self.rest.is_empty() {
            let written = write_some(&*self.file, &self.rest)?;
            self.len += written as u64;
            self.rest.drain(..written);
        }
        Ok(())
    }

    /// Writes bytes. If only a part could be written, this succeeds too: the rest is kept and written later.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put_parts(&[bytes])
    }

    /// Writes bytes of a frame that has begun, or keeps them.
    fn put_or_keep(&mut self, bytes: &[u8]) {
        if let Err(error) = self.put(bytes) {
            self.report.error.get_or_insert_with(|| error.to_string());
            self.rest.extend_from_slice(bytes);
        }
    }

    fn put_parts(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.finish_rest()?;
        let mut is_begun = false;
        for (number, part) in parts.iter().enumerate() {
            let mut part = *part;
            while !part.is_empty() {
                match write_some(&*self.file, part) {
                    Ok(written) => {
                        is_begun = true;
                        self.len += written as u64;
                        part = &part[written..];
                    }
                    Err(error) if !is_begun => return Err(error),
                    Err(error) => {
                        self.report.error.get_or_insert_with(|| error.to_string());
                        self.rest.extend_from_slice(part);
                        parts[number + 1..].iter().for_each(|part| self.rest.extend_from_slice(part));
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Takes bytes from a pipe that has them; returns how many.
fn read_from(pipe: BorrowedFd<'_>, into: &mut [u8]) -> usize {
    let mut read = 0;
    while read < into.len() {
        match rustix::io::read(pipe, &mut into[read..]) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    read
}

/// Writes at least one byte.
fn write_some(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => return written,
        }
    }
}
