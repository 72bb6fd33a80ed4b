//! The summary of a run: its names, its start and its end.

use serde::Serialize;
use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent, RunId, Seq, Timestamp};

use crate::fields::{PayloadFields, session_run_id};
use crate::state::State;

/// The summary of a run. Its JSON has null where something is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// The run.
    pub run_id: RunId,
    /// The run that called it.
    pub parent_run_id: Option<RunId>,
    /// The session that it shows, if that has another id.
    pub session_run_id: Option<RunId>,
    /// The provider of the agent: `source.provider` of `run.started`, else the part of `source.adapter` before `/`.
    pub provider: Option<JsonString>,
    /// Its name, from `run.started`.
    pub name: Option<JsonString>,
    /// Its kind, from `run.started`.
    pub kind: Option<JsonString>,
    /// What is known of its end; a `run.started` after a `run.completed` opens it again.
    pub state: State,
    /// The time of its first event.
    pub started_at: Option<Timestamp>,
    /// The time of `run.completed`; ends are never inferred.
    pub ended_at: Option<Timestamp>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
    /// The number of its last event.
    pub seq_last: Option<Seq>,
    /// How many events it has, by their numbers: a file has no gaps, which `verify` checks.
    pub events: u64,
    /// The number of its first event.
    #[serde(skip)]
    pub seq_first: Option<Seq>,
    /// Why it failed.
    #[serde(skip)]
    pub error: Option<JsonString>,
    /// Whether its process ended with a signal, or with another exit code than 0.
    #[serde(skip)]
    pub has_failed_exit: bool,
}

impl RunSummary {
    /// Begins the summary of a run.
    #[must_use]
    pub fn new(run_id: RunId) -> Self {
        Self {
            run_id,
            parent_run_id: None,
            session_run_id: None,
            provider: None,
            name: None,
            kind: None,
            state: State::Open,
            started_at: None,
            ended_at: None,
            last_at: None,
            seq_last: None,
            events: 0,
            seq_first: None,
            error: None,
            has_failed_exit: false,
        }
    }

    /// Takes the next event of the run. Events may be left out between the first and the last; one of another run
    /// changes nothing.
    pub fn push(&mut self, event: &ExchangeEvent) {
        if event.run_id != self.run_id {
            return;
        }
        let seq_first = *self.seq_first.get_or_insert(event.seq);
        self.events = event.seq.get().saturating_sub(seq_first.get()).saturating_add(1);
        self.seq_last = Some(event.seq);
        self.parent_run_id = self.parent_run_id.or(event.parent_run_id);
        self.session_run_id = self.session_run_id.or_else(|| session_run_id(event));
        self.started_at.get_or_insert_with(|| event.timestamp.clone());
        self.last_at = Some(event.timestamp.clone());
        match event.event_type.known() {
            Some(EventType::RunStarted) => self.run_started(event),
            Some(EventType::RunCompleted) => self.run_completed(event),
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

    fn run_started(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        self.provider = provider_of(&fields.object("source")).or(self.provider.take());
        self.name = fields.string("name").or(self.name.take());
        self.kind = fields.string("kind").or(self.kind.take());
        (self.state, self.error, self.ended_at) = (State::Open, None, None);
        self.has_failed_exit = false;
    }

    fn run_completed(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        self.error = fields.error();
        self.state = State::of_end(self.error.is_some());
        let is_success = |code: &str| code == "0" || code == "null";
        self.has_failed_exit = fields.json_text("exit_code").is_some_and(|code| !is_success(code))
            || fields.json_text("signal").is_some_and(|signal| signal != "null");
        self.ended_at = Some(event.timestamp.clone());
        self.name = self.name.take().or_else(|| fields.string("name"));
        self.kind = self.kind.take().or_else(|| fields.string("kind"));
    }
}

/// Returns the provider of a run's source.
#[must_use]
pub fn provider_of(source: &PayloadFields<'_>) -> Option<JsonString> {
    source.string("provider").or_else(|| {
        let adapter = source.string("adapter")?;
        let text = adapter.to_text();
        Some(text.split('/').next().unwrap_or(&text).into())
    })
}
