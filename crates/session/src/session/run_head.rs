//! What is known of one of a session's runs.

use steno_model::json::{JsonString, RawJson};
use steno_model::{EventType, ExchangeEvent, RunId, Seq, Timestamp};

use crate::fields::{PayloadFields, forked_from, session_run_id};
use crate::state::State;

/// What is known of one of a session's runs.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// The run.
    pub id: RunId,
    /// The run that called it.
    pub parent: Option<RunId>,
    /// The session that it shows, if that has another id.
    pub session: Option<RunId>,
    /// The run that it is a fork of.
    pub forked_from: Option<RunId>,
    /// Its name, from `run.started`.
    pub name: Option<JsonString>,
    /// Its kind, from `run.started`.
    pub kind: Option<JsonString>,
    /// Where its records come from: `disk`, `stream`, `app-server`, ….
    pub channel: Option<String>,
    /// The adapter that made it, like `claude/2`.
    pub adapter: Option<String>,
    /// What is known of its end; a `run.started` after a `run.completed` opens it again.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The time of its first event.
    pub started_at: Option<Timestamp>,
    /// The time of `run.completed`.
    pub ended_at: Option<Timestamp>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
    /// The number of its first event.
    pub seq_first: Option<Seq>,
    /// The number of its last event.
    pub seq_last: Option<Seq>,
    /// How many events were folded.
    pub events: u64,
    /// The starts of the run, which may be several, and what its source carries from then on; `None` if it does not say.
    pub beginnings: Vec<(Seq, Option<Vec<String>>)>,
    /// The payload of its first `run.started`.
    pub head: Option<RawJson>,
    /// How many of its facts another run has too, by ids or bytes.
    pub matched: u64,
    /// How many of its facts have the same content as one of another run.
    pub alike: u64,
    /// How many of its facts have no match in other runs, on a channel without ids; they are not counted.
    pub unmatched: u64,
}

impl RunHead {
    pub(crate) fn new(id: RunId) -> Self {
        Self {
            id,
            parent: None,
            session: None,
            forked_from: None,
            name: None,
            kind: None,
            channel: None,
            adapter: None,
            state: State::Open,
            error: None,
            started_at: None,
            ended_at: None,
            last_at: None,
            seq_first: None,
            seq_last: None,
            events: 0,
            beginnings: Vec::new(),
            head: None,
            matched: 0,
            alike: 0,
            unmatched: 0,
        }
    }

    /// Updates the head from an event of the run.
    pub(crate) fn note(&mut self, event: &ExchangeEvent) {
        self.events += 1;
        self.seq_first = self.seq_first.or(Some(event.seq));
        self.seq_last = Some(event.seq);
        self.parent = self.parent.or(event.parent_run_id);
        self.session = self.session.or_else(|| session_run_id(event));
        self.started_at.get_or_insert_with(|| event.timestamp.clone());
        self.last_at = Some(event.timestamp.clone());
        match event.event_type.known() {
            Some(EventType::RunStarted) => self.begin(event),
            Some(EventType::RunCompleted) => {
                let fields = PayloadFields::of(event);
                self.error = fields.error();
                self.state = State::of_end(self.error.is_some());
                self.name = self.name.take().or_else(|| fields.string("name"));
                self.kind = self.kind.take().or_else(|| fields.string("kind"));
                self.ended_at = Some(event.timestamp.clone());
            }
            Some(
                EventType::StepStarted
                | EventType::StepCompleted
                | EventType::CallWorkflowStarted
                | EventType::CallWorkflowCompleted
                | EventType::MessageUser
                | EventType::MessageAssistant
                | EventType::ToolCall
                | EventType::ToolResult,
            )
            | None => {}
        }
    }

    fn begin(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        let source = fields.object("source");
        self.name = fields.string("name").or(self.name.take());
        self.kind = fields.string("kind").or(self.kind.take());
        self.forked_from = self.forked_from.or_else(|| forked_from(&fields));
        (self.state, self.error, self.ended_at) = (State::Open, None, None);
        let text = |name: &str| source.text(name).map(std::borrow::Cow::into_owned);
        self.channel = self.channel.take().or_else(|| text("channel"));
        self.adapter = text("adapter").or(self.adapter.take());
        let is_list = source.json_text("carries").is_some_and(|list| list.starts_with('['));
        let words = source.items("carries").into_iter();
        let words = words.filter_map(|word| serde_json::from_str(word.get()).ok()).collect();
        self.beginnings.push((event.seq, is_list.then_some(words)));
        if self.head.is_none() && !event.payload.is_null() {
            self.head = Some(event.payload.clone());
        }
    }

    /// Tells whether usage may come before its words.
    pub(crate) fn usage_may_lead(&self) -> bool {
        self.channel.as_deref() == Some("disk")
    }
}

/// Returns the precedence of a channel, the best first.
pub(crate) fn channel_rank(channel: Option<&str>) -> u8 {
    match channel {
        Some("disk") => 0,
        Some("app-server" | "control") => 1,
        Some("stream") => 2,
        Some("progress") => 3,
        Some("exec") => 4,
        Some(_) | None => 5,
    }
}
