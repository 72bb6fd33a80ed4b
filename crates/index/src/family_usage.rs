//! The usage of sessions that depends on the sessions below them, because the agent's sums include these.
//!
//! What such a usage is made of is kept in a column, so that it can be counted again when another session of the family
//! changes. `docs/format/index.md` describes its lines.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;
use steno_model::RunId;
use steno_session::usage::{ModelUsage, TokenUsage, Tokens, UsageParts, used_below};
use steno_session::{FamilyLinks, parents_of};

use crate::rows::{numbers_of, read_numbers};
use crate::{Error, Update, used_by_model};

/// What the usage of a session is made of, and the sessions that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionUsageParts {
    /// The parts.
    pub parts: UsageParts,
    /// The sessions that it started, whether they are known or not.
    pub children: Vec<RunId>,
}

/// A session of a family, as the index has it.
struct Member {
    parent: Option<RunId>,
    tokens: Tokens,
    parts: Option<SessionUsageParts>,
}

impl Update<'_> {
    /// Counts the usage of a top-level session and of all below it again, where it depends on other sessions. `owner`
    /// returns the session of a run.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn count_family(&self, root: RunId, owner: impl Fn(RunId) -> RunId) -> Result<(), Error> {
        let family = self.family(root)?;
        let needs_below =
            |member: &Member| member.parts.as_ref().is_some_and(|usage| usage.parts.needs_below());
        if !family.values().any(needs_below) {
            return Ok(());
        }
        let children = |member: &Member| -> Vec<RunId> {
            let children = member.parts.iter().flat_map(|usage| &usage.children);
            children.map(|child| owner(*child)).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let links =
            |member: &Member| FamilyLinks { parent: member.parent.map(&owner), children: children(member) };
        let parents = parents_of(&family.iter().map(|(id, member)| (*id, links(member))).collect());
        let known = family.iter().map(|(id, member)| (*id, (member.tokens, children(member)))).collect();
        let below = used_below(&known, &parents);
        for (id, member) in family.iter().filter(|(_, member)| needs_below(member)) {
            let Some(SessionUsageParts { parts, .. }) = &member.parts else { continue };
            let (used, by_model) = parts.sum(below.get(id).copied().unwrap_or_default());
            self.put_usage(*id, used, &by_model)?;
        }
        Ok(())
    }

    /// Returns the sessions with the same top-level session.
    fn family(&self, root: RunId) -> Result<BTreeMap<RunId, Member>, Error> {
        let failed = self.failed("list sessions");
        let mut query = self
            .prepare(
                "SELECT session, parent, usage_parts, input_tokens, output_tokens, cache_read_tokens, \
                 cache_write_tokens, cache_write_1h_tokens, reasoning_tokens FROM sessions WHERE root = ?1",
            )
            .map_err(&failed)?;
        let rows = query.query_map([root.to_string()], |row| {
            let id = |place: usize| -> rusqlite::Result<Option<RunId>> {
                Ok(row.get_ref(place)?.as_str_or_null()?.and_then(|text| RunId::parse(text).ok()))
            };
            let parts = row.get_ref(2)?.as_str_or_null()?.map(from_text);
            let own = || -> rusqlite::Result<Tokens> {
                let mut counts = (3..9).map(|place| row.get::<_, Option<i64>>(place));
                read_numbers(|| Ok(counts.next().transpose()?.flatten().unwrap_or(0).cast_unsigned()))
            };
            // The columns have what the sums add.
            let tokens = parts.as_ref().map_or_else(own, |parts| Ok(parts.parts.tokens()))?;
            Ok((id(0)?, Member { parent: id(1)?, tokens, parts }))
        });
        let rows = rows.map_err(&failed)?.collect::<rusqlite::Result<Vec<_>>>().map_err(&failed)?;
        Ok(rows.into_iter().filter_map(|(id, member)| Some((id?, member))).collect())
    }

    fn put_usage(&self, id: RunId, used: Option<TokenUsage>, by_model: &[ModelUsage]) -> Result<(), Error> {
        let [input, output, cache_read, cache_write, cache_write_1h, reasoning] =
            numbers_of(used.map(|used| used.tokens));
        self.run(
            "UPDATE sessions SET input_tokens = ?2, output_tokens = ?3, cache_read_tokens = ?4, \
             cache_write_tokens = ?5, cache_write_1h_tokens = ?6, reasoning_tokens = ?7, exact = ?8, \
             used_by_model = ?9 WHERE session = ?1",
            params![
                id.to_string(),
                input,
                output,
                cache_read,
                cache_write,
                cache_write_1h,
                reasoning,
                used.map(|used| !used.is_lower_bound),
                used_by_model::to_text(by_model),
            ],
        )
    }
}

