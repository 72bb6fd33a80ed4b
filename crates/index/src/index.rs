//! Opens the database, and replaces one that cannot be used.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::Error;
use crate::schema::{TABLES, VERSION};
use crate::stamp::{self, StampFile};

/// How long to wait for another process that is writing.
const BUSY_WAIT: Duration = Duration::from_mins(1);
/// The length that the write-ahead log must reach before it is moved into the database.
const LOG_BYTES_MAX: u64 = 1024 * 1024;
/// The length of a page of the database.
const PAGE_BYTES: i64 = 16 * 1024;
/// The memory for pages, in kibibytes.
const CACHE_KIB: i64 = 16 * 1024;

/// The index of a store.
pub struct Index {
    pub(crate) connection: Connection,
    path: PathBuf,
    /// The inode of the database; `None` in memory.
    inode: Option<u64>,
}

impl Index {
    /// Opens the database. One that is missing, damaged, or of another version is made new, and is empty.
    ///
    /// # Errors
    /// An error of SQLite or the system.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let stamp = StampFile::lock(path).map_err(cannot("lock", path))?;
        match Self::open_known(path, &stamp) {
            Ok(Some(index)) => return Ok(index),
            Ok(None) => {}
            Err(error) if error.is_damage() => {
                tracing::warn!("the index is damaged and is made again: {error}");
            }
            Err(error) => return Err(error),
        }
        remove_files(path)?;
        Self::create(path, &stamp)
    }

    /// Opens the database as it is; `None` if there is none that can be used. Nothing is made or replaced.
    ///
    /// # Errors
    /// An error of SQLite or the system.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, Error> {
        if !path.exists() || !stamp::path_of(path).exists() {
            return Ok(None);
        }
        let stamp = StampFile::lock(path).map_err(cannot("lock", path))?;
        match Self::open_known(path, &stamp) {
            Err(error) if error.is_damage() => Ok(None),
            opened => opened,
        }
    }

    /// Makes an index that only this process has.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn in_memory() -> Result<Self, Error> {
        let path = PathBuf::from(":memory:");
        let failed = |source| Error::Sqlite { doing: "make", path: path.display().to_string(), source };
        let connection = Connection::open_in_memory().map_err(failed)?;
        connection.execute_batch(TABLES).map_err(failed)?;
        Ok(Self { connection, path, inode: None })
    }

    /// Deletes the database and what SQLite keeps beside it.
    ///
    /// # Errors
    /// An error of the system.
    pub fn remove(path: &Path) -> Result<(), Error> {
        let sum = stamp::path_of(path);
        if !path.exists() && !sum.exists() {
            return Ok(());
        }
        // The file of the checksum stays, because others may wait for its lock.
        let stamp = StampFile::lock(path).map_err(cannot("lock", path))?;
        stamp.clear().map_err(cannot("change", &sum))?;
        remove_files(path)
    }

    /// Opens a database of this version; `None` if there is none, it is of another version, or its bytes were changed.
    fn open_known(path: &Path, stamp: &StampFile) -> Result<Option<Self>, Error> {
        if !path.exists() || !stamp.is_valid().map_err(cannot("read", path))? {
            return Ok(None);
        }
        let index = Self::connect(path)?;
        // This also opens the log, which must be the one of this database.
        let version: i64 = index
            .connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(index.failed("read the version"))?;
        Ok((version == VERSION).then_some(index))
    }

    /// Makes the tables.
    fn create(path: &Path, stamp: &StampFile) -> Result<Self, Error> {
        stamp.clear().map_err(cannot("change", path))?;
        make_file(path).map_err(cannot("create", path))?;
        let index = Self::connect(path)?;
        let tables = format!("BEGIN IMMEDIATE;{TABLES}PRAGMA user_version = {VERSION};COMMIT;");
        index.connection.execute_batch(&tables).map_err(index.failed("make tables"))?;
        index.checkpoint_locked(stamp)?;
        Ok(index)
    }

    fn connect(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Sqlite { doing: "open", path: path.display().to_string(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
        // Only a new database accepts this. Pages of four kibibytes would need four times as many writes.
        connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(failed)?;
        // A crash must not damage it; losing the last updates is harmless.
        let settings = [("journal_mode", "WAL"), ("synchronous", "NORMAL"), ("temp_store", "MEMORY")];
        for (name, value) in settings {
            connection.pragma_update(None, name, value).map_err(failed)?;
        }
        // Only our own checkpoints may change the database, because they record its checksum.
        connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(failed)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
        connection.pragma_update(None, "secure_delete", true).map_err(failed)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(failed)?;
        let inode = std::fs::metadata(path).map_err(cannot("access", path))?.ino();
        Ok(Self { connection, path: path.to_owned(), inode: Some(inode) })
    }

    /// Moves the log into the database if it is long.
    pub(crate) fn checkpoint_if_long(&self) -> Result<(), Error> {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        let is_long = std::fs::metadata(log).is_ok_and(|found| found.len() >= LOG_BYTES_MAX);
        if self.inode.is_some() && is_long { self.checkpoint() } else { Ok(()) }
    }

    fn checkpoint(&self) -> Result<(), Error> {
        let stamp = StampFile::lock(&self.path).map_err(cannot("lock", &self.path))?;
        self.checkpoint_locked(&stamp)
    }

    /// Moves the log into the database and notes its checksum.
    ///
    /// If the process is killed in between, there is no checksum, and the next process that opens the database makes it
    /// again.
    fn checkpoint_locked(&self, stamp: &StampFile) -> Result<(), Error> {
        let failed = cannot("change", &self.path);
        let found = std::fs::metadata(&self.path).map(|found| found.ino()).ok();
        // If another process has replaced the database, its checksum is not ours to change.
        let is_ours = found == self.inode;
        if is_ours {
            stamp.clear().map_err(&failed)?;
        }
        let is_busy: bool = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(self.failed("move the log"))?;
        if is_ours && !is_busy {
            stamp.put().map_err(failed)?;
        }
        Ok(())
    }

    /// Removes every trace of deleted rows from the files of the database.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn purge(&self) -> Result<(), Error> {
        self.connection
            .execute_batch("INSERT INTO words (words) VALUES ('optimize'); VACUUM;")
            .map_err(self.failed("remove deleted rows"))?;
        if self.inode.is_some() { self.checkpoint() } else { Ok(()) }
    }

    /// Returns how many sessions and texts there are.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn sizes(&self) -> Result<(u64, u64), Error> {
        let count = |statement: &str| {
            self.connection
                .query_row(statement, [], |row| row.get::<_, i64>(0))
                .map(i64::cast_unsigned)
                .map_err(self.failed("count"))
        };
        let sessions = count("SELECT count(*) FROM sessions WHERE root = session")?;
        Ok((sessions, count("SELECT coalesce(sum(texts), 0) FROM text_counts")?))
    }

    /// Returns the error for an operation of SQLite that failed.
    pub(crate) fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.display().to_string();
        move |source| Error::Sqlite { doing, path: path.clone(), source }
    }
}

