//! The manifest of a source: what the source is, which chunks each of its generations has, and how far it was read and
//! turned into events. A file of JSON lines that only grows; each line carries its checksum.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use steno_disk::{Disk, StorePath};
use steno_model::{Provider, Word};

use crate::checksum_lines::{read_lines, write_line};
use crate::error::Error;
use crate::ids::{ChunkHash, SourceId};
use crate::index::read_whole;
use crate::names::VaultFile;
use crate::role::Role;

/// The version of manifests that we write.
const VERSION: u32 = 2;
/// The version with a single time, see [`Sighting`].
const VERSION_WITH_ONE_TIME: u32 = 1;
/// The beginnings of lines of known kinds.
const KNOWN_KINDS: [&str; 4] = ["{\"source\":", "{\"generation\":", "{\"chunks\":", "{\"state\":"];

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// The provider, if it was recognised.
    #[serde(with = "crate::provider_word", skip_serializing_if = "Option::is_none", default)]
    pub provider: Option<Word<Provider>>,
    /// What the file is to its session.
    pub role: Role,
    /// The agent's home that the file is in, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub home: Option<HostPath>,
    /// The path of the file.
    pub path: HostPath,
    /// The key that the files of one session share.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// The agent's name for the project.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub project: Option<String>,
    /// Whether parts of the file were left out because they belong to excluded or forgotten sessions.
    #[serde(rename = "filtered", skip_serializing_if = "std::ops::Not::not", default)]
    pub is_filtered: bool,
}

impl SourceInfo {
    /// Returns the provider; `None` also if only a later version of this program knows it.
    #[must_use]
    pub fn known_provider(&self) -> Option<Provider> {
        self.provider.as_ref().and_then(Word::known)
    }
}

/// A path on the host, outside the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostPath(#[serde(with = "crate::host_path")] pub PathBuf);

/// How far an adapter has turned a source into events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterProgress {
    /// The last generation that was read.
    pub generation: u32,
    /// The offset in that generation.
    pub offset: u64,
    /// The name and version of the adapter.
    pub adapter: String,
    /// The runs that contain the events, the session's own run first.
    pub runs: Vec<String>,
    /// The time of the first event.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<String>,
}

/// When a file was first seen, as a source or as a generation of one.
///
/// Version 1 of the manifest had a single time: the file's time for the first generation, the clock's time for later
/// ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The time of the clock; `None` where version 1 did not record it.
    #[serde(serialize_with = "text_or_empty", deserialize_with = "unless_empty")]
    pub time: Option<String>,
    /// The modification time of the file, which anybody can set; `None` where it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub modified: Option<String>,
}

impl Sighting {
    /// Returns the time to use for records without one: the modification time if known, else the time of the clock.
    #[must_use]
    pub fn inferred_time(&self) -> Option<&str> {
        self.modified.as_deref().or(self.time.as_deref())
    }

    /// Reads the single time of version 1 as the modification time.
    fn of_file(self) -> Self {
        Self { time: None, modified: self.time }
    }
}

/// Writes an empty text for `None`: a reader of version 1 requires the field, and then sees that the version is newer.
#[expect(clippy::ref_option, reason = "serde passes it like this")]
fn text_or_empty<S: Serializer>(text: &Option<String>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(text.as_deref().unwrap_or_default())
}

fn unless_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A sighting of a file whose own time is not known.
impl From<&str> for Sighting {
    fn from(now: &str) -> Self {
        Self { time: Some(now.to_owned()), modified: None }
    }
}

/// A chunk of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// Its name.
    pub hash: ChunkHash,
    /// How many bytes it has.
    pub len: u32,
}

/// The content of a source between two rewrites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Why this generation was begun.
    pub why: String,
    /// When it was first seen.
    pub since: Sighting,
    /// Its chunks, in order, without the bytes in the tail.
    pub chunks: Vec<ChunkRef>,
    /// The total length of these chunks.
    pub len: u64,
    /// The offset of the first bytes that were found after the next generation had begun, if any.
    pub late_from: Option<u64>,
}

