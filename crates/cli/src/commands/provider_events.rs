//! The events of an agent's own file: numbered as they would be in a store, and written nowhere.

use std::collections::HashMap;
use std::path::Path;

use steno_adapters::{Completeness, Sink};
use steno_journal::Recorded;
use steno_model::{Draft, RunId, Seq, Timestamp};

use crate::failure::Failure;
use crate::output::count;
use crate::provider_files;

/// Numbers drafts run by run, from 1, and hands each event on.
pub struct Numbered<F> {
    /// The last number of each run, and how long its transcript would be.
    ends: HashMap<RunId, (Seq, u64)>,
    each: F,
}

impl<F: FnMut(Recorded)> Numbered<F> {
    pub fn new(each: F) -> Self {
        Self { ends: HashMap::new(), each }
    }
}

impl<F: FnMut(Recorded)> Sink for Numbered<F> {
    fn draft(&mut self, run: RunId, draft: Draft) {
        let end = self.ends.get(&run).copied();
        let (seq, offset) = (Seq::after(end.map(|(seq, _)| seq)), end.map_or(0, |(_, offset)| offset));
        let encoded = draft.encode(run, || Timestamp::from_instant(jiff::Timestamp::UNIX_EPOCH));
        let mut line = Vec::new();
        encoded.write_line(seq, &mut line);
        self.ends.insert(run, (seq, offset + line.len() as u64));
        line.pop();
        (self.each)(Recorded { event: encoded.into_event(seq), line, offset });
    }
}

/// Reads the files at `path` that agents wrote; returns how many there were.
pub fn read(path: &Path, sink: &mut dyn Sink) -> Result<u64, Failure> {
    let mut known = 0;
    for file in provider_files::find(&[path.to_owned()])? {
        if let Some(completeness) = provider_files::read(&file, sink)? {
            known += 1;
            warn_of_the_rest(&file, &completeness);
        }
    }
    Ok(known)
}

/// Says how much of a file was not understood.
fn warn_of_the_rest(file: &Path, completeness: &Completeness) {
    let file = file.display();
    if !completeness.unknown.is_empty() {
        let types: Vec<_> =
            completeness.unknown.iter().map(|(name, times)| format!("{name} ({times})")).collect();
        tracing::warn!("`{file}`: records of unknown types, kept as such: {}", types.join(", "));
    }
    if completeness.unreadable > 0 {
        tracing::warn!("`{file}`: {} cannot be read", count(completeness.unreadable, "piece"));
    }
    if completeness.torn_bytes > 0 {
        tracing::warn!("`{file}`: the last {} bytes are no whole record", completeness.torn_bytes);
    }
}
