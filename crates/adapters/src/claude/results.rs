//! Writes results of calls: outcome, approval, and subagents.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::agents::{Agent, SubagentEnd, SubagentStart};
use super::content::text_of;
use super::wire::{Block, EditReport, Permission, Task, ToolReport};
use crate::emit::{Answer, CallReport, Decision, Emit, Outcome, push, string};
use crate::patches;
use crate::repeats::{amendment, hash_of};
use crate::run::{Call, Class};
use crate::wire::{Raw, RawField as _, WireObject as _, object};

/// The beginning of a result whose output is in a separate file.
const PERSISTED: &str = "\"<persisted-output>";

/// The beginning of a result whose subagent continues in the background.
const LAUNCHED: &str = "Async agent launched";

/// The fields next to a result in its record.
#[derive(Clone, Copy, Default)]
pub(super) struct ResultContext<'a> {
    pub(super) uuid: Raw<'a>,
    /// The tool's own report.
    pub(super) report: Raw<'a>,
    pub(super) permission: Option<Permission<'a>>,
    /// Why the call was not made.
    pub(super) denial_kind: Raw<'a>,
    /// Whether the host was asked to allow the call, and refused.
    pub(super) is_refused: bool,
}

/// The outcome of writing a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultOutcome {
    /// It was written, as the call's result or as an amendment.
    News,
    /// It repeats the call's result.
    Again,
    /// Something in it is of an unknown kind.
    Odd,
}

/// Writes a result, after the approval if one is recorded, and the end of the subagent if the call began one.
pub(super) fn result(
    agent: &mut Agent,
    block: &Block<'_>,
    origin: ResultContext<'_>,
    emit: &mut Emit<'_>,
) -> ResultOutcome {
    let Some(id) = &block.tool_use_id.string() else { return ResultOutcome::Odd };
    call_unseen(agent, id, emit);
    approval(agent, id, origin, emit);
    let is_telling = agent.run.calls.get(&id.to_text()).is_some_and(is_telling);
    let report = origin.report.filter(|_| is_telling).and_then(object::<ToolReport<'_>>);
    let changed = edit_of(agent, &id.to_text(), origin.report);
    let failed = block.is_error.is_true();
    let raw_output = block.content.map_or("\"\"", RawValue::get);
    let is_elsewhere = raw_output.starts_with(PERSISTED);
    let output = match block.content {
        Some(content) if emit.wants_whole() => RawJson::from_raw(content),
        Some(_) | None => string(""),
    };
    let mut answer = Answer::new(output, outcome(origin, report.unwrap_or_default(), failed));
    subagent_of(agent, &id.to_text(), (report, &answer), emit);
    answer.error = failed.then(|| reason(block));
    push(&mut answer.extra, "accepted_by", accepted_by(origin));
    push(&mut answer.extra, "denied_by", denied_by(origin));
    push(&mut answer.extra, "denial_kind", denial_kind(origin));
    push(&mut answer.extra, "id", origin.uuid.json());
    push(&mut answer.extra, "truncated", is_elsewhere.then(|| RawJson::from(true)));
    if answer.outcome == Outcome::Ok && emit.wants_whole() {
        push(&mut answer.extra, patches::FIELD, changed.and_then(|edit| patches::of_hunks(edit.hunks)));
    }
    agent.call_history(id).outcome = Some(answer.outcome);
    let hash = hash_of(&(raw_output, answer.outcome.as_str()));
    let is_same = agent.call_history(id).result.replace(hash) == Some(hash);
    if !is_same {
        write(agent, id, answer, emit);
    }
    match () {
        () if block.is_odd() || report.is_some_and(|report| report.is_odd()) => ResultOutcome::Odd,
        () if changed.is_some_and(|edit| edit.is_odd()) => ResultOutcome::Odd,
        () if is_same => ResultOutcome::Again,
        () => ResultOutcome::News,
    }
}

/// Reads the report of an edit, which often has the whole file too.
fn edit_of<'a>(agent: &Agent, call: &str, report: Raw<'a>) -> Option<EditReport<'a>> {
    let is_edit = agent.run.calls.get(call).is_some_and(|call| call.class == Class::FileChange);
    report.filter(|_| is_edit).and_then(object)
}

