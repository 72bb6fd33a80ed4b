//! Paths below a store.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use steno_model::ThreadId;

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

    /// Takes a path that was put together from ids and constants.
    #[must_use]
    pub fn new(path: String) -> Self {
        Self(path.into())
    }

    /// Names something in this directory.
    #[must_use]
    pub fn below(&self, name: impl fmt::Display) -> Self {
        Self(if self.0.is_empty() { name.to_string() } else { format!("{self}/{name}") }.into())
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

    /// Names the file that keeps what stood here before it was derived anew for the `number`th time.
    #[must_use]
    pub fn superseded(&self, number: u32) -> Self {
        Self(format!("{self}.superseded-{number}").into())
    }

    /// Names the file that is whole and takes the place of this one next.
    #[must_use]
    pub fn next(&self) -> Self {
        Self(format!("{self}.next").into())
    }

    /// Names the file that is being written to take the place of this one.
    #[must_use]
    pub fn unfinished(&self) -> Self {
        Self(format!("{self}.unfinished").into())
    }

    /// Names a temporary file that is renamed to this one when it is whole; another one each time.
    #[must_use]
    pub fn temporary(&self) -> Self {
        // Threads have the same process id, and so may processes in two containers. Each state is keyed anew.
        let chance = RandomState::new().hash_one(&self.0);
        Self(format!("{self}{TEMPORARY}{}-{chance:016x}", std::process::id()).into())
    }

    /// Returns the path that this is a temporary file of; `None` when it is none.
    #[must_use]
    pub fn temporary_of(&self) -> Option<Self> {
        self.is_temporary().then(|| Self(self.0.split(TEMPORARY).next().unwrap_or_default().into()))
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
