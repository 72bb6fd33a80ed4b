//! Remembers the bytes that were read, so that a change of them is noticed.
//!
//! Three hashes: of the first bytes, of the last bytes before the offset (both cheap to compare at every read), and of
//! all. The bytes themselves are not kept. A read gets the window again together with the new bytes in one call, so
//! both are from almost the same moment.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use blake3::Hasher;

use super::options::MAX_READ_BYTES;

/// How many bytes at the beginning and before the offset are compared at every read.
pub const MARK_BYTES_MAX: usize = 4096;

/// A part of a file, by its length and BLAKE3 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its length.
    pub len_bytes: u64,
    /// The hash.
    pub hash: [u8; 32],
}

impl Mark {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { len_bytes: bytes.len() as u64, hash: blake3::hash(bytes).into() }
    }

    /// Returns the length of a part that is in memory.
    fn len(&self) -> usize {
        usize::try_from(self.len_bytes).unwrap_or(usize::MAX)
    }
}

/// The bytes of a file from its beginning to an offset.
pub(super) struct Prefix {
    len: u64,
    head: Mark,
    window: Mark,
    whole: Hasher,
}

impl Prefix {
    pub(super) fn empty() -> Self {
        Self { len: 0, head: Mark::of(b""), window: Mark::of(b""), whole: Hasher::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn head(&self) -> Mark {
        self.head
    }

    pub(super) fn whole(&self) -> Mark {
        Mark { len_bytes: self.len, hash: self.whole.finalize().into() }
    }

    pub(super) fn window_len(&self) -> usize {
        self.window.len()
    }

    /// Reads the window and at most `new_bytes_max` bytes after it. A shorter piece ends at the end of the file.
    pub(super) fn read_piece(&self, file: &File, into: &mut Vec<u8>, new_bytes_max: usize) -> io::Result<()> {
        into.resize(self.window_len().saturating_add(new_bytes_max), 0);
        let read = read_full(file, into, self.len - self.window.len_bytes)?;
        into.truncate(read);
        Ok(())
    }

    /// Tells whether a piece begins with the unchanged window.
    pub(super) fn is_continued_by(&self, piece: &[u8]) -> bool {
        piece.get(..self.window_len()).is_some_and(|window| Mark::of(window) == self.window)
    }

    /// Tells whether the beginning of the file is unchanged.
    pub(super) fn has_head_of(&self, file: &File) -> io::Result<bool> {
        let mut bytes = vec![0; self.head.len()];
        let read = read_full(file, &mut bytes, 0)?;
        bytes.truncate(read);
        Ok(Mark::of(&bytes) == self.head)
    }

    /// Adds the bytes of a piece after the window.
    pub(super) fn extend(&mut self, piece: &[u8]) {
        let new = piece.get(self.window_len()..).unwrap_or_default();
        self.whole.update(new);
        if self.head.len() < MARK_BYTES_MAX {
            // Everything read so far is in the window, so the piece begins where the file does.
            self.head = Mark::of(&piece[..piece.len().min(MARK_BYTES_MAX)]);
        }
        self.window = Mark::of(&piece[piece.len().saturating_sub(MARK_BYTES_MAX)..]);
        self.len += new.len() as u64;
    }

    /// Reads a file up to the end of a prefix; `None` unless all bytes are the same.
    ///
    /// The head is compared first, so that a replaced document costs one read, whatever its length.
    pub(super) fn read_same(file: &File, head: &Mark, whole: &Mark) -> io::Result<Option<Self>> {
        let mut read = Self::empty();
        let mut piece = Vec::new();
        while read.len < whole.len_bytes {
            let missing = usize::try_from(whole.len_bytes - read.len).unwrap_or(usize::MAX);
            read.read_piece(file, &mut piece, missing.min(MAX_READ_BYTES))?;
            let has_new = piece.len() > read.window_len();
            if !has_new || !read.is_continued_by(&piece) {
                return Ok(None);
            }
            read.extend(&piece);
            if read.head.len_bytes == head.len_bytes && read.head != *head {
                return Ok(None);
            }
        }
        Ok((read.whole() == *whole).then_some(read))
    }
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match file.read_at(&mut into[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| u8::try_from(at * 31 % 251).expect("below 251")).collect()
    }

    /// The pieces in which the bytes are read do not matter.
    #[test]
    fn prefix_does_not_depend_on_how_it_was_read() {
        let all = bytes(20_000);
        let file = file_of(&all);
        for step in [1_usize, 7, 4095, 4096, 4097, 8191, 20_000] {
            let (mut prefix, mut piece) = (Prefix::empty(), Vec::new());
            // Single bytes are only needed for the first few thousand, where the marks fill up.
            for _ in 0..9_000.min(all.len() / step + 1) {
                prefix.read_piece(&file, &mut piece, step).expect("read");
                assert!(prefix.is_continued_by(&piece), "step {step}");
                prefix.extend(&piece);
            }
            let read = &all[..usize::try_from(prefix.len()).expect("small")];
            assert_eq!(prefix.whole(), Mark::of(read), "step {step}");
            assert_eq!(prefix.head(), Mark::of(&read[..read.len().min(4096)]), "step {step}");
            assert_eq!(prefix.window, Mark::of(&read[read.len().saturating_sub(4096)..]), "step {step}");
        }
    }

    #[test]
    fn same_prefix_is_found_and_any_other_byte_is_not() {
        let all = bytes(150_000);
        let (head, whole) = (Mark::of(&all[..4096]), Mark::of(&all[..140_000]));
        let is_same = |content: &[u8]| {
            Prefix::read_same(&file_of(content), &head, &whole)
                .expect("read")
                .is_some_and(|same| same.len() == 140_000)
        };
        assert!(is_same(&all) && is_same(&all[..140_000]));
        assert!(!is_same(&all[..139_999]) && !is_same(b""));
        for at in [0, 4095, 4096, 65_535, 65_536, 100_000, 139_999] {
            let mut other = all.clone();
            other[at] ^= 1;
            assert!(!is_same(&other), "byte {at}");
        }
        let mut later = all.clone();
        later[140_000] ^= 1;
        assert!(is_same(&later));
    }

    /// A cursor may come from anywhere.
    #[test]
    fn invalid_marks_match_no_prefix() {
        let file = file_of(b"abc");
        let odd = Mark { len_bytes: u64::MAX, hash: [7; 32] };
        assert!(Prefix::read_same(&file, &odd, &odd).expect("read").is_none());
        assert!(Prefix::read_same(&file, &odd, &Mark { len_bytes: 2, ..odd }).expect("read").is_none());
        assert!(Prefix::read_same(&file, &odd, &Mark::of(b"ab")).expect("read").is_some());
    }
}
