//! Messages of both sides, and the model's responses.

use steno_model::Timestamp;
use steno_model::json::{JsonString, RawJson};

use super::{CallNumber, EventPosition, MessageId, StepId, TurnId};
use crate::usage::Tokens;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user's side.
    User,
    /// The system prompt.
    System,
    /// The model.
    Model,
}

/// One record of a message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its event.
    pub at: EventPosition,
    /// When.
    pub time: Timestamp,
    /// Who said it.
    pub speaker: Speaker,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// The step that it is in.
    pub step: Option<StepId>,
    /// Its path.
    pub path: JsonString,
    /// The provider's id of the record.
    pub id: Option<JsonString>,
    /// The run or session that it is copied from.
    pub copied_from: Option<JsonString>,
    /// What was said, in order.
    pub blocks: Vec<Block>,
    /// Other fields of the record.
    pub extra: Vec<(JsonString, RawJson)>,
    /// The bytes that it was made from, if it has only placeholders of pictures.
    pub evidence: Option<RawJson>,
}

/// A block of a message.
#[derive(Clone, Debug)]
pub enum Block {
    /// A block as it was recorded.
    Recorded(RawJson),
    /// A call that the model asks for.
    Call(CallNumber),
    /// A block that is stored elsewhere: a result with its call, a call with its first report.
    Elsewhere,
}

/// Why records are grouped as one response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseOrigin {
    /// They are consecutive words without an id or usage.
    #[default]
    Words,
    /// They share an id, or one usage record.
    Response,
}

/// One response of the model.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its first event.
    pub at: EventPosition,
    /// When it began.
    pub time: Timestamp,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// The step that it is in.
    pub step: Option<StepId>,
    /// Its path.
    pub path: JsonString,
    /// The run or session that it is copied from.
    pub copied_from: Option<JsonString>,
    /// Its records, in order; none if only its usage is recorded.
    pub messages: Vec<MessageId>,
    /// The calls that it asks for.
    pub calls: Vec<CallNumber>,
    /// The provider's id of it, or its number where the provider gives none.
    pub id: Option<RawJson>,
    /// The model.
    pub model: Option<JsonString>,
    /// The reasoning effort that the model was set to.
    pub effort: Option<RawJson>,
    /// Why the model stopped.
    pub stop_reason: Option<JsonString>,
    /// Its phase, if the provider says it.
    pub phase: Option<RawJson>,
    /// What it used.
    pub usage: Option<ResponseUsage>,
    /// Why its records are one response.
    pub origin: ResponseOrigin,
    /// Whether it is the summary that a compaction asked for.
    pub is_compaction: bool,
}

/// What one response used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseUsage {
    /// The largest counts of its records.
    pub tokens: Tokens,
    /// The provider's own report.
    pub report: RawJson,
    /// Whether these are the last counts.
    pub is_final: bool,
    /// Whether they are known to be a lower bound.
    pub is_lower_bound: bool,
}
