//! The control protocol: who asked whom for what, and the answers. Requests for approval are all it says of the work.

use std::collections::HashMap;

use steno_model::json::{JsonString, RawJson};
use steno_model::{EntryType, Lane};

use super::agents::Agent;
use super::frames::{Request, Response, Verdict};
use super::messages::class_of;
use crate::adapter::Read;
use crate::emit::{CallSeen, Decision, Emit};
use crate::run::Class;
use crate::wire::{Raw, RawField as _, object};

/// The requests that nobody has answered yet, by who asked and their id.
#[derive(Default)]
pub(super) struct Requests(HashMap<(Lane, String), Asked>);

/// What was asked.
struct Asked {
    subtype: String,
    /// Which agent's it is.
    agent: usize,
    /// The call that wants to be allowed.
    call: Option<JsonString>,
}

/// A request's id, and which way it went.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) lane: Lane,
    pub(super) id: Raw<'a>,
    pub(super) agent: usize,
}

impl Requests {
    /// Writes what is asked; `ask` is of the agent that it is asked for.
    pub(super) fn ask(
        &mut self,
        agent: &mut Agent,
        ask: Ask<'_>,
        request: Raw<'_>,
        emit: &mut Emit<'_>,
    ) -> Read {
        let asked = request.and_then(object::<Request<'_>>).unwrap_or_default();
        let (Some(id), Some(subtype)) = (ask.id.string(), asked.subtype.text()) else {
            emit.unknown(&agent.run, "control_request", None);
            emit.entry(&agent.run, EntryType::Unknown, None);
            return Read::Unknown("control_request".to_owned());
        };
        let call = asked.tool_use_id.string().filter(|_| subtype == "can_use_tool");
        if subtype == "can_use_tool" {
            if let Some(call) = &call {
                agent.asked.insert(call.to_text().into_owned());
                synthesise(agent, call, &asked, emit);
            }
            emit.ask(&agent.run, &id, call.as_ref());
            emit.entry(&agent.run, EntryType::SystemEvent, Some("approval_requested"));
        } else {
            emit.system(&agent.run, &subtype, request.json());
            emit.entry(&agent.run, EntryType::SystemEvent, Some(&subtype));
        }
        let asked = Asked { subtype: subtype.into_owned(), agent: ask.agent, call };
        self.0.insert((ask.lane, id.to_text().into_owned()), asked);
        Read::Understood
    }

    /// Writes an answer, the first time that it comes: Claude Code prints those that it was sent.
    pub(super) fn answer(
        &mut self,
        agents: &[Agent],
        lane: Lane,
        response: Response<'_>,
        emit: &mut Emit<'_>,
    ) -> Read {
        let Some((id, by, asked)) = self.take(lane, response.request_id) else { return Read::Bookkeeping };
        let run = &agents[asked.agent].run;
        if asked.subtype == "can_use_tool" {
            let verdict = response.body.and_then(object::<Verdict<'_>>).unwrap_or_default();
            emit.decide(run, &id, asked.call.as_ref(), &verdict_of(&verdict, &response));
            emit.entry(run, EntryType::SystemEvent, Some("approval_resolved"));
        } else if let Some(error) = response.error.text() {
            emit.error(run, &asked.subtype, &error);
            emit.entry(run, EntryType::Error, None);
        } else if by == Lane::FromAgent {
            let name = format!("{}_response", asked.subtype);
            emit.system(run, &name, response.body.json());
            emit.entry(run, EntryType::SystemEvent, Some(&name));
        } else {
            return Read::Bookkeeping;
        }
        Read::Understood
    }

    /// Writes that an answer is no longer wanted.
    pub(super) fn cancel(&mut self, agents: &[Agent], lane: Lane, id: Raw<'_>, emit: &mut Emit<'_>) -> Read {
        let asked = id.text().and_then(|key| self.0.remove(&(lane, key.into_owned())));
        let (Some(asked), Some(id)) = (asked, id.string()) else { return Read::Bookkeeping };
        let run = &agents[asked.agent].run;
        if asked.subtype == "can_use_tool" {
            let what = Decision { verdict: "cancelled", by: "agent", scope: None, raw: None };
            emit.decide(run, &id, asked.call.as_ref(), &what);
        } else {
            emit.system(run, "control_cancel_request", Some(id.to_json()));
        }
        emit.entry(run, EntryType::SystemEvent, Some("control_cancel_request"));
        Read::Understood
    }

    /// Takes out the request that an answer is for, with who asked: the other side, or the agent itself when the answer
    /// that it was sent is only printed.
    fn take(&mut self, lane: Lane, id: Raw<'_>) -> Option<(JsonString, Lane, Asked)> {
        let (id, key) = (id.string()?, id.text()?);
        let other = match lane {
            Lane::FromAgent => Lane::ToAgent,
            Lane::ToAgent => Lane::FromAgent,
        };
        let mut take = |by| self.0.remove(&(by, key.clone().into_owned())).map(|asked| (by, asked));
        let (by, asked) = take(other).or_else(|| take(Lane::FromAgent))?;
        Some((id, by, asked))
    }
}

/// The channel may ask about a call before it reports the call.
fn synthesise(agent: &mut Agent, call: &JsonString, asked: &Request<'_>, emit: &mut Emit<'_>) {
    if agent.run.calls.get(&call.to_text()).is_some() {
        return;
    }
    let name = asked.tool_name.string().unwrap_or_else(|| "".into());
    let class = class_of(&name.to_text());
    let input = asked.input.map_or_else(RawJson::null, RawJson::from_raw);
    let mut seen = CallSeen { keep_input: class == Class::Agent, ..CallSeen::new(name, class, input) };
    seen.extra.push("from_request", RawJson::from(true));
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
    let raw = verdict.behavior.json().or_else(|| response.error.json());
    Decision { verdict: decision, by: "host", scope: Some(scope), raw }
}
