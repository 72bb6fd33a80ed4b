//! Runs sources through adapters: session files, streams, and both directions of a control session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use steno_adapters::{Adapter, AdapterEntry, Completeness, Sink, Source, claude};
use steno_model::{Draft, EntryType, Frame, Lane, RunId, Seq, Timestamp};
use steno_testkit::places;

/// The record types that no adapter knows, by the file name of the sample. Types of a new version appear here first.
const UNKNOWN: [(&str, &[&str]); 0] = [];

/// The output of an adapter for a source.
#[derive(Default)]
pub(crate) struct Reading {
    /// The events as lines.
    pub(crate) lines: Vec<String>,
    /// The same as values; null for an event with a lone surrogate, which `Value` refuses.
    pub(crate) events: Vec<Value>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) completeness: Completeness,
}

/// The fields of an entry that tests compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) run: RunId,
    pub(crate) kind: EntryType,
    pub(crate) source: String,
    pub(crate) subtype: Option<String>,
    pub(crate) is_unreadable: bool,
}

/// A piece of a source.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) lane: Lane,
    pub(crate) captured: Option<Timestamp>,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Default)]
struct Collect {
    seqs: BTreeMap<RunId, Seq>,
    lines: Vec<String>,
    entries: Vec<Entry>,
}

impl Collect {
    fn into_reading(self, adapter: &Adapter) -> Reading {
        let events = self.lines.iter().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        let completeness = adapter.completeness().clone();
        Reading { lines: self.lines, events, entries: self.entries, completeness }
    }
}

impl Sink for Collect {
    fn draft(&mut self, run: RunId, draft: Draft) {
        let seq = Seq::after(self.seqs.get(&run).copied());
        self.seqs.insert(run, seq);
        let now = || Timestamp::parse("1999-01-01T00:00:00Z").unwrap();
        let mut line = Vec::new();
        draft.encode(run, now).write_line(seq, &mut line);
        self.lines.push(String::from_utf8(line).unwrap());
    }

    fn wants_entries(&self) -> bool {
        true
    }

    fn entry(&mut self, entry: AdapterEntry<'_>) {
        self.entries.push(Entry {
            run: entry.run,
            kind: entry.entry_type,
            source: entry.source.to_json().to_text().into_owned(),
            subtype: entry.subtype.map(str::to_owned),
            is_unreadable: entry.unreadable.is_some(),
        });
    }
}

/// Feeds an adapter piece by piece and finishes it.
pub(crate) fn read(mut adapter: Adapter, pieces: &[Piece]) -> Reading {
    let mut sink = Collect::default();
    feed(&mut adapter, pieces, &mut sink);
    adapter.finish(&mut sink);
    sink.into_reading(&adapter)
}

/// Feeds an adapter piece by piece and pauses it, which reads a last line without a newline.
pub(crate) fn read_paused(mut adapter: Adapter, pieces: &[Piece]) -> Reading {
    let mut sink = Collect::default();
    feed(&mut adapter, pieces, &mut sink);
    adapter.pause(&mut sink);
    sink.into_reading(&adapter)
}

/// Feeds an adapter piece by piece and does not finish it.
pub(crate) fn read_unfinished(mut adapter: Adapter, pieces: &[Piece]) -> Reading {
    let mut sink = Collect::default();
    feed(&mut adapter, pieces, &mut sink);
    sink.into_reading(&adapter)
}

fn feed(adapter: &mut Adapter, pieces: &[Piece], sink: &mut Collect) {
    let mut offset = 0;
    for piece in pieces {
        let captured = piece.captured.as_ref();
        let frame =
            Frame { lane: piece.lane, generation: 0, offset, unpacked: None, captured, bytes: &piece.bytes };
        adapter.feed(frame, sink);
        offset += piece.bytes.len() as u64;
    }
}

/// Returns bytes as one piece of an agent's output.
pub(crate) fn output(bytes: &[u8]) -> Piece {
    Piece { lane: Lane::FromAgent, captured: None, bytes: bytes.to_vec() }
}

/// Returns true if a file name has this extension.
pub(crate) fn is_named(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == extension)
}

/// Returns true if a file of the shared directory is for Claude's adapters.
pub(crate) fn is_transcript(name: &str) -> bool {
    let is_written = is_named(name, "jsonl") || is_named(name, "ndjson");
    let is_by_the_capture = ["emitted.jsonl", "duplex.raw.jsonl"].iter().any(|end| name.ends_with(end));
    let mut below_home = name.split('/').skip_while(|part| *part != "home").skip(1);
    let is_of_sessions = below_home.next().is_none_or(|directory| directory == "projects");
    is_written && !is_by_the_capture && is_of_sessions
}

