//! Builds receipts.

use std::collections::{HashMap, HashSet};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use steno_model::receipt::{
    CLAIM_CEILING, EventLineage, MissingRange, ReasoningCustody, ReasoningItem, Receipt, ReceiptThread,
    ReceiptTurn, SCHEMA_ID, SideEffects, ToolLineage, Unavailable, UsageEvidence,
};
use steno_model::records::{ItemKind, ItemRecord, RecordStatus, ThreadRecord, TurnRecord};
use steno_session::PayloadFields;

use super::approvals::Approvals;
use super::facts::{Channel, TurnFacts};
use crate::records::Flags;

/// Names of the counts of cached tokens.
const CACHE_COUNTS: [&str; 12] = [
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "cachedInputTokens",
    "cacheWriteInputTokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "cacheReadTokens",
    "cacheWriteTokens",
];

/// Where records come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOrigin {
    /// A session of the store.
    Session,
    /// A directory of records, which its system keeps complete.
    Directory,
}

/// The events that are missing in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingEvents {
    /// Exactly these.
    Known(Vec<MissingRange>),
    /// Unknown, for this reason.
    Unknown(String),
}

/// The input of a receipt.
pub struct ReceiptInput<'a> {
    /// The session.
    pub thread: &'a ThreadRecord,
    /// The turn.
    pub turn: &'a TurnRecord,
    /// Items, which may include those of other turns.
    pub items: &'a [ItemRecord],
    /// Other facts of the turn's events.
    pub facts: TurnFacts,
    /// Where these come from.
    pub origin: RecordOrigin,
    /// What is missing among the events.
    pub missing: MissingEvents,
}

/// Why a receipt cannot be built (R96).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The turn belongs to another session.
    Turn {
        /// The turn.
        turn: String,
        /// The session that was asked for.
        thread: String,
        /// The session that the turn names.
        actual: String,
    },
    /// The turn names an item of another turn.
    Item {
        /// The item.
        item: String,
        /// The turn that it names.
        actual: String,
    },
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Turn { turn, thread, actual } => {
                write!(out, "turn `{turn}` belongs to thread `{actual}`, not to `{thread}`")
            }
            Self::Item { item, actual } => write!(out, "item `{item}` belongs to turn `{actual}`"),
        }
    }
}

impl std::error::Error for Mismatch {}

/// Builds the receipt of a turn.
///
/// # Errors
/// When the records do not belong together.
pub fn build(source: &ReceiptInput<'_>) -> Result<Receipt, Mismatch> {
    let ReceiptInput { thread, turn, items, .. } = source;
    if turn.thread_id != thread.id {
        let (turn, thread, actual) = (turn.id.clone(), thread.id.clone(), turn.thread_id.clone());
        return Err(Mismatch::Turn { turn, thread, actual });
    }
    let mut unavailable = Vec::new();
    let items = referenced(turn, items, &mut unavailable)?;
    let building = ReceiptBuilder { source, items, lacks_items: !unavailable.is_empty() };
    let mut say = |field: &str, reason: &str| {
        unavailable.push(Unavailable { field: field.to_owned(), reason: reason.to_owned() });
    };
    Ok(Receipt {
        schema_id: SCHEMA_ID,
        thread: building.thread(&mut say),
        turn: building.turn(&mut say),
        reasoning_custody: building.reasoning(),
        tool_lineage: building.tools(),
        usage_evidence: building.usage(&mut say),
        source_event_lineage: building.lineage(&mut say),
        side_effect_boundary: building.side_effects(&mut say),
        claim_ceiling: CLAIM_CEILING,
        unavailable,
        integrity: None,
    })
}

