//! From a source's bytes to its adapter: unpacked where they are compressed, and recognised by content.

use serde::de::IgnoredAny;
use steno_adapters::{Adapter, HEAD_BYTES_MAX, Sink, Source, Surface, open, sniff};
use steno_model::{Frame, Lane, Timestamp};
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

/// What compressed data begins with (zstd), whatever its file is called.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much is unpacked at a time.
const UNPACKED_BYTES_MAX: usize = 128 * 1024;

/// The bytes of one source on their way to its adapter.
pub(crate) struct Feed {
    source: Source,
    /// Whether they are to be understood, and not only counted.
    is_wanted: bool,
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

impl Stage {
    fn begin() -> Self {
        Self::Waiting { head: Vec::new(), look_at: 1 }
    }
}

enum Packing {
    /// Too few bytes have come to tell.
    Unknown(Vec<u8>),
    Plain,
    Zstd(Box<Decoder<'static>>),
    /// What came cannot be unpacked any further.
    Broken,
}

impl Feed {
    /// Begins with a source's first generation. One that is not to be understood is only counted.
    pub(crate) fn new(source: Source, is_wanted: bool) -> Self {
        let stage = if is_wanted { Stage::begin() } else { Stage::Unread };
        Self { source, is_wanted, stage, packing: Packing::Unknown(Vec::new()), generation: 0, offset: 0 }
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
        packing.unpack(bytes, &mut |plain| {
            if !plain.is_empty() {
                self.take_plain(plain, captured, sink);
            }
        });
        self.packing = packing;
    }

    fn begin_generation(&mut self, generation: u32) {
        self.generation = generation;
        self.offset = 0;
        self.packing = Packing::Unknown(Vec::new());
        match &self.stage {
            // What is in the file's place now may be somebody's.
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
    /// Hands over the bytes as their agent wrote them, in pieces of a bounded size: what is compressed may be a
    /// thousand times as long as it looks.
    fn unpack(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Unknown(first) => {
                first.extend_from_slice(bytes);
                let magic = &ZSTD_MAGIC[..first.len().min(ZSTD_MAGIC.len())];
                if first.starts_with(magic) && first.len() < ZSTD_MAGIC.len() {
                    return;
                }
                let first = std::mem::take(first);
                *self = Self::of(&first);
                self.unpack(&first, each);
            }
            Self::Plain => each(bytes),
            Self::Zstd(decoder) => {
                if unpack_zstd(decoder, bytes, each).is_err() {
                    *self = Self::Broken;
                }
            }
            Self::Broken => {}
        }
    }

    /// Tells by the first bytes how the rest is packed.
    fn of(first: &[u8]) -> Self {
        if !first.starts_with(&ZSTD_MAGIC) {
            return Self::Plain;
        }
        Decoder::new().map_or(Self::Broken, |decoder| Self::Zstd(Box::new(decoder)))
    }
}

fn unpack_zstd(
    decoder: &mut Decoder<'static>,
    bytes: &[u8],
    each: &mut dyn FnMut(&[u8]),
) -> std::io::Result<()> {
    let mut packed = InBuffer::around(bytes);
    let mut piece = vec![0; UNPACKED_BYTES_MAX];
    loop {
        let mut plain = OutBuffer::around(&mut piece[..]);
        decoder.run(&mut packed, &mut plain)?;
        let is_full = plain.pos() == UNPACKED_BYTES_MAX;
        each(plain.as_slice());
        // With room left there is nothing more to be had from what has come.
        if packed.pos() == bytes.len() && !is_full {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], step: usize) -> (Vec<u8>, usize) {
        let mut packing = Packing::Unknown(Vec::new());
        let (mut all, mut longest) = (Vec::new(), 0);
        for bytes in packed.chunks(step) {
            packing.unpack(bytes, &mut |plain| {
                all.extend_from_slice(plain);
                longest = longest.max(plain.len());
            });
        }
        (all, longest)
    }

    #[test]
    fn what_is_packed_comes_out_however_it_is_cut_or_put_together() {
        let plain: Vec<u8> = (0..100_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let frames: Vec<u8> =
            plain.chunks(70_000).flat_map(|part| zstd::encode_all(part, 3).unwrap()).collect();
        for step in [1, 3, 4096, frames.len()] {
            assert!(unpacked(&frames, step).0 == plain, "in steps of {step}");
            assert!(unpacked(&plain, step).0 == plain, "plain in steps of {step}");
        }
        let cut = unpacked(&frames[..frames.len() / 2], frames.len()).0;
        assert!(!cut.is_empty() && plain.starts_with(&cut));
        let mut broken = frames.clone();
        broken[frames.len() / 2..].fill(0xff);
        assert!(plain.starts_with(&unpacked(&broken, 1000).0));
    }

    #[test]
    fn little_that_unpacks_to_much_is_never_in_memory_as_a_whole() {
        let bomb = zstd::encode_all(&vec![b'x'; 64 * 1024 * 1024][..], 3).unwrap();
        assert!(bomb.len() < 16 * 1024);
        let mut packing = Packing::Unknown(Vec::new());
        let (mut count, mut longest) = (0, 0);
        packing.unpack(&bomb, &mut |plain| {
            count += plain.len();
            longest = longest.max(plain.len());
        });
        assert_eq!((count, longest), (64 * 1024 * 1024, UNPACKED_BYTES_MAX));
    }
}
