//! The bytes of a file as its agent wrote them, also where they were compressed since.

use std::fs::File;
use std::io::{self, Read as _};

use steno_capture::packing::UnpackReader;
use steno_model::Packing;

/// Bytes up to the end of the file, or to where it cannot be read any further.
pub struct PlainBytes {
    bytes: UnpackReader<File>,
    error: Option<io::Error>,
}

impl PlainBytes {
    pub fn of(file: File) -> Self {
        Self { bytes: UnpackReader::new(file), error: None }
    }

    /// Fills the buffer, and cuts it short where there is no more. What comes before an error is not lost by it.
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

    /// Tells how the file is packed, as far as it was read.
    pub fn packing(&self) -> Option<Packing> {
        self.bytes.packing()
    }

    /// Returns why it could not be read any further; nothing where that was the end.
    pub fn end(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
