//! A position in a line, whose bytes may be in several places of a source.

use steno_model::Lane;

use crate::wrap::LinePlace;

/// A position in a line of a source.
#[derive(Clone, Copy)]
pub(super) struct SourceOffset<'a> {
    pub(super) lane: Lane,
    pub(super) line: LinePlace<'a>,
    /// The byte of the line.
    pub(super) at: u64,
}

impl SourceOffset<'_> {
    /// Returns the first byte of a line in one piece.
    pub(super) fn of(lane: Lane, start: u64) -> SourceOffset<'static> {
        SourceOffset { lane, line: LinePlace::at(start), at: 0 }
    }

    /// Returns the position of a later byte.
    pub(super) fn after(self, bytes: usize) -> Self {
        Self { at: self.at + bytes as u64, ..self }
    }

    /// Returns where the byte is in the source.
    pub(super) fn offset(self) -> u64 {
        self.line.offset(self.at)
    }

    /// Returns how many bytes of the source a part of the line spans.
    pub(super) fn span(self, len: u64) -> u64 {
        self.line.span(self.at, len)
    }
}
