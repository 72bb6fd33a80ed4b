//! The control protocol: requests of both sides and their answers. Only requests for approval concern the work.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;
use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{EntryType, Lane};

use super::agents::Agent;
use super::facts;
use super::frames::{Request, Response, Verdict};
use super::messages::class_of;
use crate::adapter::RecordOutcome;
use crate::emit::{CallReport, Decision, Emit, push};
use crate::repeats::{amendment, hash_of, hash_of_call};
use crate::requests::{AnswerMatch, OpenRequests};
use crate::run::{Class, Run};
use crate::shapes::{is_absent, words};
use crate::wire::{Raw, RawField as _, WireObject as _, object};

/// How many sent answers are remembered, to recognise them when they are printed.
const SENT_LEN_MAX: usize = 64;

/// How many open requests with one id are compared with another that has it: a hostile source may have any number.
const LOOKS_MAX: usize = 64;

/// Requests of a host whose answers have no information about the work.
const ADMINISTRATION: [&str; 14] = [
    "get_context_usage",
    "get_settings",
    "initialize",
    "interrupt",
    "mcp_message",
    "mcp_reconnect",
    "mcp_set_servers",
    "mcp_status",
    "mcp_toggle",
    "rewind_files",
    "set_max_thinking_tokens",
    "set_model",
    "set_permission_mode",
    "stop_task",
];

/// The requests of both sides; each side has its own ids.
#[derive(Default)]
pub(super) struct Requests {
    by_agent: OpenRequests<OpenRequest>,
    by_host: OpenRequests<OpenRequest>,
    /// The answers that were sent last, as hashes.
    sent: VecDeque<u64>,
    /// The calls that the host has refused.
    refused: HashSet<String>,
}

/// A request that was made.
struct OpenRequest {
    subtype: String,
    /// The index of its agent.
    agent: usize,
    /// The call that needs approval.
    call: Option<JsonString>,
    /// The input of the call.
    input: Option<RawJson>,
    /// The hash of the whole request.
    hash: u64,
}

/// A request's id and direction.
#[derive(Clone, Copy)]
pub(super) struct RequestId<'a> {
    pub(super) lane: Lane,
    pub(super) id: Raw<'a>,
    pub(super) agent: usize,
}

impl Requests {
    fn of(&mut self, lane: Lane) -> &mut OpenRequests<OpenRequest> {
        match lane {
            Lane::FromAgent => &mut self.by_agent,
            Lane::ToAgent => &mut self.by_host,
        }
    }

