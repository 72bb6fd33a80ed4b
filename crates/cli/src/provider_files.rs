//! Agents' own files, read where they lie: found, recognised by content, and run through their adapter.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use steno_adapters::{Completeness, HEAD_BYTES_MAX, Sink, Sniffed, Source, Surface, open, sniff};
use steno_model::{Envelope, Frame, Lane, Timestamp};

use crate::failure::Failure;

/// How deep below a given directory files are looked for.
const DEPTH_MAX: usize = 32;

/// How much of a file is read at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Returns the files that arguments name: themselves, or below a directory all that may be an agent's.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        let about = std::fs::metadata(path).map_err(|error| cannot("read", path, &error))?;
        if about.is_dir() {
            walk(path, DEPTH_MAX, &mut found).map_err(|error| cannot("list", path, &error))?;
        } else {
            found.push(path.clone());
        }
    }
    // In the same order everywhere, a session's file before those below its directory, and each file once, however it is
    // spelled.
    found.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    let mut seen = HashSet::new();
    found.retain(|path| seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    Ok(found)
}

fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        // Links are not followed: they lead out of what was named, or round in circles.
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            if let Err(error) = walk(&entry.path(), depth - 1, found) {
                // One directory that cannot be read takes nothing from the others.
                tracing::warn!("cannot list `{}`: {error}", entry.path().display());
            }
        } else if kind.is_file() && is_candidate(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".jsonl", ".ndjson", ".jsonl.zst"].iter().any(|ending| name.ends_with(ending))
}

/// Tells whether a path is no transcript of ours: a directory, or a file whose first line is no event.
pub fn is_foreign(path: &Path) -> Result<bool, Failure> {
    if path.is_dir() {
        return Ok(true);
    }
    let head = head_of(path)?;
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // What nobody else's is, is ours to judge: a damaged transcript is to be told as one.
    Ok(Envelope::parse(first).is_err() && sniff(&head).is_some())
}

/// Returns the beginning of a file.
fn head_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| cannot("read", path, &error);
    let file = open_regular(path)?;
    let mut bytes = plain_bytes(path, file).map_err(failed)?;
    let mut head = vec![0; HEAD_BYTES_MAX];
    let read = fill(&mut *bytes, &mut head).map_err(failed)?;
    head.truncate(read);
    Ok(head)
}

/// Returns whose file it is, if an adapter can read it.
pub fn surface_of(path: &Path) -> Result<Option<Surface>, Failure> {
    let sniffed = sniff(&head_of(path)?);
    Ok(sniffed.filter(|sniffed| open(sniffed, source_of(path)).is_some()).map(|sniffed| sniffed.surface))
}

/// What reading a file has shown of it.
pub struct Reading {
    pub sniffed: Sniffed,
    /// What its channel can show at all.
    pub carries: &'static [&'static str],
    pub completeness: Completeness,
}

/// Reads a file through its adapter; `None` when no agent that we know wrote it.
pub fn read(path: &Path, sink: &mut dyn Sink) -> Result<Option<Reading>, Failure> {
    let failed = |error: io::Error| cannot("read", path, &error);
    let file = open_regular(path)?;
    let about = file.metadata().map_err(failed)?;
    // Where records have no time of their own, the file's is the best that is known.
    let modified = about.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    let modified = modified.map(Timestamp::from_instant);
    let mut bytes = plain_bytes(path, file).map_err(failed)?;
    let mut piece = vec![0; HEAD_BYTES_MAX];
    let read = fill(&mut *bytes, &mut piece).map_err(failed)?;
    let Some(sniffed) = sniff(&piece[..read]) else { return Ok(None) };
    let Some(adapter) = open(&sniffed, source_of(path)) else { return Ok(None) };
    let mut adapter = adapter.read_once();
    let (mut offset, mut len) = (0, read);
    while len > 0 {
        let frame = Frame {
            lane: Lane::FromAgent,
            generation: 0,
            offset,
            captured: modified.as_ref(),
            bytes: &piece[..len],
        };
        adapter.feed(frame, sink);
        offset += len as u64;
        len = fill(&mut *bytes, &mut piece[..PIECE_BYTES]).map_err(failed)?;
    }
    adapter.finish(sink);
    let (carries, completeness) = (adapter.carries(), adapter.completeness().clone());
    Ok(Some(Reading { sniffed, carries, completeness }))
}

fn source_of(path: &Path) -> Source {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // By its whole path: streams of one session are often called alike, and their runs are made from this.
    let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Source { id: whole.to_string_lossy().as_ref().into(), file_name: Some(name) }
}

/// Opens the bytes as the agent wrote them, also where it has compressed them since.
fn plain_bytes(path: &Path, file: File) -> io::Result<Box<dyn Read>> {
    if path.extension().is_some_and(|ending| ending == "zst") {
        return Ok(Box::new(zstd::stream::read::Decoder::new(file)?));
    }
    Ok(Box::new(file))
}

/// Reads until the buffer is full or the file ends.
fn fill(bytes: &mut dyn Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match bytes.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Opens a file to read. A pipe in its place would make us wait for ever, so nothing else is opened.
fn open_regular(path: &Path) -> Result<File, Failure> {
    let failed = |error: io::Error| cannot("read", path, &error);
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Failure::could_not(format!("`{}` is no regular file", path.display())));
    }
    File::open(path).map_err(failed)
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::could_not(format!("cannot {what} `{}`: {error}", path.display()))
}
