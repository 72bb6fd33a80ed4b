//! Describes files that no adapter reads: transcripts, also damaged ones, and unsupported formats.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use steno_adapters::no_session;
use steno_model::Envelope;

use super::{FileError, open_file};

/// How much of a file is searched for a transcript line.
const SEARCHED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The first bytes of gzip and UTF-16 files.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const UTF16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// Tells whether a file begins with a transcript line.
pub fn is_transcript(head: &[u8]) -> bool {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Envelope::parse(first).is_ok()
}

/// Fails unless a line of the file is a transcript line, or begins like one: then it is a transcript that may be damaged. An
/// empty file is a transcript without events.
///
/// # Errors
/// What the file is instead, or an error of the system.
pub fn check_transcript(path: &Path) -> Result<(), FileError> {
    let failed = |error| FileError::of("read", path, error);
    let mut lines = BufReader::new(open_file(path)?.take(SEARCHED_BYTES_MAX));
    let mut line = Vec::new();
    let mut head = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        if is_transcript_line(line.trim_ascii_end()) {
            return Ok(());
        }
        if let Some(what) = no_session(&line).filter(|_| head.is_empty()) {
            return Err(FileError::NoSession { path: path.to_owned(), what });
        }
        if head.is_empty() {
            head.extend_from_slice(&line[..line.len().min(GZIP_MAGIC.len())]);
        }
    }
    if head.is_empty() {
        return Ok(());
    }
    let path = path.to_owned();
    Err(match &head[..] {
        head if head == GZIP_MAGIC => FileError::Gzip { path },
        head if UTF16_MARKS.iter().any(|mark| head == mark) => FileError::Utf16 { path },
        _ => FileError::Unknown { path: path.display().to_string() },
    })
}

/// Tells whether a line is an event, or begins like one.
fn is_transcript_line(line: &[u8]) -> bool {
    let begins = line.starts_with(b"{\"seq\":");
    let names_run = || line.windows(10).take(64).any(|part| part == b",\"run_id\":");
    Envelope::parse(line).is_ok() || (begins && names_run())
}