    /// Writes a request; `ask` has the index of its agent.
    pub(super) fn ask(
        &mut self,
        agent: &mut Agent,
        ask: RequestId<'_>,
        request: Raw<'_>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let asked = request.and_then(object::<Request<'_>>).unwrap_or_default();
        let (Some(id), Some(name), Some(subtype)) = (ask.id, ask.id.string(), asked.subtype.text()) else {
            return facts::unknown(&agent.run, "control_request", emit);
        };
        let hash = hash_of(request.map_or("", RawValue::get));
        if self.of(ask.lane).waiting(id).take(LOOKS_MAX).any(|open| open.hash == hash) {
            // An open request was sent again.
            return RecordOutcome::Bookkeeping;
        }
        let is_approval = subtype == "can_use_tool";
        let call = asked.tool_use_id.string().filter(|_| is_approval);
        if is_approval {
            approval(agent, (&name, call.as_ref()), (request, &asked), emit);
        } else {
            emit.system(&agent.run, &subtype, request.json());
            emit.entry(&agent.run, EntryType::SystemEvent, Some(&subtype));
        }
        let input = asked.input.json().filter(|_| is_approval);
        let open = OpenRequest { subtype: subtype.into_owned(), agent: ask.agent, call, input, hash };
        self.of(ask.lane).ask(id, open);
        // The whole record is kept except for approvals.
        let is_odd = is_approval && asked.is_odd();
        if is_odd { facts::unknown(&agent.run, "control_request", emit) } else { RecordOutcome::Understood }
    }

    /// Writes an answer, once: Claude Code also prints the answers that it was sent. `main` is the agent for answers
    /// without a request.
    pub(super) fn answer(
        &mut self,
        (agents, main): (&[Agent], usize),
        lane: Lane,
        response: Response<'_>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        if self.is_printed_again(lane, &response) {
            return RecordOutcome::Bookkeeping;
        }
        match self.take(lane, response.request_id) {
            AnswerMatch::One((by, asked)) => {
                self.keep_refusal(&asked, &response);
                answered(&agents[asked.agent].run, by, &asked, &response, emit)
            }
            AnswerMatch::Again => RecordOutcome::Bookkeeping,
            AnswerMatch::Nothing => self.unasked(&agents[main].run, lane, &response, emit),
        }
    }

    /// Remembers that a call was refused: its result may say only that it failed.
    fn keep_refusal(&mut self, asked: &OpenRequest, response: &Response<'_>) {
        let verdict = response.body.and_then(object::<Verdict<'_>>).unwrap_or_default();
        let call = asked.call.as_ref().filter(|_| verdict.behavior.is("deny"));
        self.refused.extend(call.map(|call| call.to_text().into_owned()));
    }

    /// Tells whether the host has refused a call.
    pub(super) fn is_refused(&self, call: &str) -> bool {
        self.refused.contains(call)
    }

    /// Tells whether an answer that Claude Code prints is one that it was sent.
    fn is_printed_again(&mut self, lane: Lane, response: &Response<'_>) -> bool {
        let fields = [response.subtype, response.request_id, response.body, response.error];
        let hash = hash_of(&fields.map(|field| field.map(RawValue::get)));
        match lane {
            Lane::FromAgent => {
                let place = self.sent.iter().position(|sent| *sent == hash);
                place.and_then(|place| self.sent.remove(place)).is_some()
            }
            Lane::ToAgent => {
                if self.sent.len() == SENT_LEN_MAX {
                    self.sent.pop_front();
                }
                self.sent.push_back(hash);
                false
            }
        }
    }

    /// Removes and returns the request of an answer, with its direction: the other side's request, or the agent's own
    /// if the answer is only printed.
    fn take(&mut self, lane: Lane, id: Raw<'_>) -> AnswerMatch<(Lane, OpenRequest)> {
        let Some(id) = id else { return AnswerMatch::Nothing };
        let by = match lane {
            Lane::FromAgent => Lane::ToAgent,
            Lane::ToAgent => Lane::FromAgent,
        };
        let of = |by: Lane, answers| match answers {
            AnswerMatch::One(asked) => AnswerMatch::One((by, asked)),
            AnswerMatch::Again => AnswerMatch::Again,
            AnswerMatch::Nothing => AnswerMatch::Nothing,
        };
        match of(by, self.of(by).answer(id)) {
            AnswerMatch::Nothing if lane == Lane::FromAgent => of(lane, self.of(lane).answer(id)),
            answers @ (AnswerMatch::One(_) | AnswerMatch::Again | AnswerMatch::Nothing) => answers,
        }
    }

    /// Writes an answer without a request. A recording of one side has no requests of the other.
    fn unasked(
        &mut self,
        run: &Run,
        lane: Lane,
        response: &Response<'_>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let is_whole = is_absent(response.request_id) || !self.by_host.is_empty();
        match lane {
            Lane::ToAgent if self.by_agent.is_empty() && !is_absent(response.request_id) => {
                facts::fact(run, "control_response", emit);
                RecordOutcome::Understood
            }
            Lane::FromAgent if !is_absent(response.error) => {
                failed(run, "control_response", response, emit);
                RecordOutcome::Understood
            }
            Lane::FromAgent if !is_whole => RecordOutcome::Bookkeeping,
            Lane::ToAgent | Lane::FromAgent => facts::unknown(run, "control_response", emit),
        }
    }

    /// Writes that a request was cancelled.
    pub(super) fn cancel(
        &mut self,
        (agents, main): (&[Agent], usize),
        lane: Lane,
        id: Raw<'_>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let asked = match id.map_or(AnswerMatch::Nothing, |id| self.of(lane).answer(id)) {
            AnswerMatch::One(asked) => asked,
            AnswerMatch::Again => return RecordOutcome::Bookkeeping,
            AnswerMatch::Nothing => return facts::unknown(&agents[main].run, "control_cancel_request", emit),
        };
        let run = &agents[asked.agent].run;
        let name = words(id).unwrap_or_else(|| "".into());
        if asked.subtype == "can_use_tool" {
            let what = Decision { verdict: "cancelled", by: "agent", scope: None, raw: None };
            emit.decide(run, &name, asked.call.as_ref(), &what);
        } else {
            emit.system(run, "control_cancel_request", Some(name.to_json()));
        }
        emit.entry(run, EntryType::SystemEvent, Some("control_cancel_request"));
        RecordOutcome::Understood
    }
}

