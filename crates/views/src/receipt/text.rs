//! A receipt as lines for people.

use std::fmt::Write as _;

use steno_model::receipt::{MissingRange, Receipt};

use crate::{Lines, visible};

/// Returns a receipt as lines. Foreign text is made harmless for a terminal.
#[must_use]
pub fn text(receipt: &Receipt) -> String {
    let mut rows = Rows(String::new());
    rows.thread(receipt);
    rows.work(receipt);
    rows.record(receipt);
    rows.add("claims", &receipt.claim_ceiling.join(", "));
    rows.0
}

const UNKNOWN: &str = "unavailable";

struct Rows(String);

impl Rows {
    fn add(&mut self, name: &str, value: &str) {
        writeln!(self.0, "{name:<16}{}", visible(value, Lines::Escape)).expect("a string takes everything");
    }

    /// Which turn it is, and what was in force.
    fn thread(&mut self, receipt: &Receipt) {
        let thread = &receipt.thread;
        self.add("thread", &thread.id);
        self.add("model", word(thread.model.as_deref()));
        self.add("mode", word(thread.mode.as_deref()));
        let flags = [
            ("auto-approve", thread.auto_approve),
            ("trust", thread.trust_mode),
            ("shell", thread.allow_shell),
        ];
        self.add("in force", &flags.map(|(name, value)| format!("{name} {}", flag(value))).join(", "));
        let turn = &receipt.turn;
        self.add("turn", &format!("{}  {}", turn.id, turn.status));
        let duration = turn.duration_ms.map_or_else(|| UNKNOWN.to_owned(), |ms| format!("{ms} ms"));
        let (start, end) = (word(turn.started_at.as_deref()), word(turn.ended_at.as_deref()));
        self.add("time", &format!("{start} to {end}, {duration}"));
    }

    /// What was done.
    fn work(&mut self, receipt: &Receipt) {
        let reasoning = &receipt.reasoning_custody;
        let thoughts = match reasoning.item_count {
            Some(count) => format!("{count} items, by hash only"),
            None => format!("{UNKNOWN}: {}", word(reasoning.reason.as_deref())),
        };
        self.add("reasoning", &thoughts);
        let tools = &receipt.tool_lineage;
        self.add("tools", &format!("{} calls, {} results", tools.tool_call_count, tools.tool_result_count));
        let unmatched = [
            ("without result", &tools.unmatched_tool_call_ids),
            ("without call", &tools.unmatched_tool_result_ids),
        ];
        for (what, ids) in unmatched.into_iter().filter(|(_, ids)| !ids.is_empty()) {
            self.add(what, &ids.join(", "));
        }
        let usage = receipt.usage_evidence.usage.as_ref();
        self.add("usage", usage.map_or(UNKNOWN, |usage| usage.as_str()));
        let side = &receipt.side_effect_boundary;
        let [required, allowed, denied] =
            [side.approval_required_count, side.approval_allowed_count, side.approval_denied_count]
                .map(count);
        self.add("approvals", &format!("{required} required, {allowed} allowed, {denied} denied"));
        let [commands, changes, sandbox] =
            [side.command_execution_count, side.file_change_count, side.sandbox_denied_count].map(count);
        let effects = format!("{commands} commands, {changes} file changes, {sandbox} sandbox denials");
        self.add("side effects", &effects);
    }

    /// What it is made of, and what is not known.
    fn record(&mut self, receipt: &Receipt) {
        let events = &receipt.source_event_lineage;
        let ranges = events.missing_event_ranges.as_deref();
        let missing = ranges.map_or_else(|| UNKNOWN.to_owned(), missing);
        let (first, last) = (count(events.first_seq), count(events.last_seq));
        let text = format!("{} from {first} to {last}, missing: {missing}", events.event_count);
        self.add("events", &text);
        if let Some(integrity) = &receipt.integrity {
            let text = format!("{} lines in a tree of {}", integrity.lines.len(), integrity.tree_size);
            self.add("integrity", &text);
            self.add("root", &integrity.root);
        }
        for unavailable in &receipt.unavailable {
            self.add(UNKNOWN, &format!("{}: {}", unavailable.field, unavailable.reason));
        }
    }
}

fn word(value: Option<&str>) -> &str {
    value.unwrap_or(UNKNOWN)
}

fn flag(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => UNKNOWN,
    }
}

fn count(count: Option<u64>) -> String {
    count.map_or_else(|| UNKNOWN.to_owned(), |count| count.to_string())
}

fn missing(ranges: &[MissingRange]) -> String {
    let range = |range: &MissingRange| match range {
        MissingRange::Gap { first_seq, last_seq } if first_seq == last_seq => first_seq.to_string(),
        MissingRange::Gap { first_seq, last_seq } => format!("{first_seq} to {last_seq}"),
        MissingRange::Noted { after_seq, count, what } => format!("{count} {what} after {after_seq}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    if ranges.is_empty() { "none".to_owned() } else { ranges.join(", ") }
}
