//! Draws a session that is being recorded, as it grows.

use std::collections::{BTreeMap, BTreeSet};

use steno_model::RunId;
use steno_session::Session;
use steno_views::conversation::{Block, Conversation, Item};
use steno_views::digest::SessionDigest;
use steno_views::screen::{Detail, DrawnUnits, HeaderFacts, Screen, ScreenState, ScreenStyle};

use crate::output::{Output, colors_are_on};
use crate::screen_style::{local_minute, painter};

/// The maximum depth at which subagents of subagents are read.
const CHILD_DEPTH_MAX: usize = 3;

/// What of a session was drawn.
pub struct LiveView {
    detail: Detail,
    /// Whether the header calls the session live. The first turn, which is drawn first, may be old.
    is_live: bool,
    /// The title of the session, if one is known before its events are read. The agent's own title may come long after the
    /// beginning.
    title: Option<String>,
    has_header: bool,
    drawn: DrawnUnits,
    state: ScreenState,
    /// The subagents that were drawn.
    children: BTreeSet<RunId>,
}

/// A session as it is now.
pub struct SessionNow<'a> {
    pub session: Session,
    /// Whether nothing more is expected.
    pub has_ended: bool,
    /// Reads what is recorded of a subagent so far.
    pub read_child: &'a dyn Fn(RunId) -> Option<Conversation>,
}

impl LiveView {
    pub fn new(detail: u8, title: Option<String>, is_live: bool) -> Self {
        Self {
            detail: Detail::ALL[usize::from(detail).min(Detail::ALL.len() - 1)],
            is_live,
            title,
            has_header: false,
            drawn: DrawnUnits::default(),
            state: ScreenState::default(),
            children: BTreeSet::new(),
        }
    }

    /// Takes a session as drawn.
    pub fn skip(&mut self, session: &Session) {
        let now =
            Drawing { conversation: Conversation::of(session), children: BTreeMap::new(), has_ended: true };
        self.draw_on(&now, None, None, &mut |_| {});
        self.state = ScreenState::default();
    }

    /// Draws what is new of a session.
    pub fn draw(&mut self, now: &SessionNow<'_>, output: &mut Output) {
        let conversation = Conversation::of(&now.session);
        let mut digest = SessionDigest::of(&now.session);
        if let Some(title) = &self.title {
            digest.title = Some(title.clone());
        }
        let mut children = BTreeMap::new();
        self.read_children(&conversation, now, CHILD_DEPTH_MAX, &mut children);
        let drawing = Drawing { conversation, children, has_ended: now.has_ended };
        let width = output.width();
        self.draw_on(&drawing, Some(&digest), width, &mut |line| output.line(line));
        self.children.extend(drawing.children.into_keys());
    }

    /// Reads the subagents of calls that have ended, and theirs, unless they were drawn. Those of running calls are only named.
    fn read_children(
        &self,
        conversation: &Conversation,
        now: &SessionNow<'_>,
        depth: usize,
        children: &mut BTreeMap<RunId, Conversation>,
    ) {
        for run in ended_children(conversation) {
            if depth == 0 || self.children.contains(&run) || children.contains_key(&run) {
                continue;
            }
            let Some(child) = (now.read_child)(run) else { continue };
            self.read_children(&child, now, depth - 1, children);
            children.insert(run, child);
        }
    }

    /// Draws what is new; without a digest there is no header.
    fn draw_on(
        &mut self,
        now: &Drawing,
        digest: Option<&SessionDigest>,
        width: Option<usize>,
        print: &mut dyn FnMut(&str),
    ) {
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
            children: &now.children,
            // It is being recorded, and can be followed by itself.
            absent_child: "`steno follow` with this id shows it",
            directory: digest.and_then(|digest| digest.directory.as_deref()),
        };
        let mut sink = |line: &str| {
            print(line);
            true
        };
        let mut screen = Screen::new(style, &mut sink).after(self.state);
        if let Some(digest) = digest.filter(|_| !self.has_header) {
            self.has_header = true;
            let facts = HeaderFacts { is_live: self.is_live, is_beginning: true, ..HeaderFacts::default() };
            screen.header(digest, &now.conversation, &facts);
        }
        screen.news(&now.conversation, &mut self.drawn, now.has_ended);
        self.state = screen.state();
    }
}

/// What is drawn.
struct Drawing {
    conversation: Conversation,
    children: BTreeMap<RunId, Conversation>,
    has_ended: bool,
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
