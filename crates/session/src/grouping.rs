//! Finds the response of a model's record that does not name one.
//!
//! Claude's records name their response. Codex's do not: usage is a separate record after the words, or before them in
//! versions around 0.50. Words after the results of all calls always begin a new response. Calls after them do so only on
//! channels without usage per response, because reports of calls may be inside a response.

use std::collections::HashMap;

use crate::session::ResponseId;

/// The progress of the current response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponseStage {
    /// More records may follow.
    #[default]
    Speaking,
    /// Its calls have results; the next record begins a new response, unless usage shows otherwise.
    Answered,
    /// It has ended.
    Over,
}

/// Whether usage comes before or after its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageOrder {
    Leads,
    Trails,
}

/// What a record adds to a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addition {
    /// A text or a thought.
    Words,
    Call,
}

/// Where a record of the model belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseMatch {
    /// It belongs to this response; the listed responses are merged into it.
    Existing(ResponseId, Vec<ResponseId>),
    /// It begins a new response.
    New,
}

/// Groups the records of a run into responses.
#[derive(Default)]
pub(crate) struct Grouping {
    by_id: HashMap<String, ResponseId>,
    now: Option<ResponseId>,
    stage: ResponseStage,
    has_usage: bool,
    order: Option<UsageOrder>,
    /// The responses since the last certain start; they may turn out to be one.
    split: Vec<ResponseId>,
}

impl Grouping {
    /// Finds a response by its id.
    pub(crate) fn named(&self, id: &str) -> Option<ResponseId> {
        self.by_id.get(id).copied()
    }

    /// Names a response.
    pub(crate) fn name(&mut self, id: &str, response: ResponseId) {
        if self.by_id.get(id) != Some(&response) {
            self.by_id.insert(id.to_owned(), response);
        }
    }

    /// Returns the response of a record that names none.
    pub(crate) fn more(&self, adds: Addition) -> ResponseMatch {
        match (self.now, self.stage, adds) {
            (Some(step), ResponseStage::Speaking, _) => ResponseMatch::Existing(step, Vec::new()),
            // Otherwise usage would have ended it.
            (Some(step), ResponseStage::Answered, Addition::Call) if self.order.is_some() => {
                ResponseMatch::Existing(step, Vec::new())
            }
            _ => ResponseMatch::New,
        }
    }

    /// Returns the response of a usage record that names none. `may_lead` says whether usage may come before the words on
    /// this channel.
    pub(crate) fn usage(&mut self, may_lead: bool) -> ResponseMatch {
        let leads = may_lead && self.now.is_none();
        let order = *self.order.get_or_insert(if leads { UsageOrder::Leads } else { UsageOrder::Trails });
        match self.now() {
            Some(step) if order == UsageOrder::Trails && !self.has_usage => {
                let mut split = std::mem::take(&mut self.split);
                // Usage covers all responses since the first, so they are one.
                let first = split.first().copied().unwrap_or(step);
                split.retain(|other| *other != first);
                ResponseMatch::Existing(first, split)
            }
            Some(_) | None => ResponseMatch::New,
        }
    }

    /// Begins a response.
    pub(crate) fn begin(&mut self, response: ResponseId, adds: Addition) {
        if self.stage == ResponseStage::Over || adds == Addition::Words {
            self.split.clear();
        }
        self.split.push(response);
        (self.now, self.stage, self.has_usage) = (Some(response), ResponseStage::Speaking, false);
    }

    /// Records that the current response has usage; if usage comes last, this ends the response.
    pub(crate) fn used(&mut self) {
        self.has_usage = true;
        if self.order != Some(UsageOrder::Leads) {
            self.end();
        }
    }

    /// Records that every call of the current response has a result.
    pub(crate) fn answered(&mut self) {
        if self.stage == ResponseStage::Speaking {
            self.stage = ResponseStage::Answered;
        }
    }

    /// Ends the current response: after a prompt, the end of a turn or a compaction.
    pub(crate) fn end(&mut self) {
        self.stage = ResponseStage::Over;
        self.split.clear();
    }

    /// Returns the current response, if it has not ended.
    pub(crate) fn now(&self) -> Option<ResponseId> {
        self.now.filter(|_| self.stage != ResponseStage::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups records in the notation of the tests' cases: `w` words, `c` a call, `o` the result of the last open call,
    /// `$` usage, `|` the end of a turn. Returns what each response consists of.
    fn grouped(records: &str, may_lead: bool) -> Vec<String> {
        let mut responses = Grouping::default();
        let mut steps = Vec::<String>::new();
        for record in records.chars() {
            let belongs = match record {
                '|' => {
                    responses.end();
                    continue;
                }
                'o' => {
                    // Results of a finished response have no effect.
                    if let Some(ResponseId(now)) = responses.now() {
                        steps[now].push('o');
                        if steps[now].matches('o').count() == steps[now].matches('c').count() {
                            responses.answered();
                        }
                    }
                    continue;
                }
                '$' => responses.usage(may_lead),
                'c' => responses.more(Addition::Call),
                _ => responses.more(Addition::Words),
            };
            let step = match belongs {
                ResponseMatch::Existing(ResponseId(step), absorbed) => {
                    for ResponseId(other) in absorbed {
                        let other = std::mem::take(&mut steps[other]);
                        steps[step].push_str(&other);
                    }
                    step
                }
                ResponseMatch::New => {
                    steps.push(String::new());
                    let adds = if record == 'c' { Addition::Call } else { Addition::Words };
                    responses.begin(ResponseId(steps.len() - 1), adds);
                    steps.len() - 1
                }
            };
            steps[step].push(record);
            if record == '$' {
                responses.used();
            }
        }
        steps.retain(|step| !step.is_empty());
        steps
    }

    #[track_caller]
    fn check(records: &str, want: &[&str]) {
        assert_eq!(grouped(records, true), want, "{records}");
    }

    #[test]
    fn usage_ends_a_response() {
        check("wc$owc$o", &["wc$", "wc$"]);
        check("wcc$wc", &["wcc$", "wc"]);
        check("wccoo$wcc", &["wccoo$", "wcc"]);
        // Reports of calls are inside a response.
        check("w$wcococo$w$", &["w$", "wcococo$", "w$"]);
    }

    #[test]
    fn usage_may_come_first() {
        check("$wco$co$w", &["$wco", "$co", "$w"]);
        check("$wco|$w", &["$wco", "$w"]);
        // Not in every channel.
        assert_eq!(grouped("$wc$w$", false), ["$", "wc$", "w$"]);
    }

    #[test]
    fn response_without_words_keeps_its_usage() {
        check("wc$$wc$", &["wc$", "$", "wc$"]);
        check("w$|$|w$", &["w$", "$", "w$"]);
    }

    #[test]
    fn without_usage_results_end_a_response() {
        check("wcocowcow", &["wco", "co", "wco", "w"]);
        check("wccoow", &["wccoo", "w"]);
        check("ww|w", &["ww", "w"]);
    }

    #[test]
    fn usage_joins_responses_that_were_split() {
        check("wcoco$co$", &["wcoco$", "co$"]);
        check("wco|co$", &["wco", "co$"]);
        check("wcocow$", &["wco", "co", "w$"]);
    }

    #[test]
    fn words_after_all_results_begin_a_new_response() {
        check("w$wcow$", &["w$", "wco", "w$"]);
        check("w$wccow$", &["w$", "wccow$"]);
    }
}
