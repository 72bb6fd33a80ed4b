//! Completes the entries: a record without events gives one too, in the order of the source.

use steno_model::{Draft, EntrySource, EntryType, EventType, RunId, Timestamp};

use super::{Adapter, LeftoverRecord, UnreadableText};
use crate::emit::{CurrentRecord, Emit, PendingRecord};
use crate::lines::Line;
use crate::run::{Run, derived_run_id};
use crate::sink::{AdapterEntry, Sink};

impl Adapter {
    /// Writes with a sink that passes on entries in the order of the source, including records that came before their
    /// run was known, and then writes the entries of records without events.
    pub(super) fn in_order(&mut self, sink: &mut dyn Sink, write: impl FnOnce(&mut Self, &mut dyn Sink)) {
        if !sink.wants_entries() {
            return write(self, sink);
        }
        let is_empty = self.memory.ledger.is_empty();
        let mut sink = if is_empty { OrderedSink::at_once(sink) } else { OrderedSink::waiting(sink) };
        write(self, &mut sink);
        if self.mapper.run().is_some() {
            let free = self.memory.ledger.take_free();
            self.rest_entries(&free, &mut sink);
        }
    }

    /// Writes the entries of a source that has ended.
    pub(super) fn last_entries(&mut self, sink: &mut dyn Sink) {
        let open = self.memory.ledger.take_all();
        self.rest_entries(&open, sink);
    }

    fn rest_entries(&mut self, records: &[PendingRecord], sink: &mut dyn Sink) {
        let about = self.mapper.about();
        let at = CurrentRecord::end_of(&self.source.id, self.generation, self.end);
        let mut emit = Emit::new(sink, about, at, &mut self.memory);
        for held in records {
            let nobodys;
            let (run, detail) = match self.mapper.rest(held.text()) {
                LeftoverRecord::Unknown { run, detail } => (run, detail),
                LeftoverRecord::Delta => continue,
                // The source never named its session.
                LeftoverRecord::Waiting => {
                    let source = self.source.id.to_text();
                    nobodys = Run::main(derived_run_id(&[about.provider, about.channel, &source]));
                    (&nobodys, held.text())
                }
            };
            emit.release(held, |emit| emit.entry_with(run, EntryType::Unknown, None, detail));
        }
    }

    /// Writes an entry for an incomplete last line, when the source has ended.
    pub(super) fn torn_entries(&mut self, sink: &mut dyn Sink) {
        if !sink.wants_entries() {
            return;
        }
        for lane in [0, 1] {
            let lines = std::mem::take(&mut self.lanes[lane]);
            if let Some((start, Line::Whole(line))) = lines.unfinished() {
                let known =
                    usize::try_from(self.handed_over[lane].saturating_sub(start)).unwrap_or(usize::MAX);
                let torn = line.get(known..).unwrap_or_default().trim_ascii();
                if !torn.is_empty() {
                    let text = String::from_utf8_lossy(torn);
                    let lost = UnreadableText {
                        text,
                        length: torn.len() as u64,
                        why: "a line that was not written to its end",
                    };
                    self.torn_entry(start + known as u64, &lost, sink);
                }
            }
            self.lanes[lane] = lines;
        }
    }

    fn torn_entry(&mut self, offset: u64, lost: &UnreadableText<'_>, sink: &mut dyn Sink) {
        let Some(run) = self.mapper.run() else { return };
        let end = CurrentRecord::end_of(&self.source.id, self.generation, offset);
        let at = CurrentRecord { length: lost.length, text: &lost.text, unreadable: Some(lost.why), ..end };
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        emit.entry(run, EntryType::Unknown, None);
    }
}

/// An entry that waits for those before it.
struct PendingEntry {
    run: RunId,
    adapter: &'static str,
    entry_type: EntryType,
    source: EntrySource,
    timestamp: Option<Timestamp>,
    captured: Option<Timestamp>,
    session_id: Option<String>,
    text: Option<String>,
    subtype: Option<String>,
    detail_name: &'static str,
    detail: String,
    accumulated: Option<String>,
    raw: String,
    unreadable: Option<&'static str>,
    generation: u32,
    offset: u64,
}

impl PendingEntry {
    fn of(entry: &AdapterEntry<'_>) -> Self {
        Self {
            run: entry.run,
            adapter: entry.adapter,
            entry_type: entry.entry_type,
            source: entry.source.clone(),
            timestamp: entry.timestamp.cloned(),
            captured: entry.captured.cloned(),
            session_id: entry.session_id.map(str::to_owned),
            text: entry.text.map(str::to_owned),
            subtype: entry.subtype.map(str::to_owned),
            detail_name: entry.detail_name,
            detail: entry.detail.to_owned(),
            accumulated: entry.accumulated.map(str::to_owned),
            raw: entry.raw.to_owned(),
            unreadable: entry.unreadable,
            generation: entry.generation,
            offset: entry.offset,
        }
    }

    fn seen(&self) -> AdapterEntry<'_> {
        AdapterEntry {
            run: self.run,
            adapter: self.adapter,
            entry_type: self.entry_type,
            source: &self.source,
            timestamp: self.timestamp.as_ref(),
            captured: self.captured.as_ref(),
            session_id: self.session_id.as_deref(),
            text: self.text.as_deref(),
            subtype: self.subtype.as_deref(),
            detail_name: self.detail_name,
            detail: &self.detail,
            accumulated: self.accumulated.as_deref(),
            raw: &self.raw,
            unreadable: self.unreadable,
            generation: self.generation,
            offset: self.offset,
        }
    }
}

/// A sink that passes on entries in the order of the source; waiting entries are passed on when it is dropped.
pub(super) struct OrderedSink<'a> {
    sink: &'a mut dyn Sink,
    /// The waiting entries, if entries have to be sorted.
    waiting: Option<Vec<PendingEntry>>,
}

impl<'a> OrderedSink<'a> {
    pub(super) fn waiting(sink: &'a mut dyn Sink) -> Self {
        Self { sink, waiting: Some(Vec::new()) }
    }

    fn at_once(sink: &'a mut dyn Sink) -> Self {
        Self { sink, waiting: None }
    }
}

impl Drop for OrderedSink<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiting.take().unwrap_or_default();
        waiting.sort_by_key(|entry| (entry.generation, entry.offset));
        for entry in &waiting {
            self.sink.entry(entry.seen());
        }
    }
}

impl Sink for OrderedSink<'_> {
    fn draft(&mut self, run: RunId, draft: Draft) {
        self.sink.draft(run, draft);
    }

    fn wants(&self, event_type: EventType) -> bool {
        self.sink.wants(event_type)
    }

    fn wants_whole(&self) -> bool {
        self.sink.wants_whole()
    }

    fn wants_entries(&self) -> bool {
        self.sink.wants_entries()
    }

    fn entry(&mut self, entry: AdapterEntry<'_>) {
        match &mut self.waiting {
            Some(waiting) => waiting.push(PendingEntry::of(&entry)),
            None => self.sink.entry(entry),
        }
    }
}
