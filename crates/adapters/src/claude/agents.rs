//! The agents of a session: each a run, with the subagents that it has started and what became of them.

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
    /// What the ids of its subagents' runs are made from, before their own.
    pub(super) children_key: Vec<String>,
    /// The responses whose usage an entry has told, as hashes of their ids.
    pub(super) usage_told: HashSet<u64>,
    /// What records of responses said besides their content, as hashes.
    pub(super) cost_told: HashSet<u64>,
    /// Whether a record has said that the turn that was begun last is over.
    pub(super) has_end_record: bool,
    /// Whether the turn that was begun last is a copy of another session's.
    pub(super) is_turn_copied: bool,
    /// How many responses had no id of their own.
    pub(super) unnamed_responses: u64,
    /// The system prompt as it stood last.
    pub(super) system_prompt: Option<Box<str>>,
    /// The calls that somebody was asked to allow.
    pub(super) asked: HashSet<String>,
    /// The prompts that wait for it to be done.
    pub(super) queue: PromptQueue,
    /// What was said of calls, by their ids.
    heard: HashMap<String, CallHistory>,
    /// Which call has begun a task, by the task's id; a subagent's is its own id.
    tasks: HashMap<String, String>,
    /// The subagent that a record has named last, and its call.
    pub(super) named_last: Option<(String, String)>,
    /// The calls whose subagents have ended.
    ended: HashSet<String>,
}

/// What was said of a call so far, as hashes: a record that repeats it adds nothing.
#[derive(Default)]
pub(super) struct CallHistory {
    /// Name and input, as the response has them.
    pub(super) call: Option<u64>,
    /// Name and input, as somebody was asked to allow them.
    pub(super) asked: Option<u64>,
    pub(super) result: Option<u64>,
    /// How it ended.
    pub(super) outcome: Option<Outcome>,
}

/// Returns the place of the agent that made a call: a result may come among the records of another.
pub(super) fn caller(agents: &[Agent], place: usize, call: &str) -> usize {
    let has_call = |place: &usize| agents[*place].run.calls.get(call).is_some();
    let latest = (0..agents.len()).rev().take(CALLERS_LEN_MAX);
    [place, 0].into_iter().chain(latest).find(has_call).unwrap_or(place)
}

/// How many agents are asked for a call besides the first: a hostile source may have any number.
const CALLERS_LEN_MAX: usize = 256;

/// A subagent as a record names it.
pub(super) struct SubagentStart<'a> {
    pub(super) call: &'a str,
    pub(super) child: RunId,
    /// The agent's id, if it is known.
    pub(super) agent: Option<&'a str>,
    /// The kind of agent, if the record says it.
    pub(super) agent_type: Option<JsonString>,
    /// How the two were found to belong together, where no record says that they do.
    pub(super) matched_by: Option<&'static str>,
}

/// How a subagent ended.
pub(super) struct SubagentEnd {
    /// The provider's word for it.
    pub(super) status: Option<JsonString>,
    /// What else the record says: what it cost, its last words, where its output is.
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
            heard: HashMap::new(),
            tasks: HashMap::new(),
            named_last: None,
            ended: HashSet::new(),
        }
    }

    /// Returns what was said of a call.
    pub(super) fn heard(&mut self, call: &JsonString) -> &mut CallHistory {
        self.heard.entry(call.to_text().into_owned()).or_default()
    }

    /// Returns the run of one of its subagents.
    pub(super) fn child_id(&self, agent: &str) -> RunId {
        let mut key: Vec<&str> = self.children_key.iter().map(String::as_str).collect();
        key.push(agent);
        derived_run_id(&key)
    }

    /// Ties a subagent to the call that began it, the first time that a record does; false when one has.
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

    /// Writes that the subagent of a call has ended, once; false when it has before, or there is none.
    pub(super) fn end_child(&mut self, call: &str, ended: SubagentEnd, emit: &mut Emit<'_>) -> bool {
        let Some(child) = self.run.calls.child(call) else { return false };
        if !self.ended.insert(call.to_owned()) {
            return false;
        }
        let mut payload = subagent_step(self.agent_type(call), call);
        let status = ended.status.as_ref().map(JsonString::to_text);
        payload.error = status.filter(|status| status != "completed").map(|status| (&*status).into());
        // A record that gives no word for it says only that it is over.
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

    /// Tells whether a call asked for a subagent in the background, which goes on after the call's result.
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

/// What `<task-notification>` says of a task.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Notification<'a> {
    pub(super) task: &'a str,
    pub(super) status: Option<&'a str>,
}

impl<'a> Notification<'a> {
    /// Reads the notification that a text holds.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        // The task's own words follow its id and status, and may look like anything.
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
    fn a_notification_names_its_task_and_how_it_ended() {
        let text = "<task-notification>\n<task-id>a1</task-id>\n<status>failed</status>\n\
                    <result><status>completed</status></result>\n</task-notification>";
        assert_eq!(Notification::read(text), Some(Notification { task: "a1", status: Some("failed") }));
        assert_eq!(Notification::read("<task-notification>done</task-notification>"), None);
    }
}