impl Generation {
    /// Splits the chunks into those that were found in time and those that were found late.
    fn split(&self) -> (&[ChunkRef], &[ChunkRef]) {
        let (mut in_time, mut offset) = (0, 0);
        while in_time < self.chunks.len() && self.late_from.is_none_or(|late| offset < late) {
            offset += u64::from(self.chunks[in_time].len);
            in_time += 1;
        }
        self.chunks.split_at(in_time)
    }
}

/// The content of a manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The source.
    pub id: SourceId,
    /// What it is.
    pub info: SourceInfo,
    /// When the source was first seen.
    pub since: Sighting,
    /// Its generations, oldest first.
    pub generations: Vec<Generation>,
    /// How far it was read, in the format of its reader.
    pub cursor: Option<Box<RawValue>>,
    /// How far it was turned into events.
    pub adapted: Option<AdapterProgress>,
    /// When this state was saved.
    state_time: Option<String>,
    /// Lines of kinds that we do not know, kept as they are.
    pub(crate) unknown: Vec<String>,
    /// How many lines the file has.
    pub(crate) lines: usize,
    /// The total length of the valid lines.
    pub(crate) good_len: u64,
}

/// A line of a manifest.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ManifestLine {
    /// What the source is; the last one counts.
    Source {
        version: u32,
        #[serde(flatten)]
        since: Sighting,
        #[serde(flatten)]
        info: SourceInfo,
    },
    /// A generation begins.
    Generation {
        number: u32,
        #[serde(flatten)]
        since: Sighting,
        why: String,
    },
    /// More chunks of a generation.
    Chunks(MoreChunks),
    /// How far the source was read and turned into events, when its owner closed it.
    State {
        time: String,
        /// The last chunks, in the same line so that both become safe together.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        more: Option<MoreChunks>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cursor: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        adapted: Option<AdapterProgress>,
    },
}

/// Chunks that are appended to a generation.
#[derive(Serialize, Deserialize)]
pub(crate) struct MoreChunks {
    generation: u32,
    offset: u64,
    chunks: Vec<(String, u32)>,
}

impl MoreChunks {
    pub(crate) fn new(generation: u32, offset: u64, chunks: &[ChunkRef]) -> Self {
        let chunks = chunks.iter().map(|chunk| (chunk.hash.to_string(), chunk.len)).collect();
        Self { generation, offset, chunks }
    }
}

impl ManifestLine {
    /// Converts a line of version 1 to the current version.
    fn with_both_times(self) -> Self {
        match self {
            // These generations had the modification time of the file.
            Self::Generation { number, since, why } if number == 0 || why == "damaged" => {
                Self::Generation { number, since: since.of_file(), why }
            }
            Self::Source { .. } | Self::Generation { .. } | Self::Chunks(_) | Self::State { .. } => self,
        }
    }

    /// Writes the line with its checksum and newline.
    pub(crate) fn write(&self, out: &mut String) {
        let text = serde_json::to_string(self).expect("our own lines are strings and numbers");
        write_line(&text, out);
    }
}

impl Manifest {
    /// Begins a manifest that has no line yet.
    pub(crate) fn new(id: SourceId, info: SourceInfo, since: Sighting) -> Self {
        Self {
            id,
            info,
            since,
            generations: Vec::new(),
            cursor: None,
            adapted: None,
            state_time: None,
            unknown: Vec::new(),
            lines: 0,
            good_len: 0,
        }
    }

