//! Finds the agent of each record: the main one or a subagent, by its id or by the call that began it.

use steno_model::json::Extra;
use steno_model::{EntryType, RunId};

use super::PROVIDER;
use super::agents::{Agent, Child};
use super::events::{Channel, Events};
use super::wire::{Data, Line};
use crate::adapter::RecordOutcome;
use crate::emit::Emit;
use crate::run::{Run, derived_run_id};
use crate::wire::{RawField as _, parse};

impl Events {
    /// Returns the index of the record's agent; the first record of a subagent begins its run.
    pub(super) fn agent_of(&mut self, line: &Line<'_>, data: &Data<'_>, emit: &mut Emit<'_>) -> usize {
        let id = line.agent_id.text().filter(|id| !id.is_empty() && !self.is_main(id));
        let kind = line.kind.text().unwrap_or_default();
        if matches!(&*kind, "subagent.started" | "subagent.completed" | "subagent.failed") {
            // These records come from the caller.
            return self.caller_of(data);
        }
        if let Some(id) = id {
            return self.subagent_by_id(&id, data.parent_tool_call_id.text().as_deref(), emit);
        }
        if let Some(call) = data.parent_tool_call_id.text() {
            return self.subagent_by_call(&call, emit);
        }
        // A result may name nothing but its call.
        let call = data.tool_call_id.text();
        call.and_then(|call| self.makers.get(&*call).copied()).unwrap_or(self.main)
    }

    fn is_main(&self, id: &str) -> bool {
        id == "main" || self.session.as_deref() == Some(id)
    }

    /// Returns the agent that made the call which began a subagent.
    fn caller_of(&self, data: &Data<'_>) -> usize {
        let of_call = data.tool_call_id.text().and_then(|call| self.makers.get(&*call).copied());
        let of_id = || data.spawner_id.text().and_then(|id| self.by_id.get(&*id).copied());
        of_call.or_else(of_id).unwrap_or(self.main)
    }

    fn subagent_by_id(&mut self, id: &str, call: Option<&str>, emit: &mut Emit<'_>) -> usize {
        if let Some(place) = self.by_id.get(id) {
            return *place;
        }
        let caller = call.and_then(|call| self.makers.get(call).copied()).unwrap_or(self.main);
        let place = self.begin_subagent(caller, id, emit);
        self.by_id.insert(id.to_owned(), place);
        if let Some(call) = call {
            self.by_call.entry(call.to_owned()).or_insert(place);
        }
        place
    }

    /// Returns the subagent of a call; versions up to 1.0.24 give it no other id.
    fn subagent_by_call(&mut self, call: &str, emit: &mut Emit<'_>) -> usize {
        if let Some(place) = self.by_call.get(call) {
            return *place;
        }
        let caller = self.makers.get(call).copied().unwrap_or(self.main);
        let place = self.begin_subagent(caller, call, emit);
        self.by_call.insert(call.to_owned(), place);
        place
    }

    fn begin_subagent(&mut self, caller: usize, name: &str, emit: &mut Emit<'_>) -> usize {
        let (run, mirrors) = self.child_runs(name);
        let caller = &self.agents[caller].run;
        let mut run = Run::subagent(run, caller.id, name);
        run.mirrors = mirrors;
        if let Some(session) = &self.session {
            run = run.of_session(session);
        }
        self.set_about(emit);
        emit.begin(&mut run, self.version.as_ref(), Extra::default());
        self.agents.push(Agent::new(run));
        self.agents.len() - 1
    }

    /// Returns the run of a subagent, and that of the session's file if this is another channel.
    fn child_runs(&self, name: &str) -> (RunId, Option<RunId>) {
        let session = self.session.as_deref();
        let on_disk = RunId::parse(name)
            .ok()
            .or_else(|| session.map(|session| derived_run_id(&[PROVIDER, session, name])));
        match (self.channel, on_disk) {
            (Channel::Disk, Some(run)) => (run, None),
            (Channel::Disk, None) => (self.derived(Some(name)), None),
            (Channel::Stream, run) => (self.derived(Some(name)), run),
        }
    }

    /// Writes the beginning or the end of a subagent, in the run of its caller.
    pub(super) fn subagent(
        &mut self,
        place: usize,
        kind: &str,
        data: &Data<'_>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let line: Line<'_> = parse(emit.text()).unwrap_or_default();
        let Some(call) = data.tool_call_id.text() else { return self.agents[place].unknown(kind, emit) };
        let id = line.agent_id.text().filter(|id| !id.is_empty());
        let (run, mirrors) = self.child_runs(id.as_deref().unwrap_or(&call));
        let child = Child { call: &call, run, id: id.as_deref(), mirrors };
        let agent = &mut self.agents[place];
        match kind {
            "subagent.started" => agent.start_child(child, data, emit),
            "subagent.failed" => agent.end_child(child, data, "failed", emit),
            _ if data.is_cancelled.is_true() => agent.end_child(child, data, "cancelled", emit),
            _ => agent.end_child(child, data, "completed", emit),
        }
        let subtype = if kind == "subagent.started" { "subagent_start" } else { "subagent_end" };
        let entry = if kind == "subagent.failed" { EntryType::Error } else { EntryType::SystemEvent };
        emit.entry(&agent.run, entry, Some(subtype));
        let place = match &id {
            Some(id) => self.subagent_by_id(id, Some(&call), emit),
            None => self.subagent_by_call(&call, emit),
        };
        if kind == "subagent.started" {
            self.agents[place].model = data.model.json();
        }
        // The same agent may be called again, by another call.
        self.by_call.entry(call.into_owned()).or_insert(place);
        RecordOutcome::Understood
    }
}
