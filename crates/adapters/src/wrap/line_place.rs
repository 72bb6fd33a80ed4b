//! Where the bytes of a line are in a source: in one piece, or in several with other bytes between them.

/// A point in a line from which on its bytes are further on in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    /// The first byte of the line after it.
    pub(crate) at: u64,
    /// How many bytes of the source do not belong to the line, up to here.
    pub(crate) skipped: u64,
}

/// The position of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePlace<'a> {
    /// Where its first byte is.
    pub(crate) start: u64,
    pub(crate) jumps: &'a [Jump],
}

impl LinePlace<'_> {
    /// Returns the place of a line in one piece.
    pub(crate) fn at(start: u64) -> LinePlace<'static> {
        LinePlace { start, jumps: &[] }
    }

    /// Returns where a byte of the line is.
    pub(crate) fn offset(&self, at: u64) -> u64 {
        let before = self.jumps.partition_point(|jump| jump.at <= at);
        let skipped = before.checked_sub(1).map_or(0, |last| self.jumps[last].skipped);
        self.start + at + skipped
    }

    /// Tells whether an offset is that of a byte of the line, or the next one after its last.
    pub(crate) fn covers(&self, offset: u64, len: u64) -> bool {
        let mut from = (0, self.start);
        for jump in self.jumps {
            if (from.1..from.1 + (jump.at - from.0)).contains(&offset) {
                return true;
            }
            from = (jump.at, self.start + jump.at + jump.skipped);
        }
        (from.1..=from.1 + (len - from.0)).contains(&offset)
    }

    /// Returns how many bytes of the source lie between the first and the last byte of a part, both included.
    pub(crate) fn span(&self, at: u64, len: u64) -> u64 {
        len.checked_sub(1).map_or(0, |last| self.offset(at + last) + 1 - self.offset(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_spans_what_is_between_its_bytes() {
        let jumps = [Jump { at: 3, skipped: 10 }, Jump { at: 5, skipped: 30 }];
        let place = LinePlace { start: 100, jumps: &jumps };
        let offsets: Vec<u64> = (0..7).map(|at| place.offset(at)).collect();
        assert_eq!(offsets, [100, 101, 102, 113, 114, 135, 136]);
        assert_eq!((place.span(0, 3), place.span(0, 4), place.span(3, 2), place.span(2, 4)), (3, 14, 2, 34));
        assert_eq!(place.span(4, 0), 0);
        let covered: Vec<u64> = (98..140).filter(|offset| place.covers(*offset, 7)).collect();
        assert_eq!(covered, [100, 101, 102, 113, 114, 135, 136, 137], "its newline too");
        assert_eq!((LinePlace::at(7).offset(2), LinePlace::at(7).span(2, 5)), (9, 5));
    }
}
