//! The files of wrapped commands in the store: `steno run` writes them, and they are imported like agents' files.
//!
//! A file is locked while its command runs. A second process records it as it grows; what that process leaves is
//! imported later. The file is removed when the vault and the journal have it.

use std::io;
use std::sync::Arc;

use steno_capture::wrap::{RecordingPermit, SpoolHost, SpoolWriter};
use steno_disk::{DiskFile, LockGuard, StorePath, append_all};
use steno_journal::Store;
use steno_model::RunId;
use steno_model::wrap::WrapHeader;
use uuid::Uuid;

/// How many bytes are reserved for the rest of a frame and the last lines, if the disk becomes full.
const RESERVE_BYTES: usize = 320 * 1024;

/// Why the file of a wrapped command cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{path}`")]
pub struct WrapError {
    action: &'static str,
    path: StorePath,
    #[source]
    source: io::Error,
}

/// A wrapped command whose file is in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedWrap {
    /// The id of its run.
    pub id: Uuid,
}

/// Lists the wrapped commands whose files are in the store, sorted by name.
///
/// # Errors
/// An I/O error.
pub fn wraps(store: &Store) -> Result<Vec<RecordedWrap>, WrapError> {
    let names = store.disk().list(&dir()).map_err(failed("list", &dir()))?;
    let id = |name: &String| Uuid::try_parse(name.strip_suffix(".wrap")?).ok();
    let mut ids: Vec<Uuid> = names.iter().filter_map(id).collect();
    ids.sort_unstable();
    Ok(ids.into_iter().map(|id| RecordedWrap { id }).collect())
}

/// A file that is being written, locked as long as this exists.
pub struct OpenWrap {
    /// The command.
    pub wrap: RecordedWrap,
    /// Writes to it.
    pub writer: SpoolWriter,
    /// The lock.
    pub guard: Box<dyn LockGuard>,
}

impl RecordedWrap {
    /// Chooses an id for a new command.
    #[must_use]
    pub fn new() -> Self {
        Self { id: Uuid::new_v4() }
    }

    /// Returns the id of its run.
    #[must_use]
    pub fn run(self) -> RunId {
        RunId::from_uuid(self.id)
    }

    /// Returns the path of its file in the store.
    #[must_use]
    pub fn path(self) -> StorePath {
        dir().below(format!("{}.wrap", self.id))
    }

    fn reserve(self) -> StorePath {
        dir().below(format!("{}.reserve", self.id))
    }

    /// Creates its file.
    ///
    /// # Errors
    /// An I/O error.
    pub fn create(self, store: &Store, header: &WrapHeader) -> Result<OpenWrap, WrapError> {
        let (disk, path) = (store.disk(), self.path());
        let busy = || failed("lock", &path)(io::ErrorKind::ResourceBusy.into());
        let guard = self.lock(store)?.ok_or_else(busy)?;
        let create = || -> io::Result<Arc<dyn DiskFile>> {
            disk.make_dir(&dir())?;
            let file = disk.create(&path)?;
            disk.sync_dir(&dir())?;
            Ok(file)
        };
        let file = create().map_err(failed("create", &path))?;
        let has_reserve =
            disk.create(&self.reserve()).and_then(|file| append_all(&*file, &vec![0; RESERVE_BYTES]));
        if let Err(error) = has_reserve {
            tracing::debug!("no space is reserved for the end of the record: {error}");
        }
        let host = Box::new(StoreHost { store: store.clone(), wrap: self });
        let writer = SpoolWriter::begin(file, host, header);
        writer.map(|writer| OpenWrap { wrap: self, writer, guard }).map_err(|error| {
            self.remove(store).ok();
            failed("write", &path)(error)
        })
    }

    /// Locks it as long as the guard lives; `None` while its command runs.
    ///
    /// # Errors
    /// An I/O error.
    pub fn lock(self, store: &Store) -> Result<Option<Box<dyn LockGuard>>, WrapError> {
        let path = StorePath::locks().below(format!("wrap-{}.lock", self.id));
        store.disk().try_lock(&path).map_err(failed("lock", &path))
    }

    /// Removes its file after it was imported.
    ///
    /// # Errors
    /// An I/O error.
    pub fn remove(self, store: &Store) -> Result<(), WrapError> {
        let (disk, path) = (store.disk(), self.path());
        let remove = || -> io::Result<()> {
            disk.remove(&self.reserve())?;
            disk.remove(&path)?;
            disk.sync_dir(&dir())
        };
        remove().map_err(failed("delete", &path))
    }

    /// Removes the space that was reserved.
    pub fn free_reserve(self, store: &Store) {
        store.disk().remove(&self.reserve()).ok();
    }
}

impl Default for RecordedWrap {
    fn default() -> Self {
        Self::new()
    }
}

/// The store as a spool sees it.
struct StoreHost {
    store: Store,
    wrap: RecordedWrap,
}

impl SpoolHost for StoreHost {
    fn enter(&self) -> Option<RecordingPermit> {
        let permit = self.store.begin_recording(jiff::Timestamp::now());
        // If the state of the pause cannot be read, nothing is written.
        permit.ok().map(|permit| Box::new(permit) as RecordingPermit)
    }

    fn free_reserve(&mut self) {
        self.wrap.free_reserve(&self.store);
    }
}

/// The directory of the files.
fn dir() -> StorePath {
    StorePath::new("wraps".to_owned())
}

fn failed(action: &'static str, path: &StorePath) -> impl Fn(io::Error) -> WrapError + use<> {
    let path = path.clone();
    move |source| WrapError { action, path: path.clone(), source }
}
