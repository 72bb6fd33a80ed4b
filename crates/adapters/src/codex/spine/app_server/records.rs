//! The records made from a connection, each with the thread whose spine it goes to.

use std::collections::HashSet;

use steno_model::json::RawJson;
use steno_model::{Lane, Position, SpineType, ThreadId, Timestamp};

use super::SpineMade;

/// How many messages, and how many bytes, wait for the first thread.
const WAITING_MAX: usize = 1000;
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// A line in the record of a connection. A record that is made later still names the line it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePlace {
    /// Where it begins.
    pub offset: u64,
    /// Its length in bytes, without the newline.
    pub length: u64,
}

/// Makes records at the current line of the connection's record.
#[derive(Debug)]
pub(super) struct SpineRecords {
    /// The thread for messages when there is no other.
    fallback: ThreadId,
    /// The first thread.
    root: Option<ThreadId>,
    waiting: Vec<SpineMade>,
    waiting_bytes: usize,
    /// The threads whose spines have records, in the order in which they began.
    written: HashSet<ThreadId>,
    written_in_order: Vec<ThreadId>,
    made: Vec<(ThreadId, SpineMade)>,
    at: Option<At>,
}

#[derive(Clone, Debug)]
struct At {
    time: Timestamp,
    place: LinePlace,
    parts: u32,
}

impl SpineRecords {
    pub(super) fn new(fallback: ThreadId) -> Self {
        Self {
            fallback,
            root: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            written: HashSet::new(),
            written_in_order: Vec::new(),
            made: Vec::new(),
            at: None,
        }
    }

    /// Moves to a line of the record. Records made from it before count as its parts.
    pub(super) fn begin_at(&mut self, time: &Timestamp, place: LinePlace) {
        let here = self.at.as_ref().filter(|at| at.place == place);
        let parts = here.map_or(0, |at| at.parts);
        self.at = Some(At { time: time.clone(), place, parts });
    }

    /// Makes a record in the spine of every thread. If there is none, the record waits for the first.
    pub(super) fn make_everywhere(&mut self, event: &RawJson) {
        if self.written.is_empty() {
            self.keep(None, Lane::FromAgent, event.clone());
        }
        for thread in self.written_in_order.clone() {
            self.make(&thread, SpineType::Event, event.clone());
        }
    }

    /// Returns the records since the last call.
    pub(super) fn take(&mut self) -> Vec<(ThreadId, SpineMade)> {
        std::mem::take(&mut self.made)
    }

    /// Returns the records since the last call, and those that still wait for a thread.
    pub(super) fn finish(&mut self) -> Vec<(ThreadId, SpineMade)> {
        self.begin(&self.fallback.clone());
        self.take()
    }

    /// Sets the first thread, unless there is one, and makes the records of the messages that waited for it.
    pub(super) fn begin(&mut self, thread: &ThreadId) {
        if self.root.is_some() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.wrote(thread);
        }
        self.made.extend(waiting.into_iter().map(|made| (thread.clone(), made)));
        self.root = Some(thread.clone());
    }

    /// Makes the record of a message. One that names no thread goes to the first thread, and waits until there is one.
    pub(super) fn keep(&mut self, thread: Option<&ThreadId>, lane: Lane, payload: RawJson) {
        let record_type = match lane {
            Lane::ToAgent => SpineType::Submission,
            Lane::FromAgent => SpineType::Event,
        };
        if let Some(thread) = thread.cloned().or_else(|| self.root.clone()) {
            self.begin(&thread);
            return self.make(&thread, record_type, payload);
        }
        let Some(made) = self.next(record_type, payload) else { return };
        self.waiting_bytes += made.payload.as_str().len();
        self.waiting.push(made);
        if self.waiting.len() > WAITING_MAX || self.waiting_bytes > WAITING_BYTES_MAX {
            self.begin(&self.fallback.clone());
        }
    }

    /// Makes a record in the spine of a thread.
    pub(super) fn make(&mut self, thread: &ThreadId, record_type: SpineType, payload: RawJson) {
        if let Some(made) = self.next(record_type, payload) {
            self.wrote(thread);
            self.made.push((thread.clone(), made));
        }
    }

    fn wrote(&mut self, thread: &ThreadId) {
        if !self.written.contains(thread) {
            self.written.insert(thread.clone());
            self.written_in_order.push(thread.clone());
        }
    }

    fn next(&mut self, record_type: SpineType, payload: RawJson) -> Option<SpineMade> {
        let at = self.at.as_mut()?;
        let LinePlace { offset, length } = at.place;
        let position = Position { generation: 0, offset, part: at.parts };
        at.parts += 1;
        Some(SpineMade { record_type, timestamp: at.time.clone(), payload, position, length })
    }
}
