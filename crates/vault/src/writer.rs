//! The one owner of a source: takes its bytes as they come and keeps them.

use std::sync::Arc;

use serde_json::value::RawValue;
use steno_disk::{DiskFile, LockGuard, append_all, replace_file, sync_file};

use crate::chunker::{More, chunk_lengths};
use crate::chunks::Hint;
use crate::codec::Codec;
use crate::error::Error;
use crate::ids::SourceId;
use crate::manifest::{Adapted, ChunkRef, Line, Manifest, MoreChunks, Sighting, SourceInfo, source_line};
use crate::names::VaultFile;
use crate::pack::check_in_place;
use crate::tail_file::{self, TailWriter};
use crate::tombstones;
use crate::vault::{Entered, Vault};

/// How many lines a manifest may have more than it needs before it is written anew.
const SPARE_LINES_MAX: usize = 64;

/// What becomes of the bytes at a source's end that make no whole chunk yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They stay in the tail: the source may go on.
    InTail,
    /// They become a chunk: the source has probably ended.
    InChunks,
}

/// The one owner of a source.
///
/// Bytes that were appended are safe after [`SourceWriter::commit`]; so is then whatever was found when the source was
/// opened. After [`Error::NoRoom`] the same may be tried again. After another error the writer refuses everything, and
/// opening the source again finds what was safe.
pub struct SourceWriter {
    vault: Arc<Vault>,
    manifest: Manifest,
    /// The manifest's file, once this owner has put it in place. What the owner before has left may be in the cache alone,
    /// also after a sync that failed, so nothing is ever added to it.
    file: Option<Arc<dyn DiskFile>>,
    /// Whether there was a manifest when the source was opened.
    was_found: bool,
    tail: Option<TailWriter>,
    /// Whether the owner before has left a tail.
    has_tail: bool,
    /// The chunks that are in a pack and not yet in the manifest.
    chunked: Vec<ChunkRef>,
    /// The bytes after these.
    uncut: Vec<u8>,
    /// How many bytes of the generation are safe.
    safe: u64,
    is_poisoned: bool,
    codec: Codec,
    hint: Hint,
    /// Held while there are chunks that the manifest does not name.
    entered: Option<Entered>,
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
        let lock = lock.ok_or(Error::Held { source_id: id })?;
        // Under the lock: who forgets it holds the same.
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
            hint: Hint::default(),
            entered: None,
            _lock: lock,
        };
        match writer.manifest.generation_last() {
            Some(generation) => writer.find_tail(generation)?,
            None => writer.begin("first", seen)?,
        }
        writer.tell_info(info, seen)?;
        Ok(writer)
    }

    /// Takes over the tail that the owner before has left.
    fn find_tail(&mut self, generation: u32) -> Result<(), Error> {
        let tail = tail_file::read(&**self.vault.disk(), self.manifest.id)?;
        tail.check(self.manifest.id)?;
        self.has_tail = tail.len > 0;
        self.uncut = tail.bytes_from(generation, self.stored_len());
        Ok(())
    }

    /// Returns what the manifest says.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the number of the generation that grows.
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

    /// Returns how many bytes of the generation are safe. Before the first commit that is not known, and none.
    #[must_use]
    pub fn safe_len(&self) -> u64 {
        self.safe
    }

    /// Takes the next bytes of the generation.
    ///
    /// # Errors
    /// What the system says. After [`Error::NoRoom`] the bytes have been taken all the same, and are safe when a commit
    /// succeeds.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.attempt(|writer| {
            writer.uncut.extend_from_slice(bytes);
            let is_enough = writer.uncut.len() >= writer.vault.limits().waiting_bytes_max();
            if is_enough { writer.cut(More::MayCome) } else { Ok(()) }
        })
    }

    /// Makes everything safe that was found or appended.
    ///
    /// # Errors
    /// What the system says.
    pub fn commit(&mut self, keep: Keep) -> Result<(), Error> {
        self.attempt(|writer| writer.commit_all(keep))
    }

    /// Makes those bytes safe that are whole chunks, and leaves the rest for the next commit; returns how many bytes of
    /// the generation are safe. Cheaper than [`SourceWriter::commit`] while many more bytes are to come.
    ///
    /// # Errors
    /// What the system says.
    pub fn commit_whole_chunks(&mut self) -> Result<u64, Error> {
        self.attempt(|writer| {
            writer.cut(More::MayCome)?;
            let more = writer.sync_chunks()?;
            more.map_or(Ok(()), |more| writer.name_chunks(Line::Chunks(more)))
        })?;
        self.safe = self.safe.max(self.stored_len());
        Ok(self.safe)
    }

    /// Takes bytes that were added to an earlier generation after the next had begun, and makes them safe.
    ///
    /// # Errors
    /// [`Error::NoSuchBytes`] unless they go on where that generation ends, or what the system says.
    pub fn append_late(&mut self, generation: u32, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.attempt(|writer| writer.add_late(generation, offset, bytes))
    }

    /// Begins a new generation: the source was rewritten. What came before is kept.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin_generation(&mut self, why: &str, seen: impl Into<Sighting>) -> Result<(), Error> {
        let seen = seen.into();
        self.attempt(|writer| writer.begin(why, &seen))
    }

    /// Says where the source lies now.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_info(&mut self, info: &SourceInfo, now: &str) -> Result<(), Error> {
        self.tell_info(info, &now.into())
    }

    fn tell_info(&mut self, info: &SourceInfo, seen: &Sighting) -> Result<(), Error> {
        if self.manifest.info == *info {
            return Ok(());
        }
        self.attempt(|writer| writer.add_line(source_line(info, seen)))
    }

    /// Makes everything safe and writes down how far the source was read and made into events.
    ///
    /// # Errors
    /// What the system says.
    pub fn save_state(
        &mut self,
        cursor: Option<Box<RawValue>>,
        adapted: Option<Adapted>,
        now: &str,
        keep: Keep,
    ) -> Result<(), Error> {
        let time = now.to_owned();
        self.attempt(|writer| writer.save(Line::State { time, more: None, cursor, adapted }, keep))
    }

    /// Puts other bytes in the place of each generation's: what was forgotten goes out of a file that others share. The
    /// bytes that stood there are gone with the next sweep. The manifest changes as a whole or not at all.
    ///
    /// # Errors
    /// [`Error::MissingChunk`] and its like when what is there cannot be read, or what the system says.
    pub fn rewrite(&mut self, change: impl FnMut(u32, Vec<u8>) -> Vec<u8>) -> Result<(), Error> {
        self.attempt(|writer| writer.rewrite_all(change))
    }

    fn rewrite_all(&mut self, mut change: impl FnMut(u32, Vec<u8>) -> Vec<u8>) -> Result<(), Error> {
        self.commit_all(Keep::InChunks)?;
        // Before the manifest changes: what the tail holds, chunks have too, and behind shorter ones it would count again.
        (self.has_tail, self.tail) = (false, None);
        tail_file::remove(&**self.vault.disk(), self.manifest.id)?;
        let entered = self.vault.enter()?;
        let mut generations = self.manifest.generations.clone();
        for (number, generation) in (0..).zip(&mut generations) {
            let mut bytes = Vec::new();
            self.vault.read(&self.manifest, number, 0, |_, piece| {
                bytes.extend_from_slice(piece);
                true
            })?;
            let bytes = change(number, bytes);
            let (mut rest, mut hint) = (bytes.as_slice(), Hint::default());
            (generation.len, generation.late_from) = (bytes.len() as u64, None);
            generation.chunks.clear();
            for len in chunk_lengths(&bytes, More::WillNot, self.vault.limits()) {
                let (chunk, after) = rest.split_at(len);
                generation.chunks.push(self.vault.chunks().put(chunk, &mut hint, &mut self.codec)?);
                rest = after;
            }
        }
        entered.sync()?;
        let before = std::mem::replace(&mut self.manifest.generations, generations);
        if let Err(error) = self.place_manifest() {
            self.manifest.generations = before;
            return Err(error);
        }
        self.safe = self.stored_len();
        Ok(())
    }

    /// Does something unless an earlier failure has left it unknown what is safe.
    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.is_poisoned {
            return Err(Error::Poisoned { source_id: self.manifest.id });
        }
        let done = work(self);
        self.is_poisoned = done.as_ref().is_err_and(|error| !error.changed_nothing());
        done
    }

    fn commit_all(&mut self, keep: Keep) -> Result<(), Error> {
        if keep == Keep::InChunks {
            self.cut(More::WillNot)?;
        }
        if let Some(more) = self.sync_chunks()? {
            self.name_chunks(Line::Chunks(more))?;
        }
        let (start, len) = (self.stored_len(), self.len());
        // A new source is put in place with its first bytes: a tail without a manifest would be nobody's.
        if self.file.is_none() && (self.was_found || self.safe < len) {
            self.place_manifest()?;
        }
        if self.safe < len && start < len {
            self.commit_tail(start)?;
        }
        self.safe = len;
        Ok(())
    }

    /// Syncs the chunks that the manifest does not name yet; returns what it has to be told.
    fn sync_chunks(&mut self) -> Result<Option<MoreChunks>, Error> {
        if self.chunked.is_empty() {
            return Ok(None);
        }
        if !cfg!(feature = "mutant-manifest-before-chunks") {
            self.entered.as_ref().expect("chunks are put inside").sync()?;
        }
        Ok(Some(MoreChunks::new(self.generation(), self.stored_len(), &self.chunked)))
    }

    /// Adds the line that names all chunks.
    fn name_chunks(&mut self, line: Line) -> Result<(), Error> {
        self.add_line(line)?;
        if cfg!(feature = "mutant-manifest-before-chunks")
            && let Some(entered) = &self.entered
        {
            entered.sync()?;
        }
        self.chunked.clear();
        self.entered = None;
        Ok(())
    }

    /// Makes the bytes after the last chunk safe.
    fn commit_tail(&mut self, start: u64) -> Result<(), Error> {
        let (id, generation) = (self.manifest.id, self.generation());
        let disk = &**self.vault.disk();
        match self.tail.take() {
            Some(mut tail) if tail.len < self.vault.limits().tail_bytes_max() => {
                let from = self.safe.max(start);
                let known = usize::try_from(from - start).expect("it lies inside of what is uncut");
                let added = tail.append(disk, generation, from, &self.uncut[known..]);
                self.tail = Some(tail);
                added
            }
            // Without room for a new one the old one may still be in place or not: the next try makes another.
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
        // What waits belongs to another generation, and is named first.
        self.commit_all(Keep::InTail)?;
        let entered = self.vault.enter()?;
        let mut chunks = Vec::new();
        let mut rest = bytes;
        for len in chunk_lengths(bytes, More::WillNot, self.vault.limits()) {
            let (chunk, after) = rest.split_at(len);
            chunks.push(self.vault.chunks().put(chunk, &mut Hint::default(), &mut self.codec)?);
            rest = after;
        }
        entered.sync()?;
        self.add_line(Line::Chunks(MoreChunks::new(generation, offset, &chunks)))
    }

    fn begin(&mut self, why: &str, seen: &Sighting) -> Result<(), Error> {
        let number = match self.manifest.generation_last() {
            None => 0,
            Some(last) => {
                self.commit_all(Keep::InChunks)?;
                last + 1
            }
        };
        self.add_line(Line::Generation { number, since: seen.clone(), why: why.to_owned() })?;
        self.safe = 0;
        self.hint = Hint::default();
        Ok(())
    }

    fn save(&mut self, mut line: Line, keep: Keep) -> Result<(), Error> {
        if keep == Keep::InChunks {
            self.cut(More::WillNot)?;
        }
        if !self.uncut.is_empty() {
            self.commit_all(Keep::InTail)?;
        } else if let Line::State { more, .. } = &mut line {
            // Both in one line: they are safe together, and it takes one sync.
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

    /// Cuts what is uncut into chunks and puts these into a pack.
    fn cut(&mut self, more: More) -> Result<(), Error> {
        if self.entered.is_none() && !self.uncut.is_empty() {
            self.entered = Some(self.vault.enter()?);
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
            self.entered = None;
        }
        outcome
    }

    /// Adds a line to the manifest, safely.
    fn add_line(&mut self, line: Line) -> Result<(), Error> {
        if self.manifest.spare_lines() > SPARE_LINES_MAX {
            self.file = None;
        }
        let Some(file) = &self.file else {
            // The lines of the owner before, or of a new source, are put in place together with the first that matters.
            let before = self.manifest.clone();
            let is_first = matches!(line, Line::Generation { number: 0, .. });
            self.manifest.take(line).expect("what we write is in turn");
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
        self.manifest.take(line).expect("what we write is in turn");
        self.manifest.lines += 1;
        self.manifest.good_len += text.len() as u64;
        Ok(())
    }

    /// Puts a manifest in place that says the same in as few lines as possible.
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