/// Writes the lines.
pub(crate) fn to_text(usage: &SessionUsageParts) -> String {
    let SessionUsageParts { parts, children } = usage;
    let mut lines: Vec<String> = Vec::new();
    let mut put = |word: &str, list: &[ModelUsage]| {
        lines.extend(list.iter().map(|used| format!("{word} {}", used_by_model::to_line(used))));
    };
    put("response", &parts.responses_by_model);
    put("process", &parts.process_sums);
    if let Some(responses) = parts.by_responses {
        // The models say whether they are lower bounds, the sum says it for all.
        lines.push(format!("responses {} {}", responses.responses, u64::from(responses.is_lower_bound)));
    }
    if let Some(total) = parts.total {
        let used = ModelUsage { tokens: total, ..ModelUsage::default() };
        lines.push(format!("total {}", used_by_model::to_line(&used)));
    }
    lines.extend(children.iter().map(|child| format!("child {child}")));
    lines.join("\n")
}

/// Reads the lines; one in another form is skipped.
pub(crate) fn from_text(text: &str) -> SessionUsageParts {
    let mut usage = SessionUsageParts::default();
    let parts = &mut usage.parts;
    for (word, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
        match word {
            "response" => parts.responses_by_model.extend(used_by_model::from_line(rest)),
            "process" => parts.process_sums.extend(used_by_model::from_line(rest)),
            "total" => parts.total = used_by_model::from_line(rest).map(|used| used.tokens),
            "child" => usage.children.extend(RunId::parse(rest).ok()),
            "responses" => {
                let mut numbers = rest.split(' ').map_while(|number| number.parse::<u64>().ok());
                if let (Some(responses), Some(is_lower_bound)) = (numbers.next(), numbers.next()) {
                    let tokens = parts
                        .responses_by_model
                        .iter()
                        .fold(Tokens::default(), |sum, one| sum.plus(one.tokens));
                    let is_lower_bound = is_lower_bound != 0;
                    parts.by_responses = Some(TokenUsage { responses, tokens, is_lower_bound });
                }
            }
            _ => {}
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_back() {
        let tokens = |output: u64| Tokens { input: 1, output, cache_read: 3, ..Tokens::default() };
        let used = |model: &str, output: u64| ModelUsage {
            model: model.to_owned(),
            tokens: tokens(output),
            ..ModelUsage::default()
        };
        let by_responses =
            TokenUsage { responses: 4, tokens: tokens(5).plus(tokens(7)), is_lower_bound: true };
        let parts = UsageParts {
            by_responses: Some(by_responses),
            responses_by_model: vec![used("a b", 5), used("", 7)],
            process_sums: vec![used("c", 9)],
            total: Some(tokens(11)),
        };
        let child = RunId::parse("00000002-0000-4000-8000-000000000000").unwrap();
        for usage in [
            SessionUsageParts { parts, children: vec![child] },
            SessionUsageParts {
                parts: UsageParts { process_sums: vec![used("c", 9)], ..UsageParts::default() },
                children: Vec::new(),
            },
        ] {
            assert_eq!(from_text(&to_text(&usage)), usage);
        }
        assert_eq!(from_text("response 1 2\nchild x\nother"), SessionUsageParts::default());
    }
}
