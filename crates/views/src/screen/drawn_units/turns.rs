//! The turns of a conversation that grows. A turn is known by the first event that each run has of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::conversation::{Conversation, Turn};
use crate::screen::hash_of;
use crate::{EventRef, State};

/// A turn; it keeps its number when the conversation is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TurnNumber(usize);

/// The turns of a conversation.
#[derive(Default)]
pub(super) struct DrawnTurns {
    by_event: HashMap<EventRef, TurnNumber>,
    len: usize,
    /// The turns whose heading was drawn: their path, and a hash of their end.
    drawn: BTreeMap<TurnNumber, (String, u64)>,
    /// The turns that another one has replaced.
    replaced: HashMap<TurnNumber, TurnNumber>,
}

impl DrawnTurns {
    /// Returns the number of each turn by the event that it was read from.
    pub(super) fn numbers(&mut self, conversation: &Conversation) -> HashMap<EventRef, TurnNumber> {
        conversation.turns.iter().map(|turn| (place_of(turn), self.number(turn))).collect()
    }

    /// Returns the number of a turn: that of one of its events.
    fn number(&mut self, turn: &Turn) -> TurnNumber {
        let known = turn.first_events.iter().find_map(|event| self.by_event.get(event)).copied();
        let number = known.unwrap_or_else(|| {
            self.len += 1;
            TurnNumber(self.len)
        });
        for event in &turn.first_events {
            self.by_event.entry(*event).or_insert(number);
        }
        number
    }

    /// Takes the turns of the conversation. One that is there no more is replaced by a new one with its path: the run that it
    /// was read from only adds to what another one has.
    pub(super) fn take(&mut self, turns: &[(usize, &Turn, TurnNumber)]) -> Vec<(usize, TurnNews)> {
        let present: HashSet<TurnNumber> = turns.iter().map(|(_, _, number)| *number).collect();
        // One that is there again is replaced by no other, so no chain of replacements is a circle.
        self.replaced.retain(|gone, _| !present.contains(gone));
        let mut news = Vec::new();
        for (place, turn, number) in turns {
            let path = turn.path.to_text().into_owned();
            let end = hash_of(&(turn.status, &turn.error));
            let known = self.drawn.get(number).map(|(_, end)| *end).or_else(|| {
                let is_it = |(gone, (old, _)): &(&TurnNumber, &(String, u64))| {
                    *old == path && !present.contains(gone)
                };
                let gone = *self.drawn.iter().find(is_it)?.0;
                self.replaced.insert(gone, *number);
                self.drawn.remove(&gone).map(|(_, end)| end)
            });
            self.drawn.insert(*number, (path, end));
            match known {
                None => news.push((*place, TurnNews::Heading)),
                // Most turns just end.
                Some(known) if known != end && turn.state == State::Failed => {
                    news.push((*place, TurnNews::End));
                }
                Some(_) => {}
            }
        }
        news
    }

    /// Returns the turn that is there now in place of a turn.
    pub(super) fn now(&self, turn: Option<TurnNumber>) -> Option<TurnNumber> {
        let mut turn = turn?;
        while let Some(next) = self.replaced.get(&turn) {
            turn = *next;
        }
        Some(turn)
    }
}

/// What is new of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnNews {
    /// The turn itself.
    Heading,
    /// It failed or was interrupted.
    End,
}

/// Returns the event that a turn was read from.
pub(super) fn place_of(turn: &Turn) -> EventRef {
    EventRef { run: turn.run, seq: turn.seq }
}
