//! Agents' files, archived and followed: each goes into the vault byte for byte, and its records into the journal.
//!
//! One way for both: a file that is imported and a file that is followed pass the same stages. What differs is the pace.

mod catalog;
mod coverage;
mod cursors;
mod error;
mod feed;
mod files;
mod follow;
mod health;
mod import;
mod places;
mod presence;
mod runs;
mod source;

use std::sync::Arc;

use steno_capture::tail::MAX_READ_BYTES;
use steno_disk::Disk;
use steno_journal::Journal;
use steno_model::Timestamp;
use steno_vault::Vault;

use crate::entries::{Discovered, EntryNumbers, EntryOptions, EntrySink};
use catalog::{Catalog, Known, Standing};
use source::{OpenSource, Pace, SourceParts};

pub use catalog::last_written;
pub use coverage::{Coverage, coverage};
pub use error::Error;
pub use files::ToArchive;
pub use follow::{Following, Watcher};
pub use health::Health;
pub use import::{Outcome, Progress};
pub use places::{Exclusions, Found, Places, is_project};
pub use presence::is_followed;

/// Settings of the archive.
#[derive(Clone)]
pub struct ArchiveOptions {
    /// How many bytes are taken from a growing file at a time.
    pub max_read_bytes: usize,
    /// Where the time comes from.
    pub clock: fn() -> jiff::Timestamp,
    /// Whether files that were forgotten are archived again, as if they were new.
    pub again: bool,
    /// How entries are logged beside the events, if anybody wants them.
    pub entries: Option<EntryOptions>,
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        Self { max_read_bytes: MAX_READ_BYTES, clock: jiff::Timestamp::now, again: false, entries: None }
    }
}

/// The archive of a store, to write.
pub struct Archive {
    vault: Arc<Vault>,
    journal: Journal,
    catalog: Catalog,
    options: ArchiveOptions,
    /// The names of sessions' prompts, as far as entries were logged.
    prompt_names: EntryNumbers,
}

impl Archive {
    /// Opens the archive.
    ///
    /// # Errors
    /// What the vault says.
    pub fn open(journal: Journal, options: ArchiveOptions) -> Result<Self, Error> {
        let vault = Vault::create(Arc::clone(journal.store().disk())).map_err(Error::Catalog)?;
        let catalog = Catalog::load(&vault)?;
        Ok(Self { vault, journal, catalog, options, prompt_names: EntryNumbers::default() })
    }

    /// Returns the vault.
    #[must_use]
    pub fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    /// Returns the disk that the store lies on.
    #[must_use]
    pub fn disk(&self) -> &Arc<dyn Disk> {
        self.journal.store().disk()
    }

    /// Returns how many sources the archive has.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.catalog.len()
    }

    fn now(&self) -> String {
        Timestamp::from_instant((self.options.clock)()).to_string()
    }

    /// Takes a file up where it was left.
    fn take_up(&mut self, file: &ToArchive, pace: Pace) -> Result<OpenSource, Error> {
        let known = self.catalog.at(file.path()).or_else(|| self.catalog.moved_here(file.file)).cloned();
        let (id, known) = match known {
            Some(known) => (known.id, Some(known)),
            None => match catalog::standing(&self.vault, file.path(), self.options.again) {
                Standing::Begun(known) => (known.id, Some(known)),
                Standing::New(id) => (id, None),
            },
        };
        if let Some(known) = &known {
            self.catalog.moved_from(&known.path);
        }
        let opened = OpenSource::open(SourceParts {
            vault: Arc::clone(&self.vault),
            journal: self.journal.clone(),
            id,
            info: file.info.clone(),
            since: file.modified.clone(),
            is_wanted: file.is_wanted,
            read_bytes: self.options.max_read_bytes,
            pace,
            entries: self.entry_sink(file),
        });
        if opened.is_err()
            && let Some(known) = known
        {
            self.catalog.put(known);
        }
        opened
    }

    /// Begins to log the entries of a file, if anybody wants them.
    fn entry_sink(&self, file: &ToArchive) -> Option<EntrySink> {
        let options = self.options.entries.clone().filter(|_| file.is_wanted)?;
        let sink = EntrySink::resume(options, self.prompt_names.names());
        let is_subagent =
            file.path().file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"));
        let what = if is_subagent { Discovered::Subagent } else { Discovered::Main };
        sink.discovered(&file.path().display().to_string(), what);
        Some(sink)
    }

    fn let_go(&mut self, mut source: OpenSource) -> Result<(), Error> {
        if let Some(names) = source.stop_entries() {
            self.prompt_names.learn(names);
        }
        let now = self.now();
        let known = source.close(&now)?;
        self.catalog.put(known);
        Ok(())
    }

    /// Makes what this process wrote ready for others. What it writes later is made ready when it does this again.
    ///
    /// # Errors
    /// What the vault says.
    pub fn settle(&self) -> Result<(), Error> {
        self.vault.close_pack().map_err(Error::Catalog)
    }
}

/// Tells whether there is nothing to do about a file.
fn is_unchanged(known: &Known, file: &ToArchive) -> bool {
    let is_here = known.path == *file.path();
    is_here
        && known.is_done
        && known.cursor.is_some_and(|cursor| steno_capture::tail::Tail::is_unchanged(file.path(), &cursor))
}
