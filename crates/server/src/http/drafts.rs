//! What may be sent to be recorded, for readers of the document. What is read is a draft of the model, which has the rules.

#![expect(dead_code, reason = "only the shapes are told")]

use serde::Serialize;
use utoipa::ToSchema;

/// One event, or several.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Drafts {
    One(EventDraft),
    Several(Vec<EventDraft>),
}

/// An event that has no number yet: its `type` says what `payload` it has. It may have a `timestamp` of RFC 3339 and an
/// `iteration` too; other fields are kept.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum EventDraft {
    Run(RunDraft),
    Step(StepDraft),
    Prompt(PromptDraft),
    Response(ResponseDraft),
    Call(CallDraft),
    Result(ResultDraft),
}

/// A run begins or ends.
#[derive(Serialize, ToSchema)]
pub(super) struct RunDraft {
    #[serde(rename = "type")]
    kind: RunType,
    payload: Option<Step>,
}

#[derive(Serialize, ToSchema)]
pub(super) enum RunType {
    #[serde(rename = "run.started")]
    Started,
    #[serde(rename = "run.completed")]
    Completed,
}

/// A step begins or ends.
#[derive(Serialize, ToSchema)]
pub(super) struct StepDraft {
    #[serde(rename = "type")]
    kind: StepType,
    payload: Step,
    /// The step it happened in
    #[schema(nullable = false)]
    path: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) enum StepType {
    #[serde(rename = "step.started")]
    Started,
    #[serde(rename = "step.completed")]
    Completed,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Step {
    /// What it is called
    name: String,
    /// What it is, like `turn`, `approval`, `command`
    kind: String,
}

/// A prompt.
#[derive(Serialize, ToSchema)]
pub(super) struct PromptDraft {
    #[serde(rename = "type")]
    kind: PromptType,
    payload: Prompt,
}

#[derive(Serialize, ToSchema)]
pub(super) enum PromptType {
    #[serde(rename = "message.user")]
    User,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Prompt {
    role: UserRole,
    blocks: Vec<TextBlock>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UserRole {
    User,
}

/// A response.
#[derive(Serialize, ToSchema)]
pub(super) struct ResponseDraft {
    #[serde(rename = "type")]
    kind: ResponseType,
    payload: Response,
}

#[derive(Serialize, ToSchema)]
pub(super) enum ResponseType {
    #[serde(rename = "message.assistant")]
    Assistant,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Response {
    role: AssistantRole,
    blocks: Vec<TextBlock>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AssistantRole {
    Assistant,
}

/// Something that is said. Blocks of other types have other fields.
#[derive(Serialize, ToSchema)]
pub(super) struct TextBlock {
    #[serde(rename = "type")]
    kind: TextType,
    fidelity: Fidelity,
    text: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TextType {
    Text,
}

/// Whether it was seen at a seam of ours, or reported by the agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fidelity {
    Router,
    AgentEmitted,
}

/// A tool is called.
#[derive(Serialize, ToSchema)]
pub(super) struct CallDraft {
    #[serde(rename = "type")]
    kind: CallType,
    payload: Called,
}

#[derive(Serialize, ToSchema)]
pub(super) enum CallType {
    #[serde(rename = "tool.call")]
    Call,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Called {
    name: String,
    /// What a call and its result share
    call_id: String,
    /// What it is called with
    input: serde_json::Value,
    fidelity: Fidelity,
}

/// A tool has answered.
#[derive(Serialize, ToSchema)]
pub(super) struct ResultDraft {
    #[serde(rename = "type")]
    kind: ResultType,
    payload: Answered,
}

#[derive(Serialize, ToSchema)]
pub(super) enum ResultType {
    #[serde(rename = "tool.result")]
    Result,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Answered {
    name: String,
    /// What a call and its result share
    call_id: String,
    /// What it has answered
    output: serde_json::Value,
    fidelity: Fidelity,
}
