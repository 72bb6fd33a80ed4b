//! Leaving out for good what agents wrote while recording was paused.
//!
//! What was written before and after stands in the same files, and nothing tells the two apart: so a session that was
//! written to meanwhile is not archived any further. What the archive had of it stays.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use steno_journal::Pause;
use steno_vault::{NameHash, Reason};

use super::mixed::{Mixed, Piece};
use super::mixed_source::{last_content, read_whole};
use super::{Archive, Error, Places, ToArchive, is_unchanged};

/// What was skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Sessions, and files of none.
    pub sessions: u64,
    /// Pieces of files that sessions share.
    pub pieces: u64,
}

impl Archive {
    /// Leaves out what was written during a pause that is over by itself, and ends it.
    ///
    /// # Errors
    /// What the vault says; the pause goes on then.
    pub fn end_pause(&mut self, places: &Places) -> Result<(), Error> {
        let store = self.journal.store();
        match store.pause_set() {
            Some(pause) if pause.skips && pause.is_over((self.options.clock)()) => {
                self.skip(&pause, places)?;
                self.journal.store().resume().map_err(Error::Pause)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Leaves out for good what was written in some places since a pause began.
    ///
    /// # Errors
    /// What the vault says.
    pub fn skip(&mut self, pause: &Pause, places: &Places) -> Result<Skipped, Error> {
        let since = pause.since.unwrap_or(Timestamp::MIN);
        let (mut names, mut pieces) = (BTreeSet::new(), BTreeSet::new());
        for file in places.list().files.iter().filter(|file| file.modified_at() >= since) {
            if self.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
                continue;
            }
            let is_known = self.catalog.at(file.path()).is_some();
            match Mixed::of(&file.info).filter(|mixed| is_known || mixed.is_of_several_projects()) {
                Some(mixed) => pieces.extend(self.new_pieces(file, mixed)?),
                None => names.extend(names_of_file(file)),
            }
        }
        let skipped = Skipped { sessions: names.len() as u64, pieces: pieces.len() as u64 };
        let all: Vec<NameHash> = names.into_iter().chain(pieces).collect();
        if !all.is_empty() {
            self.vault.leave_out(&all, Reason::Paused, &self.now()).map_err(Error::Catalog)?;
        }
        Ok(skipped)
    }

    /// Returns the pieces of a file that the archive has not.
    fn new_pieces(&self, file: &ToArchive, mixed: Mixed) -> Result<Vec<NameHash>, Error> {
        let mut known = HashSet::new();
        if let Some(source) = self.catalog.at(file.path())
            && let Some(manifest) = self.manifest(source.id)?
        {
            let content = last_content(&self.vault, &manifest).map_err(Error::vault(file.path()))?;
            each_piece(mixed, &content, |name| known.extend([name]));
        }
        let mut new = Vec::new();
        if let Some((bytes, _)) = read_whole(file)? {
            each_piece(mixed, &bytes, |name| new.extend((!known.contains(&name)).then_some(name)));
        }
        Ok(new)
    }
}

fn each_piece(mixed: Mixed, bytes: &[u8], mut each: impl FnMut(NameHash)) {
    let mut keep = |piece: &Piece<'_>| {
        each(NameHash::of_piece(piece.raw.as_bytes()));
        true
    };
    // What cannot be read as what it is has no pieces.
    mixed.filter(bytes, &mut keep).unwrap_or_default();
}

/// Returns what a file is left out by: its session, else its path.
fn names_of_file(file: &ToArchive) -> Vec<NameHash> {
    let session = file.whole_info().session;
    vec![session.map_or_else(|| NameHash::of_path(file.path()), |session| NameHash::of_session(&session))]
}
