//! Records of a subagent inside the progress records of its caller's file (2.1.12 to 2.1.81). The subagent's own file
//! may have them too, or be gone: here they form a separate run.

use std::collections::HashMap;

use steno_model::RunId;
use steno_model::json::JsonString;

use super::agents::{Agent, SubagentStart};
use super::content::Content;
use super::disk::{self, BOOKKEEPING};
use super::facts;
use super::shapes::is_odd_line;
use super::wire::Line;
use super::{CHANNEL, PROVIDER, UNTYPED};
use crate::adapter::RecordOutcome;
use crate::emit::{AdapterInfo, Emit, NestedRecord};
use crate::repeats::{RecentRecords, hash_of};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{RawField as _, object, parse};

static ABOUT: AdapterInfo =
    AdapterInfo { channel: "progress", carries: &["prompts", "calls", "results", "usage"], ..CHANNEL };

/// The name for a record of this kind that cannot be read.
const NAME: &str = "agent_progress";

/// The subagents that a file has progress of.
#[derive(Default)]
pub(super) struct Progress {
    /// Their indexes among the agents, by the caller's index and their ids.
    places: HashMap<(usize, String), usize>,
    /// Recent records: a repeated one adds nothing.
    recent: RecentRecords,
}

/// Tells whether a line is progress that holds a subagent's record.
pub(super) fn is_of_agent(line: &Line<'_>) -> bool {
    line.kind.is("progress") && line.data.is_some_and(|data| data.kind.is(NAME))
}

impl Progress {
    /// Writes the nested record of the current line, and ties its subagent to a call.
    pub(super) fn record(
        &mut self,
        agents: &mut Vec<Agent>,
        caller: usize,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let text = emit.text();
        let line: Line<'_> = parse(text).unwrap_or_default();
        let data = line.data.unwrap_or_default();
        let agent_id = data.agent_id.text().filter(|id| !id.is_empty());
        let Some((id, inner)) = agent_id.zip(data.message) else {
            return facts::unknown(&agents[caller].run, NAME, emit);
        };
        let Some(mut record) = object::<Line<'_>>(inner) else {
            return facts::unknown(&agents[caller].run, NAME, emit);
        };
        link(&mut agents[caller], &line, &id, emit);
        let is_odd = is_odd_line(&line, emit);
        if self.recent.was_there(hash_of(&(&*id, inner.get()))) {
            return RecordOutcome::Bookkeeping;
        }
        (record.version, record.cwd) = (record.version.or(line.version), record.cwd.or(line.cwd));
        record.git_branch = record.git_branch.or(line.git_branch);
        let place = self.place(agents, caller, &id);
        let inside = NestedRecord {
            text: inner.get(),
            about: &ABOUT,
            time: record.timestamp,
            copied_from: origin(&agents[caller], &id),
        };
        let read = emit.inside(inside, |emit| write(agents, place, &record, emit));
        if is_odd { facts::unknown(&agents[caller].run, NAME, emit) } else { read }
    }

    /// Returns the index of a subagent, which begins with its first record.
    fn place(&mut self, agents: &mut Vec<Agent>, caller: usize, id: &str) -> usize {
        let key = (caller, id.to_owned());
        *self.places.entry(key).or_insert_with(|| {
            let Agent { run, children_key, .. } = &agents[caller];
            let mut own = Run::subagent(progress_run(run.id, id), run.parent.unwrap_or(run.id), id)
                .of_session(run.session.as_deref().unwrap_or_default());
            own.mirrors = Some(agents[caller].child_id(id));
            let agent = Agent::new(own, children_key.clone());
            agents.push(agent);
            agents.len() - 1
        })
    }
}

/// Returns the run id for a subagent's progress. It is derived from the run whose file has it, because a fork copies
/// such records and a run has one source.
fn progress_run(caller: RunId, id: &str) -> RunId {
    derived_run_id(&[PROVIDER, "progress", &caller.to_string(), id])
}

/// Returns the run of the same progress in the file that a line was copied from, if its session is another's.
fn origin(caller: &Agent, id: &str) -> Option<RunId> {
    let session = caller.children_key.last().filter(|_| caller.run.parent.is_none())?;
    let run = run_id_of(PROVIDER, session);
    (run != caller.run.id).then(|| progress_run(run, id))
}

/// Ties a subagent to the call that its progress names.
fn link(caller: &mut Agent, line: &Line<'_>, id: &str, emit: &mut Emit<'_>) {
    let call = line.parent_tool_use_id.text().unwrap_or_default();
    if caller.run.calls.get(&call).is_some() {
        let child = caller.child_id(id);
        let started =
            SubagentStart { call: &call, child, agent: Some(id), agent_type: None, matched_by: None };
        caller.start_child(started, emit);
    }
}

/// Writes a subagent's record as its own file would have it.
fn write(agents: &mut [Agent], place: usize, record: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let kind = record.kind.text().unwrap_or(UNTYPED.into());
    if BOOKKEEPING.contains(&&*kind) {
        return RecordOutcome::Bookkeeping;
    }
    let run = &mut agents[place].run;
    disk::begin(run, record, emit);
    if run.turns.path().is_empty() && !is_prompt(&kind, record) {
        // The prompt is missing, but the work after it counts.
        emit.begin_turn(run, None::<&JsonString>, None);
    }
    disk::write_line(agents, place, record, emit)
}

fn is_prompt(kind: &str, record: &Line<'_>) -> bool {
    let content = record.message.and_then(|message| message.content).and_then(Content::read);
    kind == "user" && content.is_some_and(|content| content.results().len() == 0)
}
