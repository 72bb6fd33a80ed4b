//! The bytes of a file as its agent wrote them, decompressed if needed.

use std::fs::File;
use std::io::{self, Read as _};

use steno_capture::packing::UnpackReader;
use steno_model::Packing;

/// The bytes of a file up to its end or a read error.
pub struct PlainBytes {
    bytes: UnpackReader<File>,
    error: Option<io::Error>,
}

impl PlainBytes {
    pub fn of(file: File) -> Self {
        Self { bytes: UnpackReader::new(file), error: None }
    }

    /// Fills the buffer, and truncates it at the end. Bytes before an error are kept.
    pub fn fill(&mut self, into: &mut Vec<u8>) {
        let mut filled = 0;
        while self.error.is_none() && filled < into.len() {
            match self.bytes.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.error = Some(error),
            }
        }
        into.truncate(filled);
    }

    /// Returns how the file is compressed, as far as it was read.
    pub fn packing(&self) -> Option<Packing> {
        self.bytes.packing()
    }

    /// Returns the read error; `None` at the end of the file.
    pub fn end(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
