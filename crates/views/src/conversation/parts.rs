//! What a conversation is put together from before it is finished: everything in order, with its turn.

use std::collections::HashMap;

use steno_model::json::RawJson;
use steno_model::{ExchangeEvent, RunId};

use super::calls::{CallNumber, Calls};
use super::{Approval, Block, ChildRun, Fact, Item, Message, Said, Turn};
use crate::State;
use crate::fields::PayloadFields;

/// The place of a turn among the turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnNumber(usize);

/// A part of what was said.
pub(super) enum Piece {
    Recorded(RawJson),
    Call(CallNumber),
}

/// What stands at one place of a conversation.
pub(super) enum Part {
    Prompt(Said, Vec<Piece>),
    Message(Message, Vec<Piece>),
    Call(steno_model::Seq, CallNumber),
    Approval(Approval),
    Child(ChildRun),
    Compaction(Fact),
    Fact(Fact),
}

impl Part {
    /// Returns the part as it is shown; nothing for a call that a message has.
    pub(super) fn finish(self, calls: &mut Calls) -> Option<Item> {
        Some(match self {
            Self::Prompt(said, pieces) => Item::Prompt(Said { blocks: blocks(pieces, calls), ..said }),
            Self::Message(message, pieces) => {
                Item::Message(Message { blocks: blocks(pieces, calls), ..message })
            }
            Self::Call(seq, number) => {
                let call = calls.get(number);
                if call.is_in_message {
                    return None;
                }
                Item::Call(super::LooseCall { seq, blocks: call.blocks().collect() })
            }
            Self::Approval(approval) => Item::Approval(approval),
            Self::Child(child) => Item::Child(child),
            Self::Compaction(fact) => Item::Compaction(fact),
            Self::Fact(fact) => Item::Fact(fact),
        })
    }
}

/// Returns pieces as blocks, each call with its result beside it.
pub(super) fn blocks(pieces: Vec<Piece>, calls: &mut Calls) -> Vec<Block> {
    let mut blocks = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Recorded(block) => blocks.push(Block::Recorded(block)),
            Piece::Call(number) => blocks.extend(calls.get(number).blocks()),
        }
    }
    blocks
}

/// The turns of a run, found by path.
#[derive(Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// The last turn that began at a path.
    by_path: HashMap<String, TurnNumber>,
}

impl Turns {
    /// Returns the turn that a path is in, if it is in one.
    pub(super) fn around(&self, path: &str) -> Option<TurnNumber> {
        let mut path = path;
        loop {
            if let Some(turn) = self.by_path.get(path) {
                return Some(*turn);
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    /// Begins a turn.
    pub(super) fn begin(&mut self, event: &ExchangeEvent) {
        let turn = new_turn(event);
        self.by_path.insert(event.path.to_text().into_owned(), TurnNumber(self.turns.len()));
        self.turns.push(turn);
    }

    /// Ends the turn at a path; an end without a beginning is a turn too.
    pub(super) fn end(&mut self, event: &ExchangeEvent) {
        if !self.by_path.contains_key(&*event.path.to_text()) {
            self.begin(event);
        }
        let Some(number) = self.by_path.get(&*event.path.to_text()) else { return };
        let turn = &mut self.turns[number.0];
        turn.error = PayloadFields::of(event).error();
        turn.state = end_state(turn.error.is_some());
        turn.ended_at = Some(event.timestamp.clone());
    }

    /// Gives every part to its turn and returns the turns, and what is in none of them.
    pub(super) fn fill(mut self, items: Vec<(Option<TurnNumber>, Item)>) -> (Vec<Turn>, Vec<Item>) {
        let mut outside = Vec::new();
        for (turn, item) in items {
            match turn {
                Some(turn) => self.turns[turn.0].items.push(item),
                None => outside.push(item),
            }
        }
        (self.turns, outside)
    }
}

fn new_turn(event: &ExchangeEvent) -> Turn {
    Turn {
        path: event.path.clone(),
        turn_id: PayloadFields::of(event).string("turn_id"),
        seq: event.seq,
        started_at: Some(event.timestamp.clone()),
        ended_at: None,
        state: State::Open,
        error: None,
        items: Vec::new(),
    }
}

/// Returns the state of what has ended.
pub(super) fn end_state(has_failed: bool) -> State {
    if has_failed { State::Failed } else { State::Completed }
}

/// Returns the run that an event is copied from, where it says so.
pub(super) fn copied_from(event: &ExchangeEvent) -> Option<RunId> {
    let text: String = event.extra.get("copied_from")?.read().ok()?;
    RunId::parse(&text).ok()
}
