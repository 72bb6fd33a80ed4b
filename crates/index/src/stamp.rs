//! The checksum of the database, in a file beside it.
//!
//! SQLite does not notice every changed byte, and a changed byte in a list of words would hide a hit. So only
//! checkpoints that hold this file's lock change the database, and each records the checksum. A process that opens the
//! database compares inode, length and time of change, and computes the checksum only if these differ. The write-ahead
//! log has checksums of its own.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The length of one read of the database.
const READ_BYTES: usize = 256 * 1024;
/// The longest step of the clock for file times. A change within one step of another may leave the time as it is.
const CLOCK_STEP: Duration = Duration::from_millis(50);

/// The locked file of the checksum.
pub(crate) struct StampFile {
    file: File,
    database: PathBuf,
}

/// How a database looked when its checksum was computed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed_ns: i128,
    crc: u32,
    stamped_ns: i128,
}

impl StampFile {
    /// Opens the file of a database and waits until no other process changes the database.
    pub(crate) fn lock(database: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path_of(database))?;
        file.lock()?;
        Ok(Self { file, database: database.to_owned() })
    }

    /// Tells whether the database has the bytes that the last checkpoint left.
    pub(crate) fn is_valid(&self) -> io::Result<bool> {
        let Some(stamp) = self.read()? else { return Ok(false) };
        let found = std::fs::metadata(&self.database)?;
        let is_certain = stamp.changed_ns + step_ns() < stamp.stamped_ns;
        if is_certain
            && (found.ino(), found.len(), changed_ns(&found)) == (stamp.inode, stamp.size, stamp.changed_ns)
        {
            return Ok(true);
        }
        if found.len() != stamp.size || checksum(&self.database)? != stamp.crc {
            return Ok(false);
        }
        self.write(&Stamp::of(&found, stamp.crc))?;
        Ok(true)
    }

    /// Records the checksum of the database as it is now.
    pub(crate) fn put(&self) -> io::Result<()> {
        let crc = checksum(&self.database)?;
        self.write(&Stamp::of(&std::fs::metadata(&self.database)?, crc))
    }

    /// Records that the database cannot be trusted, because it is being changed.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    fn read(&self) -> io::Result<Option<Stamp>> {
        let mut text = String::new();
        let mut file = &self.file;
        file.rewind()?;
        // Text that is not UTF-8 is damage like any other.
        match file.read_to_string(&mut text) {
            Ok(_) => Ok(Stamp::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, stamp: &Stamp) -> io::Result<()> {
        self.clear()?;
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(stamp.line().as_bytes())
    }
}

impl Stamp {
    fn of(found: &Metadata, crc: u32) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            inode: found.ino(),
            size: found.len(),
            changed_ns: changed_ns(found),
            crc,
            stamped_ns: i128::try_from(now.as_nanos()).unwrap_or(0),
        }
    }

    fn line(&self) -> String {
        let fields =
            format!("{} {} {} {:08x} {}", self.inode, self.size, self.changed_ns, self.crc, self.stamped_ns);
        format!("{fields} {:08x}\n", crc32fast::hash(fields.as_bytes()))
    }

    /// Reads a line; `None` if it is not one, or if a byte of it was changed.
    fn parse(text: &str) -> Option<Self> {
        let (fields, check) = text.strip_suffix('\n')?.rsplit_once(' ')?;
        if format!("{:08x}", crc32fast::hash(fields.as_bytes())) != check {
            return None;
        }
        let mut fields = fields.split(' ');
        let mut next = || fields.next();
        Some(Self {
            inode: next()?.parse().ok()?,
            size: next()?.parse().ok()?,
            changed_ns: next()?.parse().ok()?,
            crc: u32::from_str_radix(next()?, 16).ok()?,
            stamped_ns: next()?.parse().ok()?,
        })
    }
}

/// Returns the file with the checksum of a database.
pub(crate) fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-sum");
    PathBuf::from(name)
}

fn changed_ns(found: &Metadata) -> i128 {
    i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec())
}

fn step_ns() -> i128 {
    i128::try_from(CLOCK_STEP.as_nanos()).unwrap_or(i128::MAX)
}

fn checksum(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut hasher = crc32fast::Hasher::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