/// Finds the items that a turn names, and no others (R97).
fn referenced<'a>(
    turn: &TurnRecord,
    items: &'a [ItemRecord],
    unavailable: &mut Vec<Unavailable>,
) -> Result<Vec<&'a ItemRecord>, Mismatch> {
    let known: HashMap<&str, &ItemRecord> = items.iter().map(|item| (item.id.as_str(), item)).collect();
    let mut records = Vec::new();
    let mut missing = 0;
    let mut seen = HashSet::new();
    for id in turn.item_ids.iter().filter(|id| seen.insert(id.as_str())) {
        match known.get(id.as_str()) {
            Some(item) if item.turn_id != turn.id => {
                return Err(Mismatch::Item { item: item.id.clone(), actual: item.turn_id.clone() });
            }
            Some(item) => records.push(*item),
            None => missing += 1,
        }
    }
    if missing > 0 {
        let reason = format!("{missing} of {} items that the turn names are not in the record", seen.len());
        unavailable.push(Unavailable { field: "items".to_owned(), reason });
    }
    Ok(records)
}

struct ReceiptBuilder<'a> {
    source: &'a ReceiptInput<'a>,
    items: Vec<&'a ItemRecord>,
    /// Whether items that the turn names are missing.
    lacks_items: bool,
}

/// Records that a field is null, and why.
type MarkUnavailable<'a> = &'a mut dyn FnMut(&str, &str);

