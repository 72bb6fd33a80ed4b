//! The usage of a session, given what the sessions below it used: the agent's own sums may include these.

use std::collections::BTreeMap;

use steno_model::RunId;

use super::by_model::RequestCount;
use super::processes::beyond;
use super::{ModelUsage, RequestLength, TokenUsage, Tokens, add_by_model};
use crate::session::Session;

/// Where the usage of a session comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageParts {
    /// What its responses and turns used; `None` if no record says it.
    pub by_responses: Option<TokenUsage>,
    /// The same by model.
    pub responses_by_model: Vec<ModelUsage>,
    /// The sums of its processes, which include subagents, each once.
    pub process_sums: Vec<ModelUsage>,
    /// The agent's total, which includes subagents; `None` if it may include another session that this one was copied from.
    pub total: Option<Tokens>,
}

/// What the sessions below one used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedBelow {
    /// The tokens of their responses.
    pub tokens: Tokens,
    /// Whether all sessions that it started are known.
    pub is_complete: bool,
}

impl UsageParts {
    /// Returns the usage of the responses, and what the sums of processes have beyond it and beyond what is known of the
    /// sessions below: together, and by model. It is a lower bound if the agent's total is larger: agents make hidden
    /// requests, like the summary of a compaction.
    #[must_use]
    pub fn sum(&self, below: UsedBelow) -> (Option<TokenUsage>, Vec<ModelUsage>) {
        let own = self.by_responses;
        let mut by_model = self.responses_by_model.clone();
        let known = own.unwrap_or_default().tokens.plus(below.tokens);
        let rest = beyond(self.process_sums.iter().map(|sum| sum.tokens), known);
        let responses = u64::from(own.is_none());
        let mut used = own;
        for (sum, tokens) in self.process_sums.iter().zip(rest) {
            if tokens != Tokens::default() {
                let rest = TokenUsage { responses, tokens, is_lower_bound: true };
                used.get_or_insert_default().add(rest);
                let length = RequestLength::of(tokens, RequestCount::Several);
                add_by_model(
                    &mut by_model,
                    ModelUsage { length, tokens, is_lower_bound: true, ..sum.clone() },
                );
            }
        }
        let mut used = used.or_else(|| (!self.process_sums.is_empty()).then(TokenUsage::default));
        if let (Some(used), Some(total)) = (&mut used, self.total.filter(|_| below.is_complete)) {
            used.is_lower_bound |= total.has_more_than(used.tokens.plus(below.tokens));
        }
        (used, by_model)
    }

    /// Returns the tokens of its responses.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.by_responses.unwrap_or_default().tokens
    }

    /// Tells whether the usage depends on the sessions below.
    #[must_use]
    pub fn needs_below(&self) -> bool {
        !self.process_sums.is_empty() || self.total.is_some()
    }
}

/// Returns what the sessions below each one used, given the tokens of the responses of all, the sessions that each started,
/// and the parent of each.
#[must_use]
pub fn used_below(
    sessions: &BTreeMap<RunId, (Tokens, Vec<RunId>)>,
    parents: &BTreeMap<RunId, RunId>,
) -> BTreeMap<RunId, UsedBelow> {
    let is_below = |child: &RunId, id: &RunId| {
        let mut above = std::iter::successors(parents.get(child), |parent| parents.get(parent));
        sessions.contains_key(child) && above.any(|parent| parent == id)
    };
    let complete = |(id, (_, links)): (&RunId, &(Tokens, Vec<RunId>))| {
        let is_complete = links.iter().all(|child| is_below(child, id));
        (*id, UsedBelow { tokens: Tokens::default(), is_complete })
    };
    let mut below: BTreeMap<RunId, UsedBelow> = sessions.iter().map(complete).collect();
    for (id, (tokens, _)) in sessions {
        let mut at = *id;
        while let Some(parent) = parents.get(&at) {
            if let Some(sum) = below.get_mut(parent) {
                sum.tokens = sum.tokens.plus(*tokens);
            }
            at = *parent;
        }
    }
    below
}

