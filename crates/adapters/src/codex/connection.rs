//! A thread on a connection: its turn, the prompts that were sent to it, what it has used.

use std::collections::HashSet;

use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::prompt::UserMessage;
use super::thread::Thread;
use super::usage::{Named, Start, Totals, fields};
use super::wire::ThreadUsage;
use crate::emit::{Emit, push};
use crate::wire::Raw;
use crate::wire::RawField as _;

/// The settings of a thread's turns, as far as they were told.
#[derive(Clone, Default)]
pub(super) struct Settings(Vec<(&'static str, RawJson)>);

impl Settings {
    /// Takes a setting, if it is there.
    pub(super) fn set(&mut self, name: &'static str, value: Raw<'_>) {
        let Some(value) = value.json() else { return };
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, kept)) => *kept = value,
            None => self.0.push((name, value)),
        }
    }

    /// Returns a setting.
    pub(super) fn get(&self, name: &str) -> Option<RawJson> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    fn to_json(&self) -> Option<RawJson> {
        let write =
            |object: &mut ObjectWriter<'_>| self.0.iter().for_each(|(name, value)| object.json(name, value));
        (!self.0.is_empty()).then(|| RawJson::object(write))
    }
}

/// A thread while its connection is read.
pub(super) struct Conversation {
    pub(super) thread: Thread,
    pub(super) settings: Settings,
    /// What was sent and has no turn yet, with the request's id.
    waiting: Vec<(Option<String>, UserMessage)>,
    /// The texts that were sent into the turn and not yet shown as items.
    sent: Vec<String>,
    turn_id: Option<JsonString>,
    start: Start,
    totals: Totals,
    /// The responses whose exact usage was told.
    exact: HashSet<String>,
    responses: u32,
    /// Whether a compaction has begun.
    is_compacting: bool,
    /// Whether the turn was compacted, as its items say.
    is_compacted: bool,
    /// The thoughts that were written, by id and text.
    pub(super) thoughts: HashSet<(String, String)>,
}

impl Conversation {
    pub(super) fn new(thread: Thread, start: Start) -> Self {
        Self {
            thread,
            settings: Settings::default(),
            waiting: Vec::new(),
            sent: Vec::new(),
            turn_id: None,
            start,
            totals: Totals::new(start),
            exact: HashSet::new(),
            responses: 0,
            is_compacting: false,
            is_compacted: false,
            thoughts: HashSet::new(),
        }
    }

    /// Notes a prompt that asks for a turn; it is written when the turn has a name.
    pub(super) fn send(&mut self, request: Option<String>, message: UserMessage) {
        self.waiting.push((request, message));
    }

    /// Writes what was sent into the turn that runs.
    pub(super) fn steer(&mut self, message: UserMessage, emit: &mut Emit<'_>) {
        self.sent.push(message.text.clone());
        let mut extra = Extra::default();
        extra.push("steer", RawJson::from(true));
        emit.user(&self.thread.run, message.blocks, extra);
    }

    /// Takes the answer to a request for a turn: its id, unless another turn still runs.
    pub(super) fn accept_turn(&mut self, id: Option<JsonString>, emit: &mut Emit<'_>) {
        if !self.thread.run.turns.is_open() {
            self.begin_turn(id, emit);
        } else if self.turn_id == id {
            self.write_waiting(emit);
        }
    }

    /// Begins a turn, unless the answer to the request for it did.
    pub(super) fn begin_turn(&mut self, id: Option<JsonString>, emit: &mut Emit<'_>) {
        if self.thread.run.turns.is_open() && id.is_some() && self.turn_id == id {
            return;
        }
        emit.begin_turn(&mut self.thread.run, id.as_ref(), self.settings.to_json());
        (self.turn_id, self.is_compacted) = (id, false);
        self.sent.clear();
        self.write_waiting(emit);
    }

    fn write_waiting(&mut self, emit: &mut Emit<'_>) {
        if !self.waiting.is_empty() {
            let (_, message) = self.waiting.remove(0);
            self.sent.push(message.text);
            emit.user(&self.thread.run, message.blocks, Extra::default());
        }
    }

    /// Writes the prompts that never got a turn.
    pub(super) fn finish(&mut self, emit: &mut Emit<'_>) {
        while !self.waiting.is_empty() {
            self.begin_turn(None, emit);
        }
    }

