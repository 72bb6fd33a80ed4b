//! Tombstones and exclusions: one line for each thing that was forgotten or left out, with hashes of names and no
//! content.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, replace_file};
use steno_model::{Provider, ThreadId, Word};

use crate::checksum_lines::{read_lines, write_line};
use crate::error::Error;
use crate::ids::SourceId;
use crate::index::read_whole;
use crate::manifest::Manifest;
use crate::name_hash::NameHash;
use crate::names::VaultFile;
use crate::role::Role;
use crate::vault::Vault;

/// The version of the file that we write.
const VERSION: u32 = 2;
/// The version with names in plain text.
const VERSION_WITH_NAMES: u32 = 1;
/// The beginnings of lines of known kinds.
const KNOWN_KINDS: [&str; 5] =
    ["{\"forgotten\":", "{\"forgotten_spine\":", "{\"left_out\":", "{\"sweep_due\":", "{\"run_due\":"];

/// Why something was forgotten or left out. The text that the user typed may be the very name to forget, so it is not
/// stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The user named the session.
    Session,
    /// The user named its project.
    Project,
    /// It was older than the limit.
    Age,
    /// It was written during a pause that skips.
    Paused,
    /// Unknown, or a reason of a later version.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Marks a source as forgotten.
///
/// The id is derived from the first path of the source, so a new file at that path is recognized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The source.
    pub source: SourceId,
    /// When it was forgotten.
    pub time: String,
    /// Why.
    pub why: Reason,
    /// The provider, if it was recognised.
    #[serde(with = "crate::provider_word", skip_serializing_if = "Option::is_none", default)]
    pub provider: Option<Word<Provider>>,
    /// The role of the file in its session, if its manifest could be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub role: Option<Role>,
    /// How many generations it had.
    pub generations: usize,
    /// How many bytes these had.
    pub bytes: u64,
    /// Whether everything that only this source used is deleted. Until then, packs that are being written may still
    /// have some of it.
    #[serde(rename = "swept")]
    pub is_swept: bool,
}

/// Marks the spine of a thread as forgotten. Its files are not in the vault; the caller that deletes them reports when
/// they are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpineTombstone {
    /// The thread, hashed like the name of a session.
    pub thread: NameHash,
    /// When it was last forgotten.
    pub time: String,
    /// Why.
    pub why: Reason,
    /// Whether its files are deleted. A spine that exists after that was begun later.
    #[serde(rename = "swept")]
    pub is_swept: bool,
}

impl SpineTombstone {
    /// Tells whether this is the tombstone of a thread.
    #[must_use]
    pub fn is_of(&self, thread: &ThreadId) -> bool {
        self.thread == NameHash::of_session(thread.as_str())
    }
}

/// Excludes something from recording: a session, a file, or a part of a file that sessions share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// The hash of its name.
    pub name: NameHash,
    /// When it was excluded.
    pub time: String,
    /// Why.
    pub why: Reason,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TombstoneLine {
    Tombstones {
        version: u32,
    },
    Forgotten(Tombstone),
    ForgottenSpine(SpineTombstone),
    LeftOut(Exclusion),
    /// A sweep is due, because something was removed from a source.
    SweepDue {
        since: String,
    },
    /// A run is to be deleted. This line is removed when that is done.
    RunDue {
        run: NameHash,
    },
}

/// A line of version 1, with the fields that differ.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TombstoneLineV1 {
    Forgotten { session: Option<String>, time: String },
    ForgottenSpine { thread: String, time: String, swept: bool },
}

/// All tombstones of a vault.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    pub(crate) all: Vec<Tombstone>,
    pub(crate) spines: Vec<SpineTombstone>,
    pub(crate) left_out: Vec<Exclusion>,
    /// The names of `left_out`, for lookup.
    names: HashSet<NameHash>,
    /// Since when a sweep is due, if one is.
    pub(crate) sweep_due: Option<String>,
    /// Runs that are to be deleted.
    pub(crate) runs_due: Vec<NameHash>,
    /// Whether the file has names in plain text, from version 1.
    pub(crate) has_names: bool,
    /// Lines of kinds that we do not know, kept as they are.
    unknown: Vec<String>,
}

impl Tombstone {
    pub(crate) fn new(source: SourceId, manifest: Option<&Manifest>, why: Reason, time: &str) -> Self {
        let info = manifest.map(|manifest| manifest.info.clone());
        Self {
            source,
            time: time.to_owned(),
            why,
            provider: info.as_ref().and_then(|info| info.provider.clone()),
            role: info.map(|info| info.role),
            generations: manifest.map_or(0, |manifest| manifest.generations.len()),
            bytes: 0,
            is_swept: false,
        }
    }
}

