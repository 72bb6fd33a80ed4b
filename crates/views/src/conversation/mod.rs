//! A session as a conversation: the messages of each turn, with each call and its result.
//!
//! The output of a call is recorded once, in `tool.result`. Here it is a `tool_result` block after its `tool_use`, in
//! whatever order they were reported. Amendments are folded in. A call without a result is marked as such.

mod build;
mod content;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Seq, Timestamp};

pub(crate) use content::{BlockText, block_text, tool_output};

use crate::{EventRef, State};

/// A session as a conversation. Its JSON has every field: null means that the record does not have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversation {
    /// The session.
    pub run_id: RunId,
    /// The runs that it was read from; the first one gives the order.
    pub runs: Vec<SourceRun>,
    /// The run that called it.
    pub parent_run_id: Option<RunId>,
    /// The session that it records from outside.
    pub session_run_id: Option<RunId>,
    /// The run that it is a fork of.
    pub forked_from: Option<RunId>,
    /// Its name, from `run.started`.
    pub name: Option<JsonString>,
    /// What is known of its end.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The system prompts, each time they changed; they are not among the items.
    pub system_prompts: Vec<Prompt>,
    /// The items outside of turns; their numbers say where they belong.
    pub outside: Vec<Item>,
    /// The turns, in the order in which they began.
    pub turns: Vec<Turn>,
    /// How many responses of the model have an id or usage.
    pub responses: u64,
    /// How many calls there are, each counted once.
    pub calls: u64,
    /// How many calls changed files, as far as that is known.
    pub file_changes: u64,
    /// What its responses used, as in `steno usage`; null if no record says it.
    pub usage: Option<RawJson>,
    /// The calls without a result, in the order of their first report.
    pub dangling_calls: Vec<JsonString>,
    /// How many copies of the session went on differently; `show --branches` lists them.
    pub branches: u64,
    /// Records that their adapter did not understand, by name.
    pub unknown_records: BTreeMap<String, u64>,
    /// Events whose type is none of the ten, by type.
    pub unknown_types: BTreeMap<String, u64>,
    /// Blocks whose type is none of the six, by type.
    pub unknown_blocks: BTreeMap<String, u64>,
    /// How many events named another run; they are left out.
    pub foreign_events: u64,
}

/// A run that a session was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceRun {
    /// The run.
    pub run_id: RunId,
    /// Where its records come from: `disk`, `stream`, `app-server`, ….
    pub channel: Option<String>,
    /// The adapter that made it.
    pub adapter: Option<String>,
    /// How many events it has.
    pub events: u64,
    /// How many of them another run has too, by id.
    pub matched: u64,
    /// How many only look like events of another run.
    pub alike: u64,
    /// How many have no match in other runs, on a channel without ids; they are not shown.
    pub unmatched: u64,
}

/// A turn: a prompt and the work that follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// Its path.
    pub path: JsonString,
    /// The provider's id of it.
    pub turn_id: Option<JsonString>,
    /// The run that has it.
    pub run: RunId,
    /// The number of its first event there.
    pub seq: Seq,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What is known of its end.
    pub state: State,
    /// Its status: `in_progress`, `completed`, `interrupted` or `failed`.
    pub status: &'static str,
    /// What ended it: `record`, `interrupt`, `prompt` or `stop_reason`.
    pub ended_by: Option<&'static str>,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// What happened in it, in order.
    pub items: Vec<Item>,
    /// How many items outside of turns come before it.
    #[serde(skip)]
    pub outside_before: usize,
    /// Its first event in each run that has it. One of them is in the same turn when the session has grown.
    #[serde(skip)]
    pub first_events: Vec<EventRef>,
}

/// Something that happened in a conversation; its kind is the `item` field of the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// What the user said.
    Prompt(Prompt),
    /// What the model said in one response.
    Message(Message),
    /// A call that no message holds, as two blocks.
    Call(LooseCall),
    /// An approval of something that is not a call of this run.
    Approval(Approval),
    /// A child run that no call of this run started.
    Child(ChildRun),
    /// The conversation so far was replaced by a summary of it.
    Compaction(Fact),
    /// Any other step: a retry, an error, a system event, ….
    Fact(Fact),
}

/// A message of the user or a system prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// The run that has it.
    pub run: RunId,
    /// The number of its event there.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// The run whose record it is copied from.
    pub copied_from: Option<RunId>,
    /// What was said, in order.
    pub blocks: Vec<Block>,
}

