//! What recording has done so far, and what it could not do.

use std::ops::AddAssign;

/// Counts of one pass, or since recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Files that were looked at.
    pub files: u64,
    /// Files that had something new.
    pub files_new: u64,
    /// Bytes that were read and kept.
    pub bytes_read: u64,
    /// Events that were written.
    pub events: u64,
    /// Events that could not be written because a line would be too long, or their transcript is damaged.
    pub events_refused: u64,
    /// Records of types that no adapter knows.
    pub records_unknown: u64,
    /// Pieces of files that cannot be read as records.
    pub records_unreadable: u64,
    /// Files that another process records.
    pub files_held: u64,
    /// Files that could not be recorded; they are tried again.
    pub files_failed: u64,
}

impl AddAssign for Health {
    fn add_assign(&mut self, more: Self) {
        let Self {
            files,
            files_new,
            bytes_read,
            events,
            events_refused,
            records_unknown,
            records_unreadable,
            files_held,
            files_failed,
        } = more;
        self.files += files;
        self.files_new += files_new;
        self.bytes_read += bytes_read;
        self.events += events;
        self.events_refused += events_refused;
        self.records_unknown += records_unknown;
        self.records_unreadable += records_unreadable;
        self.files_held += files_held;
        self.files_failed += files_failed;
    }
}
