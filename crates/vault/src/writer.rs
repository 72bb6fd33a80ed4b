//! The one owner of a source: takes its bytes as they come and keeps them.

use std::sync::Arc;

use serde_json::value::RawValue;
use steno_disk::{DiskFile, LockGuard, append_all, replace_file, sync_file};

use crate::chunks::Hint;
use crate::codec::Codec;
use crate::cut::{CHUNK_BYTES_MAX, More, chunk_lengths};
use crate::error::Error;
use crate::ids::SourceId;
use crate::manifest::{Adapted, ChunkRef, Line, Manifest, MoreChunks, SourceInfo, source_line};
use crate::names::VaultFile;
use crate::tail_file::{self, TailWriter};
use crate::vault::{Entered, Vault};

/// How many bytes come together before they are cut into chunks.
const UNCUT_BYTES_MAX: usize = 4 * CHUNK_BYTES_MAX;
/// How long a tail may become, with what chunks have overtaken in it, before it is put in place anew.
const TAIL_BYTES_MAX: u64 = 2 * UNCUT_BYTES_MAX as u64;
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
/// Bytes that were appended are safe after [`SourceWriter::commit`]. After an error other than [`Error::NoRoom`] the
/// writer is to be dropped; opening the source again finds what was safe.
pub struct SourceWriter {
    vault: Arc<Vault>,
    manifest: Manifest,
    /// The manifest's file, once there is one.
    file: Option<Arc<dyn DiskFile>>,
    tail: Option<TailWriter>,
    /// Whether the owner before has left a tail.
    has_tail: bool,
    /// The chunks that are in a pack and not yet in the manifest.
    chunked: Vec<ChunkRef>,
    /// The bytes after these.
    uncut: Vec<u8>,
    /// How many bytes of the generation are safe.
    safe: u64,
    codec: Codec,
    hint: Hint,
    entered: Option<Entered>,
    _lock: Box<dyn LockGuard>,
}

impl SourceWriter {
    pub(crate) fn open(vault: Arc<Vault>, id: SourceId, info: &SourceInfo, now: &str) -> Result<Self, Error> {
        let lock_path = VaultFile::SourceLock(id).path();
        let lock = vault.disk().try_lock(&lock_path).map_err(Error::io("lock", &lock_path))?;
        let lock = lock.ok_or(Error::Held { source_id: id })?;
        let known = Manifest::read(&**vault.disk(), id)?;
        let is_new = known.is_none();
        let manifest = known.unwrap_or_else(|| Manifest::new(id, info.clone(), now.to_owned()));
        let mut writer = Self {
            vault,
            manifest,
            file: None,
            tail: None,
            has_tail: false,
            chunked: Vec::new(),
            uncut: Vec::new(),
            safe: 0,
            codec: Codec::default(),
            hint: Hint::default(),
            entered: None,
            _lock: lock,
        };
        if is_new {
            writer.begin_generation("first", now)?;
        } else {
            writer.recover()?;
            writer.set_info(info, now)?;
        }
        Ok(writer)
    }

    /// Brings back what the owner before has left, and makes it safe once more if it did not come to its end: after a
    /// failed sync the cache may show what the disk does not have.
    fn recover(&mut self) -> Result<(), Error> {
        let Some(generation) = self.manifest.generation_last() else {
            // Its process died before the first line was safe.
            return self.begin_generation("first", &self.manifest.since.clone());
        };
        let frames = tail_file::read(&**self.vault.disk(), self.manifest.id)?;
        self.has_tail = !frames.is_empty();
        self.safe = self.stored_len();
        self.uncut = tail_file::bytes_from(&frames, generation, self.safe);
        let spare = self.manifest.lines.saturating_sub(3 + 2 * self.manifest.generations.len());
        if !self.manifest.is_closed || spare > SPARE_LINES_MAX {
            self.rewrite_manifest()?;
        } else {
            self.open_manifest()?;
            self.safe += self.uncut.len() as u64;
        }
        self.commit(Keep::InTail)
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

    /// Returns how many bytes of the generation are safe.
    #[must_use]
    pub fn safe_len(&self) -> u64 {
        self.safe
    }

    /// Takes the next bytes of the generation.
    ///
    /// # Errors
    /// What the system says. The bytes have been taken all the same, and are safe when a commit succeeds.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.uncut.extend_from_slice(bytes);
        if self.uncut.len() >= UNCUT_BYTES_MAX { self.cut(More::MayCome) } else { Ok(()) }
    }

    /// Makes everything that was appended safe.
    ///
    /// # Errors
    /// What the system says.
    pub fn commit(&mut self, keep: Keep) -> Result<(), Error> {
        if keep == Keep::InChunks {
            self.cut(More::WillNot)?;
        }
        if let Some(more) = self.sync_chunks()? {
            self.add_line(Line::Chunks(more))?;
            self.named();
        }
        self.commit_rest()
    }

    /// Makes those bytes safe that are whole chunks, and leaves the rest for the next commit; returns how many bytes of
    /// the generation are safe. Cheaper than [`SourceWriter::commit`] while many more bytes are to come.
    ///
    /// # Errors
    /// What the system says.
    pub fn commit_whole_chunks(&mut self) -> Result<u64, Error> {
        self.cut(More::MayCome)?;
        if let Some(more) = self.sync_chunks()? {
            self.add_line(Line::Chunks(more))?;
            self.named();
        }
        self.safe = self.safe.max(self.stored_len());
        Ok(self.safe)
    }

