//! Approvals: requests for permission, and what was decided.

use std::collections::HashMap;

use steno_model::EntryType;
use steno_model::json::{Fields, JsonString, RawJson};

use super::agents::Agent;
use super::calls::{CallSource, report_of};
use super::wire::{Data, PermissionRequest, PermissionResult};
use crate::adapter::RecordOutcome;
use crate::emit::{Decision, Emit, string};
use crate::shapes::is_absent;
use crate::wire::{Raw, RawField as _, object};

/// The requests of an agent, by id.
#[derive(Default)]
pub(super) struct Approvals {
    requests: HashMap<String, Request>,
    /// What accepted a call for which nobody was asked, by call.
    accepted: HashMap<String, String>,
}

struct Request {
    call: Option<JsonString>,
    /// Whether a hook had decided already, so that nobody was asked.
    is_by_hook: bool,
    is_answered: bool,
}

impl Approvals {
    /// Returns what accepted a call for which nobody was asked.
    pub(super) fn accepted_by(&self, call: &str) -> Option<RawJson> {
        self.accepted.get(call).map(|by| string(by))
    }
}

impl Agent {
    /// Takes a request for permission. The call is made from it if the response has not come yet.
    pub(super) fn ask(&mut self, data: &Data<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        const KIND: &str = "permission.requested";
        let Some(id) = data.request_id.string() else { return self.unknown(KIND, emit) };
        let asked = data.permission.and_then(object::<PermissionRequest<'_>>).unwrap_or_default();
        let call = asked.tool_call_id.string().or_else(|| data.tool_call_id.string());
        let is_by_hook = data.is_by_hook.is_true();
        let request = Request { call: call.clone(), is_by_hook, is_answered: false };
        let is_repeated = self.approvals.requests.contains_key(&*id.to_text());
        if !is_repeated {
            self.approvals.requests.insert(id.to_text().into_owned(), request);
            self.call_of_request(call.as_ref(), asked, data.permission, emit);
        }
        if !is_repeated && !is_by_hook {
            emit.ask(&self.run, &id, call.as_ref());
        }
        if !is_repeated && !is_by_hook && call.is_none() {
            // Nothing else says what is to be allowed.
            emit.system(&self.run, KIND, data.permission.json());
        }
        emit.entry(&self.run, EntryType::SystemEvent, Some("approval_requested"));
        RecordOutcome::Understood
    }

    /// Makes the call from the request if it was not seen.
    fn call_of_request(
        &mut self,
        call: Option<&JsonString>,
        asked: PermissionRequest<'_>,
        request: Raw<'_>,
        emit: &mut Emit<'_>,
    ) {
        if let Some(call) = call.filter(|call| self.run.calls.get(&call.to_text()).is_none()) {
            let name = if is_absent(asked.tool_name) { asked.kind } else { asked.tool_name };
            let input = if is_absent(asked.arguments) { request } else { asked.arguments };
            self.call(call, report_of(name, input, None), CallSource::Request, emit);
        }
    }

    /// Takes the decision; only the first to a request counts.
    pub(super) fn decide(&mut self, data: &Data<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        const KIND: &str = "permission.completed";
        let Some(id) = data.request_id.string() else { return self.unknown(KIND, emit) };
        let kind =
            data.result.and_then(object::<PermissionResult<'_>>).and_then(|result| result.kind.string());
        let kind = kind.or_else(|| data.result.string());
        let (Some(kind), Some(request)) = (kind, self.approvals.requests.get_mut(&*id.to_text())) else {
            return self.unknown(KIND, emit);
        };
        let call = request.call.clone().or_else(|| data.tool_call_id.string());
        let is_told = std::mem::replace(&mut request.is_answered, true);
        let is_by_hook = request.is_by_hook;
        let word = kind.to_text();
        match (&call, verdict(&word)) {
            _ if is_told => {}
            (Some(call), "allowed") if is_by_hook => {
                self.approvals.accepted.insert(call.to_text().into_owned(), "hook".to_owned());
            }
            _ if is_by_hook => {}
            (call, verdict) => {
                let by = decider(data.decided_by, &word);
                let raw = raw_result(data.result, &kind);
                let what = Decision { verdict, by, scope: scope(&word), raw: Some(raw) };
                emit.decide(&self.run, &id, call.as_ref(), &what);
            }
        }
        emit.entry(&self.run, EntryType::SystemEvent, Some("approval_resolved"));
        RecordOutcome::Understood
    }
}

fn verdict(kind: &str) -> &str {
    match kind {
        _ if kind.starts_with("approve") || kind == "allowed" => "allowed",
        _ if kind.starts_with("denied") || kind.starts_with("reject") => "denied",
        _ => kind,
    }
}

/// Returns who decided, from a field or else from the result.
fn decider(source: Raw<'_>, kind: &str) -> &'static str {
    match source.text().as_deref() {
        Some("human_response") => return "user",
        Some("host_policy") => return "policy",
        Some("assisted_approval") => return "model",
        Some("authorization_carry_forward") => return "earlier approval",
        Some("unattended_fallback") => return "host",
        Some(_) | None => {}
    }
    match kind {
        "denied-interactively-by-user" => "user",
        "denied-by-rules" => "rules",
        "denied-by-content-exclusion-policy" => "policy",
        "denied-by-permission-request-hook" => "hook",
        _ => "host",
    }
}

/// Returns for how long a decision holds.
fn scope(kind: &str) -> Option<&'static str> {
    match kind {
        "approved-for-session" | "approved-read-only-for-session" => Some("session"),
        "approved-for-location" => Some("location"),
        "cancelled" => None,
        _ => Some("once"),
    }
}

/// Returns the kind of the result, or the whole result if it has more, such as the user's words or a rule.
fn raw_result(result: Raw<'_>, kind: &JsonString) -> RawJson {
    let fields = result.and_then(|result| Fields::parse(result.get()).ok());
    let says_more = fields.is_some_and(|fields| fields.iter().count() > 1);
    result.json().filter(|_| says_more).unwrap_or_else(|| kind.to_json())
}
