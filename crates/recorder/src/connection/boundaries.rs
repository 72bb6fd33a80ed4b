//! Looks up what compactions changed in the session files of their threads. The messages do not have the histories.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use steno_adapters::codex::spine::CompactionNotice;
use steno_disk::{Links, open_regular};
use steno_model::json::RawJson;
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{SpineType, ThreadId};

use crate::spines::{RolloutDirs, SessionFileFold, read_line};

/// How long to wait for the agent to write what it has announced. Only the record waits.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(25);
/// How many boundaries of a file are kept that no compaction has asked for.
const UNCLAIMED_MAX: usize = 16;

/// The compactions of a connection so far.
#[derive(Default)]
pub(super) struct Boundaries {
    /// How many there were in each turn.
    counts: HashMap<(ThreadId, String), usize>,
    /// Where the session files of the connection are.
    dirs: RolloutDirs,
    files: HashMap<PathBuf, SessionFileReader>,
}

impl Boundaries {
    /// Returns the boundary of a compaction, once the session file of its thread has it.
    pub(super) fn find(&mut self, compacted: &CompactionNotice) -> Option<RawJson> {
        let nth = self.counts.entry((compacted.thread.clone(), compacted.turn.clone())).or_default();
        *nth += 1;
        let nth = *nth;
        if let Some(dir) = compacted.path.as_ref().and_then(|path| Path::new(path).parent())
            && !self.dirs.0.iter().any(|known| known == dir)
        {
            self.dirs.0.push(dir.to_owned());
        }
        let path = match &compacted.path {
            Some(path) => PathBuf::from(path),
            None => self.dirs.find(compacted.thread.as_str())?,
        };
        let file = self.files.entry(path.clone()).or_insert_with(|| SessionFileReader::new(path));
        let begun = Instant::now();
        loop {
            // A file that cannot be read now may be there at the next look.
            if let Ok(Some(boundary)) = file.find(&compacted.turn, nth, &mut self.dirs) {
                return Some(boundary);
            }
            if begun.elapsed() > PATIENCE {
                return None;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// Reads a session file as it grows, each byte once.
struct SessionFileReader {
    path: PathBuf,
    fold: SessionFileFold,
    /// Where the first line begins that was not complete at the last look.
    offset: u64,
    /// How many boundaries there were in each turn.
    counts: HashMap<String, usize>,
    /// Boundaries that no compaction has asked for: the turn, and which of the turn's.
    unclaimed: VecDeque<(String, usize, RawJson)>,
    /// How many bytes were read, over all looks.
    bytes_read: u64,
}

#[derive(Deserialize)]
struct BoundaryTurn {
    turn_id: String,
}

impl SessionFileReader {
    fn new(path: PathBuf) -> Self {
        Self {
            fold: SessionFileFold::new(&path),
            path,
            offset: 0,
            counts: HashMap::new(),
            unclaimed: VecDeque::new(),
            bytes_read: 0,
        }
    }

    /// Returns the nth boundary of a turn. Reads only lines that were completed since the last look, and stops at the
    /// boundary.
    fn find(&mut self, turn: &str, nth: usize, bases: &mut RolloutDirs) -> io::Result<Option<RawJson>> {
        if let Some(boundary) = self.take(turn, nth) {
            return Ok(Some(boundary));
        }
        let mut file = open_regular(&self.path, Links::Refused)?;
        if file.metadata()?.len() < self.offset {
            // It was cut, and has other lines now.
            *self = Self { bytes_read: self.bytes_read, ..Self::new(self.path.clone()) };
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut file = BufReader::new(CountingReader { file, bytes_read: 0 });
        let boundary = self.read_to(turn, nth, &mut file, bases);
        self.bytes_read += file.get_ref().bytes_read;
        boundary
    }

    fn read_to(
        &mut self,
        turn: &str,
        nth: usize,
        file: &mut dyn BufRead,
        bases: &mut RolloutDirs,
    ) -> io::Result<Option<RawJson>> {
        let mut line = Vec::new();
        while let Some(read) = read_line(file, &mut line)? {
            let offset = self.offset;
            self.offset += read;
            if read <= LINE_BYTES_MAX as u64 && !line.trim_ascii().is_empty() {
                self.line(offset, &line, bases);
                if let Some(boundary) = self.take(turn, nth) {
                    return Ok(Some(boundary));
                }
            }
            self.unclaimed.drain(..self.unclaimed.len().saturating_sub(UNCLAIMED_MAX));
            line.clear();
        }
        Ok(None)
    }

    fn line(&mut self, offset: u64, line: &[u8], bases: &mut RolloutDirs) {
        let Some((_, made)) = self.fold.line(offset, line, bases) else { return };
        for made in made.into_iter().filter(|made| made.record_type == SpineType::CompactionBoundary) {
            let Ok(BoundaryTurn { turn_id }) = made.payload.read() else { continue };
            let nth = self.counts.entry(turn_id.clone()).or_default();
            *nth += 1;
            self.unclaimed.push_back((turn_id, *nth, made.payload));
        }
    }

    /// Takes the nth boundary of a turn, if it was read.
    fn take(&mut self, turn: &str, nth: usize) -> Option<RawJson> {
        let at = self.unclaimed.iter().position(|(of, number, _)| of == turn && *number == nth);
        let boundary = at.and_then(|at| self.unclaimed.remove(at));
        boundary.map(|(_, _, payload)| payload)
    }
}

/// Counts the bytes that are read from a file.
struct CountingReader<R> {
    file: R,
    bytes_read: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.bytes_read += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const META: &str =
        r#"{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t1"}}"#;

    fn compacted(turn: &str, message: &str) -> String {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"task_started","turn_id":"{turn}"}}}}
{{"type":"compacted","payload":{{"message":"{message}","replacement_history":[]}}}}
"#
        )
    }

