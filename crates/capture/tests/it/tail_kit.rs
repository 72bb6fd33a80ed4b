//! A followed file with everything that was read from it, for the tests of tails.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use steno_capture::tail::{ChangeKind, Cursor, Error, MAX_READ_BYTES, Tail, TailRead};
use steno_testkit::dice::Dice;
use tempfile::TempDir;

/// A path, its tail, and what came out of it.
pub struct Followed {
    pub path: PathBuf,
    pub tail: Tail,
    /// What was read, by generation.
    pub generations: Vec<Vec<u8>>,
    /// What came late for the last generation but one.
    pub late: Vec<u8>,
    pub max_read_bytes: usize,
    buffer: Vec<u8>,
}

impl Followed {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let tail = Tail::new(&path);
        let generations = vec![Vec::new()];
        Self { path, tail, generations, late: Vec::new(), max_read_bytes: MAX_READ_BYTES, buffer: Vec::new() }
    }

    /// Follows a file that has this content, which was read.
    pub fn with_content(path: impl Into<PathBuf>, content: &[u8]) -> Self {
        let mut followed = Self::new(path);
        fs::write(&followed.path, content).expect("written");
        assert_eq!(followed.read_all(), TailRead::AtEnd);
        followed
    }

    /// Reads once, and checks that the result continues the earlier ones.
    pub fn look(&mut self) -> TailRead {
        self.try_look().expect("a look")
    }

    pub fn try_look(&mut self) -> Result<TailRead, Error> {
        let look = self.tail.read_next(&mut self.buffer, self.max_read_bytes)?;
        let newest = self.generations.len() - 1;
        match look {
            TailRead::Bytes { generation, offset, len } => {
                assert_eq!(generation as usize, newest);
                let read = &mut self.generations[newest];
                assert_eq!((offset, len), (read.len() as u64, self.buffer.len()));
                assert!(0 < len && len <= self.max_read_bytes, "{len} bytes");
                read.extend_from_slice(&self.buffer);
            }
            TailRead::Late { generation, offset, len } => {
                assert!((generation as usize) < newest);
                let before = self.generations[generation as usize].len() + self.late.len();
                assert_eq!((offset, len), (before as u64, self.buffer.len()));
                self.late.extend_from_slice(&self.buffer);
            }
            TailRead::NewGeneration { generation, why } => {
                assert_eq!(generation as usize, newest + 1);
                if why == ChangeKind::Replaced {
                    self.late.clear();
                }
                self.generations.push(Vec::new());
            }
            TailRead::AtEnd | TailRead::Gone => assert!(self.buffer.is_empty()),
        }
        Ok(look)
    }

    /// Reads to the end; returns the last result.
    pub fn read_all(&mut self) -> TailRead {
        loop {
            match self.look() {
                TailRead::Bytes { .. } | TailRead::Late { .. } | TailRead::NewGeneration { .. } => {}
                end @ (TailRead::AtEnd | TailRead::Gone) => return end,
            }
        }
    }

    /// Reads to the end; returns why new generations began.
    pub fn changes(&mut self) -> Vec<ChangeKind> {
        let mut changes = Vec::new();
        loop {
            match self.look() {
                TailRead::Bytes { .. } | TailRead::Late { .. } => {}
                TailRead::NewGeneration { why, .. } => changes.push(why),
                TailRead::AtEnd | TailRead::Gone => return changes,
            }
        }
    }

    pub fn cursor(&self) -> Cursor {
        self.tail.cursor().expect("a file was found")
    }

    /// Continues as another process would.
    pub fn restart(&mut self) {
        if let Some(cursor) = self.tail.cursor() {
            self.tail = Tail::resume(&self.path, cursor);
        }
    }

    /// Reads the file until its times are settled: they have to be some milliseconds old.
    pub fn settle(&mut self) {
        self.read_all();
        while !self.cursor().stamp.settled {
            self.tail.recheck();
            assert_eq!(self.look(), TailRead::AtEnd);
            std::thread::yield_now();
        }
    }

    /// Returns what was read as text.
    pub fn texts(&self) -> Vec<String> {
        self.generations.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }
}

pub fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).expect("opened").write_all(bytes).expect("appended");
}

pub fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).expect("opened");
    file.seek(SeekFrom::Start(offset)).expect("sought");
    file.write_all(bytes).expect("written");
}

pub fn truncate(path: &Path, len: u64) {
    OpenOptions::new().write(true).open(path).expect("opened").set_len(len).expect("cut");
}

/// Puts another file at the path, all at once.
pub fn replace(path: &Path, content: &[u8]) {
    let other = path.with_extension("tmp");
    fs::write(&other, content).expect("written");
    fs::rename(&other, path).expect("renamed");
}

/// Bytes without repetitions, different for each seed.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&dice.roll().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A directory in memory if there is one: on a disk, replacing files takes most of the time of a test.
pub fn dir_in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// Tells whether this process has the file open.
pub fn is_open_here(path: &Path) -> bool {
    let _ = File::open(path).expect("it is there");
    let fds = fs::read_dir("/proc/self/fd").expect("a list of what is open");
    fds.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == path))
}
