//! The queue between forwarders and the thread that writes the file.

use std::collections::VecDeque;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use steno_model::Timestamp;
use steno_model::wrap::{ProcessEnd, WrapControl, WrapLane};

use super::spool::{SpoolReport, SpoolWriter};

/// How many bytes may wait to be written.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long a forwarder waits for room. After that, bytes are only counted until half of the queue is written.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The most bytes of pieces that become one frame.
const FRAME_BYTES_MAX: usize = 256 * 1024;
/// How far apart the times of such pieces may be.
const TIME_APART_MAX: Duration = Duration::from_millis(100);
/// If fewer bytes than this wait, the writer waits a moment for more.
const LITTLE_BYTES: usize = 64 * 1024;
const LITTLE_WAIT: Duration = Duration::from_millis(2);
/// How many buffers are kept for use again: as many as may wait when they are full. New memory costs more than a copy.
const BUFFERS_MAX: usize = WAITING_BYTES_MAX / FRAME_BYTES_MAX;

struct Chunk {
    time: jiff::Timestamp,
    content: ChunkContent,
}

enum ChunkContent {
    /// Bytes of a lane: the first N of a buffer.
    Bytes(WrapLane, FilledBuffer),
    /// Bytes of a lane that wait in a pipe.
    #[cfg(target_os = "linux")]
    Piped(WrapLane, Arc<OwnedFd>, usize),
    /// Bytes that were only counted, and why.
    Lost(WrapLane, u64, &'static str),
    Closed(WrapLane),
    LeftOpen(WrapLane),
    Ended(ProcessEnd),
}

/// A buffer that is used again without clearing it: filling it with zeros would take as long as copying.
struct FilledBuffer {
    buffer: Vec<u8>,
    len: usize,
}

impl FilledBuffer {
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end > self.buffer.len() {
            self.buffer.resize(end.next_power_of_two(), 0);
        }
        self.buffer[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }
}

#[derive(Default)]
struct QueueState {
    chunks: VecDeque<Chunk>,
    /// The bytes that wait in memory.
    bytes: usize,
    /// All bytes that wait.
    bytes_all: usize,
    /// Whether forwarders do not wait for room any more.
    is_behind: bool,
    /// Whether the command has ended.
    is_ended: bool,
    /// Whether all bytes are dropped.
    is_discarded: bool,
    buffers: Vec<Vec<u8>>,
}

impl QueueState {
    fn keep(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS_MAX && buffer.len() >= FRAME_BYTES_MAX {
            self.buffers.push(buffer);
        }
    }

    /// Counts bytes that are not kept.
    fn lose(&mut self, lane: WrapLane, time: jiff::Timestamp, len: u64, why: &'static str) {
        match self.chunks.back_mut().map(|last| &mut last.content) {
            Some(ChunkContent::Lost(last, count, reason)) if (*last, *reason) == (lane, why) => *count += len,
            Some(_) | None => {
                self.chunks.push_back(Chunk { time, content: ChunkContent::Lost(lane, len, why) });
            }
        }
    }

    /// Returns the last chunk if bytes of its lane can be added to it. Few large frames are written faster than many small
    /// ones.
    fn last_of(&mut self, lane: WrapLane, time: jiff::Timestamp, len: usize) -> Option<&mut ChunkContent> {
        let last = self.chunks.back_mut()?;
        let (last_lane, last_len) = match &last.content {
            ChunkContent::Bytes(lane, bytes) => (*lane, bytes.len),
            #[cfg(target_os = "linux")]
            ChunkContent::Piped(lane, _, len) => (*lane, *len),
            ChunkContent::Lost(lane, ..) => (*lane, 0),
            ChunkContent::Closed(_) | ChunkContent::LeftOpen(_) | ChunkContent::Ended(_) => return None,
        };
        let apart = time.duration_since(last.time).unsigned_abs();
        let fits = last_lane == lane && last_len + len <= FRAME_BYTES_MAX && apart < TIME_APART_MAX;
        fits.then_some(&mut last.content)
    }
}

/// Tells whether recording is paused.
type PauseCheck = Box<dyn Fn() -> bool + Send + Sync>;

#[derive(Default)]
struct Shared {
    state: Mutex<QueueState>,
    pause: OnceLock<PauseCheck>,
    has_chunks: Condvar,
    has_room: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // The state is valid after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the bytes that forwarders have forwarded.
#[derive(Clone, Default)]
pub struct SpoolQueue {
    shared: Arc<Shared>,
}

impl SpoolQueue {
    /// Sends bytes of a lane: the buffer itself, or a copy of a short piece. The buffer can be used again.
    pub(super) fn send(&self, lane: WrapLane, buffer: &mut Vec<u8>, len: usize) {
        let time = jiff::Timestamp::now();
        let is_paused = self.is_paused();
        let mut state = self.wait_for_room(len);
        if state.is_discarded {
            return;
        }
        if is_paused || state.is_behind {
            let why = if is_paused { "paused" } else { "behind" };
            state.lose(lane, time, len as u64, why);
        } else {
            state.bytes += len;
            state.bytes_all += len;
            if let Some(ChunkContent::Bytes(_, last)) = state.last_of(lane, time, len) {
                last.push(&buffer[..len]);
            } else {
                let is_short = len < buffer.len() / 4;
                // With a buffer in reserve a short piece gets a large one, to which the next pieces are added.
                let filled = if is_short && state.buffers.is_empty() {
                    buffer[..len].to_vec()
                } else {
                    std::mem::replace(buffer, state.buffers.pop().unwrap_or_default())
                };
                let bytes = FilledBuffer { buffer: filled, len };
                state.chunks.push_back(Chunk { time, content: ChunkContent::Bytes(lane, bytes) });
            }
        }
        drop(state);
        self.shared.has_chunks.notify_one();
    }

