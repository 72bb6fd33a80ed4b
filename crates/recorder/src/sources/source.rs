//! Records one source: its bytes go into the vault, and only then to its adapter and the journal.

mod batch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use steno_capture::tail::{Cursor, FileId, Tail, TailRead};
use steno_journal::{Error as JournalError, Journal, Level};
use steno_model::{RunId, Timestamp, Word};
use steno_vault::{
    AdapterProgress, Manifest, Remainder, Role, Sighting, SourceId, SourceInfo, SourceWriter, Vault,
};

use super::adapter_source::adapter_source;
use super::catalog::KnownSource;
use super::cursors::{self, CursorBuilder};
use super::error::SourceError;
use super::feed::Feed;
use super::run_recorder::RunClaims;
use super::runs::{self, KnownRuns, OlderRuns, SourceRuns};
use super::source_file::modified_at;
use crate::entries::EntrySink;

/// How many bytes are read at a time in an import.
const IMPORT_READ_BYTES: usize = 1024 * 1024;
/// The most reads of a source before it is closed, however fast it grows.
const LAST_LOOKS_MAX: usize = 1024;

/// How many files a source holds open besides those of its runs: the file, its lock, its manifest and its tail.
const OWN_FILES: usize = 4;
/// The most files that a source holds open.
pub(crate) const OPEN_FILES_MAX: usize = OWN_FILES + runs::OPEN_FILES_MAX;

/// What a source is opened with.
pub(crate) struct SourceParts {
    pub(crate) vault: Arc<Vault>,
    pub(crate) journal: Journal,
    pub(crate) id: SourceId,
    pub(crate) info: SourceInfo,
    /// The current time, and the file's modification time.
    pub(crate) seen: Sighting,
    /// Whether its records become events.
    pub(crate) is_wanted: bool,
    /// How many bytes are read at a time.
    pub(crate) read_bytes: usize,
    pub(crate) pace: Pace,
    /// Where its entries go, if they are collected.
    pub(crate) entries: Option<EntrySink>,
    /// What to do with runs that an older adapter derived.
    pub(crate) older: OlderRuns,
    /// Runs whose transcripts are missing or damaged and have to be derived again.
    pub(crate) flawed: Vec<RunId>,
    /// The runs of sources that are recorded at the same time.
    pub(crate) claims: Arc<RunClaims>,
}

/// How a source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Once, to its end.
    Once,
    /// As it grows.
    Live,
}

/// The outcome of one read of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// There may be more bytes.
    More,
    /// Everything is recorded.
    AtEnd,
    /// Everything is recorded, and the file is gone.
    Gone,
    /// Recording is paused; nothing was read.
    Paused,
}

/// A source that this process owns.
pub(crate) struct OpenSource {
    path: PathBuf,
    writer: SourceWriter,
    tail: Tail,
    feed: Feed,
    runs: SourceRuns,
    older: OlderRuns,
    /// The file's modification time when the generation was first seen: used for records without a time.
    captured: Option<Timestamp>,
    /// Bytes of the generation that are not yet safe on disk, so not yet fed to the adapter.
    unfed: Vec<u8>,
    buffer: Vec<u8>,
    read_bytes: usize,
    pace: Pace,
    /// What was found when it was opened, until that is taken.
    found: Option<FoundSource>,
    /// How many bytes were read.
    pub(crate) read: u64,
}

/// What is needed to continue a source where it was left.
struct FoundSource {
    vault: Arc<Vault>,
    seen: Sighting,
    /// Whether the vault had the source.
    is_known: bool,
    cursor: Option<Box<RawValue>>,
}

impl OpenSource {
    /// Opens a source where it was left.
    pub(crate) fn open(parts: SourceParts) -> Result<Self, SourceError> {
        let mut source = Self::begin(parts)?;
        source.commit_found()?;
        source.take_found()?;
        Ok(source)
    }

