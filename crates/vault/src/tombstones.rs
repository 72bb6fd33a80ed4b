//! What was forgotten: a line for each source that says that it was here, and nothing of what was in it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use steno_disk::{Disk, replace_file};
use steno_model::ThreadId;

use crate::checked::{read_lines, write_line};
use crate::error::Error;
use crate::ids::SourceId;
use crate::index::read_whole;
use crate::manifest::Manifest;
use crate::names::VaultFile;
use crate::role::Role;
use crate::vault::Vault;

/// The version of the file that we write.
const VERSION: u32 = 1;
/// What lines of the kinds that count begin with.
const KNOWN_KINDS: [&str; 2] = ["{\"forgotten\":", "{\"forgotten_spine\":"];

/// That a source was forgotten.
///
/// The id is derived from the path that the source was first seen at, so whoever meets a file there again can know.
/// Neither the path nor anything of the content is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The source.
    pub source: SourceId,
    /// When it was forgotten.
    pub time: String,
    /// Why, in the words of whoever asked for it.
    pub why: String,
    /// The provider's name, if it was known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider: Option<String>,
    /// What the file was to its session, if its manifest could be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub role: Option<Role>,
    /// What files of its session share.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// How many generations it had.
    pub generations: usize,
    /// How many bytes these had.
    pub bytes: u64,
    /// Whether everything is gone that nothing else uses. Until then it waits for packs that are being written.
    #[serde(rename = "swept")]
    pub is_swept: bool,
}

/// That the spine of a thread was forgotten. Its files are not the vault's; whoever deletes them says when they are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpineTombstone {
    /// The thread.
    #[serde(serialize_with = "write_thread", deserialize_with = "read_thread")]
    pub thread: ThreadId,
    /// When it was forgotten, the last time.
    pub time: String,
    /// Why, in the words of whoever asked for it.
    pub why: String,
    /// Whether nothing of it is left. What came later was begun anew.
    #[serde(rename = "swept")]
    pub is_swept: bool,
}

fn write_thread<S: Serializer>(thread: &ThreadId, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(thread.as_str())
}

/// Reads a thread's id, which names a directory and so is not just any string.
fn read_thread<'de, D: Deserializer<'de>>(from: D) -> Result<ThreadId, D::Error> {
    ThreadId::parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Tombstones { version: u32 },
    Forgotten(Tombstone),
    ForgottenSpine(SpineTombstone),
}

/// All tombstones of a vault.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    pub(crate) all: Vec<Tombstone>,
    pub(crate) spines: Vec<SpineTombstone>,
    /// Lines of kinds that we do not know, kept as they are.
    unknown: Vec<String>,
}

impl Tombstone {
    pub(crate) fn new(source: SourceId, manifest: Option<&Manifest>, why: &str, time: &str) -> Self {
        let info = manifest.map(|manifest| manifest.info.clone());
        Self {
            source,
            time: time.to_owned(),
            why: why.to_owned(),
            provider: info.as_ref().and_then(|info| info.provider.clone()),
            role: info.as_ref().map(|info| info.role.clone()),
            session: info.and_then(|info| info.session),
            generations: manifest.map_or(0, |manifest| manifest.generations.len()),
            bytes: 0,
            is_swept: false,
        }
    }
}