impl Tombstones {
    /// Reads the tombstones; a missing file has none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::TooNew`], or an I/O error.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Self, Error> {
        let path = VaultFile::Tombstones.path();
        let Some(bytes) = read_whole(disk, &path)? else { return Ok(Self::default()) };
        let damaged = |offset, why| Error::Damaged { path: path.clone(), offset, why };
        let mut tombstones = Self::default();
        let good_len = read_lines(&bytes, damaged, |offset, text| {
            if tombstones.has_names && tombstones.take_named(&text) {
                return Ok(());
            }
            match serde_json::from_str(&text) {
                Ok(TombstoneLine::Tombstones { version }) if version > VERSION => {
                    let (found, known) = (version.into(), VERSION.into());
                    return Err(Error::TooNew { path: path.clone(), found, known });
                }
                Ok(TombstoneLine::Tombstones { version }) => {
                    tombstones.has_names = version == VERSION_WITH_NAMES;
                }
                Ok(TombstoneLine::Forgotten(tombstone)) => tombstones.all.push(tombstone),
                Ok(TombstoneLine::ForgottenSpine(tombstone)) => tombstones.spines.push(tombstone),
                Ok(TombstoneLine::LeftOut(left_out)) => tombstones.leave_out(left_out),
                Ok(TombstoneLine::SweepDue { since }) => tombstones.sweep_due = Some(since),
                Ok(TombstoneLine::RunDue { run }) => tombstones.runs_due.push(run),
                // If this were taken for an unknown kind, the source would be recorded again.
                Err(_) if KNOWN_KINDS.iter().any(|kind| text.starts_with(kind)) => {
                    return Err(damaged(offset, "a line lacks required fields"));
                }
                Err(_) => tombstones.unknown.push(text),
            }
            Ok(())
        })?;
        // The file is always replaced as a whole.
        if good_len < bytes.len() as u64 || bytes.is_empty() {
            return Err(damaged(good_len, "it ends too soon"));
        }
        Ok(tombstones)
    }

    /// Reads a line of version 1 and keeps only hashes of its names; returns whether the line is done with.
    fn take_named(&mut self, text: &str) -> bool {
        match serde_json::from_str(text) {
            Ok(TombstoneLineV1::Forgotten { session, time }) => {
                if let Some(session) = session {
                    let name = NameHash::of_session(&session);
                    self.leave_out(Exclusion { name, time, why: Reason::Unknown });
                }
                false
            }
            Ok(TombstoneLineV1::ForgottenSpine { thread, time, swept })
                if ThreadId::parse(&thread).is_ok() =>
            {
                let thread = NameHash::of_session(&thread);
                self.spines.push(SpineTombstone { thread, time, why: Reason::Unknown, is_swept: swept });
                true
            }
            Ok(TombstoneLineV1::ForgottenSpine { .. }) | Err(_) => false,
        }
    }

    /// Writes the file.
    pub(crate) fn write(&self, disk: &dyn Disk) -> Result<(), Error> {
        let path = VaultFile::Tombstones.path();
        let mut text = String::new();
        let lines = self.all.iter().cloned().map(TombstoneLine::Forgotten);
        let lines = lines.chain(self.spines.iter().cloned().map(TombstoneLine::ForgottenSpine));
        let lines = lines.chain(self.left_out.iter().cloned().map(TombstoneLine::LeftOut));
        let lines =
            lines.chain(self.sweep_due.iter().cloned().map(|since| TombstoneLine::SweepDue { since }));
        let lines = lines.chain(self.runs_due.iter().map(|run| TombstoneLine::RunDue { run: *run }));
        for line in std::iter::once(TombstoneLine::Tombstones { version: VERSION }).chain(lines) {
            let object = serde_json::to_string(&line).expect("our own lines are strings and numbers");
            write_line(&object, &mut text);
        }
        for object in &self.unknown {
            write_line(object, &mut text);
        }
        replace_file(disk, &path, text.as_bytes()).map_err(Error::io("write", &path))
    }

    /// Adds the tombstone of a spine, or moves an existing one to the end with a new time.
    pub(crate) fn add_spine(&mut self, thread: &ThreadId, why: Reason, time: &str) {
        self.spines.retain(|tombstone| !tombstone.is_of(thread));
        let (thread, time) = (NameHash::of_session(thread.as_str()), time.to_owned());
        self.spines.push(SpineTombstone { thread, time, why, is_swept: false });
    }

    /// Adds an exclusion.
    pub(crate) fn leave_out(&mut self, left_out: Exclusion) {
        if self.names.insert(left_out.name) {
            self.left_out.push(left_out);
        }
    }

    /// Removes an exclusion; returns whether there was one.
    pub(crate) fn take_in(&mut self, name: NameHash) -> bool {
        self.left_out.retain(|left_out| left_out.name != name);
        self.names.remove(&name)
    }

    pub(crate) fn leaves_out(&self, name: NameHash) -> bool {
        self.names.contains(&name)
    }

    /// Tells whether a sweep is due.
    pub(crate) fn is_sweep_due(&self) -> bool {
        self.sweep_due.is_some() || self.pending().next().is_some()
    }

    /// Returns the forgotten sources that are not swept yet.
    pub(crate) fn pending(&self) -> impl Iterator<Item = SourceId> {
        self.all.iter().filter(|tombstone| !tombstone.is_swept).map(|tombstone| tombstone.source)
    }
}

