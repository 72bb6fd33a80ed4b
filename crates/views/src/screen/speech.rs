//! Draws Markdown: what the model says.

use super::segments::{Line, Segment, columns};
use super::tables::table_lines;
use super::wrap::{Wrap, wrap};
use super::{ScreenTone, one, spaces};
use crate::nodes::{Inline, ListItem, MarkdownBlock};

/// How Markdown is drawn.
#[derive(Clone, Copy)]
pub(super) struct SpeechStyle {
    /// The columns for the text; `None` if lines are not wrapped.
    pub(super) columns: Option<usize>,
    /// Whether the marks of Markdown are kept, because there are no colours.
    pub(super) has_marks: bool,
}

impl SpeechStyle {
    /// Returns the style for text that is indented.
    fn inside(self, columns: usize) -> Self {
        Self { columns: self.columns.map(|all| all.saturating_sub(columns).max(super::COLUMNS_MIN)), ..self }
    }
}

/// Returns the lines of a text, wrapped.
pub(super) fn markdown_lines(blocks: &[MarkdownBlock], style: SpeechStyle) -> Vec<Line> {
    let mut lines = Vec::new();
    for block in blocks {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(block_lines(block, style));
    }
    lines
}

fn block_lines(block: &MarkdownBlock, style: SpeechStyle) -> Vec<Line> {
    match block {
        MarkdownBlock::Paragraph { inlines } => paragraph(inlines, style),
        MarkdownBlock::Heading { level, inlines } => {
            let mut lines = paragraph(inlines, style.inside(usize::from(*level) + 1));
            for segment in lines.iter_mut().flatten() {
                segment.tone = ScreenTone::Heading;
            }
            let hashes = format!("{} ", "#".repeat(usize::from(*level)));
            prefixed(lines, &one(ScreenTone::Frame, &hashes), &[spaces(hashes.len())])
        }
        MarkdownBlock::Code { language, text } => code(language.as_deref(), text, style),
        MarkdownBlock::Quote { blocks } => {
            let bar = one(ScreenTone::Frame, if style.has_marks { "> " } else { "▌ " });
            prefixed(markdown_lines(blocks, style.inside(2)), &bar, &bar)
        }
        MarkdownBlock::List { start, items } => list(*start, items, style),
        MarkdownBlock::Table { alignments, head, rows } => table_lines(alignments, head, rows, style),
        MarkdownBlock::Rule => vec![one(ScreenTone::Frame, "────────")],
    }
}

fn paragraph(inlines: &[Inline], style: SpeechStyle) -> Vec<Line> {
    let lines = inline_lines(inlines, style);
    lines.iter().flat_map(|line| wrap(line, style.columns, Wrap::Words)).collect()
}

/// Returns inlines as lines; a line feed is the end of one.
pub(super) fn inline_lines(inlines: &[Inline], style: SpeechStyle) -> Vec<Line> {
    let mut lines = vec![Line::new()];
    for inline in inlines {
        let (before, after) = if style.has_marks { marks(inline) } else { (String::new(), String::new()) };
        let text = format!("{before}{}{after}", inline.text);
        for (number, text) in text.split('\n').enumerate() {
            if number > 0 {
                lines.push(Line::new());
            }
            let line = lines.last_mut().expect("there is one");
            line.push(Segment::new(ScreenTone::Words(inline.style), text));
        }
        let address = inline.link.as_deref().filter(|link| *link != inline.text);
        let line = lines.last_mut().expect("there is one");
        line.extend(address.map(|link| Segment::new(ScreenTone::Link, &format!(" ({link})"))));
    }
    lines
}

/// Returns the marks before and after a part of a text.
fn marks(inline: &Inline) -> (String, String) {
    let style = inline.style;
    let marks = [(style.strong, "**"), (style.emphasis, "*"), (style.struck, "~~"), (style.code, "`")];
    let marks: Vec<&str> = marks.into_iter().filter(|(is_on, _)| *is_on).map(|(_, mark)| mark).collect();
    (marks.concat(), marks.iter().rev().copied().collect())
}

fn code(language: Option<&str>, text: &str, style: SpeechStyle) -> Vec<Line> {
    let tone =
        ScreenTone::Words(crate::nodes::InlineStyle { code: true, ..crate::nodes::InlineStyle::default() });
    let body = style.inside(2);
    let lines = text.lines().flat_map(|line| wrap(&one(tone, line), body.columns, Wrap::Output));
    if !style.has_marks {
        let bar = one(ScreenTone::Frame, "▎ ");
        return prefixed(lines.collect(), &bar, &bar);
    }
    let fence = |words: &str| one(ScreenTone::Frame, &format!("```{words}"));
    std::iter::once(fence(language.unwrap_or_default())).chain(lines).chain([fence("")]).collect()
}

fn list(start: Option<u64>, items: &[ListItem], style: SpeechStyle) -> Vec<Line> {
    let mut lines = Vec::new();
    let last = start.map(|start| start.saturating_add(items.len() as u64).saturating_sub(1));
    let number_columns = last.map_or(0, |last| last.to_string().len());
    let is_loose = items.iter().any(|item| item.blocks.len() > 1 && !is_tight(item));
    for (number, item) in items.iter().enumerate() {
        let mark = match (start, item.is_done) {
            (_, Some(true)) => "☑ ".to_owned(),
            (_, Some(false)) => "☐ ".to_owned(),
            (Some(start), None) => format!("{:>number_columns$}. ", start.saturating_add(number as u64)),
            (None, None) => "• ".to_owned(),
        };
        let mark = one(ScreenTone::Frame, &mark);
        if is_loose && number > 0 {
            lines.push(Line::new());
        }
        let indent = columns(&mark);
        let mut inner: Vec<Line> = Vec::new();
        for block in &item.blocks {
            let is_list = matches!(block, MarkdownBlock::List { .. });
            if !inner.is_empty() && !is_list {
                inner.push(Line::new());
            }
            inner.extend(block_lines(block, style.inside(indent)));
        }
        if inner.is_empty() {
            inner.push(Line::new());
        }
        lines.extend(prefixed(inner, &mark, &[spaces(indent)]));
    }
    lines
}

/// Tells whether an item is a line with lists below it.
fn is_tight(item: &ListItem) -> bool {
    item.blocks.iter().skip(1).all(|block| matches!(block, MarkdownBlock::List { .. }))
}

/// Puts a prefix before each line.
fn prefixed(lines: Vec<Line>, first: &[Segment], rest: &[Segment]) -> Vec<Line> {
    let with = |(number, line): (usize, Line)| {
        let prefix = if number == 0 { first } else { rest };
        prefix.iter().cloned().chain(line).collect()
    };
    lines.into_iter().enumerate().map(with).collect()
}
