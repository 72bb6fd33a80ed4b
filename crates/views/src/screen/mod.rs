//! Draws sessions as lines of a terminal: gutters, wrapped text, diffs, folded output.
//!
//! A [`Screen`] gets conversations and writes lines, each as soon as it is known. What a part of a line means is a
//! [`ScreenTone`]; who prints it chooses the colours. The text is complete without colours. All foreign text becomes a segment
//! first, which has no control character; so none of its lines looks like ours, and nothing reaches the terminal raw.

mod call_words;
mod calls;
mod diffs;
mod drawn_units;
mod header;
mod outputs;
mod segments;
mod speech;
mod steps;
mod tables;
#[cfg(test)]
mod tests;
mod units;
mod wrap;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher as _};

use steno_model::{RunId, Timestamp};

use crate::EventRef;
use crate::conversation::Conversation;
use crate::nodes::{AnsiStyle, InlineStyle};

pub use call_words::{call_text, command_line};
pub use drawn_units::DrawnUnits;
pub use header::HeaderFacts;

use segments::{Line, Segment};
use wrap::{Wrap, wrap};

/// The meaning of a part of a line, to choose its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenTone {
    /// Text that was said.
    Plain,
    /// Gutters, times, ids, system steps, hints.
    Frame,
    /// The title of a session.
    Title,
    /// The user.
    User,
    /// The model.
    Model,
    /// What the model thought.
    Thought,
    /// A tool that is called, and what it is called for.
    Call,
    /// A failure and its reason.
    Failed,
    /// No end so far.
    Open,
    /// Unexpected facts: a call without a result, an unknown type.
    Odd,
    /// A heading in a text.
    Heading,
    /// A part of a text.
    Words(InlineStyle),
    /// An address.
    Link,
    /// A line that is added, or a part of one that is the same as before.
    Added,
    /// What is new in an added line.
    AddedPart,
    /// A line that is removed, or a part of one that is the same afterwards.
    Removed,
    /// What is gone from a removed line.
    RemovedPart,
    /// A part of a program's output, in the colours of the program.
    Output(AnsiStyle),
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Prompts and final answers.
    Answers,
    /// Everything that was said, each call as one line, and why calls failed.
    Calls,
    /// Changes as diffs, the output of commands, thoughts; long ones folded.
    Changes,
    /// The output of all calls; only very long ones are folded.
    Outputs,
    /// Everything.
    Everything,
}

impl Detail {
    /// All of them, from the least to the most.
    pub const ALL: [Self; 5] = [Self::Answers, Self::Calls, Self::Changes, Self::Outputs, Self::Everything];

    /// Returns the detail for a subagent within a session.
    fn of_child(self) -> Self {
        match self {
            Self::Answers | Self::Calls => Self::Answers,
            Self::Changes => Self::Calls,
            Self::Outputs => Self::Changes,
            Self::Everything => Self::Everything,
        }
    }
}

/// How a session is drawn.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct ScreenStyle<'a> {
    /// Appends a part of a line in its colour to the line.
    pub paint: &'a dyn Fn(ScreenTone, &str, &mut String),
    /// Returns a time for people.
    pub time: &'a dyn Fn(&Timestamp) -> String,
    /// The width of the terminal; `None` if lines are not wrapped.
    pub width: Option<usize>,
    /// How much is shown.
    pub detail: Detail,
    /// Whether long outputs are folded.
    pub is_folded: bool,
    /// Whether the marks of Markdown are kept, because there are no colours.
    pub has_marks: bool,
    /// Whether consecutive system steps are all shown.
    pub has_every_step: bool,
    /// Whether the session goes on: a call without a result is running.
    pub is_live: bool,
    /// An event whose call is shown with its whole output.
    pub focus: Option<EventRef>,
    /// The conversations of child runs, which are drawn below their call.
    pub children: &'a BTreeMap<RunId, Conversation>,
    /// What is said of a child run that is not among them.
    pub absent_child: &'a str,
    /// The directory that paths are relative to.
    pub directory: Option<&'a str>,
}

/// The widest line of text; longer lines are hard to read.
const TEXT_COLUMNS_MAX: usize = 100;
/// The columns before the bar of the gutter.
const GUTTER_COLUMNS: usize = 5;
/// The columns before the text.
const INDENT_COLUMNS: usize = 7;
/// The fewest columns for text, however narrow the terminal is.
const COLUMNS_MIN: usize = 20;
/// How deep subagents are drawn within their sessions; deeper ones are linked.
const CHILD_DEPTH_MAX: usize = 3;

/// What was drawn last, with which another screen continues.
#[derive(Clone, Copy, Debug)]
pub struct ScreenState {
    is_blank: bool,
    last: steps::DrawnKind,
}

