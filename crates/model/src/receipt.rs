//! Receipts (003): what one turn of a session did, as far as the record proves it.
//!
//! The order of fields is the order in the JSON. Unknown values are `null` and listed under `unavailable`.

use serde::{Deserialize, Serialize};

use crate::json::RawJson;

/// The schema id of receipts (R84).
pub const SCHEMA_ID: &str = "codewhale.conformance-receipt/v0";
/// The most that a receipt claims (R92). Not a setting.
pub const CLAIM_CEILING: [&str; 3] =
    ["local_receipt_only", "not_safety_certification", "not_provider_compatibility_certification"];

/// A receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// [`SCHEMA_ID`].
    pub schema_id: &'static str,
    /// The session (R85).
    pub thread: ReceiptThread,
    /// The turn (R86).
    pub turn: ReceiptTurn,
    /// How the agent's reasoning is kept (R87).
    pub reasoning_custody: ReasoningCustody,
    /// Calls and their results (R88).
    pub tool_lineage: ToolLineage,
    /// Its token usage (R89).
    pub usage_evidence: UsageEvidence,
    /// Which events it is made of (R90).
    pub source_event_lineage: EventLineage,
    /// Effects outside the conversation (R91).
    pub side_effect_boundary: SideEffects,
    /// [`CLAIM_CEILING`].
    pub claim_ceiling: [&'static str; 3],
    /// What is null, and why (R99).
    pub unavailable: Vec<Unavailable>,
    /// Proofs of its lines that can be checked without the store, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrity: Option<Integrities>,
}

/// The session, as it was during the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiptThread {
    /// Its id.
    pub id: String,
    /// The model.
    pub model: Option<String>,
    /// The agent's mode.
    pub mode: Option<String>,
    /// Whether everything was approved automatically.
    pub auto_approve: Option<bool>,
    /// Whether the agent could leave its directory.
    pub trust_mode: Option<bool>,
    /// Whether commands could be run.
    pub allow_shell: Option<bool>,
}

/// The turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiptTurn {
    /// Its id.
    pub id: String,
    /// Its status.
    pub status: String,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
}

/// How the agent's reasoning is kept. Its text is never in a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasoningCustody {
    /// Always false.
    pub raw_reasoning_exported: bool,
    /// Whether the record has any.
    pub available: bool,
    /// Why not, if it does not.
    pub reason: Option<String>,
    /// How many there are.
    pub item_count: Option<u64>,
    /// Which ones.
    pub items: Vec<ReasoningItem>,
}

/// A reasoning item, by its id and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasoningItem {
    /// The item.
    pub id: String,
    /// SHA-256 of its text in UTF-8; null where the provider does not disclose it.
    pub sha256: Option<String>,
}

/// Calls and their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolLineage {
    /// How many calls there were.
    pub tool_call_count: u64,
    /// How many results.
    pub tool_result_count: u64,
    /// Calls that have no result.
    pub unmatched_tool_call_ids: Vec<String>,
    /// Results that have no call.
    pub unmatched_tool_result_ids: Vec<String>,
}

/// The token usage of the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsageEvidence {
    /// Whether the usage is known.
    pub available: bool,
    /// The counts, by the provider's names.
    pub usage: Option<RawJson>,
    /// Whether they include cached tokens.
    pub provider_cache_breakdown_available: bool,
}

/// Which events a receipt is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventLineage {
    /// The first one.
    pub first_seq: Option<u64>,
    /// The last one.
    pub last_seq: Option<u64>,
    /// How many there are.
    pub event_count: u64,
    /// What is missing between these in the whole record; null where that is not known.
    pub missing_event_ranges: Option<Vec<MissingRange>>,
    /// The runs that were used, the one that defines the order first; absent where the record is not a store of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<LineageRun>>,
}

/// A run that a receipt was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineageRun {
    /// The run.
    pub run_id: String,
    /// How many events it had.
    pub tree_size: u64,
    /// The adapter that made it; null if unknown.
    pub adapter: Option<String>,
}

/// Events that are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MissingRange {
    /// Numbers that were used but whose events are missing.
    Gap {
        /// The first one.
        first_seq: u64,
        /// The last one.
        last_seq: u64,
    },
    /// Events without a number, known from a note beside the record.
    Noted {
        /// The last event before them.
        after_seq: u64,
        /// How many there were.
        count: u64,
        /// What happened to them.
        what: String,
        /// The run that lacks them, if it is not the one that numbers the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
    },
}

/// Effects outside the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SideEffects {
    /// How many approvals were requested.
    pub approval_required_count: Option<u64>,
    /// How many were granted.
    pub approval_allowed_count: Option<u64>,
    /// How many were denied.
    pub approval_denied_count: Option<u64>,
    /// How many commands were run.
    pub command_execution_count: Option<u64>,
    /// How many changes of files were made.
    pub file_change_count: Option<u64>,
    /// How often a sandbox blocked something.
    pub sandbox_denied_count: Option<u64>,
}

/// A field that is null, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unavailable {
    /// Its name, with dots.
    pub field: String,
    /// Why it is not known.
    pub reason: String,
}

/// Proofs of the lines of a receipt that can be checked without the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integrities {
    /// A tree for each run that was used.
    Several(Vec<Integrity>),
    /// The tree of the only run, in the format of older versions.
    One(Integrity),
}

impl Integrities {
    /// Returns the trees.
    #[must_use]
    pub fn all(&self) -> &[Integrity] {
        match self {
            Self::Several(all) => all,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// The Merkle tree of one run, and the lines of it that a receipt is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integrity {
    /// The run.
    pub run_id: String,
    /// How many lines the run had: the number of leaves.
    pub tree_size: u64,
    /// The root of the Merkle tree over them (RFC 6962, SHA-256), in hex.
    pub root: String,
    /// The lines that the receipt is made of, in order.
    pub lines: Vec<LineProof>,
}

/// One line, and its position in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineProof {
    /// The number of its event. The index of its leaf is one less.
    pub seq: u64,
    /// SHA-256 of its bytes without the newline, in hex.
    pub sha256: String,
    /// The hashes on the path from the leaf to the root, in hex.
    pub audit_path: Vec<String>,
}
