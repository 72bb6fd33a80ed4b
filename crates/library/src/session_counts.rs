//! How many sessions a store has, saved for the next process that asks while nothing has changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, Identity, StorePath, read_full, replace_file};
use steno_model::with_causes;
use steno_vault::{ChunkHash, Outlines};

use crate::{Error, Library};

/// The most bytes that are read of the file.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// The content of `counts.json`.
#[derive(Serialize, Deserialize)]
struct SavedCounts {
    /// A hash of how all transcripts and manifests look.
    files: String,
    /// How many sessions there are, by the name of the provider.
    sessions: BTreeMap<String, u64>,
}

impl Library {
    /// Returns how many sessions the store has, with and without events, by the name of the provider. Sessions of
    /// unknown agents are `other`. Nothing is read if all files look as they did the last time.
    ///
    /// # Errors
    /// What the system says.
    pub fn session_counts(&self, outlines: &Outlines) -> Result<BTreeMap<String, u64>, Error> {
        let disk = &**self.store()?.disk();
        let transcripts = disk.identities(&StorePath::transcripts(), &|_| true).map_err(|source| {
            let (doing, path) = ("list", StorePath::transcripts());
            steno_journal::Error::Io { doing, path, source: source.into() }
        })?;
        let files = hash_of(&transcripts, outlines);
        if let Some(saved) = read_file(disk).filter(|saved| saved.files == files) {
            return Ok(saved.sessions);
        }
        let sources = outlines.sources.iter();
        let mut sessions = self.sources_without_events(
            sources.map(|outline| (outline.id, &outline.info, outline.adapted.as_ref())),
        )?;
        for session in self.sessions()? {
            let provider = session.provider.unwrap_or_else(|| "other".to_owned());
            *sessions.entry(provider).or_default() += 1;
        }
        let saved = SavedCounts { files, sessions };
        if let Err(error) = write_file(disk, &saved) {
            tracing::debug!("{}", with_causes(&error));
        }
        Ok(saved.sessions)
    }
}

/// Returns a hash of everything that tells whether a file has changed.
fn hash_of(transcripts: &[(String, Identity)], outlines: &Outlines) -> String {
    let mut bytes = outlines.fingerprint();
    for (name, found) in transcripts {
        bytes.extend_from_slice(name.as_bytes());
        for number in [found.inode, found.size_bytes, found.changed_ns.cast_unsigned()] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    ChunkHash::of(&bytes).to_string()
}

fn read_file(disk: &dyn Disk) -> Option<SavedCounts> {
    let file = disk.open_read(&path()).ok().flatten()?;
    let mut text = vec![0; FILE_BYTES_MAX];
    let read = read_full(&*file, &mut text, 0).ok()?;
    serde_json::from_slice(&text[..read]).ok()
}

fn write_file(disk: &dyn Disk, counts: &SavedCounts) -> std::io::Result<()> {
    let text = serde_json::to_string(counts).expect("our own records are strings and numbers");
    replace_file(disk, &path(), format!("{text}\n").as_bytes())
}

fn path() -> StorePath {
    StorePath::root().below("counts.json")
}
