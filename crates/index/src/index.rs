//! Opens the database, and replaces one that cannot be used.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::Error;
use crate::schema::{TABLES, VERSION};

/// How long to wait for another process that is writing.
const BUSY_WAIT: Duration = Duration::from_mins(1);
/// The size of the write-ahead log that is kept after a checkpoint.
const LOG_BYTES_KEPT: i64 = 4 * 1024 * 1024;
/// The memory for pages, in kibibytes.
const CACHE_KIB: i64 = 16 * 1024;

/// The index of a store.
pub struct Index {
    pub(crate) connection: Connection,
    path: PathBuf,
}

impl Index {
    /// Opens the database. One that is missing, damaged, or of another version is made new, and is empty.
    ///
    /// # Errors
    /// What SQLite or the system says.
    pub fn open(path: &Path) -> Result<Self, Error> {
        match Self::open_known(path) {
            Ok(Some(index)) => return Ok(index),
            Ok(None) => {}
            Err(error) if error.is_damage() => {
                tracing::warn!("the index is damaged and is made again: {error}");
            }
            Err(error) => return Err(error),
        }
        Self::remove(path)?;
        Self::create(path)
    }

    /// Makes an index that only this process has.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn in_memory() -> Result<Self, Error> {
        let path = PathBuf::from(":memory:");
        let failed = |source| Error::Sqlite { doing: "make", path: path.display().to_string(), source };
        let connection = Connection::open_in_memory().map_err(failed)?;
        connection.execute_batch(TABLES).map_err(failed)?;
        Ok(Self { connection, path })
    }

    /// Deletes the database and what SQLite keeps beside it.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(path: &Path) -> Result<(), Error> {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            match std::fs::remove_file(&name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Io {
                        doing: "delete",
                        path: path.display().to_string(),
                        source: error,
                    });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Opens a database of this version; `None` if there is none, or it is of another version.
    fn open_known(path: &Path) -> Result<Option<Self>, Error> {
        if !path.exists() {
            return Ok(None);
        }
        let index = Self::connect(path)?;
        let version: i64 = index
            .connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(index.failed("read the version"))?;
        Ok((version == VERSION).then_some(index))
    }

    /// Makes the tables. If another process was faster, its tables are used.
    fn create(path: &Path) -> Result<Self, Error> {
        make_file(path).map_err(|source| Error::Io {
            doing: "create",
            path: path.display().to_string(),
            source,
        })?;
        let index = Self::connect(path)?;
        index.connection.execute_batch("BEGIN IMMEDIATE").map_err(index.failed("lock"))?;
        let version: i64 = index
            .connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(index.failed("read the version"))?;
        if version != VERSION {
            index.connection.execute_batch(TABLES).map_err(index.failed("make tables"))?;
            index
                .connection
                .pragma_update(None, "user_version", VERSION)
                .map_err(index.failed("set the version"))?;
        }
        index.connection.execute_batch("COMMIT").map_err(index.failed("commit"))?;
        Ok(index)
    }

    fn connect(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Sqlite { doing: "open", path: path.display().to_string(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
        // A crash must not damage it; losing the last updates is harmless.
        let settings = [("journal_mode", "WAL"), ("synchronous", "NORMAL"), ("temp_store", "MEMORY")];
        for (name, value) in settings {
            connection.pragma_update(None, name, value).map_err(failed)?;
        }
        connection.pragma_update(None, "secure_delete", true).map_err(failed)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(failed)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT).map_err(failed)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Removes every trace of deleted rows from the files of the database.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn purge(&self) -> Result<(), Error> {
        self.connection
            .execute_batch(
                "INSERT INTO words (words) VALUES ('optimize'); VACUUM; PRAGMA wal_checkpoint(TRUNCATE);",
            )
            .map_err(self.failed("remove deleted rows"))
    }

    /// Makes an error of something that failed.
    pub(crate) fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.display().to_string();
        move |source| Error::Sqlite { doing, path: path.clone(), source }
    }
}

/// Makes an empty file that only its owner can read. SQLite gives the files beside it the same mode.
fn make_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map(|_| ())
}
