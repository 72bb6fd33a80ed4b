//! The end of a file that grows: where seq and order are decided.

use std::io;
use std::sync::Arc;

use steno_model::Seq;

use crate::disk::{DiskFile, append_all};

/// The model checker records a few lines only, and has to meet every case with them.
const SCALE: usize = if cfg!(feature = "shuttle") { 256 } else { 1 };

/// How many bytes are kept for hashing before somebody is asked to hash them.
const CHUNK_BYTES: usize = 128 * 1024 / SCALE;

/// From how many bytes on writers help with hashing when nobody is at it.
const UNHASHED_BYTES_MANY: usize = if cfg!(feature = "shuttle") { 2 * CHUNK_BYTES } else { 2 * 1024 * 1024 };

/// How many bytes may wait to be hashed before writers have to wait for it.
const UNHASHED_BYTES_MAX: usize = if cfg!(feature = "shuttle") { 3 * CHUNK_BYTES } else { 16 * 1024 * 1024 };

/// What the append lock guards.
pub(crate) struct Tail {
    file: Arc<dyn DiskFile>,
    len: u64,
    seq_last: Option<Seq>,
    /// Lines as they were written, until they are hashed: hashing takes as long as writing, and needs no lock.
    chunk: Vec<u8>,
    full: Vec<Vec<u8>>,
    full_bytes: usize,
    /// A chunk that was hashed, to be filled again: memory that is warm and mapped.
    spare: Option<Vec<u8>>,
}

/// Where a file ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) len: u64,
    pub(crate) seq_last: Option<Seq>,
}

/// What is to be hashed, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    /// Nothing worth the trouble.
    Small,
    /// Enough for another thread.
    Ready,
    /// So much that whoever writes helps, unless somebody is at it.
    Many,
    /// So much that whoever writes has to wait until it is less.
    Full,
}

/// How an append failed.
pub(crate) enum AppendError {
    /// No room; the file is as it was, and the next append may succeed.
    NoRoom(io::Error),
    /// Anything else: what the file holds past its good prefix is unknown.
    Lost(io::Error),
}

impl Tail {
    pub(crate) fn new(file: Arc<dyn DiskFile>, end: End) -> Self {
        let (chunk, full, spare) = (Vec::new(), Vec::new(), None);
        Self { file, len: end.len, seq_last: end.seq_last, chunk, full, full_bytes: 0, spare }
    }

    pub(crate) fn end(&self) -> End {
        End { len: self.len, seq_last: self.seq_last }
    }

    /// Appends one line: takes the next number, has the line made with it, writes it, and only then uses it up.
    ///
    /// This is the one place where a seq is given and a line gets its position; the caller holds the lock.
    pub(crate) fn append(&mut self, render: impl FnOnce(Seq, &mut Vec<u8>)) -> Result<Seq, AppendError> {
        self.append_as(Seq::after(self.seq_last), render)
    }

    pub(crate) fn append_as(
        &mut self,
        seq: Seq,
        render: impl FnOnce(Seq, &mut Vec<u8>),
    ) -> Result<Seq, AppendError> {
        let start = self.chunk.len();
        render(seq, &mut self.chunk);
        if let Err(error) = append_all(&*self.file, &self.chunk[start..]) {
            self.chunk.truncate(start);
            return Err(self.roll_back(error));
        }
        self.len += (self.chunk.len() - start) as u64;
        self.seq_last = Some(seq);
        if self.chunk.len() >= CHUNK_BYTES {
            let next = self.spare.take().unwrap_or_default();
            let full = std::mem::replace(&mut self.chunk, next);
            self.full_bytes += full.len();
            self.full.push(full);
        }
        Ok(seq)
    }

    /// Takes back what a failed write has left: partial writes are real when a disk runs full.
    fn roll_back(&self, error: io::Error) -> AppendError {
        if !is_no_room(&error) {
            return AppendError::Lost(error);
        }
        match self.file.truncate(self.len) {
            Ok(()) => AppendError::NoRoom(error),
            Err(_) => AppendError::Lost(error),
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        match self.full_bytes {
            0 => Backlog::Small,
            bytes if bytes > UNHASHED_BYTES_MAX => Backlog::Full,
            bytes if bytes > UNHASHED_BYTES_MANY => Backlog::Many,
            _ => Backlog::Ready,
        }
    }

    /// Hands out the full chunks to be hashed, in the file's order.
    pub(crate) fn take_full(&mut self) -> Vec<Vec<u8>> {
        self.full_bytes = 0;
        std::mem::take(&mut self.full)
    }

    /// Takes a chunk back that was hashed, unless it has grown too large to keep.
    pub(crate) fn give_back(&mut self, mut chunk: Vec<u8>) {
        if chunk.capacity() <= 2 * CHUNK_BYTES {
            chunk.clear();
            self.spare = Some(chunk);
        }
    }

    /// Hands out everything that was not hashed, up to the end of the file.
    pub(crate) fn take_all(&mut self) -> Vec<Vec<u8>> {
        let mut all = self.take_full();
        all.push(std::mem::take(&mut self.chunk));
        all
    }
}

/// Tells the failures after which there may be room again.
fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
