//! The log of entries beside what is recorded.

use std::path::PathBuf;

use steno_recorder::entries::{EntryCollector, EntryFile, EntryOptions, TARGET};
use tracing::Dispatch;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::args::EntriesOut;
use crate::failure::{Failure, cannot};
use crate::settings::Settings;

/// A log of entries, and who collects them for it.
#[derive(Clone)]
pub struct EntriesLog {
    pub collector: EntryCollector,
    dispatch: Dispatch,
}

impl EntriesLog {
    /// Opens the log that a flag or a setting asks for, if one does.
    pub fn open(out: &EntriesOut, settings: &Settings) -> Result<Option<Self>, Failure> {
        let Some(path): Option<PathBuf> = out.file.clone().or_else(|| settings.archive.entries.value.clone())
        else {
            return Ok(None);
        };
        let file = EntryFile::open(&path).map_err(|error| cannot("write", &path, &error))?;
        // What the command itself has to say goes to stderr as always.
        let talk = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_target(false)
            .without_time()
            .with_ansi(false)
            .with_filter(filter_fn(|about| {
                *about.level() <= tracing::Level::WARN && about.target() != TARGET
            }));
        let dispatch = Dispatch::new(tracing_subscriber::registry().with(file.log()).with(talk));
        let options = EntryOptions { emit_raw: settings.archive.emit_raw.value, prompt_name: None };
        let collector =
            tracing::dispatcher::with_default(&dispatch, || EntryCollector::appending(options, file));
        Ok(Some(Self { collector, dispatch }))
    }

    /// Does something with entries going to the log, and ends the collection.
    pub fn collecting<T>(&self, work: impl FnOnce() -> T) -> T {
        tracing::dispatcher::with_default(&self.dispatch, || {
            let done = work();
            self.collector.stop();
            done
        })
    }
}

/// Does something with entries collected, if a flag or a setting asks for that.
pub fn collecting<T>(
    out: &EntriesOut,
    settings: &Settings,
    work: impl FnOnce(Option<EntryCollector>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match EntriesLog::open(out, settings)? {
        None => work(None),
        Some(log) => log.collecting(|| work(Some(log.collector.clone()))),
    }
}
