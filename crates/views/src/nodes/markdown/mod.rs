//! Markdown as nodes: `CommonMark` with tables, task lists and struck text.
//!
//! Inlines are flat: a part of a text has all its styles. Blocks are nested to a limited depth; what is nested deeper
//! becomes part of the deepest block.

mod builder;
#[cfg(test)]
mod tests;

use pulldown_cmark::{Options, Parser};
use serde::Serialize;

/// How deep quotes and lists are nested.
pub(super) const DEPTH_MAX: usize = 12;
/// How much of a text is parsed; the rest is one plain paragraph.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 20;

/// A block of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum MarkdownBlock {
    /// A paragraph.
    Paragraph {
        /// Its text.
        inlines: Vec<Inline>,
    },
    /// A heading.
    Heading {
        /// 1 to 6.
        level: u8,
        /// Its text.
        inlines: Vec<Inline>,
    },
    /// Code, or HTML, as it is.
    Code {
        /// What is written after the fence: usually a language.
        language: Option<String>,
        /// The code, without the last line feed.
        text: String,
    },
    /// A quote.
    Quote {
        /// What it quotes.
        blocks: Vec<MarkdownBlock>,
    },
    /// A list.
    List {
        /// The number of the first item, if the items are numbered.
        start: Option<u64>,
        /// The items.
        items: Vec<ListItem>,
    },
    /// A table.
    Table {
        /// The alignment of each column.
        alignments: Vec<TableAlignment>,
        /// The cells of the first row.
        head: Vec<Vec<Inline>>,
        /// The cells of the other rows.
        rows: Vec<Vec<Vec<Inline>>>,
    },
    /// A line between parts.
    Rule,
}

/// An item of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListItem {
    /// Whether a task is done; `None` if it is not a task.
    pub is_done: Option<bool>,
    /// Its content.
    pub blocks: Vec<MarkdownBlock>,
}

/// A part of a text in one style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inline {
    /// The text; a line feed is a hard break.
    pub text: String,
    /// Its style.
    #[serde(flatten)]
    pub style: InlineStyle,
    /// The address that it links to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// The style of a part of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "Markdown combines them freely")]
pub struct InlineStyle {
    /// Whether it is strong.
    pub strong: bool,
    /// Whether it is emphasised.
    pub emphasis: bool,
    /// Whether it is struck out.
    pub struck: bool,
    /// Whether it is code.
    pub code: bool,
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TableAlignment {
    /// Not given, or to the left.
    Left,
    /// Centred.
    Center,
    /// To the right.
    Right,
}

/// Returns the blocks of a Markdown text.
#[must_use]
pub fn markdown(text: &str) -> Vec<MarkdownBlock> {
    let (parsed, rest) = split(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let parser = Parser::new_ext(parsed, options);
    let mut builder = builder::Builder::new(parsed);
    for (event, span) in parser.into_offset_iter() {
        builder.push(event, span);
    }
    let mut blocks = builder.finish();
    blocks.extend(rest.map(str::trim).filter(|rest| !rest.is_empty()).map(plain_paragraph));
    blocks
}

/// Returns a paragraph without styles.
fn plain_paragraph(text: &str) -> MarkdownBlock {
    let inline = Inline { text: text.to_owned(), style: InlineStyle::default(), link: None };
    MarkdownBlock::Paragraph { inlines: vec![inline] }
}

/// Splits a text that is too long to be parsed, at the end of a line if there is one.
fn split(text: &str) -> (&str, Option<&str>) {
    if text.len() <= TEXT_BYTES_MAX {
        return (text, None);
    }
    let limit = text.floor_char_boundary(TEXT_BYTES_MAX);
    let end = text[..limit].rfind('\n').map_or(limit, |end| end + 1);
    (&text[..end], Some(&text[end..]))
}
