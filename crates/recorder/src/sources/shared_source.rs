//! Stores shared files without the pieces that are excluded or forgotten.
//!
//! The vault does not have the same bytes as such a file, so the filtered content is compared as a whole: if it
//! continues the stored content, the rest is appended; otherwise a new generation begins.

use std::sync::Arc;

use steno_capture::tail::{Cursor, Tail, TailRead};
use steno_vault::{Manifest, NameHash, Remainder, Sighting, SourceWriter, Vault};

use super::catalog::KnownSource;
use super::cursors;
use super::shared_file::{SharedFileFormat, SharedFilePiece};
use super::{SourceError, SourceFile, SourceRecorder};

/// The longest shared file that is read. Longer ones are logged and not recorded.
const FILE_BYTES_MAX: usize = 1024 * 1024 * 1024;
const READ_BYTES: usize = 1024 * 1024;

/// The counts of reading a shared file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedFileCounts {
    /// How many bytes were added.
    pub(super) added: u64,
    /// How many pieces were left out.
    pub(super) left_out: u64,
}

impl SourceRecorder {
    /// Returns the kind of a shared file if something may have to be left out of it.
    pub(super) fn mixed(&self, file: &SourceFile) -> Option<SharedFileFormat> {
        let mixed = SharedFileFormat::of(&file.info)?;
        let has_rules = file.rules.is_some() || self.vault.leaves_out_anything().unwrap_or(true);
        has_rules.then_some(mixed)
    }

    /// Records what is new in a shared file.
    pub(super) fn record_mixed(
        &mut self,
        file: &SourceFile,
        mixed: SharedFileFormat,
    ) -> Result<SharedFileCounts, SourceError> {
        let mut info = file.whole_info();
        self.check_left_out(file, &info)?;
        let Some((bytes, cursor)) = read_whole(file)? else { return Ok(SharedFileCounts::default()) };
        let vault = Arc::clone(&self.vault);
        let mut keep = |piece: &SharedFilePiece<'_>| {
            file.rules.as_ref().is_none_or(|rules| rules.keep(&info, piece))
                && !is_piece_left_out(&vault, piece)
        };
        // A file without the expected form may be half written. It is read again when it changes.
        let Some(filtered) = mixed.filter(&bytes, &mut keep) else { return Ok(SharedFileCounts::default()) };
        let (id, known) = self.source_of(file)?;
        let before = known.as_ref().map(|_| self.manifest(id)).transpose()?.flatten();
        if before.is_none() && filtered.pieces == 0 {
            return Ok(SharedFileCounts { added: 0, left_out: filtered.left_out });
        }
        let was_filtered = before.as_ref().is_some_and(|manifest| manifest.info.is_filtered);
        info.is_filtered = filtered.left_out > 0 || was_filtered;
        let content = before.map_or(Ok(Vec::new()), |manifest| last_content(&self.vault, &manifest));
        let content = content.map_err(SourceError::vault(file.path()))?;
        let failed = || SourceError::vault(file.path());
        let seen = Sighting { time: Some(self.now()), modified: Some(file.modified.clone()) };
        let mut writer = self.vault.write(id, &info, seen.clone()).map_err(failed())?;
        let added = if let Some(rest) = filtered.bytes.strip_prefix(content.as_slice()) {
            rest
        } else {
            writer.begin_generation("rewritten", seen).map_err(failed())?;
            &filtered.bytes
        };
        self.add(writer, added, cursor).map_err(failed())?;
        Ok(SharedFileCounts { added: added.len() as u64, left_out: filtered.left_out })
    }

    /// Appends the new bytes and closes the source.
    fn add(
        &mut self,
        mut writer: SourceWriter,
        added: &[u8],
        mut cursor: Cursor,
    ) -> Result<(), steno_vault::Error> {
        if !added.is_empty() {
            writer.append(added)?;
        }
        cursor.generation = writer.generation();
        writer.save_state(Some(cursors::write(&cursor)), None, &self.now(), Remainder::InChunks)?;
        self.catalog.put(KnownSource::of(writer.manifest()));
        Ok(())
    }
}

/// Tells whether a piece, or its session, was forgotten.
fn is_piece_left_out(vault: &Vault, piece: &SharedFilePiece<'_>) -> bool {
    let session = piece.session.as_ref().map(|session| NameHash::of_session(session));
    let names = session.into_iter().chain([NameHash::of_piece(piece.raw.as_bytes())]);
    // On an error the piece is left out.
    names.into_iter().any(|name| vault.leaves_out(name).unwrap_or(true))
}

/// Reads the last generation of a source.
pub(super) fn last_content(vault: &Vault, manifest: &Manifest) -> Result<Vec<u8>, steno_vault::Error> {
    let mut content = Vec::new();
    if let Some(last) = manifest.generation_last() {
        vault.read(manifest, last, 0, |_, bytes| {
            content.extend_from_slice(bytes);
            true
        })?;
    }
    Ok(content)
}

/// Reads a whole file and its cursor; `None` if it is gone or too long.
pub(super) fn read_whole(file: &SourceFile) -> Result<Option<(Vec<u8>, Cursor)>, SourceError> {
    let mut tail = Tail::new(file.path());
    let (mut whole, mut piece) = (Vec::new(), Vec::new());
    loop {
        match tail.read_next(&mut piece, READ_BYTES)? {
            TailRead::Bytes { .. } => whole.extend_from_slice(&piece),
            TailRead::NewGeneration { .. } => whole.clear(),
            TailRead::Late { .. } => {}
            TailRead::AtEnd => break,
            TailRead::Gone => return Ok(None),
        }
        if whole.len() > FILE_BYTES_MAX {
            tracing::warn!("`{}` is too long to filter, and is not recorded", file.path().display());
            return Ok(None);
        }
    }
    Ok(tail.cursor().map(|cursor| (whole, cursor)))
}
