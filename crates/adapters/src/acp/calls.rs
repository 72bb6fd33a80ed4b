//! Calls: announced by an update or by a request for permission, completed by a later update.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity};

use super::content::{of_call, texts};
use super::session::Session;
use super::wire::{OutputPart, RawOutput, Update};
use crate::emit::{Answer, CallReport, Emit, Outcome, push};
use crate::repeats::amendment;
use crate::run::Class;
use crate::wire::{Raw, RawField as _, list, object};

/// What updates have said about a call. A field that an update lacks is unchanged.
#[derive(Default)]
pub(super) struct CallState {
    content: Vec<RawJson>,
    raw_output: Option<RawJson>,
    has_input: bool,
}

impl CallState {
    fn merge(&mut self, update: &Update<'_>) {
        if let Some(content) = update.content.and_then(of_call) {
            self.content = content;
        }
        self.raw_output = update.raw_output.json().or(self.raw_output.take());
    }
}

impl Session {
    /// Takes an update of a call, or its first appearance; false if it cannot be read.
    pub(super) fn call(&mut self, update: &Update<'_>, detail: &str, emit: &mut Emit<'_>) -> bool {
        let Some(id) = update.call.string() else { return false };
        self.flush(emit);
        let is_new = self.announce(&id, update, emit);
        if is_new {
            emit.entry_with(&self.run, EntryType::ToolUse, None, detail);
        }
        let state = self.calls.entry(id.to_text().into_owned()).or_default();
        state.merge(update);
        let outcome = match update.status.text().as_deref() {
            Some("completed") => Outcome::Ok,
            Some("failed") if self.declined.contains(&*id.to_text()) => Outcome::Denied,
            Some("failed") => Outcome::Failed,
            Some("cancelled") => Outcome::Interrupted,
            Some("pending" | "in_progress") | None => {
                if !is_new {
                    emit.entry_with(&self.run, EntryType::SystemEvent, Some("tool_call_update"), detail);
                }
                return true;
            }
            Some(_) => return false,
        };
        self.answer(&id, outcome, emit);
        emit.entry_with(&self.run, EntryType::ToolResult, None, detail);
        true
    }

    /// Writes a call when it first appears, or the input that it did not have then. Returns whether it is new.
    pub(super) fn announce(&mut self, id: &JsonString, update: &Update<'_>, emit: &mut Emit<'_>) -> bool {
        let input = update.raw_input.json().filter(|input| input.as_str() != "{}");
        let key = id.to_text().into_owned();
        if let Some(call) = self.run.calls.get(&key) {
            let path = call.path.clone();
            let state = self.calls.entry(key).or_default();
            if let Some(input) = input.filter(|_| !state.has_input) {
                state.has_input = true;
                let facts = RawJson::object(|object| object.json("input", &input));
                emit.step_completed(&self.run, &path, amendment(id, facts));
            }
            return false;
        }
        self.calls.entry(key).or_default().has_input = input.is_some();
        let report = report_of(update);
        let block = BlockContent::ToolUse {
            tool_name: Some(report.name.clone()),
            tool_id: Some(id.clone()),
            tool_input: Some(report.input.clone()),
        };
        let block = ContentBlock::new(Fidelity::AgentEmitted, block);
        emit.assistant(&self.run, vec![block], steno_model::json::Extra::default());
        emit.call(&mut self.run, id, report);
        true
    }

    /// Adds a part of a call's content.
    pub(super) fn add_content(&mut self, update: &Update<'_>) -> bool {
        let Some((id, content)) = update.call.text().zip(update.content) else { return false };
        let list = RawValue::from_string(format!("[{}]", content.get())).ok();
        let content = list.and_then(|list| of_call(&list)).unwrap_or_default();
        self.calls.entry(id.into_owned()).or_default().content.extend(content);
        true
    }

    fn answer(&mut self, id: &JsonString, outcome: Outcome, emit: &mut Emit<'_>) {
        let key = id.to_text();
        if self.run.calls.get(&key).is_some_and(|call| call.is_answered) {
            return;
        }
        let state = self.calls.remove(&*key).unwrap_or_default();
        let texts = texts(&state.content);
        let output = if state.content.is_empty() {
            state.raw_output.clone().unwrap_or_else(RawJson::null)
        } else {
            RawJson::object(|object| object.json("content", &RawJson::array(state.content)))
        };
        let mut answer = Answer::new(output, outcome);
        let raw: Option<&RawValue> =
            state.raw_output.as_ref().and_then(|raw| serde_json::from_str(raw.as_str()).ok());
        let raw = raw.and_then(object::<RawOutput<'_>>).unwrap_or_default();
        answer.exit_code = exit_code(raw.contents);
        answer.error = match outcome {
            Outcome::Ok | Outcome::Unknown => None,
            Outcome::Interrupted => Some("interrupted".into()),
            Outcome::Failed | Outcome::Denied => {
                Some(raw.message.string().or(texts).unwrap_or_else(|| "the tool reported an error".into()))
            }
        };
        emit.result(&mut self.run, id, "", answer);
        // Later updates may name it again.
        self.calls.insert(key.into_owned(), CallState { has_input: true, ..CallState::default() });
    }
}

/// Returns the exit code of a command, where the agent gives it as a number.
fn exit_code(contents: Raw<'_>) -> Option<i64> {
    list::<OutputPart<'_>>(contents?)?.into_iter().flatten().find_map(|part| part.exit_code.number())
}

/// Makes a call. The protocol has no names of tools before version 2: the kind stands for the name. Without the input, its
/// title and the files that it is about stand for it.
fn report_of(update: &Update<'_>) -> CallReport {
    let kind = update.tool_kind.text().unwrap_or("other".into());
    let name = update.name.string().unwrap_or_else(|| kind.as_ref().into());
    let class = match &*kind {
        _ if update.name.text().is_some_and(|name| name.starts_with("mcp__")) => Class::Mcp,
        "execute" => Class::Command,
        "edit" | "delete" | "move" => Class::FileChange,
        _ => Class::Other,
    };
    let input = update.raw_input.json().unwrap_or_else(|| {
        RawJson::object(|object| {
            object.optional("title", update.title.json().as_ref(), ObjectWriter::json);
            let locations = update.locations.json().filter(|locations| locations.as_str() != "[]");
            object.optional("locations", locations.as_ref(), ObjectWriter::json);
        })
    });
    let mut report = CallReport::new(name, class, input);
    push(&mut report.extra, "title", update.title.json());
    report
}