impl ReceiptBuilder<'_> {
    /// Tells whether the source carries a kind of fact; `None` if that is unknown.
    fn carries(&self, what: &str) -> Option<bool> {
        match self.source.origin {
            RecordOrigin::Session => {
                let answers = self.source.facts.channels.iter().filter_map(|channel| channel.carries(what));
                answers.reduce(|known, other| known || other)
            }
            RecordOrigin::Directory => Some(true),
        }
    }

    /// Tells whether the turn's own run carries thoughts.
    fn carries_thoughts(&self) -> Option<bool> {
        match self.source.origin {
            RecordOrigin::Session => self.source.facts.channels.first()?.carries("thinking"),
            RecordOrigin::Directory => Some(true),
        }
    }

    fn thread(&self, say: MarkUnavailable<'_>) -> ReceiptThread {
        let ReceiptInput { thread, turn, origin, .. } = self.source;
        let flags = Flags::of(&turn.settings);
        // The settings of a session's thread are the last ones, which may differ from those of this turn.
        let of_thread = |value: &Option<String>| value.clone().filter(|_| *origin == RecordOrigin::Directory);
        let flag = |value: Option<bool>| value.filter(|_| *origin == RecordOrigin::Directory);
        let thread = ReceiptThread {
            id: thread.id.clone(),
            model: turn.settings.model.clone().or_else(|| of_thread(&thread.model)),
            mode: turn.settings.mode.clone().or_else(|| of_thread(&thread.mode)),
            auto_approve: flags.auto_approve.or(flag(thread.auto_approve)),
            trust_mode: flags.trust_mode.or(flag(thread.trust_mode)),
            allow_shell: flag(thread.allow_shell),
        };
        let mut check = |is_known: bool, field: &str| {
            if !is_known {
                say(field, "the record does not say what was in force during the turn");
            }
        };
        check(thread.model.is_some(), "thread.model");
        check(thread.mode.is_some(), "thread.mode");
        check(thread.auto_approve.is_some(), "thread.auto_approve");
        check(thread.trust_mode.is_some(), "thread.trust_mode");
        check(thread.allow_shell.is_some(), "thread.allow_shell");
        thread
    }

    fn turn(&self, say: MarkUnavailable<'_>) -> ReceiptTurn {
        let turn = self.source.turn;
        let is_open = turn.ended_at.is_none();
        let end = if is_open { "no end of the turn is on record" } else { "the record has no such time" };
        let times = [
            ("turn.started_at", turn.started_at.is_some(), "the record has no such time"),
            ("turn.ended_at", !is_open, end),
            ("turn.duration_ms", turn.duration_ms.is_some(), end),
        ];
        for (field, is_known, reason) in times {
            if !is_known {
                say(field, reason);
            }
        }
        ReceiptTurn {
            id: turn.id.clone(),
            status: turn.status.to_string(),
            started_at: turn.started_at.clone(),
            ended_at: turn.ended_at.clone(),
            duration_ms: turn.duration_ms,
        }
    }

    fn reasoning(&self) -> ReasoningCustody {
        let of_kind = |item: &&&ItemRecord| item.kind.known() == Some(ItemKind::AgentReasoning);
        let items: Vec<ReasoningItem> =
            self.items.iter().filter(of_kind).map(|item| reasoning(item)).collect();
        let available = !items.is_empty() || self.carries_thoughts() == Some(true);
        let reason = (!available).then(|| match self.carries_thoughts() {
            Some(_) => "the source does not carry reasoning".to_owned(),
            None => "the source does not say whether it carries reasoning".to_owned(),
        });
        let item_count = available.then_some(items.len() as u64);
        ReasoningCustody { raw_reasoning_exported: false, available, reason, item_count, items }
    }

    fn tools(&self) -> ToolLineage {
        let mut tools = ToolLineage {
            tool_call_count: 0,
            tool_result_count: 0,
            unmatched_tool_call_ids: Vec::new(),
            unmatched_tool_result_ids: Vec::new(),
        };
        for item in self.items.iter().filter(|item| item.kind.known().is_some_and(ItemKind::is_call)) {
            let metadata = item.metadata.as_ref().map_or("{}", |metadata| metadata.as_str());
            let metadata = PayloadFields::parse(metadata);
            let has_call = metadata.json_text("call_recorded") != Some("false");
            let has_result = item.status.known().is_some_and(RecordStatus::has_result)
                || metadata.is_true("result_recorded");
            let id = || call_id(item, &metadata, &self.source.facts.call_ids);
            tools.tool_call_count += u64::from(has_call);
            tools.tool_result_count += u64::from(has_result);
            match (has_call, has_result) {
                (true, false) => tools.unmatched_tool_call_ids.push(id()),
                (false, true) => tools.unmatched_tool_result_ids.push(id()),
                // Neither is recorded: only an approval request names the call.
                (false, false) | (true, true) => {}
            }
        }
        tools
    }

    fn usage(&self, say: MarkUnavailable<'_>) -> UsageEvidence {
        let turn = self.source.turn;
        match &turn.usage {
            None => say("usage_evidence.usage", "the record has no usage of the turn"),
            Some(_) if turn.usage_is_lower_bound => {
                say("usage_evidence.usage", "some responses have no final count: it may have been more");
            }
            Some(_) => {}
        }
        let counts = turn.usage.as_ref().map(|usage| PayloadFields::parse(usage.as_str()));
        let has_cache =
            counts.is_some_and(|counts| CACHE_COUNTS.iter().any(|name| counts.json_text(name).is_some()));
        UsageEvidence {
            available: turn.usage.is_some(),
            usage: turn.usage.clone(),
            provider_cache_breakdown_available: has_cache,
        }
    }

    fn lineage(&self, say: MarkUnavailable<'_>) -> EventLineage {
        let seqs = &self.source.facts.seqs;
        let (first_seq, last_seq) = (seqs.iter().min().copied(), seqs.iter().max().copied());
        let missing_event_ranges = match &self.source.missing {
            MissingEvents::Unknown(reason) => {
                say("source_event_lineage.missing_event_ranges", reason);
                None
            }
            MissingEvents::Known(ranges) => {
                Some(ranges.iter().filter(|range| self.is_inside(range)).cloned().collect())
            }
        };
        if first_seq.is_none() {
            say("source_event_lineage.first_seq", "the turn has no events");
            say("source_event_lineage.last_seq", "the turn has no events");
        }
        self.source.facts.left_out.iter().for_each(|why| say("source_event_lineage.runs", why));
        let event_count = seqs.len() as u64;
        EventLineage {
            first_seq,
            last_seq,
            event_count,
            missing_event_ranges,
            runs: self.source.facts.runs.clone(),
        }
    }

    /// Tells whether a missing range may belong to the turn.
    fn is_inside(&self, range: &MissingRange) -> bool {
        let seqs = &self.source.facts.seqs;
        let Some((first_own, last_own)) = seqs.iter().min().zip(seqs.iter().max()) else { return false };
        match range {
            MissingRange::Gap { first_seq, last_seq } => last_seq >= first_own && first_seq <= last_own,
            MissingRange::Noted { .. } => true,
        }
    }

    /// Tells whether a zero is certain: a source that carries the fact has the whole turn without a gap.
    fn is_zero_known(&self, what: &str) -> bool {
        match (self.source.origin, &self.source.missing) {
            (RecordOrigin::Session, _) => {
                let mut channels = self.source.facts.channels.iter();
                channels.any(|channel| channel.is_whole && channel.carries(what) == Some(true))
            }
            (RecordOrigin::Directory, MissingEvents::Unknown(_)) => false,
            (RecordOrigin::Directory, MissingEvents::Known(ranges)) => {
                !self.lacks_items && !ranges.iter().any(|range| self.is_inside(range))
            }
        }
    }

    fn side_effects(&self, say: MarkUnavailable<'_>) -> SideEffects {
        let facts = &self.source.facts;
        let Approvals { required, allowed, denied } = facts.approvals;
        let mut known = |count: Option<u64>, field: &str, what: &str, open: u64| {
            if count.is_some() && open > 0 {
                let calls = crate::count_in_digits(open, "call");
                let reason = format!("a lower bound: the record does not say what became of {calls}");
                say(&format!("side_effect_boundary.{field}"), &reason);
            }
            if count.is_none() {
                let reason = match self.carries(what) {
                    Some(true) if what == "approvals" && denied > 0 => {
                        "the record has denials and no questions".to_owned()
                    }
                    Some(true) => format!("no source that carries {what} has the whole turn"),
                    Some(false) => format!("the source does not carry {what}"),
                    None => format!("the source does not say whether it carries {what}"),
                };
                say(&format!("side_effect_boundary.{field}"), &reason);
            }
            count
        };
        let count = |count: u64, what: &str| (count > 0 || self.is_zero_known(what)).then_some(count);
        // Denials alone do not show how many requests there were.
        let has_questions = required + allowed > 0;
        let asked = |number: u64| {
            if has_questions { Some(number) } else { count(0, "approvals").filter(|_| denied == 0) }
        };
        let denied = count(denied, "approvals");
        let commands = count(facts.commands, "calls");
        let changes = count(facts.changes, "calls");
        let sandbox = count(facts.sandbox_denied, "sandbox denials");
        SideEffects {
            approval_required_count: known(asked(required), "approval_required_count", "approvals", 0),
            approval_allowed_count: known(asked(allowed), "approval_allowed_count", "approvals", 0),
            approval_denied_count: known(denied, "approval_denied_count", "approvals", 0),
            command_execution_count: known(commands, "command_execution_count", "calls", facts.commands_open),
            file_change_count: known(changes, "file_change_count", "calls", facts.changes_open),
            sandbox_denied_count: known(sandbox, "sandbox_denied_count", "sandbox denials", 0),
        }
    }
}

/// Returns the id of a call: from its item, else from the event that started it, else the id of the item.
fn call_id(item: &ItemRecord, metadata: &PayloadFields<'_>, begun: &HashMap<String, String>) -> String {
    let in_item = metadata.text("tool_call_id").map(std::borrow::Cow::into_owned);
    in_item.or_else(|| begun.get(&item.id).cloned()).unwrap_or_else(|| item.id.clone())
}

/// Returns a thought with its hash.
fn reasoning(item: &ItemRecord) -> ReasoningItem {
    let known = item.metadata.as_ref().and_then(|metadata| {
        PayloadFields::parse(metadata.as_str()).text("sha256").map(std::borrow::Cow::into_owned)
    });
    let words = item.detail.as_ref().filter(|words| !words.is_empty());
    let sha256 = known.or_else(|| words.map(|words| HEXLOWER.encode(&Sha256::digest(words.as_bytes()))));
    ReasoningItem { id: item.id.clone(), sha256 }
}

impl Channel {
    /// Tells whether it carries a kind of fact; `None` if it does not say.
    fn carries(&self, what: &str) -> Option<bool> {
        self.carries.as_ref().map(|carries| carries.iter().any(|word| word == what))
    }
}
