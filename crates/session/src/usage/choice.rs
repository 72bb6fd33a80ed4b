//! Chooses the reports that give the usage of a turn.
//!
//! Final counts of responses with provider ids win, then final counts without ids, then the agent's total of the turn, then a
//! lower bound. Responses are joined by ids of one origin and by totals of the thread. Response numbers are valid within one
//! run, so they are taken from one run.

use std::collections::{HashMap, HashSet};

use super::Tokens;
use crate::session::channel_rank;

/// The kind of a response's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NameKind {
    /// The provider's id.
    Id,
    /// The total of the thread after it.
    Total,
    /// A number of its run, or nothing.
    Number,
}

/// A response in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseReport {
    /// Equal for the same response in every run.
    pub(crate) key: usize,
    pub(crate) name: NameKind,
    pub(crate) is_final: bool,
    pub(crate) tokens: Tokens,
}

/// A turn in one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnReport<'a> {
    pub(crate) channel: &'a str,
    pub(crate) responses: Vec<ResponseReport>,
    /// The agent's total.
    pub(crate) total: Option<Tokens>,
}

/// The source of a turn's usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// There is none.
    Nothing,
    /// These responses. As a lower bound, some may be missing or not final.
    Responses { keys: Vec<usize>, is_lower_bound: bool },
    /// The total in the report at this index, for this number of responses.
    Total { place: usize, responses: usize },
}

/// A choice, and its size.
struct Candidate {
    choice: Choice,
    responses: usize,
    tokens: Tokens,
}

/// Chooses the usage of a turn. The order of the reports does not change the counts.
pub(crate) fn choose(reports: &[TurnReport<'_>]) -> Choice {
    if let [report] = reports {
        return of_one(report);
    }
    let turn = TurnView::of(reports);
    let lower_bound = turn.lower_bound();
    // A total below its parts covers only a part of the turn.
    let is_whole = |total: &Candidate| {
        lower_bound.as_ref().is_none_or(|parts| total.tokens.total() >= parts.tokens.total())
    };
    let total = turn.total().filter(is_whole);
    let candidates = [turn.final_with_ids(), turn.finals(), total, lower_bound];
    let chosen = candidates.into_iter().flatten().reduce(Candidate::unless_cut_off);
    chosen.map_or(Choice::Nothing, |chosen| chosen.choice)
}

/// Chooses the usage of a turn that only one run has.
fn of_one(report: &TurnReport<'_>) -> Choice {
    let keys = keys(report);
    let is_whole = !keys.is_empty() && report.responses.iter().all(|response| response.is_final);
    match (is_whole, report.total) {
        (false, Some(_)) => Choice::Total { place: 0, responses: keys.len().max(1) },
        (_, None) if keys.is_empty() => Choice::Nothing,
        (_, _) => Choice::Responses { keys, is_lower_bound: !is_whole },
    }
}

/// A turn in all runs.
struct TurnView<'a> {
    reports: &'a [TurnReport<'a>],
    /// Reports with ids, grouped by origin: the same channel, or a shared id. Channels may have different ids.
    with_ids: Vec<Vec<&'a TurnReport<'a>>>,
    finals: HashSet<usize>,
    tokens: HashMap<usize, Tokens>,
}

impl<'a> TurnView<'a> {
    fn of(reports: &'a [TurnReport<'a>]) -> Self {
        let with_ids = with_ids(reports);
        let mut view = Self { reports, with_ids, finals: HashSet::new(), tokens: HashMap::new() };
        for response in reports.iter().flat_map(|report| &report.responses) {
            if response.is_final {
                view.finals.insert(response.key);
            }
            let tokens = view.tokens.entry(response.key).or_default();
            *tokens = tokens.max(response.tokens);
        }
        view
    }

    fn final_with_ids(&self) -> Option<Candidate> {
        let finals =
            self.with_ids.iter().filter(|reports| reports.iter().all(|report| self.is_final(report)));
        let candidates = finals.filter_map(|reports| {
            let named = self.named(NameKind::Id, reports)?;
            // A run may have responses without ids.
            let whole = reports.iter().filter_map(|report| self.candidate(keys(report)));
            let whole = whole.reduce(Candidate::larger)?;
            Some(if whole.responses > named.responses { whole } else { named })
        });
        candidates.reduce(Candidate::unless_cut_off)
    }

    fn finals(&self) -> Option<Candidate> {
        let is_fit = |report: &&TurnReport<'_>| self.is_final(report) && !has_ids(report);
        let fit: Vec<_> = self.reports.iter().filter(is_fit).collect();
        let alone = fit.iter().filter_map(|report| self.candidate(keys(report)));
        self.named(NameKind::Total, &fit).into_iter().chain(alone).reduce(Candidate::larger)
    }

    fn total(&self) -> Option<Candidate> {
        let named = self.with_ids.iter().filter_map(|reports| self.named(NameKind::Id, reports));
        let named = named.map(|named| named.responses).max().unwrap_or_default();
        let longest = self.reports.iter().map(|report| keys(report).len()).max()?;
        let responses = named.max(longest).max(1);
        let totals = self.reports.iter().enumerate();
        let totals = totals.filter_map(|(place, report)| Some((place, report.total?)));
        let candidates = totals.map(|(place, tokens)| {
            let choice = Choice::Total { place, responses };
            Candidate { choice, responses, tokens }
        });
        candidates.reduce(Candidate::larger)
    }

    fn lower_bound(&self) -> Option<Candidate> {
        let all: Vec<_> = self.reports.iter().collect();
        let named = self.with_ids.iter().filter_map(|reports| self.named(NameKind::Id, reports));
        let alone = self.reports.iter().filter_map(|report| self.candidate(keys(report)));
        named.chain(self.named(NameKind::Total, &all)).chain(alone).reduce(Candidate::larger)
    }

    /// Joins the responses by a kind of name that is valid in all these reports.
    fn named(&self, name: NameKind, reports: &[&TurnReport<'_>]) -> Option<Candidate> {
        let responses = reports.iter().flat_map(|report| &report.responses);
        let named = responses.filter(|response| response.name == name);
        self.candidate(each_once(named.map(|response| response.key)))
    }

    fn candidate(&self, keys: Vec<usize>) -> Option<Candidate> {
        let tokens = keys.iter().fold(Tokens::default(), |sum, key| sum.plus(self.tokens[key]));
        let is_lower_bound = !keys.iter().all(|key| self.finals.contains(key));
        let responses = keys.len();
        let choice = Choice::Responses { keys, is_lower_bound };
        (responses > 0).then_some(Candidate { choice, responses, tokens })
    }

    fn is_final(&self, report: &TurnReport<'_>) -> bool {
        report.responses.iter().all(|response| self.finals.contains(&response.key))
    }
}

