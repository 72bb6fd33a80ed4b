//! The `system` frames of a stream: beginnings of turns, retries, compaction, tasks, and plain facts.

use steno_model::EntryType;
use steno_model::json::{ObjectWriter, RawJson};

use super::agents::{SubagentEnd, SubagentStart};
use super::facts::{self, Retry};
use super::frames::StreamFrame;
use super::shapes::is_odd_frame;
use super::stream::Stream;
use crate::adapter::RecordOutcome;
use crate::emit::Emit;
use crate::wire::RawField as _;

/// Momentary states without lasting information.
const BOOKKEEPING: [&str; 6] = [
    "background_tasks_changed",
    "commands_changed",
    "control_request_progress",
    "hook_progress",
    "task_progress",
    "thinking_tokens",
];

/// Writes a `system` frame.
pub(super) fn system(stream: &mut Stream, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let subtype = frame.subtype.text().unwrap_or("system".into());
    if BOOKKEEPING.contains(&&*subtype) {
        return RecordOutcome::Bookkeeping;
    }
    match &*subtype {
        "init" => {
            let read = init(stream, frame, emit);
            return if is_odd_frame(frame, emit) { stream.unknown("init", emit) } else { read };
        }
        "api_retry" => {
            let run = &mut stream.agents[stream.main].run;
            stream.turns.begin_due(run, emit);
            let retry = Retry {
                error: error_of(frame),
                attempt: frame.attempt,
                max: frame.retries_max,
                delay_ms: frame.retry_delay_ms,
                status: frame.error_status,
            };
            retry.write(run, emit);
        }
        "compact_boundary" => {
            stream.is_compacting = true;
            facts::compaction_begins(&stream.agents[stream.main].run, frame.compact.json(), emit);
        }
        "task_started" => {
            let read = task_started(stream, frame, emit);
            return if is_odd_frame(frame, emit) { stream.unknown(&subtype, emit) } else { read };
        }
        "task_notification" => task_ended(stream, frame, emit),
        "task_updated" if frame.patch.is_some_and(|patch| is_stopped(patch.status.text().as_deref())) => {
            task_ended(stream, frame, emit);
        }
        // The whole frame is kept.
        _ => {
            facts::fact(&stream.agents[stream.main].run, &subtype, emit);
            return RecordOutcome::Understood;
        }
    }
    if is_odd_frame(frame, emit) { stream.unknown(&subtype, emit) } else { RecordOutcome::Understood }
}

/// Every turn has an `init`; its settings are written if they have changed.
fn init(stream: &mut Stream, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    stream.turns.init(frame);
    let settings = RawJson::object(|object| {
        let fields = [
            ("model", frame.model),
            ("permission_mode", frame.permission_mode),
            ("tools", frame.tools),
            ("mcp_servers", frame.mcp_servers),
        ];
        for (name, value) in fields {
            object.optional(name, value.json().as_ref(), ObjectWriter::json);
        }
    });
    let run = &stream.agents[stream.main].run;
    let is_new = stream.settings.as_ref() != Some(&settings);
    if is_new {
        emit.system(run, "init", Some(settings.clone()));
        stream.settings = Some(settings);
    }
    emit.entry(run, EntryType::SystemEvent, Some("init"));
    if is_new { RecordOutcome::Understood } else { RecordOutcome::Bookkeeping }
}

fn error_of(frame: &StreamFrame<'_>) -> String {
    let error = frame.error.text().unwrap_or("api error".into());
    frame.error_status.number().map_or_else(|| error.to_string(), |status| format!("{status} {error}"))
}

fn is_stopped(status: Option<&str>) -> bool {
    matches!(status, Some("failed" | "killed" | "stopped" | "cancelled"))
}

/// A task is a subagent, or a command in the background.
fn task_started(stream: &mut Stream, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let (task, call) = (frame.task_id.text(), frame.tool_use_id.text());
    let place = call.as_ref().and_then(|call| stream.agent_with_call(call));
    let is_agent = frame.task_type.is("local_agent") || frame.subagent_type.json().is_some();
    let (Some(task), Some(call), Some(place), true) = (task, call, place, is_agent) else {
        facts::fact(&stream.agents[stream.main].run, "task_started", emit);
        return RecordOutcome::Understood;
    };
    stream.name_agent(&call, &task);
    let parent = &mut stream.agents[place];
    let child = parent.child_id(&task);
    let agent_type = frame.subagent_type.string();
    let started = SubagentStart { call: &call, child, agent: Some(&task), agent_type, matched_by: None };
    let is_new = parent.start_child(started, emit);
    emit.entry(&parent.run, EntryType::SystemEvent, Some("task_started"));
    if is_new { RecordOutcome::Understood } else { RecordOutcome::Bookkeeping }
}

fn task_ended(stream: &mut Stream, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) {
    let subtype = frame.subtype.text().unwrap_or_default();
    let of_task = || frame.task_id.text().and_then(|task| stream.call_of_agent(&task));
    let call = frame.tool_use_id.text().map(std::borrow::Cow::into_owned).or_else(of_task);
    let place = call.as_ref().and_then(|call| stream.agent_with_call(call));
    let linked =
        place.zip(call).filter(|(place, call)| stream.agents[*place].run.calls.child(call).is_some());
    let Some((place, call)) = linked else {
        return facts::fact(&stream.agents[stream.main].run, &subtype, emit);
    };
    let status = frame.status.string().or_else(|| frame.patch.and_then(|patch| patch.status.string()));
    let agent = &mut stream.agents[place];
    if agent.end_child(&call, SubagentEnd { status, more: said_of_end(frame) }, emit) {
        emit.entry(&agent.run, EntryType::SystemEvent, Some(&subtype));
    } else {
        // Another record has ended it; this one is kept too.
        facts::fact(&agent.run, &subtype, emit);
    }
}

/// Returns the fields of a task's end. The last message of a background subagent is only here.
fn said_of_end(frame: &StreamFrame<'_>) -> Vec<(&'static str, RawJson)> {
    let fields = [("usage", frame.usage), ("summary", frame.summary), ("output_file", frame.output_file)];
    let is_said = |value: &RawJson| value.as_str() != "\"\"";
    fields.into_iter().filter_map(|(name, value)| Some((name, value.json().filter(is_said)?))).collect()
}
