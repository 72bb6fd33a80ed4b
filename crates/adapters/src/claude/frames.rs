//! The shapes of `stream-json` frames and of the control protocol.

use super::wire::{Message, Permission};
use crate::wire::wire;

wire! {
    /// A line that Claude Code prints or receives.
    pub(super) struct StreamFrame {
        kind: "type" as Text,
        subtype: "subtype" as Text,
        uuid: "uuid" as Text,
        session_id: "session_id" as Text,
        parent_tool_use_id: "parent_tool_use_id" as Text,
        timestamp: "timestamp" as Text,
        agent_id: "agent_id" as Text,
        message: "message" => Message,
        error: "error" as Text,
        is_api_error: "is_api_error_message" as Flag,
        tool_use_result: "tool_use_result",
        tool_result_meta: "tool_result_meta" as List,
        is_synthetic: "isSynthetic" as Flag,
        is_replay: "isReplay" as Flag,
        supersedes: "supersedes",
        aborted: "aborted",
        event: "event",
        // A session's beginning.
        version: "claude_code_version" as Text,
        cwd: "cwd" as Text,
        model: "model" as Text,
        permission_mode: "permissionMode" as Text,
        tools: "tools",
        mcp_servers: "mcp_servers",
        // A turn's end.
        is_error: "is_error" as Flag,
        result: "result",
        errors: "errors",
        num_turns: "num_turns",
        duration_ms: "duration_ms",
        cost_usd: "total_cost_usd",
        stop_reason: "stop_reason",
        terminal_reason: "terminal_reason",
        permission_denials: "permission_denials",
        usage: "usage",
        model_usage: "modelUsage",
        local_command: "local_command",
        structured_output: "structured_output",
        api_error_status: "api_error_status",
        // Facts.
        compact: "compact_metadata",
        attempt: "attempt",
        retries_max: "max_retries",
        retry_delay_ms: "retry_delay_ms",
        error_status: "error_status",
        task_id: "task_id" as Text,
        task_type: "task_type" as Text,
        tool_use_id: "tool_use_id" as Text,
        subagent_type: "subagent_type" as Text,
        summary: "summary",
        output_file: "output_file",
        status: "status" as Text,
        patch: "patch" => TaskPatch,
        // Control.
        request_id: "request_id" as Text,
        request: "request" as Object,
        response: "response" => Response,
    }
}

wire! {
    /// The changed fields of a task.
    pub(super) struct TaskPatch { status: "status" as Text, }
}

wire! {
    /// Fields next to results, by the call's id.
    pub(super) struct ResultMeta {
        id: "id" as Text,
        permission: "permission_decision" => Permission,
        non_execution_kind: "non_execution_kind" as Text,
    }
}

wire! {
    /// A call that was refused.
    pub(super) struct Denial { tool_use_id: "tool_use_id", }
}

wire! {
    /// A request of one side.
    pub(super) struct Request {
        subtype: "subtype" as Text,
        tool_name: "tool_name" as Text,
        input: "input",
        tool_use_id: "tool_use_id" as Text,
        agent_id: "agent_id" as Text,
    }
}

wire! {
    /// An answer.
    pub(super) struct Response {
        subtype: "subtype" as Text,
        request_id: "request_id" as Text,
        body: "response",
        error: "error",
    }
}

wire! {
    /// Whether a call may be made.
    pub(super) struct Verdict {
        behavior: "behavior",
        permissions: "updatedPermissions" as List,
        input: "updatedInput",
        message: "message" as Text,
    }
}
