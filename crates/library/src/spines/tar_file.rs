//! Reads tar files of bundles, with a limit for what they unpack to.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use steno_capture::packing::UnpackReader;
use steno_disk::{Links, open_regular};

use crate::FileError;

/// Reads a tar file, compressed or not, and stops if it unpacks to far more than a bundle can: a few hostile bytes can
/// unpack to any length.
pub(super) struct TarFile {
    bytes: UnpackReader<CountedFile>,
    read: Rc<Cell<u64>>,
    given: u64,
}

/// What a tar file may unpack to: this many bytes, and in addition this many times its size.
const UNPACKED_BYTES_FREE: u64 = 64 * 1024 * 1024;
const UNPACKED_TIMES_MAX: u64 = 2_000;

impl TarFile {
    pub(super) fn open(path: &Path) -> Result<Self, FileError> {
        let opened = open_regular(path, Links::Followed);
        let file = opened.map_err(|error| FileError::of("read", path, error))?;
        let read = Rc::new(Cell::new(0));
        Ok(Self { bytes: UnpackReader::new(CountedFile { file, read: Rc::clone(&read) }), read, given: 0 })
    }
}

impl Read for TarFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let given = self.bytes.read(into)?;
        self.given += given as u64;
        if self.given > UNPACKED_BYTES_FREE + self.read.get().saturating_mul(UNPACKED_TIMES_MAX) {
            let words = format!("it unpacks to more than {UNPACKED_TIMES_MAX} times its size");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
        }
        Ok(given)
    }
}

struct CountedFile {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for CountedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
