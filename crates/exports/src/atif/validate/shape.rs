//! The shapes of ATIF: the fields of each object, with their kinds and versions. Tables without logic.

/// An object of ATIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Trajectory,
    Agent,
    Step,
    ToolCall,
    Observation,
    Outcome,
    Reference,
    Part,
    Source,
    Metrics,
    FinalMetrics,
}

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number with this minimum.
    Whole(u64),
    Number,
    TextOrNumber,
    Flag,
    /// Any object.
    Free,
    Object(Shape),
    /// An array of objects.
    Objects(Shape),
    /// An array of any objects.
    FreeObjects,
    /// An array of numbers.
    Numbers,
    /// A string, or since 1.6 an array of parts.
    Content,
    /// A time of RFC 3339.
    Time,
}

/// The ways in which a field may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    /// The field may be absent or null.
    Optional,
}

/// A field of an object.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) want: Want,
    pub(super) need: Need,
    /// The minor version of ATIF that introduced it.
    pub(super) since: u8,
}

/// The last minor version of ATIF 1 that is known.
pub(super) const MINOR_MAX: u8 = 8;
/// The minor version since which content may have parts, and parts may be audio.
pub(super) const PARTS_SINCE: u8 = 6;
pub(super) const AUDIO_SINCE: u8 = 8;
/// The minor version since which a trajectory need not name a session.
pub(super) const SESSION_OPTIONAL_SINCE: u8 = 7;
/// The minor version since which steps of `user` and `system` may have observations.
pub(super) const OBSERVED_SINCE: u8 = 2;
/// The fields that only steps of the agent have.
pub(super) const OF_AGENT: [&str; 5] =
    ["model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"];

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
pub(super) const SOURCE_TYPES: [&str; 12] = [
    "image/jpeg",
    "image/png",
    "image/gif",
    "image/webp",
    "audio/wav",
    "audio/mpeg",
    "audio/mp4",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/webm",
    "audio/aiff",
];

/// Returns true if a media type is that of a picture.
pub(super) fn is_image(media_type: &str) -> bool {
    IMAGE_TYPES.contains(&media_type)
}

const fn required(name: &'static str, want: Want) -> Field {
    Field { name, want, need: Need::Required, since: 0 }
}

const fn optional(name: &'static str, want: Want) -> Field {
    Field { name, want, need: Need::Optional, since: 0 }
}

const fn since(minor: u8, name: &'static str, want: Want) -> Field {
    Field { name, want, need: Need::Optional, since: minor }
}

impl Shape {
    /// Returns the name of the object for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Trajectory => "a trajectory",
            Self::Agent => "an agent",
            Self::Step => "a step",
            Self::ToolCall => "a call",
            Self::Observation => "an observation",
            Self::Outcome => "a result",
            Self::Reference => "a reference",
            Self::Part => "a part",
            Self::Source => "a source",
            Self::Metrics => "metrics",
            Self::FinalMetrics => "final metrics",
        }
    }

    /// Returns its fields.
    pub(super) fn fields(self) -> &'static [Field] {
        match self {
            Self::Trajectory => &TRAJECTORY,
            Self::Agent => &AGENT,
            Self::Step => &STEP,
            Self::ToolCall => &TOOL_CALL,
            Self::Observation => &OBSERVATION,
            Self::Outcome => &OUTCOME,
            Self::Reference => &REFERENCE,
            Self::Part => &PART,
            Self::Source => &SOURCE,
            Self::Metrics => &METRICS,
            Self::FinalMetrics => &FINAL_METRICS,
        }
    }
}

const TRAJECTORY: [Field; 10] = [
    // A separate rule checks its value.
    optional("schema_version", Want::Text),
    optional("session_id", Want::Text),
    since(7, "trajectory_id", Want::Text),
    required("agent", Want::Object(Shape::Agent)),
    required("steps", Want::Objects(Shape::Step)),
    optional("notes", Want::Text),
    optional("final_metrics", Want::Object(Shape::FinalMetrics)),
    optional("continued_trajectory_ref", Want::Text),
    since(1, "extra", Want::Free),
    since(7, "subagent_trajectories", Want::Objects(Shape::Trajectory)),
];

const AGENT: [Field; 5] = [
    required("name", Want::Text),
    required("version", Want::Text),
    optional("model_name", Want::Text),
    since(5, "tool_definitions", Want::FreeObjects),
    optional("extra", Want::Free),
];

const STEP: [Field; 13] = [
    required("step_id", Want::Whole(1)),
    optional("timestamp", Want::Time),
    required("source", Want::Word(&["system", "user", "agent"])),
    optional("model_name", Want::Text),
    optional("reasoning_effort", Want::TextOrNumber),
    required("message", Want::Content),
    optional("reasoning_content", Want::Text),
    optional("tool_calls", Want::Objects(Shape::ToolCall)),
    optional("observation", Want::Object(Shape::Observation)),
    optional("metrics", Want::Object(Shape::Metrics)),
    since(5, "is_copied_context", Want::Flag),
    since(7, "llm_call_count", Want::Whole(0)),
    optional("extra", Want::Free),
];

const TOOL_CALL: [Field; 4] = [
    required("tool_call_id", Want::Text),
    required("function_name", Want::Text),
    required("arguments", Want::Free),
    since(7, "extra", Want::Free),
];

const OBSERVATION: [Field; 1] = [required("results", Want::Objects(Shape::Outcome))];

const OUTCOME: [Field; 4] = [
    optional("source_call_id", Want::Text),
    optional("content", Want::Content),
    optional("subagent_trajectory_ref", Want::Objects(Shape::Reference)),
    since(7, "extra", Want::Free),
];

const REFERENCE: [Field; 4] = [
    since(7, "trajectory_id", Want::Text),
    optional("session_id", Want::Text),
    optional("trajectory_path", Want::Text),
    optional("extra", Want::Free),
];

const PART: [Field; 3] = [
    required("type", Want::Word(&["text", "image", "audio"])),
    optional("text", Want::Text),
    optional("source", Want::Object(Shape::Source)),
];

const SOURCE: [Field; 3] = [
    required("media_type", Want::Word(&SOURCE_TYPES)),
    required("path", Want::Text),
    since(AUDIO_SINCE, "duration_sec", Want::Number),
];

const METRICS: [Field; 8] = [
    optional("prompt_tokens", Want::Whole(0)),
    optional("completion_tokens", Want::Whole(0)),
    optional("cached_tokens", Want::Whole(0)),
    optional("cost_usd", Want::Number),
    since(4, "prompt_token_ids", Want::Numbers),
    since(3, "completion_token_ids", Want::Numbers),
    optional("logprobs", Want::Numbers),
    optional("extra", Want::Free),
];

const FINAL_METRICS: [Field; 6] = [
    optional("total_prompt_tokens", Want::Whole(0)),
    optional("total_completion_tokens", Want::Whole(0)),
    optional("total_cached_tokens", Want::Whole(0)),
    optional("total_cost_usd", Want::Number),
    optional("total_steps", Want::Whole(0)),
    optional("extra", Want::Free),
];