impl Candidate {
    /// Returns this one, unless the other has more responses and more tokens: then this one is from a run that was cut off.
    fn unless_cut_off(self, other: Self) -> Self {
        let is_cut = other.responses > self.responses && other.tokens.total() > self.tokens.total();
        if is_cut { other } else { self }
    }

    /// Returns the larger one; the first if both are equal.
    fn larger(self, other: Self) -> Self {
        let size = |one: &Self| {
            let Tokens { input, output, cache_read, cache_write, cache_write_1h, reasoning } = one.tokens;
            let each = [input, output, cache_read, cache_write, cache_write_1h, reasoning];
            (one.responses, one.tokens.total(), each)
        };
        if size(&other) > size(&self) { other } else { self }
    }
}

/// Groups reports by the origin of their ids, the best channel first.
fn with_ids<'a>(reports: &'a [TurnReport<'a>]) -> Vec<Vec<&'a TurnReport<'a>>> {
    let mut origins = Vec::<Vec<&'a TurnReport<'a>>>::new();
    for report in reports.iter().filter(|report| has_ids(report)) {
        let ids: HashSet<usize> = ids(report).collect();
        let is_same = |other: &&TurnReport<'_>| {
            other.channel == report.channel || self::ids(other).any(|id| ids.contains(&id))
        };
        let (same, others): (Vec<_>, Vec<_>) =
            origins.into_iter().partition(|origin| origin.iter().any(is_same));
        origins = others;
        origins.push(same.into_iter().flatten().chain([report]).collect());
    }
    let rank = |origin: &Vec<&'a TurnReport<'a>>| {
        origin.iter().map(|report| (channel_rank(Some(report.channel)), report.channel)).min()
    };
    origins.sort_by(|origin, other| rank(origin).cmp(&rank(other)));
    origins
}

fn has_ids(report: &TurnReport<'_>) -> bool {
    ids(report).next().is_some()
}

fn ids(report: &TurnReport<'_>) -> impl Iterator<Item = usize> {
    report.responses.iter().filter(|response| response.name == NameKind::Id).map(|response| response.key)
}

fn keys(report: &TurnReport<'_>) -> Vec<usize> {
    each_once(report.responses.iter().map(|response| response.key))
}

fn each_once(keys: impl Iterator<Item = usize>) -> Vec<usize> {
    const FEW: usize = 16;
    let (mut each, mut seen) = (Vec::new(), HashSet::new());
    for key in keys {
        // Most turns have few responses and need no set.
        let is_new = if each.len() < FEW { !each.contains(&key) } else { !seen.contains(&key) };
        if !is_new {
            continue;
        }
        each.push(key);
        if each.len() == FEW {
            seen.extend(each.iter().copied());
        } else if each.len() > FEW {
            seen.insert(key);
        }
    }
    each
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(key: usize, output: u64, is_final: bool) -> ResponseReport {
        let tokens = Tokens { output, ..Tokens::default() };
        ResponseReport { key, name: NameKind::Id, is_final, tokens }
    }

    #[test]
    fn total_below_its_parts_is_ignored() {
        let disk = TurnReport {
            channel: "disk",
            responses: vec![response(1, 50, true), response(2, 60, false)],
            total: None,
        };
        let stream = |total| TurnReport {
            channel: "stream",
            responses: vec![response(2, 10, false)],
            total: Some(Tokens { output: total, ..Tokens::default() }),
        };
        let parts = Choice::Responses { keys: vec![1, 2], is_lower_bound: true };
        assert_eq!(choose(&[disk.clone(), stream(30)]), parts);
        assert_eq!(choose(&[disk, stream(120)]), Choice::Total { place: 1, responses: 2 });
    }
}
