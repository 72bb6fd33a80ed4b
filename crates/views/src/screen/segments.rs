//! Parts of a line, made harmless.

use std::borrow::Cow;

use crate::visible::{Lines, visible};

use super::ScreenTone;

/// How a tab is shown.
const TAB: &str = "    ";

/// A part of a line. Its text has no control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) text: String,
    pub(super) tone: ScreenTone,
}

/// The parts of a line.
pub(super) type Line = Vec<Segment>;

impl Segment {
    /// Takes any text; what would control a terminal is shown instead.
    pub(super) fn new(tone: ScreenTone, text: &str) -> Self {
        let text =
            if text.contains('\t') { Cow::Owned(text.replace('\t', TAB)) } else { Cow::Borrowed(text) };
        Self { text: visible(&text, Lines::Escape).into_owned(), tone }
    }
}

/// Returns how many columns a line takes.
pub(super) fn columns(line: &[Segment]) -> usize {
    line.iter().map(|segment| crate::columns_of(&segment.text)).sum()
}
