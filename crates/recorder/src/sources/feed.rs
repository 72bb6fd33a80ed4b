//! Passes a source's bytes to its adapter: unpacks compressed ones and recognises the adapter by content.

use serde::de::IgnoredAny;
use steno_adapters::{Adapter, HEAD_BYTES_MAX, Sink, Source, Surface, open, sniff};
use steno_capture::packing::Unpacker;
use steno_model::{Frame, Lane, Packing, Provider, Timestamp};

/// The bytes of one source on their way to its adapter.
pub(crate) struct Feed {
    source: Source,
    /// Whether the bytes go to an adapter at all.
    is_wanted: bool,
    stage: Stage,
    unpacker: Unpacker,
    /// How the generation is packed.
    packing: Option<Packing>,
    generation: u32,
    /// How many unpacked bytes of the generation were fed.
    offset: u64,
}

enum Stage {
    /// The adapter is not known yet.
    Waiting {
        /// The bytes so far.
        head: Vec<u8>,
        /// The number of bytes at which to sniff again.
        look_at: usize,
    },
    /// Their adapter reads them.
    Reading { adapter: Box<Adapter>, surface: Surface },
    /// No adapter reads them.
    Unread,
}

impl Stage {
    fn begin() -> Self {
        Self::Waiting { head: Vec::new(), look_at: 1 }
    }
}

impl Feed {
    /// Begins with a source's first generation.
    pub(crate) fn new(source: Source, is_wanted: bool) -> Self {
        let stage = if is_wanted { Stage::begin() } else { Stage::Unread };
        Self {
            source,
            is_wanted,
            stage,
            unpacker: Unpacker::default(),
            packing: None,
            generation: 0,
            offset: 0,
        }
    }

    /// Returns the adapter's name and version, once there is one.
    pub(crate) fn adapter(&self) -> Option<&'static str> {
        match &self.stage {
            Stage::Reading { adapter, .. } => Some(adapter.name()),
            Stage::Waiting { .. } | Stage::Unread => None,
        }
    }

    /// Returns the source's provider, once it is known.
    pub(crate) fn provider(&self) -> Option<Provider> {
        match &self.stage {
            Stage::Reading { adapter, .. } => adapter.provider(),
            Stage::Waiting { .. } | Stage::Unread => None,
        }
    }

    /// Tells whether more bytes are needed to recognise the source.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }

    /// Stops passing the source to an adapter.
    pub(crate) fn give_up(&mut self) {
        self.stage = Stage::Unread;
    }

    /// Takes the next bytes of a generation.
    pub(crate) fn take(
        &mut self,
        generation: u32,
        bytes: &[u8],
        captured: Option<&Timestamp>,
        sink: &mut dyn Sink,
    ) {
        if matches!(self.stage, Stage::Unread) && generation == self.generation {
            return;
        }
        if generation != self.generation {
            self.begin_generation(generation);
        }
        let mut unpacker = std::mem::take(&mut self.unpacker);
        self.packing = unpacker.packing(bytes);
        // Bytes that cannot be unpacked stay in the vault, and give no events.
        unpacker.unpack(bytes, &mut |plain| self.take_plain(plain, captured, sink)).ok();
        self.unpacker = unpacker;
    }

    fn begin_generation(&mut self, generation: u32) {
        self.generation = generation;
        self.offset = 0;
        self.unpacker = Unpacker::default();
        match &self.stage {
            // The new generation may be recognised even if the last one was not.
            Stage::Waiting { .. } | Stage::Unread if self.is_wanted => self.stage = Stage::begin(),
            Stage::Waiting { .. } | Stage::Unread | Stage::Reading { .. } => {}
        }
    }

    fn take_plain(&mut self, plain: &[u8], captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        match &mut self.stage {
            Stage::Reading { adapter, .. } => {
                let frame = Frame {
                    lane: Lane::FromAgent,
                    generation: self.generation,
                    offset: self.offset,
                    unpacked: self.packing,
                    captured,
                    bytes: plain,
                };
                adapter.feed(frame, sink);
                self.offset += plain.len() as u64;
            }
            Stage::Waiting { head, look_at } => {
                head.extend_from_slice(plain);
                // Only whole lines: the beginning of one may look like another agent's.
                let whole = whole_lines(head);
                if whole >= *look_at {
                    *look_at = 2 * whole;
                    self.recognise(whole, captured, sink);
                }
                self.give_up_when_full(captured, sink);
            }
            Stage::Unread => {}
        }
    }

    /// Sniffs the first `len` bytes; once they are recognised, feeds everything so far.
    fn recognise(&mut self, len: usize, captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        let Stage::Waiting { head, .. } = &mut self.stage else { return };
        let Some(sniffed) = sniff(&head[..len]) else { return };
        let head = std::mem::take(head);
        let adapter = open(&sniffed, self.source.clone());
        self.stage = match adapter {
            Some(adapter) => Stage::Reading { adapter: Box::new(adapter), surface: sniffed.surface },
            None => Stage::Unread,
        };
        self.take_plain(&head, captured, sink);
    }

    fn give_up_when_full(&mut self, captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        let Stage::Waiting { head, .. } = &self.stage else { return };
        if head.len() < HEAD_BYTES_MAX {
            return;
        }
        self.recognise(head.len(), captured, sink);
        if matches!(self.stage, Stage::Waiting { .. }) {
            self.stage = Stage::Unread;
        }
    }

    /// Reads the last line even without a newline, if it is whole. The source may continue.
    pub(crate) fn pause(&mut self, captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        if let Stage::Waiting { head, .. } = &self.stage {
            let whole = whole_lines(head);
            let last = &head[whole..];
            let is_whole = !last.is_empty() && serde_json::from_slice::<IgnoredAny>(last).is_ok();
            self.recognise(if is_whole { head.len() } else { whole }, captured, sink);
        }
        if let Stage::Reading { adapter, .. } = &mut self.stage {
            adapter.pause(sink);
        }
    }

    /// Ends the source if it is a recorded stream, which does not continue. A session's own file may continue.
    pub(crate) fn finish(&mut self, captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        self.pause(captured, sink);
        let Stage::Reading { adapter, surface } = &mut self.stage else { return };
        match surface {
            Surface::ClaudeStream
            | Surface::CodexExec
            | Surface::CodexAppServer
            | Surface::Acp
            | Surface::Mcp
            | Surface::GeminiStream
            | Surface::GeminiOutput
            | Surface::CopilotStream
            | Surface::OpenCodeStream
            | Surface::Http
            | Surface::Wrap => adapter.finish(sink),
            Surface::ClaudeDisk | Surface::CodexRollout | Surface::GeminiChat | Surface::CopilotEvents => {}
        }
    }

    /// Ends the source, of any kind.
    pub(crate) fn end(&mut self, captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        self.pause(captured, sink);
        if let Stage::Reading { adapter, .. } = &mut self.stage {
            adapter.finish(sink);
        }
    }

    /// Returns how much of the source was understood.
    pub(crate) fn completeness(&self) -> Option<&steno_adapters::Completeness> {
        match &self.stage {
            Stage::Reading { adapter, .. } => Some(adapter.completeness()),
            Stage::Waiting { .. } | Stage::Unread => None,
        }
    }
}

/// Returns the length of the whole lines in bytes.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}