    /// Becomes the owner of a source. [`OpenSource::take_found`] has to follow, when what was found is safe.
    pub(crate) fn begin(parts: SourceParts) -> Result<Self, SourceError> {
        let SourceParts {
            vault,
            journal,
            id,
            info,
            seen,
            is_wanted,
            read_bytes,
            pace,
            entries,
            older,
            flawed,
            claims,
        } = parts;
        let path = info.path.0.clone();
        let failed = || SourceError::vault(&path);
        let before = vault.manifest(id).map_err(failed())?;
        let about = adapter_source(&vault, id, &info);
        let known = KnownRuns {
            named: runs_named(before.as_ref().and_then(|manifest| manifest.adapted.as_ref())),
            flawed,
            has_directory: older == OlderRuns::Rewrite && about.working_dir.is_some(),
        };
        let found = FoundSource {
            vault: Arc::clone(&vault),
            seen: seen.clone(),
            is_known: before.is_some(),
            cursor: before.and_then(|manifest| manifest.cursor),
        };
        let writer = vault.write(id, &info, seen).map_err(failed())?;
        let level = match pace {
            Pace::Once => Level::Written,
            Pace::Live => Level::Synced,
        };
        let feed = Feed::new(about, is_wanted);
        let mut source = Self {
            tail: Tail::new(&path),
            path,
            writer,
            feed,
            runs: SourceRuns::new(journal, id, level, older, known),
            older,
            captured: None,
            unfed: Vec::new(),
            buffer: Vec::new(),
            read_bytes: if pace == Pace::Once { IMPORT_READ_BYTES } else { read_bytes },
            pace,
            found: Some(found),
            read: 0,
        };
        source.runs.entries = entries;
        source.runs.claims = claims;
        Ok(source)
    }

    /// Switches the logging of entries off or on. Entries of bytes from the vault were logged before.
    fn set_quiet(&mut self, is_quiet: bool) {
        if let Some(entries) = &mut self.runs.entries {
            entries.set_quiet(is_quiet);
        }
    }

    /// Feeds the bytes of the vault; returns their cursor, or `None` if there are none.
    fn feed_again(&mut self, vault: &Vault, seen: Sighting) -> Result<Option<Cursor>, SourceError> {
        let manifest = self.writer.manifest().clone();
        let mut last = None;
        for (number, generation) in (0..).zip(&manifest.generations) {
            self.captured = inferred_time(&generation.since);
            let mut cursor = CursorBuilder::new(number);
            let feed = |offset: u64, bytes: &[u8]| {
                // These bytes came late, when the next generation had begun, and were never read as records.
                if generation.late_from.is_some_and(|late| offset >= late) {
                    return false;
                }
                cursor.take(bytes);
                self.feed.take(number, bytes, self.captured.as_ref(), &mut self.runs);
                true
            };
            if let Err(error) = vault.read(&manifest, number, 0, feed) {
                if !error.is_damage() || self.older == OlderRuns::Rewrite {
                    return Err(SourceError::vault(&self.path)(error));
                }
                return self.go_on_after_damage(vault, &error, seen);
            }
            last = Some(cursor.finish());
            self.feed.pause(self.captured.as_ref(), &mut self.runs);
        }
        self.check_runs()?;
        let is_new = manifest.generations.len() == 1 && self.writer.is_empty();
        Ok(last.filter(|_| !is_new))
    }

    /// Reads new bytes before the source is closed, and compares everything that was read: growth can hide a change in
    /// the middle of a file.
    pub(crate) fn make_sure(&mut self, now: &str) -> Result<(), SourceError> {
        self.tail.recheck();
        for _ in 0..LAST_LOOKS_MAX {
            if self.turn(now)? != ReadOutcome::More {
                break;
            }
        }
        Ok(())
    }

    /// Returns how many files it holds open.
    pub(crate) fn open_files(&self) -> usize {
        OWN_FILES + self.runs.open_files()
    }

    /// Returns the id of the file, once it was opened.
    pub(crate) fn file(&self) -> Option<FileId> {
        self.tail.cursor().map(|cursor| cursor.stamp.file)
    }

