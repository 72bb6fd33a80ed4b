//! The calls of a session: all reports of a call combined, of every reporter and run (R46, R50).
//!
//! Only this module matches calls with results. The router's report wins over the agent's, and the first run's over
//! another's; missing fields are taken from the other report.

use steno_model::json::{JsonString, RawJson};
use steno_model::{Fidelity, Vocabulary as _};

use crate::call_ids::{CallIds, Channel, ReportKind};
use crate::call_output::printed_code;
use crate::fields::PayloadFields;
use crate::session::{Call, CallNumber, CallResult, EventPosition, TurnId};

/// All calls so far, in the order of their first report.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) all: Vec<Call>,
    ids: CallIds,
}

/// The call of a report, and whether this is its first report.
#[derive(Clone, Copy)]
pub(crate) struct CallMatch {
    pub(crate) number: CallNumber,
    pub(crate) is_new: bool,
}

/// What is kept of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Everything is kept.
    Whole,
    /// What receipts need: without inputs and outputs of calls, and without the sum of the session's usage.
    ForReceipts,
}

impl Calls {
    /// Takes the block of a call in a message. `new` is the call to add if it is not known.
    pub(crate) fn used(&mut self, block: &PayloadFields<'_>, new: Call, content: Content) -> CallMatch {
        let fidelity = block.string("fidelity");
        let at = new.at;
        let reported = self.reported(block.string("tool_id"), ReportKind::Use, fidelity.as_ref(), new);
        let call = &mut self.all[reported.number.0];
        call.is_recorded = true;
        let input = || if content == Content::Whole { block.json("tool_input") } else { None };
        call.fill(at, fidelity, block.string("tool_name"), input);
        reported
    }

    /// Takes a `tool.call`; one without an id is always a new call.
    pub(crate) fn called(&mut self, fields: &PayloadFields<'_>, new: Call, content: Content) -> CallMatch {
        let fidelity = fields.string("fidelity");
        let at = new.at;
        let reported = self.reported(fields.string("call_id"), ReportKind::Call, fidelity.as_ref(), new);
        let call = &mut self.all[reported.number.0];
        // An adapter marks a call that it added for a result without a call. If the result names its tool, the call is
        // known from it.
        let has_name = fields.text("name").is_some_and(|name| !name.is_empty());
        call.is_recorded |= has_name || fields.json_text("input_available") != Some("false");
        let input = || if content == Content::Whole { fields.json("input") } else { None };
        call.fill(at, fidelity, fields.string("name"), input);
        call.class = call.class.take().or_else(|| fields.string("class"));
        if call.called.is_none() {
            call.called = Some(at);
            if content == Content::Whole {
                call.extra = fields.others(&["name", "call_id", "input", "output", "fidelity"]);
            }
        }
        reported
    }

    /// Takes a `tool.result`; a result without a call gets one.
    pub(crate) fn answered(
        &mut self,
        fields: &PayloadFields<'_>,
        new: Call,
        result: CallResult,
        content: Content,
    ) -> CallMatch {
        let fidelity = fields.string("fidelity");
        let reported = self.reported(fields.string("call_id"), ReportKind::Result, fidelity.as_ref(), new);
        let call = &mut self.all[reported.number.0];
        call.name = call.name.take().or_else(|| fields.string("name"));
        call.class = call.class.take().or_else(|| fields.string("class"));
        let is_whole = content == Content::Whole;
        let output = fields.json("output").filter(|_| is_whole || call.is_class("command"));
        let extra = ["name", "call_id", "input", "output", "error", "fidelity", "class"];
        let result = CallResult {
            outcome: fields.string("outcome"),
            error: fields.error(),
            exit_code: fields.json("exit_code"),
            printed_code: output.as_ref().filter(|_| call.is_class("command")).and_then(printed_code),
            output: output.filter(|_| is_whole),
            fidelity,
            extra: if is_whole { fields.others(&extra) } else { Vec::new() },
            ..result
        };
        call.answer(result);
        reported
    }

    /// Takes the block of a result in a message, from writers without `tool.result`. Returns the last call with its id, and
    /// whether the call had no result yet.
    pub(crate) fn answered_in_message(
        &mut self,
        block: &PayloadFields<'_>,
        result: CallResult,
        turn: Option<TurnId>,
        content: Content,
    ) -> Option<(CallNumber, bool)> {
        let number = self.last(&block.string("tool_id")?, turn)?;
        let call = &mut self.all[number.0];
        if call.result.is_some() {
            return Some((number, false));
        }
        let output = if content == Content::Whole { block.json("tool_content") } else { None };
        call.result = Some(CallResult { output, fidelity: block.string("fidelity"), ..result });
        call.is_answered = true;
        Some((number, true))
    }

