//! Paths below a store.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use steno_model::ThreadId;

/// The part of a temporary name between the file's name and a unique suffix.
const TEMPORARY: &str = ".tmp-";

/// A path below the store, made of names that are valid on every file system.
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

    /// The notes of one thread's spine.
    #[must_use]
    pub fn spine_notes(thread: &ThreadId) -> Self {
        Self(format!("spine/{thread}/notes.jsonl").into())
    }

    /// The lock of one thread's spine.
    #[must_use]
    pub fn spine_lock(thread: &ThreadId) -> Self {
        Self(format!("locks/spine-{thread}.lock").into())
    }

    /// Makes a path of a file outside any store, for messages.
    #[must_use]
    pub fn outside(path: &std::path::Path) -> Self {
        Self(path.display().to_string().into())
    }

    /// Makes a path from ids and constants.
    #[must_use]
    pub fn new(path: String) -> Self {
        Self(path.into())
    }

    /// Returns the path of an entry of this directory.
    #[must_use]
    pub fn below(&self, name: impl fmt::Display) -> Self {
        Self(if self.0.is_empty() { name.to_string() } else { format!("{self}/{name}") }.into())
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the parent directory.
    #[must_use]
    pub fn dir(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or("", |(dir, _)| dir).into())
    }

    /// Returns the last part of the path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Returns the path for a copy of a torn tail of this file.
    ///
    /// Offset and hash make the name, so that a repeated recovery finds an existing copy.
    #[must_use]
    pub fn torn(&self, offset: u64, sha256: &str) -> Self {
        let short = sha256.get(..16).unwrap_or(sha256);
        Self(format!("{self}.torn-{offset}-{short}").into())
    }

    /// Returns the possible paths for the content of a file that was deleted while it was written; the first free one
    /// is used, so that no copy is ever overwritten.
    pub fn orphans(&self, epoch: steno_model::Epoch) -> impl Iterator<Item = Self> {
        let first = format!("{self}.orphan-{epoch}");
        let others = (2_u32..).map({
            let first = first.clone();
            move |number| Self(format!("{first}-{number}").into())
        });
        std::iter::once(Self(first.into())).chain(others)
    }

    /// Returns the path of the `number`th superseded version of this file.
    #[must_use]
    pub fn superseded(&self, number: u32) -> Self {
        Self(format!("{self}.superseded-{number}").into())
    }

    /// Returns the path of the complete file that replaces this one next.
    #[must_use]
    pub fn next(&self) -> Self {
        Self(format!("{self}.next").into())
    }

    /// Returns the path of the file that is being written to replace this one.
    #[must_use]
    pub fn unfinished(&self) -> Self {
        Self(format!("{self}.unfinished").into())
    }

    /// Returns a unique path of a temporary file, which is renamed to this one when it is complete.
    #[must_use]
    pub fn temporary(&self) -> Self {
        // Threads share a process id, and processes in two containers may too. Each `RandomState` has new keys.
        let chance = RandomState::new().hash_one(&self.0);
        Self(format!("{self}{TEMPORARY}{}-{chance:016x}", std::process::id()).into())
    }

    /// Returns the path that a temporary file belongs to; `None` when this is not a temporary file.
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
