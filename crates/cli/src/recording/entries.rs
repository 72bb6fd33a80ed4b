//! Writes transcript entries to a log while files are recorded.

use steno_recorder::entries::{EntryCollector, EntryFile, EntryLog, EntryOptions, TARGET};
use steno_recorder::sources::SourceLocations;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use crate::args::EntriesFileArgs;
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
    pub fn open(out: &EntriesFileArgs, settings: &Settings) -> Result<Option<Self>, Failure> {
        let Some(path) = out.path(settings) else { return Ok(None) };
        let file = EntryFile::open(&path).map_err(|error| cannot("write", &path, &error))?;
        // Warnings of the command itself still go to stderr.
        let talk = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_target(false)
            .without_time()
            .with_ansi(false)
            .with_filter(filter_fn(|about| {
                *about.level() <= tracing::Level::WARN && about.target() != TARGET
            }));
        let dispatch = Dispatch::new(tracing_subscriber::registry().with(EntryLayer(file.log())).with(talk));
        let options = EntryOptions { emit_raw: settings.capture.emit_raw.value, prompt_name: None };
        let collector =
            tracing::dispatcher::with_default(&dispatch, || EntryCollector::appending(options, file));
        Ok(Some(Self { collector, dispatch }))
    }

    /// Runs `work` while entries go to the log, and ends the collection.
    pub fn collecting<T>(&self, work: impl FnOnce() -> T) -> T {
        tracing::dispatcher::with_default(&self.dispatch, || {
            let done = work();
            self.collector.stop();
            done
        })
    }
}

/// Passes events to a log of entries.
struct EntryLayer(EntryLog);

impl<S: Subscriber> Layer<S> for EntryLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        self.0.write_event(event);
    }
}

/// Excludes the log from what is archived: its sources are archived already.
pub fn leave_out_log(places: &mut SourceLocations, out: &EntriesFileArgs, settings: &Settings) {
    let Some(path) = out.path(settings).and_then(|path| std::path::absolute(path).ok()) else { return };
    let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
    let place = dir.zip(path.file_name()).map(|(dir, name)| dir.join(name));
    places.exclusions.paths.push(place.unwrap_or(path).to_string_lossy().into_owned());
}

/// Runs `work` with an entry collector, if a flag or a setting asks for one.
pub fn collecting<T>(
    out: &EntriesFileArgs,
    settings: &Settings,
    work: impl FnOnce(Option<EntryCollector>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match EntriesLog::open(out, settings)? {
        None => work(None),
        Some(log) => log.collecting(|| work(Some(log.collector.clone()))),
    }
}
