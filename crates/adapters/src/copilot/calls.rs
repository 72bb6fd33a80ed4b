//! Writes calls and their results.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::agents::Agent;
use super::wire::{Data, Line, Part, ToolError, ToolResult};
use crate::adapter::RecordOutcome;
use crate::emit::{Answer, CallReport, Emit, Outcome, push, string};
use crate::patches;
use crate::repeats::{amendment, hash_of};
use crate::run::Class;
use crate::shapes::{is_absent, words};
use crate::wire::{Raw, RawField as _, list, object};

/// What is recorded about a call so far: a record that repeats it adds nothing.
#[derive(Default)]
pub(super) struct CallHistory {
    /// Name and input, as a hash.
    call: Option<u64>,
    /// Whether name and input come from another record than the model's response.
    is_inferred: bool,
    result: Option<u64>,
}

/// The record that a call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSource {
    /// A response of the model.
    Response,
    /// The start of the tool, which repeats the response.
    Start,
    /// A request for approval, which may come first.
    Request,
}

/// Makes a call from the fields of a record.
pub(super) fn report_of(name: Raw<'_>, arguments: Raw<'_>, mcp_server: Raw<'_>) -> CallReport {
    let name = words(name).unwrap_or_else(|| "".into());
    let class = if is_absent(mcp_server) { class_of(&name.to_text(), arguments) } else { Class::Mcp };
    let mut call = CallReport::new(name, class, arguments.json().unwrap_or_else(RawJson::null));
    if arguments.is_none() {
        call.extra.push("input_available", RawJson::from(false));
    }
    push(&mut call.extra, "mcp_server", mcp_server.json());
    call
}

