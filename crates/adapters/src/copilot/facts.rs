//! Facts besides the conversation: errors, retries, compaction, questions, and the lists of all other types.

use serde_json::value::RawValue;
use steno_model::json::{Extra, Fields, JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::agents::{Agent, Failure, data_of, provider_object};
use super::wire::{BinaryAsset, Data, RawLine};
use crate::emit::{Emit, push};
use crate::shapes::words;
use crate::wire::{RawField as _, object, parse};

/// Events without information about the work: pieces of what comes later as a whole, the state of the screen, lists of
/// what is installed, and Copilot's own accounting.
pub(super) const BOOKKEEPING: [&str; 58] = [
    "assistant.fusion_phase_activity",
    "assistant.intent",
    "assistant.message_delta",
    "assistant.message_start",
    "assistant.reasoning_delta",
    "assistant.server_tool_progress",
    "assistant.streaming_delta",
    "assistant.tool_call_delta",
    "capabilities.changed",
    "command.completed",
    "command.queued",
    "commands.changed",
    "external_tool.completed",
    "factory.run_updated",
    "hook.progress",
    "mcp.headers_refresh_completed",
    "mcp.headers_refresh_required",
    "mcp.oauth_completed",
    "mcp.oauth_recovery_completed",
    "mcp.oauth_required",
    "mcp.prompts.list_changed",
    "mcp.resources.list_changed",
    "mcp.tools.list_changed",
    "model.call_final_result",
    "model.call_finished",
    "pending_messages.modified",
    "permission.messageAuthorizationRead",
    "prompt_cache_break",
    "sampling.completed",
    "sampling.requested",
    "session.background_tasks_changed",
    "session.canvas.closed",
    "session.canvas.opened",
    "session.canvas.registry_changed",
    "session.canvas.unavailable",
    "session.custom_agents_updated",
    "session.extensions.attachments_pushed",
    "session.extensions_loaded",
    "session.indexed_search",
    "session.managed_plugin_progress",
    "session.managed_settings_resolved",
    "session.mcp_server_needs_reconnect",
    "session.mcp_server_removed",
    "session.mcp_server_status_changed",
    "session.mcp_server_tools_loaded",
    "session.mcp_servers_loaded",
    "session.quota_observation",
    "session.request_body_compression_disabled",
    "session.skills_loaded",
    "session.todos_changed",
    "session.tools_updated",
    "session.usage_checkpoint",
    "session.usage_info",
    "tool.execution_partial_result",
    "tool.execution_progress",
    "tool.shell_output",
    "ui.ephemeral_query",
    "workflow.run_updated",
];

/// Events that are facts; their type is the fact's name, and their data are kept whole.
pub(super) const FACTS: [&str; 78] = [
    "agent.interrupted",
    "assistant.fusion_phase_completed",
    "assistant.fusion_phase_failed",
    "assistant.fusion_phase_started",
    "auto_mode_switch.completed",
    "auto_mode_switch.requested",
    "command.execute",
    "elicitation.completed",
    "elicitation.requested",
    "exit_plan_mode.completed",
    "exit_plan_mode.requested",
    "factory.run_settled",
    "factory.run_started",
    "hook.end",
    "hook.start",
    "mcp_app.tool_call_complete",
    "model.call_failure",
    "permission.assentDetected",
    "permission.carriedForward",
    "permission.contextualAuthorization",
    "permission.messageAuthorization",
    "permission.messageAuthorizationDegraded",
    "sandbox.decision",
    "session.auto_mode_resolved",
    "session.auto_tier_recommendation",
    "session.auto_tier_switch_failed",
    "session.autopilot_objective_changed",
    "session.autopilot_stopped",
    "session.canvas.recorded",
    "session.canvas.removed",
    "session.completion_receipt",
    "session.context_changed",
    "session.context_cleared",
    "session.custom_notification",
    "session.fusion_change_checkpoint",
    "session.fusion_commit_started",
    "session.fusion_completed",
    "session.fusion_handoff",
    "session.fusion_resolved",
    "session.fusion_route_failed",
    "session.fusion_route_started",
    "session.handoff",
    "session.import_legacy",
    "session.info",
    "session.managed_settings_enforced",
    "session.memory_changed",
    "session.mode_changed",
    "session.mode_notice_delivered",
    "session.model_change",
    "session.model_deselected",
    "session.permission_recovery",
    "session.permissions_changed",
    "session.plan_changed",
    "session.remote_steerable_changed",
    "session.resume",
    "session.schedule_cancelled",
    "session.schedule_created",
    "session.schedule_rearmed",
    "session.session_limits_changed",
    "session.shutdown",
    "session.snapshot_rewind",
    "session.task_complete",
    "session.truncation",
    "session.warning",
    "session.workspace_file_changed",
    "session_limits_exhausted.completed",
    "session_limits_exhausted.requested",
    "skill.context_delivered",
    "skill.context_delivered_ref",
    "skill.invoked",
    "skill.invoked_ref",
    "subagent.configured",
    "subagent.deselected",
    "subagent.selected",
    "system.notification",
    "tool_search.activated",
    "workflow.run_settled",
    "workflow.run_started",
];

/// Tells whether events of a type are passed over.
pub(super) fn is_bookkeeping(kind: &str) -> bool {
    BOOKKEEPING.binary_search(&kind).is_ok()
}

/// Tells whether events of a type are facts.
pub(super) fn is_fact(kind: &str) -> bool {
    FACTS.binary_search(&kind).is_ok()
}

/// A delta is part of the entry of the whole to which it belongs.
pub(super) fn is_delta(kind: &str) -> bool {
    kind.starts_with("assistant.") && kind.ends_with("_delta")
}

impl Agent {
    /// Writes an error of the session.
    pub(super) fn error(&mut self, data: &Data<'_>, emit: &mut Emit<'_>) {
        let name = data.error_type.text().unwrap_or("session".into());
        let error = words(data.message).unwrap_or_else(|| "error".into());
        self.last_error = Some(error.clone());
        let mut payload = StepPayload { error: Some(error), ..StepPayload::new(&*name, "error") };
        push(&mut payload.extra, "status", data.status_code.json());
        emit.step_completed(&self.run, &self.run.turns.path(), payload);
        emit.entry(&self.run, EntryType::Error, None);
    }

    /// Takes a request to the model that failed; another record says whether it is made again.
    pub(super) fn failed_request(&mut self, kind: &str, data: &Data<'_>, emit: &mut Emit<'_>) {
        self.failure = Some(Failure {
            error: words(data.error_message),
            status: data.status_code.json(),
            attempt: data.retry_attempt.number(),
            is_retried: false,
        });
        self.fact(kind, emit);
    }

    /// Writes that a request is made again, once for each that failed.
    pub(super) fn retry(&mut self, kind: &str, data: &Data<'_>, emit: &mut Emit<'_>) {
        let failure = self.failure.get_or_insert_default();
        if std::mem::replace(&mut failure.is_retried, true) {
            emit.entry(&self.run, EntryType::SystemEvent, Some(kind));
            return;
        }
        let message = failure.error.clone().or_else(|| words(data.reason)).or_else(|| words(data.message));
        let attempt = failure.attempt.map(|attempt| RawJson::from(attempt.saturating_add(1)));
        let result = RawJson::object(|object| {
            object.optional("attempt", attempt.as_ref(), ObjectWriter::json);
            object.optional("status", failure.status.as_ref(), ObjectWriter::json);
        });
        let error = Some(message.unwrap_or_else(|| "failed".into()));
        let payload = StepPayload { error, result: Some(result), ..StepPayload::new("api", "retry") };
        emit.step_completed(&self.run, &self.run.turns.path(), payload);
        emit.entry(&self.run, EntryType::Error, None);
    }

    /// Writes the beginning of a compaction.
    pub(super) fn compaction_begins(&mut self, emit: &mut Emit<'_>) {
        self.is_compacting = true;
        let mut payload = StepPayload::new("compaction", "compaction");
        push(&mut payload.extra, "metadata", data_of(emit));
        emit.step_started(&self.run, &self.run.turns.path_of("compaction"), payload);
        emit.entry(&self.run, EntryType::SystemEvent, Some("compaction"));
    }

    /// Writes the end of a compaction, with the summary that the conversation continues from.
    pub(super) fn compaction_ends(&mut self, data: &Data<'_>, emit: &mut Emit<'_>) {
        let path = self.run.turns.path_of("compaction");
        if !std::mem::take(&mut self.is_compacting) {
            emit.step_started(&self.run, &path, StepPayload::new("compaction", "compaction"));
        }
        let mut payload = StepPayload::new("compaction", "compaction");
        payload.result = data.summary.json();
        let failed = data.success.is_some_and(|flag| flag.get() == "false");
        let error = words(data.error).or_else(|| failed.then(|| "failed".into()));
        payload.error = error;
        payload.extra = metadata(emit);
        emit.step_completed(&self.run, &path, payload);
        emit.entry(&self.run, EntryType::SystemEvent, Some("compaction_summary"));
    }

    /// Writes a picture or file without its bytes, which are in the evidence.
    pub(super) fn asset(&self, kind: &str, emit: &mut Emit<'_>) {
        let line: RawLine<'_> = parse(emit.text()).unwrap_or_default();
        let asset = line.data.and_then(object::<BinaryAsset<'_>>).unwrap_or_default();
        let fields = [
            ("assetId", asset.id),
            ("type", asset.kind),
            ("mimeType", asset.mime_type),
            ("byteLength", asset.length),
            ("description", asset.description),
        ];
        let result = provider_object(&fields.map(|(name, value)| (name, value.json())));
        self.fact_with(kind, result, emit);
    }

    /// Writes a question to the user, or the answer.
    pub(super) fn question(&mut self, kind: &str, data: &Data<'_>, emit: &mut Emit<'_>) {
        let name = data.request_id.string().unwrap_or_else(|| kind.into());
        let mut payload = StepPayload::new(name, "user_input");
        push(&mut payload.extra, "tool_call_id", data.tool_call_id.string().map(|call| call.to_json()));
        payload.result = data_of(emit);
        let path = self.run.turns.path_of("user_input");
        let subtype = if kind == "user_input.requested" {
            emit.step_started(&self.run, &path, payload);
            "user_input_requested"
        } else {
            emit.step_completed(&self.run, &path, payload);
            "user_input_resolved"
        };
        emit.entry(&self.run, EntryType::SystemEvent, Some(subtype));
    }
}

/// Returns the fields of a compaction besides its summary and its cost.
fn metadata(emit: &Emit<'_>) -> Extra {
    let line: RawLine<'_> = parse(emit.text()).unwrap_or_default();
    let fields = line.data.map(RawValue::get).and_then(|data| Fields::parse(data).ok());
    let is_told = |name: &str| matches!(name, "summaryContent" | "compactionTokensUsed");
    let pairs = fields.iter().flat_map(Fields::iter);
    let pairs = pairs.filter(|(name, _)| !is_told(&name.text()));
    let text: Vec<String> = pairs.map(|(name, value)| format!("{}:{}", name.as_raw(), value.get())).collect();
    let mut extra = Extra::default();
    push(&mut extra, "metadata", RawJson::parse(&format!("{{{}}}", text.join(","))).ok());
    extra
}

/// Returns the title of the session.
pub(super) fn title(data: &Data<'_>) -> Option<JsonString> {
    data.title.string()
}
