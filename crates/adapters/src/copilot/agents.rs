//! The agents of a session: the main one and its subagents. Each is a run.

use std::collections::{HashMap, HashSet};

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, RunId, StepPayload};

use super::approvals::Approvals;
use super::calls::CallHistory;
use super::messages::Thoughts;
use super::usage::LastUsage;
use super::wire::{Data, RawLine, SubagentReport};
use crate::emit::{Emit, SubagentEvent, push, string};
use crate::run::Run;
use crate::shapes::words;
use crate::wire::{Raw, RawField as _, object, parse};

/// An agent while its records are read.
pub(super) struct Agent {
    pub(super) run: Run,
    /// The interaction that is going on, if a record names it.
    pub(super) interaction: Option<JsonString>,
    /// The model that it was told to use; older responses do not name theirs.
    pub(super) model: Option<RawJson>,
    pub(super) thoughts: Thoughts,
    /// The last thought of a response with its signature, as a hash.
    pub(super) last_thought: Option<u64>,
    /// The last system prompt, as a hash.
    pub(super) system_prompt: Option<u64>,
    pub(super) approvals: Approvals,
    /// The last request to the model whose usage is known.
    pub(super) last_usage: LastUsage,
    /// Whether its responses name their model.
    pub(super) names_models: bool,
    /// The error, if it is the last event of the turn so far.
    pub(super) last_error: Option<JsonString>,
    /// The last request that failed, until the next response or round.
    pub(super) failure: Option<Failure>,
    /// Whether a compaction has begun and not ended.
    pub(super) is_compacting: bool,
    /// How many responses had no id.
    pub(super) unnamed_responses: u64,
    /// The history of calls, by id.
    histories: HashMap<String, CallHistory>,
    /// The calls whose subagents have begun, with their names.
    began: HashMap<String, JsonString>,
    /// The calls whose subagents have ended.
    ended: HashSet<String>,
}

/// A request to the model that failed.
#[derive(Default)]
pub(super) struct Failure {
    pub(super) error: Option<JsonString>,
    pub(super) status: Option<RawJson>,
    pub(super) attempt: Option<i64>,
    /// Whether it is recorded that the request was made again.
    pub(super) is_retried: bool,
}

/// A subagent as a record of its caller names it.
#[derive(Clone, Copy)]
pub(super) struct Child<'a> {
    pub(super) call: &'a str,
    pub(super) run: RunId,
    /// The agent's id, if it has one.
    pub(super) id: Option<&'a str>,
    /// The run of the same agent in the session's file, if this is another channel.
    pub(super) mirrors: Option<RunId>,
}

impl Agent {
    pub(super) fn new(run: Run) -> Self {
        Self {
            run,
            interaction: None,
            model: None,
            thoughts: Thoughts::default(),
            last_thought: None,
            system_prompt: None,
            approvals: Approvals::default(),
            last_usage: LastUsage::default(),
            names_models: false,
            last_error: None,
            failure: None,
            is_compacting: false,
            unnamed_responses: 0,
            histories: HashMap::new(),
            began: HashMap::new(),
            ended: HashSet::new(),
        }
    }

    /// Returns the history of a call.
    pub(super) fn call_history(&mut self, call: &JsonString) -> &mut CallHistory {
        self.histories.entry(call.to_text().into_owned()).or_default()
    }

    /// Writes that a call has begun a subagent, once.
    pub(super) fn start_child(&mut self, child: Child<'_>, data: &Data<'_>, emit: &mut Emit<'_>) {
        if self.began.contains_key(child.call) {
            return;
        }
        let name = words(data.agent_name).unwrap_or_else(|| "subagent".into());
        self.began.insert(child.call.to_owned(), name.clone());
        self.run.calls.link(child.call, child.run);
        let mut payload = step(name, child);
        push(&mut payload.extra, "display_name", data.display_name.json());
        emit.subagent(&self.run, SubagentEvent::Started, child.run, payload);
    }

    /// Writes once that the subagent of a call has ended.
    pub(super) fn end_child(&mut self, child: Child<'_>, data: &Data<'_>, status: &str, emit: &mut Emit<'_>) {
        if !self.began.contains_key(child.call) {
            self.start_child(child, data, emit);
        }
        if !self.ended.insert(child.call.to_owned()) {
            return;
        }
        let name = self.began.get(child.call).cloned().unwrap_or_else(|| "subagent".into());
        let mut payload = step(name, child);
        payload.error = match status {
            "completed" => None,
            "failed" => Some(words(data.error).unwrap_or_else(|| status.into())),
            _ => Some(status.into()),
        };
        payload.result = Some(report(status, emit));
        emit.subagent(&self.run, SubagentEvent::Completed, child.run, payload);
    }

    /// Writes a fact, whose name is the type of its record.
    pub(super) fn fact(&self, kind: &str, emit: &mut Emit<'_>) {
        let data = data_of(emit);
        self.fact_with(kind, data, emit);
    }

    /// Writes a fact.
    pub(super) fn fact_with(&self, name: &str, result: Option<RawJson>, emit: &mut Emit<'_>) {
        emit.system(&self.run, name, result);
        emit.entry(&self.run, EntryType::SystemEvent, Some(name));
    }

    /// Returns the id of a response: the provider's, else a number.
    pub(super) fn response(&mut self, ids: &[Raw<'_>]) -> RawJson {
        let named = ids.iter().find_map(|id| id.string()).filter(|id| !id.is_empty());
        named.map_or_else(
            || {
                self.unnamed_responses += 1;
                RawJson::from(self.unnamed_responses)
            },
            |id| id.to_json(),
        )
    }
}

/// Returns the data of the record as they came; the whole record if it has none.
pub(super) fn data_of(emit: &Emit<'_>) -> Option<RawJson> {
    let line: Option<RawLine<'_>> = parse(emit.text()).ok();
    line.and_then(|line| line.data.json()).or_else(|| Some(emit.record()))
}

/// Makes an object of the fields that are there, under the provider's plain names; nothing if there are none.
pub(super) fn provider_object(fields: &[(&str, Option<RawJson>)]) -> Option<RawJson> {
    let there = fields.iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", value.as_ref()?)));
    let there: Vec<String> = there.collect();
    let text = format!("{{{}}}", there.join(","));
    RawJson::parse(&text).ok().filter(|_| !there.is_empty())
}

fn step(name: JsonString, child: Child<'_>) -> StepPayload {
    let mut payload = StepPayload::new(name, "subagent");
    payload.extra.push("tool_call_id", string(child.call));
    push(&mut payload.extra, "agent_id", child.id.map(string));
    push(&mut payload.extra, "session_run_id", child.mirrors.map(|run| string(&run.to_string())));
    payload
}

/// Returns how a subagent ended, with what the record counts.
fn report(status: &str, emit: &Emit<'_>) -> RawJson {
    let line: RawLine<'_> = parse(emit.text()).unwrap_or_default();
    let report = line.data.and_then(object::<SubagentReport<'_>>).unwrap_or_default();
    let fields = [
        ("model", report.model),
        ("duration_ms", report.duration_ms),
        ("total_tokens", report.tokens),
        ("total_tool_calls", report.calls),
    ];
    RawJson::object(|object| {
        object.word("status", status);
        for (name, value) in fields {
            object.optional(name, value.json().as_ref(), ObjectWriter::json);
        }
    })
}
