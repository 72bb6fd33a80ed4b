//! Writes the file of a wrapped command, append only: `docs/format/wrap.md`.
//!
//! The file is read while it is written, so bytes are never taken back. If a write fails in the middle of a frame, the
//! rest of the frame is kept in memory and written first as soon as possible. Bytes that come meanwhile are counted, and
//! the count is written before the next frame.

use std::any::Any;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use steno_disk::DiskFile;
use steno_model::Timestamp;
use steno_model::wrap::{LostBytes, ProcessEnd, WrapControl, WrapHeader, WrapLane};

/// Frames up to this size are written by one call.
const SMALL_FRAME_BYTES: usize = 4096;

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

/// Writes the frames of a wrapped command.
pub struct SpoolWriter {
    file: Arc<dyn DiskFile>,
    host: Box<dyn SpoolHost>,
    /// What has to be written before anything else.
    rest: Vec<u8>,
    /// How many bytes the unfinished frame has; 0 for a note.
    rest_frame_bytes: usize,
    losses: [Option<Loss>; 3],
    /// Whether bytes can be moved from a pipe to the file.
    can_move: bool,
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
        let header = header.to_bytes();
        steno_disk::append_all(&*file, &header)?;
        let (len, reserved) = (header.len() as u64, RESERVE_FROM);
        let (losses, report) = (Default::default(), SpoolReport::default());
        Ok(Self {
            file,
            host,
            rest: Vec::new(),
            rest_frame_bytes: 0,
            losses,
            can_move: true,
            len,
            reserved,
            report,
        })
    }

    /// Writes bytes of a lane, or counts them as lost.
    pub fn frame(&mut self, lane: WrapLane, time: &Timestamp, bytes: &[u8]) {
        let Some(_permit) = self.host.enter() else {
            return self.lose(lane, time, bytes.len() as u64, "paused");
        };
        self.frame_or_lose(lane, time, bytes);
    }

    fn frame_or_lose(&mut self, lane: WrapLane, time: &Timestamp, bytes: &[u8]) {
        if let Err(error) = self.write_frame(lane, time, bytes) {
            self.report.error.get_or_insert_with(|| error.to_string());
            self.lose(lane, time, bytes.len() as u64, "not_written");
            if let Some(loss) = &mut self.losses[lane as usize] {
                loss.error.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Writes bytes of a lane that are in a pipe, or counts them as lost. All of them are taken from the pipe.
    pub fn piped_frame(&mut self, lane: WrapLane, time: &Timestamp, pipe: BorrowedFd<'_>, len: usize) {
        let permit = self.host.enter();
        let begun = permit.is_some() && self.begin_piped_frame(lane, time, len);
        let moved = if begun { self.move_from(pipe, len) } else { 0 };
        if moved == len && begun {
            self.report.written += len as u64;
            self.rest_frame_bytes = 0;
            if self.put(b"\n").is_err() {
                self.rest.push(b'\n');
            }
            return;
        }
        let left = read_from(pipe, len - moved);
        match (begun, permit) {
            (true, _) => {
                self.rest.extend_from_slice(&left);
                self.rest.push(b'\n');
                self.rest_frame_bytes = len;
                self.report.written += len as u64;
                // If this fails, it is tried again before the next frame.
                self.finish_rest().ok();
            }
            (false, Some(_permit)) => self.frame_or_lose(lane, time, &left),
            (false, None) => self.lose(lane, time, len as u64, "paused"),
        }
    }

    /// Writes the first line of a frame; false if it could not be written, or only a part of it.
    fn begin_piped_frame(&mut self, lane: WrapLane, time: &Timestamp, len: usize) -> bool {
        if !self.can_move || self.catch_up().is_err() {
            return false;
        }
        let head = WrapControl::Frame { lane, len: len as u64 }.to_bytes(time);
        self.put(&head).is_ok()
    }

    /// Moves bytes from a pipe to the file; returns how many.
    fn move_from(&mut self, pipe: BorrowedFd<'_>, len: usize) -> usize {
        let mut moved = 0;
        // A part of the first line may have to be written first.
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
            self.put(&note.to_bytes(time)).ok();
        }
    }

    /// Writes how the command ended, and returns the counts.
    pub fn end(mut self, end: ProcessEnd, time: &Timestamp) -> SpoolReport {
        let permit = self.host.enter();
        let mut note = Some(WrapControl::Ended(end).to_bytes(time));
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
        let torn = self.rest.len().saturating_sub(1).min(self.rest_frame_bytes) as u64;
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
            self.put(bytes)?;
            *note = None;
        }
        self.finish_rest()
    }

    fn write_frame(&mut self, lane: WrapLane, time: &Timestamp, bytes: &[u8]) -> io::Result<()> {
        self.catch_up()?;
        let mut head = WrapControl::Frame { lane, len: bytes.len() as u64 }.to_bytes(time);
        if bytes.len() <= SMALL_FRAME_BYTES {
            head.extend_from_slice(bytes);
            head.push(b'\n');
            self.put(&head)?;
        } else {
            self.put_parts(&[&head, bytes, b"\n"])?;
        }
        self.report.written += bytes.len() as u64;
        self.rest_frame_bytes = bytes.len();
        Ok(())
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
            self.rest_frame_bytes = 0;
            if let Err(error) = self.put(&note.to_bytes(&since)) {
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

/// Takes bytes from a pipe that has them.
fn read_from(pipe: BorrowedFd<'_>, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut read = 0;
    while read < len {
        match rustix::io::read(pipe, &mut bytes[read..]) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    bytes.truncate(read);
    bytes
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