    /// Finds the call of an amendment.
    pub(crate) fn amended(&mut self, fields: &PayloadFields<'_>, turn: Option<TurnId>) -> Option<CallNumber> {
        let id = fields.string("tool_call_id").or_else(|| fields.string("name"))?;
        self.last(&id, turn)
    }

    /// Applies an amendment to a call.
    pub(crate) fn amend(&mut self, number: CallNumber, fields: &PayloadFields<'_>, content: Content) {
        let call = &mut self.all[number.0];
        let facts = fields.object("result");
        let input = facts.json("input").filter(|_| content == Content::Whole);
        call.input = input.or(call.input.take());
        let is_command = call.is_class("command");
        let result = call.result.get_or_insert_default();
        let printed = facts.json("output").filter(|_| is_command).as_ref().and_then(printed_code);
        result.printed_code = printed.or(result.printed_code);
        if content == Content::Whole {
            if let Some(output) = facts.json("output") {
                let before = result.output.replace(output);
                result.given = result.given.take().or(before);
            }
            call.amendments.push(fields.json("result").unwrap_or_else(RawJson::null));
        } else {
            call.amendments.push(RawJson::null());
        }
        result.outcome = facts.string("outcome").or(result.outcome.take());
        result.exit_code = facts.json("exit_code").or(result.exit_code.take());
        result.error = facts.error().or(result.error.take());
    }

    /// Returns the last call with this id: of the turn, if it has one.
    pub(crate) fn last(&mut self, id: &JsonString, turn: Option<TurnId>) -> Option<CallNumber> {
        self.ids.last(id, turn)
    }

    fn reported(
        &mut self,
        id: Option<JsonString>,
        kind: ReportKind,
        fidelity: Option<&JsonString>,
        new: Call,
    ) -> CallMatch {
        let report = (kind, channel(fidelity), new.at.run);
        let next = CallNumber(self.all.len());
        let number = id.as_ref().map_or(next, |id| self.ids.report(id, report, new.turn, next));
        let is_new = number == next;
        if is_new {
            self.all.push(Call { id, ..new });
        }
        CallMatch { number, is_new }
    }
}

impl Call {
    /// Adds the fields of a report; the router's report wins over the agent's.
    fn fill(
        &mut self,
        at: EventPosition,
        fidelity: Option<JsonString>,
        name: Option<JsonString>,
        input: impl FnOnce() -> Option<RawJson>,
    ) {
        let is_better = is_router(fidelity.as_ref()) && !is_router(self.fidelity.as_ref());
        let is_repeat = self.fidelity.is_some() && at.run != self.at.run;
        if is_better || self.name.is_none() || self.fidelity.is_none() {
            self.name = name.or(self.name.take());
        }
        if is_better || (!is_repeat && self.input.as_ref().is_none_or(RawJson::is_null)) {
            self.input = input().or(self.input.take());
        } else if self.input.as_ref().is_none_or(RawJson::is_null) {
            self.input = input().filter(|input| !input.is_null()).or(self.input.take());
        }
        if is_better || self.fidelity.is_none() {
            self.fidelity = fidelity;
        }
    }

    /// Adds a result. A more exact outcome replaces the known one; see [`OutcomeRank`].
    fn answer(&mut self, new: CallResult) {
        self.is_answered = true;
        let Some(known) = &mut self.result else {
            self.result = Some(new);
            return;
        };
        let is_same_run = known.at.zip(new.at).is_some_and(|(known, new)| known.run == new.run);
        let is_better = is_router(new.fidelity.as_ref()) || !is_router(known.fidelity.as_ref());
        let amended = std::mem::take(&mut self.amendments);
        if (is_same_run && is_better)
            || (is_router(new.fidelity.as_ref()) && !is_router(known.fidelity.as_ref()))
        {
            let before = std::mem::replace(known, new);
            known.refine(before);
        } else {
            known.refine(new);
        }
        self.amendments = amended;
    }

    /// Returns the exit code: the provider's number if there is one, else the one in the frame around the output.
    #[must_use]
    pub fn exit_code(&self) -> Option<i64> {
        let result = self.result.as_ref()?;
        result.exit_code.as_ref().and_then(|code| code.read().ok()).or(result.printed_code)
    }

