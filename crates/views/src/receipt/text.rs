//! A receipt as lines for people.

use std::fmt::Write as _;

use steno_model::RunId;
use steno_model::receipt::{Integrities, MissingRange, Receipt};

use super::pretty::compact;
use crate::{Lines, count, thousands, visible};

/// Returns a receipt as lines. Foreign text is escaped for the terminal. If the receipt names several runs, `run` is the run of
/// the turn's numbers. Events are written as `RUN:SEQ`.
#[must_use]
pub fn text(receipt: &Receipt, run: Option<RunId>) -> String {
    let mut rows = Rows(String::new());
    rows.thread(receipt);
    rows.work(receipt);
    let only = match receipt.source_event_lineage.runs.as_deref() {
        Some([only]) => Some(only.run_id.clone()),
        Some(_) | None => None,
    };
    rows.record(receipt, run.map(|run| run.to_string()).or(only).as_deref());
    rows.add("claims", &receipt.claim_ceiling.join(", "));
    rows.0
}

const UNKNOWN: &str = "unavailable";

struct Rows(String);

impl Rows {
    fn add(&mut self, name: &str, value: &str) {
        writeln!(self.0, "{name:<16}{}", visible(value, Lines::Escape)).expect("a string takes everything");
    }

    /// The turn and its settings.
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
        self.add("settings", &flags.map(|(name, value)| format!("{name} {}", flag(value))).join(", "));
        let turn = &receipt.turn;
        self.add("turn", &format!("{}  {}", turn.id, turn.status));
        let duration = turn.duration_ms.map_or_else(|| UNKNOWN.to_owned(), |ms| format!("{ms} ms"));
        let (start, end) = (word(turn.started_at.as_deref()), word(turn.ended_at.as_deref()));
        self.add("time", &format!("{start} to {end}, {duration}"));
    }

    /// The work of the turn.
    fn work(&mut self, receipt: &Receipt) {
        let reasoning = &receipt.reasoning_custody;
        let thoughts = match reasoning.item_count {
            Some(number) => format!("{}, by hash only", count(number, "item")),
            None => format!("{UNKNOWN}: {}", word(reasoning.reason.as_deref())),
        };
        self.add("reasoning", &thoughts);
        let tools = &receipt.tool_lineage;
        let (calls, results) =
            (count(tools.tool_call_count, "call"), count(tools.tool_result_count, "result"));
        self.add("tools", &format!("{calls}, {results}"));
        let unmatched = [
            ("without result", &tools.unmatched_tool_call_ids),
            ("without call", &tools.unmatched_tool_result_ids),
        ];
        for (what, ids) in unmatched.into_iter().filter(|(_, ids)| !ids.is_empty()) {
            self.add(what, &ids.join(", "));
        }
        let usage = receipt.usage_evidence.usage.as_ref();
        self.add("usage", &usage.map_or_else(|| UNKNOWN.to_owned(), |usage| usage_text(usage.as_str())));
        let side = &receipt.side_effect_boundary;
        let approvals = [
            (side.approval_required_count, "required"),
            (side.approval_allowed_count, "allowed"),
            (side.approval_denied_count, "denied"),
        ];
        let approvals = approvals
            .map(|(number, word)| (number.map(|number| format!("{number} {word}")), word.to_owned()));
        self.add("approvals", &list(approvals));
        let effects = [
            (side.command_execution_count, "command"),
            (side.file_change_count, "file change"),
            (side.sandbox_denied_count, "sandbox denial"),
        ];
        self.add("side effects", &list(effects.map(|(number, noun)| counted(number, noun))));
    }

    /// What the receipt is made of, and what is not known.
    fn record(&mut self, receipt: &Receipt, run: Option<&str>) {
        let events = &receipt.source_event_lineage;
        let ranges = events.missing_event_ranges.as_deref();
        let missing = ranges.map_or_else(|| UNKNOWN.to_owned(), |ranges| missing(ranges, run));
        let span = events.first_seq.zip(events.last_seq);
        let span = span.map(|(first, last)| format!(" from {} to {}", named(run, first), named(run, last)));
        let span = span.unwrap_or_default();
        self.add("events", &format!("{}{span}, missing: {missing}", thousands(events.event_count)));
        for integrity in receipt.integrity.iter().flat_map(Integrities::all) {
            let lines = count(integrity.lines.len() as u64, "line");
            self.add("integrity", &format!("{lines} in a tree of {}", thousands(integrity.tree_size)));
            self.add("root", &integrity.root);
        }
        for unavailable in &receipt.unavailable {
            self.add(UNKNOWN, &format!("{}: {}", unavailable.field, unavailable.reason));
        }
    }
}

/// Returns counts of tokens as a list, `250 input tokens, 35 output tokens`; anything but plain counts stays JSON.
fn usage_text(json: &str) -> String {
    let json = compact(json);
    let count = |field: &str| {
        let (name, number) = field.split_once(':')?;
        let name = name.strip_prefix('"')?.strip_suffix('"')?.replace('_', " ");
        number.parse::<u64>().ok().map(|number| format!("{number} {name}"))
    };
    let fields = json.strip_prefix('{').and_then(|json| json.strip_suffix('}'));
    let counts = fields.and_then(|fields| fields.split(',').map(count).collect::<Option<Vec<_>>>());
    counts.map_or(json, |counts| counts.join(", "))
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

/// A count with its noun, if known, and the noun alone.
type CountText = (Option<String>, String);

fn counted(number: Option<u64>, noun: &str) -> CountText {
    (number.map(|number| count(number, noun)), format!("{noun}s"))
}

/// Returns counts as a list. An unknown count keeps its name; if all are unknown, returns just that.
fn list(counts: [CountText; 3]) -> String {
    if counts.iter().all(|(known, _)| known.is_none()) {
        return UNKNOWN.to_owned();
    }
    counts.map(|(known, name)| known.unwrap_or_else(|| format!("{name} {UNKNOWN}"))).join(", ")
}

/// Returns the name of an event: `RUN:SEQ`, or its number if records have no runs.
fn named(run: Option<&str>, seq: u64) -> String {
    run.map_or_else(|| seq.to_string(), |run| format!("{run}:{seq}"))
}

fn missing(ranges: &[MissingRange], run: Option<&str>) -> String {
    let range = |range: &MissingRange| match range {
        MissingRange::Gap { first_seq, last_seq } if first_seq == last_seq => first_seq.to_string(),
        MissingRange::Gap { first_seq, last_seq } => format!("{first_seq} to {last_seq}"),
        MissingRange::Noted { after_seq, count, what, run_id } => {
            format!("{count} {what} after {}", named(run_id.as_deref().or(run), *after_seq))
        }
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    if ranges.is_empty() { "none".to_owned() } else { ranges.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(numbers: [Option<u64>; 3], want: &str) {
        let [commands, changes, denials] = numbers;
        let effects = [(commands, "command"), (changes, "file change"), (denials, "sandbox denial")];
        assert_eq!(list(effects.map(|(number, noun)| counted(number, noun))), want);
    }

    #[test]
    fn counts_have_nouns_and_unknown_ones_say_so() {
        check([Some(1), Some(1), Some(1)], "1 command, 1 file change, 1 sandbox denial");
        check([Some(0), Some(2), Some(1)], "0 commands, 2 file changes, 1 sandbox denial");
        check([Some(1), Some(0), None], "1 command, 0 file changes, sandbox denials unavailable");
        check([None, None, None], "unavailable");
    }
}
