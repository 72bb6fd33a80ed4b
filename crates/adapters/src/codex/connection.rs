//! A thread on a connection: its turn, its prompts and its usage.

use std::collections::{HashMap, HashSet};

use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::outbox::{Outbox, Prompt};
use super::prompt::UserMessage;
use super::thread::Thread;
use super::usage::{ResponseName, Start, Totals, fields};
use super::waits::Wait;
use super::wire::ThreadUsage;
use crate::emit::{Emit, EndedBy, TurnEnd, push};
use crate::wire::Raw;
use crate::wire::RawField as _;

/// The known settings of a thread's turns.
#[derive(Clone, Default)]
pub(super) struct Settings(Vec<(&'static str, RawJson)>);

impl Settings {
    /// Takes a setting, if present.
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
    /// Prompts without a turn.
    waiting: Outbox,
    /// Texts that were sent into the turn and not yet shown as items, with their number.
    sent: HashMap<String, u32>,
    turn_id: Option<JsonString>,
    start: Start,
    totals: Totals,
    /// The responses whose exact usage is recorded.
    exact: HashSet<String>,
    responses: u32,
    /// Whether a compaction has begun.
    is_compacting: bool,
    /// Whether an item reported a compaction in this turn.
    is_compacted: bool,
    /// The thoughts that were written, by id and text.
    pub(super) thoughts: HashSet<(String, String)>,
}

impl Conversation {
    pub(super) fn new(thread: Thread, start: Start) -> Self {
        Self {
            thread,
            settings: Settings::default(),
            waiting: Outbox::default(),
            sent: HashMap::new(),
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

    /// Notes a prompt that asks for a turn; it is written when the turn has an id. The request is kept as long as the
    /// prompt can be written at its position.
    pub(super) fn send(&mut self, request: Option<String>, message: UserMessage, wait: Wait) {
        self.waiting.overtake();
        self.waiting.send(Prompt { request, message, wait: Some(wait) });
    }

    /// Notes that something was written after the last prompt.
    pub(super) fn overtake(&mut self) {
        self.waiting.overtake();
    }

    /// Writes a prompt that was sent into the running turn.
    pub(super) fn steer(&mut self, message: UserMessage, emit: &mut Emit<'_>) {
        *self.sent.entry(message.text).or_default() += 1;
        let mut extra = Extra::default();
        extra.push("steer", RawJson::from(true));
        emit.user(&self.thread.run, message.blocks, extra);
    }

    /// Takes the answer to a request for a turn: its id, unless another turn still runs.
    pub(super) fn accept_turn(&mut self, id: Option<JsonString>, emit: &mut Emit<'_>) {
        if !self.thread.run.turns.is_open() {
            let prompt = self.waiting.take_first();
            self.begin_turn_of(id, prompt, emit);
        } else if self.turn_id == id
            && let Some(prompt) = self.waiting.take_first()
        {
            self.write_prompt(prompt.message, emit);
        }
    }

    /// Begins a turn, unless the answer to the request for it did.
    pub(super) fn begin_turn(&mut self, id: Option<JsonString>, emit: &mut Emit<'_>) {
        if self.thread.run.turns.is_open() && id.is_some() && self.turn_id == id {
            return;
        }
        // The notice has the time of the turn; the request does not.
        self.waiting.overtake();
        let prompt = self.waiting.take_first();
        self.begin_turn_of(id, prompt, emit);
    }

    /// Begins the turn of a prompt. Both get the prompt's position, if nothing was written since.
    fn begin_turn_of(&mut self, id: Option<JsonString>, prompt: Option<Prompt>, emit: &mut Emit<'_>) {
        let (message, wait) = prompt.map(|prompt| (prompt.message, prompt.wait)).unzip();
        let write = |emit: &mut Emit<'_>| {
            emit.begin_turn(&mut self.thread.run, id.as_ref(), self.settings.to_json());
            (self.turn_id, self.is_compacted) = (id, false);
            // A map keeps its size when it is cleared, and clearing it again takes as long.
            self.sent = HashMap::new();
            if let Some(message) = message {
                self.write_prompt(message, emit);
            }
        };
        match wait.flatten() {
            Some(mut wait) => wait.write(emit, write),
            None => write(emit),
        }
    }

    fn write_prompt(&mut self, message: UserMessage, emit: &mut Emit<'_>) {
        *self.sent.entry(message.text).or_default() += 1;
        emit.user(&self.thread.run, message.blocks, Extra::default());
    }

    /// Writes the prompts without a turn.
    pub(super) fn finish(&mut self, emit: &mut Emit<'_>) {
        while let Some(prompt) = self.waiting.take_first() {
            if prompt.wait.is_none() {
                self.waiting.overtake();
            }
            self.begin_turn_of(None, Some(prompt), emit);
        }
    }

    /// Writes that the requested turn was refused. A running turn was not begun by this prompt.
    pub(super) fn refuse_turn(&mut self, request: &str, error: JsonString, emit: &mut Emit<'_>) {
        self.waiting.overtake();
        let refused = self.waiting.take_of_request(request);
        if !self.thread.run.turns.is_open() {
            self.begin_turn_of(None, refused, emit);
            emit.end_turn(&mut self.thread.run, TurnEnd::failed(error));
        } else if let Some(prompt) = refused {
            let mut extra = Extra::default();
            extra.push("refused", error.to_json());
            emit.user(&self.thread.run, prompt.message.blocks, extra);
        }
    }

    /// Ends the turn; false if it is not the running one.
    pub(super) fn end_turn(
        &mut self,
        id: Option<&JsonString>,
        error: Option<JsonString>,
        emit: &mut Emit<'_>,
    ) -> bool {
        let is_its = id.is_none() || self.turn_id.is_none() || self.turn_id.as_ref() == id;
        let is_ended = is_its && self.thread.run.turns.is_open();
        if is_ended {
            emit.end_turn(&mut self.thread.run, TurnEnd { error, ..TurnEnd::plain(EndedBy::Record) });
        }
        is_ended
    }

    /// Takes a user message from an item; false if it was sent on this connection.
    pub(super) fn echo(&mut self, id: Option<RawJson>, message: UserMessage, emit: &mut Emit<'_>) -> bool {
        if let Some(times) = self.sent.get_mut(&message.text).filter(|times| **times > 0) {
            *times -= 1;
            return false;
        }
        let mut extra = Extra::default();
        push(&mut extra, "id", id);
        if let Some(sent) = self.waiting.take_of_words(&message.text) {
            // It is shown before the turn has an id.
            emit.user(&self.thread.run, sent.message.blocks, extra);
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
        let named = ResponseName::Number(self.responses + 1, &self.totals);
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
        if let Some(extra) = fields(growth, ResponseName::Id(response), self.thread.model.clone()) {
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

    /// Writes that a compaction has ended; a connection does not carry the summary.
    pub(super) fn end_compaction(&mut self, detail: &str, emit: &mut Emit<'_>) {
        self.begin_compaction(emit);
        (self.is_compacting, self.is_compacted) = (false, true);
        let path = self.thread.run.turns.path_of("compaction");
        emit.step_completed(&self.thread.run, &path, StepPayload::new("compaction", "compaction"));
        emit.entry_with(&self.thread.run, EntryType::SystemEvent, Some("compaction"), detail);
    }

    /// Takes the notice of a compaction that older clients get in addition to the item.
    pub(super) fn compacted(&mut self, detail: &str, emit: &mut Emit<'_>) {
        if !self.is_compacted {
            self.end_compaction(detail, emit);
        }
    }
}
