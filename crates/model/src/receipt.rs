//! Receipts (003): what one turn of a session did, as far as the record can vouch for it, and no further.
//!
//! The order of fields is the order of bytes. What is not known is `null` and listed under `unavailable`.

use serde::{Deserialize, Serialize};

use crate::json::RawJson;

/// What kind of document a receipt is (R84).
pub const SCHEMA_ID: &str = "codewhale.conformance-receipt/v0";
/// What no receipt claims to be more than (R92). Not a setting.
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
    /// What became of the agent's thoughts (R87).
    pub reasoning_custody: ReasoningCustody,
    /// Calls and their results (R88).
    pub tool_lineage: ToolLineage,
    /// What it cost (R89).
    pub usage_evidence: UsageEvidence,
    /// Which events it is made of (R90).
    pub source_event_lineage: EventLineage,
    /// What reached beyond the conversation (R91).
    pub side_effect_boundary: SideEffects,
    /// [`CLAIM_CEILING`].
    pub claim_ceiling: [&'static str; 3],
    /// What is null, and why (R99).
    pub unavailable: Vec<Unavailable>,
    /// How the lines that it is made of can be checked without the store, if somebody wanted that.
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
    /// Whether nobody was asked.
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
    /// How it stands.
    pub status: String,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
}

/// What became of the agent's thoughts. Their words are never in a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasoningCustody {
    /// Always false.
    pub raw_reasoning_exported: bool,
    /// Whether the record keeps any.
    pub available: bool,
    /// Why not, if it does not.
    pub reason: Option<String>,
    /// How many there are.
    pub item_count: Option<u64>,
    /// Which ones.
    pub items: Vec<ReasoningItem>,
}

/// A thought, by its name and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasoningItem {
    /// The item.
    pub id: String,
    /// SHA-256 of its words in UTF-8; null where the provider keeps those to itself.
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

/// What the turn cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsageEvidence {
    /// Whether that is known.
    pub available: bool,
    /// The counts, by the provider's names.
    pub usage: Option<RawJson>,
    /// Whether they tell what came from a cache.
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
    /// What is missing between these, over the whole record; null where that cannot be known.
    pub missing_event_ranges: Option<Vec<MissingRange>>,
    /// The runs that were used, the one with the order of the session first; absent where the record is no store of ours.
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
    /// The adapter that made it; null where it does not say.
    pub adapter: Option<String>,
}

/// Events that are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MissingRange {
    /// Numbers that were used and whose events are not there.
    Gap {
        /// The first one.
        first_seq: u64,
        /// The last one.
        last_seq: u64,
    },
    /// Events that never got a number, as a note beside the record says.
    Noted {
        /// The last event before them.
        after_seq: u64,
        /// How many there were.
        count: u64,
        /// What became of them.
        what: String,
        /// The run that lacks them, where it is not the one that the turn is numbered by.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
    },
}

/// What reached beyond the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SideEffects {
    /// How often somebody was asked.
    pub approval_required_count: Option<u64>,
    /// How often the answer was yes.
    pub approval_allowed_count: Option<u64>,
    /// How often it was no.
    pub approval_denied_count: Option<u64>,
    /// How many commands were run.
    pub command_execution_count: Option<u64>,
    /// How many changes of files were made.
    pub file_change_count: Option<u64>,
    /// How often a sandbox held something up.
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

/// How the lines of a receipt can be checked without the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integrities {
    /// A tree for each run that was used.
    Several(Vec<Integrity>),
    /// The tree of the only run, as older programs have written it.
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

/// The tree of one run, and the lines of it that a receipt is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integrity {
    /// The run.
    pub run_id: String,
    /// How many lines the run had: all of these are leaves of the tree.
    pub tree_size: u64,
    /// The root of the Merkle tree over them (RFC 6962, SHA-256), in hex.
    pub root: String,
    /// The lines that the receipt is made of, in order.
    pub lines: Vec<LineProof>,
}

/// One line, and its place in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineProof {
    /// The number of its event. Its leaf is that many less one.
    pub seq: u64,
    /// SHA-256 of its bytes without the line's end, in hex.
    pub sha256: String,
    /// The hashes on the way to the root, from the leaf on, in hex.
    pub audit_path: Vec<String>,
}