    /// Reads the manifest of a source; `None` when it has none.
    ///
    /// An incomplete last line is ignored; its bytes are still in the tail.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::TooNew`], or an I/O error.
    pub(crate) fn read(disk: &dyn Disk, id: SourceId) -> Result<Option<Self>, Error> {
        let path = VaultFile::Manifest(id).path();
        match read_whole(disk, &path)? {
            Some(bytes) => Self::parse(id, &path, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the source line of a manifest that cannot be read as a whole.
    pub(crate) fn read_info(disk: &dyn Disk, id: SourceId) -> Option<SourceInfo> {
        let bytes = read_whole(disk, &VaultFile::Manifest(id).path()).ok()??;
        let first = bytes.split_inclusive(|byte| *byte == b'\n').next()?;
        let mut info = None;
        let each = |_, text: String| {
            if let Ok(ManifestLine::Source { info: found, .. }) = serde_json::from_str(&text) {
                info = Some(found);
            }
            Ok(())
        };
        read_lines(first, |_, _| (), each).ok()?;
        info
    }

    fn parse(id: SourceId, path: &StorePath, bytes: &[u8]) -> Result<Self, Error> {
        let mut manifest: Option<Self> = None;
        let mut has_one_time = false;
        let damaged = |offset, why| Error::Damaged { path: path.clone(), offset, why };
        let good_len = read_lines(bytes, damaged, |offset, text| {
            let line = serde_json::from_str::<ManifestLine>(&text);
            let line = if has_one_time { line.map(ManifestLine::with_both_times) } else { line };
            match (line, &mut manifest) {
                (Ok(ManifestLine::Source { version, .. }), _) if version > VERSION => {
                    let (found, known) = (version.into(), VERSION.into());
                    return Err(Error::TooNew { path: path.clone(), found, known });
                }
                (Ok(ManifestLine::Source { version, since, info }), manifest @ None) => {
                    has_one_time = version <= VERSION_WITH_ONE_TIME;
                    let since = if has_one_time { since.of_file() } else { since };
                    *manifest = Some(Self::new(id, info, since));
                }
                (_, None) => return Err(damaged(offset, "there is no source line before it")),
                (Ok(line), Some(manifest)) => manifest.take(line).map_err(|why| damaged(offset, why))?,
                (Err(_), Some(_)) if KNOWN_KINDS.iter().any(|kind| text.starts_with(kind)) => {
                    return Err(damaged(offset, "a line lacks required fields"));
                }
                (Err(_), Some(manifest)) => manifest.unknown.push(text),
            }
            if let Some(manifest) = &mut manifest {
                manifest.lines += 1;
            }
            Ok(())
        })?;
        // A manifest is created with its first lines, so an empty one has lost them.
        let mut manifest = manifest.ok_or_else(|| damaged(0, "it has no source line"))?;
        manifest.good_len = good_len;
        Ok(manifest)
    }

    /// Applies a line.
    pub(crate) fn take(&mut self, line: ManifestLine) -> Result<(), &'static str> {
        match line {
            ManifestLine::Source { version: _, since: _, info } => self.info = info,
            ManifestLine::Generation { number, since, why } => {
                if number as usize != self.generations.len() {
                    return Err("a generation is out of order");
                }
                self.generations.push(Generation { why, since, ..Generation::default() });
            }
            ManifestLine::Chunks(more) => self.take_chunks(more)?,
            ManifestLine::State { time, more, cursor, adapted } => {
                more.map_or(Ok(()), |more| self.take_chunks(more))?;
                (self.cursor, self.adapted, self.state_time) = (cursor, adapted, Some(time));
            }
        }
        Ok(())
    }

    fn take_chunks(&mut self, more: MoreChunks) -> Result<(), &'static str> {
        let is_late = (more.generation as usize) + 1 < self.generations.len();
        let wanted =
            self.generations.get_mut(more.generation as usize).ok_or("the generation does not exist")?;
        if wanted.len != more.offset {
            return Err("chunks are out of order");
        }
        if is_late {
            wanted.late_from.get_or_insert(more.offset);
        }
        for (hash, len) in more.chunks {
            let hash = ChunkHash::parse(&hash).ok_or("it is not a valid chunk hash")?;
            wanted.chunks.push(ChunkRef { hash, len });
            wanted.len += u64::from(len);
        }
        Ok(())
    }

    /// Returns the manifest in as few lines as possible.
    pub(crate) fn to_lines(&self) -> String {
        let mut out = String::new();
        source_line(&self.info, &self.since).write(&mut out);
        for (number, generation) in (0..).zip(&self.generations) {
            let (since, why) = (generation.since.clone(), generation.why.clone());
            ManifestLine::Generation { number, since, why }.write(&mut out);
            let (in_time, _) = generation.split();
            if !in_time.is_empty() {
                ManifestLine::Chunks(MoreChunks::new(number, 0, in_time)).write(&mut out);
            }
        }
        // A late chunk is recognized by its line, which comes after that of the next generation.
        for (number, generation) in (0..).zip(&self.generations) {
            if let (_, late @ [_, ..]) = generation.split() {
                let offset = generation.late_from.unwrap_or_default();
                ManifestLine::Chunks(MoreChunks::new(number, offset, late)).write(&mut out);
            }
        }
        self.unknown.iter().for_each(|object| write_line(object, &mut out));
        if let Some(time) = self.state_time.clone() {
            let (cursor, adapted) = (self.cursor.clone(), self.adapted.clone());
            ManifestLine::State { time, more: None, cursor, adapted }.write(&mut out);
        }
        out
    }

    /// Returns how many lines could be saved by rewriting the manifest.
    pub(crate) fn spare_lines(&self) -> usize {
        self.lines.saturating_sub(2 + 2 * self.generations.len() + self.unknown.len())
    }

    /// Returns the chunks of all generations.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &ChunkRef> {
        self.generations.iter().flat_map(|generation| &generation.chunks)
    }

