//! Makes the entries of a connection while its messages are recorded (R24).

use steno_adapters::Adapter;
use steno_model::Frame;

use super::spool::SpoolLine;
use crate::entries::{EntryCollector, EntrySink, EntryTime};

/// Makes entries from the lines of a connection's file, once they are written.
pub(super) struct LiveEntries {
    adapter: Adapter,
    sink: EntrySink,
    offset: u64,
}

impl LiveEntries {
    /// Takes the adapter of the connection.
    pub(super) fn new(collector: &EntryCollector, adapter: Adapter) -> Self {
        Self {
            adapter: adapter.of_conversation().read_once(),
            sink: collector.source(None, EntryTime::Message),
            offset: 0,
        }
    }

    pub(super) fn take(&mut self, line: &SpoolLine<'_>) {
        let bytes = line.to_bytes();
        self.adapter.feed(Frame::of_file(self.offset, &bytes), &mut self.sink);
        self.offset += bytes.len() as u64;
    }

    pub(super) fn finish(mut self) {
        self.adapter.finish(&mut self.sink);
    }
}
