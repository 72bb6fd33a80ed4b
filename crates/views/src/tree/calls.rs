//! Which calls have a result, and which reports of a call are the same call seen twice (R46, R50).

use std::collections::{HashMap, HashSet};

use steno_model::json::JsonString;
use steno_model::{CallId, Fidelity, Word};

use super::Counts;
use crate::fields::PayloadFields;

/// Which half of a call an event reports.
#[derive(Clone, Copy)]
pub(super) enum Half {
    Call,
    Result,
}

/// How often each channel has reported one half of a call id.
///
/// Some providers use an id again for the next call, so that an id alone does not make two reports one call. Two
/// channels that report the same id do: the n-th of one is the n-th of the other.
#[derive(Clone, Copy, Default)]
struct Reports {
    router: u64,
    agent: u64,
    other: u64,
}

impl Reports {
    fn distinct(self) -> u64 {
        self.router.max(self.agent).max(self.other)
    }
}

#[derive(Clone, Default)]
struct Halves {
    calls: Reports,
    results: Reports,
}

/// All call ids of a run.
#[derive(Clone, Default)]
pub(super) struct Calls {
    order: Vec<JsonString>,
    by_id: HashMap<String, Halves>,
    tools: HashMap<String, JsonString>,
    /// Calls that are known to have failed or to have been denied.
    ended_badly: HashSet<String>,
}

/// How a call ended, as far as that is bad.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    Failed,
    Denied,
}

impl Ending {
    fn read(fields: &PayloadFields<'_>) -> Option<Self> {
        let outcome = fields.string("outcome");
        let is = |word: &str| outcome.as_ref().is_some_and(|outcome| outcome.is(word));
        match () {
            () if is("denied") => Some(Self::Denied),
            () if is("failed") || is("interrupted") || fields.error().is_some() => Some(Self::Failed),
            () => None,
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, ending: Option<Ending>) {
        match ending {
            Some(Ending::Failed) => self.failed += 1,
            Some(Ending::Denied) => self.denied += 1,
            None => {}
        }
    }
}

impl Calls {
    /// Takes a report down and returns how many calls or results it adds: one, or none when another channel has
    /// reported it already.
    pub(super) fn report(&mut self, half: Half, id: &JsonString, fidelity: Option<&JsonString>) -> u64 {
        let halves = self.by_id.entry(id.to_text().into_owned()).or_insert_with(|| {
            self.order.push(id.clone());
            Halves::default()
        });
        let reports = match half {
            Half::Call => &mut halves.calls,
            Half::Result => &mut halves.results,
        };
        let before = reports.distinct();
        match fidelity.map(|word| Word::read(word.clone())) {
            Some(Word::Known(Fidelity::Router)) => reports.router += 1,
            Some(Word::Known(Fidelity::AgentEmitted)) => reports.agent += 1,
            Some(Word::Unknown(_)) | None => reports.other += 1,
        }
        reports.distinct() - before
    }

    /// Keeps the name of a call's tool.
    pub(super) fn name(&mut self, id: &JsonString, name: Option<JsonString>) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.tools.entry(id.to_text().into_owned()).or_insert(name);
        }
    }

    /// Returns the name of a call's tool.
    pub(super) fn tool(&self, id: &JsonString) -> Option<&JsonString> {
        self.tools.get(&*id.to_text())
    }

    /// Returns how a call ended badly, if its result says so.
    pub(super) fn ended(&mut self, id: Option<&JsonString>, fields: &PayloadFields<'_>) -> Option<Ending> {
        let ending = Ending::read(fields)?;
        self.ended_badly.extend(id.map(|id| id.to_text().into_owned()));
        Some(ending)
    }

    /// Returns how a call ended badly, if that becomes known only now.
    pub(super) fn ended_after_all(&mut self, id: &JsonString, fields: &PayloadFields<'_>) -> Option<Ending> {
        let ending = Ending::read(fields)?;
        self.ended_badly.insert(id.to_text().into_owned()).then_some(ending)
    }

    /// Returns the ids that were called more often than answered, in the order of their first appearance.
    pub(super) fn dangling(&self) -> Vec<CallId> {
        let dangles = |id: &&JsonString| {
            let halves = self.by_id.get(&*id.to_text());
            halves.is_some_and(|halves| halves.calls.distinct() > halves.results.distinct())
        };
        self.order.iter().filter(dangles).cloned().map(CallId).collect()
    }
}