    /// Sets the function that tells whether recording is paused. It is called when bytes are forwarded, not when they are
    /// written.
    pub fn watch_pause(&self, check: impl Fn() -> bool + Send + Sync + 'static) {
        self.shared.pause.set(Box::new(check)).ok();
    }

    /// Tells whether recording is paused now.
    pub(super) fn is_paused(&self) -> bool {
        self.shared.pause.get().is_some_and(|check| check())
    }

    /// Says that bytes of a lane are in a pipe.
    #[cfg(target_os = "linux")]
    pub(super) fn send_piped(&self, lane: WrapLane, pipe: &Arc<OwnedFd>, len: usize) {
        let time = jiff::Timestamp::now();
        let mut state = self.shared.lock();
        if state.is_discarded {
            // They stay in the pipe. When it is full, further bytes are copied and dropped.
            return;
        }
        state.bytes_all += len;
        match state.last_of(lane, time, len) {
            Some(ChunkContent::Piped(_, last, count)) if Arc::ptr_eq(last, pipe) => *count += len,
            Some(_) | None => {
                let content = ChunkContent::Piped(lane, Arc::clone(pipe), len);
                state.chunks.push_back(Chunk { time, content });
            }
        }
        drop(state);
        self.shared.has_chunks.notify_one();
    }

    /// Notes that a lane has ended.
    pub(super) fn close(&self, lane: WrapLane) {
        self.put(ChunkContent::Closed(lane));
    }

    /// Says that others than the command may still write to a lane, and that nobody records it any more.
    pub(super) fn leave_open(&self, lane: WrapLane) {
        self.put(ChunkContent::LeftOpen(lane));
    }

    fn put(&self, content: ChunkContent) {
        let mut state = self.shared.lock();
        if state.is_discarded {
            return;
        }
        state.is_ended |= matches!(content, ChunkContent::Ended(_));
        state.chunks.push_back(Chunk { time: jiff::Timestamp::now(), content });
        drop(state);
        self.shared.has_chunks.notify_one();
    }

    /// Waits for room, unless forwarders have stopped waiting because the disk is too slow.
    fn wait_for_room(&self, len: usize) -> MutexGuard<'_, QueueState> {
        let mut state = self.shared.lock();
        let is_full = |state: &mut QueueState| state.bytes + len > WAITING_BYTES_MAX && !state.is_discarded;
        if !state.is_behind && is_full(&mut state) {
            let waited = self.shared.has_room.wait_timeout_while(state, WAIT_MAX, is_full);
            let (waited, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
            state = waited;
            state.is_behind |= outcome.timed_out();
        }
        state
    }

    /// Drops everything from now on. The writer ends without a note about the end of the command.
    pub fn discard(&self) {
        let mut state = self.shared.lock();
        state.is_discarded = true;
        (state.bytes, state.bytes_all) = (0, 0);
        state.chunks.clear();
        drop(state);
        self.shared.has_room.notify_all();
        self.shared.has_chunks.notify_all();
    }

    /// Notes how the command ended. Nothing may be sent afterwards.
    pub fn end(&self, end: ProcessEnd) {
        self.put(ChunkContent::Ended(end));
    }

    /// Writes until the command has ended. Returns the counts.
    #[must_use]
    pub fn write(&self, mut writer: SpoolWriter) -> SpoolReport {
        loop {
            let Some(Chunk { time, content }) = self.next() else { return writer.abandon() };
            let time = Timestamp::from_instant(time);
            match content {
                ChunkContent::Bytes(lane, FilledBuffer { buffer, len }) => {
                    writer.frame(lane, &time, &buffer[..len]);
                    self.written(len, Some(buffer));
                }
                #[cfg(target_os = "linux")]
                ChunkContent::Piped(lane, pipe, len) => {
                    writer.piped_frame(lane, &time, pipe.as_fd(), len);
                    self.written(len, None);
                }
                ChunkContent::Lost(lane, bytes, why) => writer.lose(lane, &time, bytes, why),
                ChunkContent::Closed(lane) => writer.note(&WrapControl::Closed(lane), &time),
                ChunkContent::LeftOpen(lane) => writer.note(&WrapControl::LeftOpen(lane), &time),
                ChunkContent::Ended(end) => return writer.end(end, &time),
            }
        }
    }

    /// Waits for the next chunk, and a moment longer if it is small; `None` if there will be none.
    fn next(&self) -> Option<Chunk> {
        let state = self
            .shared
            .has_chunks
            .wait_while(self.shared.lock(), |state| state.chunks.is_empty() && !state.is_discarded);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let is_little =
            |state: &mut QueueState| state.bytes_all < LITTLE_BYTES && !state.is_ended && !state.is_discarded;
        let waited = self.shared.has_chunks.wait_timeout_while(state, LITTLE_WAIT, is_little);
        waited.unwrap_or_else(PoisonError::into_inner).0.chunks.pop_front()
    }

    fn written(&self, len: usize, buffer: Option<Vec<u8>>) {
        let mut state = self.shared.lock();
        if state.is_discarded {
            return;
        }
        state.bytes_all -= len;
        if let Some(buffer) = buffer {
            state.bytes -= len;
            state.keep(buffer);
        }
        state.is_behind &= state.bytes > WAITING_BYTES_MAX / 2;
        drop(state);
        self.shared.has_room.notify_all();
    }
}
