//! Subagents from their parent's view: created by a call, ended by a record.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, RawJson};
use steno_model::{RunId, StepPayload};

use super::wire::{AgentState, Item};
use crate::emit::{Emit, SubagentEvent, string};
use crate::run::Run;
use crate::wire::{Raw, RawField as _, object};

/// The subagents of a run, by thread.
#[derive(Default)]
pub(super) struct Children {
    /// The call that created each, if known.
    made_by: HashMap<String, Option<String>>,
    done: HashSet<String>,
}

/// A subagent as a surface names it.
#[derive(Clone, Copy)]
pub(super) struct Child<'a> {
    pub(super) thread: &'a str,
    /// The run that has its events.
    pub(super) run: RunId,
    /// Its session, if that is another run.
    pub(super) session: Option<RunId>,
}

/// How a subagent ended.
pub(super) struct End {
    pub(super) result: Option<RawJson>,
    pub(super) error: Option<JsonString>,
}

impl Children {
    /// Returns how many beginnings and ends were written.
    pub(super) fn written(&self) -> usize {
        self.made_by.len() + self.done.len()
    }

    /// Writes once that a subagent was created.
    pub(super) fn begin(&mut self, run: &Run, child: Child<'_>, call: Option<&str>, emit: &mut Emit<'_>) {
        if self.made_by.contains_key(child.thread) {
            return;
        }
        self.made_by.insert(child.thread.to_owned(), call.map(str::to_owned));
        emit.subagent(run, SubagentEvent::Started, child.run, payload(child, call));
    }

    /// Writes once that a subagent ended, after its creation.
    pub(super) fn end(&mut self, run: &Run, child: Child<'_>, end: End, emit: &mut Emit<'_>) {
        let Some(call) = self.made_by.get(child.thread) else { return };
        if !self.done.insert(child.thread.to_owned()) {
            return;
        }
        let mut payload = payload(child, call.as_deref());
        (payload.result, payload.error) = (end.result, end.error);
        emit.subagent(run, SubagentEvent::Completed, child.run, payload);
    }
}

fn payload(child: Child<'_>, call: Option<&str>) -> StepPayload {
    let mut payload = StepPayload::new(child.thread, "subagent");
    if let Some(call) = call {
        payload.extra.push("tool_call_id", string(call));
    }
    if let Some(session) = child.session {
        payload.extra.push("session_run_id", string(&session.to_string()));
    }
    payload
}

/// Returns true if a call of a subagent tool creates one.
pub(super) fn is_spawn(tool: &str) -> bool {
    matches!(tool, "spawn_agent" | "spawnAgent")
}

/// Returns the threads that an item names as its receivers.
pub(super) fn receivers(item: &Item<'_>) -> Vec<String> {
    strings(item.receivers())
}

/// Returns the strings of an array and leaves out other values.
pub(super) fn strings(raw: Raw<'_>) -> Vec<String> {
    let parts: Vec<&RawValue> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    parts.into_iter().filter_map(|part| Some(part).text().map(std::borrow::Cow::into_owned)).collect()
}

/// Returns the ended subagents in an object of states.
pub(super) fn ended(states: Raw<'_>) -> Vec<(String, End)> {
    let fields = states.and_then(|raw| Fields::parse(raw.get()).ok());
    let Some(fields) = fields else { return Vec::new() };
    fields.iter().filter_map(|(thread, state)| Some((thread.text().into_owned(), end_of(state)?))).collect()
}

/// Returns how a subagent ended, if its state is an end.
pub(super) fn end_of(state: &RawValue) -> Option<End> {
    let done = |result| Some(End { result, error: None });
    let failed = |error: Option<JsonString>| {
        Some(End { result: None, error: Some(error.unwrap_or_else(|| "errored".into())) })
    };
    if let Some(word) = Some(state).text() {
        return if matches!(&*word, "completed" | "shutdown") { done(None) } else { None };
    }
    let state = object::<AgentState<'_>>(state)?;
    match state.status.text().as_deref() {
        Some("completed" | "shutdown") => done(state.message.json()),
        Some("errored") => failed(state.message.string()),
        None if state.completed.is_some() => done(state.completed.json()),
        None if state.errored.is_some() => failed(state.errored.string()),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(state: &str, want: Option<(Option<&str>, Option<&str>)>) {
        let raw: &RawValue = serde_json::from_str(state).unwrap();
        let got = end_of(raw).map(|end| {
            (end.result.map(|result| result.to_string()), end.error.map(|error| error.to_text().into_owned()))
        });
        let want = want.map(|(result, error)| (result.map(str::to_owned), error.map(str::to_owned)));
        assert_eq!(got, want, "{state}");
    }

    #[test]
    fn end_of_reads_the_states_of_all_surfaces() {
        check(r#"{"completed":"3 lines"}"#, Some((Some("\"3 lines\""), None)));
        check(r#"{"completed":null}"#, Some((None, None)));
        check(r#"{"status":"completed","message":"3 lines"}"#, Some((Some("\"3 lines\""), None)));
        check(r#"{"errored":"no"}"#, Some((None, Some("no"))));
        check(r#"{"status":"pendingInit","message":null}"#, None);
        check(r#""running""#, None);
        check(r#""shutdown""#, Some((None, None)));
        check("7", None);
    }
}