/// Returns the error for an operation of the system that failed.
fn cannot(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |source| Error::Io { doing, path: path.clone(), source }
}

/// Deletes the database and what SQLite keeps beside it.
fn remove_files(path: &Path) -> Result<(), Error> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(cannot("delete", path)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Makes an empty file that only its owner can read. SQLite gives the files beside it the same mode.
fn make_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: i64 = 400;

    /// Makes an index with some words, and moves everything into the database.
    fn filled(path: &Path) {
        let index = Index::open(path).unwrap();
        for number in 0..WORDS {
            let words = format!("login word{number} zebra{}", number % 7);
            index
                .connection
                .execute("INSERT INTO words (rowid, terms, parts) VALUES (?1, ?2, '')", (number, words))
                .unwrap();
        }
        index.checkpoint().unwrap();
    }

    /// Returns how many rows have a word.
    fn rows(index: &Index, word: &str) -> i64 {
        let statement = "SELECT count(*) FROM words WHERE words MATCH ?1";
        index.connection.query_row(statement, [word], |row| row.get(0)).unwrap()
    }

    #[test]
    fn changed_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.db");
        filled(&path);
        let (whole, sum) = (std::fs::read(&path).unwrap(), std::fs::read(stamp::path_of(&path)).unwrap());
        let step = whole.len() / 300;
        for place in (3..whole.len()).step_by(step) {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            std::fs::write(stamp::path_of(&path), &sum).unwrap();
            assert!(Index::open_existing(&path).unwrap().is_none(), "byte {place} is changed");
        }
        let index = Index::open(&path).unwrap();
        assert_eq!(rows(&index, "login"), 0, "it is made again");
        drop(index);
        std::fs::write(&path, &whole).unwrap();
        std::fs::write(stamp::path_of(&path), &sum).unwrap();
        let index = Index::open(&path).unwrap();
        assert_eq!((rows(&index, "login"), rows(&index, "zebra3")), (WORDS, 57), "the same bytes are used");
    }

    #[test]
    fn database_without_a_checksum_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.db");
        filled(&path);
        for sum in [&b""[..], b"1 2 3", b"\xff\xfe", b"1 2 3 00000000 5 00000000\n"] {
            std::fs::write(stamp::path_of(&path), sum).unwrap();
            assert!(Index::open_existing(&path).unwrap().is_none(), "{sum:?}");
        }
    }

    #[test]
    fn removed_database_is_made_again_while_another_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.db");
        filled(&path);
        let old = Index::open(&path).unwrap();
        Index::remove(&path).unwrap();
        let new = Index::open(&path).unwrap();
        assert_eq!((rows(&old, "login"), rows(&new, "login")), (WORDS, 0));
        // The checksum is the one of the new database.
        old.checkpoint().unwrap();
        drop((old, new));
        assert!(Index::open_existing(&path).unwrap().is_some());
    }
}