fn write(agent: &mut Agent, id: &JsonString, answer: Answer, emit: &mut Emit<'_>) {
    match agent.run.calls.get(&id.to_text()).filter(|call| call.is_answered).map(|call| call.path.clone()) {
        Some(path) => emit.step_completed(&agent.run, &path, amend(id, answer)),
        None => emit.result(&mut agent.run, id, "", answer),
    }
    emit.entry(&agent.run, EntryType::ToolResult, None);
}

/// Writes the call of a result if it was not seen.
fn call_unseen(agent: &mut Agent, id: &JsonString, emit: &mut Emit<'_>) {
    if agent.run.calls.get(&id.to_text()).is_none() {
        let mut call = CallReport::new("".into(), Class::Other, RawJson::null());
        call.extra.push("input_available", RawJson::from(false));
        emit.call(&mut agent.run, id, call);
    }
}

/// Writes that a call was refused, if its result says only that it failed. The end of a stream's turn lists such calls.
pub(super) fn denied(agent: &mut Agent, id: &JsonString, emit: &mut Emit<'_>) {
    let Some(path) = agent.run.calls.get(&id.to_text()).map(|call| call.path.clone()) else { return };
    let outcome = &mut agent.call_history(id).outcome;
    if *outcome == Some(Outcome::Failed) {
        *outcome = Some(Outcome::Denied);
        let result = RawJson::object(|object| object.word("outcome", Outcome::Denied.as_str()));
        emit.step_completed(&agent.run, &path, amendment(id, result));
    }
}

/// Makes an amendment for an answered call, which replaces the first result in views.
fn amend(id: &JsonString, answer: Answer) -> StepPayload {
    let result = RawJson::object(|object| {
        object.json("output", &answer.output);
        object.word("outcome", answer.outcome.as_str());
        object.optional("error", answer.error.as_ref(), ObjectWriter::string);
        for (name, value) in answer.extra.into_pairs() {
            object.json(&name.to_text(), &value);
        }
    });
    amendment(id, result)
}

/// Tells whether the report of such a call has more than its result; other reports contain whole files.
fn is_telling(call: &Call) -> bool {
    match call.class {
        Class::Command | Class::Agent => true,
        Class::FileChange | Class::Mcp => false,
        // A call that was not seen has no name.
        Class::Other => call.name.is_empty() || call.name.to_text().contains("Output"),
    }
}

fn outcome(origin: ResultContext<'_>, report: ToolReport<'_>, failed: bool) -> Outcome {
    let is_rejected = origin.permission.is_some_and(|permission| permission.decision.is("reject"));
    match origin.denial_kind.text().as_deref() {
        // A call that was stopped while it ran is recorded as rejected by the user.
        Some("user-rejected" | "cancelled") if !is_rejected => Outcome::Interrupted,
        Some(_) => Outcome::Denied,
        None if is_rejected => Outcome::Denied,
        None if report.interrupted.is_true() => Outcome::Interrupted,
        None if failed && (origin.is_refused || is_refusal(origin.report)) => Outcome::Denied,
        None if failed => Outcome::Failed,
        None => Outcome::Ok,
    }
}

/// The beginnings of reports that the user or a rule refused, and what else they contain.
const REFUSALS: [(&str, &str); 5] = [
    ("Error: The user doesn't want to proceed with this tool use.", ""),
    ("Error: Permission for this tool use was denied.", ""),
    ("Error: Permission to use ", "denied"),
    ("Error: Claude requested permissions to ", "but you haven't granted it yet."),
    ("Error: This command requires approval", ""),
];

/// Tells whether a report says that the user or a rule refused: before 2.1.3xx this is the only sign.
fn is_refusal(report: Raw<'_>) -> bool {
    let is_said =
        |text: &str| REFUSALS.iter().any(|(begins, has)| text.starts_with(begins) && text.contains(has));
    report.is("User rejected tool use") || report.text().is_some_and(|text| is_said(&text))
}

/// Returns the error text of a failed call if it is short; a long text is its output.
fn reason(block: &Block<'_>) -> JsonString {
    const REASON_BYTES_MAX: usize = 1024;
    let text = block.content.filter(|content| content.get().len() <= REASON_BYTES_MAX).map(text_of);
    text.filter(|text| !text.is_empty())
        .map_or_else(|| "the tool reported an error".into(), |text| (&*text).into())
}

