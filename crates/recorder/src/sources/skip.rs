//! Skips for good what agents wrote while recording was paused.
//!
//! The same files have what was written before and after, and the parts cannot be told apart. So a session that was
//! written to during the pause is not recorded any further. What was recorded before stays.

use std::collections::{BTreeSet, HashSet};

use jiff::{SignedDuration, Timestamp};
use steno_journal::Pause;
use steno_vault::{NameHash, Reason};

use super::exclusions::Exclusions;
use super::forgotten_sessions::session_hashes;
use super::identity::head_of;
use super::shared_file::{SharedFileFormat, SharedFilePiece};
use super::shared_source::{last_content, read_whole};
use super::{SourceError, SourceFile, SourceLocations, SourceRecorder, is_unchanged};

/// How far file times may lag behind the clock: systems take them from the last clock tick.
const CLOCK_LAG: SignedDuration = SignedDuration::from_millis(100);

/// What was skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipReport {
    /// Sessions, and files without a session.
    pub sessions: u64,
    /// Pieces of shared files.
    pub pieces: u64,
}

impl SourceRecorder {
    /// Skips what was written during a pause whose time is over, and ends the pause.
    ///
    /// # Errors
    /// An error of the vault; then the pause continues.
    pub fn end_pause(&mut self, places: &SourceLocations) -> Result<(), SourceError> {
        let store = self.journal.store();
        match store.pause_set() {
            Some(pause) if pause.skips && pause.is_over((self.options.clock)()) => {
                self.skip(&pause, places)?;
                self.journal.store().resume().map_err(SourceError::Pause)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Skips for good what was written in some locations since a pause began.
    ///
    /// # Errors
    /// An error of the vault.
    pub fn skip(&mut self, pause: &Pause, places: &SourceLocations) -> Result<SkipReport, SourceError> {
        let (mut names, mut pieces) = (BTreeSet::new(), BTreeSet::new());
        // Also what is excluded: the user may change the exclusions later.
        let places = SourceLocations { exclusions: Exclusions::default(), ..places.clone() };
        let until = pause.until.filter(|_| pause.is_over((self.options.clock)()));
        for file in places.list().files.iter().filter(|file| is_written_in(file, pause.since, until)) {
            if self.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
                continue;
            }
            match SharedFileFormat::of(&file.info) {
                Some(mixed) => pieces.extend(self.new_pieces(file, mixed)?),
                None => names.extend(names_of_file(file)),
            }
        }
        let skipped = SkipReport { sessions: names.len() as u64, pieces: pieces.len() as u64 };
        let all: Vec<NameHash> = names.into_iter().chain(pieces).collect();
        if !all.is_empty() {
            self.vault.leave_out(&all, Reason::Paused, &self.now()).map_err(SourceError::Catalog)?;
        }
        Ok(skipped)
    }

    /// Returns the pieces of a file that are not recorded.
    fn new_pieces(&self, file: &SourceFile, mixed: SharedFileFormat) -> Result<Vec<NameHash>, SourceError> {
        let mut known = HashSet::new();
        if let Some(source) = self.catalog.at(file.path())
            && let Some(manifest) = self.manifest(source.id)?
        {
            let content = last_content(&self.vault, &manifest).map_err(SourceError::vault(file.path()))?;
            each_piece(mixed, &content, |name| known.extend([name]));
        }
        let mut new = Vec::new();
        if let Some((bytes, _)) = read_whole(file)? {
            each_piece(mixed, &bytes, |name| new.extend((!known.contains(&name)).then_some(name)));
        }
        Ok(new)
    }
}

fn each_piece(mixed: SharedFileFormat, bytes: &[u8], mut each: impl FnMut(NameHash)) {
    let mut keep = |piece: &SharedFilePiece<'_>| {
        each(NameHash::of_piece(piece.raw.as_bytes()));
        true
    };
    // A file without the expected form has no pieces.
    mixed.filter(bytes, &mut keep).unwrap_or_default();
}

/// Tells whether a file was changed since one time, and was not created after another.
fn is_written_in(file: &SourceFile, since: Option<Timestamp>, until: Option<Timestamp>) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(about) = std::fs::metadata(file.path()) else { return true };
    let instant = |time: std::io::Result<std::time::SystemTime>| Timestamp::try_from(time.ok()?).ok();
    // Programs can set the modification time, but not the change time.
    let changed = Timestamp::new(about.ctime(), i32::try_from(about.ctime_nsec()).unwrap_or(0)).ok();
    let is_changed = [instant(about.modified()), changed]
        .into_iter()
        .any(|time| time >= since.map(|since| since - CLOCK_LAG));
    let is_later = instant(about.created()).zip(until).is_some_and(|(made, until)| made >= until + CLOCK_LAG);
    is_changed && !is_later
}

/// Returns the hashes that a file is skipped by: its session's, else its path's.
fn names_of_file(file: &SourceFile) -> Vec<NameHash> {
    let info = file.whole_info();
    let names = session_hashes(&info, &head_of(file.path()).unwrap_or_default());
    if names.is_empty() { vec![NameHash::of_path(file.path())] } else { names }
}
