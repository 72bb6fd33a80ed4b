//! What a turn cost, in the provider's words: each response once.

use std::collections::HashMap;

use steno_model::Usage;
use steno_model::json::{JsonString, RawJson};

use crate::fields::PayloadFields;

/// The reports of a turn.
#[derive(Default)]
pub(crate) struct TurnUsage {
    responses: Vec<Response>,
    /// Those that have a name: what their records share.
    named: HashMap<RawJson, usize>,
    /// What the agent has added up for the turn.
    turn: Option<Usage>,
}

struct Response {
    usage: Usage,
    /// The last report as it was written. Most responses have several records with the same one.
    written: RawJson,
    is_final: bool,
    /// Whether it has the provider's own id.
    has_id: bool,
}

/// What a turn cost, and how well the channel knows it.
pub(crate) struct Cost {
    pub(crate) report: RawJson,
    pub(crate) is_lower_bound: bool,
    pub(crate) rank: Rank,
}

/// How well a channel knows what a turn cost, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The last counts of each response, by the provider's ids.
    FinalWithIds,
    /// The last counts of each response.
    Final,
    /// The agent's own sum.
    Turn,
    /// Some counts of some responses.
    LowerBound,
}

impl TurnUsage {
    /// Takes what a message says of usage.
    pub(crate) fn take(&mut self, fields: &PayloadFields<'_>) {
        let Some(report) = fields.json("usage") else { return };
        let scope = fields.text("usage_scope").unwrap_or_default();
        match &*scope {
            // The turn's own is kept as it is.
            "turn" => self.turn = Usage::read(&report).or(self.turn.take()),
            // A session's total says nothing of one turn.
            "session" => {}
            _ => self.respond(report, fields),
        }
    }

    fn respond(&mut self, report: RawJson, fields: &PayloadFields<'_>) {
        let name = fields.json("response").filter(|name| !name.is_null());
        let is_final = fields.is_true("final");
        let known = name.as_ref().and_then(|name| self.named.get(name)).map(|at| &mut self.responses[*at]);
        if let Some(known) = known {
            if known.written == report {
                known.is_final |= is_final;
            } else if let Some(usage) = Usage::read_once_each(&report) {
                known.usage = std::mem::take(&mut known.usage).max(usage);
                known.written = report;
                known.is_final |= is_final;
            }
            return;
        }
        let Some(usage) = Usage::read_once_each(&report) else { return };
        if let Some(name) = name {
            self.named.insert(name, self.responses.len());
        }
        let has_id = fields.text("response").is_some();
        self.responses.push(Response { usage, written: report, is_final, has_id });
    }

    /// Returns the sum; nothing where the channel tells none.
    pub(crate) fn finish(self) -> Option<Cost> {
        let is_whole = self.responses.iter().all(|response| response.is_final);
        if let Some(turn) = self.turn.filter(|_| !is_whole || self.responses.is_empty()) {
            return Some(Cost { report: turn.to_json(), is_lower_bound: false, rank: Rank::Turn });
        }
        if self.responses.is_empty() {
            return None;
        }
        let rank = match () {
            () if !is_whole => Rank::LowerBound,
            () if self.responses.iter().all(|response| response.has_id) => Rank::FinalWithIds,
            () => Rank::Final,
        };
        Some(Cost { report: sum(&self.responses), is_lower_bound: !is_whole, rank })
    }
}

/// Adds up counts by their names, in the order in which these first come.
fn sum(responses: &[Response]) -> RawJson {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for (name, count) in responses.iter().flat_map(|response| response.usage.counts()) {
        match counts.iter_mut().find(|(known, _)| name.is(known)) {
            Some((_, total)) => *total = total.saturating_add(count),
            None => counts.push((name.to_text().into_owned(), count)),
        }
    }
    // The names are the provider's, and may need escapes.
    let field = |(name, count): &(String, u64)| format!("{}:{count}", JsonString::from_text(name).as_raw());
    let fields = counts.iter().map(field).collect::<Vec<_>>().join(",");
    RawJson::parse(&format!("{{{fields}}}")).expect("names are escaped")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reports: &[&str], want: Option<&str>, is_lower_bound: bool) {
        let mut usage = TurnUsage::default();
        for report in reports {
            usage.take(&PayloadFields::parse(report));
        }
        let cost = usage.finish();
        let bound = cost.as_ref().is_some_and(|cost| cost.is_lower_bound);
        let found = cost.as_ref().map(|cost| cost.report.as_str());
        assert_eq!((found, bound), (want, is_lower_bound), "{reports:?}");
    }

    #[test]
    fn responses_are_counted_once_and_turns_only_instead_of_them() {
        check(&["{}", r#"{"usage":null}"#], None, false);
        let (early, late) = (
            r#"{"response":"r1","usage":{"in":5,"out":1},"final":false}"#,
            r#"{"response":"r1","usage":{"in":5,"out":7,"tier":"x"},"final":true}"#,
        );
        let other = r#"{"response":2,"usage":{"out":3,"cached":4},"final":true}"#;
        check(&[early, late, other], Some(r#"{"in":5,"out":10,"cached":4}"#), false);
        check(&[early, other], Some(r#"{"in":5,"out":4,"cached":4}"#), true);
        let turn = r#"{"usage":{"out":11},"usage_scope":"turn"}"#;
        check(&[early, turn], Some(r#"{"out":11}"#), false);
        check(&[turn], Some(r#"{"out":11}"#), false);
        check(&[late, turn], Some(r#"{"in":5,"out":7}"#), false);
        check(&[r#"{"usage":{"o\"ut":9},"final":true}"#], Some(r#"{"o\"ut":9}"#), false);
        check(&[r#"{"usage":{"a":1,"a":2},"final":true}"#], Some(r#"{"a":2}"#), false);
        let first = r#"{"response":1,"usage":{"a":0},"final":true}"#;
        check(&[first, r#"{"response":1,"usage":{"a":5,"a":1}}"#], Some(r#"{"a":1}"#), false);
        check(&[r#"{"usage":{"out":99},"usage_scope":"session"}"#], None, false);
        check(
            &[r#"{"usage":{"out":1},"final":true}"#, r#"{"usage":{"out":1},"final":true}"#],
            Some(r#"{"out":2}"#),
            false,
        );
    }
}
