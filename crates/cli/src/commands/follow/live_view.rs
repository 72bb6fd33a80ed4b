//! Draws a session that is being recorded, as it grows.

use std::collections::{BTreeMap, BTreeSet};

use steno_model::{EventType, ExchangeEvent, RunId, Seq};
use steno_session::{Content, PayloadFields, SessionBuilder};
use steno_views::conversation::{Block, Conversation, Item};
use steno_views::digest::SessionDigest;
use steno_views::screen::{Detail, HeaderFacts, Screen, ScreenState, ScreenStyle, UnitKey};

use crate::output::{Output, colors_are_on};
use crate::screen_style::{local_minute, painter};

/// The maximum depth at which subagents of subagents are read.
const CHILD_DEPTH_MAX: usize = 3;

/// A session that grows. It is folded again after each batch of events, from the beginning of its last turn.
pub struct LiveView<'a> {
    run: RunId,
    from: Seq,
    detail: Detail,
    /// Whether the header calls the session live.
    is_live: bool,
    /// The title of the session, if one is known before its events are read.
    title: Option<String>,
    /// The first event, and those of the current turn.
    events: Vec<ExchangeEvent>,
    has_news: bool,
    has_header: bool,
    /// The finished units that were drawn.
    drawn: BTreeSet<UnitKey>,
    /// The calls that were drawn while they ran.
    running: BTreeSet<UnitKey>,
    state: ScreenState,
    /// The subagents whose calls have ended.
    children: BTreeMap<RunId, Conversation>,
    read_child: ReadChild<'a>,
}

/// Reads the recorded conversation of a subagent.
pub type ReadChild<'a> = Box<dyn Fn(RunId) -> Option<Conversation> + 'a>;

impl<'a> LiveView<'a> {
    pub fn new(run: RunId, from: Seq, detail: u8, read_child: ReadChild<'a>) -> Self {
        Self {
            run,
            from,
            detail: Detail::ALL[usize::from(detail).min(Detail::ALL.len() - 1)],
            is_live: false,
            title: None,
            events: Vec::new(),
            has_news: false,
            has_header: false,
            drawn: BTreeSet::new(),
            running: BTreeSet::new(),
            state: ScreenState::default(),
            children: BTreeMap::new(),
            read_child,
        }
    }

    /// Sets the title of the session. The agent's own title may come long after the beginning, which is drawn first.
    pub fn with_title(self, title: Option<String>) -> Self {
        Self { title, ..self }
    }

    /// Sets whether the header calls the session live. The first turn, which is drawn first, may be old.
    pub fn with_live(self, is_live: bool) -> Self {
        Self { is_live, ..self }
    }

    /// Reads the subagents of calls that have ended, and theirs. Those of running calls are only named.
    fn read_children(&mut self, conversation: &Conversation, depth: usize) {
        for run in ended_children(conversation) {
            if depth == 0 || self.children.contains_key(&run) {
                continue;
            }
            let Some(child) = (self.read_child)(run) else { continue };
            self.read_children(&child, depth - 1);
            self.children.insert(run, child);
        }
    }

    /// Takes an event. Events before a new turn are drawn and dropped.
    pub fn push(&mut self, event: ExchangeEvent, output: &mut Output) {
        if is_turn(&event) && self.events.len() > 1 {
            self.draw(output);
            self.events.truncate(1);
            self.children.clear();
        }
        self.has_news = true;
        self.events.push(event);
        // Events before the first wanted one are not drawn.
        if self.events.last().is_some_and(|last| last.seq.next() == self.from) {
            self.parts(&mut |_| {});
        }
    }

    /// Draws new content.
    pub fn draw(&mut self, output: &mut Output) {
        if !std::mem::take(&mut self.has_news) || self.events.last().is_none_or(|last| last.seq < self.from) {
            return;
        }
        let width = output.width();
        self.parts_with(width, &mut |line| output.line(line));
    }

    /// Marks everything so far as drawn.
    fn parts(&mut self, sink: &mut dyn FnMut(&str)) {
        let has_header = self.has_header;
        self.parts_with(None, sink);
        (self.has_header, self.state) = (has_header, ScreenState::default());
    }

    fn parts_with(&mut self, width: Option<usize>, print: &mut dyn FnMut(&str)) {
        let mut builder = SessionBuilder::new(self.run, Content::Whole);
        self.events.iter().for_each(|event| builder.push(event));
        let session = builder.finish();
        let (conversation, mut digest) = (Conversation::of(&session), SessionDigest::of(&session));
        if let Some(title) = &self.title {
            digest.title = Some(title.clone());
        }
        self.read_children(&conversation, CHILD_DEPTH_MAX);
        let style = ScreenStyle {
            paint: &painter(),
            time: &local_minute,
            width,
            detail: self.detail,
            is_folded: width.is_some(),
            has_marks: !colors_are_on(),
            has_every_step: false,
            is_live: true,
            focus: None,
            children: &self.children,
            // It is being recorded, and can be followed by itself.
            absent_child: "`steno follow` with this id shows it",
            directory: digest.directory.as_deref(),
        };
        let mut sink = |line: &str| {
            print(line);
            true
        };
        let mut screen = Screen::new(style, &mut sink).after(self.state);
        if !std::mem::replace(&mut self.has_header, true) {
            let facts = HeaderFacts { is_live: self.is_live, is_beginning: true, ..HeaderFacts::default() };
            screen.header(&digest, &conversation, &facts);
        }
        let (drawn, running) = (&mut self.drawn, &mut self.running);
        screen.parts(&conversation, &mut |key, is_complete| {
            if is_complete {
                drawn.insert(key.clone())
            } else {
                !drawn.contains(key) && running.insert(key.clone())
            }
        });
        self.state = screen.state();
    }
}

/// Returns the subagents of calls that have a result.
fn ended_children(conversation: &Conversation) -> Vec<RunId> {
    let items = conversation.turns.iter().flat_map(|turn| &turn.items).chain(&conversation.outside);
    let blocks = items.flat_map(|item| match item {
        Item::Message(message) => &message.blocks[..],
        Item::Call(call) => &call.blocks,
        Item::Prompt(_) | Item::Approval(_) | Item::Child(_) | Item::Compaction(_) | Item::Fact(_) => &[],
    });
    let calls = blocks.filter_map(|block| match block {
        Block::ToolUse(call) if !call.is_dangling => Some(call),
        Block::ToolUse(_) | Block::ToolResult(_) | Block::Recorded(_) => None,
    });
    calls.flat_map(|call| call.child_runs.iter().map(|child| child.run_id)).collect()
}

/// Returns true if an event begins a turn.
fn is_turn(event: &ExchangeEvent) -> bool {
    event.event_type.known() == Some(EventType::StepStarted)
        && PayloadFields::of(event).text("kind").is_some_and(|kind| kind == "turn")
}
