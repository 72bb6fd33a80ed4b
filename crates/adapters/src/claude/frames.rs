//! The shapes of `stream-json` frames and of the control protocol.

use super::wire::{Message, Permission};
use crate::wire::wire;

wire! {
    /// A line that Claude Code prints, or is sent.
    pub(super) struct StreamFrame {
        kind: "type",
        subtype: "subtype",
        uuid: "uuid",
        session_id: "session_id",
        parent_tool_use_id: "parent_tool_use_id",
        timestamp: "timestamp",
        agent_id: "agent_id",
        message: "message" => Message,
        error: "error",
        is_api_error: "is_api_error_message",
        tool_use_result: "tool_use_result",
        tool_result_meta: "tool_result_meta",
        is_synthetic: "isSynthetic",
        is_replay: "isReplay",
        // A session's beginning.
        version: "claude_code_version",
        cwd: "cwd",
        model: "model",
        permission_mode: "permissionMode",
        tools: "tools",
        mcp_servers: "mcp_servers",
        // A turn's end.
        is_error: "is_error",
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
        task_id: "task_id",
        task_type: "task_type",
        tool_use_id: "tool_use_id",
        subagent_type: "subagent_type",
        status: "status",
        patch: "patch" => TaskPatch,
        // Control.
        request_id: "request_id",
        request: "request",
        response: "response" => Response,
    }
}

wire! {
    /// What has changed of a task.
    pub(super) struct TaskPatch { status: "status", }
}

wire! {
    /// What stands beside a result, by the call's id.
    pub(super) struct ResultMeta {
        id: "id",
        permission: "permission_decision" => Permission,
        non_execution_kind: "non_execution_kind",
    }
}

wire! {
    /// What one side asks of the other.
    pub(super) struct Request {
        subtype: "subtype",
        tool_name: "tool_name",
        input: "input",
        tool_use_id: "tool_use_id",
        agent_id: "agent_id",
    }
}

wire! {
    /// What the other side answers.
    pub(super) struct Response {
        subtype: "subtype",
        request_id: "request_id",
        body: "response",
        error: "error",
    }
}

wire! {
    /// Whether a call may be made.
    pub(super) struct Verdict {
        behavior: "behavior",
        permissions: "updatedPermissions",
    }
}
