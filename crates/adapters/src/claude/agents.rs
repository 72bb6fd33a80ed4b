//! The agents of a session. Each is a run, with the subagents that it started and how they ended.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{RunId, StepPayload};

use super::repeated_prompts::PromptQueue;
use super::wire::AgentInput;
use crate::emit::{Emit, Outcome, SubagentEvent, push, string};
use crate::run::{Run, derived_run_id};
use crate::wire::{RawField as _, object};

/// An agent while its records are read.
pub(super) struct Agent {
    pub(super) run: Run,
    /// The prefix of the key that its subagents' run ids are derived from.
    pub(super) children_key: Vec<String>,
    /// The responses whose usage has an entry, as hashes of their ids.
    pub(super) usage_told: HashSet<u64>,
    /// The fields of responses besides their content, as hashes.
    pub(super) cost_told: HashSet<u64>,
    /// Whether a record has ended the last turn.
    pub(super) has_end_record: bool,
    /// Whether the last turn is a copy from another session.
    pub(super) is_turn_copied: bool,
    /// How many responses had no id.
    pub(super) unnamed_responses: u64,
    /// The last system prompt.
    pub(super) system_prompt: Option<Box<str>>,
    /// The calls that needed approval.
    pub(super) asked: HashSet<String>,
    /// The queued prompts.
    pub(super) queue: PromptQueue,
    /// The history of calls, by id.
    call_history: HashMap<String, CallHistory>,
    /// The call that began a task, by the task's id; a subagent's task id is its agent id.
    tasks: HashMap<String, String>,
    /// The subagent that was named last, and its call.
    pub(super) named_last: Option<(String, String)>,
    /// The calls whose subagents have ended.
    ended: HashSet<String>,
}

/// What is recorded about a call so far, as hashes: a record that repeats it adds nothing.
#[derive(Default)]
pub(super) struct CallHistory {
    /// Name and input, as the response has them.
    pub(super) call: Option<u64>,
    /// Name and input, as in the request for approval.
    pub(super) asked: Option<u64>,
    pub(super) result: Option<u64>,
    /// How it ended.
    pub(super) outcome: Option<Outcome>,
}

/// Returns the index of the agent that made a call: a result may be among the records of another agent.
pub(super) fn caller(agents: &[Agent], place: usize, call: &str) -> usize {
    let has_call = |place: &usize| agents[*place].run.calls.get(call).is_some();
    let latest = (0..agents.len()).rev().take(CALLERS_LEN_MAX);
    [place, 0].into_iter().chain(latest).find(has_call).unwrap_or(place)
}

/// How many agents are searched for a call besides the first: a hostile source may have any number.
const CALLERS_LEN_MAX: usize = 256;

/// A subagent as a record names it.
pub(super) struct SubagentStart<'a> {
    pub(super) call: &'a str,
    pub(super) child: RunId,
    /// The agent's id, if it is known.
    pub(super) agent: Option<&'a str>,
    /// The kind of agent, if recorded.
    pub(super) agent_type: Option<JsonString>,
    /// How call and subagent were matched, if no record ties them.
    pub(super) matched_by: Option<&'static str>,
}

/// How a subagent ended.
pub(super) struct SubagentEnd {
    /// The provider's status.
    pub(super) status: Option<JsonString>,
    /// Other fields of the record: cost, last message, path of the output.
    pub(super) more: Vec<(&'static str, RawJson)>,
}

impl Agent {
    pub(super) fn new(run: Run, children_key: Vec<String>) -> Self {
        Self {
            run,
            children_key,
            usage_told: HashSet::new(),
            cost_told: HashSet::new(),
            has_end_record: false,
            is_turn_copied: false,
            unnamed_responses: 0,
            system_prompt: None,
            asked: HashSet::new(),
            queue: PromptQueue::default(),
            call_history: HashMap::new(),
            tasks: HashMap::new(),
            named_last: None,
            ended: HashSet::new(),
        }
    }

    /// Returns the history of a call.
    pub(super) fn call_history(&mut self, call: &JsonString) -> &mut CallHistory {
        self.call_history.entry(call.to_text().into_owned()).or_default()
    }

