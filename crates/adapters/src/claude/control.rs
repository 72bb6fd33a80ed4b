//! The control protocol: who asked whom for what, and the answers. Requests for approval are all it says of the work.

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

/// How many answers that were sent are remembered to know them when they are printed; not every host asks for that.
const SENT_LEN_MAX: usize = 64;

/// How many open requests with one id are compared with another that has it: a hostile source may have any number.
const LOOKS_MAX: usize = 64;

/// What a host asks for whose answer says nothing of the work.
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

/// The requests of both sides; each has ids of its own.
#[derive(Default)]
pub(super) struct Requests {
    by_agent: OpenRequests<OpenRequest>,
    by_host: OpenRequests<OpenRequest>,
    /// The answers that were sent last, as hashes.
    sent: VecDeque<u64>,
    /// The calls that the host has refused.
    refused: HashSet<String>,
}

/// What was asked.
struct OpenRequest {
    subtype: String,
    /// Which agent's it is.
    agent: usize,
    /// The call that wants to be allowed.
    call: Option<JsonString>,
    /// What the call is to be made with.
    input: Option<RawJson>,
    /// All that was asked, as a hash.
    hash: u64,
}

/// A request's id, and which way it went.
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

    /// Writes what is asked; `ask` is of the agent that it is asked for.
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
            // One that is still open was sent once more.
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
        // Only of an approval not everything is kept.
        let is_odd = is_approval && asked.is_odd();
        if is_odd { facts::unknown(&agent.run, "control_request", emit) } else { RecordOutcome::Understood }
    }

    /// Writes an answer, the first time that it comes: Claude Code prints those that it was sent. `main` is the agent
    /// that answers belong to which nobody has asked for.
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

    /// Keeps that a call was refused: its result may say only that it failed.
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

    /// Takes out the request that an answer is for, with who asked: the other side, or the agent itself when the answer
    /// that it was sent is only printed.
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

    /// Writes an answer to nothing that was seen. A recording of one side has none of the other's requests.
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

    /// Writes that an answer is no longer wanted.
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

/// Writes that somebody is asked to allow a call.
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
        // Which call it is about is not said, so what would be called is a fact of its own.
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

/// Writes whether a call may be made, and with what if that is something else than was asked for.
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
            // Nobody can tell which call that is.
            None => emit.system(run, "can_use_tool_response", response.body.json()),
        }
    }
    emit.entry(run, EntryType::SystemEvent, Some("approval_resolved"));
    if verdict.is_odd() { facts::unknown(run, "control_response", emit) } else { RecordOutcome::Understood }
}

/// Tells whether two values say the same, however they are written.
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
    let mut seen = CallReport { keep_input: class == Class::Agent, ..CallReport::new(name, class, input) };
    let hash = hash_of_call(&seen);
    agent.heard(call).asked = Some(hash);
    if agent.run.calls.get(&call.to_text()).is_some() {
        return;
    }
    seen.extra.push("from_request", RawJson::from(true));
    // Of an agent that nobody has heard of, the main agent's run has the call.
    push(&mut seen.extra, "agent_id", asked.agent_id.json().filter(|_| agent.run.parent.is_none()));
    emit.call(&mut agent.run, call, seen);
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