    /// Returns how the call ended. A command with an exit code other than 0 failed, whatever its agent says.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let Some(result) = self.result.as_ref().filter(|_| self.is_answered || !self.amendments.is_empty())
        else {
            // Some agents report nothing of a call that the user denied.
            return if self.is_declined { Outcome::Denied } else { Outcome::Open };
        };
        let is = |word: &str| result.outcome.as_ref().is_some_and(|outcome| outcome.is(word));
        match () {
            () if is("denied") => Outcome::Denied,
            () if is("interrupted") => Outcome::Interrupted,
            () if is("failed") => Outcome::Failed,
            () if !self.is_class("file_change") && self.exit_code().is_some_and(|code| code != 0) => {
                Outcome::Failed
            }
            () if is("ok") => Outcome::Ok,
            () if result.outcome.is_none() && result.error.is_some() => Outcome::Failed,
            () => Outcome::Unknown,
        }
    }

    /// Returns the latest value of another field of its result: amendments win.
    #[must_use]
    pub fn latest_field(&self, name: &str) -> Option<RawJson> {
        let later =
            self.amendments.iter().rev().find_map(|facts| PayloadFields::parse(facts.as_str()).json(name));
        let at_first = || {
            let extra = &self.result.as_ref()?.extra;
            extra.iter().rev().find(|(key, _)| key.is(name)).map(|(_, value)| value.clone())
        };
        later.or_else(at_first)
    }

    /// Tells whether the call has a class.
    #[must_use]
    pub fn is_class(&self, class: &str) -> bool {
        self.class.as_ref().is_some_and(|own| own.is(class))
    }

    /// Returns the effect of a call that runs a command or changes files.
    #[must_use]
    pub fn effect(&self) -> Effect {
        let (command, change) = (self.is_class("command"), self.is_class("file_change"));
        match self.outcome() {
            _ if !command && !change => Effect::None,
            Outcome::Denied => Effect::None,
            Outcome::Open => Effect::Unknown,
            Outcome::Ok if change => Effect::Change,
            Outcome::Unknown if change => Effect::Unknown,
            Outcome::Failed | Outcome::Interrupted if change => Effect::None,
            Outcome::Ok | Outcome::Failed | Outcome::Interrupted | Outcome::Unknown => Effect::Command,
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No result is recorded.
    Open,
    /// It succeeded.
    Ok,
    /// It failed.
    Failed,
    /// It was denied, and did not run.
    Denied,
    /// It was stopped.
    Interrupted,
    /// The record does not say.
    Unknown,
}

/// What a call did outside of the session, as far as the record shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No counted effect.
    None,
    /// A command ran, with any exit code.
    Command,
    /// Files were changed.
    Change,
    /// The record does not say whether it did something.
    Unknown,
}

/// The rank of an outcome; the largest wins in any order.
///
/// The router's `ok` is highest, because the call has run. Then comes `denied`; `unknown` is below every other outcome.
/// In between, the router's outcome wins over that of others; then `interrupted` wins over `failed`, and `failed` over
/// `ok`: a reporter of a failure knows more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OutcomeRank {
    None,
    Unknown,
    Strange,
    Known {
        is_router: bool,
        word: OutcomeWord,
    },
    Denied,
    /// The router's `ok`.
    RouterOk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OutcomeWord {
    Ok,
    /// An error without an outcome.
    Error,
    Failed,
    Interrupted,
}

impl CallResult {
    fn outcome_rank(&self) -> OutcomeRank {
        let is_router = is_router(self.outcome_fidelity.as_ref().or(self.fidelity.as_ref()));
        let known = |word| OutcomeRank::Known { is_router, word };
        match self.outcome.as_ref().map(JsonString::to_text).as_deref() {
            None if self.error.is_some() => known(OutcomeWord::Error),
            None => OutcomeRank::None,
            Some("denied") => OutcomeRank::Denied,
            Some("interrupted") => known(OutcomeWord::Interrupted),
            Some("failed") => known(OutcomeWord::Failed),
            Some("ok") if is_router => OutcomeRank::RouterOk,
            Some("ok") => known(OutcomeWord::Ok),
            Some("unknown") => OutcomeRank::Unknown,
            Some(_) => OutcomeRank::Strange,
        }
    }

