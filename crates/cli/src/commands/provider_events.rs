//! The events of an agent's own file: numbered as they would be in a store, and written nowhere.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use steno_adapters::{Sink, Surface};
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{Draft, ExchangeEvent, RunId, Seq, Timestamp};
use steno_views::{Lines, count, visible};

use crate::failure::Failure;
use crate::output::Output;
use crate::provider_files::{Files, Reading, Tally};

/// The file that an event is from.
pub struct Origin {
    /// Which of the files it is, in the order in which they are read.
    pub number: u64,
    pub path: PathBuf,
    pub surface: Surface,
}

/// Numbers drafts run by run, as a store would.
#[derive(Default)]
pub struct Numbering {
    ends: HashMap<RunId, Seq>,
}

impl Numbering {
    /// Makes the next event of a run.
    pub fn event(&mut self, run: RunId, draft: Draft) -> ExchangeEvent {
        let seq = Seq::after(self.ends.get(&run).copied());
        self.ends.insert(run, seq);
        draft.into_event(run, seq, || Timestamp::from_instant(jiff::Timestamp::UNIX_EPOCH))
    }
}

/// Numbers the drafts of a file run by run, and hands each event on. A run lives in one file: in a copy of it the
/// numbers begin again.
struct Numbered<'a, F> {
    origin: Origin,
    numbering: Numbering,
    each: &'a mut F,
    flow: ControlFlow<()>,
}

impl<F: FnMut(&Origin, ExchangeEvent) -> ControlFlow<()>> Sink for Numbered<'_, F> {
    fn draft(&mut self, run: RunId, draft: Draft) {
        if self.flow.is_break() {
            return;
        }
        let event = self.numbering.event(run, draft);
        self.flow = (self.each)(&self.origin, event);
    }
}

/// Reads the files that agents wrote, and hands on each event with the file it is from, until that is enough or nobody
/// reads our output any more.
pub fn read(
    files: Files,
    each: impl FnMut(&Origin, ExchangeEvent) -> ControlFlow<()>,
) -> Result<Tally, Failure> {
    read_until(files, Output::is_abandoned, each)
}

/// The same until `is_abandoned` says that nobody wants it any more.
pub fn read_until(
    files: Files,
    is_abandoned: impl Fn() -> bool,
    mut each: impl FnMut(&Origin, ExchangeEvent) -> ControlFlow<()>,
) -> Result<Tally, Failure> {
    let mut number = 0;
    files.each(|file| {
        let Some(surface) = file.surface() else { return Ok(None) };
        number += 1;
        let origin = Origin { number, path: file.path().to_owned(), surface };
        let flow = ControlFlow::Continue(());
        let mut numbered = Numbered { origin, numbering: Numbering::default(), each: &mut each, flow };
        let read = file.read(&mut numbered, |numbered| numbered.flow.is_break() || is_abandoned())?;
        if let Some(read) = &read {
            warn_of_the_rest(read);
        }
        Ok(read)
    })
}

/// Counts events.
struct Counted(u64);

impl Sink for Counted {
    fn draft(&mut self, _run: RunId, _draft: Draft) {
        self.0 += 1;
    }
}

/// Shows of each file whose it is, what its channel carries, and how much of it was understood.
pub fn show_completeness(files: Files, json: bool, output: &mut Output) -> Result<Tally, Failure> {
    files.each(|file| {
        let mut counted = Counted(0);
        let Some(read) = file.read(&mut counted, |_| Output::is_abandoned())? else { return Ok(None) };
        if json {
            output.json_line(completeness_json(counted.0, &read).as_str());
        } else {
            output.line(&completeness_line(counted.0, &read));
        }
        Ok(Some(read))
    })
}

fn completeness_json(events: u64, read: &Reading) -> RawJson {
    let surface = read.sniffed.surface;
    let unknown = |object: &mut ObjectWriter<'_>| {
        let types = read.completeness.unknown.iter();
        let pairs = types.map(|(name, times)| {
            RawJson::object(|pair| {
                pair.string("type", &name.as_str().into());
                pair.number("records", *times);
            })
        });
        object.json("unknown", &RawJson::array(pairs));
    };
    RawJson::object(|object| {
        object.string("file", &read.path.display().to_string().as_str().into());
        object.word("provider", surface.provider());
        object.word("surface", surface.name());
        object.optional("version", read.sniffed.version.as_ref(), ObjectWriter::string);
        object.json(
            "carries",
            &RawJson::array(read.carries.iter().map(|what| JsonString::from(*what).to_json())),
        );
        object.number("events", events);
        object.number("records", read.completeness.records);
        object.number("bookkeeping", read.completeness.bookkeeping);
        unknown(object);
        object.number("repaired", read.completeness.repaired);
        object.number("unreadable", read.completeness.unreadable);
        object.number("torn_bytes", read.completeness.torn_bytes);
        object.json("cut", &RawJson::from(read.is_cut));
    })
}

fn completeness_line(events: u64, read: &Reading) -> String {
    let (surface, completeness) = (read.sniffed.surface, &read.completeness);
    let version = read.sniffed.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let unknown: u64 = completeness.unknown.values().sum();
    let torn = match completeness.torn_bytes {
        0 => String::new(),
        bytes => format!(", the last {} no whole record", count(bytes, "byte")),
    };
    let line = format!(
        "{}  {} {}{version}  {} from {}, {} of them bookkeeping, {unknown} unknown, {} unreadable{torn}{}",
        read.path.display(),
        surface.provider(),
        surface.name(),
        count(events, "event"),
        count(completeness.records, "record"),
        completeness.bookkeeping,
        completeness.unreadable,
        if read.is_cut { ", cut inside of compressed data" } else { "" },
    );
    visible(&line, Lines::Escape).into_owned()
}

/// Says how much of a file was not understood.
pub fn warn_of_the_rest(read: &Reading) {
    let completeness = &read.completeness;
    let file = read.path.display().to_string();
    let file = visible(&file, Lines::Escape);
    if !completeness.unknown.is_empty() {
        let types: Vec<_> =
            completeness.unknown.iter().map(|(name, times)| format!("{name} ({times})")).collect();
        let types = types.join(", ");
        tracing::warn!(
            "`{file}`: records of unknown types, kept as such: {}",
            visible(&types, Lines::Escape)
        );
    }
    if completeness.unreadable > 0 {
        tracing::warn!("`{file}`: {} cannot be read", count(completeness.unreadable, "piece"));
    }
    if completeness.torn_bytes > 0 {
        tracing::warn!("`{file}`: the last {} bytes are no whole record", completeness.torn_bytes);
    }
}
