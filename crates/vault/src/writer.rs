//! Writing a source: appending bytes, cutting them into chunks, committing them.

mod shared_commits;

use std::sync::Arc;

use serde_json::value::RawValue;
use steno_disk::{DiskFile, LockGuard, append_all, replace_file, sync_file};

use crate::chunker::{InputEnd, chunk_lengths};
use crate::chunks::BaseHint;
use crate::codec::Codec;
use crate::error::Error;
use crate::ids::SourceId;
use crate::manifest::{
    AdapterProgress, ChunkRef, Manifest, ManifestLine, MoreChunks, Sighting, SourceInfo, source_line,
};
use crate::names::VaultFile;
use crate::pack::check_in_place;
use crate::tail_file::{self, TailWriter};
use crate::tombstones;
use crate::vault::{SweepGuard, Vault};
use shared_commits::{StagedManifest, WrittenState};

pub use shared_commits::{SharedCommits, SourceEnd};

/// How many superfluous lines a manifest may have before it is rewritten.
const SPARE_LINES_MAX: usize = 64;

/// Where a commit puts the bytes at the end of a source that do not fill a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// In the tail: the source may continue.
    InTail,
    /// In a chunk: the source has probably ended.
    InChunks,
}

/// The only writer of a source.
///
/// [`SourceWriter::commit`] makes all appended bytes safe, and everything that was found when the source was opened.
/// After [`Error::NoRoom`] the call can be repeated. After any other error the writer refuses everything; opening the
/// source again finds what is safe.
pub struct SourceWriter {
    vault: Arc<Vault>,
    manifest: Manifest,
    /// The manifest file, once this writer has replaced it. The file of the previous owner may exist in the page cache
    /// only, for example after a failed sync, so nothing is ever appended to it.
    file: Option<Arc<dyn DiskFile>>,
    /// Whether there was a manifest when the source was opened.
    was_found: bool,
    tail: Option<TailWriter>,
    /// Whether the previous owner left a tail.
    has_tail: bool,
    /// Chunks that are in a pack but not yet in the manifest.
    chunked: Vec<ChunkRef>,
    /// The bytes after those chunks.
    uncut: Vec<u8>,
    /// How many bytes of the generation are safe.
    safe: u64,
    is_poisoned: bool,
    codec: Codec,
    hint: BaseHint,
    /// Set while there are chunks that the manifest does not name.
    sweep_guard: Option<SweepGuard>,
    /// A manifest that is written and not yet in place.
    staged: Option<StagedManifest>,
    /// A state that is written and not yet synced.
    state: Option<WrittenState>,
    _lock: Box<dyn LockGuard>,
}

impl SourceWriter {
    pub(crate) fn open(
        vault: Arc<Vault>,
        id: SourceId,
        info: &SourceInfo,
        seen: &Sighting,
    ) -> Result<Self, Error> {
        let lock_path = VaultFile::SourceLock(id).path();
        let lock = vault.disk().try_lock(&lock_path).map_err(Error::io("lock", &lock_path))?;
        let lock = lock.ok_or(Error::Locked { source_id: id })?;
        // Checked under the lock, which forgetting takes too.
        if tombstones::is_forgotten(&vault, id)? {
            return Err(Error::Forgotten { source_id: id });
        }
        let known = Manifest::read(&**vault.disk(), id)?;
        let was_found = known.is_some();
        let manifest = known.unwrap_or_else(|| Manifest::new(id, info.clone(), seen.clone()));
        let mut writer = Self {
            vault,
            manifest,
            file: None,
            was_found,
            tail: None,
            has_tail: false,
            chunked: Vec::new(),
            uncut: Vec::new(),
            safe: 0,
            is_poisoned: false,
            codec: Codec::default(),
            hint: BaseHint::default(),
            sweep_guard: None,
            staged: None,
            state: None,
            _lock: lock,
        };
        match writer.manifest.generation_last() {
            Some(generation) => writer.find_tail(generation)?,
            None => writer.begin("first", seen)?,
        }
        writer.tell_info(info, seen)?;
        Ok(writer)
    }

