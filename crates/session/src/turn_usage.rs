//! The usage of a turn as the provider reports it, each response once.

use std::collections::HashMap;

use steno_model::Usage;
use steno_model::json::{JsonString, RawJson};

use crate::fields::PayloadFields;
use crate::session::{RunNumber, SessionRun, TurnCost};
use crate::usage::{Choice, Counts, NameKind, ResponseReport, TurnReport, choose};

/// The usage of a turn in one run.
#[derive(Default)]
pub(crate) struct TurnUsage {
    responses: Vec<ResponseCost>,
    /// The responses by name.
    named: HashMap<(NameKind, RawJson), usize>,
    /// The agent's total of the turn.
    turn: Option<Usage>,
    /// The sum of the process, with subagents.
    process: Option<Usage>,
}

struct ResponseCost {
    /// The provider's id.
    id: Option<RawJson>,
    usage: Usage,
    /// The last report as it was written.
    written: RawJson,
    is_final: bool,
}

impl TurnUsage {
    /// Adds the usage of a message.
    pub(crate) fn take(&mut self, fields: &PayloadFields<'_>) {
        let Some(report) = fields.json_text("usage") else { return };
        match fields.text("usage_scope").as_deref() {
            // The total of the turn is kept unchanged.
            Some("turn") => {
                let report = fields.json("usage");
                self.turn = report.and_then(|report| Usage::read(&report)).or(self.turn.take());
            }
            Some("process") => {
                let report = fields.json("usage");
                self.process = report.and_then(|report| Usage::read(&report)).or(self.process.take());
            }
            None | Some("response") if self.repeats_last(report, fields) => {}
            None | Some("response") => self.respond(fields),
            // The total of a session does not concern one turn.
            Some(_) => {}
        }
    }

    /// Tells whether a record repeats the last response. Most responses have several equal records.
    fn repeats_last(&mut self, report: &str, fields: &PayloadFields<'_>) -> bool {
        let Some(last) = self.responses.last_mut() else { return false };
        let is_same = last.id.as_ref().is_some_and(|id| Some(id.as_str()) == fields.json_text("response"))
            && last.written.as_str() == report;
        last.is_final |= is_same && fields.is_true("final");
        is_same
    }

    fn respond(&mut self, fields: &PayloadFields<'_>) {
        let Some(report) = fields.json("usage") else { return };
        let name = response_name(fields);
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
        let id = name.as_ref().filter(|(kind, _)| *kind == NameKind::Id).map(|(_, id)| id.clone());
        if let Some(name) = name {
            self.named.insert(name, self.responses.len());
        }
        self.responses.push(ResponseCost { id, usage, written: report, is_final });
    }

    /// Ranks how exact the run's usage is, the best first; `None` if it has none.
    fn rank(&self) -> Option<u8> {
        let is_whole = !self.responses.is_empty() && self.responses.iter().all(|response| response.is_final);
        match () {
            () if is_whole && self.responses.iter().all(|response| response.id.is_some()) => Some(0),
            () if is_whole => Some(1),
            () if self.turn.is_some() => Some(2),
            () if !self.responses.is_empty() => Some(3),
            () if self.process.is_some() => Some(4),
            () => None,
        }
    }

    /// Returns the name of each response.
    fn names(&self) -> Vec<Option<&(NameKind, RawJson)>> {
        let mut names = vec![None; self.responses.len()];
        self.named.iter().for_each(|(name, place)| names[*place] = Some(name));
        names
    }
}

/// Returns the name of a response: the provider's id, else the thread's total after it, else a number.
fn response_name(fields: &PayloadFields<'_>) -> Option<(NameKind, RawJson)> {
    let response = fields.json("response").filter(|name| !name.is_null());
    if let Some(id) = response.as_ref().filter(|name| name.as_str().starts_with('"')) {
        return Some((NameKind::Id, id.clone()));
    }
    let total = fields.json("thread_tokens").filter(|total| !total.is_null());
    let total = total.map(|total| (NameKind::Total, total));
    total.or_else(|| response.map(|number| (NameKind::Number, number)))
}

/// Returns the usage of a turn from the one run that has it most exactly, if any. Receipts use this simple rule, so
/// that other programs can check them.
pub(crate) fn cost_in_one_run(runs: Vec<(RunNumber, TurnUsage)>, heads: &[SessionRun]) -> Option<TurnCost> {
    let ranked = runs.into_iter().filter_map(|(run, usage)| Some((usage.rank()?, run, usage)));
    let (_, run, mut usage) = ranked.min_by_key(|(rank, run, _)| (*rank, *run))?;
    // It covers more than the turn, so it proves nothing about it.
    usage.process = None;
    cost(vec![(run, usage)], heads)
}