    /// Continues a source whose evidence is damaged. Unless its last generation is whole, the file is stored again as a
    /// new generation. No more events are made, because it is unknown which records already have events.
    fn go_on_after_damage(
        &mut self,
        vault: &Vault,
        error: &steno_vault::Error,
        seen: Sighting,
    ) -> Result<Option<Cursor>, SourceError> {
        tracing::warn!(
            "the evidence of `{}` is damaged: {error}; its bytes are stored again, but produce no more events",
            self.path.display()
        );
        self.feed.give_up();
        let last = self.writer.generation();
        let mut cursor = CursorBuilder::new(last);
        let take = |_: u64, bytes: &[u8]| {
            cursor.take(bytes);
            true
        };
        if vault.read(self.writer.manifest(), last, 0, take).is_ok() {
            return Ok(Some(cursor.finish()));
        }
        self.writer.begin_generation("damaged", seen).map_err(SourceError::vault(&self.path))?;
        Ok(Some(CursorBuilder::new(last + 1).finish()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether it is a shared file.
    pub(crate) fn is_shared(&self) -> bool {
        self.writer.manifest().info.role == Role::Shared
    }

    /// Returns the catalog entry of the source.
    pub(crate) fn known(&self) -> KnownSource {
        KnownSource::of(self.writer.manifest())
    }

    /// Reads once and records what is new, with a sync of its own.
    pub(crate) fn turn(&mut self, now: &str) -> Result<ReadOutcome, SourceError> {
        let _recording = match self.runs.store().begin_recording(jiff::Timestamp::now()) {
            Ok(recording) => recording,
            Err(JournalError::Paused) => return Ok(ReadOutcome::Paused),
            Err(source) => return Err(SourceError::Journal { path: self.path.clone(), source }),
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let look = self.tail.read_next(&mut buffer, self.read_bytes);
        let outcome = look.map_err(SourceError::from).and_then(|look| self.take(look, &buffer, now));
        self.buffer = buffer;
        outcome
    }

    fn take(&mut self, look: TailRead, bytes: &[u8], now: &str) -> Result<ReadOutcome, SourceError> {
        match look {
            TailRead::Bytes { .. } => {
                self.read += bytes.len() as u64;
                self.writer.append(bytes).map_err(SourceError::vault(&self.path))?;
                self.unfed.extend_from_slice(bytes);
                self.feed_all(Remainder::InTail)?;
                Ok(ReadOutcome::More)
            }
            TailRead::Late { generation, offset, .. } => {
                self.read += bytes.len() as u64;
                self.writer.append_late(generation, offset, bytes).map_err(SourceError::vault(&self.path))?;
                Ok(ReadOutcome::More)
            }
            TailRead::NewGeneration { why, .. } => {
                self.feed_all(Remainder::InChunks)?;
                // Feeding this again from the vault must give the same result, so the generation ends with a pause.
                self.feed.pause(self.captured.as_ref(), &mut self.runs);
                self.check_runs()?;
                let why = format!("{why:?}").to_lowercase();
                let seen = Sighting { modified: modified_at(&self.path), ..now.into() };
                self.captured = inferred_time(&seen);
                self.writer.begin_generation(&why, seen).map_err(SourceError::vault(&self.path))?;
                Ok(ReadOutcome::More)
            }
            TailRead::AtEnd => {
                self.rest()?;
                Ok(ReadOutcome::AtEnd)
            }
            TailRead::Gone => {
                self.rest()?;
                Ok(ReadOutcome::Gone)
            }
        }
    }

    /// Feeds the bytes that are safe.
    pub(crate) fn feed_committed(&mut self) -> Result<(), SourceError> {
        let before = self.writer.len() - self.unfed.len() as u64;
        let safe = self.writer.safe_len().saturating_sub(before);
        let ready = usize::try_from(safe).unwrap_or(usize::MAX).min(self.unfed.len());
        let is_early = cfg!(feature = "mutant-events-before-evidence");
        self.feed_first(if is_early { self.unfed.len() } else { ready })
    }

    fn feed_all(&mut self, keep: Remainder) -> Result<(), SourceError> {
        self.writer.commit(keep).map_err(SourceError::vault(&self.path))?;
        self.feed_first(self.unfed.len())
    }

    fn feed_first(&mut self, len: usize) -> Result<(), SourceError> {
        let generation = self.writer.generation();
        if self.captured.is_none() {
            let since = self.writer.manifest().generations.last().map(|generation| &generation.since);
            self.captured = since.and_then(inferred_time);
        }
        self.feed.take(generation, &self.unfed[..len], self.captured.as_ref(), &mut self.runs);
        self.unfed.drain(..len);
        if self.unfed.is_empty() && self.pace == Pace::Once {
            self.unfed = Vec::new();
        }
        self.check_runs()
    }

    /// Records what the file has so far. It may still grow.
    fn rest(&mut self) -> Result<(), SourceError> {
        if !self.unfed.is_empty() {
            self.feed_all(Remainder::InTail)?;
        }
        self.feed.pause(self.captured.as_ref(), &mut self.runs);
        self.check_runs()
    }

    /// Ends the source: nobody writes it any more.
    pub(crate) fn finish(&mut self) -> Result<(), SourceError> {
        self.feed.finish(self.captured.as_ref(), &mut self.runs);
        self.check_runs()
    }

    /// Replaces the source's runs by those derived from the vault, which was fed when the source was opened; returns
    /// how many runs, and how many events of others they carry. `None` if no adapter reads the source.
    pub(crate) fn derive(&mut self) -> Result<Option<(u64, u64)>, SourceError> {
        self.feed.finish(self.captured.as_ref(), &mut self.runs);
        self.check_runs()?;
        let Some(adapter) = self.feed.adapter() else { return Ok(None) };
        let failed = |source| SourceError::Journal { path: self.path.clone(), source };
        self.runs.put_in_place(adapter).map(Some).map_err(failed)
    }

    /// Returns the names of the source's runs.
    pub(crate) fn runs(&self) -> Vec<String> {
        self.runs.names()
    }

    /// Returns how many runs were begun.
    pub(crate) fn runs_begun(&self) -> u64 {
        self.runs.begun
    }

    /// Returns how many damaged runs were derived again.
    pub(crate) fn runs_mended(&self) -> u64 {
        self.runs.mended
    }

    /// Returns how many runs stay as they are, because their transcripts must not be written to.
    pub(crate) fn runs_refused(&self) -> u64 {
        self.runs.count_refused()
    }

    fn check_runs(&mut self) -> Result<(), SourceError> {
        match self.runs.take_failure() {
            None if self.runs.is_older && self.older == OlderRuns::Report => {
                Err(SourceError::OlderAdapter { path: self.path.clone() })
            }
            None => Ok(()),
            Some(source) => Err(SourceError::Journal { path: self.path.clone(), source }),
        }
    }

    /// Returns how many events were written, and how many could not be.
    pub(crate) fn events(&self) -> (u64, u64) {
        (self.runs.written, self.runs.refused)
    }

    /// Returns how much of the source was understood, where an adapter reads it.
    pub(crate) fn completeness(&self) -> Option<&steno_adapters::Completeness> {
        self.feed.completeness()
    }

    /// Closes the source: seals its runs and saves its cursor.
    pub(crate) fn close(mut self, now: &str) -> Result<KnownSource, SourceError> {
        let keep = if self.pace == Pace::Once { Remainder::InChunks } else { Remainder::InTail };
        self.feed_all(keep)?;
        let outcome = self.runs.close();
        outcome.map_err(|source| SourceError::Journal { path: self.path.clone(), source })?;
        if let Some(info) = self.recognised() {
            self.writer.set_info(&info, now).map_err(SourceError::vault(&self.path))?;
        }
        let (cursor, adapted) = self.state();
        self.writer.save_state(cursor, adapted, now, keep).map_err(SourceError::vault(&self.path))?;
        Ok(self.known())
    }

    /// Returns the description of the source, if its provider was recognised by its content.
    fn recognised(&self) -> Option<SourceInfo> {
        let info = &self.writer.manifest().info;
        let provider = self.feed.provider().filter(|_| info.provider.is_none())?;
        Some(SourceInfo { provider: Some(Word::Known(provider)), ..info.clone() })
    }

    /// Returns how far the source was read and made into events.
    fn state(&self) -> (Option<Box<RawValue>>, Option<AdapterProgress>) {
        let adapted = self.feed.adapter().map(|adapter| AdapterProgress {
            generation: self.writer.generation(),
            // As long as a transcript is refused, the source is not done: it is tried again, as the transcript may be
            // repaired.
            offset: if self.runs.has_refused { 0 } else { self.writer.len() },
            adapter: adapter.to_owned(),
            runs: self.runs.names(),
            started: self.runs.started.clone(),
        });
        (self.tail.cursor().as_ref().map(cursors::write), adapted)
    }
}

/// Returns the runs that a source was made into.
pub(crate) fn runs_named(adapted: Option<&AdapterProgress>) -> Vec<RunId> {
    let named = adapted.into_iter().flat_map(|adapted| &adapted.runs);
    named.filter_map(|run| RunId::parse(run).ok()).collect()
}

pub(crate) fn inferred_time(since: &Sighting) -> Option<Timestamp> {
    Timestamp::parse(since.inferred_time()?).ok()
}

/// Tells whether a file begins with all bytes of a source's last generation, which is not empty.
pub(crate) fn begins_with_all_of(vault: &Vault, manifest: &Manifest, path: &Path) -> bool {
    let Some(generation) = manifest.generation_last() else { return false };
    let mut known = CursorBuilder::new(generation);
    let take = |_: u64, bytes: &[u8]| {
        known.take(bytes);
        true
    };
    if vault.read(manifest, generation, 0, take).is_err() {
        return false;
    }
    let cursor = known.finish();
    let look = Tail::resume(path, cursor).read_next(&mut Vec::new(), 1);
    cursor.offset() > 0 && matches!(look, Ok(TailRead::Bytes { .. } | TailRead::AtEnd))
}