    /// Takes the more exact fields of another record of the same result.
    fn refine(&mut self, other: Self) {
        if other.outcome_rank() > self.outcome_rank() {
            let fidelity = other.outcome_fidelity.or(other.fidelity);
            self.outcome_fidelity = Some(fidelity.unwrap_or_else(|| "".into()));
            self.outcome = other.outcome;
            self.error = if self.error.is_none() { other.error } else { self.error.take() };
        }
        self.exit_code = self.exit_code.take().or(other.exit_code);
        self.printed_code = self.printed_code.or(other.printed_code);
        let has_output = self.output.as_ref().is_some_and(|output| !output.is_null());
        if !has_output {
            self.output = other.output.or(self.output.take());
        }
        for (name, value) in other.extra {
            if !self.extra.iter().any(|(known, _)| *known == name) {
                self.extra.push((name, value));
            }
        }
    }
}

/// Returns the reporter for a `fidelity`.
fn channel(fidelity: Option<&JsonString>) -> Channel {
    let is = |known: Fidelity| fidelity.is_some_and(|word| word.is(known.as_str()));
    match () {
        () if is(Fidelity::Router) => Channel::Router,
        () if is(Fidelity::AgentEmitted) => Channel::Agent,
        () => Channel::Other,
    }
}

fn is_router(fidelity: Option<&JsonString>) -> bool {
    fidelity.is_some_and(|word| word.is(Fidelity::Router.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [Option<&str>; 7] =
        [Some("ok"), Some("failed"), Some("denied"), Some("interrupted"), Some("unknown"), Some("odd"), None];

    /// All results that differ in their outcome.
    fn results() -> Vec<CallResult> {
        let mut results = Vec::new();
        for word in WORDS {
            for fidelity in [Some("router"), Some("agent_emitted"), None] {
                for error in [None, Some("why")] {
                    results.push(CallResult {
                        outcome: word.map(JsonString::from),
                        fidelity: fidelity.map(JsonString::from),
                        error: error.map(JsonString::from),
                        ..CallResult::default()
                    });
                }
            }
        }
        results
    }

    fn outcome_of(results: &[&CallResult]) -> Outcome {
        let mut known = results[0].clone();
        for other in &results[1..] {
            known.refine((*other).clone());
        }
        Call { result: Some(known), ..call() }.outcome()
    }

    fn call() -> Call {
        Call {
            at: EventPosition { run: crate::session::RunNumber::MAIN, seq: steno_model::Seq::FIRST },
            time: steno_model::Timestamp::from_record("2026-06-08T08:00:00Z".into()),
            turn: None,
            step: None,
            path: "".into(),
            id: None,
            called: None,
            is_recorded: true,
            name: None,
            input: None,
            fidelity: None,
            class: None,
            extra: Vec::new(),
            result: None,
            is_answered: true,
            amendments: Vec::new(),
            approvals: Vec::new(),
            children: Vec::new(),
            response: None,
            runs: Vec::new(),
            events: Vec::new(),
            is_declined: false,
        }
    }

    #[test]
    fn outcome_does_not_depend_on_the_order_of_results() {
        let results = results();
        let mut compared = 0;
        for first in &results {
            for second in &results {
                for third in &results {
                    let want = outcome_of(&[first, second, third]);
                    for order in [[first, third, second], [second, first, third], [third, second, first]] {
                        assert_eq!(outcome_of(&order), want, "{first:?} {second:?} {third:?}");
                        compared += 1;
                    }
                }
            }
        }
        assert_eq!(compared, 3 * 42 * 42 * 42);
    }

    #[test]
    fn another_result_never_makes_an_outcome_less_exact() {
        let of = |word: &str, fidelity: &str| CallResult {
            outcome: Some(word.into()),
            fidelity: Some(fidelity.into()),
            ..CallResult::default()
        };
        let agent = |word| of(word, "agent_emitted");
        for (known, more, want) in [
            (agent("unknown"), agent("ok"), Outcome::Ok),
            (agent("failed"), agent("denied"), Outcome::Denied),
            (of("failed", "router"), agent("denied"), Outcome::Denied),
            (agent("ok"), agent("failed"), Outcome::Failed),
            (agent("failed"), agent("interrupted"), Outcome::Interrupted),
            (agent("failed"), of("ok", "router"), Outcome::Ok),
            (agent("denied"), of("ok", "router"), Outcome::Ok),
            (of("unknown", "router"), agent("ok"), Outcome::Ok),
        ] {
            assert_eq!(outcome_of(&[&known, &more]), want, "{known:?} {more:?}");
            assert_eq!(outcome_of(&[&more, &known]), want, "{more:?} {known:?}");
        }
    }
}