impl Tombstones {
    /// Reads the tombstones; there are none when there is no file.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::TooNew`], or what the system says.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Self, Error> {
        let path = VaultFile::Tombstones.path();
        let Some(bytes) = read_whole(disk, &path)? else { return Ok(Self::default()) };
        let damaged = |offset, why| Error::Damaged { path: path.clone(), offset, why };
        let mut tombstones = Self::default();
        let good_len = read_lines(&bytes, damaged, |offset, text| {
            match serde_json::from_str(&text) {
                Ok(Line::Tombstones { version }) if version > VERSION => {
                    let (found, known) = (version.into(), VERSION.into());
                    return Err(Error::TooNew { path: path.clone(), found, known });
                }
                Ok(Line::Tombstones { .. }) => {}
                Ok(Line::Forgotten(tombstone)) => tombstones.all.push(tombstone),
                Ok(Line::ForgottenSpine(tombstone)) => tombstones.spines.push(tombstone),
                // Taken for a kind that we do not know, it would let the source be recorded again.
                Err(_) if KNOWN_KINDS.iter().any(|kind| text.starts_with(kind)) => {
                    return Err(damaged(offset, "a line does not have the fields of its kind"));
                }
                Err(_) => tombstones.unknown.push(text),
            }
            Ok(())
        })?;
        // The file is always put in place as a whole.
        if good_len < bytes.len() as u64 || bytes.is_empty() {
            return Err(damaged(good_len, "it ends too soon"));
        }
        Ok(tombstones)
    }

    /// Puts the tombstones in place.
    pub(crate) fn write(&self, disk: &dyn Disk) -> Result<(), Error> {
        let path = VaultFile::Tombstones.path();
        let mut text = String::new();
        let lines = self.all.iter().cloned().map(Line::Forgotten);
        let lines = lines.chain(self.spines.iter().cloned().map(Line::ForgottenSpine));
        for line in std::iter::once(Line::Tombstones { version: VERSION }).chain(lines) {
            let object = serde_json::to_string(&line).expect("our own lines are strings and numbers");
            write_line(&object, &mut text);
        }
        for object in &self.unknown {
            write_line(object, &mut text);
        }
        replace_file(disk, &path, text.as_bytes()).map_err(Error::io("write", &path))
    }

    /// Adds the tombstone of a spine, or makes that of one that was forgotten before the newest.
    pub(crate) fn add_spine(&mut self, thread: &ThreadId, why: &str, time: &str) {
        self.spines.retain(|tombstone| tombstone.thread != *thread);
        let (thread, time, why) = (thread.clone(), time.to_owned(), why.to_owned());
        self.spines.push(SpineTombstone { thread, time, why, is_swept: false });
    }

    /// Returns the sources of which something may still be there.
    pub(crate) fn pending(&self) -> impl Iterator<Item = SourceId> {
        self.all.iter().filter(|tombstone| !tombstone.is_swept).map(|tombstone| tombstone.source)
    }
}

/// Tells whether a source was forgotten, as far as that can be told: one line that is damaged must not stop everything
/// from being recorded.
pub(crate) fn is_forgotten(vault: &Vault, source: SourceId) -> Result<bool, Error> {
    match vault.is_forgotten(source) {
        Err(Error::Damaged { .. }) => {
            let bytes = read_whole(&**vault.disk(), &VaultFile::Tombstones.path())?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&bytes).contains(&source.to_string()))
        }
        told => told,
    }
}

#[cfg(test)]
mod tests {
    use steno_disk::{Disk as _, RealDisk};

    use super::*;

    #[track_caller]
    fn read(object: &str) -> Result<Tombstones, Error> {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(&dir.path().join("store")).unwrap();
        let path = VaultFile::Tombstones.path();
        disk.make_dir(&path.dir()).unwrap();
        let mut text = String::new();
        write_line(r#"{"tombstones":{"version":1}}"#, &mut text);
        write_line(object, &mut text);
        replace_file(&disk, &path, text.as_bytes()).unwrap();
        let tombstones = Tombstones::read(&disk)?;
        // What was read is written as it was.
        tombstones.write(&disk).unwrap();
        assert_eq!(read_whole(&disk, &path).unwrap().unwrap(), text.as_bytes());
        Ok(tombstones)
    }

    #[test]
    fn what_is_said_of_something_forgotten_is_known_or_damaged() {
        let id = SourceId::derive("/p".as_ref(), 0);
        let rest = r#""time":"t","why":"w","role":"new","generations":1,"bytes":2,"swept":false"#;
        let tombstones = read(&format!(r#"{{"forgotten":{{"source":"{id}",{rest}}}}}"#)).unwrap();
        let want = Tombstone {
            source: id,
            time: "t".into(),
            why: "w".into(),
            provider: None,
            role: Some(Role::Other("new".into())),
            session: None,
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
        let spine = |thread: &str| {
            read(&format!(
                r#"{{"forgotten_spine":{{"thread":"{thread}","time":"t","why":"w","swept":true}}}}"#
            ))
        };
        let thread = ThreadId::parse("t-1").unwrap();
        let want = SpineTombstone { thread, time: "t".into(), why: "w".into(), is_swept: true };
        assert_eq!(spine("t-1").unwrap().spines, [want]);
        for thread in ["", "../transcripts", "a/b"] {
            assert!(matches!(spine(thread), Err(Error::Damaged { .. })), "{thread}");
        }
    }
}
