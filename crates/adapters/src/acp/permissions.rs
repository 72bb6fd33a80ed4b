//! Requests for permission, and the user's choice.

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::JsonString;

use super::session::Session;
use super::wire::{Choice, Params, PermissionOption};
use crate::emit::{Decision, Emit};
use crate::rpc::RpcMessage;
use crate::wire::{RawField as _, list};

/// A request without an answer.
pub(super) struct OpenPermission {
    name: JsonString,
    call: Option<JsonString>,
    /// The options: their ids and kinds.
    options: Vec<(String, String)>,
}

impl Session {
    /// Writes a request for permission, after its call if that was not announced; false if it cannot be read.
    pub(super) fn ask(
        &mut self,
        id: &RawValue,
        params: &Params<'_>,
        detail: &str,
        emit: &mut Emit<'_>,
    ) -> (OpenPermission, bool) {
        self.flush(emit);
        let update = params.tool_call.unwrap_or_default();
        let call = update.call.string();
        let is_new = call.as_ref().is_some_and(|call| self.announce(call, &update, emit));
        if is_new {
            emit.entry_with(&self.run, EntryType::ToolUse, None, detail);
        }
        let name = Some(id).string().unwrap_or_else(|| id.get().into());
        emit.ask(&self.run, &name, call.as_ref());
        emit.entry_with(&self.run, EntryType::SystemEvent, Some("approval_requested"), detail);
        let options = params.options.and_then(list::<PermissionOption<'_>>).unwrap_or_default();
        let options = options
            .into_iter()
            .flatten()
            .filter_map(|option| Some((option.id.text()?.into_owned(), option.kind.text()?.into_owned())));
        let options = options.collect();
        let is_read = call.is_some();
        (OpenPermission { name, call, options }, is_read)
    }

    /// Writes the answer to a request for permission.
    pub(super) fn decide(
        &mut self,
        asked: &OpenPermission,
        choice: &Choice<'_>,
        message: &RpcMessage<'_>,
        emit: &mut Emit<'_>,
    ) {
        self.flush(emit);
        let option = choice.option.text();
        let chosen = asked.options.iter().find(|(id, _)| option.as_deref() == Some(id));
        let kind = chosen.map(|(_, kind)| kind.as_str());
        let outcome = choice.outcome.text();
        let (verdict, scope) = match (kind, outcome.as_deref()) {
            (Some("allow_once"), _) => ("allowed", Some("once")),
            (Some("allow_always"), _) => ("allowed", Some("always")),
            (Some("reject_once"), _) => ("denied", Some("once")),
            (Some("reject_always"), _) => ("denied", Some("always")),
            (_, Some("cancelled")) => ("cancelled", None),
            (Some(other), _) => (other, None),
            (None, _) if message.error.is_some() => ("failed", None),
            (None, outcome) => (outcome.unwrap_or("unknown"), None),
        };
        if let Some(call) = asked.call.as_ref().filter(|_| verdict != "allowed") {
            self.declined.insert(call.to_text().into_owned());
        }
        let raw = choice.option.json().or_else(|| message.content().json());
        let what = Decision { verdict, by: "host", scope, raw };
        emit.decide(&self.run, &asked.name, asked.call.as_ref(), &what);
        let detail = message.content().map_or("null", RawValue::get);
        emit.entry_with(&self.run, EntryType::SystemEvent, Some("approval_resolved"), detail);
    }
}
