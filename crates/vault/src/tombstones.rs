//! What was forgotten: a line for each source that says that it was here, and nothing of what was in it.

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, replace_file};

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

/// That a source was forgotten.
///
/// The id is derived from the path that the source was first seen at, so whoever meets a file there again can know.
/// Neither the path nor anything of the content is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The source.
    pub source: SourceId,
    /// When it was forgotten.
    pub time: String,
    /// Why, in the words of whoever asked for it.
    pub why: String,
    /// The provider's name, if it was known.
    pub provider: Option<String>,
    /// What the file was to its session, if its manifest could be read.
    pub role: Option<Role>,
    /// What files of its session share.
    pub session: Option<String>,
    /// How many generations it had.
    pub generations: usize,
    /// How many bytes these had.
    pub bytes: u64,
    /// Whether everything is gone that nothing else uses. Until then it waits for packs that are being written.
    pub is_swept: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Tombstones {
        version: u32,
    },
    Forgotten {
        source: String,
        time: String,
        why: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        provider: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        role: Option<Role>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        session: Option<String>,
        generations: usize,
        bytes: u64,
        swept: bool,
    },
}

/// All tombstones of a vault.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    pub(crate) all: Vec<Tombstone>,
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

    fn to_line(&self) -> Line {
        Line::Forgotten {
            source: self.source.to_string(),
            time: self.time.clone(),
            why: self.why.clone(),
            provider: self.provider.clone(),
            role: self.role.clone(),
            session: self.session.clone(),
            generations: self.generations,
            bytes: self.bytes,
            swept: self.is_swept,
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
                Ok(Line::Forgotten {
                    source,
                    time,
                    why,
                    provider,
                    role,
                    session,
                    generations,
                    bytes,
                    swept,
                }) => {
                    let source =
                        SourceId::parse(&source).ok_or_else(|| damaged(offset, "no id of a source"))?;
                    let is_swept = swept;
                    tombstones.all.push(Tombstone {
                        source,
                        time,
                        why,
                        provider,
                        role,
                        session,
                        generations,
                        bytes,
                        is_swept,
                    });
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
        let lines = self.all.iter().map(Tombstone::to_line);
        for line in std::iter::once(Line::Tombstones { version: VERSION }).chain(lines) {
            let object = serde_json::to_string(&line).expect("our own lines are strings and numbers");
            write_line(&object, &mut text);
        }
        for object in &self.unknown {
            write_line(object, &mut text);
        }
        replace_file(disk, &path, text.as_bytes()).map_err(Error::io("write", &path))
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
