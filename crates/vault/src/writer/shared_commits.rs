//! Commits of several sources that share their syncs.
//!
//! The chunks of all sources go to the pack, and their new manifests to files with temporary names. One sync makes all
//! of it safe. Then the manifests are renamed, and one sync of their directory makes the names safe.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use steno_disk::{SharedSync, StagedFile, SyncSet, SyncTicket, append_all, sync_dir};

use super::{MoreChunks, SourceWriter};
use crate::chunker::InputEnd;
use crate::codec::Codec;
use crate::error::Error;
use crate::manifest::{AdapterProgress, Manifest, ManifestLine, SourceInfo, source_line};
use crate::names::{self, VaultFile};
use crate::pack::check_in_place;
use crate::tail_file;
use crate::vault::Vault;

/// The part of a source's end that is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEnd {
    /// Everything: the source was read to its end.
    Reached,
    /// Only bytes that fill whole chunks: there are more to come.
    Open,
}

/// A new manifest that is not in place yet.
pub(super) struct StagedManifest {
    file: StagedFile,
    /// The manifest before it.
    before: Manifest,
    lines: usize,
    len: u64,
}

/// Manifest lines that are written and not yet synced.
pub(super) struct WrittenState {
    lines: Vec<ManifestLine>,
    len: u64,
}

/// Commits of sources that share their syncs, for several threads.
pub struct SharedCommits {
    vault: Arc<Vault>,
    sync: SharedSync,
}

impl SharedCommits {
    /// Creates commits for a vault's disk.
    #[must_use]
    pub fn new(vault: &Arc<Vault>) -> Self {
        let failed = Arc::clone(vault);
        let sync = SharedSync::new(Arc::clone(vault.disk()), move || failed.chunks().give_up_pack());
        Self { vault: Arc::clone(vault), sync }
    }

    /// Begins to write what is made safe with this ticket.
    #[must_use]
    pub fn begin(&self) -> SyncTicket {
        self.sync.begin()
    }

    /// Makes other files safe.
    ///
    /// # Errors
    /// As [`SharedSync::sync`].
    pub fn sync(&self, ticket: SyncTicket, set: &SyncSet) -> io::Result<()> {
        self.sync.sync(ticket, set)
    }

    /// Makes safe what was appended to the sources, or found when they were opened; returns the outcome of each. After
    /// a failed sync all of them refuse everything.
    ///
    /// A source with a tail, that is with bytes that its previous owner did not store in chunks, has to be committed by
    /// itself first, unless its end is reached.
    pub fn commit(
        &self,
        ticket: SyncTicket,
        writers: &mut [(&mut SourceWriter, SourceEnd)],
    ) -> Vec<Result<(), Error>> {
        let mut outcomes: Vec<Result<(), Error>> =
            writers.iter_mut().map(|(writer, end)| writer.stage(*end)).collect();
        let is_staged = |writer: &SourceWriter| writer.staged.is_some();
        if !writers.iter().any(|(writer, _)| is_staged(writer)) {
            return outcomes;
        }
        if cfg!(feature = "mutant-manifest-before-syncfs") {
            let both = writers.iter_mut().zip(&mut outcomes);
            both.for_each(|((writer, _), outcome)| *outcome = writer.place_staged());
        }
        let synced = self.sync_staged(ticket, writers);
        let mut failed = synced.err();
        let mut both = writers.iter_mut().zip(&mut outcomes);
        for ((writer, _), outcome) in both.by_ref().filter(|((writer, _), _)| is_staged(writer)) {
            *outcome = match failed.take() {
                // The first one gets the error of the disk.
                Some(error) => {
                    failed = Some(again(&error));
                    Err(writer.unstage(error))
                }
                None => writer.place_staged(),
            };
        }
        self.sync_names(writers, &mut outcomes);
        outcomes
    }

