//! The store: its format version, its directories, its runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steno_disk::{self as disk, Disk, Identity, StorePath, read_full};
use steno_model::{RunId, ThreadId};

use crate::error::Error;
use crate::names::RunFile;
use crate::sidecar::json_line;

/// The format version that this program writes, and the newest that it reads.
pub const STORE_VERSION: u64 = 2;
/// The oldest format version that this program reads. A writer raises it to [`STORE_VERSION`].
const STORE_VERSION_MIN: u64 = 1;

const FORMAT_NAME: &str = "steno.store";
const FORMAT_FILE_BYTES_MAX: usize = 4096;

/// Names that may exist in a directory that becomes a store: those of a store, and those that file systems create.
const KNOWN_NAMES: [&str; 7] =
    ["transcripts", "locks", "spine", "vault", "index.db", "lost+found", "config.toml"];

#[derive(Serialize, Deserialize)]
struct FormatFile {
    format: String,
    version: u64,
}

/// The identities of the files that say what a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFiles {
    /// The run.
    pub run: RunId,
    /// Its transcript.
    pub transcript: Identity,
    /// Its seals; `None` if it has none.
    pub seals: Option<Identity>,
}

/// An open store.
#[derive(Clone)]
pub struct Store {
    disk: Arc<dyn Disk>,
}

impl Store {
    /// Opens a store for writing and creates what is missing. A store of an older format is upgraded.
    ///
    /// # Errors
    /// [`Error::NotAStore`] for a directory with other content, [`Error::StoreTooNew`], or an I/O error.
    pub fn create(disk: Arc<dyn Disk>) -> Result<Self, Error> {
        let path = StorePath::format();
        let found = check_format(&*disk)?;
        if found.is_none() {
            check_no_strangers(&*disk)?;
        }
        if found != Some(STORE_VERSION) {
            let format = FormatFile { format: FORMAT_NAME.to_owned(), version: STORE_VERSION };
            disk::replace_file(&*disk, &path, format!("{}\n", json_line(&format)).as_bytes())
                .map_err(|source| Error::io("write", &path, source))?;
        }
        for dir in [StorePath::transcripts(), StorePath::locks()] {
            disk.make_dir(&dir).map_err(|source| Error::io("make", &dir, source))?;
        }
        Ok(Self { disk })
    }

