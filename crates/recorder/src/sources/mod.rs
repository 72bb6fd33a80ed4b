//! Records agents' files, once or as they grow: the bytes go into the vault, and the events of their records into the
//! journal.
//!
//! Importing and following use the same stages. `import.rs` gives files to several lanes (`lane.rs`), each of which
//! records a round of files with shared syncs (`source/batch.rs`). `follow.rs` reads one file at a time, with a sync of
//! its own (`source.rs`).

mod adapter_source;
mod catalog;
mod coverage;
mod cursors;
mod derivation_state;
mod error;
mod exclusions;
mod feed;
mod follow;
mod follower_lock;
mod forgotten_sessions;
mod growing;
mod health;
mod identity;
mod import;
mod lane;
mod locations;
mod project_lookup;
mod rederive;
mod rederive_plan;
mod retries;
mod rewrite;
mod run_head;
mod run_recorder;
mod runs;
mod shared_file;
mod shared_source;
mod skip;
mod source;
mod source_file;
mod unread;
mod unrecorded;

use std::path::Path;
use std::sync::Arc;

use steno_capture::tail::MAX_READ_BYTES;
use steno_disk::Disk;
use steno_journal::{Error as JournalError, Journal, RecordingGuard, Store};
use steno_model::Timestamp;
use steno_vault::{Manifest, Outlines, Role, Sighting, SourceId, Vault};

use crate::entries::{EntryCollector, EntrySink, EntryTime};
use crate::forget;
pub(crate) use adapter_source::adapter_source;
pub(crate) use catalog::first_id_at;
pub(crate) use catalog::plain_name;
use catalog::{Catalog, KnownSource};
use derivation_state::DerivationState;
pub(crate) use feed::Feed;
pub(crate) use identity::{claude_slugs, plan_slug, strings_at};
use run_recorder::RunClaims;
use runs::OlderRuns;
pub(crate) use source::inferred_time;
use source::{OpenSource, Pace, SourceParts};

pub use catalog::last_written;
pub use coverage::{Coverage, coverage};
pub use error::SourceError;
pub use exclusions::{Exclusions, Verdict, is_in_project, is_project};
pub use follow::{FollowObserver, SourceFollower};
pub use follower_lock::{FollowerProcess, follower, program_written_at};
pub use forgotten_sessions::{all_session_hashes, is_left_out, plan_hash, session_hashes};
pub use growing::{FileGrowth, GrowingFile};
pub use health::RecordingCounts;
pub use identity::SessionIdentity;
pub use import::{ImportOutcome, ImportProgress};
pub use locations::{SourceListing, SourceLocations};
pub use project_lookup::ProjectLookup;
pub use rederive::{RederiveProgress, RederiveReport};
pub use rederive_plan::{
    RederivePlan, SourceToRederive, has_evidence, plan_rederive, plan_rederive_runs, runs_with_evidence,
};
pub use shared_file::{FilteredFile, SharedFileFormat, SharedFilePiece};
pub use skip::SkipReport;
pub use source_file::SourceFile;
pub use unrecorded::{UnrecordedFile, unrecorded_files};

/// Settings of a source recorder.
#[derive(Clone)]
pub struct SourceRecorderOptions {
    /// How many bytes of a growing file are read at a time.
    pub max_read_bytes: usize,
    /// The clock.
    pub clock: fn() -> jiff::Timestamp,
    /// Whether forgotten files are recorded again, as if they were new.
    pub again: bool,
    /// Collects entries in addition to events, if set.
    pub entries: Option<EntryCollector>,
    /// How many threads an import uses at most.
    pub lanes: usize,
    /// How many files may be open.
    pub open_files_max: usize,
}

/// The most threads of an import, unless set otherwise. More would wait for the disk.
const LANES_MAX: usize = 4;
/// The usual limit of open files.
const OPEN_FILES_USUAL: usize = 1024;

impl Default for SourceRecorderOptions {
    fn default() -> Self {
        Self {
            max_read_bytes: MAX_READ_BYTES,
            clock: jiff::Timestamp::now,
            again: false,
            entries: None,
            lanes: std::thread::available_parallelism().map_or(1, usize::from).min(LANES_MAX),
            open_files_max: OPEN_FILES_USUAL,
        }
    }
}

/// Records sources into a store.
pub struct SourceRecorder {
    vault: Arc<Vault>,
    journal: Journal,
    catalog: Catalog,
    options: SourceRecorderOptions,
    /// The adapters that the store was derived with.
    derived: DerivationState,
    /// Counts of sources that had to be derived again before they could continue.
    derived_first: RederiveReport,
}

