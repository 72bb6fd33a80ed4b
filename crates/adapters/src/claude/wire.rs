//! The shapes of Claude Code's records on disk, and of what records of all its surfaces have inside.

use crate::wire::wire;

wire! {
    /// A line of a session file.
    pub(super) struct Line {
        kind: "type",
        subtype: "subtype",
        request_id: "requestId",
        uuid: "uuid",
        parent_uuid: "parentUuid",
        timestamp: "timestamp",
        session_id: "sessionId",
        agent_id: "agentId",
        version: "version",
        is_sidechain: "isSidechain",
        is_meta: "isMeta",
        is_compact_summary: "isCompactSummary",
        is_api_error: "isApiErrorMessage",
        message: "message" => Message,
        tool_use_result: "toolUseResult",
        permission: "permissionDecision" => Permission,
        denial_kind: "toolDenialKind",
        permission_mode: "permissionMode",
        prompt_id: "promptId",
        origin: "origin" => Origin,
        attachment: "attachment",
        error: "error",
        compact: "compactMetadata",
        retry_attempt: "retryAttempt",
        retries_max: "maxRetries",
        retry_in_ms: "retryInMs",
        operation: "operation",
        summary: "summary",
        ai_title: "aiTitle",
        custom_title: "customTitle",
        model_usage: "modelUsage",
        cwd: "cwd",
        forked_from: "forkedFrom" => ForkedFrom,
        data: "data" => Progress,
        parent_tool_use_id: "parentToolUseID",
    }
}

wire! {
    /// A message as the API shapes it.
    pub(super) struct Message {
        id: "id",
        model: "model",
        content: "content",
        stop_reason: "stop_reason",
        usage: "usage",
    }
}

wire! {
    /// A block of a message.
    pub(super) struct Block {
        kind: "type",
        text: "text",
        thinking: "thinking",
        id: "id",
        name: "name",
        input: "input",
        tool_use_id: "tool_use_id",
        content: "content",
        is_error: "is_error",
        source: "source",
    }
}

wire! {
    /// Who allowed a call, or did not.
    pub(super) struct Permission {
        decision: "decision",
        source: "source",
        scope: "grantScope",
    }
}

wire! {
    /// Who a user's message is from.
    pub(super) struct Origin { kind: "kind", }
}

wire! {
    /// The record that a fork has copied.
    pub(super) struct ForkedFrom { session_id: "sessionId", uuid: "messageUuid", }
}

wire! {
    /// What a call reports: of the subagent or the task that it has begun or asked about, or of a command.
    pub(super) struct ToolReport {
        status: "status",
        agent_id: "agentId",
        agent_type: "agentType",
        is_async: "isAsync",
        task: "task" => Task,
        interrupted: "interrupted",
    }
}

wire! {
    /// A task in the background.
    pub(super) struct Task { id: "task_id", status: "status", }
}

wire! {
    /// What a call for a subagent asks for.
    pub(super) struct AgentInput { prompt: "prompt", agent_type: "subagent_type", }
}

wire! {
    /// Progress of a call.
    pub(super) struct Progress { kind: "type", agent_id: "agentId", }
}

wire! {
    /// A retry's error.
    pub(super) struct ApiError { formatted: "formatted", message: "message", status: "status", }
}

wire! {
    /// An attachment.
    pub(super) struct Attachment { kind: "type", system_prompt: "systemPrompt", prompt: "prompt", }
}
