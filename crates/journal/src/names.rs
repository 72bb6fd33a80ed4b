//! Names of files in a store. All of them are built and parsed here.

use std::fmt;

use steno_disk::StorePath;
use steno_model::{RunId, ThreadId};

/// The files that belong to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunFile {
    /// The canonical events.
    Transcript(RunId),
    /// Checkpoints that certify prefixes of the transcript.
    Seals(RunId),
    /// Recoveries, refusals, drops.
    Notes(RunId),
    /// The lock of its writer.
    Lock(RunId),
}

impl RunFile {
    /// Builds the path.
    #[must_use]
    pub fn path(self) -> StorePath {
        StorePath::new(match self {
            Self::Transcript(run) => format!("transcripts/{run}.jsonl"),
            Self::Seals(run) => format!("transcripts/{run}.seals.jsonl"),
            Self::Notes(run) => format!("transcripts/{run}.notes.jsonl"),
            Self::Lock(run) => format!("locks/{run}.lock"),
        })
    }

    /// Parses a path; `None` when it is not a file of a run.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (dir, name) = path.rsplit_once('/')?;
        match dir {
            "transcripts" => Self::in_transcripts(name),
            "locks" => Self::in_locks(name),
            _ => None,
        }
    }

    /// Parses a name in the directory of transcripts.
    pub(crate) fn in_transcripts(name: &str) -> Option<Self> {
        let (stem, kind) = name.split_once('.')?;
        match kind {
            "jsonl" => run_of(stem).map(Self::Transcript),
            "seals.jsonl" => run_of(stem).map(Self::Seals),
            "notes.jsonl" => run_of(stem).map(Self::Notes),
            _ => None,
        }
    }

    /// Parses a name in the directory of locks.
    pub(crate) fn in_locks(name: &str) -> Option<Self> {
        run_of(name.strip_suffix(".lock")?).map(Self::Lock)
    }
}

/// Parses a run in a file name. An id in upper case is the same id, but our names are in lower case.
fn run_of(stem: &str) -> Option<RunId> {
    let is_ours = !stem.bytes().any(|byte| byte.is_ascii_uppercase());
    is_ours.then(|| RunId::parse(stem).ok()).flatten()
}

/// The number of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentIndex(pub u32);

impl SegmentIndex {
    /// Returns the next index.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The files of one segment of a spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentName {
    /// `segment-NNN.jsonl`
    Records(SegmentIndex),
    /// `segment-NNN.meta.json`
    Meta(SegmentIndex),
}

impl SegmentName {
    /// Builds the path below a thread's directory.
    #[must_use]
    pub fn path(self, thread: &ThreadId) -> StorePath {
        StorePath::spine_of(thread).below(self)
    }

    /// Parses a file's name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("segment-")?;
        let (digits, kind) = rest.split_once('.')?;
        let index = SegmentIndex(digits.parse().ok()?);
        let parsed = match kind {
            "jsonl" => Self::Records(index),
            "meta.json" => Self::Meta(index),
            _ => return None,
        };
        (parsed.to_string() == name).then_some(parsed)
    }
}

/// The kind of an artifact's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArtifactFile {
    /// `git_diff-<sha256>.patch`
    GitDiff,
    /// `shell_snapshot-<sha256>.sh`
    ShellSnapshot,
}

impl ArtifactFile {
    /// Returns the text before and after the hash.
    fn around(self) -> (&'static str, &'static str) {
        match self {
            Self::GitDiff => ("git_diff-", ".patch"),
            Self::ShellSnapshot => ("shell_snapshot-", ".sh"),
        }
    }
}

/// The name of an artifact's file: its kind and the SHA-256 of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactName {
    pub(crate) what: ArtifactFile,
    pub(crate) sha256: String,
}

impl fmt::Display for ArtifactName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, behind) = self.what.around();
        write!(out, "{before}{}{behind}", self.sha256)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Records(index) => write!(out, "segment-{:03}.jsonl", index.0),
            Self::Meta(index) => write!(out, "segment-{:03}.meta.json", index.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap()
    }

    #[test]
    fn run_files_round_trip() {
        for file in
            [RunFile::Transcript(run()), RunFile::Seals(run()), RunFile::Notes(run()), RunFile::Lock(run())]
        {
            assert_eq!(RunFile::parse(file.path().as_str()), Some(file));
        }
    }

    #[test]
    fn other_names_are_not_run_files() {
        let path = RunFile::Transcript(run()).path();
        for name in [
            path.as_str().to_uppercase(),
            path.as_str().replace("jsonl", "json"),
            path.as_str().replace("550e", "550E"),
            path.torn(7, "0123456789abcdef0123").to_string(),
            path.orphans(steno_model::Epoch(2)).nth(3).unwrap().to_string(),
            "transcripts/x.jsonl".into(),
            path.file_name().into(),
        ] {
            assert_eq!(RunFile::parse(&name), None, "{name}");
        }
    }

    #[test]
    fn segment_names_round_trip() {
        for index in [0, 7, 999, 1000, 123_456] {
            for name in [SegmentName::Records(SegmentIndex(index)), SegmentName::Meta(SegmentIndex(index))] {
                assert_eq!(SegmentName::parse(&name.to_string()), Some(name));
            }
        }
        assert_eq!(SegmentName::Records(SegmentIndex(0)).to_string(), "segment-000.jsonl");
        for bad in
            ["segment-1.jsonl", "segment-0001.jsonl", "segment-000.jsonl.torn-1-ab", "segment--01.jsonl"]
        {
            assert_eq!(SegmentName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn temporary_names_are_unique_and_in_the_same_directory() {
        let path = RunFile::Transcript(run()).path();
        let names: std::collections::BTreeSet<_> = (0..1_000).map(|_| path.temporary()).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| name.is_temporary() && name.dir() == path.dir()));
        assert!(names.iter().all(|name| RunFile::parse(name.as_str()).is_none()));
        assert!(!path.is_temporary());
    }

    #[test]
    fn torn_copies_are_in_the_same_directory() {
        let path = RunFile::Transcript(run()).path();
        assert_eq!(path.torn(7, "0123456789abcdef0123").dir(), StorePath::transcripts());
        assert_eq!(
            path.torn(7, "0123456789abcdef0123").file_name(),
            "550e8400-e29b-41d4-a716-446655440000.jsonl.torn-7-0123456789abcdef"
        );
        assert_eq!(StorePath::transcripts().dir(), StorePath::root());
    }
}
