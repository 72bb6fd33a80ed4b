//! Texts as nodes: Markdown, diffs, and output with colours, each parsed once for all that draw it.
//!
//! [`markdown()`] reads what people and models write, [`call_diffs()`] what an editing tool changed, [`ansi_lines()`] what a
//! program printed. Nodes have no widths and no colours of a terminal, and they are serialisable. Their texts are as they
//! were recorded: whoever draws them makes them harmless for its medium.
//!
//! Every parser takes any input, keeps all visible text, and has limits for the depth and size of what it makes.

mod ansi;
mod diff;
mod markdown;

pub use ansi::{AnsiColorName, AnsiSpan, AnsiStyle, ansi_lines};
pub(crate) use diff::command_patch;
pub use diff::{
    DiffLine, DiffLineKind, FileChangeKind, FileDiff, Hunk, LinePart, RECORDED_PATCHES, call_diffs,
};
pub use markdown::{Inline, InlineStyle, ListItem, MarkdownBlock, TableAlignment, markdown};