    /// Syncs the pack and the staged manifests.
    fn sync_staged(
        &self,
        ticket: SyncTicket,
        writers: &[(&mut SourceWriter, SourceEnd)],
    ) -> Result<(), Error> {
        self.vault.chunks().sync_with(|pack| {
            let mut set = SyncSet::default();
            if let Some(pack) = pack {
                set.file(pack);
            }
            let staged = writers.iter().filter_map(|(writer, _)| writer.staged.as_ref());
            staged.for_each(|staged| set.file(Arc::clone(staged.file.file())));
            self.sync.sync(ticket, &set)
        })
    }

    /// Syncs the names of manifests that were put in place.
    fn sync_names(&self, writers: &mut [(&mut SourceWriter, SourceEnd)], outcomes: &mut [Result<(), Error>]) {
        let dir = names::sources();
        let mut failed = sync_dir(&**self.vault.disk(), &dir).map_err(Error::not_synced(&dir)).err();
        for ((writer, _), outcome) in writers.iter_mut().zip(outcomes).filter(|(_, outcome)| outcome.is_ok())
        {
            match failed.take() {
                Some(error) => {
                    failed = Some(again(&error));
                    writer.is_poisoned = true;
                    *outcome = Err(error);
                }
                None => writer.end_commit(),
            }
        }
    }
}

/// Returns the same failure for another source.
fn again(error: &Error) -> Error {
    match error {
        Error::NoRoom { path, source } => Error::NoRoom { path: path.clone(), source: source.kind().into() },
        Error::NotSynced { path, source } => {
            let source = source
                .raw_os_error()
                .map_or_else(|| io::Error::other("a shared sync failed"), io::Error::from_raw_os_error);
            Error::NotSynced { path: path.clone(), source }
        }
        Error::Vanished { path } => Error::Vanished { path: path.clone() },
        Error::Locked { .. }
        | Error::Forgotten { .. }
        | Error::Poisoned { .. }
        | Error::Busy { .. }
        | Error::NoSuchSource { .. }
        | Error::MissingChunk { .. }
        | Error::DamagedChunk { .. }
        | Error::Damaged { .. }
        | Error::TooNew { .. }
        | Error::NoSuchBytes { .. }
        | Error::NotRegular { .. }
        | Error::Io { .. } => Error::not_synced(&names::packs())(io::Error::other("a shared sync failed")),
    }
}

impl SourceWriter {
    /// Stores what was appended in chunks, which are not safe yet, and frees buffers.
    ///
    /// # Errors
    /// As [`SourceWriter::append`].
    pub fn store_chunks(&mut self, end: SourceEnd) -> Result<(), Error> {
        self.attempt(|writer| {
            writer.cut(match end {
                SourceEnd::Reached => InputEnd::Closed,
                SourceEnd::Open => InputEnd::Open,
            })
        })?;
        if end == SourceEnd::Reached {
            (self.codec, self.uncut) = (Codec::default(), Vec::new());
        }
        Ok(())
    }

    /// Writes the new manifest to a file with a temporary name.
    fn stage(&mut self, end: SourceEnd) -> Result<(), Error> {
        self.store_chunks(end)?;
        // The manifest of a new source is written with its first bytes.
        if self.chunked.is_empty() && (self.file.is_some() || !self.was_found) {
            return Ok(());
        }
        self.attempt(|writer| {
            let before = writer.manifest.clone();
            if !writer.chunked.is_empty() {
                let more = MoreChunks::new(writer.generation(), writer.stored_len(), &writer.chunked);
                writer.manifest.take(ManifestLine::Chunks(more)).expect("our own lines are in order");
            }
            let text = writer.manifest.to_lines();
            let path = VaultFile::Manifest(writer.manifest.id).path();
            match StagedFile::write(&**writer.vault.disk(), &path, text.as_bytes()) {
                Ok(file) => {
                    let (lines, len) = (text.lines().count(), text.len() as u64);
                    writer.staged = Some(StagedManifest { file, before, lines, len });
                    Ok(())
                }
                Err(error) => {
                    writer.manifest = before;
                    Err(Error::io("write", &path)(error))
                }
            }
        })
    }

