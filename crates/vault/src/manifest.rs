//! The manifest of a source: what it is, which chunks each of its generations has, and how far it was read and
//! understood. A file of JSON lines that only grows; each line carries its checksum.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use steno_disk::{Disk, StorePath};

use crate::error::Error;
use crate::ids::{ChunkHash, SourceId};
use crate::index::read_whole;
use crate::names::VaultFile;

/// The version of manifests that we write.
const VERSION: u32 = 1;
/// What the checksum takes at the end of a line: `,"crc":"` and eight digits and `"}`.
const SUM_LEN: usize = 18;

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// The provider's name, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider: Option<String>,
    /// What the file is to its session: `transcript`, `sidecar` or `shared`.
    pub role: String,
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
    pub since: String,
    /// Its bytes as far as they are cut.
    pub chunks: Vec<ChunkRef>,
    /// How many bytes that is.
    pub len: u64,
}

/// What the manifest of a source says.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The source.
    pub id: SourceId,
    /// What it is.
    pub info: SourceInfo,
    /// When the source was first seen.
    pub since: String,
    /// Its generations, oldest first.
    pub generations: Vec<Generation>,
    /// How far it was read, in the words of whoever reads it.
    pub cursor: Option<Box<RawValue>>,
    /// How far it was made into events.
    pub adapted: Option<Adapted>,
    /// Lines of kinds that we do not know, kept as they are.
    pub(crate) unknown: Vec<String>,
    /// How many lines the file has.
    pub(crate) lines: usize,
    /// How long the lines that count are.
    pub(crate) good_len: u64,
    /// Whether whoever wrote it last came to its end.
    pub(crate) is_closed: bool,
}

/// A line of a manifest.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// What the source is; the last one counts.
    Source {
        version: u32,
        time: String,
        #[serde(flatten)]
        info: SourceInfo,
    },
    /// A generation begins.
    Generation { number: u32, time: String, why: String },
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
    /// Writes the line with its checksum and newline.
    pub(crate) fn write(&self, out: &mut String) {
        let text = serde_json::to_string(self).expect("our own lines are strings and numbers");
        write_checked(&text, out);
    }
}

/// Writes an object as a line with its checksum.
fn write_checked(object: &str, out: &mut String) {
    let text = object.strip_suffix('}').unwrap_or(object);
    let sum = crc32fast::hash(text.as_bytes());
    out.push_str(&format!("{text},\"crc\":\"{sum:08x}\"}}\n"));
}

/// Takes the checksum off a line; `None` when it does not match.
fn checked(line: &str) -> Option<String> {
    let (text, end) = line.split_at_checked(line.len().checked_sub(SUM_LEN)?)?;
    let sum = end.strip_prefix(",\"crc\":\"")?.strip_suffix("\"}")?;
    let matches = u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(text.as_bytes());
    matches.then(|| format!("{text}}}"))
}

impl Manifest {
    /// Begins a manifest that has no line yet.
    pub(crate) fn new(id: SourceId, info: SourceInfo, since: String) -> Self {
        Self {
            id,
            info,
            since,
            generations: Vec::new(),
            cursor: None,
            adapted: None,
            unknown: Vec::new(),
            lines: 0,
            good_len: 0,
            is_closed: false,
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
            Some(bytes) => Self::parse(id, &path, &bytes),
            None => Ok(None),
        }
    }

    fn parse(id: SourceId, path: &StorePath, bytes: &[u8]) -> Result<Option<Self>, Error> {
        let mut manifest: Option<Self> = None;
        let mut offset = 0_u64;
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            let damaged = |why| Error::Damaged { path: path.clone(), offset, why };
            let text = line.strip_suffix(b"\n").and_then(|line| str::from_utf8(line).ok()).and_then(checked);
            let Some(text) = text else {
                // What a power cut left of the last lines was never relied on.
                let is_end =
                    lines.peek().is_none() || bytes[offset_in(offset)..].iter().all(|byte| *byte == 0);
                if is_end {
                    break;
                }
                return Err(damaged("a line is not what was written"));
            };
            match serde_json::from_str::<Line>(&text) {
                Ok(Line::Source { version, .. }) if version > VERSION => {
                    let (found, known) = (version.into(), VERSION.into());
                    return Err(Error::TooNew { path: path.clone(), found, known });
                }
                Ok(Line::Source { time, info, .. }) => match &mut manifest {
                    Some(manifest) => manifest.info = info,
                    None => manifest = Some(Self::new(id, info, time)),
                },
                Ok(line) => {
                    let manifest = manifest.as_mut().ok_or_else(|| damaged("no source before it"))?;
                    manifest.take(line).map_err(damaged)?;
                }
                Err(_) => {
                    let manifest = manifest.as_mut().ok_or_else(|| damaged("no source before it"))?;
                    manifest.unknown.push(text);
                }
            }
            offset += line.len() as u64;
            if let Some(manifest) = &mut manifest {
                manifest.lines += 1;
                manifest.good_len = offset;
            }
        }
        Ok(manifest)
    }

    /// Takes what a line says.
    pub(crate) fn take(&mut self, line: Line) -> Result<(), &'static str> {
        self.is_closed = false;
        match line {
            Line::Source { info, .. } => self.info = info,
            Line::Generation { number, time, why } => {
                if number as usize != self.generations.len() {
                    return Err("a generation out of turn");
                }
                self.generations.push(Generation { why, since: time, ..Generation::default() });
            }
            Line::Chunks(more) => self.take_chunks(more)?,
            Line::State { cursor, adapted, more, .. } => {
                more.map_or(Ok(()), |more| self.take_chunks(more))?;
                (self.cursor, self.adapted) = (cursor, adapted);
                self.is_closed = true;
            }
        }
        Ok(())
    }

    fn take_chunks(&mut self, more: MoreChunks) -> Result<(), &'static str> {
        let wanted = self.generations.get_mut(more.generation as usize).ok_or("no such generation")?;
        if wanted.len != more.offset {
            return Err("chunks out of turn");
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
        let (time, info) = (self.since.clone(), self.info.clone());
        Line::Source { version: VERSION, time, info }.write(&mut out);
        for (number, generation) in (0..).zip(&self.generations) {
            let (time, why) = (generation.since.clone(), generation.why.clone());
            Line::Generation { number, time, why }.write(&mut out);
            if !generation.chunks.is_empty() {
                Line::Chunks(MoreChunks::new(number, 0, &generation.chunks)).write(&mut out);
            }
        }
        self.unknown.iter().for_each(|object| write_checked(object, &mut out));
        if self.cursor.is_some() || self.adapted.is_some() {
            let time = self.generations.last().map_or_else(|| self.since.clone(), |last| last.since.clone());
            let (cursor, adapted) = (self.cursor.clone(), self.adapted.clone());
            Line::State { time, more: None, cursor, adapted }.write(&mut out);
        }
        out
    }

    /// Returns the number of the generation that grows.
    #[must_use]
    pub fn generation_last(&self) -> Option<u32> {
        u32::try_from(self.generations.len()).ok()?.checked_sub(1)
    }
}

pub(crate) fn source_line(info: &SourceInfo, time: &str) -> Line {
    Line::Source { version: VERSION, time: time.to_owned(), info: info.clone() }
}

fn offset_in(offset: u64) -> usize {
    usize::try_from(offset).expect("the file is in memory")
}
