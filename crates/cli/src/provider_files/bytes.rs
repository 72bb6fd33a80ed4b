//! The bytes of a file as its agent wrote them, also where they were compressed since.

use std::fs::File;
use std::io::{self, Cursor, Read};

/// What compressed data begins with (zstd), whatever its file is called.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes up to the end of the file, or to where it cannot be read any further.
pub struct PlainBytes {
    bytes: Box<dyn Read>,
    error: Option<io::Error>,
}

impl PlainBytes {
    /// Looks at the first bytes to tell how to read the rest.
    pub fn of(mut file: File) -> io::Result<Self> {
        let mut magic = Vec::new();
        file.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut magic)?;
        let is_compressed = magic == ZSTD_MAGIC;
        let whole = Cursor::new(magic).chain(file);
        let bytes: Box<dyn Read> =
            if is_compressed { Box::new(zstd::stream::read::Decoder::new(whole)?) } else { Box::new(whole) };
        Ok(Self { bytes, error: None })
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

    /// Returns why it could not be read any further; nothing where that was the end.
    pub fn end(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
