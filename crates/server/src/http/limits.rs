//! How much is served at once, and how long anybody may take.

use std::time::Duration;

/// The limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there are at once. Whoever comes then waits, or takes the place of one without the token.
    pub connections: usize,
    /// How many listen to live events at once.
    pub listeners: usize,
    /// How many runs are held open to be recorded.
    pub recorders: usize,
    /// How long a body may be.
    pub body_bytes: usize,
    /// How much memory bodies take together; so much again what is made of them, answers, and long lines of live streams.
    pub room_bytes: usize,
    /// How many answers are made at once, and how many live streams read from files.
    pub reading: usize,
    /// How many requests record at once.
    pub recording: usize,
    /// How long a request may take to come, its answer to begin, and an answer to stand still because nobody reads it.
    pub patience: Duration,
    /// How long a live stream may stand still before it ends. It is shorter, so that it can be told where it ended.
    pub stall: Duration,
    /// After how long without events a live stream says that it is still there.
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
    /// Makes them so small that they fit into so many open files, of which others in the process need half.
    ///
    /// A connection takes one, a run that somebody listens to another one, and one that is recorded three.
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
