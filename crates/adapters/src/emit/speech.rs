//! Writes the start of runs, turns, and messages of both sides.

use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{BlockContent, ContentBlock, EventType, MessagePayload, Payload, Role, StepPayload};

use super::{Emit, push, string};
use crate::run::Run;

/// What ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// A record that says that the turn is over.
    Record,
    /// A record that says that the user interrupted it.
    Interrupt,
    /// The next prompt or notice, which begins another turn.
    Prompt,
}

impl EndedBy {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Interrupt => "interrupt",
            Self::Prompt => "prompt",
        }
    }
}

/// The end of a turn.
pub(crate) struct TurnEnd {
    pub(crate) by: EndedBy,
    pub(crate) error: Option<JsonString>,
    pub(crate) result: Option<RawJson>,
}

impl TurnEnd {
    /// Makes an end without an outcome.
    pub(crate) fn plain(by: EndedBy) -> Self {
        Self { by, error: None, result: None }
    }

    /// Makes the end of a turn that a record says has failed.
    pub(crate) fn failed(error: JsonString) -> Self {
        Self { by: EndedBy::Record, error: Some(error), result: None }
    }
}

impl Emit<'_> {
    /// Begins a run with its first event, and only then.
    pub(crate) fn begin(&mut self, run: &mut Run, version: Option<&JsonString>, extra: Extra) {
        if std::mem::replace(&mut run.is_started, true) {
            return;
        }
        let mut payload = StepPayload::new(self.about.provider, "session");
        payload.extra = extra;
        payload.extra.push("source", self.source(version));
        // The agent's session keeps its own id; this run of it is the one that we started.
        if let Some(wrapped) = self.memory.wrapped.take_if(|_| run.parent.is_none()) {
            run.id = wrapped.run;
            payload.extra.push("wrap", wrapped.fields);
        }
        self.put(run, (EventType::RunStarted, &"".into()), &Payload::Step(payload), None);
    }

    /// Ends a run whose process has ended, by a record of the agent. The run of a wrap ends with its command, which
    /// [`Self::complete_wrap`] writes.
    pub(crate) fn complete(&mut self, run: &Run, extra: Extra) {
        if self.memory.wrap != Some(run.id) {
            self.complete_wrap(run, extra);
        }
    }

    /// Ends a run, also that of a wrap.
    pub(crate) fn complete_wrap(&mut self, run: &Run, extra: Extra) {
        let payload = StepPayload { extra, ..StepPayload::new(self.about.provider, "session") };
        self.put(run, (EventType::RunCompleted, &"".into()), &Payload::Step(payload), None);
    }

    pub(super) fn source(&self, version: Option<&JsonString>) -> RawJson {
        let carries = RawJson::array(self.about.carries.iter().map(|what| string(what)));
        RawJson::object(|object| {
            object.word("channel", self.about.channel);
            // An adapter of several providers does not have the name of one.
            let own = self.about.adapter.split('/').next();
            if own != Some(self.about.provider) {
                object.word("provider", self.about.provider);
            }
            object.optional("version", version, ObjectWriter::string);
            object.word("adapter", self.about.adapter);
            object.json("carries", &carries);
        })
    }

    /// Begins a turn; one that is still open ends before it.
    pub(crate) fn begin_turn(
        &mut self,
        run: &mut Run,
        turn_id: Option<&JsonString>,
        settings: Option<RawJson>,
    ) {
        self.end_turn(run, TurnEnd::plain(EndedBy::Prompt));
        let name = run.turns.begin();
        let mut payload = StepPayload::new(&*name, "turn");
        push(&mut payload.extra, "turn_id", turn_id.map(JsonString::to_json));
        push(&mut payload.extra, "settings", settings);
        let path = run.turns.path();
        self.put(run, (EventType::StepStarted, &path), &Payload::Step(payload), None);
    }

    /// Ends the turn that is open, if one is.
    pub(crate) fn end_turn(&mut self, run: &mut Run, end: TurnEnd) {
        if let Some(name) = run.turns.end() {
            let mut payload = StepPayload::new(&*name, "turn");
            (payload.error, payload.result) = (end.error, end.result);
            payload.extra.push("ended_by", string(end.by.as_str()));
            let path = run.turns.path();
            self.put(run, (EventType::StepCompleted, &path), &Payload::Step(payload), None);
        }
    }

    /// Writes a message of the user's side.
    pub(crate) fn user(&mut self, run: &Run, blocks: Vec<ContentBlock>, extra: Extra) {
        if self.sink.wants_entries() {
            self.user_text = blocks.iter().find_map(text_in).filter(|text| !text.is_empty());
        }
        let message = MessagePayload { extra, ..MessagePayload::new(Role::User, blocks) };
        self.put(run, (EventType::MessageUser, &run.turns.path()), &Payload::Message(message), None);
    }

    /// Writes a message of the model's.
    pub(crate) fn assistant(&mut self, run: &Run, blocks: Vec<ContentBlock>, extra: Extra) {
        let blocks = if self.sink.wants_whole() { blocks } else { Vec::new() };
        let message = MessagePayload { extra, ..MessagePayload::new(Role::Assistant, blocks) };
        self.put(run, (EventType::MessageAssistant, &run.turns.path()), &Payload::Message(message), None);
    }

    /// Writes usage that comes apart from what was said, at the path of what it was spent on.
    pub(crate) fn usage(&mut self, run: &Run, path: &JsonString, extra: Extra) {
        let message = MessagePayload { extra, ..MessagePayload::new(Role::Assistant, Vec::new()) };
        self.put(run, (EventType::MessageAssistant, path), &Payload::Message(message), None);
    }
}

fn text_in(block: &ContentBlock) -> Option<String> {
    let BlockContent::Text(Some(text)) = &block.content else { return None };
    // A system prompt is labelled.
    block.extra.get("label").is_none().then(|| text.to_text().into_owned())
}