/// What the model said in one response, put together from all its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The run that has it.
    pub run: RunId,
    /// The number of its first event there.
    pub seq: Seq,
    /// When it began.
    pub at: Timestamp,
    /// The run whose record it is copied from.
    pub copied_from: Option<RunId>,
    /// The provider's id of the response, or its number where the provider gives none.
    pub response: Option<RawJson>,
    /// The model.
    pub model: Option<JsonString>,
    /// Why the model stopped.
    pub stop_reason: Option<JsonString>,
    /// Its blocks, in order; the result of a call follows the call.
    pub blocks: Vec<Block>,
}

/// A call that no message holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LooseCall {
    /// The run that has it.
    pub run: RunId,
    /// The number of its first event there.
    pub seq: Seq,
    /// The call, and its result if there is one.
    pub blocks: Vec<Block>,
}

/// A block of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Block {
    /// A block as it was recorded.
    Recorded(RawJson),
    /// `"type": "tool_use"`
    ToolUse(Box<ToolUse>),
    /// `"type": "tool_result"`
    ToolResult(Box<ToolResult>),
}

/// A call, with its approvals and the runs it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "tool_use")]
pub struct ToolUse {
    /// Who saw it.
    pub fidelity: Option<JsonString>,
    /// The tool.
    pub tool_name: Option<JsonString>,
    /// The id that pairs it with its result.
    pub tool_id: Option<JsonString>,
    /// Its arguments, as they came.
    pub tool_input: Option<RawJson>,
    /// What sort of tool it is: command, `file_change`, mcp, agent, other.
    pub class: Option<JsonString>,
    /// The run that has its `tool.call`; without one, the run that mentions it first.
    pub run: RunId,
    /// The number of its `tool.call` there.
    pub seq_call: Option<Seq>,
    /// Whether no result is recorded.
    pub is_dangling: bool,
    /// Its approvals.
    pub approvals: Vec<Approval>,
    /// The runs that it started.
    pub child_runs: Vec<ChildRun>,
    /// The events about it in all runs. They are about the same call when the session has grown.
    #[serde(skip)]
    pub events: Vec<EventRef>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "tool_result")]
pub struct ToolResult {
    /// Who saw it.
    pub fidelity: Option<JsonString>,
    /// The id of its call.
    pub tool_id: Option<JsonString>,
    /// The output, as it came.
    pub tool_content: Option<RawJson>,
    /// How the call ended: ok, failed, denied, interrupted, unknown.
    pub outcome: Option<JsonString>,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The exit code, if it is known.
    pub exit_code: Option<RawJson>,
    /// What an edit changed, with the numbers of lines: a unified diff, or an object with a field for each file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<RawJson>,
    /// The run that has its `tool.result`; null if it was part of a message.
    pub run: Option<RunId>,
    /// The number of its `tool.result` there.
    pub seq_result: Option<Seq>,
    /// The time from the call to its result, in milliseconds.
    pub duration_ms: Option<i64>,
    /// Whether a later event amended it.
    pub is_amended: bool,
}

/// An approval: the request and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// The request's id.
    pub request: Option<JsonString>,
    /// The run that has it.
    pub run: RunId,
    /// The number of its first event there.
    pub seq: Seq,
    /// The call that it is about.
    pub tool_call_id: Option<JsonString>,
    /// Whether it was answered.
    pub state: State,
    /// `allowed`, `denied`, or what the provider says.
    pub decision: Option<JsonString>,
    /// Who decided.
    pub by: Option<JsonString>,
    /// For how long.
    pub scope: Option<JsonString>,
}

/// A link to a child run, which has its own conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChildRun {
    /// The run.
    pub run_id: RunId,
    /// Its name here.
    pub name: Option<JsonString>,
    /// The run that names it.
    pub run: RunId,
    /// The number of the event that names it first.
    pub seq: Seq,
    /// The call that began it.
    pub tool_call_id: Option<JsonString>,
    /// How it ended, as reported by its parent.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
}

/// A step that is none of the above.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The run that has it.
    pub run: RunId,
    /// The number of its first event there.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// Its kind.
    pub kind: Option<JsonString>,
    /// Its name.
    pub name: Option<JsonString>,
    /// What is known of its end.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// Its result; the summary of a compaction.
    pub result: Option<RawJson>,
}

/// Returns a number of branches in words.
#[must_use]
pub fn count_of_branches(branches: u64) -> String {
    if branches == 1 { "1 branch".to_owned() } else { format!("{} branches", crate::thousands(branches)) }
}
