//! Thread, turn, item and event records (003), from which receipts are made.
//!
//! They are views of a run's events, or read from a directory of another system. Unknown values are `None`, never a
//! guess. Unknown fields are ignored: no record is written back.

use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::word::{Word, vocabulary};

vocabulary! {
    /// The status of a turn or an item.
    RecordStatus, "status" {
        /// It has not started.
        Queued = "queued",
        /// It is running, or its end is not recorded.
        InProgress = "in_progress",
        /// It ended successfully.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Interrupted = "interrupted",
        /// It was rolled back.
        Canceled = "canceled",
    }
}

vocabulary! {
    /// The kind of an item.
    ItemKind, "item kind" {
        /// A prompt.
        UserMessage = "user_message",
        /// A message of the agent.
        AgentMessage = "agent_message",
        /// Reasoning of the agent.
        AgentReasoning = "agent_reasoning",
        /// A call of another tool, or one that was not executed.
        ToolCall = "tool_call",
        /// A change of files.
        FileChange = "file_change",
        /// A command.
        CommandExecution = "command_execution",
        /// A compaction of the history.
        ContextCompaction = "context_compaction",
        /// A status message of the agent.
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
    /// Tells whether this status is final.
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
    /// Its name.
    #[serde(default)]
    pub title: Option<String>,
    /// When it began.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When it was last active.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// The last model.
    #[serde(default)]
    pub model: Option<String>,
    /// Its working directory.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The agent's last mode.
    #[serde(default)]
    pub mode: Option<String>,
    /// Whether commands may be run.
    #[serde(default)]
    pub allow_shell: Option<bool>,
    /// Whether the agent may leave its directory.
    #[serde(default)]
    pub trust_mode: Option<bool>,
    /// Whether everything is approved automatically.
    #[serde(default)]
    pub auto_approve: Option<bool>,
    /// The task that it belongs to.
    #[serde(default)]
    pub task_id: Option<String>,
    /// Its last turn.
    #[serde(default)]
    pub latest_turn_id: Option<String>,
}

/// One turn of a session: a prompt and everything up to the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// Its id.
    pub id: String,
    /// The provider's name for it. Forks give several turns the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The session.
    pub thread_id: String,
    /// Its status.
    pub status: Word<RecordStatus>,
    /// The prompt, shortened.
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
    /// Its token usage, under the provider's names.
    #[serde(default)]
    pub usage: Option<RawJson>,
    /// Whether the usage may be incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_is_lower_bound: bool,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// How often the user interjected.
    #[serde(default)]
    pub steer_count: Option<u64>,
    /// Its items, in order.
    #[serde(default)]
    pub item_ids: Vec<String>,
    /// Its settings.
    #[serde(default)]
    pub settings: TurnSettings,
}

/// The settings of a turn, as far as the source has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSettings {
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The agent's mode.
    #[serde(default)]
    pub mode: Option<String>,
    /// The approval policy.
    #[serde(default)]
    pub approval_policy: Option<String>,
    /// The sandbox policy.
    #[serde(default)]
    pub sandbox_policy: Option<RawJson>,
}

/// A message, reasoning or a call of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemRecord {
    /// Its id.
    pub id: String,
    /// The turn.
    pub turn_id: String,
    /// What it is.
    pub kind: Word<ItemKind>,
    /// Its status.
    pub status: Word<RecordStatus>,
    /// Its text, shortened. Never reasoning.
    #[serde(default)]
    pub summary: Option<String>,
    /// Its full text, if the record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// More details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawJson>,
    /// Its files.
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
    /// Its number, which only increases.
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
    /// Its details.
    pub payload: RawJson,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_unknown_fields_and_words_are_read() {
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