/// Returns the source of a file.
pub(crate) fn source_of(path: &Path) -> Source {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    Source { file_name: Some(name), ..Source::named("s1") }
}

/// Returns the adapter and the pieces of a file of Claude Code, of any surface.
pub(crate) fn claude_file(path: &Path) -> (Adapter, Vec<Piece>) {
    claude_pieces(&path.to_string_lossy(), &places::read_bytes(path))
}

/// Chooses the adapter by the file name, and returns it with the bytes as pieces.
pub(crate) fn claude_pieces(name: &str, bytes: &[u8]) -> (Adapter, Vec<Piece>) {
    let path = Path::new(name);
    let is_duplex =
        ["duplex.jsonl", "bidirectional.ndjson", "control.in.jsonl"].iter().any(|end| name.ends_with(end));
    if is_duplex {
        (claude::stream(source_of(path)), duplex(bytes))
    } else if is_named(name, "ndjson") {
        (claude::stream(source_of(path)), vec![output(bytes)])
    } else {
        (claude::disk(source_of(path)), vec![output(bytes)])
    }
}

/// Splits a recording of both directions: `{"dir":…,"t":…,"msg":…}`.
fn duplex(bytes: &[u8]) -> Vec<Piece> {
    let piece = |line: &[u8]| {
        // The message stays raw text: it may contain what a JSON reader refuses.
        let record: BTreeMap<&str, &RawValue> = serde_json::from_slice(line).unwrap();
        let is_sent = [r#""c2s""#, r#""in""#].contains(&record["dir"].get());
        let captured = record.get("t").map(|seconds| instant(seconds.get().parse().unwrap()));
        let bytes = format!("{}\n", record["msg"].get()).into_bytes();
        Piece { lane: if is_sent { Lane::ToAgent } else { Lane::FromAgent }, captured, bytes }
    };
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(piece).collect()
}

/// Converts seconds since 1970; the captures need only days of November 2026.
fn instant(seconds: f64) -> Timestamp {
    const NOVEMBER_2026_MS: u128 = 1_793_491_200_000;
    let ms = Duration::from_secs_f64(seconds).as_millis() - NOVEMBER_2026_MS;
    let (day, rest) = (ms / 86_400_000, ms % 86_400_000);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    let text = format!("2026-11-{:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", day + 1, rest % 1000);
    Timestamp::parse(&text).unwrap()
}

/// Checks that the unknown types of each sample are those of the list, and that all of it can be read.
#[track_caller]
pub(crate) fn check_unknown_types(samples: &[PathBuf], completeness_of: impl Fn(&Path) -> Completeness) {
    let faults = samples.iter().filter_map(|path| fault(path, &completeness_of(path)));
    assert_eq!(faults.collect::<Vec<_>>(), Vec::<String>::new());
}

/// Returns what is wrong with the completeness of a sample.
fn fault(path: &Path, found: &Completeness) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let listed = UNKNOWN.into_iter().find(|(sample, _)| *sample == name).map_or(&[][..], |(_, types)| types);
    let unknown: Vec<&str> = found.unknown.keys().map(String::as_str).collect();
    let is_good = unknown == listed && (found.unreadable, found.torn_bytes) == (0, 0);
    (!is_good).then(|| format!("{}: {found:?}", path.display()))
}

#[test]
fn unknown_types_that_are_not_listed_are_found() {
    let good = Completeness { records: 1, ..Completeness::default() };
    let unknown = Completeness { unknown: [("hologram".to_owned(), 1)].into(), ..good.clone() };
    let unreadable = Completeness { unreadable: 1, ..good.clone() };
    for (found, is_fault) in [(good, false), (unknown, true), (unreadable, true)] {
        assert_eq!(fault(Path::new("a/b.jsonl"), &found).is_some(), is_fault, "{found:?}");
    }
}

impl Reading {
    /// Returns the events of a type.
    pub(crate) fn of_type<'a>(&'a self, event_type: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["type"] == event_type)
    }

    /// Returns the runs in the order in which they began.
    pub(crate) fn runs(&self) -> Vec<String> {
        let mut runs = Vec::new();
        for event in &self.events {
            let run = event["run_id"].as_str().unwrap().to_owned();
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        runs
    }

    /// Returns the events of a run.
    pub(crate) fn of_run<'a>(&'a self, run: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["run_id"] == run)
    }
}
