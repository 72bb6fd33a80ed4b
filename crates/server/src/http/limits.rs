//! How much is served at once, and how long requests may take.

use std::time::Duration;

/// The limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections are open at once. A new one then waits, or replaces one without the token.
    pub connections: usize,
    /// How many live streams are open at once.
    pub listeners: usize,
    /// How many runs are open for recording.
    pub recorders: usize,
    /// The longest body.
    pub body_bytes: usize,
    /// How much memory all bodies may take; parsed bodies, answers, and long lines of live streams may each take as much.
    pub room_bytes: usize,
    /// How many answers are built at once, and how many live streams read files at once.
    pub reading: usize,
    /// How many requests record events at once.
    pub recording: usize,
    /// How long a request may take to arrive, its answer to start, and an answer to wait for its reader.
    pub patience: Duration,
    /// How long a live stream may wait for its reader before it ends. It is shorter than `patience`, so that the last message
    /// can still be sent.
    pub stall: Duration,
    /// After how long without events a live stream sends a heartbeat.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            listeners: 512,
            recorders: 128,
            body_bytes: 16 * 1024 * 1024,
            room_bytes: 64 * 1024 * 1024,
            reading: 4,
            recording: 8,
            patience: Duration::from_secs(30),
            stall: Duration::from_secs(10),
            heartbeat: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// Lowers the limits so that they fit half of the open files that the process may have.
    ///
    /// A connection takes one file, a run with listeners another one, and a run that is recorded three.
    #[must_use]
    pub fn within(self, open_files: usize) -> Self {
        Self {
            connections: self.connections.min(open_files / 4).max(1),
            listeners: self.listeners.min(open_files / 8).max(1),
            recorders: self.recorders.min(open_files / 32).max(1),
            ..self
        }
    }
}