    /// Writes that the turn was refused that a request asked for. Another that runs is not what the prompt began.
    pub(super) fn refuse_turn(&mut self, request: &str, error: JsonString, emit: &mut Emit<'_>) {
        let place = self.waiting.iter().position(|(id, _)| id.as_deref() == Some(request));
        let refused = place.map(|place| self.waiting.remove(place));
        if !self.thread.run.turns.is_open() {
            if let Some(refused) = refused {
                self.waiting.insert(0, refused);
            }
            self.begin_turn(None, emit);
            emit.end_turn(&mut self.thread.run, Some(error), None);
        } else if let Some((_, message)) = refused {
            let mut extra = Extra::default();
            extra.push("refused", error.to_json());
            emit.user(&self.thread.run, message.blocks, extra);
        }
    }

    /// Ends the turn; false when another one runs, or none.
    pub(super) fn end_turn(
        &mut self,
        id: Option<&JsonString>,
        error: Option<JsonString>,
        emit: &mut Emit<'_>,
    ) -> bool {
        let is_its = id.is_none() || self.turn_id.is_none() || self.turn_id.as_ref() == id;
        let is_ended = is_its && self.thread.run.turns.is_open();
        if is_ended {
            emit.end_turn(&mut self.thread.run, error, None);
        }
        is_ended
    }

    /// Takes what the user said, as an item shows it; false when it was sent on this connection.
    pub(super) fn echo(&mut self, id: Option<RawJson>, message: UserMessage, emit: &mut Emit<'_>) -> bool {
        if let Some(place) = self.sent.iter().position(|text| *text == message.text) {
            self.sent.remove(place);
            return false;
        }
        let waiting = self.waiting.iter().position(|(_, waiting)| waiting.text == message.text);
        let mut extra = Extra::default();
        push(&mut extra, "id", id);
        if let Some((_, sent)) = waiting.map(|place| self.waiting.remove(place)) {
            // It is shown before the turn has a name.
            emit.user(&self.thread.run, sent.blocks, extra);
            return false;
        }
        emit.user(&self.thread.run, message.blocks, extra);
        true
    }

    /// Takes a running total.
    pub(super) fn use_total(&mut self, usage: &ThreadUsage<'_>, emit: &mut Emit<'_>) {
        let is_before = self.start == Start::Unknown && !self.totals.is_known() && self.turn_id.is_none();
        if is_before {
            return self.totals.take_baseline(usage.total);
        }
        let growth = self.totals.take(usage.total, usage.last);
        let named = Named::Number(self.responses + 1, &self.totals);
        if let Some(extra) = fields(growth, named, self.thread.model.clone()) {
            self.responses += 1;
            emit.assistant(&self.thread.run, Vec::new(), extra);
        }
    }

    /// Takes the exact usage of a response.
    pub(super) fn use_exactly(&mut self, response: RawJson, usage: RawJson, emit: &mut Emit<'_>) {
        if !self.exact.insert(response.as_str().to_owned()) {
            return;
        }
        self.totals.use_exactly(&usage);
        let growth = super::usage::Growth::Exact(usage);
        if let Some(extra) = fields(growth, Named::Id(response), self.thread.model.clone()) {
            emit.assistant(&self.thread.run, Vec::new(), extra);
        }
    }

    /// Writes that a compaction begins.
    pub(super) fn begin_compaction(&mut self, emit: &mut Emit<'_>) {
        if !std::mem::replace(&mut self.is_compacting, true) {
            let path = self.thread.run.turns.path_of("compaction");
            emit.step_started(&self.thread.run, &path, StepPayload::new("compaction", "compaction"));
        }
    }

    /// Writes that a compaction has ended; the summary is not told on a connection.
    pub(super) fn end_compaction(&mut self, detail: &str, emit: &mut Emit<'_>) {
        self.begin_compaction(emit);
        (self.is_compacting, self.is_compacted) = (false, true);
        let path = self.thread.run.turns.path_of("compaction");
        emit.step_completed(&self.thread.run, &path, StepPayload::new("compaction", "compaction"));
        emit.entry_with(&self.thread.run, EntryType::SystemEvent, Some("compaction"), detail);
    }

    /// Takes the notice of a compaction that older clients get beside its item.
    pub(super) fn compacted(&mut self, detail: &str, emit: &mut Emit<'_>) {
        if !self.is_compacted {
            self.end_compaction(detail, emit);
        }
    }
}
