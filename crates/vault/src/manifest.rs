//! The manifest of a source: what it is, which chunks each of its generations has, and how far it was read and
//! understood. A file of JSON lines that only grows; each line carries its checksum.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use steno_disk::{Disk, StorePath};

use crate::checksum_lines::{read_lines, write_line};
use crate::error::Error;
use crate::ids::{ChunkHash, SourceId};
use crate::index::read_whole;
use crate::names::VaultFile;
use crate::role::Role;

/// The version of manifests that we write.
const VERSION: u32 = 2;
/// The version that had one time for both, see [`Sighting`].
const VERSION_WITH_ONE_TIME: u32 = 1;
/// What lines of the kinds that we know begin with.
const KNOWN_KINDS: [&str; 4] = ["{\"source\":", "{\"generation\":", "{\"chunks\":", "{\"state\":"];

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// The provider's name, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider: Option<String>,
    /// What the file is to its session.
    pub role: Role,
    /// The agent's home that it lies in, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub home: Option<HostPath>,
    /// Where it lies.
    pub path: HostPath,
    /// What files of one session share.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// The agent's name for the project.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub project: Option<String>,
    /// Whether pieces of the file were left out, because they are of sessions that were excluded or forgotten.
    #[serde(rename = "filtered", skip_serializing_if = "std::ops::Not::not", default)]
    pub is_filtered: bool,
}

/// A path of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostPath(#[serde(with = "crate::host_path")] pub PathBuf);

/// How far a source was made into events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapted {
    /// Up to which generation.
    pub generation: u32,
    /// Up to where in it.
    pub offset: u64,
    /// By which adapter.
    pub adapter: String,
    /// The runs that the events are in, the session's own first.
    pub runs: Vec<String>,
    /// The time of the first event.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<String>,
}

/// When a file was looked at for the first time, as a source or as a generation of one.
///
/// Version 1 of the manifest had one time: that of the file for what is first, and that of our clock for what came later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The time by our clock; `None` where version 1 has not kept it.
    #[serde(serialize_with = "text_or_empty", deserialize_with = "unless_empty")]
    pub time: Option<String>,
    /// When the file was last changed by its own account, which anybody can set; `None` where it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub modified: Option<String>,
}

impl Sighting {
    /// Returns the time of records that have none: the file's, as anybody reads it who reads the file.
    #[must_use]
    pub fn inferred_time(&self) -> Option<&str> {
        self.modified.as_deref().or(self.time.as_deref())
    }

    /// Takes the one time of version 1 for the file's.
    fn of_file(self) -> Self {
        Self { time: None, modified: self.time }
    }
}

/// Writes a text also where there is none: version 1 has to find it, to see that this is a newer one.
#[expect(clippy::ref_option, reason = "serde hands it over so")]
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

/// The content of a source between two rewritings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Why it is another than the one before.
    pub why: String,
    /// When it was first seen.
    pub since: Sighting,
    /// Its bytes as far as they are cut.
    pub chunks: Vec<ChunkRef>,
    /// How many bytes that is.
    pub len: u64,
    /// From where on they came after the next generation had begun, if any did.
    pub late_from: Option<u64>,
}

impl Generation {
    /// Splits the chunks into those that came in time and those that came late.
    fn split(&self) -> (&[ChunkRef], &[ChunkRef]) {
        let (mut in_time, mut offset) = (0, 0);
        while in_time < self.chunks.len() && self.late_from.is_none_or(|late| offset < late) {
            offset += u64::from(self.chunks[in_time].len);
            in_time += 1;
        }
        self.chunks.split_at(in_time)
    }
}

/// What the manifest of a source says.
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
    /// How far it was read, in the words of whoever reads it.
    pub cursor: Option<Box<RawValue>>,
    /// How far it was made into events.
    pub adapted: Option<Adapted>,
    /// When that was written down.
    state_time: Option<String>,
    /// Lines of kinds that we do not know, kept as they are.
    pub(crate) unknown: Vec<String>,
    /// How many lines the file has.
    pub(crate) lines: usize,
    /// How long the lines that count are.
    pub(crate) good_len: u64,
}

/// A line of a manifest.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
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
    /// A generation goes on with these chunks.
    Chunks(MoreChunks),
    /// How far the source was read and made into events, when its owner let go of it.
    State {
        time: String,
        /// What came last, so that both are safe or neither.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        more: Option<MoreChunks>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cursor: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        adapted: Option<Adapted>,
    },
}

/// The chunks that a generation goes on with.
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

