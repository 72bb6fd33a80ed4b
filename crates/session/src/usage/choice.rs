//! Which reports tell what a turn cost, where one or more runs have it.
//!
//! The counts of responses with the provider's ids come first if they are final, then final counts without ids, then the
//! agent's own sum of the turn, then a lower bound. Ids and totals of the thread are valid in every run, and their responses
//! are put together; a number is valid in its own run, so that numbers are taken from one run.

use std::collections::{HashMap, HashSet};

use super::Tokens;

/// What names a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NameKind {
    /// The provider's id.
    Id,
    /// The total of the thread after it.
    Total,
    /// A number of its run, or nothing.
    Number,
}

/// What a run says of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseReport {
    /// The same for the same response, in whichever run.
    pub(crate) key: usize,
    pub(crate) name: NameKind,
    pub(crate) is_final: bool,
    pub(crate) tokens: Tokens,
}

/// What a run says of a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnReport {
    pub(crate) responses: Vec<ResponseReport>,
    /// The agent's own sum.
    pub(crate) total: Option<Tokens>,
}

/// What tells the cost of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Nothing does.
    Nothing,
    /// These responses. They may be not all, or their counts not the last ones, if it is a lower bound.
    Responses { keys: Vec<usize>, is_lower_bound: bool },
    /// The sum in the report at this place, which is that of so many responses.
    Total { place: usize, responses: usize },
}

/// A choice, and how much it tells.
struct Candidate {
    choice: Choice,
    responses: usize,
    tokens: Tokens,
}

/// Chooses what tells the cost of a turn. The order of the reports changes nothing that is counted.
pub(crate) fn choose(reports: &[TurnReport]) -> Choice {
    let turn = TurnView::of(reports);
    let candidates = [turn.final_with_ids(), turn.finals(), turn.total(), turn.lower_bound()];
    let chosen = candidates.into_iter().flatten().reduce(|best, next| {
        // A run that has less of the turn in every respect was cut off.
        let has_more = next.responses > best.responses && next.tokens.total() > best.tokens.total();
        if has_more { next } else { best }
    });
    chosen.map_or(Choice::Nothing, |chosen| chosen.choice)
}

/// What all runs say of a turn.
struct TurnView<'a> {
    reports: &'a [TurnReport],
    finals: HashSet<usize>,
    tokens: HashMap<usize, Tokens>,
}

impl<'a> TurnView<'a> {
    fn of(reports: &'a [TurnReport]) -> Self {
        let mut view = Self { reports, finals: HashSet::new(), tokens: HashMap::new() };
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
        let has_ids =
            |report: &&TurnReport| report.responses.iter().any(|response| response.name == NameKind::Id);
        let with_ids = self.reports.iter().filter(has_ids);
        if !with_ids.clone().all(|report| self.is_final(report)) {
            return None;
        }
        let named = self.named(NameKind::Id, |_| true)?;
        // A run may know of more than has ids.
        let whole = with_ids.filter_map(|report| self.candidate(keys(report))).reduce(Candidate::larger)?;
        Some(if whole.responses > named.responses { whole } else { named })
    }

    fn finals(&self) -> Option<Candidate> {
        let is_fit = |report: &TurnReport| {
            self.is_final(report) && report.responses.iter().all(|response| response.name != NameKind::Id)
        };
        let alone = self.reports.iter().filter(|report| is_fit(report));
        let alone = alone.filter_map(|report| self.candidate(keys(report)));
        self.named(NameKind::Total, is_fit).into_iter().chain(alone).reduce(Candidate::larger)
    }

    fn total(&self) -> Option<Candidate> {
        let named = self.named(NameKind::Id, |_| true).map_or(0, |named| named.responses);
        let longest = self.reports.iter().map(|report| keys(report).len()).max()?;
        let responses = named.max(longest).max(1);
        let totals = self.reports.iter().enumerate();
        let totals = totals.filter_map(|(place, report)| Some((place, report.total?)));
        let found = totals.map(|(place, tokens)| {
            let choice = Choice::Total { place, responses };
            Candidate { choice, responses, tokens }
        });
        found.reduce(Candidate::larger)
    }

    fn lower_bound(&self) -> Option<Candidate> {
        let named = [NameKind::Id, NameKind::Total].into_iter().filter_map(|name| self.named(name, |_| true));
        let alone = self.reports.iter().filter_map(|report| self.candidate(keys(report)));
        named.chain(alone).reduce(Candidate::larger)
    }

    /// Puts together the responses with a kind of name that is valid in every run.
    fn named(&self, name: NameKind, is_fit: impl Fn(&TurnReport) -> bool) -> Option<Candidate> {
        let responses =
            self.reports.iter().filter(|report| is_fit(report)).flat_map(|report| &report.responses);
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

    fn is_final(&self, report: &TurnReport) -> bool {
        report.responses.iter().all(|response| self.finals.contains(&response.key))
    }
}

impl Candidate {
    /// Returns the one that tells more; the first where both tell the same.
    fn larger(self, other: Self) -> Self {
        let size = |one: &Self| {
            let Tokens { input, output, cache_read, cache_write, reasoning } = one.tokens;
            let each = [input, output, cache_read, cache_write, reasoning];
            (one.responses, one.tokens.total(), each)
        };
        if size(&other) > size(&self) { other } else { self }
    }
}

fn keys(report: &TurnReport) -> Vec<usize> {
    each_once(report.responses.iter().map(|response| response.key))
}

fn each_once(keys: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen = HashSet::new();
    keys.filter(|key| seen.insert(*key)).collect()
}