    #[test]
    fn each_look_reads_only_what_was_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollout-x-t1.jsonl");
        let filler = format!(r#"{{"type":"response_item","payload":{{"text":"{}"}}}}"#, "x".repeat(100_000));
        let mut file = std::fs::File::create(&path).unwrap();
        writeln!(file, "{META}").unwrap();
        for _ in 0..20 {
            writeln!(file, "{filler}").unwrap();
        }
        let mut reader = SessionFileReader::new(path.clone());
        let look =
            |reader: &mut SessionFileReader| reader.find("u1", 1, &mut RolloutDirs::default()).unwrap();
        assert_eq!(look(&mut reader), None);
        let len = std::fs::metadata(&path).unwrap().len();
        assert_eq!((reader.bytes_read, reader.offset), (len, len));
        // Two seconds of looks at a file that does not grow.
        for _ in 0..80 {
            assert_eq!(look(&mut reader), None);
        }
        assert_eq!(reader.bytes_read, len);
        let more = compacted("u1", "one");
        let (half, rest) = more.as_bytes().split_at(more.len() - 10);
        file.write_all(half).unwrap();
        assert_eq!(look(&mut reader), None);
        file.write_all(rest).unwrap();
        let boundary = look(&mut reader).unwrap();
        assert!(boundary.as_str().contains(r#""summary_message":"one""#), "{boundary:?}");
        let whole = std::fs::metadata(&path).unwrap().len();
        assert_eq!(reader.offset, whole);
        assert!(reader.bytes_read < whole + more.len() as u64, "{} of {whole}", reader.bytes_read);
        assert_eq!(look(&mut reader), None, "each is given out once");
    }

    #[test]
    fn boundaries_are_found_by_turn_and_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollout-x-t1.jsonl");
        let text = [META, "\n", &compacted("u1", "a"), &compacted("u2", "b"), &compacted("u1", "c")].concat();
        std::fs::write(&path, text).unwrap();
        let mut boundaries = Boundaries::default();
        let mut find = |turn: &str| {
            let thread = ThreadId::parse("t1").unwrap();
            let path = Some(path.display().to_string());
            let found = boundaries.find(&CompactionNotice { thread, turn: turn.to_owned(), path }).unwrap();
            found.as_str().split(r#""summary_message":""#).nth(1).unwrap()[..1].to_owned()
        };
        assert_eq!(["u1", "u1", "u2"].map(&mut find), ["a", "c", "b"]);
    }

    #[test]
    fn shortened_file_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollout-x-t1.jsonl");
        let mut dirs = RolloutDirs::default();
        std::fs::write(&path, [META, "\n", &compacted("u1", "first one")].concat()).unwrap();
        let mut reader = SessionFileReader::new(path.clone());
        assert_eq!(reader.find("u9", 1, &mut dirs).unwrap(), None);
        std::fs::write(&path, [META, "\n", &compacted("u1", "x")].concat()).unwrap();
        let found = reader.find("u1", 1, &mut dirs).unwrap();
        // The boundary of the first file was read, and is the first of its turn.
        assert!(found.unwrap().as_str().contains(r#""summary_message":"first one""#));
        let found = reader.find("u2", 1, &mut dirs).unwrap();
        assert_eq!((found, reader.counts["u1"]), (None, 1), "all is counted from the start");
        assert!(reader.take("u1", 1).unwrap().as_str().contains(r#""summary_message":"x""#));
    }

    #[test]
    fn number_of_unclaimed_boundaries_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollout-x-t1.jsonl");
        let turns: Vec<String> = (0..40).map(|turn| compacted(&format!("u{turn}"), "m")).collect();
        std::fs::write(&path, [META, "\n", &turns.concat()].concat()).unwrap();
        let mut reader = SessionFileReader::new(path);
        assert_eq!(reader.find("none", 1, &mut RolloutDirs::default()).unwrap(), None);
        assert_eq!(reader.unclaimed.len(), UNCLAIMED_MAX);
        assert!(reader.take("u39", 1).is_some() && reader.take("u0", 1).is_none());
    }
}
