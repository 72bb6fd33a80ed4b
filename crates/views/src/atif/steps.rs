//! The steps of a trajectory as they are put together from events, before they are written.

use steno_model::json::{JsonString, RawJson};
use steno_model::{ExchangeEvent, RunId, Seq, Timestamp};

use super::calls::CallNumber;
use super::content::Part;
use crate::fields::PayloadFields;
use crate::usage::{Counts, Tokens};

/// A step: what one side said, or what happened.
pub(super) struct Step {
    /// The number of its first event.
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    /// Where it stands: its turn.
    pub(super) path: JsonString,
    /// The run or the session whose record it is copied from.
    pub(super) copied_from: Option<JsonString>,
    pub(super) parts: Vec<Part>,
    /// What else its record says.
    pub(super) facts: Vec<(JsonString, RawJson)>,
    pub(super) role: Role,
}

/// Whose step it is.
pub(super) enum Role {
    User,
    System(System),
    Agent(Box<Response>),
    /// Part of another step after all.
    Absorbed,
}

/// A step that nobody said.
#[derive(Default)]
pub(super) struct System {
    /// What it is: `system_prompt`, `compaction`, `retry`, ….
    pub(super) kind: Option<JsonString>,
    pub(super) name: Option<JsonString>,
    pub(super) error: Option<JsonString>,
    /// What it gave, where that is more than a text.
    pub(super) result: Option<RawJson>,
    pub(super) is_open: bool,
    /// The run that it began.
    pub(super) child: Option<RunId>,
}

/// One response of the model.
#[derive(Default)]
pub(super) struct Response {
    pub(super) id: Option<RawJson>,
    pub(super) model: Option<JsonString>,
    pub(super) effort: Option<RawJson>,
    pub(super) stop_reason: Option<JsonString>,
    pub(super) thoughts: Vec<JsonString>,
    /// How many thoughts the provider keeps to itself.
    pub(super) hidden_thoughts: u64,
    pub(super) calls: Vec<CallNumber>,
    pub(super) usage: Option<StepUsage>,
    pub(super) origin: Origin,
    /// Whether it is the summary that a compaction asked for.
    pub(super) is_compaction: bool,
}

/// What is known of how a step of the agent came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// Words that no record ties to one response.
    #[default]
    Words,
    /// One response, by its id or by its usage.
    Response,
    /// A call that is in no response.
    CallAlone,
}

/// What one response used.
pub(super) struct StepUsage {
    pub(super) tokens: Tokens,
    /// The provider's own report.
    pub(super) report: RawJson,
    is_final: bool,
    is_lower_bound: bool,
}

impl Step {
    /// Makes a step of an event.
    pub(super) fn of(event: &ExchangeEvent, role: Role) -> Self {
        Self {
            seq: event.seq,
            at: event.timestamp.clone(),
            path: event.path.clone(),
            copied_from: copied_from(event),
            parts: Vec::new(),
            facts: Vec::new(),
            role,
        }
    }

    /// Takes over what another step of the same response has; that one is none any more.
    pub(super) fn absorb(&mut self, other: &mut Self) {
        let Role::Agent(theirs) = std::mem::replace(&mut other.role, Role::Absorbed) else { return };
        self.parts.append(&mut other.parts);
        self.facts.append(&mut other.facts);
        if let Role::Agent(ours) = &mut self.role {
            ours.thoughts.extend(theirs.thoughts);
            ours.hidden_thoughts += theirs.hidden_thoughts;
            ours.calls.extend(theirs.calls);
        }
    }
}

/// Returns whose record an event is copied from: a run, or a session with the id of the record.
pub(super) fn copied_from(event: &ExchangeEvent) -> Option<JsonString> {
    let from = event.extra.get("copied_from").filter(|from| !from.is_null())?;
    let run = || serde_json::from_str(from.as_str()).ok().and_then(JsonString::from_raw);
    let session = PayloadFields::parse(from.as_str()).string("session_id");
    Some(session.or_else(run).unwrap_or_else(|| "unknown".into()))
}

impl StepUsage {
    /// Reads the usage of a response, if a record has it.
    pub(super) fn read(fields: &PayloadFields<'_>) -> Option<Self> {
        if fields.text("usage_scope")? != "response" {
            return None;
        }
        let report = fields.json("usage")?;
        let counts = Counts::read(report.as_str())?;
        Some(Self {
            tokens: counts.tokens,
            report,
            is_final: fields.is_true("final"),
            is_lower_bound: fields.is_true("lower_bound") || !counts.is_whole,
        })
    }

    /// Takes another record of the same response: the largest counts are right.
    pub(super) fn refine(&mut self, other: Self) {
        if other.tokens.total() >= self.tokens.total() {
            self.report = other.report;
        }
        self.tokens = self.tokens.max(other.tokens);
        self.is_final |= other.is_final;
        self.is_lower_bound &= other.is_lower_bound;
    }

    /// Tells whether it may have been more.
    pub(super) fn is_lower_bound(&self) -> bool {
        self.is_lower_bound || !self.is_final
    }
}
