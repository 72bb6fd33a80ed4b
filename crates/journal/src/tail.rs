//! The end of a growing file: where seq and order are decided.

use std::io;
use std::sync::Arc;

use steno_disk::{DiskFile, append_all};
use steno_model::Seq;

/// The state that the append lock protects.
pub(crate) struct Tail {
    file: Arc<dyn DiskFile>,
    end: FileEnd,
    /// The checksum of what was written since it was last taken.
    written: crc32fast::Hasher,
    line: Vec<u8>,
    gathered: GatheredLines,
}

/// Lines that are not written yet.
#[derive(Default)]
struct GatheredLines {
    bytes: Vec<u8>,
    count: u64,
    seq_last: Option<Seq>,
}

/// At this length gathered lines are written.
const GATHERED_BYTES_MAX: usize = 256 * 1024;

/// Where a file ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileEnd {
    pub(crate) len: u64,
    pub(crate) seq_last: Option<Seq>,
}

/// How an append failed.
pub(crate) enum AppendError {
    /// No space left for this many lines. The file is unchanged, and the next append may succeed.
    NoRoom(io::Error, u64),
    /// Anything else: the content of the file after its good prefix is unknown.
    Lost(io::Error),
}

impl Tail {
    pub(crate) fn new(file: Arc<dyn DiskFile>, end: FileEnd) -> Self {
        Self {
            file,
            end,
            written: crc32fast::Hasher::new(),
            line: Vec::new(),
            gathered: GatheredLines::default(),
        }
    }

    pub(crate) fn end(&self) -> FileEnd {
        self.end
    }

    /// Returns the end of the file, and the checksum of what was written since the last call.
    ///
    /// SHA-256 would take as long as the write itself. This checksum is cheap, and shows when the file is read back for
    /// a seal whether it has what was written.
    pub(crate) fn take_checksum(&mut self) -> (FileEnd, u32) {
        (self.end, std::mem::take(&mut self.written).finalize())
    }

    /// Appends one line: takes the next number, builds the line with it, writes it, and only then uses the number up.
    ///
    /// This is the only place where a seq is assigned and a line gets its position. The caller holds the lock.
    pub(crate) fn append(&mut self, render: impl FnOnce(Seq, &mut Vec<u8>)) -> Result<Seq, AppendError> {
        self.append_as(Seq::after(self.end.seq_last), render)
    }

    pub(crate) fn append_as(
        &mut self,
        seq: Seq,
        render: impl FnOnce(Seq, &mut Vec<u8>),
    ) -> Result<Seq, AppendError> {
        const KEPT_BYTES_MAX: usize = 1024 * 1024;
        self.line.clear();
        render(seq, &mut self.line);
        if let Err(error) = append_all(&*self.file, &self.line) {
            return Err(self.roll_back(error, 1));
        }
        self.end = FileEnd { len: self.end.len + self.line.len() as u64, seq_last: Some(seq) };
        self.written.update(&self.line);
        if self.line.capacity() > KEPT_BYTES_MAX {
            self.line = Vec::new();
        }
        Ok(seq)
    }

    /// Adds a line to those that are written together, with the next number. If they cannot be written, their numbers are
    /// not used up.
    pub(crate) fn gather(&mut self, render: impl FnOnce(Seq, &mut Vec<u8>)) -> Result<Seq, AppendError> {
        let seq = Seq::after(self.seq_gathered());
        render(seq, &mut self.gathered.bytes);
        self.gathered.count += 1;
        self.gathered.seq_last = Some(seq);
        if self.gathered.bytes.len() >= GATHERED_BYTES_MAX {
            self.write_gathered()?;
        }
        Ok(seq)
    }

    /// Returns the number of the last line, written or gathered.
    pub(crate) fn seq_gathered(&self) -> Option<Seq> {
        self.gathered.seq_last.or(self.end.seq_last)
    }

    /// Writes the gathered lines.
    pub(crate) fn write_gathered(&mut self) -> Result<(), AppendError> {
        let GatheredLines { mut bytes, count, seq_last } = std::mem::take(&mut self.gathered);
        if bytes.is_empty() {
            return Ok(());
        }
        if let Err(error) = append_all(&*self.file, &bytes) {
            return Err(self.roll_back(error, count));
        }
        self.end = FileEnd { len: self.end.len + bytes.len() as u64, seq_last };
        self.written.update(&bytes);
        bytes.clear();
        if bytes.capacity() <= 2 * GATHERED_BYTES_MAX {
            self.gathered.bytes = bytes;
        }
        Ok(())
    }

    /// Removes the bytes of a failed write. Partial writes do happen when a disk is full.
    fn roll_back(&self, error: io::Error, lines: u64) -> AppendError {
        if !is_no_room(&error) {
            return AppendError::Lost(error);
        }
        match self.file.truncate(self.end.len) {
            Ok(()) => AppendError::NoRoom(error, lines),
            Err(_) => AppendError::Lost(error),
        }
    }
}

/// Recognizes failures after which there may be space again.
pub(crate) fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