/// Returns the usage of a turn from all its runs, if any has it.
pub(crate) fn cost(mut runs: Vec<(RunNumber, TurnUsage)>, heads: &[SessionRun]) -> Option<TurnCost> {
    runs.sort_by_key(|(run, _)| *run);
    let reports = reports(&runs, heads);
    match choose(&reports) {
        // A sum that includes more than the turn is better than nothing.
        Choice::Nothing => runs.iter().find_map(|(run, usage)| {
            let report = usage.process.as_ref()?.to_json();
            Some(TurnCost { report, is_lower_bound: true, run: *run })
        }),
        Choice::Total { place, .. } => {
            let (run, usage) = &runs[place];
            let report = usage.turn.as_ref()?.to_json();
            Some(TurnCost { report, is_lower_bound: false, run: *run })
        }
        Choice::Responses { keys, is_lower_bound } => {
            let mut places: HashMap<usize, Option<usize>> = keys.into_iter().map(|key| (key, None)).collect();
            let (mut chosen, mut first) = (Vec::<Usage>::new(), None);
            for ((run, usage), report) in runs.into_iter().zip(reports) {
                for (response, response_report) in usage.responses.into_iter().zip(report.responses) {
                    let Some(place) = places.get_mut(&response_report.key) else { continue };
                    first.get_or_insert(run);
                    if let Some(place) = *place {
                        chosen[place] = std::mem::take(&mut chosen[place]).max(response.usage);
                    } else {
                        *place = Some(chosen.len());
                        chosen.push(response.usage);
                    }
                }
            }
            Some(TurnCost { report: sum(&chosen), is_lower_bound, run: first? })
        }
    }
}

/// Returns the reports of each run in a comparable form.
fn reports<'a>(runs: &[(RunNumber, TurnUsage)], heads: &'a [SessionRun]) -> Vec<TurnReport<'a>> {
    // There is nothing to compare one run with.
    let is_one = runs.len() == 1;
    let tokens_of = |usage: &Usage| {
        let counts = if is_one { None } else { Counts::read(usage.to_json().as_str()) };
        counts.unwrap_or_default().tokens
    };
    let mut keys = HashMap::new();
    let mut next = 0;
    let report = |(run, usage): &(RunNumber, TurnUsage)| {
        let responses = usage.responses.iter().zip(usage.names()).map(|(response, name)| {
            next += 1;
            let key = match name {
                Some(name) if name.0 != NameKind::Number => *keys.entry(name.clone()).or_insert(next),
                Some(_) | None => next,
            };
            let name = name.map_or(NameKind::Number, |name| name.0);
            ResponseReport { key, name, is_final: response.is_final, tokens: tokens_of(&response.usage) }
        });
        let responses: Vec<_> = responses.collect();
        // A turn of a local command does not call the model.
        let is_nothing = |turn: &&Usage| turn.counts().all(|(_, count)| count == 0);
        let turn = usage.turn.as_ref().filter(|turn| responses.is_empty() || !is_nothing(turn));
        let channel = heads.get(run.0).and_then(|head| head.channel.as_deref()).unwrap_or_default();
        TurnReport { channel, responses, total: turn.map(tokens_of) }
    };
    runs.iter().map(report).collect()
}

/// Sums counts by name, in the order of their first occurrence.
fn sum(responses: &[Usage]) -> RawJson {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for (name, count) in responses.iter().flat_map(Usage::counts) {
        match counts.iter_mut().find(|(known, _)| name.is(known)) {
            Some((_, total)) => *total = total.saturating_add(count),
            None => counts.push((name.to_text().into_owned(), count)),
        }
    }
    // Provider names may need escapes.
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
        let cost = cost(vec![(RunNumber::MAIN, usage)], &[]);
        let bound = cost.as_ref().is_some_and(|cost| cost.is_lower_bound);
        let found = cost.as_ref().map(|cost| cost.report.as_str());
        assert_eq!((found, bound), (want, is_lower_bound), "{reports:?}");
    }

    #[test]
    fn receipt_takes_no_usage_of_a_process() {
        let process = r#"{"usage":{"out":12},"usage_scope":"process"}"#;
        let turn = r#"{"usage":{"out":11},"usage_scope":"turn"}"#;
        for (reports, want) in [(vec![process], None), (vec![process, turn], Some(r#"{"out":11}"#))] {
            let mut usage = TurnUsage::default();
            for report in &reports {
                usage.take(&PayloadFields::parse(report));
            }
            let cost = cost_in_one_run(vec![(RunNumber::MAIN, usage)], &[]);
            assert_eq!(cost.as_ref().map(|cost| cost.report.as_str()), want, "{reports:?}");
        }
    }

    #[test]
    fn responses_count_once_and_turn_totals_only_instead() {
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
        let numbered = r#"{"response":3,"usage":{"out":4},"thread_tokens":null,"final":true}"#;
        check(&[other, numbered], Some(r#"{"out":7,"cached":4}"#), false);
        let process = r#"{"usage":{"out":12},"usage_scope":"process"}"#;
        check(&[process], Some(r#"{"out":12}"#), true);
        check(&[process, turn], Some(r#"{"out":11}"#), false);
        check(&[late, process], Some(r#"{"in":5,"out":7}"#), false);
        check(
            &[r#"{"usage":{"out":1},"final":true}"#, r#"{"usage":{"out":1},"final":true}"#],
            Some(r#"{"out":2}"#),
            false,
        );
    }
}