    /// Syncs the chunks that the manifest does not name yet; returns what it has to be told.
    fn sync_chunks(&mut self) -> Result<Option<MoreChunks>, Error> {
        if self.chunked.is_empty() {
            return Ok(None);
        }
        self.vault.chunks().sync()?;
        Ok(Some(MoreChunks::new(self.generation(), self.stored_len(), &self.chunked)))
    }

    /// Takes note that the manifest names all chunks.
    fn named(&mut self) {
        self.chunked.clear();
        self.entered = None;
    }

    /// Makes the bytes safe that are in no chunk.
    fn commit_rest(&mut self) -> Result<(), Error> {
        let (start, len) = (self.stored_len(), self.len());
        if self.safe < len && start < len {
            if self.file.is_none() {
                // A tail without a manifest would be nobody's.
                self.rewrite_manifest()?;
            }
            self.commit_tail(start)?;
        }
        self.safe = len;
        Ok(())
    }

    /// Makes the bytes after the last chunk safe.
    fn commit_tail(&mut self, start: u64) -> Result<(), Error> {
        let (id, generation) = (self.manifest.id, self.generation());
        match &mut self.tail {
            Some(tail) if tail.len < TAIL_BYTES_MAX => {
                let from = self.safe.max(start);
                let known = usize::try_from(from - start).expect("it lies inside of what is uncut");
                tail.append(generation, from, &self.uncut[known..])
            }
            _ => {
                let tail = TailWriter::create(&**self.vault.disk(), id, generation, start, &self.uncut)?;
                self.tail = Some(tail);
                Ok(())
            }
        }
    }

    /// Takes bytes that were added to an earlier generation after the next had begun, and makes them safe.
    ///
    /// # Errors
    /// [`Error::NoSuchBytes`] unless they go on where that generation ends, or what the system says.
    pub fn append_late(&mut self, generation: u32, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let known = self.manifest.generations.get(generation as usize).map(|earlier| earlier.len);
        if generation >= self.generation() || known != Some(offset) {
            return Err(Error::NoSuchBytes { source_id: self.manifest.id, generation, offset });
        }
        // What waits belongs to another generation, and is named first.
        self.commit(Keep::InTail)?;
        let _entered = self.vault.enter()?;
        let mut chunks = Vec::new();
        let mut rest = bytes;
        for len in chunk_lengths(bytes, More::WillNot) {
            let (chunk, after) = rest.split_at(len);
            chunks.push(self.vault.chunks().put(chunk, &mut Hint::default(), &mut self.codec)?);
            rest = after;
        }
        self.vault.chunks().sync()?;
        self.add_line(Line::Chunks(MoreChunks::new(generation, offset, &chunks)))
    }

    /// Begins a new generation: the source was rewritten. What came before is kept.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin_generation(&mut self, why: &str, now: &str) -> Result<(), Error> {
        let number = match self.manifest.generation_last() {
            None => 0,
            Some(last) => {
                self.commit(Keep::InChunks)?;
                last + 1
            }
        };
        self.add_line(Line::Generation { number, time: now.to_owned(), why: why.to_owned() })?;
        self.safe = 0;
        self.hint = Hint::default();
        Ok(())
    }

    /// Says where the source lies now.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_info(&mut self, info: &SourceInfo, now: &str) -> Result<(), Error> {
        if self.manifest.info == *info { Ok(()) } else { self.add_line(source_line(info, now)) }
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
        if keep == Keep::InChunks {
            self.cut(More::WillNot)?;
        }
        let more = if self.uncut.is_empty() {
            self.sync_chunks()?
        } else {
            self.commit(Keep::InTail)?;
            None
        };
        self.add_line(Line::State { time: now.to_owned(), more, cursor, adapted })?;
        self.named();
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
        for len in chunk_lengths(&self.uncut, more) {
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
        outcome
    }

    /// Adds a line to the manifest, safely.
    fn add_line(&mut self, line: Line) -> Result<(), Error> {
        let Some(file) = &self.file else {
            // A new source has its first lines put in place together, with the first that matters.
            let before = self.manifest.clone();
            let is_first = matches!(line, Line::Generation { .. });
            self.manifest.take(line).expect("what we write is in turn");
            let placed = if is_first { Ok(()) } else { self.rewrite_manifest() };
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
        self.manifest.take(line).expect("what we write is in turn");
        self.manifest.lines += 1;
        self.manifest.good_len += text.len() as u64;
        Ok(())
    }

    /// Puts a manifest in place that says the same.
    fn rewrite_manifest(&mut self) -> Result<(), Error> {
        let path = VaultFile::Manifest(self.manifest.id).path();
        let text = self.manifest.to_lines();
        replace_file(&**self.vault.disk(), &path, text.as_bytes()).map_err(Error::io("write", &path))?;
        self.manifest.lines = text.lines().count();
        self.manifest.good_len = text.len() as u64;
        self.open_manifest()
    }

    fn open_manifest(&mut self) -> Result<(), Error> {
        let path = VaultFile::Manifest(self.manifest.id).path();
        self.file = Some(self.vault.disk().open_append(&path).map_err(Error::io("open", &path))?);
        Ok(())
    }
}
