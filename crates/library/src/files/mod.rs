//! Agents' own files, read in place: found, recognized by content, and run through their adapter.

mod bytes;
mod error;
mod events;
mod find;
mod group;
mod last_time;
mod subagents;
mod unrecognized;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use steno_adapters::{
    Adapter, Completeness, HEAD_BYTES_MAX, NoSession, Sink, SniffResult, Source, Surface, no_session, open,
    sniff,
};
use steno_capture::discovery::gemini_project_of;
use steno_disk::{Links, open_regular};
use steno_model::{Frame, Lane, Timestamp};

use bytes::PlainBytes;
use unrecognized::is_transcript;

pub use error::FileError;
pub use events::{Numbering, Origin, read_events, warn_about_unread};
pub use find::{Files, Tally};
pub(crate) use group::FileGroup;
pub use unrecognized::check_transcript;

/// How much of a file is read at a time.
const PIECE_BYTES: usize = 256 * 1024;
/// The longest record that is read separately.
const RECORD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// An open file whose beginning was read. It is opened only once.
pub struct AgentFile {
    path: PathBuf,
    bytes: PlainBytes,
    /// The beginning, which `bytes` no longer has.
    head: Vec<u8>,
    /// What it was recognized as; `None` also for a transcript.
    sniffed: Option<SniffResult>,
    /// The adapter that reads it.
    adapter: Option<Adapter>,
    /// The file's time, for records without a time.
    modified: Option<Timestamp>,
}

/// The result of reading a file.
pub struct FileReport {
    /// Its path.
    pub path: PathBuf,
    /// What it was recognized as.
    pub sniffed: SniffResult,
    /// The kinds of facts its channel carries.
    pub carries: &'static [&'static str],
    /// How much of it was understood.
    pub completeness: Completeness,
    /// Whether the file ends inside compressed data.
    pub is_cut: bool,
    /// Whether reading stopped early.
    pub is_enough: bool,
}

impl AgentFile {
    /// Opens a file and reads its beginning.
    ///
    /// # Errors
    /// If it cannot be read, or is a tar file.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::open_as(path, None)
    }

    /// Opens a file that may be a stored source; its runs have the same ids as in the store.
    ///
    /// # Errors
    /// If it cannot be read, or is a tar file.
    pub fn open_as(path: &Path, source: Option<&str>) -> Result<Self, FileError> {
        let failed = |error: io::Error| FileError::of("read", path, error);
        let file = open_file(path)?;
        let modified = file.metadata().map_err(failed)?.modified().ok();
        let modified = modified.and_then(|time| jiff::Timestamp::try_from(time).ok());
        let mut bytes = PlainBytes::of(file);
        let mut head = vec![0; HEAD_BYTES_MAX];
        bytes.fill(&mut head);
        if no_session(&head) == Some(NoSession::Archive) {
            return Err(FileError::NoSession { path: path.to_owned(), what: NoSession::Archive });
        }
        let is_ours = is_transcript(&head);
        let sniffed = if is_ours { None } else { sniff(&head) };
        if sniffed.is_none()
            && let Some(error) = bytes.end()
        {
            return Err(failed(error));
        }
        let adapter = sniffed.as_ref().and_then(|sniffed| open(sniffed, source_of(path, source)));
        let adapter = adapter.map(Adapter::read_once);
        let modified = modified.map(Timestamp::from_instant);
        Ok(Self { path: path.to_owned(), bytes, head, sniffed, adapter, modified })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what it was recognized as, even if no adapter reads it yet.
    #[must_use]
    pub fn sniffed(&self) -> Option<&SniffResult> {
        self.sniffed.as_ref()
    }

    /// Returns its surface, if an adapter reads it.
    #[must_use]
    pub fn surface(&self) -> Option<Surface> {
        self.sniffed.as_ref().filter(|_| self.adapter.is_some()).map(|sniffed| sniffed.surface)
    }

    /// Reads the file through its adapter; `None` when there is none.
    ///
    /// Events before a failure were passed on. Reading stops as soon as `is_enough` is true.
    ///
    /// # Errors
    /// If it cannot be read to its end.
    pub fn read<S: Sink>(
        mut self,
        sink: &mut S,
        is_enough: impl Fn(&S) -> bool,
    ) -> Result<Option<FileReport>, FileError> {
        let (Some(sniffed), Some(mut adapter)) = (self.sniffed, self.adapter) else { return Ok(None) };
        let mut piece = self.head;
        let (mut offset, mut enough, unpacked) = (0, false, self.bytes.packing());
        while !piece.is_empty() && !enough {
            let frame = Frame {
                lane: Lane::FromAgent,
                generation: 0,
                offset,
                unpacked,
                captured: self.modified.as_ref(),
                bytes: &piece,
            };
            adapter.feed(frame, sink);
            offset += piece.len() as u64;
            enough = is_enough(sink);
            piece.resize(PIECE_BYTES, 0);
            self.bytes.fill(&mut piece);
        }
        if !enough {
            adapter.finish(sink);
        }
        let is_cut = match self.bytes.end() {
            None => false,
            // Like a torn last line: the compression may still be running, or was killed.
            Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
            Some(error) => return Err(FileError::of("read", &self.path, error)),
        };
        let (carries, completeness) = (adapter.carries(), adapter.completeness().clone());
        Ok(Some(FileReport { path: self.path, sniffed, carries, completeness, is_cut, is_enough: enough }))
    }
}

