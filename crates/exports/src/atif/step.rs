//! Writes one step: its message, its calls, and their results.

use std::collections::BTreeSet;

use steno_model::RunId;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use super::TrajectoryCounts;
use super::build::Run;
use super::calls::{Call, CallNumber, Child};
use super::content::{Output, write_message};
use super::ids::CallIds;
use super::media::Keeper;
use super::metrics::step_metrics;
use super::steps::{Origin, Response, Role, Step, System};
use super::text::{push_clean, push_joined, push_list};

/// The separator of thoughts that are joined.
const BETWEEN_THOUGHTS: &str = "\\n\\n";

/// Writes the steps of one run.
pub(super) struct StepWriter<'a, 'b> {
    pub(super) run: &'a Run,
    pub(super) ids: &'a CallIds,
    /// The runs that are embedded here and can be referred to.
    pub(super) embedded: &'a BTreeSet<RunId>,
    pub(super) keeper: &'a mut Keeper<'b>,
}

/// Returns the model of a step of the agent.
pub(super) fn model(step: &Step) -> Option<&JsonString> {
    match &step.role {
        Role::Agent(response) => response.model.as_ref(),
        Role::User | Role::System(_) => None,
    }
}

/// Returns true if a step has text of the agent that no record assigns to a response.
pub(super) fn is_of_words(step: &Step) -> bool {
    matches!(&step.role, Role::Agent(response) if response.origin == Origin::Words)
}

