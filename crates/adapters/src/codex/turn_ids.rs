//! Finds the turns of a rollout, and the events that begin and end them. The adapter and the spine share this code, so
//! that they agree.

use std::collections::HashSet;

use super::wire::Payload;
use crate::wire::RawField as _;

/// The ids of the turns that a rollout has begun.
#[derive(Debug, Default)]
pub(super) struct TurnIds(HashSet<String>);

/// The effect of an event on turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnChange {
    /// A turn begins.
    Begins,
    /// A turn of a child begins in the file of its parent, for example in a review.
    BeginsInChild,
    /// A turn without an announcement begins with this item, for example a review.
    BeginsUnannounced,
    /// A turn ends.
    Ends,
    /// No effect.
    None,
}

impl TurnIds {
    /// Reads an event of a thread's rollout, and remembers the turn that it begins.
    pub(super) fn read(&mut self, event: &Payload<'_>, thread: Option<&str>) -> TurnChange {
        match &*event.kind.text().unwrap_or_default() {
            "task_started" | "turn_started" => {
                let parent = event.attribution.and_then(|from| from.parent_turn_id.text());
                if parent.is_some_and(|parent| self.0.contains(&*parent)) {
                    return TurnChange::BeginsInChild;
                }
                self.0.extend(event.turn_id.text().map(std::borrow::Cow::into_owned));
                TurnChange::Begins
            }
            "task_complete" | "turn_complete" | "turn_aborted" => TurnChange::Ends,
            "item_completed" => {
                let is_own = thread.is_some() && event.thread_id.text().as_deref() == thread;
                match event.turn_id.text().filter(|id| is_own && !self.0.contains(&**id)) {
                    Some(id) => {
                        self.0.insert(id.into_owned());
                        TurnChange::BeginsUnannounced
                    }
                    None => TurnChange::None,
                }
            }
            _ => TurnChange::None,
        }
    }

    /// Returns true if the rollout has begun this turn.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.contains(id)
    }

    /// Returns true if no turn with an id has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
