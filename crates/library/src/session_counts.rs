//! How many sessions a store has, saved for the next process, which uses it if nothing has changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steno_adapters::adapter_versions;
use steno_disk::{Disk, Identity, StorePath, read_full, replace_file};
use steno_model::with_causes;
use steno_vault::{ChunkHash, Outlines, checked_line, write_checked_line};

use crate::{Error, Library};

/// The most bytes that are read of the file.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// The version of the file. A file of another version is not read.
const VERSION: u32 = 1;

/// The content of `counts.json`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedCounts {
    version: u32,
    /// A hash of the program, and of how all files of transcripts and all manifests look.
    files: String,
    /// How many sessions there are, by the name of the provider.
    sessions: BTreeMap<String, u64>,
}

impl Library {
    /// Returns how many sessions the store has, with and without events, by the name of the provider. Sessions of
    /// unknown agents are `other`. Nothing is read if all files look as they did the last time.
    ///
    /// # Errors
    /// An error of the system.
    pub fn session_counts(&self, outlines: &Outlines) -> Result<BTreeMap<String, u64>, Error> {
        let disk = &**self.store()?.disk();
        let transcripts = disk.identities(&StorePath::transcripts(), &|_| true).map_err(|source| {
            let (doing, path) = ("list", StorePath::transcripts());
            steno_journal::Error::Io { doing, path, source: source.into() }
        })?;
        let program = [&[env!("CARGO_PKG_VERSION")], adapter_versions()].concat();
        let files = hash_of(&program, &transcripts, outlines);
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
        let saved = SavedCounts { version: VERSION, files, sessions };
        if let Err(error) = write_file(disk, &saved) {
            tracing::debug!("{}", with_causes(&error));
        }
        Ok(saved.sessions)
    }
}

/// Returns a hash of everything that tells whether the program or a file has changed.
fn hash_of(program: &[&str], transcripts: &[(String, Identity)], outlines: &Outlines) -> String {
    let mut bytes = format!("{}\n", program.join(" ")).into_bytes();
    bytes.extend(outlines.fingerprint());
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
    parse(&text[..read])
}

/// Parses the content; `None` if it is damaged or of another version.
fn parse(text: &[u8]) -> Option<SavedCounts> {
    let text = checked_line(text.strip_suffix(b"\n")?)?;
    serde_json::from_str(&text).ok().filter(|saved: &SavedCounts| saved.version == VERSION)
}

fn to_text(counts: &SavedCounts) -> String {
    let mut text = String::new();
    let object = serde_json::to_string(counts).expect("our own records are strings and numbers");
    write_checked_line(&object, &mut text);
    text
}

fn write_file(disk: &dyn Disk, counts: &SavedCounts) -> std::io::Result<()> {
    let (dir, path) = (StorePath::root(), path());
    // Dead processes left them. If one belongs to a running process, that process does not save its counts.
    let is_ours = |found: &StorePath| found.temporary_of().as_ref() == Some(&path);
    for found in disk.list(&dir)?.iter().map(|name| dir.below(name)).filter(is_ours) {
        disk.remove(&found)?;
    }
    replace_file(disk, &path, to_text(counts).as_bytes())
}

fn path() -> StorePath {
    StorePath::root().below("counts.json")
}

#[cfg(test)]
mod tests {
    use steno_testkit::sim_disk::SimDisk;

    use super::*;

    fn counts(version: u32) -> SavedCounts {
        let sessions = [("claude".to_owned(), 12), ("codex".to_owned(), 3)].into();
        SavedCounts { version, files: "0123".to_owned(), sessions }
    }

    #[test]
    fn damaged_counts_are_not_believed() {
        let text = to_text(&counts(VERSION));
        assert_eq!(parse(text.as_bytes()), Some(counts(VERSION)));
        for at in 0..text.len() {
            let mut flipped = text.clone().into_bytes();
            flipped[at] ^= 1;
            assert_eq!(parse(&flipped), None, "byte {at} flipped");
            assert_eq!(parse(&text.as_bytes()[..at]), None, "cut at byte {at}");
        }
        assert_eq!(parse(to_text(&counts(VERSION + 1)).as_bytes()), None);
    }

    #[test]
    fn counts_of_another_program_are_not_believed() {
        let of = |program: &[&str]| hash_of(program, &[], &Outlines::default());
        assert_eq!(of(&["1.0.0", "claude/4"]), of(&["1.0.0", "claude/4"]));
        assert_ne!(of(&["1.0.0", "claude/4"]), of(&["1.0.1", "claude/4"]));
        assert_ne!(of(&["1.0.0", "claude/4"]), of(&["1.0.0", "claude/5"]));
    }

    #[test]
    fn write_deletes_what_dead_processes_left() {
        let disk = SimDisk::new(1);
        disk.create(&path().temporary()).unwrap();
        write_file(&disk, &counts(VERSION)).unwrap();
        assert_eq!(read_file(&disk), Some(counts(VERSION)));
        assert_eq!(disk.snapshot().len(), 1);
    }
}
