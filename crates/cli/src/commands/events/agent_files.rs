//! Reads the events of agents' files, and reports how much of a file was understood.

use std::ops::ControlFlow;

use steno_adapters::Sink;
use steno_library::{FileReport, Files, Origin, Tally, read_events};
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{Draft, ExchangeEvent, RunId};
use steno_views::{Lines, count, thousands, visible};

use crate::failure::Failure;
use crate::output::Output;

/// Reads agents' files, and passes on each event with its file, until `each` breaks or the reader of stdout has left.
pub fn read(
    files: Files,
    each: impl FnMut(&Origin, ExchangeEvent) -> ControlFlow<()>,
) -> Result<Tally, Failure> {
    Ok(read_events(files, Output::is_abandoned, each)?)
}

/// Counts events.
struct EventCounter(u64);

impl Sink for EventCounter {
    fn draft(&mut self, _run: RunId, _draft: Draft) {
        self.0 += 1;
    }
}

/// Prints for each file which agent wrote it, what it contains, and how much of it was understood.
pub fn show_completeness(files: Files, json: bool, output: &mut Output) -> Result<Tally, Failure> {
    let tally = files.each(|file| {
        let mut counter = EventCounter(0);
        let Some(read) = file.read(&mut counter, |_| Output::is_abandoned())? else { return Ok(None) };
        if json {
            output.json_line(completeness_json(counter.0, &read).as_str());
        } else {
            output.line(&completeness_line(counter.0, &read));
        }
        Ok(Some(read))
    })?;
    Ok(tally)
}

fn completeness_json(events: u64, read: &FileReport) -> RawJson {
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
        object.word("provider", surface.provider_name());
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

fn completeness_line(events: u64, read: &FileReport) -> String {
    let (surface, completeness) = (read.sniffed.surface, &read.completeness);
    let version = read.sniffed.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let unknown: u64 = completeness.unknown.values().sum();
    let torn = match completeness.torn_bytes {
        0 => String::new(),
        bytes => format!(", the last {} not a whole record", count(bytes, "byte")),
    };
    let line = format!(
        "{}  {} {}{version}  {} from {}, {} of them bookkeeping, {} unknown, {} unreadable{torn}{}",
        read.path.display(),
        surface.provider_name(),
        surface.name(),
        count(events, "event"),
        count(completeness.records, "record"),
        thousands(completeness.bookkeeping),
        thousands(unknown),
        thousands(completeness.unreadable),
        if read.is_cut { ", cut inside compressed data" } else { "" },
    );
    visible(&line, Lines::Escape).into_owned()
}
