//! A conversation as a list of units, each drawn on its own: what was said, a call with its result, a step.

use steno_model::RunId;

use super::Screen;
use crate::conversation::{
    Approval, Block, BlockText, ChildRun, Conversation, Fact, Item, ToolResult, ToolUse, Turn, block_text,
};

/// A unit of a conversation.
#[derive(Clone)]
pub(super) struct Unit<'a> {
    /// The turn that it is in.
    pub(super) turn: Option<&'a Turn>,
    pub(super) content: UnitContent<'a>,
    /// Whether it is the end of a text that comes in parts.
    pub(super) may_grow: bool,
}

#[derive(Clone)]
pub(super) enum UnitContent<'a> {
    Turn(&'a Turn),
    /// The end of a turn whose heading says something else.
    TurnEnd(&'a Turn),
    SystemPrompt(String),
    Prompt(String),
    Answer {
        text: String,
        is_last: bool,
    },
    /// A thought; `None` if the provider does not show it.
    Thought(Option<String>),
    /// A command that the user has run.
    Command(String),
    /// What a tool gave, without its call.
    Output(String),
    /// A block of an unknown type.
    Unknown(String),
    Call {
        call: &'a ToolUse,
        result: Option<&'a ToolResult>,
    },
    /// A call that was drawn, with what is new of it.
    CallAgain {
        call: &'a ToolUse,
        result: Option<&'a ToolResult>,
        parts: CallParts<'a>,
    },
    Approval(&'a Approval),
    Child(&'a ChildRun),
    Compaction(&'a Fact),
    Step(&'a Fact),
}

/// What is new of a call.
#[derive(Clone)]
pub(super) struct CallParts<'a> {
    pub(super) approvals: Vec<&'a Approval>,
    pub(super) children: Vec<&'a ChildRun>,
    /// The subagents whose conversations were drawn.
    pub(super) drawn_children: Vec<RunId>,
    /// Whether how it ended, or what it gave, is new.
    pub(super) has_new_end: bool,
    /// Whether what it changed was not known before.
    pub(super) has_new_diff: bool,
}

/// Who says the text of a block.
#[derive(Clone, Copy)]
enum UnitSpeaker {
    User,
    Model,
}

impl Screen<'_> {
    /// Draws a whole conversation.
    pub fn conversation(&mut self, conversation: &Conversation) {
        self.units(&units(conversation));
    }
}

/// Returns the units of a conversation, in order.
pub(super) fn units(conversation: &Conversation) -> Vec<Unit<'_>> {
    let mut list = UnitList { units: Vec::new(), turn: None };
    for prompt in &conversation.system_prompts {
        let texts = prompt.blocks.iter().filter_map(|block| match block {
            Block::Recorded(block) => match block_text(block) {
                BlockText::Words(words) => Some(words),
                BlockText::Chunk(_)
                | BlockText::Thought(_)
                | BlockText::Command(_)
                | BlockText::Output(_)
                | BlockText::Other(_) => None,
            },
            Block::ToolUse(_) | Block::ToolResult(_) => None,
        });
        list.push(UnitContent::SystemPrompt(texts.collect::<Vec<_>>().join("\n")));
    }
    // Items outside of turns come before the first turn that began after them.
    let mut shown = 0;
    for turn in &conversation.turns {
        let before = turn.outside_before.clamp(shown, conversation.outside.len());
        conversation.outside[shown..before].iter().for_each(|item| list.item(item));
        shown = before;
        list.turn(turn);
    }
    conversation.outside[shown..].iter().for_each(|item| list.item(item));
    list.units
}

struct UnitList<'a> {
    units: Vec<Unit<'a>>,
    /// The turn of the next units.
    turn: Option<&'a Turn>,
}

impl<'a> UnitList<'a> {
    fn turn(&mut self, turn: &'a Turn) {
        self.turn = Some(turn);
        self.push(UnitContent::Turn(turn));
        let first = self.units.len();
        turn.items.iter().for_each(|item| self.item(item));
        let last = self.units[first..].iter_mut().rev().find_map(|unit| {
            let UnitContent::Answer { is_last, .. } = &mut unit.content else { return None };
            Some(is_last)
        });
        if let Some(is_last) = last {
            *is_last = true;
        }
        self.turn = None;
    }

    fn item(&mut self, item: &'a Item) {
        match item {
            Item::Prompt(prompt) => self.blocks(&prompt.blocks, UnitSpeaker::User),
            Item::Message(message) => self.blocks(&message.blocks, UnitSpeaker::Model),
            Item::Call(call) => self.blocks(&call.blocks, UnitSpeaker::Model),
            Item::Approval(asked) => self.push(UnitContent::Approval(asked)),
            Item::Child(child) => self.push(UnitContent::Child(child)),
            Item::Compaction(fact) => self.push(UnitContent::Compaction(fact)),
            Item::Fact(fact) => self.push(UnitContent::Step(fact)),
        }
    }

    fn blocks(&mut self, blocks: &'a [Block], speaker: UnitSpeaker) {
        let mut chunks = String::new();
        for (at, block) in blocks.iter().enumerate() {
            if let Block::Recorded(recorded) = block {
                let text = block_text(recorded);
                if let BlockText::Chunk(chunk) = &text {
                    chunks.push_str(chunk);
                    continue;
                }
                self.words(&mut chunks, speaker);
                if let Some(content) = content_of(text, speaker) {
                    self.push(content);
                }
                continue;
            }
            self.words(&mut chunks, speaker);
            if let Block::ToolUse(call) = block {
                let result = match blocks.get(at + 1) {
                    Some(Block::ToolResult(result)) => Some(&**result),
                    Some(Block::ToolUse(_) | Block::Recorded(_)) | None => None,
                };
                self.push(UnitContent::Call { call, result });
            }
        }
        let may_grow = !chunks.trim().is_empty();
        self.words(&mut chunks, speaker);
        if let Some(last) = self.units.last_mut().filter(|_| may_grow) {
            last.may_grow = true;
        }
    }

    /// Ends a text that came in chunks.
    fn words(&mut self, chunks: &mut String, speaker: UnitSpeaker) {
        let text = std::mem::take(chunks);
        if let Some(content) = content_of(BlockText::Words(text), speaker) {
            self.push(content);
        }
    }

    fn push(&mut self, content: UnitContent<'a>) {
        self.units.push(Unit { turn: self.turn, content, may_grow: false });
    }
}

fn content_of<'a>(text: BlockText, speaker: UnitSpeaker) -> Option<UnitContent<'a>> {
    Some(match (text, speaker) {
        (BlockText::Words(text) | BlockText::Chunk(text), _) if text.trim().is_empty() => return None,
        (BlockText::Words(text) | BlockText::Chunk(text), UnitSpeaker::User) => UnitContent::Prompt(text),
        (BlockText::Words(text) | BlockText::Chunk(text), UnitSpeaker::Model) => {
            UnitContent::Answer { text, is_last: false }
        }
        (BlockText::Thought(text), _) => UnitContent::Thought(text),
        (BlockText::Command(text), _) => UnitContent::Command(text),
        (BlockText::Output(text), _) => UnitContent::Output(text),
        (BlockText::Other(kind), _) => UnitContent::Unknown(kind),
    })
}