impl Line {
    /// Reads a line of version 1 as one of today.
    fn with_both_times(self) -> Self {
        match self {
            // These are the generations that had the file's time.
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
    /// A last line that was never finished is left out; whatever it said is in the tail still.
    ///
    /// # Errors
    /// [`Error::Damaged`] when a line is not as it was, [`Error::TooNew`], or what the system says.
    pub(crate) fn read(disk: &dyn Disk, id: SourceId) -> Result<Option<Self>, Error> {
        let path = VaultFile::Manifest(id).path();
        match read_whole(disk, &path)? {
            Some(bytes) => Self::parse(id, &path, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Reads what a source is, from a manifest that cannot be read as a whole.
    pub(crate) fn read_info(disk: &dyn Disk, id: SourceId) -> Option<SourceInfo> {
        let bytes = read_whole(disk, &VaultFile::Manifest(id).path()).ok()??;
        let first = bytes.split_inclusive(|byte| *byte == b'\n').next()?;
        let mut info = None;
        let each = |_, text: String| {
            if let Ok(Line::Source { info: found, .. }) = serde_json::from_str(&text) {
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
            let line = serde_json::from_str::<Line>(&text);
            let line = if has_one_time { line.map(Line::with_both_times) } else { line };
            match (line, &mut manifest) {
                (Ok(Line::Source { version, .. }), _) if version > VERSION => {
                    let (found, known) = (version.into(), VERSION.into());
                    return Err(Error::TooNew { path: path.clone(), found, known });
                }
                (Ok(Line::Source { version, since, info }), manifest @ None) => {
                    has_one_time = version <= VERSION_WITH_ONE_TIME;
                    let since = if has_one_time { since.of_file() } else { since };
                    *manifest = Some(Self::new(id, info, since));
                }
                (_, None) => return Err(damaged(offset, "no source before it")),
                (Ok(line), Some(manifest)) => manifest.take(line).map_err(|why| damaged(offset, why))?,
                (Err(_), Some(_)) if KNOWN_KINDS.iter().any(|kind| text.starts_with(kind)) => {
                    return Err(damaged(offset, "a line does not have the fields of its kind"));
                }
                (Err(_), Some(manifest)) => manifest.unknown.push(text),
            }
            if let Some(manifest) = &mut manifest {
                manifest.lines += 1;
            }
            Ok(())
        })?;
        // A manifest is put in place with its first lines, so one without any has lost them.
        let mut manifest = manifest.ok_or_else(|| damaged(0, "it does not say what the source is"))?;
        manifest.good_len = good_len;
        Ok(manifest)
    }

    /// Takes what a line says.
    pub(crate) fn take(&mut self, line: Line) -> Result<(), &'static str> {
        match line {
            Line::Source { version: _, since: _, info } => self.info = info,
            Line::Generation { number, since, why } => {
                if number as usize != self.generations.len() {
                    return Err("a generation out of turn");
                }
                self.generations.push(Generation { why, since, ..Generation::default() });
            }
            Line::Chunks(more) => self.take_chunks(more)?,
            Line::State { time, more, cursor, adapted } => {
                more.map_or(Ok(()), |more| self.take_chunks(more))?;
                (self.cursor, self.adapted, self.state_time) = (cursor, adapted, Some(time));
            }
        }
        Ok(())
    }

    fn take_chunks(&mut self, more: MoreChunks) -> Result<(), &'static str> {
        let is_late = (more.generation as usize) + 1 < self.generations.len();
        let wanted = self.generations.get_mut(more.generation as usize).ok_or("no such generation")?;
        if wanted.len != more.offset {
            return Err("chunks out of turn");
        }
        if is_late {
            wanted.late_from.get_or_insert(more.offset);
        }
        for (hash, len) in more.chunks {
            let hash = ChunkHash::parse(&hash).ok_or("no hash of a chunk")?;
            wanted.chunks.push(ChunkRef { hash, len });
            wanted.len += u64::from(len);
        }
        Ok(())
    }

    /// Returns the lines that say the same in as few words as possible.
    pub(crate) fn to_lines(&self) -> String {
        let mut out = String::new();
        source_line(&self.info, &self.since).write(&mut out);
        for (number, generation) in (0..).zip(&self.generations) {
            let (since, why) = (generation.since.clone(), generation.why.clone());
            Line::Generation { number, since, why }.write(&mut out);
            let (in_time, _) = generation.split();
            if !in_time.is_empty() {
                Line::Chunks(MoreChunks::new(number, 0, in_time)).write(&mut out);
            }
        }
        // What came late is told by its place after the next generation.
        for (number, generation) in (0..).zip(&self.generations) {
            if let (_, late @ [_, ..]) = generation.split() {
                let offset = generation.late_from.unwrap_or_default();
                Line::Chunks(MoreChunks::new(number, offset, late)).write(&mut out);
            }
        }
        self.unknown.iter().for_each(|object| write_line(object, &mut out));
        if let Some(time) = self.state_time.clone() {
            let (cursor, adapted) = (self.cursor.clone(), self.adapted.clone());
            Line::State { time, more: None, cursor, adapted }.write(&mut out);
        }
        out
    }

    /// Returns how many lines say more than once what the manifest says.
    pub(crate) fn spare_lines(&self) -> usize {
        self.lines.saturating_sub(2 + 2 * self.generations.len() + self.unknown.len())
    }

    /// Returns the chunks of all generations.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &ChunkRef> {
        self.generations.iter().flat_map(|generation| &generation.chunks)
    }

    /// Returns the number of the generation that grows.
    #[must_use]
    pub fn generation_last(&self) -> Option<u32> {
        u32::try_from(self.generations.len()).ok()?.checked_sub(1)
    }
}

pub(crate) fn source_line(info: &SourceInfo, since: &Sighting) -> Line {
    Line::Source { version: VERSION, since: since.clone(), info: info.clone() }
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
    fn roles_are_written_back_as_they_were_read() {
        check("transcript", &Role::Transcript);
        check("sidecar", &Role::Sidecar);
        check("shared", &Role::Shared);
        for word in ["", "Transcript", "index of the future"] {
            check(word, &Role::Other(word.to_owned()));
        }
    }

    #[test]
    fn the_one_time_of_version_1_is_the_files_or_ours() {
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
        // Written anew, it says the same.
        let text = manifest.to_lines();
        assert!(text.starts_with(r#"{"source":{"version":2,"time":"","modified":"t0","role""#), "{text}");
        assert_eq!(found(&Manifest::parse(id, &path, text.as_bytes()).unwrap()), want);
    }
}
