//! The turns of an agent. A turn is an interaction; `assistant.turn_start` and `assistant.turn_end` are its rounds.

use steno_model::EntryType;
use steno_model::json::JsonString;

use super::agents::Agent;
use super::wire::Data;
use crate::emit::{Emit, EndedBy, TurnEnd};
use crate::wire::{Raw, RawField as _};

impl Agent {
    /// Begins a turn for a prompt, unless the prompt belongs to the interaction that is going on.
    pub(super) fn begin_prompted(&mut self, interaction: Raw<'_>, emit: &mut Emit<'_>) {
        let id = interaction.string();
        if id.is_some() && self.interaction == id {
            self.run.turns.reopen();
        } else {
            self.begin_turn(id.as_ref(), emit);
        }
    }

    /// Finds the turn in which the model works; begins one if there is none.
    pub(super) fn begin_work(&mut self, interaction: Raw<'_>, emit: &mut Emit<'_>) {
        match interaction.string() {
            Some(id) => self.join_interaction(&id, emit),
            None if self.run.turns.path().is_empty() => self.begin_turn(None, emit),
            None => {}
        }
    }

    fn join_interaction(&mut self, id: &JsonString, emit: &mut Emit<'_>) {
        let is_same = self.interaction.as_ref() == Some(id);
        if is_same {
            // The model works again after the end of its turn, as it does when a background task has ended.
            self.run.turns.reopen();
        } else if self.interaction.is_none() && self.run.turns.is_open() {
            // The prompt did not name its interaction.
            self.interaction = Some(id.clone());
        } else {
            self.begin_turn(Some(id), emit);
        }
    }

    fn begin_turn(&mut self, id: Option<&JsonString>, emit: &mut Emit<'_>) {
        emit.begin_turn(&mut self.run, id, None);
        self.interaction = id.cloned();
        self.thoughts.clear();
        (self.last_error, self.last_thought) = (None, None);
    }

    /// Ends the turn: the agent has become idle.
    pub(super) fn idle(&mut self, data: &Data<'_>, emit: &mut Emit<'_>) {
        let end = match self.last_error.take() {
            _ if data.aborted.is_true() => interrupt(),
            Some(error) => TurnEnd::failed(error),
            None => TurnEnd::plain(EndedBy::Record),
        };
        emit.end_turn(&mut self.run, end);
        emit.entry(&self.run, EntryType::SystemEvent, Some("turn_end"));
    }

    /// Ends the turn: it was stopped.
    pub(super) fn abort(&mut self, data: &Data<'_>, emit: &mut Emit<'_>) {
        if self.run.turns.is_open() {
            emit.end_turn(&mut self.run, TurnEnd { result: data.reason.json(), ..interrupt() });
        } else {
            emit.system(&self.run, "abort", data.reason.json());
        }
        emit.entry(&self.run, EntryType::SystemEvent, Some("interrupt"));
    }
}

fn interrupt() -> TurnEnd {
    TurnEnd { error: Some("interrupted".into()), ..TurnEnd::plain(EndedBy::Interrupt) }
}