/// Tells whether a source was forgotten. If a line is damaged, the file is searched for the id, so that one damaged
/// line does not stop all recording.
pub(crate) fn is_forgotten(vault: &Vault, source: SourceId) -> Result<bool, Error> {
    match vault.is_forgotten(source) {
        Err(Error::Damaged { .. }) => {
            let bytes = read_whole(&**vault.disk(), &VaultFile::Tombstones.path())?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&bytes).contains(&source.to_string()))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use steno_disk::{Disk as _, RealDisk};

    use super::*;

    /// Reads a file with one line; also returns how it is written again.
    #[track_caller]
    fn read_version(version: u32, object: &str) -> Result<(Tombstones, String), Error> {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(&dir.path().join("store")).unwrap();
        let path = VaultFile::Tombstones.path();
        disk.make_dir(&path.dir()).unwrap();
        let mut text = String::new();
        write_line(&format!(r#"{{"tombstones":{{"version":{version}}}}}"#), &mut text);
        write_line(object, &mut text);
        replace_file(&disk, &path, text.as_bytes()).unwrap();
        let tombstones = Tombstones::read(&disk)?;
        tombstones.write(&disk).unwrap();
        let written = String::from_utf8(read_whole(&disk, &path).unwrap().unwrap()).unwrap();
        if version == VERSION {
            assert_eq!(written, text, "writing gives the same text");
        }
        Ok((tombstones, written))
    }

    #[track_caller]
    fn read(object: &str) -> Result<Tombstones, Error> {
        Ok(read_version(VERSION, object)?.0)
    }

    #[test]
    fn tombstone_lines_are_valid_or_damaged() {
        let id = SourceId::derive("/p".as_ref(), 0);
        let rest = r#""time":"t","why":"age","role":"new","generations":1,"bytes":2,"swept":false"#;
        let tombstones = read(&format!(r#"{{"forgotten":{{"source":"{id}",{rest}}}}}"#)).unwrap();
        let want = Tombstone {
            source: id,
            time: "t".into(),
            why: Reason::Age,
            provider: None,
            role: Some(Role::Other("new".into())),
            generations: 1,
            bytes: 2,
            is_swept: false,
        };
        assert_eq!(tombstones.all, [want]);
        for source in [String::new(), id.to_string().to_uppercase()] {
            let line = format!(r#"{{"forgotten":{{"source":"{source}",{rest}}}}}"#);
            assert!(matches!(read(&line), Err(Error::Damaged { .. })), "{line}");
        }
        let without_rest = format!(r#"{{"forgotten":{{"source":"{id}"}}}}"#);
        assert!(matches!(read(&without_rest), Err(Error::Damaged { .. })));
        assert!(read(r#"{"remembered":{}}"#).unwrap().all.is_empty());
        let name = NameHash::of_session("t-1");
        let spine = |thread: &str| {
            let line = format!(r#""thread":"{thread}","time":"t","why":"session","swept":true"#);
            read(&format!(r#"{{"forgotten_spine":{{{line}}}}}"#))
        };
        let want = SpineTombstone { thread: name, time: "t".into(), why: Reason::Session, is_swept: true };
        assert_eq!(spine(&name.to_string()).unwrap().spines, [want]);
        for thread in ["", "../transcripts", "t-1"] {
            assert!(matches!(spine(thread), Err(Error::Damaged { .. })), "{thread}");
        }
        let left_out = read(&format!(r#"{{"left_out":{{"name":"{name}","time":"t","why":"project"}}}}"#));
        assert!(left_out.unwrap().leaves_out(name));
    }

    #[test]
    fn names_of_the_first_version_become_hashes() {
        let id = SourceId::derive("/p".as_ref(), 0);
        let session = "-src-secret/550e8400-e29b-41d4-a716-446655440000";
        let rest = r#""why":"project /src/secret","generations":1,"bytes":2,"swept":true"#;
        let line = format!(r#"{{"forgotten":{{"source":"{id}","time":"t","session":"{session}",{rest}}}}}"#);
        let (tombstones, written) = read_version(VERSION_WITH_NAMES, &line).unwrap();
        assert_eq!((tombstones.all[0].source, tombstones.all[0].why), (id, Reason::Unknown));
        assert!(tombstones.leaves_out(NameHash::of_session(session)));
        assert!(!written.contains("secret") && !written.contains("550e8400"), "{written}");
        let line = r#"{"forgotten_spine":{"thread":"t-1","time":"t","why":"t-1","swept":false}}"#;
        let (tombstones, written) = read_version(VERSION_WITH_NAMES, line).unwrap();
        assert!(tombstones.spines[0].is_of(&ThreadId::parse("t-1").unwrap()));
        assert!(!written.contains("t-1"), "{written}");
        let odd = r#"{"forgotten_spine":{"thread":"../x","time":"t","why":"w","swept":false}}"#;
        assert!(matches!(read_version(VERSION_WITH_NAMES, odd), Err(Error::Damaged { .. })));
    }
}