impl StepWriter<'_, '_> {
    pub(super) fn write(
        &mut self,
        out: &mut String,
        step: &Step,
        number: u64,
        counted: &mut TrajectoryCounts,
    ) {
        counted.steps += 1;
        let source = match &step.role {
            Role::User => "user",
            Role::System(_) => "system",
            Role::Agent(_) => "agent",
        };
        let mut object = ObjectWriter::begin(out);
        object.number("step_id", number);
        if step.at.instant().is_some() {
            object.string("timestamp", step.at.as_json());
        }
        object.word("source", source);
        if let Role::Agent(response) = &step.role {
            object.optional("model_name", response.model.as_ref(), push_token);
            object.optional("reasoning_effort", response.effort.as_ref(), ObjectWriter::json);
        }
        object.nested("message", |out| write_message(out, &step.parts, self.keeper));
        match &step.role {
            Role::Agent(response) => self.response(&mut object, step, response, counted),
            Role::System(System { child: Some(child), .. }) if self.embedded.contains(child) => {
                object.nested("observation", |out| {
                    out.push_str(r#"{"results":[{"subagent_trajectory_ref":"#);
                    refs(out, [*child].iter());
                    out.push_str("}]}");
                });
            }
            Role::User | Role::System(_) => {}
        }
        if step.copied_from.is_some() {
            object.json("is_copied_context", &RawJson::from(true));
        }
        if let Role::Agent(response) = &step.role {
            match response.origin {
                Origin::Response => object.number("llm_call_count", 1),
                Origin::CallAlone => object.number("llm_call_count", 0),
                Origin::Words => {}
            }
        }
        object.nested("extra", |out| self.extra(out, step));
        object.end();
    }

    fn response(
        &mut self,
        object: &mut ObjectWriter<'_>,
        step: &Step,
        response: &Response,
        counted: &mut TrajectoryCounts,
    ) {
        counted.responses += u64::from(response.origin == Origin::Response);
        if !response.thoughts.is_empty() {
            object.nested("reasoning_content", |out| {
                push_joined(out, response.thoughts.iter(), BETWEEN_THOUGHTS);
            });
        }
        if !response.calls.is_empty() {
            counted.calls += response.calls.len() as u64;
            object.nested("tool_calls", |out| {
                push_list(out, &response.calls, |out, call| self.call(out, *call));
            });
        }
        let has_outcome = |call: &&CallNumber| self.run.calls.get(**call).has_outcome();
        let with_outcome: Vec<CallNumber> = response.calls.iter().filter(has_outcome).copied().collect();
        if !with_outcome.is_empty() {
            object.nested("observation", |out| {
                out.push_str(r#"{"results":"#);
                push_list(out, with_outcome, |out, number| {
                    let call = self.run.calls.get(number);
                    counted.results += u64::from(call.result.is_some());
                    self.outcome(out, call, self.ids.get(number));
                });
                out.push('}');
            });
        }
        // The usage belongs to the run that it was copied from.
        if let Some(usage) = response.usage.as_ref().filter(|_| step.copied_from.is_none()) {
            object.nested("metrics", |out| step_metrics(out, usage));
        }
    }

    fn call(&self, out: &mut String, number: CallNumber) {
        let call = self.run.calls.get(number);
        let id = self.ids.get(number);
        let mut object = ObjectWriter::begin(out);
        push_token(&mut object, "tool_call_id", id);
        push_token(&mut object, "function_name", &call.name.clone().unwrap_or_else(|| "unknown".into()));
        let input = call.input.as_ref().filter(|input| !input.is_null());
        object.nested("arguments", |out| match input {
            Some(input) if input.as_str().starts_with('{') => push_clean(out, input.as_str()),
            // ATIF allows only objects.
            Some(input) => {
                out.push_str(r#"{"input":"#);
                push_clean(out, input.as_str());
                out.push('}');
            }
            None => out.push_str("{}"),
        });
        let mut facts = call.facts.clone();
        facts.retain(|(name, _)| !(name.is("input_available") && input.is_none()));
        if input.is_none() {
            facts.push(("input_available".into(), RawJson::from(false)));
        }
        if let Some(own) = call.id.as_ref().filter(|own| *own != id) {
            facts.push(("provider_call_id".into(), own.to_json()));
        }
        if !facts.is_empty() {
            object.nested("extra", |out| super::write::push_fields(out, &facts));
        }
        object.end();
    }

    /// Writes the result of a call.
    fn outcome(&mut self, out: &mut String, call: &Call, id: &JsonString) {
        let mut object = ObjectWriter::begin(out);
        push_token(&mut object, "source_call_id", id);
        let first =
            call.result.as_ref().and_then(|result| result.output.clone()).filter(|output| !output.is_null());
        // The output that the model got stays. An amendment is used only if there was none.
        let output = first.or_else(|| call.fact("output")).unwrap_or_else(RawJson::null);
        let output = Output::of(&output);
        if !output.is_nothing() {
            object.nested("content", |out| output.write(out, self.keeper));
        }
        let here: Vec<RunId> =
            call.children.iter().map(|child| child.run).filter(|run| self.embedded.contains(run)).collect();
        if !here.is_empty() {
            object.nested("subagent_trajectory_ref", |out| refs(out, here.iter()));
        }
        object.nested("extra", |out| self.outcome_extra(out, call, &output));
        object.end();
    }

    fn outcome_extra(&self, out: &mut String, call: &Call, output: &Output<'_>) {
        let mut object = ObjectWriter::begin(out);
        let Some(result) = &call.result else {
            object.json("result_available", &RawJson::from(false));
            return self.call_facts(object, call);
        };
        if let Some(at) = result.at.as_ref().filter(|at| at.instant().is_some()) {
            object.string("timestamp", at.as_json());
        }
        // Agents repeat the output of a failed call as its error.
        let error = result.error.as_ref().filter(|error| !output.is_text(error.as_raw()));
        object.optional("error", error, push_token);
        for name in FACTS {
            let fact = call.fact(name).filter(|fact| !fact.is_null());
            object.optional(name, fact.as_ref(), push_json);
        }
        let rest = result.facts.iter().filter(|(name, _)| !FACTS.iter().any(|fact| name.is(fact)));
        let rest: Vec<_> = rest.chain(&output.other_fields).cloned().collect();
        if !rest.is_empty() {
            object.nested("record", |out| super::write::push_fields(out, &rest));
        }
        self.call_facts(object, call);
    }

    /// Writes the other facts of a call: approvals, child runs, amendments.
    fn call_facts(&self, mut object: ObjectWriter<'_>, call: &Call) {
        if !call.approvals.is_empty() {
            object.nested("approvals", |out| push_list(out, &call.approvals, |out, asked| asked.write(out)));
        }
        if !call.children.is_empty() {
            object.nested("child_runs", |out| {
                push_list(out, &call.children, |out, child| self.child(out, child));
            });
        }
        if !call.amended.is_empty() {
            object.nested("amended", |out| {
                push_list(out, &call.amended, |out, facts| push_clean(out, facts.as_str()));
            });
        }
        object.end();
    }

    fn child(&self, out: &mut String, child: &Child) {
        let mut object = ObjectWriter::begin(out);
        object.run_id("run_id", &child.run);
        object.optional("name", child.name.as_ref(), push_token);
        object.json("embedded", &RawJson::from(self.embedded.contains(&child.run)));
        object.end();
    }

    fn extra(&self, out: &mut String, step: &Step) {
        let mut object = ObjectWriter::begin(out);
        object.run_id("run_id", self.run.runs.get(step.run.0).unwrap_or(&self.run.id));
        object.number("seq", step.seq.get());
        if !step.path.is_empty() {
            push_token(&mut object, "path", &step.path);
        }
        object.optional("copied_from", step.copied_from.as_ref(), push_token);
        match &step.role {
            Role::Agent(response) => {
                let copied = response.usage.as_ref().filter(|_| step.copied_from.is_some());
                object.optional("copied_usage", copied.map(|usage| &usage.report), push_json);
                self.response_extra(&mut object, response);
            }
            Role::System(system) => system_extra(&mut object, system),
            Role::User => {}
        }
        if !step.facts.is_empty() {
            object.nested("record", |out| super::write::push_fields(out, &step.facts));
        }
        object.end();
    }

    fn response_extra(&self, object: &mut ObjectWriter<'_>, response: &Response) {
        object.optional("response_id", response.id.as_ref(), push_json);
        object.optional("stop_reason", response.stop_reason.as_ref(), push_token);
        if response.hidden_thoughts > 0 {
            object.number("hidden_thoughts", response.hidden_thoughts);
        }
        if response.is_compaction {
            object.json("compaction", &RawJson::from(true));
        }
        // Harbor uses this to distinguish free-text calls from functions when it gives a trajectory back to Codex.
        let input = |call: &CallNumber| self.run.calls.get(*call).input.as_ref();
        let is_text = |call: &&CallNumber| input(call).is_some_and(|input| input.as_str().starts_with('"'));
        let texts: Vec<CallNumber> = response.calls.iter().filter(is_text).copied().collect();
        if !texts.is_empty() {
            object.nested("tool_call_details", |out| {
                let mut next = '{';
                for call in texts {
                    out.push(next);
                    next = ',';
                    push_clean(out, self.ids.get(call).as_raw());
                    out.push_str(r#":{"raw_arguments":"#);
                    push_clean(out, input(&call).map_or("null", RawJson::as_str));
                    out.push('}');
                }
                out.push('}');
            });
        }
    }
}

/// The facts of a result that are in `extra`, with their latest values.
const FACTS: [&str; 4] = ["outcome", "exit_code", "duration_ms", "changes"];

fn system_extra(object: &mut ObjectWriter<'_>, system: &System) {
    object.optional("kind", system.kind.as_ref(), push_token);
    object.optional("name", system.name.as_ref(), push_token);
    object.optional("error", system.error.as_ref(), push_token);
    object.optional("result", system.result.as_ref(), push_json);
    if system.is_open {
        object.json("open", &RawJson::from(true));
    }
    object.optional("child_run_id", system.child.as_ref(), ObjectWriter::run_id);
}

fn refs<'a>(out: &mut String, runs: impl Iterator<Item = &'a RunId>) {
    push_list(out, runs, |out, run| {
        let mut object = ObjectWriter::begin(out);
        object.run_id("trajectory_id", run);
        object.end();
    });
}

fn push_token(object: &mut ObjectWriter<'_>, name: &str, token: &JsonString) {
    object.nested(name, |out| push_clean(out, token.as_raw()));
}

fn push_json(object: &mut ObjectWriter<'_>, name: &str, json: &RawJson) {
    object.nested(name, |out| push_clean(out, json.as_str()));
}
