//! Calls: one record has the call and its result.

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity, StepPayload};

use super::PROVIDER;
use super::wire::{InvalidInput, Part, TaskInput, ToolState};
use crate::emit::{Answer, CallReport, Emit, Outcome, SubagentEvent, push, string};
use crate::run::{Class, Run, run_id_of};
use crate::wire::{RawField as _, object};

/// The tool that `OpenCode` puts in place of one that does not exist.
const INVALID: &str = "invalid";

/// The first words of errors of calls that the user or a rule refused.
const DENIALS: [&str; 2] = [
    "The user rejected permission to use this specific tool call",
    "The user has specified a rule which prevents you from using this specific tool call",
];

/// The error of a call that was stopped.
const ABORTED: &str = "Tool execution aborted";

/// Takes a call with its result; false if something about it is unknown, or it was written before.
pub(super) fn call(run: &mut Run, part: &Part<'_>, response: Option<RawJson>, emit: &mut Emit<'_>) -> bool {
    let Some((id, name)) = part.call.string().zip(part.tool.string()) else { return false };
    let state = part.state.unwrap_or_default();
    match run.calls.get(&id.to_text()).map(|call| call.is_answered) {
        Some(true) => return false,
        Some(false) => {}
        None => {
            let input = state.input.json().unwrap_or_else(RawJson::null);
            let block = BlockContent::ToolUse {
                tool_name: Some(name.clone()),
                tool_id: Some(id.clone()),
                tool_input: Some(input.clone()),
            };
            let mut extra = Extra::default();
            push(&mut extra, "response", response);
            emit.assistant(run, vec![ContentBlock::new(Fidelity::AgentEmitted, block)], extra);
            let mut report = CallReport::new(name.clone(), class_of(&name.to_text()), input);
            push(&mut report.extra, "time", state.time.json());
            emit.call(run, &id, report);
            emit.entry(run, EntryType::ToolUse, None);
        }
    }
    // No known version prints a call that has not ended.
    let status = state.status.text().unwrap_or_default();
    if matches!(&*status, "" | "pending" | "running") {
        return false;
    }
    let answer = answer_of(&name.to_text(), &state);
    let outcome = answer.outcome;
    subagent(run, &id, &state, outcome, emit);
    emit.result(run, &id, "", answer);
    emit.entry(run, EntryType::ToolResult, None);
    outcome != Outcome::Unknown
}

/// Judges a tool by its name. The name of an MCP server's tool begins with the server's name, without a mark, and a
/// server may have any name. So these tools cannot be recognised.
fn class_of(tool: &str) -> Class {
    match tool {
        "bash" => Class::Command,
        "write" | "edit" | "multiedit" | "patch" | "apply_patch" => Class::FileChange,
        "task" => Class::Agent,
        _ => Class::Other,
    }
}

fn answer_of(tool: &str, state: &ToolState<'_>) -> Answer {
    let metadata = state.metadata.unwrap_or_default();
    let exit_code = metadata.exit.number();
    let error = if tool == INVALID {
        state.input.and_then(object::<InvalidInput<'_>>).and_then(|input| input.error.string())
    } else {
        state.error.string()
    };
    let text = error.as_ref().map(JsonString::to_text).unwrap_or_default();
    let outcome = match state.status.text().as_deref() {
        // A command that failed has ended all the same.
        Some("completed") if tool == INVALID || exit_code.is_some_and(|code| code != 0) => Outcome::Failed,
        Some("completed") => Outcome::Ok,
        Some("error") if DENIALS.iter().any(|denial| text.starts_with(denial)) => Outcome::Denied,
        Some("error") if metadata.is_interrupted.is_true() || text == ABORTED => Outcome::Interrupted,
        Some("error") => Outcome::Failed,
        Some(_) | None => Outcome::Unknown,
    };
    let mut answer = Answer::new(state.output.json().unwrap_or_else(RawJson::null), outcome);
    answer.error.clone_from(&error);
    answer.exit_code = exit_code;
    push(&mut answer.extra, "attachments", state.attachments.json());
    answer
}

/// Writes that a call began a subagent, and how it ended. The subagent is a session, whose records are not printed.
fn subagent(run: &Run, call: &JsonString, state: &ToolState<'_>, outcome: Outcome, emit: &mut Emit<'_>) {
    let Some(session) = state.metadata.and_then(|metadata| metadata.session.text()) else { return };
    let input = state.input.and_then(object::<TaskInput<'_>>).unwrap_or_default();
    let child = run_id_of(PROVIDER, &session);
    let step = || {
        let name = input.agent.string().unwrap_or_else(|| "subagent".into());
        let mut payload = StepPayload::new(name, "subagent");
        payload.extra.push("tool_call_id", call.to_json());
        payload.extra.push("agent_id", string(&session));
        push(&mut payload.extra, "description", input.description.json());
        payload
    };
    emit.subagent(run, SubagentEvent::Started, child, step());
    let mut end = step();
    let status = if outcome == Outcome::Ok { "completed" } else { outcome.as_str() };
    end.error = (outcome != Outcome::Ok).then(|| state.error.string().unwrap_or_else(|| status.into()));
    end.result = Some(RawJson::object(|object| object.word("status", status)));
    emit.subagent(run, SubagentEvent::Completed, child, end);
}