    /// Returns the run of one of its subagents.
    pub(super) fn child_id(&self, agent: &str) -> RunId {
        let mut key: Vec<&str> = self.children_key.iter().map(String::as_str).collect();
        key.push(agent);
        derived_run_id(&key)
    }

    /// Ties a subagent to the call that began it; false if that was done before.
    pub(super) fn start_child(&mut self, started: SubagentStart<'_>, emit: &mut Emit<'_>) -> bool {
        if let Some(agent) = started.agent {
            self.tasks.insert(agent.to_owned(), started.call.to_owned());
            self.named_last = Some((agent.to_owned(), started.call.to_owned()));
        }
        if self.run.calls.child(started.call).is_some() {
            return false;
        }
        let name = started.agent_type.unwrap_or_else(|| self.agent_type(started.call));
        let mut payload = subagent_step(name, started.call);
        push(&mut payload.extra, "agent_id", started.agent.map(string));
        push(&mut payload.extra, "matched_by", started.matched_by.map(string));
        emit.subagent(&self.run, SubagentEvent::Started, started.child, payload);
        self.run.calls.link(started.call, started.child);
        true
    }

    /// Writes once that the subagent of a call has ended; false if it has ended before, or there is none.
    pub(super) fn end_child(&mut self, call: &str, ended: SubagentEnd, emit: &mut Emit<'_>) -> bool {
        let Some(child) = self.run.calls.child(call) else { return false };
        if !self.ended.insert(call.to_owned()) {
            return false;
        }
        let mut payload = subagent_step(self.agent_type(call), call);
        let status = ended.status.as_ref().map(JsonString::to_text);
        payload.error = status.filter(|status| status != "completed").map(|status| (&*status).into());
        // A record without a status only says that it has ended.
        let says_more = ended.status.is_some() || !ended.more.is_empty();
        payload.result = says_more.then(|| {
            RawJson::object(|object| {
                object.optional("status", ended.status.as_ref(), ObjectWriter::string);
                ended.more.into_iter().for_each(|(name, value)| object.json(name, &value));
            })
        });
        emit.subagent(&self.run, SubagentEvent::Completed, child, payload);
        true
    }

    /// Returns the call that began a task.
    pub(super) fn call_of_task(&self, task: &str) -> Option<String> {
        self.tasks.get(task).cloned()
    }

    /// Tells whether a call asked for a background subagent, which continues after the call's result.
    pub(super) fn is_in_background(&self, call: &str) -> bool {
        self.asked_for(call).is_some_and(|input| input.is_background.is_true())
    }

    fn agent_type(&self, call: &str) -> JsonString {
        let agent_type = self.asked_for(call).and_then(|input| input.agent_type.string());
        agent_type.unwrap_or_else(|| "subagent".into())
    }

    /// Returns what a call for a subagent asks for.
    fn asked_for(&self, call: &str) -> Option<AgentInput<'_>> {
        let input = self.run.calls.get(call).and_then(|call| call.input.as_ref());
        input.and_then(|input| input.read::<&RawValue>().ok()).and_then(object::<AgentInput<'_>>)
    }
}

fn subagent_step(name: JsonString, call: &str) -> StepPayload {
    let mut payload = StepPayload::new(name, "subagent");
    payload.extra.push("tool_call_id", string(call));
    payload
}

/// The content of a `<task-notification>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Notification<'a> {
    pub(super) task: &'a str,
    pub(super) status: Option<&'a str>,
}

impl<'a> Notification<'a> {
    /// Reads the notification that a text holds.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        // The task's text follows its id and status, and may contain anything.
        let task = inside(text, "task-id")?;
        Some(Self { task, status: inside(text, "status") })
    }
}

fn inside<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    let (value, _) = rest.split_once(&format!("</{tag}>"))?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notification_has_task_id_and_status() {
        let text = "<task-notification>\n<task-id>a1</task-id>\n<status>failed</status>\n\
                    <result><status>completed</status></result>\n</task-notification>";
        assert_eq!(Notification::read(text), Some(Notification { task: "a1", status: Some("failed") }));
        assert_eq!(Notification::read("<task-notification>done</task-notification>"), None);
    }
}
