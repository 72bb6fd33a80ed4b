//! Writes calls, results, approvals and subagents.

use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{CallId, EventType, Payload, RunId, StepPayload, ToolPayload};

use super::{Emit, push, string};
use crate::run::{Call, Class, Run};

/// A call as a provider reports it.
pub(crate) struct CallReport {
    pub(crate) name: JsonString,
    pub(crate) class: Class,
    pub(crate) input: RawJson,
    /// Whether the input is needed again later.
    pub(crate) keep_input: bool,
    pub(crate) extra: Extra,
}

impl CallReport {
    /// Makes a call with default fields.
    pub(crate) fn new(name: JsonString, class: Class, input: RawJson) -> Self {
        Self { name, class, input, keep_input: false, extra: Extra::default() }
    }
}

/// A result as a provider reports it.
pub(crate) struct Answer {
    pub(crate) output: RawJson,
    pub(crate) error: Option<JsonString>,
    pub(crate) outcome: Outcome,
    pub(crate) exit_code: Option<i64>,
    pub(crate) extra: Extra,
}

impl Answer {
    /// Makes an answer with default fields.
    pub(crate) fn new(output: RawJson, outcome: Outcome) -> Self {
        Self { output, error: None, outcome, exit_code: None, extra: Extra::default() }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Failed,
    Denied,
    Interrupted,
    Unknown,
}

impl Outcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
        }
    }
}

/// The decision about an approval.
pub(crate) struct Decision<'a> {
    /// `allowed`, `denied`, or the provider's word.
    pub(crate) verdict: &'a str,
    /// Who decided.
    pub(crate) by: &'a str,
    /// For how long: `once`, `session`, ….
    pub(crate) scope: Option<&'a str>,
    /// The provider's text.
    pub(crate) raw: Option<RawJson>,
}

/// Whether a subagent begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubagentEvent {
    Started,
    Completed,
}

impl Emit<'_> {
    /// Writes a call, unless one with this id was written before.
    pub(crate) fn call(&mut self, run: &mut Run, id: &JsonString, call: CallReport) {
        let path = run.turns.path();
        let mut kept = Call::new(call.name.clone(), call.class, path.clone());
        kept.input = call.keep_input.then(|| call.input.clone());
        if !run.calls.open(&id.to_text(), kept) {
            return;
        }
        let mut payload = ToolPayload::call(call.name.clone(), CallId(id.clone()), call.input, run.fidelity);
        payload.extra = call.extra;
        payload.extra.push("class", string(call.class.as_str()));
        self.put(run, (EventType::ToolCall, &path), &Payload::Tool(payload), None);
    }

    /// Writes the result of a call. If the call was not seen, it is written first and marked as such.
    pub(crate) fn result(&mut self, run: &mut Run, id: &JsonString, name: &str, answer: Answer) {
        if run.calls.get(&id.to_text()).is_none() {
            let mut extra = Extra::default();
            extra.push("input_available", RawJson::from(false));
            let call = CallReport { extra, ..CallReport::new(name.into(), Class::Other, RawJson::null()) };
            self.call(run, id, call);
        }
        let Some(call) = run.calls.answer(&id.to_text()).cloned() else { return };
        let mut payload = ToolPayload::result(call.name, CallId(id.clone()), answer.output, run.fidelity);
        payload.error = answer.error;
        payload.extra.push("outcome", string(answer.outcome.as_str()));
        push(&mut payload.extra, "exit_code", answer.exit_code.map(RawJson::from));
        payload.extra.push("class", string(call.class.as_str()));
        payload.extra.append(answer.extra);
        self.put(run, (EventType::ToolResult, &call.path), &Payload::Tool(payload), None);
    }

    /// Writes that approval of a call was requested.
    pub(crate) fn ask(&mut self, run: &Run, request: &JsonString, call: Option<&JsonString>) {
        let mut payload = StepPayload::new(request.clone(), "approval");
        push(&mut payload.extra, "tool_call_id", call.map(JsonString::to_json));
        self.put(
            run,
            (EventType::StepStarted, &run.turns.path_of("approval")),
            &Payload::Step(payload),
            None,
        );
    }

    /// Writes the decision.
    pub(crate) fn decide(
        &mut self,
        run: &Run,
        request: &JsonString,
        call: Option<&JsonString>,
        what: &Decision<'_>,
    ) {
        let mut payload = StepPayload::new(request.clone(), "approval");
        payload.result = Some(RawJson::object(|object| {
            object.string("decision", &what.verdict.into());
            object.string("by", &what.by.into());
            object.optional("scope", what.scope.map(JsonString::from).as_ref(), ObjectWriter::string);
            object.optional("raw", what.raw.as_ref(), ObjectWriter::json);
        }));
        push(&mut payload.extra, "tool_call_id", call.map(JsonString::to_json));
        self.put(
            run,
            (EventType::StepCompleted, &run.turns.path_of("approval")),
            &Payload::Step(payload),
            None,
        );
    }

    /// Writes that a subagent was started, or has ended.
    pub(crate) fn subagent(&mut self, run: &Run, moment: SubagentEvent, child: RunId, payload: StepPayload) {
        let event_type = match moment {
            SubagentEvent::Started => EventType::CallWorkflowStarted,
            SubagentEvent::Completed => EventType::CallWorkflowCompleted,
        };
        self.put(run, (event_type, &run.turns.path_of("subagent")), &Payload::Step(payload), Some(child));
    }
}