impl SourceRecorder {
    /// Opens a store for recording sources.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn open(journal: Journal, options: SourceRecorderOptions) -> Result<Self, SourceError> {
        let vault = Vault::create(Arc::clone(journal.store().disk())).map_err(SourceError::Catalog)?;
        if let Err(error) = forget::finish(journal.store(), &vault, (options.clock)()) {
            // It is tried again at the next opening, and does not prevent recording.
            tracing::warn!(
                "cannot delete everything that was forgotten: {}",
                steno_model::with_causes(&error)
            );
        }
        let catalog = Catalog::of(&vault.outlines().map_err(SourceError::Catalog)?);
        let derived = DerivationState::read(&**journal.store().disk());
        let derived_first = RederiveReport::default();
        Ok(Self { vault, journal, catalog, options, derived, derived_first })
    }

    /// Returns the vault.
    #[must_use]
    pub fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    /// Returns the disk of the store.
    #[must_use]
    pub fn disk(&self) -> &Arc<dyn Disk> {
        self.journal.store().disk()
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.journal.store()
    }

    /// Returns the write side of the store.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns how many sources the store has.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.catalog.len()
    }

    fn now(&self) -> String {
        Timestamp::from_instant((self.options.clock)()).to_string()
    }

    /// Begins to record a file; `None` while recording is paused.
    fn enter(&self, path: &Path) -> Result<Option<RecordingGuard>, SourceError> {
        match self.store().begin_recording((self.options.clock)()) {
            Ok(recording) => Ok(Some(recording)),
            Err(JournalError::Paused) => Ok(None),
            Err(source) => Err(SourceError::Journal { path: path.to_owned(), source }),
        }
    }

    /// Opens the source of a file that is followed, where it was left.
    fn take_up(&mut self, file: &SourceFile) -> Result<OpenSource, SourceError> {
        let (parts, former) = self.source_parts(file, Pace::Live, OlderRuns::Report)?;
        let source = match OpenSource::open(parts) {
            // A killed process left runs that no manifest names, or a transcript is missing.
            Err(SourceError::OlderAdapter { .. }) => {
                OpenSource::open(self.source_parts(file, Pace::Live, OlderRuns::Refuse)?.0)?
            }
            opened => opened?,
        };
        if let Some(former) = former {
            self.catalog.moved_from(&former.path);
        }
        // Already here, and not only when it is closed: after a failure it must be found under its new name.
        self.catalog.put(source.known());
        Ok(source)
    }

    /// Returns what a file's source is opened with in an import, and the source as it was if the file has moved. No
    /// other file of the import can continue that source. A file with the same name and size may have been recorded
    /// just before.
    fn plan_source(
        &mut self,
        file: &SourceFile,
        (older, twin): (OlderRuns, Option<&Path>),
        claims: &Arc<RunClaims>,
    ) -> Result<(SourceParts, Option<KnownSource>), SourceError> {
        let (mut parts, former) = self.source_parts(file, Pace::Once, older)?;
        if let Some(former) = &former {
            self.catalog.moved_from(&former.path);
        }
        parts.claims = Arc::clone(claims);
        let twin = twin.and_then(|twin| self.catalog.at(twin));
        parts.is_wanted &= !twin.is_some_and(|twin| self.is_copy_of(file, twin));
        Ok((parts, former))
    }

    /// Finds a file's source, and derives it again first if necessary; returns what it is opened with, and the source as
    /// it was if the file has moved.
    fn source_parts(
        &mut self,
        file: &SourceFile,
        pace: Pace,
        mut older: OlderRuns,
    ) -> Result<(SourceParts, Option<KnownSource>), SourceError> {
        let mut info = file.whole_info();
        self.check_left_out(file, &info)?;
        let (id, known) = self.source_of(file)?;
        let provider = known.as_ref().and_then(|known| known.provider.clone());
        info.provider = info.provider.or(provider);
        if older == OlderRuns::Refuse || known.as_ref().is_some_and(|known| known.is_older) {
            self.derive_first(id)?;
            older = OlderRuns::Refuse;
        }
        let parts = SourceParts {
            vault: Arc::clone(&self.vault),
            journal: self.journal.clone(),
            id,
            info,
            seen: Sighting { modified: Some(file.modified.clone()), ..self.now().as_str().into() },
            is_wanted: file.is_wanted() && !self.is_copy(file),
            read_bytes: self.options.max_read_bytes,
            pace,
            entries: self.entry_sink(file, pace),
            older,
            flawed: Vec::new(),
            claims: Arc::default(),
        };
        Ok((parts, known.filter(|known| known.path != *file.path())))
    }

    /// Derives a source again before it continues. If it is damaged in the vault, its runs stay as they are, and its
    /// new bytes are stored all the same.
    fn derive_first(&mut self, id: SourceId) -> Result<(), SourceError> {
        let Some(manifest) = self.manifest(id)? else { return Ok(()) };
        match self.rederive_known(&manifest) {
            Err(error) if error.is_damage() => {
                tracing::warn!("{}; its runs are not derived again", steno_model::with_causes(&error));
                Ok(())
            }
            done => done,
        }
    }

    /// Finds the source that a file continues, or the id of a new one. Reads the vault, because another process may
    /// have recorded or moved the file since the catalog was read.
    fn source_of(&self, file: &SourceFile) -> Result<(SourceId, Option<KnownSource>), SourceError> {
        let known = self.catalog.at(file.path()).map_or(Ok(None), |known| self.manifest(known.id))?;
        if let Some(here) = known.filter(|manifest| is_at(manifest, file)) {
            return Ok((here.id, Some(KnownSource::of(&here))));
        }
        let id_new = match self.first_seen_here(file)? {
            Ok(here) => return Ok((here.id, Some(KnownSource::of(&here)))),
            Err(id) => id,
        };
        for known in self.catalog.may_be(file.path(), file.file) {
            if let Some(manifest) = self.manifest(known.id)?
                && self.goes_on(&manifest, file)
            {
                return Ok((manifest.id, Some(known)));
            }
        }
        Ok((id_new, None))
    }

    /// Reads a manifest; `None` if there is none that can be continued.
    ///
    /// An I/O error is returned as such: the manifest may exist, and a source must not begin twice.
    fn manifest(&self, id: SourceId) -> Result<Option<Manifest>, SourceError> {
        match self.vault.manifest(id) {
            Err(steno_vault::Error::Damaged { .. } | steno_vault::Error::TooNew { .. }) => Ok(None),
            read => read.map_err(SourceError::Catalog),
        }
    }

    /// Finds the source that was first seen at a file's path and is still there, or else the id that a new one gets.
    ///
    /// A forgotten source keeps its id. Recording it again begins another id, which is then continued.
    fn first_seen_here(&self, file: &SourceFile) -> Result<Result<Manifest, SourceId>, SourceError> {
        let mut forgotten = None;
        for id in catalog::ids_at(file.path()) {
            if self.vault.is_forgotten(id).map_err(SourceError::Catalog)? {
                forgotten.get_or_insert(id);
                continue;
            }
            match self.manifest(id)? {
                None => return Ok(Err(forgotten.filter(|_| !self.options.again).unwrap_or(id))),
                Some(manifest) if is_at(&manifest, file) => return Ok(Ok(manifest)),
                Some(_) => {}
            }
        }
        unreachable!("there are more numbers than sources")
    }

    /// Tells whether a file continues a source that was at another path.
    fn goes_on(&self, manifest: &Manifest, file: &SourceFile) -> bool {
        let path = &manifest.info.path.0;
        // Files beside a session may be alike in every session, and are never moved from one to another.
        let is_other_session =
            manifest.info.role == Role::Sidecar && manifest.info.session != file.info.session;
        is_at(manifest, file)
            || !path.exists()
                && !is_other_session
                && (catalog::is_named_alone(path, file.path())
                    || source::begins_with_all_of(&self.vault, manifest, file.path()))
    }

    /// Tells whether a file is a copy of a recorded file that still exists. Copies are kept as evidence but give no
    /// events.
    fn is_copy(&self, file: &SourceFile) -> bool {
        self.catalog.namesakes(file.path()).iter().any(|known| self.is_copy_of(file, known))
    }

    fn is_copy_of(&self, file: &SourceFile, known: &KnownSource) -> bool {
        let is_as_long = known.cursor.is_some_and(|cursor| cursor.offset() == file.size_bytes);
        is_as_long
            && known.path.exists()
            && self.vault.manifest(known.id).ok().flatten().is_some_and(|manifest| {
                manifest.adapted.is_some() && source::begins_with_all_of(&self.vault, &manifest, file.path())
            })
    }

    /// Begins to log the entries of a file, if entries are collected.
    fn entry_sink(&self, file: &SourceFile, pace: Pace) -> Option<EntrySink> {
        let collector = self.options.entries.as_ref().filter(|_| file.is_wanted())?;
        let time = match pace {
            Pace::Once => EntryTime::Record,
            Pace::Live => EntryTime::Capture,
        };
        Some(collector.source(Some(file.path().display().to_string()), time))
    }

    fn let_go(&mut self, source: OpenSource) -> Result<(), SourceError> {
        let now = self.now();
        let known = source.close(&now)?;
        self.catalog.put(known);
        Ok(())
    }

    /// Returns the outlines of all sources as they are now, and saves them for the next process.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn save_outlines(&self) -> Result<Outlines, SourceError> {
        let mut outlines = self.vault.outlines().map_err(SourceError::Catalog)?;
        if let Err(error) = self.vault.save_outlines(&mut outlines) {
            tracing::debug!("{}", steno_model::with_causes(&error));
        }
        Ok(outlines)
    }

    /// Makes everything that this process has written so far available to others.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn settle(&self) -> Result<(), SourceError> {
        self.vault.close_pack().map_err(SourceError::Catalog)
    }
}

/// Tells whether a source and a file have the same path, compressed or not.
fn is_at(manifest: &Manifest, file: &SourceFile) -> bool {
    plain_name(&manifest.info.path.0) == plain_name(file.path())
}

/// Tells whether a file is unchanged and fully recorded.
fn is_unchanged(known: &KnownSource, file: &SourceFile) -> bool {
    let is_here = known.path == *file.path();
    is_here
        && known.is_done
        && known.cursor.is_some_and(|cursor| steno_capture::tail::Tail::is_unchanged(file.path(), &cursor))
}
