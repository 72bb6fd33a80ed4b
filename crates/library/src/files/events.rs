//! The events of an agent's file, numbered as in a store, without writing them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use steno_adapters::{Sink, Surface};
use steno_model::{Draft, ExchangeEvent, RunId, Seq, Timestamp};
use steno_views::{Lines, count, visible};

use super::{FileError, FileReport, Files, Tally};

/// The file of an event.
pub struct Origin {
    /// Its number, in reading order.
    pub number: u64,
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
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

/// Numbers the drafts of a file run by run, and passes each event on. In a copy of a run the numbers start again.
struct NumberingSink<'a, F> {
    origin: Origin,
    numbering: Numbering,
    each: &'a mut F,
    flow: ControlFlow<()>,
}

impl<F: FnMut(&Origin, ExchangeEvent) -> ControlFlow<()>> Sink for NumberingSink<'_, F> {
    fn draft(&mut self, run: RunId, draft: Draft) {
        if self.flow.is_break() {
            return;
        }
        let event = self.numbering.event(run, draft);
        self.flow = (self.each)(&self.origin, event);
    }
}

/// Reads agents' files, and passes each event with its file to `each`, until `each` breaks or `is_abandoned` is true.
///
/// # Errors
/// What is wrong with the only file.
pub fn read_events(
    files: Files,
    is_abandoned: impl Fn() -> bool,
    mut each: impl FnMut(&Origin, ExchangeEvent) -> ControlFlow<()>,
) -> Result<Tally, FileError> {
    let mut number = 0;
    files.each(|file| {
        let Some(surface) = file.surface() else { return Ok(None) };
        number += 1;
        let origin = Origin { number, path: file.path().to_owned(), surface };
        let flow = ControlFlow::Continue(());
        let mut numbered = NumberingSink { origin, numbering: Numbering::default(), each: &mut each, flow };
        let read = file.read(&mut numbered, |numbered| numbered.flow.is_break() || is_abandoned())?;
        if let Some(read) = &read {
            warn_about_unread(read);
        }
        Ok(read)
    })
}

/// Logs which parts of a file were not understood.
pub fn warn_about_unread(read: &FileReport) {
    let completeness = &read.completeness;
    let file = read.path.display().to_string();
    let file = visible(&file, Lines::Escape);
    if !completeness.unknown.is_empty() {
        let types: Vec<_> =
            completeness.unknown.iter().map(|(name, times)| format!("{name} ({times})")).collect();
        let types = types.join(", ");
        tracing::warn!(
            "`{file}`: records of unknown types were kept unchanged: {}",
            visible(&types, Lines::Escape)
        );
    }
    if completeness.unreadable > 0 {
        tracing::warn!("`{file}`: {} could not be parsed", count(completeness.unreadable, "record"));
    }
    if completeness.torn_bytes > 0 {
        tracing::warn!("`{file}`: the last {} bytes are not a complete record", completeness.torn_bytes);
    }
}
