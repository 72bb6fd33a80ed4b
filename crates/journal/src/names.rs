//! Names of files in a store: each is built and parsed here and nowhere else.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use steno_model::{RunId, ThreadId};

/// What stands between a file's name and what makes the name of its temporary file.
const TEMPORARY: &str = ".tmp-";

/// A file's or directory's path below the store, made of names that are safe on every file system.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorePath(Box<str>);

impl StorePath {
    /// The store's root.
    #[must_use]
    pub fn root() -> Self {
        Self("".into())
    }

    /// The file that names the store's format.
    #[must_use]
    pub fn format() -> Self {
        Self("format.json".into())
    }

    /// The directory of transcripts, with their seals and notes.
    #[must_use]
    pub fn transcripts() -> Self {
        Self("transcripts".into())
    }

    /// The directory of lock files, which are never deleted.
    #[must_use]
    pub fn locks() -> Self {
        Self("locks".into())
    }

    /// The directory of trace spines.
    #[must_use]
    pub fn spine() -> Self {
        Self("spine".into())
    }

    /// The directory of one thread's spine.
    #[must_use]
    pub fn spine_of(thread: &ThreadId) -> Self {
        Self(format!("spine/{thread}").into())
    }

    /// What happened to the record of one thread's spine.
    #[must_use]
    pub fn spine_notes(thread: &ThreadId) -> Self {
        Self(format!("spine/{thread}/notes.jsonl").into())
    }

    /// The lock of one thread's spine.
    #[must_use]
    pub fn spine_lock(thread: &ThreadId) -> Self {
        Self(format!("locks/spine-{thread}.lock").into())
    }

    /// Names a file outside any store, for messages.
    #[must_use]
    pub fn outside(path: &std::path::Path) -> Self {
        Self(path.display().to_string().into())
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directory that the path lies in.
    #[must_use]
    pub fn dir(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or("", |(dir, _)| dir).into())
    }

    /// Returns the last part of the path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Names the file that keeps a torn tail of this one.
    ///
    /// Place and hash make the name: keeping the same tail again, after a crash inside recovery, finds it kept.
    #[must_use]
    pub fn torn(&self, offset: u64, sha256: &str) -> Self {
        let short = sha256.get(..16).unwrap_or(sha256);
        Self(format!("{self}.torn-{offset}-{short}").into())
    }

    /// Names the files that can keep what was recorded into a file that was deleted under its writer; the first
    /// that is not there is taken, so that nothing kept is ever written over.
    pub fn orphans(&self, epoch: steno_model::Epoch) -> impl Iterator<Item = Self> {
        let first = format!("{self}.orphan-{epoch}");
        let others = (2_u32..).map({
            let first = first.clone();
            move |number| Self(format!("{first}-{number}").into())
        });
        std::iter::once(Self(first.into())).chain(others)
    }

    /// Names a temporary file that is renamed to this one when it is whole; another one each time.
    #[must_use]
    pub(crate) fn temporary(&self) -> Self {
        // Threads have the same process id, and so may processes in two containers. Each state is keyed anew.
        let chance = RandomState::new().hash_one(&self.0);
        Self(format!("{self}{TEMPORARY}{}-{chance:016x}", std::process::id()).into())
    }

    /// Tells whether this is the name of a temporary file.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.file_name().contains(TEMPORARY)
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The files that belong to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunFile {
    /// The canonical events.
    Transcript(RunId),
    /// Checkpoints that vouch for prefixes of the transcript.
    Seals(RunId),
    /// Recoveries, refusals, drops.
    Notes(RunId),
    /// The lock that its one writer holds.
    Lock(RunId),
}

impl RunFile {
    /// Builds the path.
    #[must_use]
    pub fn path(self) -> StorePath {
        StorePath(
            match self {
                Self::Transcript(run) => format!("transcripts/{run}.jsonl"),
                Self::Seals(run) => format!("transcripts/{run}.seals.jsonl"),
                Self::Notes(run) => format!("transcripts/{run}.notes.jsonl"),
                Self::Lock(run) => format!("locks/{run}.lock"),
            }
            .into(),
        )
    }

    /// Parses a path; `None` when it is no file of a run.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (dir, name) = path.rsplit_once('/')?;
        let (stem, kind) = name.split_once('.')?;
        let run = RunId::parse(stem).ok()?;
        let file = match (dir, kind) {
            ("transcripts", "jsonl") => Self::Transcript(run),
            ("transcripts", "seals.jsonl") => Self::Seals(run),
            ("transcripts", "notes.jsonl") => Self::Notes(run),
            ("locks", "lock") => Self::Lock(run),
            _ => return None,
        };
        // An upper-case UUID parses, but is not how we spell a file.
        (file.path().as_str() == path).then_some(file)
    }
}

/// The number of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentIndex(pub u32);

impl SegmentIndex {
    /// Returns the one that comes next.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
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
        StorePath(format!("{}/{self}", StorePath::spine_of(thread)).into())
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
    fn other_names_are_no_run_files() {
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
    fn temporary_files_stay_beside_what_they_become_and_no_two_have_a_name() {
        let path = RunFile::Transcript(run()).path();
        let names: std::collections::BTreeSet<_> = (0..1_000).map(|_| path.temporary()).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| name.is_temporary() && name.dir() == path.dir()));
        assert!(names.iter().all(|name| RunFile::parse(name.as_str()).is_none()));
        assert!(!path.is_temporary());
    }

    #[test]
    fn kept_files_stay_beside_what_they_are_kept_from() {
        let path = RunFile::Transcript(run()).path();
        assert_eq!(path.torn(7, "0123456789abcdef0123").dir(), StorePath::transcripts());
        assert_eq!(
            path.torn(7, "0123456789abcdef0123").file_name(),
            "550e8400-e29b-41d4-a716-446655440000.jsonl.torn-7-0123456789abcdef"
        );
        assert_eq!(StorePath::transcripts().dir(), StorePath::root());
    }
}
