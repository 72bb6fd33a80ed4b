//! From a source's bytes to its adapter: unpacked where they are compressed, and recognised by content.

use std::borrow::Cow;
use std::io::Write as _;

use serde::de::IgnoredAny;
use steno_adapters::{Adapter, HEAD_BYTES_MAX, Sink, Source, Surface, open, sniff};
use steno_model::{Frame, Lane, Timestamp};

/// What compressed data begins with (zstd), whatever its file is called.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The bytes of one source on their way to its adapter.
pub(crate) struct Feed {
    source: Source,
    stage: Stage,
    packing: Packing,
    generation: u32,
    /// How many unpacked bytes of the generation have come.
    offset: u64,
}

enum Stage {
    /// It is not known yet whose they are.
    Waiting {
        /// What has come so far.
        head: Vec<u8>,
        /// From how many bytes on it is worth to look again.
        look_at: usize,
    },
    /// Their adapter reads them.
    Reading { adapter: Box<Adapter>, surface: Surface },
    /// They are nobody's that an adapter reads.
    Unread,
}

enum Packing {
    /// Too few bytes have come to tell.
    Unknown(Vec<u8>),
    Plain,
    Zstd(Box<zstd::stream::write::Decoder<'static, Vec<u8>>>),
    /// What came cannot be unpacked any further.
    Broken,
}

impl Feed {
    /// Begins with a source's first generation. One that is not to be understood is only counted.
    pub(crate) fn new(source: Source, is_wanted: bool) -> Self {
        let stage = if is_wanted { Stage::Waiting { head: Vec::new(), look_at: 1 } } else { Stage::Unread };
        Self { source, stage, packing: Packing::Unknown(Vec::new()), generation: 0, offset: 0 }
    }

    /// Returns the adapter's name and version, once there is one.
    pub(crate) fn adapter(&self) -> Option<&'static str> {
        match &self.stage {
            Stage::Reading { adapter, .. } => Some(adapter.name()),
            Stage::Waiting { .. } | Stage::Unread => None,
        }
    }

    /// Returns whose the source is, once it is known.
    pub(crate) fn provider(&self) -> Option<&'static str> {
        match &self.stage {
            Stage::Reading { surface, .. } => Some(surface.provider()),
            Stage::Waiting { .. } | Stage::Unread => None,
        }
    }

    /// Makes nothing more of the source.
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
        let mut packing = std::mem::replace(&mut self.packing, Packing::Broken);
        let plain = packing.unpack(bytes);
        if !plain.is_empty() {
            self.take_plain(&plain, captured, sink);
        }
        drop(plain);
        self.packing = packing;
    }

    fn begin_generation(&mut self, generation: u32) {
        self.generation = generation;
        self.offset = 0;
        self.packing = Packing::Unknown(Vec::new());
        if let Stage::Waiting { head, look_at } = &mut self.stage {
            head.clear();
            *look_at = 1;
        }
    }

    fn take_plain(&mut self, plain: &[u8], captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        match &mut self.stage {
            Stage::Reading { adapter, .. } => {
                let frame = Frame {
                    lane: Lane::FromAgent,
                    generation: self.generation,
                    offset: self.offset,
                    captured,
                    bytes: plain,
                };
                adapter.feed(frame, sink);
                self.offset += plain.len() as u64;
            }
            Stage::Waiting { head, look_at } => {
                head.extend_from_slice(plain);
                // Whole lines alone: the beginning of one may look like another agent's.
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

    /// Looks at the first `len` bytes that came; once they tell whose they are, all that came is read.
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

    /// Reads what stands at the end without a newline, if it is whole. The source may go on.
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

    /// Ends the source, if it is a stream that was recorded: such a file does not go on. A session's own file may.
    pub(crate) fn finish(&mut self, captured: Option<&Timestamp>, sink: &mut dyn Sink) {
        self.pause(captured, sink);
        let Stage::Reading { adapter, surface } = &mut self.stage else { return };
        match surface {
            Surface::ClaudeStream | Surface::CodexExec | Surface::CodexAppServer | Surface::GeminiStream => {
                adapter.finish(sink);
            }
            Surface::ClaudeDisk | Surface::CodexRollout | Surface::GeminiChat | Surface::CopilotEvents => {}
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

/// Returns how many bytes the lines have that are whole.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

impl Packing {
    /// Returns the bytes as their agent wrote them.
    fn unpack<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if let Self::Unknown(first) = self {
            first.extend_from_slice(bytes);
            let magic = &ZSTD_MAGIC[..first.len().min(ZSTD_MAGIC.len())];
            if first.starts_with(magic) && first.len() < ZSTD_MAGIC.len() {
                return Cow::Borrowed(&[]);
            }
            let first = std::mem::take(first);
            if !first.starts_with(&ZSTD_MAGIC) {
                *self = Self::Plain;
                return Cow::Owned(first);
            }
            *self = match zstd::stream::write::Decoder::new(Vec::new()) {
                Ok(decoder) => Self::Zstd(Box::new(decoder)),
                Err(_) => Self::Broken,
            };
            return Cow::Owned(self.unpack(&first).into_owned());
        }
        match self {
            Self::Unknown(_) | Self::Broken => Cow::Borrowed(&[]),
            Self::Plain => Cow::Borrowed(bytes),
            Self::Zstd(decoder) => {
                let outcome = decoder.write_all(bytes).and_then(|()| decoder.flush());
                let plain = std::mem::take(decoder.get_mut());
                if outcome.is_err() {
                    *self = Self::Broken;
                }
                Cow::Owned(plain)
            }
        }
    }
}
