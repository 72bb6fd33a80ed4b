//! Thread, turn, item and event records (003): what a session came to, and what receipts are built from.
//!
//! They are views of a run's events, or read from a directory that another system keeps. What is not known is `None`, and
//! never a guess. Fields that we do not know are passed over: no record is written back.

use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::word::{Word, vocabulary};

vocabulary! {
    /// How a turn or an item stands.
    RecordStatus, "status" {
        /// It waits for its turn.
        Queued = "queued",
        /// It goes on, or nobody has said that it has ended.
        InProgress = "in_progress",
        /// It has ended well.
        Completed = "completed",
        /// It has ended otherwise.
        Failed = "failed",
        /// It was stopped.
        Interrupted = "interrupted",
        /// It was taken back.
        Canceled = "canceled",
    }
}

vocabulary! {
    /// What an item is.
    ItemKind, "item kind" {
        /// A prompt.
        UserMessage = "user_message",
        /// What the agent said.
        AgentMessage = "agent_message",
        /// What the agent thought.
        AgentReasoning = "agent_reasoning",
        /// A call of a tool that is none of the following, or that was not carried out.
        ToolCall = "tool_call",
        /// A change of files.
        FileChange = "file_change",
        /// A command.
        CommandExecution = "command_execution",
        /// History was put into fewer words.
        ContextCompaction = "context_compaction",
        /// Something that the agent says of itself.
        Status = "status",
        /// A failure.
        Error = "error",
    }
}

impl ItemKind {
    /// Tells whether items of this kind are calls, which have results.
    #[must_use]
    pub fn is_call(self) -> bool {
        matches!(self, Self::ToolCall | Self::FileChange | Self::CommandExecution)
    }
}

impl RecordStatus {
    /// Tells whether something that stands so has come to an end of its own.
    #[must_use]
    pub fn has_result(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Its id.
    pub id: String,
    /// What it is called.
    #[serde(default)]
    pub title: Option<String>,
    /// When it began.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When it was last heard of.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// The model, as it was last.
    #[serde(default)]
    pub model: Option<String>,
    /// The directory that it works in.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The agent's mode, as it was last.
    #[serde(default)]
    pub mode: Option<String>,
    /// Whether commands may be run.
    #[serde(default)]
    pub allow_shell: Option<bool>,
    /// Whether the agent may leave its directory.
    #[serde(default)]
    pub trust_mode: Option<bool>,
    /// Whether nobody is asked.
    #[serde(default)]
    pub auto_approve: Option<bool>,
    /// The task that it belongs to.
    #[serde(default)]
    pub task_id: Option<String>,
    /// Its last turn.
    #[serde(default)]
    pub latest_turn_id: Option<String>,
}

/// One turn of a session: a prompt, and all that came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// Its id.
    pub id: String,
    /// What the provider calls it. Forks give several turns one name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The session.
    pub thread_id: String,
    /// How it stands.
    pub status: Word<RecordStatus>,
    /// The prompt, in few words.
    #[serde(default)]
    pub input_summary: Option<String>,
    /// When it began.
    #[serde(default)]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<String>,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// What it cost, in the provider's words.
    #[serde(default)]
    pub usage: Option<RawJson>,
    /// Whether it may have cost more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_is_lower_bound: bool,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// How often the user has put in a word.
    #[serde(default)]
    pub steer_count: Option<u64>,
    /// Its items, in order.
    #[serde(default)]
    pub item_ids: Vec<String>,
    /// What was in force during it.
    #[serde(default)]
    pub settings: TurnSettings,
}

/// What was in force during a turn, as far as the source says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSettings {
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The agent's mode.
    #[serde(default)]
    pub mode: Option<String>,
    /// When somebody is asked.
    #[serde(default)]
    pub approval_policy: Option<String>,
    /// What commands can reach.
    #[serde(default)]
    pub sandbox_policy: Option<RawJson>,
}

/// A message, a thought or a call of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemRecord {
    /// Its id.
    pub id: String,
    /// The turn.
    pub turn_id: String,
    /// What it is.
    pub kind: Word<ItemKind>,
    /// How it stands.
    pub status: Word<RecordStatus>,
    /// What it says, in few words. Never a thought.
    #[serde(default)]
    pub summary: Option<String>,
    /// All that it says, where the record keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawJson>,
    /// Files that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_refs: Vec<String>,
    /// When it began.
    #[serde(default)]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<String>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Its number, which only grows.
    pub seq: u64,
    /// When it happened.
    pub timestamp: String,
    /// The session.
    pub thread_id: String,
    /// The turn, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The item, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<String>,
    /// What happened.
    pub event: String,
    /// All that is known of it.
    pub payload: RawJson,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_others_are_read_whatever_else_they_say() {
        let text = r#"{"schema_version":2,"id":"turn_1","thread_id":"thr_1","status":"paused","input_summary":"Hi",
            "created_at":"2026-06-02T01:00:00Z","usage":{"prompt_tokens":12345678901234567890123},"item_ids":["item_1"]}"#;
        let turn: TurnRecord = serde_json::from_str(text).unwrap();
        assert_eq!((turn.status.known(), turn.status.to_string().as_str()), (None, "paused"));
        assert_eq!(turn.usage.unwrap().as_str(), r#"{"prompt_tokens":12345678901234567890123}"#);
        assert_eq!(
            (turn.item_ids, turn.duration_ms, turn.settings),
            (vec!["item_1".to_owned()], None, TurnSettings::default())
        );
        let item = r#"{"id":"item_1","turn_id":"turn_1","kind":"command_execution","status":"completed","summary":"ls"}"#;
        let item: ItemRecord = serde_json::from_str(item).unwrap();
        assert!(item.kind.known().is_some_and(ItemKind::is_call));
        assert!(item.status.known().is_some_and(RecordStatus::has_result));
        assert!(
            serde_json::from_str::<EventRecord>(r#"{"seq":1,"timestamp":"x","thread_id":"t","event":"e"}"#)
                .is_err()
        );
    }
}