/// Reads a range of a file as its agent wrote it; `None` if it is incomplete.
#[must_use]
pub fn read_range(path: &Path, offset: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = PlainBytes::of(open_file(path).ok()?);
    let mut piece = Vec::new();
    let mut before = offset;
    while before > 0 {
        piece.resize(usize::try_from(before).map_or(PIECE_BYTES, |before| before.min(PIECE_BYTES)), 0);
        let wanted = piece.len();
        bytes.fill(&mut piece);
        if piece.len() < wanted {
            return None;
        }
        before -= wanted as u64;
    }
    let length = usize::try_from(length).ok().filter(|length| *length <= RECORD_BYTES_MAX)?;
    piece.resize(length, 0);
    bytes.fill(&mut piece);
    (piece.len() == length).then_some(piece)
}

fn source_of(path: &Path, archived_as: Option<&str>) -> Source {
    // The whole path: streams of one session often have equal names, and run ids are derived from this.
    let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let named = Source::of_file(archived_as.unwrap_or(&whole.to_string_lossy()), path);
    // A path in the working directory does not name its directory.
    let directory = Source::of_file("", &whole).directory;
    Source { directory, working_dir: gemini_project_of(&whole), ..named }
}

/// Returns the name of a kind of agent's file.
#[must_use]
pub fn surface_name(surface: Surface) -> &'static str {
    match surface {
        Surface::ClaudeDisk => "a session file of Claude Code",
        Surface::ClaudeStream => "a stream of Claude Code",
        Surface::CodexRollout => "a rollout of Codex",
        Surface::CodexExec => "a stream of `codex exec`",
        Surface::CodexAppServer => "a stream of Codex's app-server",
        Surface::Acp => "a connection of an agent to its client (ACP)",
        Surface::Mcp => "a connection to an MCP server",
        Surface::GeminiChat => "a chat file of Gemini CLI",
        Surface::GeminiStream => "a stream of Gemini CLI",
        Surface::GeminiOutput => "the JSON output of Gemini CLI",
        Surface::CopilotEvents => "a session file of Copilot CLI",
        Surface::CopilotStream => "a stream of Copilot CLI",
        Surface::OpenCodeStream => "a stream of OpenCode",
        Surface::Http => "a recording of model calls over HTTP",
        Surface::Wrap => "the output of a command that `steno run` started",
    }
}

/// Opens a file for reading; links are followed.
fn open_file(path: &Path) -> Result<File, FileError> {
    open_regular(path, Links::Followed).map_err(|error| FileError::of("read", path, error))
}

#[cfg(test)]
mod tests {
    use steno_model::{Draft, RunId};

    use super::*;

    const LINE: &str = r#"{"type":"user","uuid":"u1","sessionId":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-06-08T08:14:42.123Z","message":{"role":"user","content":"Fix it."}}"#;

    #[test]
    fn file_is_opened_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, format!("{LINE}\n")).unwrap();
        let opened = AgentFile::open(&path).unwrap();
        // Another file is now at this path.
        std::fs::write(dir.path().join("t.jsonl"), "[]\n").unwrap();
        std::fs::rename(dir.path().join("t.jsonl"), &path).unwrap();
        assert_eq!(opened.surface(), Some(Surface::ClaudeDisk));
        let mut drafts = Vec::<(RunId, Draft)>::new();
        let reading = opened.read(&mut drafts, |_| false).unwrap().unwrap();
        assert_eq!((reading.completeness.records, reading.completeness.unreadable), (1, 0));
        assert!(!drafts.is_empty());
    }
}
