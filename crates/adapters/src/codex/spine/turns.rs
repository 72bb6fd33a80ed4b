//! Finds the turn that a record of a rollout belongs to.
//!
//! If a record names its turn, that is its turn. Otherwise it is the last turn that has begun and not ended. The last
//! `turn_context` is not used: in a turn that compacts, it comes after the records it is about.

use std::borrow::Cow;

use crate::codex::turn_ids::{TurnChange, TurnIds};
use crate::codex::wire::Payload;
use crate::wire::RawField as _;

/// The turns of one file.
#[derive(Debug, Default)]
pub(super) struct Turns {
    current: Option<String>,
    ids: TurnIds,
    /// How many turns got an id from us, because the file has none.
    named: u32,
}

/// The turn of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// Its id; empty if none is known.
    pub(super) id: String,
    /// Whether the id is ours, made by counting the user's prompts.
    pub(super) is_inferred: bool,
}

impl Turns {
    /// Returns the current turn.
    pub(super) fn current(&self) -> Turn {
        let id = self.current.clone().unwrap_or_default();
        let is_inferred = !id.is_empty() && !self.ids.contains(&id);
        Turn { id, is_inferred }
    }

    /// Takes an event and returns its turn.
    pub(super) fn event(&mut self, event: &Payload<'_>, thread: &str) -> Turn {
        let Some(named) = event.turn_id.text().map(Cow::into_owned) else {
            if event.kind.is("user_message") && self.ids.is_empty() {
                self.named += 1;
                self.current = Some(format!("turn-{:04}", self.named));
            }
            return self.current();
        };
        match self.ids.read(event, Some(thread)) {
            TurnChange::Begins | TurnChange::BeginsUnannounced => self.current = Some(named.clone()),
            TurnChange::Ends if self.current.as_deref() == Some(named.as_str()) => self.current = None,
            TurnChange::Ends | TurnChange::BeginsInChild | TurnChange::None => {}
        }
        Turn { id: named, is_inferred: false }
    }

    /// Returns the turn of a record: the one it names, or the current one.
    pub(super) fn of(&self, named: Option<&str>) -> Turn {
        named.map_or_else(|| self.current(), |id| Turn { id: id.to_owned(), is_inferred: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(turns: &mut Turns, text: &str) -> String {
        turns.event(&crate::wire::parse::<Payload<'_>>(text).unwrap(), "t").id
    }

    #[test]
    fn records_without_a_turn_id_belong_to_the_current_turn() {
        let mut turns = Turns::default();
        assert_eq!(event(&mut turns, r#"{"type":"task_started","turn_id":"a"}"#), "a");
        assert_eq!(event(&mut turns, r#"{"type":"token_count"}"#), "a");
        assert_eq!(event(&mut turns, r#"{"type":"task_complete","turn_id":"a"}"#), "a");
        assert_eq!(event(&mut turns, r#"{"type":"token_count"}"#), "");
        assert_eq!(event(&mut turns, r#"{"type":"task_started","turn_id":"b"}"#), "b");
        assert_eq!(event(&mut turns, r#"{"type":"item_completed","thread_id":"t","turn_id":"a"}"#), "a");
        assert_eq!(turns.current().id, "b", "a late record of an older turn changes nothing");
        assert_eq!(turns.of(Some("a")).id, "a");
    }

    #[test]
    fn child_turn_of_a_review_does_not_become_current() {
        let mut turns = Turns::default();
        event(&mut turns, r#"{"type":"item_completed","thread_id":"t","turn_id":"review"}"#);
        let child = r#"{"type":"task_started","turn_id":"c","turn_attribution":{"parent_turn_id":"review"}}"#;
        assert_eq!(event(&mut turns, child), "c");
        assert_eq!(event(&mut turns, r#"{"type":"item_completed","thread_id":"child","turn_id":"c"}"#), "c");
        assert_eq!(turns.current(), Turn { id: "review".to_owned(), is_inferred: false });
    }

    #[test]
    fn turns_without_ids_are_numbered_by_prompt() {
        let mut turns = Turns::default();
        assert_eq!(event(&mut turns, r#"{"type":"user_message"}"#), "turn-0001");
        assert_eq!(event(&mut turns, r#"{"type":"agent_message"}"#), "turn-0001");
        assert_eq!(event(&mut turns, r#"{"type":"user_message"}"#), "turn-0002");
        assert!(turns.current().is_inferred);
    }
}