/// Sets the usage of sessions whose agents reported sums that include the sessions below them.
pub fn count_families_once(sessions: &mut BTreeMap<RunId, Session>, parents: &BTreeMap<RunId, RunId>) {
    let known =
        |(id, session): (&RunId, &Session)| (*id, (session.usage_parts.tokens(), session.linked_sessions()));
    let below = used_below(&sessions.iter().map(known).collect(), parents);
    for (id, session) in sessions.iter_mut().filter(|(_, session)| session.usage_parts.needs_below()) {
        let below = below.get(id).copied().unwrap_or_default();
        (session.used, session.used_by_model) = session.usage_parts.sum(below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(output: u64) -> TokenUsage {
        TokenUsage { responses: 2, tokens: of(0, output, 0), is_lower_bound: false }
    }

    fn of(input: u64, output: u64, cache_read: u64) -> Tokens {
        Tokens { input, output, cache_read, ..Tokens::default() }
    }

    #[test]
    fn sums_add_what_responses_do_not_have() {
        let check = |own: Option<u64>, sums: &[u64], below: u64, want: Option<(u64, u64, bool)>| {
            let sum = |output: &u64| ModelUsage { tokens: of(0, *output, 0), ..ModelUsage::default() };
            let responses = own.map(|output| sum(&output));
            let parts = UsageParts {
                by_responses: own.map(used),
                responses_by_model: responses.into_iter().collect(),
                process_sums: sums.iter().map(sum).collect(),
                total: None,
            };
            let below = UsedBelow { tokens: of(0, below, 0), is_complete: true };
            let (found, by_model) = parts.sum(below);
            let tokens = by_model.iter().fold(Tokens::default(), |sum, one| sum.plus(one.tokens));
            assert_eq!(found.unwrap_or_default().tokens, tokens);
            let found = found.map(|used| (used.responses, used.tokens.output, used.is_lower_bound));
            assert_eq!(found, want);
        };
        check(None, &[], 0, None);
        check(Some(5), &[], 0, Some((2, 5, false)));
        check(None, &[12], 0, Some((1, 12, true)));
        check(Some(5), &[12], 0, Some((2, 12, true)));
        check(Some(5), &[12], 7, Some((2, 5, false)));
        check(None, &[12], 7, Some((1, 5, true)));
        check(None, &[12], 12, Some((0, 0, false)));
        check(Some(5), &[2, 4], 0, Some((2, 6, true)));
        check(Some(5), &[8, 4], 3, Some((2, 9, true)));
    }

    #[test]
    fn larger_total_of_the_agent_makes_a_lower_bound() {
        let check = |own: u64, below: Option<u64>, total: u64, want: bool| {
            let parts = UsageParts {
                by_responses: Some(used(own)),
                total: Some(of(0, total, 0)),
                ..UsageParts::default()
            };
            let tokens = of(0, below.unwrap_or(0), 0);
            let (found, _) = parts.sum(UsedBelow { tokens, is_complete: below.is_some() });
            assert_eq!(found.map(|used| (used.tokens.output, used.is_lower_bound)), Some((own, want)));
        };
        check(5, Some(0), 5, false);
        check(5, Some(0), 6, true);
        check(5, Some(1), 6, false);
        check(5, None, 6, false);
    }

    #[test]
    fn missing_or_foreign_subagents_are_not_below() {
        let id = |number: u32| RunId::parse(&format!("{number:08}-0000-4000-8000-000000000000")).unwrap();
        let sessions = BTreeMap::from([
            (id(1), (of(0, 1, 0), vec![id(2)])),
            (id(2), (of(0, 2, 0), vec![id(3)])),
            (id(3), (of(0, 4, 0), vec![])),
            // A fork names the subagent of its origin, and one that is not there.
            (id(4), (of(0, 8, 0), vec![id(2)])),
            (id(5), (of(0, 16, 0), vec![id(6)])),
        ]);
        let parents = BTreeMap::from([(id(2), id(1)), (id(3), id(2)), (id(6), id(5))]);
        let found: Vec<(u64, bool)> = used_below(&sessions, &parents)
            .values()
            .map(|below| (below.tokens.output, below.is_complete))
            .collect();
        assert_eq!(found, [(6, true), (4, true), (0, true), (0, false), (0, false)]);
    }
}