    /// Takes over the tail that the previous owner left.
    fn find_tail(&mut self, generation: u32) -> Result<(), Error> {
        let tail = tail_file::read(&**self.vault.disk(), self.manifest.id)?;
        tail.check(self.manifest.id)?;
        self.has_tail = tail.len > 0;
        self.uncut = tail.bytes_from(generation, self.stored_len());
        Ok(())
    }

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the number of the last generation.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.manifest.generation_last().unwrap_or_default()
    }

    /// Returns how many bytes the generation has, safe or not.
    #[must_use]
    pub fn len(&self) -> u64 {
        let chunked: u64 = self.chunked.iter().map(|chunk| u64::from(chunk.len)).sum();
        self.stored_len() + chunked + self.uncut.len() as u64
    }

    /// Tells whether the generation has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes of the generation are safe. Before the first commit this is not known, and the result is
    /// 0.
    #[must_use]
    pub fn safe_len(&self) -> u64 {
        self.safe
    }

    /// Appends bytes to the generation.
    ///
    /// # Errors
    /// I/O errors. After [`Error::NoRoom`] the bytes were taken all the same; a later commit makes them safe.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.attempt(|writer| {
            writer.uncut.extend_from_slice(bytes);
            let is_enough = writer.uncut.len() >= writer.vault.limits().waiting_bytes_max();
            if is_enough { writer.cut(InputEnd::Open) } else { Ok(()) }
        })
    }

    /// Makes everything safe that was found on opening or appended since.
    ///
    /// # Errors
    /// I/O errors.
    pub fn commit(&mut self, keep: Remainder) -> Result<(), Error> {
        self.attempt(|writer| writer.commit_all(keep))
    }

    /// Appends bytes to an earlier generation, because they were found after the next one had begun, and makes them
    /// safe.
    ///
    /// # Errors
    /// [`Error::NoSuchBytes`] unless `offset` is the end of that generation, or an I/O error.
    pub fn append_late(&mut self, generation: u32, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.attempt(|writer| writer.add_late(generation, offset, bytes))
    }

    /// Begins a new generation, because the source was rewritten. Earlier generations are kept.
    ///
    /// # Errors
    /// I/O errors.
    pub fn begin_generation(&mut self, why: &str, seen: impl Into<Sighting>) -> Result<(), Error> {
        let seen = seen.into();
        self.attempt(|writer| writer.begin(why, &seen))
    }

    /// Records where the source is now.
    ///
    /// # Errors
    /// I/O errors.
    pub fn set_info(&mut self, info: &SourceInfo, now: &str) -> Result<(), Error> {
        self.tell_info(info, &now.into())
    }

    fn tell_info(&mut self, info: &SourceInfo, seen: &Sighting) -> Result<(), Error> {
        if self.manifest.info == *info {
            return Ok(());
        }
        self.attempt(|writer| writer.add_line(source_line(info, seen)))
    }

    /// Makes everything safe and records how far the source was read and turned into events.
    ///
    /// # Errors
    /// I/O errors.
    pub fn save_state(
        &mut self,
        cursor: Option<Box<RawValue>>,
        adapted: Option<AdapterProgress>,
        now: &str,
        keep: Remainder,
    ) -> Result<(), Error> {
        let time = now.to_owned();
        self.attempt(|writer| writer.save(ManifestLine::State { time, more: None, cursor, adapted }, keep))
    }

    /// Replaces the bytes of each generation, to remove forgotten content from a file that other sessions share. The
    /// old bytes are deleted with the next sweep. The manifest changes as a whole or not at all.
    ///
    /// # Errors
    /// [`Error::MissingChunk`] or another damage error when the old bytes cannot be read, or an I/O error.
    pub fn rewrite(&mut self, change: impl FnMut(u32, Vec<u8>) -> Vec<u8>) -> Result<(), Error> {
        self.attempt(|writer| writer.rewrite_all(change))
    }

    fn rewrite_all(&mut self, mut change: impl FnMut(u32, Vec<u8>) -> Vec<u8>) -> Result<(), Error> {
        self.commit_all(Remainder::InChunks)?;
        // Before the manifest changes: chunks have the bytes of the tail too. With shorter generations the tail would
        // count as new bytes.
        (self.has_tail, self.tail) = (false, None);
        tail_file::remove(&**self.vault.disk(), self.manifest.id)?;
        let guard = self.vault.enter()?;
        let mut generations = self.manifest.generations.clone();
        for (number, generation) in (0..).zip(&mut generations) {
            let mut bytes = Vec::new();
            self.vault.read(&self.manifest, number, 0, |_, piece| {
                bytes.extend_from_slice(piece);
                true
            })?;
            let bytes = change(number, bytes);
            let (mut rest, mut hint) = (bytes.as_slice(), BaseHint::default());
            (generation.len, generation.late_from) = (bytes.len() as u64, None);
            generation.chunks.clear();
            for len in chunk_lengths(&bytes, InputEnd::Closed, self.vault.limits()) {
                let (chunk, after) = rest.split_at(len);
                generation.chunks.push(self.vault.chunks().put(chunk, &mut hint, &mut self.codec)?);
                rest = after;
            }
        }
        guard.sync()?;
        let before = std::mem::replace(&mut self.manifest.generations, generations);
        if let Err(error) = self.place_manifest() {
            self.manifest.generations = before;
            return Err(error);
        }
        self.safe = self.stored_len();
        Ok(())
    }

    /// Runs a step, unless an earlier failure left it unknown what is safe.
    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.is_poisoned {
            return Err(Error::Poisoned { source_id: self.manifest.id });
        }
        let done = work(self);
        self.is_poisoned = done.as_ref().is_err_and(|error| !error.changed_nothing());
        done
    }

    fn commit_all(&mut self, keep: Remainder) -> Result<(), Error> {
        if keep == Remainder::InChunks {
            self.cut(InputEnd::Closed)?;
        }
        if let Some(more) = self.sync_chunks()? {
            self.name_chunks(ManifestLine::Chunks(more))?;
        }
        let (start, len) = (self.stored_len(), self.len());
        // The manifest of a new source is written with its first bytes, because a tail without a manifest would belong
        // to no source.
        if self.file.is_none() && (self.was_found || self.safe < len) {
            self.place_manifest()?;
        }
        if self.safe < len && start < len {
            self.commit_tail(start)?;
        }
        self.safe = len;
        Ok(())
    }

    /// Syncs the chunks that the manifest does not name yet; returns the entry to add to it.
    fn sync_chunks(&mut self) -> Result<Option<MoreChunks>, Error> {
        if self.chunked.is_empty() {
            return Ok(None);
        }
        if !cfg!(feature = "mutant-manifest-before-chunks") {
            self.sweep_guard.as_ref().expect("chunks are put under the guard").sync()?;
        }
        Ok(Some(MoreChunks::new(self.generation(), self.stored_len(), &self.chunked)))
    }

    /// Adds the manifest line that names all chunks.
    fn name_chunks(&mut self, line: ManifestLine) -> Result<(), Error> {
        self.add_line(line)?;
        if cfg!(feature = "mutant-manifest-before-chunks")
            && let Some(guard) = &self.sweep_guard
        {
            guard.sync()?;
        }
        self.chunked.clear();
        self.sweep_guard = None;
        Ok(())
    }

    /// Makes the bytes after the last chunk safe.
    fn commit_tail(&mut self, start: u64) -> Result<(), Error> {
        let (id, generation) = (self.manifest.id, self.generation());
        let disk = &**self.vault.disk();
        match self.tail.take() {
            Some(mut tail) if tail.len < self.vault.limits().tail_bytes_max() => {
                let from = self.safe.max(start);
                let known = usize::try_from(from - start).expect("it is within the uncut bytes");
                let added = tail.append(disk, generation, from, &self.uncut[known..]);
                self.tail = Some(tail);
                added
            }
            // Without space for a new tail, the old one may or may not be in place. The next attempt writes another.
            Some(_) | None => {
                let tail = TailWriter::create(disk, id, generation, start, &self.uncut)?;
                self.tail = Some(tail);
                Ok(())
            }
        }
    }

    fn add_late(&mut self, generation: u32, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let known = self.manifest.generations.get(generation as usize).map(|earlier| earlier.len);
        if generation >= self.generation() || known != Some(offset) {
            return Err(Error::NoSuchBytes { source_id: self.manifest.id, generation, offset });
        }
        // The pending bytes belong to another generation, so they are committed first.
        self.commit_all(Remainder::InTail)?;
        let guard = self.vault.enter()?;
        let mut chunks = Vec::new();
        let mut rest = bytes;
        for len in chunk_lengths(bytes, InputEnd::Closed, self.vault.limits()) {
            let (chunk, after) = rest.split_at(len);
            chunks.push(self.vault.chunks().put(chunk, &mut BaseHint::default(), &mut self.codec)?);
            rest = after;
        }
        guard.sync()?;
        self.add_line(ManifestLine::Chunks(MoreChunks::new(generation, offset, &chunks)))
    }

    fn begin(&mut self, why: &str, seen: &Sighting) -> Result<(), Error> {
        let number = match self.manifest.generation_last() {
            None => 0,
            Some(last) => {
                self.commit_all(Remainder::InChunks)?;
                last + 1
            }
        };
        self.add_line(ManifestLine::Generation { number, since: seen.clone(), why: why.to_owned() })?;
        self.safe = 0;
        self.hint = BaseHint::default();
        Ok(())
    }

    fn save(&mut self, mut line: ManifestLine, keep: Remainder) -> Result<(), Error> {
        if keep == Remainder::InChunks {
            self.cut(InputEnd::Closed)?;
        }
        if !self.uncut.is_empty() {
            self.commit_all(Remainder::InTail)?;
        } else if let ManifestLine::State { more, .. } = &mut line {
            // Both in one line: they become safe together, with one sync.
            *more = self.sync_chunks()?;
        }
        self.name_chunks(line)?;
        self.safe = self.len();
        if self.uncut.is_empty() && (self.has_tail || self.tail.is_some()) {
            (self.has_tail, self.tail) = (false, None);
            tail_file::remove(&**self.vault.disk(), self.manifest.id)?;
        }
        Ok(())
    }

    /// Returns how many bytes of the generation are in chunks that the manifest names.
    fn stored_len(&self) -> u64 {
        self.manifest.generations.last().map_or(0, |generation| generation.len)
    }

    /// Cuts the uncut bytes into chunks and puts these into a pack.
    fn cut(&mut self, more: InputEnd) -> Result<(), Error> {
        if self.sweep_guard.is_none() && !self.uncut.is_empty() {
            self.sweep_guard = Some(self.vault.enter()?);
        }
        let (mut done, mut outcome) = (0, Ok(()));
        for len in chunk_lengths(&self.uncut, more, self.vault.limits()) {
            let chunk = &self.uncut[done..done + len];
            match self.vault.chunks().put(chunk, &mut self.hint, &mut self.codec) {
                Ok(chunk) => self.chunked.push(chunk),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
            done += len;
        }
        self.uncut.drain(..done);
        if self.chunked.is_empty() {
            self.sweep_guard = None;
        }
        outcome
    }

    /// Adds a line to the manifest and syncs it.
    fn add_line(&mut self, line: ManifestLine) -> Result<(), Error> {
        if self.manifest.spare_lines() > SPARE_LINES_MAX {
            self.file = None;
        }
        let Some(file) = &self.file else {
            // The lines of the previous owner, or of a new source, are rewritten together with the first new line.
            let before = self.manifest.clone();
            let is_first = matches!(line, ManifestLine::Generation { number: 0, .. });
            self.manifest.take(line).expect("our own lines are in order");
            let placed = if is_first { Ok(()) } else { self.place_manifest() };
            return placed.inspect_err(|_| self.manifest = before);
        };
        let path = VaultFile::Manifest(self.manifest.id).path();
        let mut text = String::new();
        line.write(&mut text);
        if let Err(error) = append_all(&**file, text.as_bytes()) {
            file.truncate(self.manifest.good_len).map_err(Error::not_synced(&path))?;
            return Err(Error::io("write", &path)(error));
        }
        sync_file(&**file).map_err(Error::not_synced(&path))?;
        check_in_place(&**self.vault.disk(), &path, &**file)?;
        self.manifest.take(line).expect("our own lines are in order");
        self.manifest.lines += 1;
        self.manifest.good_len += text.len() as u64;
        Ok(())
    }

    /// Replaces the manifest by one with the same content in as few lines as possible.
    fn place_manifest(&mut self) -> Result<(), Error> {
        let path = VaultFile::Manifest(self.manifest.id).path();
        let text = self.manifest.to_lines();
        let disk = self.vault.disk();
        replace_file(&**disk, &path, text.as_bytes()).map_err(Error::io("write", &path))?;
        self.manifest.lines = text.lines().count();
        self.manifest.good_len = text.len() as u64;
        self.file = Some(disk.open_append(&path).map_err(Error::io("open", &path))?);
        Ok(())
    }
}
