//! Counts of what was recorded, and of what could not be.

use std::collections::HashSet;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use super::shared_source::SharedFileCounts;

/// Counts of one pass, or since following began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingCounts {
    /// Files that were examined.
    pub files: u64,
    /// Files with new bytes.
    pub files_new: u64,
    /// Bytes that were read and stored.
    pub bytes_read: u64,
    /// Events that were written.
    pub events: u64,
    /// Events that could not be written, because a line would be too long or the transcript is damaged.
    pub events_refused: u64,
    /// Records of unknown types.
    pub records_unknown: u64,
    /// Parts of files that cannot be read as records.
    pub records_unreadable: u64,
    /// Files that another process records.
    pub files_held: u64,
    /// Files that were forgotten, and are not recorded.
    pub files_forgotten: u64,
    /// Files that could not be recorded; they are tried again.
    pub files_failed: u64,
    /// Files with unread bytes when following ended that no other process records.
    pub files_unread: u64,
    /// Pieces of shared files that were left out because they are excluded or were forgotten.
    pub pieces_left_out: u64,
}

impl AddAssign for RecordingCounts {
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
            files_forgotten,
            files_failed,
            files_unread,
            pieces_left_out,
        } = more;
        self.files += files;
        self.files_new += files_new;
        self.bytes_read += bytes_read;
        self.events += events;
        self.events_refused += events_refused;
        self.records_unknown += records_unknown;
        self.records_unreadable += records_unreadable;
        self.files_held += files_held;
        self.files_forgotten += files_forgotten;
        self.files_failed += files_failed;
        self.files_unread += files_unread;
        self.pieces_left_out += pieces_left_out;
    }
}

impl RecordingCounts {
    /// Adds the counts of a shared file.
    pub(super) fn add_mixed(&mut self, look: SharedFileCounts) {
        self.bytes_read += look.added;
        self.pieces_left_out += look.left_out;
    }
}

/// The files behind each count. Each file counts once, however often it was read.
#[derive(Default)]
pub(super) struct FileTally {
    seen: HashSet<PathBuf>,
    new: HashSet<PathBuf>,
    held: HashSet<PathBuf>,
    forgotten: HashSet<PathBuf>,
    failed: HashSet<PathBuf>,
}

/// The outcome of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOutcome {
    /// It exists and was not opened.
    Listed,
    /// It was opened and had no new bytes.
    Quiet,
    /// It had new bytes.
    New,
    /// Another process records it.
    Held,
    /// It was forgotten, and is not recorded.
    Forgotten,
    /// It could not be recorded.
    Failed,
}

impl FileTally {
    /// Adds the outcome of reading a file. Once a file could be opened it no longer counts as held or failed.
    pub(super) fn take(&mut self, path: &Path, sighting: FileOutcome) {
        self.seen.insert(path.to_owned());
        if sighting != FileOutcome::Listed {
            self.held.remove(path);
            self.failed.remove(path);
        }
        match sighting {
            FileOutcome::Listed | FileOutcome::Quiet => false,
            FileOutcome::New => self.new.insert(path.to_owned()),
            FileOutcome::Held => self.held.insert(path.to_owned()),
            FileOutcome::Forgotten => self.forgotten.insert(path.to_owned()),
            FileOutcome::Failed => self.failed.insert(path.to_owned()),
        };
    }

    /// Tells whether another process held a file when it was last tried.
    pub(super) fn is_held(&self, path: &Path) -> bool {
        self.held.contains(path)
    }

    /// Stores the numbers of files in the counts.
    pub(super) fn count(&self, health: &mut RecordingCounts) {
        let Self { seen, new, held, forgotten, failed } = self;
        health.files = seen.len() as u64;
        health.files_new = new.len() as u64;
        health.files_held = held.len() as u64;
        health.files_forgotten = forgotten.len() as u64;
        health.files_failed = failed.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_counts_once_and_stays_held_or_failed_until_recorded() {
        let mut files = FileTally::default();
        for (path, look) in [
            ("a", FileOutcome::Listed),
            ("a", FileOutcome::New),
            ("a", FileOutcome::New),
            ("b", FileOutcome::Held),
            ("b", FileOutcome::Held),
            ("c", FileOutcome::Held),
            ("c", FileOutcome::New),
            ("d", FileOutcome::Failed),
            ("d", FileOutcome::Listed),
            ("e", FileOutcome::Failed),
            ("e", FileOutcome::Held),
            ("f", FileOutcome::Held),
            ("f", FileOutcome::Quiet),
        ] {
            files.take(Path::new(path), look);
        }
        let mut health = RecordingCounts::default();
        files.count(&mut health);
        let want = RecordingCounts {
            files: 6,
            files_new: 2,
            files_held: 2,
            files_failed: 1,
            ..RecordingCounts::default()
        };
        assert_eq!(health, want);
    }
}