    /// Drops the staged manifest after a failure.
    fn unstage(&mut self, error: Error) -> Error {
        if let Some(staged) = self.staged.take() {
            staged.file.discard(&**self.vault.disk());
            self.manifest = staged.before;
        }
        self.is_poisoned = !error.changed_nothing();
        error
    }

    /// Puts the staged manifest in place, unless chunks that it names were lost.
    fn place_staged(&mut self) -> Result<(), Error> {
        if let Some(Err(error)) = self.sweep_guard.as_ref().map(crate::vault::SweepGuard::check) {
            return Err(self.unstage(error));
        }
        let Some(StagedManifest { file, before, lines, len }) = self.staged.take() else { return Ok(()) };
        match file.place(&**self.vault.disk()) {
            Ok(file) => {
                self.file = Some(file);
                (self.manifest.lines, self.manifest.good_len) = (lines, len);
                Ok(())
            }
            Err(error) => {
                (self.manifest, self.is_poisoned) = (before, true);
                Err(Error::io("write", &VaultFile::Manifest(self.manifest.id).path())(error))
            }
        }
    }

    /// Ends a commit: the manifest names all chunks, and is safe.
    fn end_commit(&mut self) {
        self.chunked.clear();
        self.sweep_guard = None;
        self.safe = self.stored_len();
    }

    /// Writes how far the source was read and turned into events, and adds the manifest to the files that have to be
    /// synced. Everything else of the source is safe by now. [`SourceWriter::end_state`] has to follow.
    ///
    /// # Errors
    /// I/O errors.
    pub fn write_state(
        &mut self,
        info: Option<&SourceInfo>,
        state: (Option<Box<RawValue>>, Option<AdapterProgress>),
        now: &str,
        set: &mut SyncSet,
    ) -> Result<(), Error> {
        let (cursor, adapted) = state;
        let state = ManifestLine::State { time: now.to_owned(), more: None, cursor, adapted };
        let mut lines: Vec<ManifestLine> =
            info.map(|info| source_line(info, &now.into())).into_iter().collect();
        let Some(file) = self.file.clone().filter(|_| self.is_all_safe()) else {
            // The source is empty.
            return self.attempt(|writer| {
                lines.into_iter().try_for_each(|line| writer.add_line(line))?;
                writer.save(state, super::Remainder::InChunks)
            });
        };
        lines.push(state);
        self.attempt(|writer| {
            let path = VaultFile::Manifest(writer.manifest.id).path();
            let mut text = String::new();
            for line in &lines {
                line.write(&mut text);
            }
            if let Err(error) = append_all(&*file, text.as_bytes()) {
                file.truncate(writer.manifest.good_len).map_err(Error::not_synced(&path))?;
                return Err(Error::io("write", &path)(error));
            }
            set.file(file);
            writer.state = Some(WrittenState { lines, len: text.len() as u64 });
            Ok(())
        })
    }

    /// Ends [`SourceWriter::write_state`] after the sync.
    ///
    /// # Errors
    /// I/O errors.
    pub fn end_state(&mut self) -> Result<(), Error> {
        self.attempt(|writer| {
            if let (Some(state), Some(file)) = (writer.state.take(), &writer.file) {
                let path = VaultFile::Manifest(writer.manifest.id).path();
                check_in_place(&**writer.vault.disk(), &path, &**file)?;
                writer.manifest.lines += state.lines.len();
                writer.manifest.good_len += state.len;
                writer.take_lines(state.lines);
            }
            if std::mem::take(&mut writer.has_tail) {
                tail_file::remove(&**writer.vault.disk(), writer.manifest.id)?;
            }
            Ok(())
        })
    }

    fn take_lines(&mut self, lines: Vec<ManifestLine>) {
        for line in lines {
            self.manifest.take(line).expect("our own lines are in order");
        }
    }

    fn is_all_safe(&self) -> bool {
        self.uncut.is_empty() && self.chunked.is_empty()
    }

    /// Returns true if the previous owner left bytes that are in no chunk.
    #[must_use]
    pub fn has_tail(&self) -> bool {
        self.has_tail
    }
}