/// Writes a request for approval of a call.
fn approval(
    agent: &mut Agent,
    (id, call): (&JsonString, Option<&JsonString>),
    (request, asked): (Raw<'_>, &Request<'_>),
    emit: &mut Emit<'_>,
) {
    if let Some(call) = call {
        agent.asked.insert(call.to_text().into_owned());
        synthesise(agent, call, asked, emit);
    }
    emit.ask(&agent.run, id, call);
    if call.is_none() {
        // The call is not named, so the request is written as a separate fact.
        emit.system(&agent.run, "can_use_tool", request.json());
    }
    emit.entry(&agent.run, EntryType::SystemEvent, Some("approval_requested"));
}

/// Writes the answer to a request.
fn answered(
    run: &Run,
    by: Lane,
    asked: &OpenRequest,
    response: &Response<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let id = words(response.request_id).unwrap_or_else(|| "".into());
    if asked.subtype == "can_use_tool" {
        return decided(run, &id, asked, response, emit);
    }
    if !is_absent(response.error) {
        failed(run, &asked.subtype, response, emit);
        return RecordOutcome::Understood;
    }
    let says_nothing = is_absent(response.body) || response.body.is_some_and(|body| body.get() == "{}");
    if by == Lane::ToAgent && (ADMINISTRATION.contains(&&*asked.subtype) || says_nothing) {
        return RecordOutcome::Bookkeeping;
    }
    let name = format!("{}_response", asked.subtype);
    emit.system(run, &name, response.body.json());
    emit.entry(run, EntryType::SystemEvent, Some(&name));
    RecordOutcome::Understood
}

fn failed(run: &Run, name: &str, response: &Response<'_>, emit: &mut Emit<'_>) {
    let error = words(response.error).unwrap_or_else(|| "".into());
    emit.error(run, name, &error.to_text());
    emit.entry(run, EntryType::Error, None);
}

/// Writes whether a call is allowed, and its input if that was changed.
fn decided(
    run: &Run,
    id: &JsonString,
    asked: &OpenRequest,
    response: &Response<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let verdict = response.body.and_then(object::<Verdict<'_>>).unwrap_or_default();
    emit.decide(run, id, asked.call.as_ref(), &verdict_of(&verdict, response));
    if let Some(input) = verdict.input.json().filter(|input| !is_same(asked.input.as_ref(), input)) {
        match &asked.call {
            Some(call) => {
                let result = RawJson::object(|object| object.json("input", &input));
                emit.step_completed(run, &run.turns.path(), amendment(call, result));
            }
            // The call is unknown.
            None => emit.system(run, "can_use_tool_response", response.body.json()),
        }
    }
    emit.entry(run, EntryType::SystemEvent, Some("approval_resolved"));
    if verdict.is_odd() { facts::unknown(run, "control_response", emit) } else { RecordOutcome::Understood }
}

/// Tells whether two JSON values are equal, regardless of formatting.
fn is_same(asked: Option<&RawJson>, answered: &RawJson) -> bool {
    let value = |json: &RawJson| json.read::<Value>().ok();
    asked.is_some_and(|asked| {
        asked == answered || value(asked).is_some_and(|asked| value(answered) == Some(asked))
    })
}

/// The channel may ask about a call before it reports the call.
fn synthesise(agent: &mut Agent, call: &JsonString, asked: &Request<'_>, emit: &mut Emit<'_>) {
    let name = asked.tool_name.string().unwrap_or_else(|| "".into());
    let class = class_of(&name.to_text());
    let input = asked.input.map_or_else(RawJson::null, RawJson::from_raw);
    let mut report = CallReport { keep_input: class == Class::Agent, ..CallReport::new(name, class, input) };
    let hash = hash_of_call(&report);
    agent.call_history(call).asked = Some(hash);
    if agent.run.calls.get(&call.to_text()).is_some() {
        return;
    }
    report.extra.push("from_request", RawJson::from(true));
    // The call of an unknown agent goes to the main agent's run.
    push(&mut report.extra, "agent_id", asked.agent_id.json().filter(|_| agent.run.parent.is_none()));
    emit.call(&mut agent.run, call, report);
}

fn verdict_of<'a>(verdict: &Verdict<'_>, response: &Response<'_>) -> Decision<'a> {
    let decision = match verdict.behavior.text().as_deref() {
        Some("allow") => "allowed",
        Some("deny") => "denied",
        _ => "unknown",
    };
    let lasts = verdict.permissions.is_some_and(|permissions| !matches!(permissions.get(), "[]" | "null"));
    let scope = if lasts { "rule" } else { "once" };
    let raw = verdict.behavior.json().or_else(|| response.error.json()).or_else(|| response.body.json());
    Decision { verdict: decision, by: "host", scope: Some(scope), raw }
}