    /// Opens a store for reading; a directory without one is an empty store.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self, Error> {
        if check_format(&*disk)?.is_none() {
            check_no_strangers(&*disk)?;
        }
        Ok(Self { disk })
    }

    /// Returns the disk of the store.
    #[must_use]
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Lists the runs, ordered by id.
    ///
    /// # Errors
    /// I/O errors.
    pub fn runs(&self) -> Result<Vec<RunId>, Error> {
        let dir = StorePath::transcripts();
        let names = self.disk.list(&dir).map_err(|source| Error::io("list", &dir, source))?;
        Ok(names.iter().filter_map(|name| transcript_of(name)).collect())
    }

    /// Lists the runs with the identities of their files, ordered by id.
    ///
    /// # Errors
    /// I/O errors.
    pub fn run_files(&self) -> Result<Vec<RunFiles>, Error> {
        let dir = StorePath::transcripts();
        let is_wanted = |name: &str| {
            matches!(RunFile::in_transcripts(name), Some(RunFile::Transcript(_) | RunFile::Seals(_)))
        };
        let found = self.disk.identities(&dir, &is_wanted);
        let found = found.map_err(|source| Error::io("list", &dir, source))?;
        let mut files: Vec<RunFiles> = Vec::with_capacity(found.len());
        for (name, identity) in found {
            match (RunFile::in_transcripts(&name), files.last_mut()) {
                (Some(RunFile::Transcript(run)), _) => {
                    files.push(RunFiles { run, transcript: identity, seals: None });
                }
                // In the order of names, seals come after the transcript. Seals without one belong to no run.
                (Some(RunFile::Seals(run)), Some(last)) if last.run == run => last.seals = Some(identity),
                (Some(RunFile::Seals(_) | RunFile::Notes(_) | RunFile::Lock(_)) | None, _) => {}
            }
        }
        Ok(files)
    }

    /// Tells whether the store has a run.
    ///
    /// # Errors
    /// I/O errors.
    pub fn has(&self, run: RunId) -> Result<bool, Error> {
        Ok(self.size(run)?.is_some())
    }

    /// Returns the length of a run's transcript; `None` when there is none.
    ///
    /// # Errors
    /// I/O errors.
    pub fn size(&self, run: RunId) -> Result<Option<u64>, Error> {
        let path = RunFile::Transcript(run).path();
        let found = self.disk.identity(&path).map_err(|source| Error::io("access", &path, source))?;
        Ok(found.map(|found| found.size_bytes))
    }

    /// Tells whether a run has a writer now.
    ///
    /// # Errors
    /// I/O errors.
    pub fn is_locked(&self, run: RunId) -> Result<bool, Error> {
        let path = RunFile::Lock(run).path();
        self.disk.is_locked(&path).map_err(|source| Error::io("access", &path, source))
    }

    /// Lists the runs that have a writer now.
    ///
    /// # Errors
    /// I/O errors.
    pub fn locked_runs(&self) -> Result<BTreeSet<RunId>, Error> {
        let dir = StorePath::locks();
        let run_of = |name: &str| match RunFile::in_locks(name) {
            Some(RunFile::Lock(run)) => Some(run),
            Some(RunFile::Transcript(_) | RunFile::Seals(_) | RunFile::Notes(_)) | None => None,
        };
        let locked = self.disk.locked_files(&dir, &|name| run_of(name).is_some());
        let locked = locked.map_err(|source| Error::io("access", &dir, source))?;
        Ok(locked.iter().filter_map(|name| run_of(name)).collect())
    }

    /// Lists the threads that have a spine, ordered by id.
    ///
    /// # Errors
    /// I/O errors.
    pub fn spines(&self) -> Result<Vec<ThreadId>, Error> {
        let dir = StorePath::spine();
        let names = self.disk.list(&dir).map_err(|source| Error::io("list", &dir, source))?;
        Ok(names.iter().filter_map(|name| ThreadId::parse(name).ok()).collect())
    }

    /// Tells whether a thread's spine has a writer now.
    ///
    /// # Errors
    /// I/O errors.
    pub fn is_spine_locked(&self, thread: &ThreadId) -> Result<bool, Error> {
        let path = StorePath::spine_lock(thread);
        self.disk.is_locked(&path).map_err(|source| Error::io("access", &path, source))
    }
}

/// Returns the run whose transcript has this name.
fn transcript_of(name: &str) -> Option<RunId> {
    match RunFile::in_transcripts(name)? {
        RunFile::Transcript(run) => Some(run),
        RunFile::Seals(_) | RunFile::Notes(_) | RunFile::Lock(_) => None,
    }
}

/// Checks the format file and returns its version; `None` when there is none.
fn check_format(disk: &dyn Disk) -> Result<Option<u64>, Error> {
    let path = StorePath::format();
    let failed = |source| Error::io("read", &path, source);
    let Some(file) = disk.open_read(&path).map_err(failed)? else { return Ok(None) };
    let mut bytes = vec![0; FORMAT_FILE_BYTES_MAX];
    let read = read_full(&*file, &mut bytes, 0).map_err(failed)?;
    let bad = |why: String| Error::BadFormatFile { why };
    let format: FormatFile =
        serde_json::from_slice(&bytes[..read]).map_err(|error| bad(error.to_string()))?;
    match (format.format.as_str(), format.version) {
        (FORMAT_NAME, found @ STORE_VERSION_MIN..=STORE_VERSION) => Ok(Some(found)),
        (FORMAT_NAME, found) if found > STORE_VERSION => {
            Err(Error::StoreTooNew { found, known: STORE_VERSION })
        }
        (FORMAT_NAME, found) => Err(bad(format!("there is no version {found}"))),
        (other, _) => Err(bad(format!("it names the format `{other}`"))),
    }
}

fn check_no_strangers(disk: &dyn Disk) -> Result<(), Error> {
    let root = StorePath::root();
    let names = disk.list(&root).map_err(|source| Error::io("list", &root, source))?;
    let stranger = |name: &String| {
        !KNOWN_NAMES.contains(&name.as_str()) && !name.starts_with(StorePath::format().as_str())
    };
    names.into_iter().find(stranger).map_or(Ok(()), |found| Err(Error::NotAStore { found }))
}