/// Acceptance by configuration, or by anything but a person, is a field of the result and not an approval.
fn accepted_by(origin: ResultContext<'_>) -> Option<RawJson> {
    let permission = origin.permission.filter(|permission| permission.decision.is("accept"))?;
    permission.source.json().filter(|_| !is_by_user(permission))
}

/// Returns what has denied a call, if that was neither a person nor the configuration.
fn denied_by(origin: ResultContext<'_>) -> Option<RawJson> {
    let permission = origin.permission.filter(|permission| permission.decision.is("reject"))?;
    permission.source.json().filter(|_| !is_by_user(permission) && !permission.source.is("config"))
}

/// Returns why a call was not made, if the outcome does not show it.
fn denial_kind(origin: ResultContext<'_>) -> Option<RawJson> {
    let is_told = ["user-rejected", "permission-rule"].iter().any(|kind| origin.denial_kind.is(kind));
    origin.denial_kind.json().filter(|_| !is_told)
}

fn is_by_user(permission: Permission<'_>) -> bool {
    permission.source.text().is_some_and(|source| source.starts_with("user"))
}

/// Writes the request for approval and the decision, if the result records them.
fn approval(agent: &mut Agent, id: &JsonString, origin: ResultContext<'_>, emit: &mut Emit<'_>) {
    let Some(permission) = origin.permission else { return };
    if !is_by_user(permission) || !agent.asked.insert(id.to_text().into_owned()) {
        return;
    }
    let decision = if permission.decision.is("accept") { "allowed" } else { "denied" };
    let scope = permission.scope.text();
    emit.ask(&agent.run, id, Some(id));
    let what =
        Decision { verdict: decision, by: "user", scope: scope.as_deref(), raw: permission.source.json() };
    emit.decide(&agent.run, id, Some(id), &what);
}

/// Ties a subagent to its call when the call's result names it, and ends it unless it continues in the background.
fn subagent_of(
    agent: &mut Agent,
    call: &str,
    (report, answer): (Option<ToolReport<'_>>, &Answer),
    emit: &mut Emit<'_>,
) {
    let report = match report {
        Some(report) => report,
        // Then only the result has it.
        None if agent.run.calls.child(call).is_some() => ToolReport::default(),
        None => return,
    };
    if let Some(task) = report.task {
        asked_about(agent, task, emit);
    }
    if agent.run.calls.get(call).is_none_or(|call| call.class != Class::Agent) {
        return;
    }
    if let Some(id) = report.agent_id.text() {
        let child = agent.run.calls.child(call).unwrap_or_else(|| agent.child_id(&id));
        let agent_type = report.agent_type.string();
        agent
            .start_child(SubagentStart { call, child, agent: Some(&id), agent_type, matched_by: None }, emit);
    }
    let failure = (answer.outcome != Outcome::Ok).then(|| answer.outcome.as_str().into());
    let is_silent = report.status.json().is_none() && failure.is_none();
    let goes_on = report.is_async.is_true()
        || report.status.is("async_launched")
        || (is_silent && (agent.is_in_background(call) || is_launch(&answer.output)));
    if !goes_on {
        let status = report.status.string().or(failure);
        agent.end_child(call, SubagentEnd { status, more: Vec::new() }, emit);
    }
}

/// Tells whether a result only reports the start of a subagent.
fn is_launch(output: &RawJson) -> bool {
    output.read::<&RawValue>().is_ok_and(|content| text_of(content).starts_with(LAUNCHED))
}

/// Ends a background subagent when the result of a call about it says so.
fn asked_about(agent: &mut Agent, task: Task<'_>, emit: &mut Emit<'_>) {
    let is_over = task.status.text().is_some_and(|status| !matches!(&*status, "running" | "pending"));
    let call = task.id.text().and_then(|task| agent.call_of_task(&task));
    if let Some(call) = call.filter(|_| is_over) {
        agent.end_child(&call, SubagentEnd { status: task.status.string(), more: Vec::new() }, emit);
    }
}
