//! Reads files of a disk.

use std::io;
use std::sync::Arc;

use crate::DiskFile;

/// Reads a file from an offset on, as [`io::Read`].
pub struct OffsetReader {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl OffsetReader {
    /// Begins at an offset.
    #[must_use]
    pub fn from(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl io::Read for OffsetReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Reads until the buffer is full or the file ends; returns how many bytes.
///
/// # Errors
/// I/O errors.
pub fn read_full(file: &dyn DiskFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
