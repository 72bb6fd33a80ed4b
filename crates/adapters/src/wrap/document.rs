//! Reads output that is one JSON document over many lines: joins the lines, and finds where each record is in the wrap.

use super::line_place::{Jump, LinePlace};
use crate::documents::{SplitRule, Splitter};
use crate::lines::Line;

/// The lines of output that may be a document.
pub(crate) struct WrapDocument {
    splitter: Splitter,
    /// How long all lines are so far, with their ends.
    len: u64,
    /// Where pieces of the output are in the wrap: how much comes before each, and its offset.
    pieces: Vec<(u64, u64)>,
}

impl WrapDocument {
    pub(crate) fn new(splitting: SplitRule) -> Self {
        Self { splitter: Splitter::new(splitting), len: 0, pieces: Vec::new() }
    }

    /// Takes the next line, and hands over each record that it completes, with its place.
    pub(crate) fn feed(
        &mut self,
        place: LinePlace<'_>,
        line: &[u8],
        mut each: impl FnMut(LinePlace<'_>, Line<'_>),
    ) {
        self.pieces.push((self.len, place.start));
        for jump in place.jumps {
            self.pieces.push((self.len + jump.at, place.offset(jump.at)));
        }
        let Self { splitter, len, pieces } = self;
        for bytes in [line, b"\n"] {
            splitter.feed(*len, bytes, |at, record| give(pieces, at, record, &mut each));
            *len += bytes.len() as u64;
        }
        if self.splitter.unfinished().is_none() {
            self.pieces.clear();
        }
    }

    /// Hands over what is incomplete.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(LinePlace<'_>, Line<'_>)) {
        let Self { splitter, pieces, .. } = self;
        splitter.finish(|at, record| give(pieces, at, record, &mut each));
        pieces.clear();
    }
}

/// Hands over a record that begins at a point of the output.
fn give(pieces: &[(u64, u64)], at: u64, record: Line<'_>, each: &mut impl FnMut(LinePlace<'_>, Line<'_>)) {
    let first = pieces.partition_point(|(before, _)| *before <= at).saturating_sub(1);
    let Some((before, offset)) = pieces.get(first) else { return };
    let start = offset + (at - before);
    let later = pieces[first + 1..].iter();
    let jumps: Vec<Jump> = later
        .map(|(before, offset)| Jump { at: before - at, skipped: offset - start - (before - at) })
        .collect();
    each(LinePlace { start, jumps: &jumps }, record);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::DocumentShape;

    #[test]
    fn record_over_several_lines_has_the_places_of_its_bytes() {
        let mut document = WrapDocument::new(SplitRule::Documents(DocumentShape::Whole));
        let mut records = Vec::new();
        let jumps = [Jump { at: 2, skipped: 50 }];
        let lines = [
            (LinePlace::at(100), "{"),
            (LinePlace { start: 102, jumps: &jumps }, "\"a\":1"),
            (LinePlace::at(300), "}"),
        ];
        for (place, line) in lines {
            document.feed(place, line.as_bytes(), |place, record| {
                let Line::Whole(bytes) = record else { return };
                let places: Vec<u64> = [0, 2, 4, 8].map(|at| place.offset(at)).to_vec();
                records.push((String::from_utf8_lossy(bytes).into_owned(), places));
            });
        }
        assert_eq!(records, [("{\n\"a\":1\n}".to_owned(), vec![100, 102, 154, 300])]);
    }
}