/// Returns what a tool does, by its name.
fn class_of(name: &str, arguments: Raw<'_>) -> Class {
    /// The tool that views and changes files, in older versions.
    const EDITOR: &str = "str_replace_editor";
    let is_view = || arguments.is_some_and(|arguments| arguments.get().contains(r#""command":"view""#));
    match name {
        "bash" | "powershell" | "shell" | "local_shell" | "run_in_terminal" => Class::Command,
        _ if ["_bash", "_powershell", "_shell"].iter().any(|end| name.ends_with(end)) => Class::Command,
        "apply_patch" | "create" | "edit" | "insert" | "str_replace" | "write" => Class::FileChange,
        EDITOR if !is_view() => Class::FileChange,
        "task" => Class::Agent,
        _ => Class::Other,
    }
}

impl Agent {
    /// Writes a call, or what a later record adds to it; false if another call has its id.
    pub(super) fn call(
        &mut self,
        id: &JsonString,
        call: CallReport,
        source: CallSource,
        emit: &mut Emit<'_>,
    ) -> bool {
        let hash = hash_of(&(call.name.as_raw(), call.input.as_str()));
        let path = self.run.calls.get(&id.to_text()).map(|call| call.path.clone());
        let history = self.call_history(id);
        let Some(path) = path else {
            (history.call, history.is_inferred) = (Some(hash), source == CallSource::Request);
            emit.call(&mut self.run, id, call);
            return true;
        };
        let is_same = history.call == Some(hash);
        if source == CallSource::Request || is_same {
            return true;
        }
        // A response that uses an id again asks for another call.
        if source == CallSource::Response && history.call.is_some() && !history.is_inferred {
            return false;
        }
        (history.call, history.is_inferred) = (Some(hash), false);
        let result = RawJson::object(|object| {
            object.string("name", &call.name);
            object.json("input", &call.input);
        });
        emit.step_completed(&self.run, &path, amendment(id, result));
        true
    }

    /// Takes the start of a tool. Hooks may have changed the input since the response.
    pub(super) fn start_call(&mut self, kind: &str, data: &Data<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(id) = data.tool_call_id.string() else { return self.unknown(kind, emit) };
        let is_new = self.run.calls.get(&id.to_text()).is_none();
        if is_new {
            self.begin_work(data.interaction_id, emit);
        } else if self.repeats_call(&id, data) {
            emit.entry(&self.run, EntryType::SystemEvent, Some(kind));
            return RecordOutcome::Understood;
        }
        // A start without arguments adds nothing to what the response asked for.
        if is_new || data.arguments.is_some() {
            let mut call = report_of(data.tool_name, data.arguments, data.mcp_server);
            if kind == "tool.user_requested" {
                call.extra.push("initiator", string("user"));
            }
            self.call(&id, call, CallSource::Start, emit);
        }
        let entry = if is_new { EntryType::ToolUse } else { EntryType::SystemEvent };
        emit.entry(&self.run, entry, (!is_new).then_some(kind));
        RecordOutcome::Understood
    }

    /// Tells whether a start only repeats what is known about its call, which is the usual case.
    fn repeats_call(&mut self, id: &JsonString, data: &Data<'_>) -> bool {
        let hash =
            data.tool_name.zip(data.arguments).map(|(name, input)| hash_of(&(name.get(), input.get())));
        hash.is_some() && self.call_history(id).call == hash
    }

    /// Writes the result of a call; a second one amends the first.
    pub(super) fn result(&mut self, line: &Line<'_>, data: &Data<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        const KIND: &str = "tool.execution_complete";
        let Some(id) = data.tool_call_id.string() else { return self.unknown(KIND, emit) };
        let result = data.result.and_then(object::<ToolResult<'_>>);
        let error = data.error.and_then(object::<ToolError<'_>>);
        let output = if emit.wants_whole() { output_of(data, result, error) } else { string("") };
        let mut answer = Answer::new(output, outcome(data, error));
        answer.error = error_text(data, error).filter(|_| answer.outcome != Outcome::Ok);
        answer.exit_code = exit_code(data.shell, result);
        push(&mut answer.extra, "id", line.id.json());
        push(&mut answer.extra, "error_code", error.and_then(|error| error.code.json()));
        push(&mut answer.extra, "pictures", result.and_then(pictures));
        if answer.outcome == Outcome::Ok && emit.wants_whole() && self.is_edit(&id) {
            push(
                &mut answer.extra,
                patches::FIELD,
                patches::unified(result.and_then(|result| result.detailed)),
            );
        }
        push(&mut answer.extra, "accepted_by", self.approvals.accepted_by(&id.to_text()));
        let fields =
            [data.success, data.result, data.error, data.shell].map(|field| field.map(RawValue::get));
        let hash = hash_of(&fields);
        if self.call_history(&id).result.replace(hash) != Some(hash) {
            self.write_result(&id, data.tool_name, answer, emit);
        }
        let is_read = is_absent(data.result) || result.is_some() || is_text_result(data.result);
        let is_told = data.success.is_some() || error.is_some() || result.is_some();
        if is_read && is_told { RecordOutcome::Understood } else { self.unknown(KIND, emit) }
    }

    fn is_edit(&self, id: &JsonString) -> bool {
        self.run.calls.get(&id.to_text()).is_some_and(|call| call.class == Class::FileChange)
    }

    fn write_result(&mut self, id: &JsonString, name: Raw<'_>, answer: Answer, emit: &mut Emit<'_>) {
        let known = self.run.calls.get(&id.to_text());
        match known.filter(|call| call.is_answered).map(|call| call.path.clone()) {
            Some(path) => emit.step_completed(&self.run, &path, amend(id, answer)),
            None => emit.result(&mut self.run, id, &name.text().unwrap_or_default(), answer),
        }
        emit.entry(&self.run, EntryType::ToolResult, None);
    }
}

/// Returns what the model got: the tool's output, else the error.
fn output_of(data: &Data<'_>, result: Option<ToolResult<'_>>, error: Option<ToolError<'_>>) -> RawJson {
    let output = result.and_then(|result| result.content.json().or_else(|| result.contents.json()));
    let output = output.or_else(|| data.result.json().filter(|_| result.is_none()));
    let failed = || error.and_then(|error| error.message.json()).or_else(|| data.error.json());
    output.or_else(failed).unwrap_or_else(RawJson::null)
}

fn is_text_result(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| raw.get().starts_with('"'))
}

/// A command that ends with another code than 0 is a success for Copilot, and stays one.
fn outcome(data: &Data<'_>, error: Option<ToolError<'_>>) -> Outcome {
    let code = error.and_then(|error| error.code.text());
    match code.as_deref() {
        Some("denied" | "rejected") => Outcome::Denied,
        Some("aborted" | "cancelled" | "canceled" | "interrupted") => Outcome::Interrupted,
        Some(_) | None if data.success.is_true() => Outcome::Ok,
        Some(_) => Outcome::Failed,
        None if data.success.is_some_and(|flag| flag.get() == "false") => Outcome::Failed,
        None if !is_absent(data.error) => Outcome::Failed,
        None => Outcome::Unknown,
    }
}

fn error_text(data: &Data<'_>, error: Option<ToolError<'_>>) -> Option<JsonString> {
    let message = error.and_then(|error| words(error.message));
    message.or_else(|| words(data.error)).or_else(|| Some("the tool reported an error".into()))
}

/// Returns the exit code, if a field has it; older versions have it only in the text.
fn exit_code(shell: Raw<'_>, result: Option<ToolResult<'_>>) -> Option<i64> {
    let of_shell = shell.and_then(object::<Part<'_>>).and_then(|shell| shell.exit_code.number());
    let parts = result.and_then(|result| result.contents).and_then(list::<Part<'_>>).unwrap_or_default();
    let mut of_parts = parts
        .into_iter()
        .flatten()
        .filter(|part| ["terminal", "shell_exit"].iter().any(|kind| part.kind.is(kind)));
    of_shell.or_else(|| of_parts.find_map(|part| part.exit_code.number()))
}

/// Returns how many pictures and other files the model got besides the text.
fn pictures(result: ToolResult<'_>) -> Option<RawJson> {
    let files = result.binary.and_then(list::<Part<'_>>).filter(|files| !files.is_empty());
    files.map(|files| RawJson::from(files.len() as u64))
}

/// Makes an amendment for an answered call.
fn amend(id: &JsonString, answer: Answer) -> StepPayload {
    let result = RawJson::object(|object| {
        object.json("output", &answer.output);
        object.word("outcome", answer.outcome.as_str());
        object.optional("error", answer.error.as_ref(), ObjectWriter::string);
        object.optional("exit_code", answer.exit_code.map(RawJson::from).as_ref(), ObjectWriter::json);
        for (name, value) in answer.extra.into_pairs() {
            object.json(&name.to_text(), &value);
        }
    });
    amendment(id, result)
}
