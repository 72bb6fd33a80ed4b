//! The events of a spine: the lines of its session go through the adapter that reads them elsewhere.

use std::collections::VecDeque;

use steno_adapters::{Adapter, Sink, Source, codex};
use steno_model::{Draft, Evidence, ExchangeEvent, Frame, RunId};

use super::SpineItem;
use crate::Numbering;

/// Makes events of the lines of a session.
#[derive(Default)]
pub(super) struct SpineEvents {
    adapter: Option<Adapter>,
    made: NumberedDrafts,
    /// Where each line begins in what the adapter was given, and the `seq` of its record.
    lines: Vec<(u64, u64)>,
    offset: u64,
    line: Vec<u8>,
    ready: VecDeque<ReadyEvent>,
}

/// An event that was made.
struct ReadyEvent {
    event: ExchangeEvent,
    /// The `seq` of the record that it was made from.
    seq: u64,
    /// The `seq` of the record whose line completed it.
    seq_last: u64,
}

impl SpineEvents {
    /// Takes the next line, without its newline, and the `seq` of its record.
    pub(super) fn line(&mut self, seq: u64, line: &[u8]) {
        let adapter = self.adapter.get_or_insert_with(|| {
            let source = Source::named("spine");
            let is_conversation = line.starts_with(b"{\"dir\"");
            if is_conversation { codex::app_server(source).of_conversation() } else { codex::rollout(source) }
        });
        self.line.clear();
        self.line.extend_from_slice(line);
        self.line.push(b'\n');
        self.lines.push((self.offset, seq));
        adapter.feed(Frame::of_file(self.offset, &self.line), &mut self.made);
        self.offset += self.line.len() as u64;
        self.take(seq);
    }

    /// Makes the last events.
    pub(super) fn finish(&mut self) {
        if let Some(mut adapter) = self.adapter.take() {
            adapter.finish(&mut self.made);
            self.take(u64::MAX);
        }
    }

    fn take(&mut self, seq_last: u64) {
        for event in std::mem::take(&mut self.made.events) {
            let evidence = event.extra.get("evidence").and_then(Evidence::read);
            let offset = evidence.map_or(self.offset, |evidence| evidence.position.offset);
            let after = self.lines.partition_point(|(begin, _)| *begin <= offset);
            let seq = after.checked_sub(1).and_then(|at| self.lines.get(at)).map_or(0, |(_, seq)| *seq);
            self.ready.push_back(ReadyEvent { event, seq, seq_last });
        }
    }

    /// Hands over the events that are complete with the record of a `seq`.
    pub(super) fn drain(&mut self, seq: u64, each: &mut dyn FnMut(SpineItem)) {
        while self.ready.front().is_some_and(|ready| ready.seq_last <= seq)
            && let Some(ready) = self.ready.pop_front()
        {
            each(SpineItem::Event(ready.event, ready.seq));
        }
    }
}

/// Numbers what an adapter makes.
#[derive(Default)]
struct NumberedDrafts {
    events: Vec<ExchangeEvent>,
    numbering: Numbering,
}

impl Sink for NumberedDrafts {
    fn draft(&mut self, run: RunId, draft: Draft) {
        self.events.push(self.numbering.event(run, draft));
    }
}
