//! Builds nodes from the events of the parser, without recursion.

use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Tag, TagEnd};

use super::{DEPTH_MAX, Inline, InlineStyle, ListItem, MarkdownBlock, TableAlignment, plain_paragraph};

/// A block that has begun and not ended.
enum OpenBlock {
    Quote(Vec<MarkdownBlock>),
    List { start: Option<u64>, items: Vec<ListItem> },
    Item(ListItem),
    Table(OpenTable),
}

#[derive(Default)]
struct OpenTable {
    alignments: Vec<TableAlignment>,
    rows: Vec<Vec<Vec<Inline>>>,
    row: Vec<Vec<Inline>>,
    source: Range<usize>,
    /// Whether a row has more cells than the head: Markdown would drop them.
    is_ragged: bool,
}

/// How often each style is switched on.
#[derive(Default)]
struct Switches {
    strong: u32,
    emphasis: u32,
    struck: u32,
}

pub(super) struct Builder<'a> {
    text: &'a str,
    blocks: Vec<MarkdownBlock>,
    open: Vec<OpenBlock>,
    /// How many containers are too deep and therefore not open.
    too_deep: usize,
    inlines: Vec<Inline>,
    switches: Switches,
    links: Vec<(String, String)>,
    heading: Option<u8>,
    code: Option<(Option<String>, String)>,
    /// Up to where the source is in nodes.
    covered: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            blocks: Vec::new(),
            open: Vec::new(),
            too_deep: 0,
            inlines: Vec::new(),
            switches: Switches::default(),
            links: Vec::new(),
            heading: None,
            code: None,
            covered: 0,
        }
    }

    pub(super) fn push(&mut self, event: Event<'_>, span: Range<usize>) {
        if !is_container(&event) {
            self.cover(&span);
        }
        match event {
            Event::Start(tag) => self.start(tag, span),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => self.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline(&text, InlineStyle { code: true, ..self.style() });
            }
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
            // The width of the text is for those who draw it.
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.flush();
                self.add(MarkdownBlock::Rule);
            }
            Event::TaskListMarker(is_done) => {
                if let Some(OpenBlock::Item(item)) = self.open.last_mut() {
                    item.is_done = Some(is_done);
                }
            }
        }
    }

    /// Adds what stands before a part of the source and is in no node: definitions of links. For Markdown they are not part
    /// of the text, but people write notes that look like them.
    fn cover(&mut self, span: &Range<usize>) {
        let gap = self.text.get(self.covered..span.start).unwrap_or_default().trim();
        if gap.contains("]:") {
            self.flush();
            self.add(plain_paragraph(gap));
        }
        self.covered = self.covered.max(span.end);
    }

    pub(super) fn finish(mut self) -> Vec<MarkdownBlock> {
        let end = self.text.len();
        self.flush();
        self.cover(&(end..end));
        while let Some(block) = self.open.pop() {
            self.close(block);
        }
        self.blocks
    }

    fn start(&mut self, tag: Tag<'_>, span: Range<usize>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.heading = Some(level as u8);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) if !info.is_empty() => Some(info.into_string()),
                    CodeBlockKind::Fenced(_) | CodeBlockKind::Indented => None,
                };
                self.code = Some((language, String::new()));
            }
            Tag::HtmlBlock => {
                self.flush();
                self.code = Some((None, String::new()));
            }
            Tag::BlockQuote(_) => self.open(OpenBlock::Quote(Vec::new())),
            Tag::List(start) => self.open(OpenBlock::List { start, items: Vec::new() }),
            Tag::Item => self.open(OpenBlock::Item(ListItem::default())),
            Tag::Table(alignments) => {
                let alignments = alignments.into_iter().map(alignment).collect();
                self.open(OpenBlock::Table(OpenTable { alignments, source: span, ..OpenTable::default() }));
            }
            Tag::TableRow => self.check_cells(&self.text[span]),
            Tag::Strong => self.switches.strong += 1,
            Tag::Emphasis => self.switches.emphasis += 1,
            Tag::Strikethrough => self.switches.struck += 1,
            Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. } => {
                self.links.push((dest_url.into_string(), title.into_string()));
            }
            Tag::Paragraph
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_)
            | Tag::TableHead
            | Tag::TableCell
            | Tag::Superscript
            | Tag::Subscript => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::DefinitionListTitle => self.flush(),
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                if let Some((language, mut text)) = self.code.take() {
                    if text.ends_with('\n') {
                        text.pop();
                    }
                    self.add(MarkdownBlock::Code { language, text });
                }
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item | TagEnd::Table => self.leave(),
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = self.table() {
                    let row = std::mem::take(&mut table.row);
                    table.rows.push(row);
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inlines);
                match self.table() {
                    Some(table) => table.row.push(cell),
                    None => self.inlines = cell,
                }
            }
            TagEnd::Strong => self.switches.strong = self.switches.strong.saturating_sub(1),
            TagEnd::Emphasis => self.switches.emphasis = self.switches.emphasis.saturating_sub(1),
            TagEnd::Strikethrough => self.switches.struck = self.switches.struck.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_)
            | TagEnd::Superscript
            | TagEnd::Subscript => {}
        }
    }

    /// Ends a link; a picture or link without words is shown by its address.
    fn end_link(&mut self) {
        let Some((url, title)) = self.links.last().cloned() else { return };
        let has_words = self.inlines.last().is_some_and(|inline| inline.link.as_ref() == Some(&url));
        if !has_words {
            self.inline(&url, self.style());
        }
        self.links.pop();
        if !title.is_empty() {
            self.text(&format!(" ({title})"));
        }
    }

    fn table(&mut self) -> Option<&mut OpenTable> {
        match self.open.last_mut() {
            Some(OpenBlock::Table(table)) if self.too_deep == 0 => Some(table),
            Some(OpenBlock::Table(_) | OpenBlock::Quote(_) | OpenBlock::List { .. } | OpenBlock::Item(_))
            | None => None,
        }
    }

    fn check_cells(&mut self, row: &str) {
        let mut bars = row.trim().trim_matches('|').split('|').collect::<Vec<_>>();
        // A bar behind a backslash is a letter.
        bars.retain(|cell| !cell.ends_with('\\'));
        let cells = bars.len();
        if let Some(table) = self.table() {
            table.is_ragged |= cells > table.alignments.len();
        }
    }

    fn style(&self) -> InlineStyle {
        InlineStyle {
            strong: self.switches.strong > 0,
            emphasis: self.switches.emphasis > 0,
            struck: self.switches.struck > 0,
            code: false,
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None => self.inline(text, self.style()),
        }
    }

    fn inline(&mut self, text: &str, style: InlineStyle) {
        let link = self.links.last().map(|(url, _)| url);
        match self.inlines.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style && last.link.as_ref() == link => last.text.push_str(text),
            _ => self.inlines.push(Inline { text: text.to_owned(), style, link: link.cloned() }),
        }
    }

    /// Ends the paragraph or heading that is being read.
    fn flush(&mut self) {
        let (inlines, heading) = (std::mem::take(&mut self.inlines), self.heading.take());
        if inlines.is_empty() {
            return;
        }
        self.add(match heading {
            Some(level) => MarkdownBlock::Heading { level, inlines },
            None => MarkdownBlock::Paragraph { inlines },
        });
    }

    fn open(&mut self, block: OpenBlock) {
        self.flush();
        if self.open.len() < DEPTH_MAX && self.too_deep == 0 {
            self.open.push(block);
        } else {
            self.too_deep += 1;
        }
    }

    fn leave(&mut self) {
        self.flush();
        if self.too_deep > 0 {
            self.too_deep -= 1;
        } else if let Some(block) = self.open.pop() {
            self.close(block);
        }
    }

    fn close(&mut self, block: OpenBlock) {
        let made = match block {
            OpenBlock::Quote(blocks) => MarkdownBlock::Quote { blocks },
            OpenBlock::List { start, items } => MarkdownBlock::List { start, items },
            OpenBlock::Item(item) => {
                match self.open.last_mut() {
                    Some(OpenBlock::List { items, .. }) => items.push(item),
                    Some(OpenBlock::Quote(_) | OpenBlock::Item(_) | OpenBlock::Table(_)) | None => {
                        item.blocks.into_iter().for_each(|block| self.add(block));
                    }
                }
                return;
            }
            OpenBlock::Table(table) if table.is_ragged => {
                let text = self.text[table.source].trim_end().to_owned();
                MarkdownBlock::Code { language: None, text }
            }
            OpenBlock::Table(mut table) => {
                let head = if table.rows.is_empty() { Vec::new() } else { table.rows.remove(0) };
                MarkdownBlock::Table { alignments: table.alignments, head, rows: table.rows }
            }
        };
        self.add(made);
    }

    /// Adds a block to the innermost block that is open.
    fn add(&mut self, block: MarkdownBlock) {
        match self.open.last_mut() {
            Some(OpenBlock::Quote(blocks)) => blocks.push(block),
            Some(OpenBlock::Item(item)) => item.blocks.push(block),
            Some(OpenBlock::List { items, .. }) => {
                items.push(ListItem { is_done: None, blocks: vec![block] });
            }
            Some(OpenBlock::Table(_)) | None => self.blocks.push(block),
        }
    }
}

/// Tells whether an event is about a block that has other blocks in it.
fn is_container(event: &Event<'_>) -> bool {
    matches!(event, Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) | Event::End(_))
}

fn alignment(alignment: Alignment) -> TableAlignment {
    match alignment {
        Alignment::None | Alignment::Left => TableAlignment::Left,
        Alignment::Center => TableAlignment::Center,
        Alignment::Right => TableAlignment::Right,
    }
}