    /// Returns when its owner last saved how far the source was read.
    #[must_use]
    pub fn saved_at(&self) -> Option<&str> {
        self.state_time.as_deref()
    }

    /// Returns the number of the last generation.
    #[must_use]
    pub fn generation_last(&self) -> Option<u32> {
        u32::try_from(self.generations.len()).ok()?.checked_sub(1)
    }
}

pub(crate) fn source_line(info: &SourceInfo, since: &Sighting) -> ManifestLine {
    ManifestLine::Source { version: VERSION, since: since.clone(), info: info.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, want: &Role) {
        let id = SourceId::derive("/p".as_ref(), 0);
        let object =
            format!(r#"{{"source":{{"version":2,"time":"t","modified":"m","role":"{word}","path":"/p"}}}}"#);
        let mut text = String::new();
        write_line(&object, &mut text);
        let manifest = Manifest::parse(id, &VaultFile::Manifest(id).path(), text.as_bytes()).unwrap();
        assert_eq!(&manifest.info.role, want);
        assert_eq!(manifest.to_lines(), text);
    }

    #[test]
    fn roles_round_trip() {
        check("transcript", &Role::Transcript);
        check("sidecar", &Role::Sidecar);
        check("shared", &Role::Shared);
        for word in ["", "Transcript", "index of the future"] {
            check(word, &Role::Other(word.to_owned()));
        }
    }

    #[test]
    fn version_1_times_become_modified_or_clock_times() {
        let id = SourceId::derive("/p".as_ref(), 0);
        let mut text = String::new();
        for object in [
            r#"{"source":{"version":1,"time":"t0","role":"transcript","path":"/p"}}"#,
            r#"{"generation":{"number":0,"time":"t1","why":"first"}}"#,
            r#"{"generation":{"number":1,"time":"t2","why":"rewritten"}}"#,
            r#"{"generation":{"number":2,"time":"t3","why":"damaged"}}"#,
        ] {
            write_line(object, &mut text);
        }
        let path = VaultFile::Manifest(id).path();
        let manifest = Manifest::parse(id, &path, text.as_bytes()).unwrap();
        let file = |time: &str| Sighting { time: None, modified: Some(time.to_owned()) };
        let want = [file("t0"), file("t1"), Sighting::from("t2"), file("t3")];
        let found = |manifest: &Manifest| {
            let generations = manifest.generations.iter().map(|generation| generation.since.clone());
            [manifest.since.clone()].into_iter().chain(generations).collect::<Vec<_>>()
        };
        assert_eq!(found(&manifest), want);
        // After a rewrite the content is the same.
        let text = manifest.to_lines();
        assert!(text.starts_with(r#"{"source":{"version":2,"time":"","modified":"t0","role""#), "{text}");
        assert_eq!(found(&Manifest::parse(id, &path, text.as_bytes()).unwrap()), want);
    }
}
