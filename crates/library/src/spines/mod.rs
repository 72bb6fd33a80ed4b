//! Spines in the store, in a directory or in a tar file: checked, and read as records and events.

mod events;
mod rollout_lines;
mod tar_file;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use steno_adapters::codex::spine::{RolloutIndex, SpineUnfolder};
use steno_disk::RealDisk;
use steno_model::{ExchangeEvent, SpineRecord, ThreadId};
use steno_spine::{
    Artifacts, Report, read_directory, read_spine, read_tar, validate_directory, validate_spine, validate_tar,
};

use self::events::SpineEvents;
use self::rollout_lines::RolloutFiles;
use self::tar_file::TarFile;
use crate::{Error, FileError, Library};

/// A spine, wherever it is.
pub enum SpineTarget {
    /// In the store of a library.
    Thread(Rc<Library>, ThreadId),
    /// In a directory: segments, or a bundle.
    Directory(PathBuf),
    /// In a tar file of a bundle, compressed or not.
    Tar(PathBuf),
}

/// A part of a session that a spine has recorded.
pub enum SpineItem {
    /// A record.
    Record(SpineRecord),
    /// An event, with the `seq` of the record that it was made from.
    Event(ExchangeEvent, u64),
}

impl SpineTarget {
    /// Returns its name, as users write it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Thread(_, thread) => thread.to_string(),
            Self::Directory(path) | Self::Tar(path) => path.display().to_string(),
        }
    }

    /// Checks it by every rule.
    ///
    /// # Errors
    /// An error of the system; findings are in the report.
    pub fn validate(&self) -> Result<Report, Error> {
        match self {
            Self::Thread(library, thread) => Ok(validate_spine(library.store()?, thread)?),
            Self::Directory(path) => Ok(validate_directory(&open_directory(path)?)?),
            Self::Tar(path) => Ok(validate_tar(TarFile::open(path)?)),
        }
    }

    /// Reads its records, and the events that the adapter makes of their session, in order. `report` is that of its check,
    /// which has found it valid. Returns its artifacts.
    ///
    /// The adapter reads the rollouts that the records were made from, if they are in the bundle or in the store. Otherwise
    /// it reads the records, converted back into lines.
    ///
    /// # Errors
    /// An error of the journal or the system.
    pub fn read(&self, report: &Report, each: &mut dyn FnMut(SpineItem)) -> Result<Artifacts, Error> {
        let mut events = self.rollout_events(report)?;
        let mut unfolding = events.is_none().then(SpineUnfolder::new);
        let events = events.get_or_insert_default();
        let artifacts = self.records(&mut |record| {
            let seq = record.seq.get();
            if let Some(line) = unfolding.as_mut().and_then(|unfolding| unfolding.line(&record)) {
                events.line(seq, line.as_bytes());
            }
            each(SpineItem::Record(record));
            events.drain(seq, each);
        })?;
        events.finish();
        events.drain(u64::MAX, each);
        Ok(artifacts)
    }

    /// Reads the rollouts that the records were made from; `None` if they are not available.
    fn rollout_events(&self, report: &Report) -> Result<Option<SpineEvents>, Error> {
        let mut index = RolloutIndex::default();
        self.records(&mut |record| index.record(&record))?;
        if index.sections().is_empty() {
            return Ok(None);
        }
        let mut events = SpineEvents::default();
        let is_read = RolloutFiles::of(self, report)?.feed(&index, &mut events);
        Ok(is_read.then_some(events))
    }

    fn records(&self, each: &mut dyn FnMut(SpineRecord)) -> Result<Artifacts, Error> {
        match self {
            Self::Thread(library, thread) => Ok(read_spine(library.store()?, thread, each)?),
            Self::Directory(path) => Ok(read_directory(Arc::new(open_directory(path)?), each)?),
            Self::Tar(path) => {
                let read = read_tar(TarFile::open(path)?, each);
                read.map_err(|error| FileError::of("read", path, error).into())
            }
        }
    }
}

/// Opens a directory outside the store.
///
/// # Errors
/// An error of the system.
pub fn open_directory(path: &Path) -> Result<RealDisk, FileError> {
    let opened = RealDisk::open(path).and_then(|disk| disk.ok_or_else(|| io::ErrorKind::NotFound.into()));
    opened.map_err(|error| FileError::of("open", path, error))
}
