//! Texts as nodes: Markdown, diffs, and output with colours, each parsed once for all renderers.
//!
//! [`markdown()`] reads texts of people and models, [`call_diffs()`] the changes of an editing tool, [`ansi_lines()`]
//! the output of a program. Nodes have no widths and no terminal colours, and they are serialisable. Their texts are as
//! recorded: each renderer must escape them for its medium.
//!
//! Every parser takes any input, keeps all visible text, and has limits for the depth and size of its result.

mod ansi;
mod diff;
mod markdown;

pub use ansi::{AnsiColorName, AnsiSpan, AnsiStyle, ansi_lines};
pub(crate) use diff::command_patch;
pub use diff::{
    DiffLine, DiffLineKind, FileChangeKind, FileDiff, Hunk, LinePart, RECORDED_PATCHES, call_diffs,
};
pub use markdown::{Inline, InlineStyle, ListItem, MarkdownBlock, TableAlignment, markdown};