impl Default for ScreenState {
    fn default() -> Self {
        Self { is_blank: true, last: steps::DrawnKind::Heading }
    }
}

/// Draws sessions.
pub struct Screen<'a> {
    style: ScreenStyle<'a>,
    /// Takes a line; returns false if nobody reads any more.
    sink: &'a mut dyn FnMut(&str) -> bool,
    /// Bars of the sessions around this one.
    margin: String,
    depth: usize,
    state: ScreenState,
    is_closed: bool,
    /// The child runs that were drawn.
    drawn: BTreeSet<RunId>,
    /// The last line, whose memory the next one uses.
    line: String,
}

impl<'a> Screen<'a> {
    /// Makes a screen that writes lines to a sink, which returns false to stop.
    pub fn new(style: ScreenStyle<'a>, sink: &'a mut dyn FnMut(&str) -> bool) -> Self {
        Self {
            style,
            sink,
            margin: String::new(),
            depth: 0,
            state: ScreenState::default(),
            is_closed: false,
            drawn: BTreeSet::new(),
            line: String::new(),
        }
    }

    /// Continues where another screen ended.
    #[must_use]
    pub fn after(mut self, state: ScreenState) -> Self {
        self.state = state;
        self
    }

    /// Returns what another screen needs to continue.
    #[must_use]
    pub fn state(&self) -> ScreenState {
        self.state
    }

    /// Tells whether a child run was drawn below its call.
    #[must_use]
    pub fn has_drawn(&self, run: RunId) -> bool {
        self.drawn.contains(&run)
    }

    /// Tells whether the sink takes no more lines.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Writes an empty line, unless the last one is empty.
    fn blank(&mut self) {
        if !self.state.is_blank {
            self.put_line(&[], &[]);
            self.state.is_blank = true;
        }
    }

    /// Writes a line after a prefix; the lines that it is wrapped to have another prefix.
    fn put(&mut self, prefixes: [&[Segment]; 2], line: &[Segment], mode: Wrap) {
        let Some(width) = self.style.width else { return self.put_line(prefixes[0], line) };
        let mut prefix = prefixes[0];
        for part in wrap(line, Some(self.columns_after(width, prefixes, mode)), mode) {
            self.put_line(prefix, &part);
            prefix = prefixes[1];
        }
    }

    fn columns_after(&self, width: usize, prefixes: [&[Segment]; 2], mode: Wrap) -> usize {
        let prefix = prefixes.map(segments::columns).into_iter().max().unwrap_or(0);
        let used = crate::columns_of(&self.margin) + prefix;
        let width = if mode == Wrap::Words { width.min(TEXT_COLUMNS_MAX) } else { width };
        width.saturating_sub(used).max(COLUMNS_MIN)
    }

    /// Returns how many columns there are for text after the gutter.
    fn text_columns(&self) -> Option<usize> {
        let used = crate::columns_of(&self.margin) + INDENT_COLUMNS;
        self.style.width.map(|width| width.min(TEXT_COLUMNS_MAX).saturating_sub(used).max(COLUMNS_MIN))
    }

    fn put_line(&mut self, prefix: &[Segment], line: &[Segment]) {
        // Spaces at the end would be invisible, and some terminals wrap them.
        let has_text = |segment: &Segment| !segment.text.trim_end().is_empty();
        let len = match line.iter().rposition(has_text) {
            Some(last) => prefix.len() + last + 1,
            None => prefix.iter().rposition(has_text).map_or(0, |last| last + 1),
        };
        let margin = if len == 0 { self.margin.trim_end() } else { self.margin.as_str() };
        self.line.clear();
        if !margin.is_empty() {
            (self.style.paint)(ScreenTone::Frame, margin, &mut self.line);
        }
        for (number, segment) in prefix.iter().chain(line).take(len).enumerate() {
            let text = if number + 1 == len { segment.text.trim_end() } else { segment.text.as_str() };
            if segment.tone == ScreenTone::Plain || text.is_empty() {
                self.line.push_str(text);
            } else {
                (self.style.paint)(segment.tone, text, &mut self.line);
            }
        }
        if !self.is_closed {
            self.is_closed = !(self.sink)(&self.line);
        }
        self.state.is_blank = len == 0;
    }
}

/// Returns the hash of a content.
fn hash_of<T: Hash + ?Sized>(content: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// Returns spaces.
fn spaces(columns: usize) -> Segment {
    Segment::new(ScreenTone::Plain, &" ".repeat(columns))
}

/// Returns a line of one segment.
fn one(tone: ScreenTone, text: &str) -> Line {
    vec![Segment::new(tone, text)]
}
