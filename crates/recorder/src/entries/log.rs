//! Writes log records about entries as lines of JSON.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use steno_model::json::JsonString;
use tracing::field::{Field, Visit};
use tracing::span;

use super::TARGET;

/// Writes each record about entries as one line: `{"event":…,"context":{…},"level":…}`.
///
/// It is a subscriber of `tracing` that takes nothing else. A subscriber that takes more passes events to
/// [`EntryLog::write_event`].
#[derive(Clone)]
pub struct EntryLog {
    place: LogTarget,
}

#[derive(Clone)]
enum LogTarget {
    Memory(Arc<Mutex<Vec<String>>>),
    Writer(Arc<Mutex<dyn Write + Send>>),
}

impl EntryLog {
    /// Keeps the lines in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { place: LogTarget::Memory(Arc::default()) }
    }

    /// Writes the lines. A line that cannot be written is dropped.
    #[must_use]
    pub fn to_writer(writer: impl Write + Send + 'static) -> Self {
        Self { place: LogTarget::Writer(Arc::new(Mutex::new(writer))) }
    }

    /// Returns the lines that were kept.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match &self.place {
            LogTarget::Memory(lines) => lines.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            LogTarget::Writer(_) => Vec::new(),
        }
    }

    /// Writes an event of `tracing` if it is a record about entries.
    pub fn write_event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut fields = LogFields::default();
        event.record(&mut fields);
        let context = fields.context.as_deref().unwrap_or("null");
        // The spelling of the entry specification (000).
        let is_warning = *event.metadata().level() == tracing::Level::WARN;
        let level = if is_warning { "WARNING" } else { event.metadata().level().as_str() };
        self.write(&LogLine { event: &fields.event, context, level });
    }

    fn write(&self, line: &LogLine<'_>) {
        match &self.place {
            LogTarget::Memory(lines) => {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_string());
            }
            LogTarget::Writer(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                writeln!(writer, "{line}").ok();
            }
        }
    }
}

impl tracing::Subscriber for EntryLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == TARGET
    }

    fn event(&self, event: &tracing::Event<'_>) {
        self.write_event(event);
    }

    // Spans are never enabled, so that their ids mean nothing.
    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

/// A [`LogRecord`](steno_model::LogRecord) as a line. It is formatted only when it is written, because entries may be
/// very long.
struct LogLine<'a> {
    event: &'a str,
    /// A JSON value without line breaks.
    context: &'a str,
    level: &'static str,
}

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (event, level) = (JsonString::from(self.event), JsonString::from(self.level));
        let (event, level) = (event.as_raw(), level.as_raw());
        write!(out, "{{\"event\":{event},\"context\":{},\"level\":{level}}}", self.context)
    }
}

#[derive(Default)]
struct LogFields {
    event: String,
    context: Option<String>,
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            // No limit of depth: the context was already valid JSON.
            "context" => {
                let text = format!("{value:?}");
                let is_line = !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r'));
                self.context = (is_line && serde_json::from_str::<&RawValue>(&text).is_ok()).then_some(text);
            }
            "event" => self.event = format!("{value:?}"),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            value.clone_into(&mut self.event);
        }
    }
}
