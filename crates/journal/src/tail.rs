//! The end of a file that grows: where seq and order are decided.

use std::io;
use std::sync::Arc;

use steno_model::Seq;

use crate::disk::{DiskFile, append_all};
use crate::seal::Prefix;

/// What the append lock guards.
pub(crate) struct Tail {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) prefix: Prefix,
    line: Vec<u8>,
}

/// How an append failed.
pub(crate) enum AppendError {
    /// No room; the file is as it was, and the next append may succeed.
    NoRoom(io::Error),
    /// Anything else: what the file holds past its good prefix is unknown.
    Lost(io::Error),
}

impl Tail {
    pub(crate) fn new(file: Arc<dyn DiskFile>, prefix: Prefix) -> Self {
        Self { file, prefix, line: Vec::new() }
    }

    /// Appends one line: takes the next number, has the line made with it, writes it, and only then uses it up.
    ///
    /// This is the one place where a seq is given and a line gets its position; the caller holds the lock.
    pub(crate) fn append(&mut self, render: impl FnOnce(Seq, &mut Vec<u8>)) -> Result<Seq, AppendError> {
        let seq = Seq::after(self.prefix.seq_last);
        self.append_as(seq, render)
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
            return Err(self.roll_back(error));
        }
        self.prefix.push_written(Some(seq), &self.line);
        if self.line.capacity() > KEPT_BYTES_MAX {
            self.line = Vec::new();
        }
        Ok(seq)
    }

    /// Takes back what a failed write has left: partial writes are real when a disk runs full.
    fn roll_back(&self, error: io::Error) -> AppendError {
        if !is_no_room(&error) {
            return AppendError::Lost(error);
        }
        match self.file.truncate(self.prefix.len) {
            Ok(()) => AppendError::NoRoom(error),
            Err(_) => AppendError::Lost(error),
        }
    }
}

/// Tells the failures after which there may be room again.
fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
