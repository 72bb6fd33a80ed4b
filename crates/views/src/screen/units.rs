//! A conversation as a list of units, each drawn on its own: what was said, a call with its result, a step.

use super::Screen;
use crate::conversation::{
    Approval, Block, BlockText, ChildRun, Conversation, Fact, Item, ToolResult, ToolUse, Turn, block_text,
};

/// Names a unit of a conversation. A unit keeps its name while the conversation grows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitKey(String);

/// A unit of a conversation.
pub(super) struct Unit<'a> {
    pub(super) key: UnitKey,
    pub(super) content: UnitContent<'a>,
}

pub(super) enum UnitContent<'a> {
    Turn(&'a Turn),
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
    Approval(&'a Approval),
    Child(&'a ChildRun),
    Compaction(&'a Fact),
    Step(&'a Fact),
}

impl UnitContent<'_> {
    /// Tells whether nothing more is expected of it.
    fn is_complete(&self) -> bool {
        match self {
            Self::Call { call, result } => !call.is_dangling || result.is_some(),
            Self::Turn(_)
            | Self::SystemPrompt(_)
            | Self::Prompt(_)
            | Self::Answer { .. }
            | Self::Thought(_)
            | Self::Command(_)
            | Self::Output(_)
            | Self::Unknown(_)
            | Self::Approval(_)
            | Self::Child(_)
            | Self::Compaction(_)
            | Self::Step(_) => true,
        }
    }
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
        self.parts(conversation, &mut |_, _| true);
    }

    /// Draws the units for which `take` returns true. It is told whether a unit is complete: a call without a result is not.
    pub fn parts(&mut self, conversation: &Conversation, take: &mut dyn FnMut(&UnitKey, bool) -> bool) {
        let mut units = units(conversation);
        units.retain(|unit| take(&unit.key, unit.content.is_complete()));
        self.units(&units);
    }
}

/// Returns the units of a conversation, in order.
fn units(conversation: &Conversation) -> Vec<Unit<'_>> {
    let mut list = UnitList { units: Vec::new(), turn: String::new() };
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
        let text = texts.collect::<Vec<_>>().join("\n");
        list.push(format!("system {}:{}", prompt.run, prompt.seq), UnitContent::SystemPrompt(text));
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
    turn: String,
}

impl<'a> UnitList<'a> {
    fn turn(&mut self, turn: &'a Turn) {
        self.turn = format!("turn {}:{}", turn.run, turn.seq);
        self.push(self.turn.clone(), UnitContent::Turn(turn));
        let first = self.units.len();
        turn.items.iter().for_each(|item| self.item(item));
        let last = self.units[first..].iter_mut().rev().find_map(|unit| {
            let UnitContent::Answer { is_last, .. } = &mut unit.content else { return None };
            Some(is_last)
        });
        if let Some(is_last) = last {
            *is_last = true;
        }
    }

    fn item(&mut self, item: &'a Item) {
        match item {
            Item::Prompt(prompt) => {
                let name = format!("{}:{}", prompt.run, prompt.seq);
                self.blocks(&name, &prompt.blocks, UnitSpeaker::User);
            }
            Item::Message(message) => {
                let name = format!("{}:{}", message.run, message.seq);
                self.blocks(&name, &message.blocks, UnitSpeaker::Model);
            }
            Item::Call(call) => {
                let name = format!("{}:{}", call.run, call.seq);
                self.blocks(&name, &call.blocks, UnitSpeaker::Model);
            }
            Item::Approval(asked) => {
                self.push(format!("approval {}:{}", asked.run, asked.seq), UnitContent::Approval(asked));
            }
            Item::Child(child) => self.push(format!("child {}", child.run_id), UnitContent::Child(child)),
            Item::Compaction(fact) => {
                self.push(format!("step {}:{}", fact.run, fact.seq), UnitContent::Compaction(fact));
            }
            Item::Fact(fact) => self.push(format!("step {}:{}", fact.run, fact.seq), UnitContent::Step(fact)),
        }
    }

    fn blocks(&mut self, name: &str, blocks: &'a [Block], speaker: UnitSpeaker) {
        let mut chunks = String::new();
        let mut number = 0;
        let mut next_name = move || {
            number += 1;
            format!("{name} {number}")
        };
        for (at, block) in blocks.iter().enumerate() {
            if let Block::Recorded(recorded) = block {
                let text = block_text(recorded);
                if let BlockText::Chunk(chunk) = &text {
                    chunks.push_str(chunk);
                    continue;
                }
                self.words(&mut chunks, speaker, &mut next_name);
                if let Some(content) = content_of(text, speaker) {
                    self.push(next_name(), content);
                }
                continue;
            }
            self.words(&mut chunks, speaker, &mut next_name);
            if let Block::ToolUse(call) = block {
                let result = match blocks.get(at + 1) {
                    Some(Block::ToolResult(result)) => Some(&**result),
                    Some(Block::ToolUse(_) | Block::Recorded(_)) | None => None,
                };
                let id = call.tool_id.as_ref().map(|id| format!("call {} {}", self.turn, id.to_text()));
                self.push(id.unwrap_or_else(&mut next_name), UnitContent::Call { call, result });
            }
        }
        self.words(&mut chunks, speaker, &mut next_name);
    }

    /// Ends a text that came in chunks.
    fn words(&mut self, chunks: &mut String, speaker: UnitSpeaker, name: &mut dyn FnMut() -> String) {
        let text = std::mem::take(chunks);
        if let Some(content) = content_of(BlockText::Words(text), speaker) {
            self.push(name(), content);
        }
    }

    fn push(&mut self, key: String, content: UnitContent<'a>) {
        self.units.push(Unit { key: UnitKey(key), content });
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
