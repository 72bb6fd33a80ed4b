//! The shapes of Claude Code's records on disk, and of the parts that all surfaces share.

use crate::wire::wire;

wire! {
    /// A line of a session file.
    pub(super) struct Line {
        kind: "type" as Text,
        subtype: "subtype" as Text,
        request_id: "requestId" as Text,
        uuid: "uuid" as Text,
        parent_uuid: "parentUuid" as Text,
        timestamp: "timestamp" as Text,
        session_id: "sessionId" as Text,
        agent_id: "agentId" as Text,
        version: "version" as Text,
        is_sidechain: "isSidechain" as Flag,
        is_meta: "isMeta" as Flag,
        is_compact_summary: "isCompactSummary" as Flag,
        is_api_error: "isApiErrorMessage" as Flag,
        message: "message" => Message,
        tool_use_result: "toolUseResult",
        permission: "permissionDecision" => Permission,
        denial_kind: "toolDenialKind" as Text,
        permission_mode: "permissionMode" as Text,
        prompt_id: "promptId" as Text,
        origin: "origin" => Origin,
        attachment: "attachment",
        error: "error",
        compact: "compactMetadata",
        retry_attempt: "retryAttempt",
        retries_max: "maxRetries",
        retry_in_ms: "retryInMs",
        operation: "operation",
        content: "content",
        prompt_source: "promptSource" as Text,
        summary: "summary",
        ai_title: "aiTitle",
        custom_title: "customTitle",
        model_usage: "modelUsage",
        cwd: "cwd" as Text,
        git_branch: "gitBranch" as Text,
        forked_from: "forkedFrom" => ForkedFrom,
        data: "data" => Progress,
        parent_tool_use_id: "parentToolUseID" as Text,
    }
}

wire! {
    /// A message as the API shapes it.
    pub(super) struct Message {
        id: "id" as Text,
        model: "model" as Text,
        content: "content",
        stop_reason: "stop_reason" as Text,
        usage: "usage",
    }
}

wire! {
    /// A block of a message.
    pub(super) struct Block {
        kind: "type" as Text,
        text: "text" as Text,
        thinking: "thinking" as Text,
        id: "id" as Text,
        name: "name" as Text,
        input: "input",
        tool_use_id: "tool_use_id" as Text,
        content: "content",
        is_error: "is_error" as Flag,
        source: "source",
    }
}

wire! {
    /// Who allowed a call, or did not.
    pub(super) struct Permission {
        decision: "decision" as Text,
        source: "source" as Text,
        scope: "grantScope" as Text,
    }
}

wire! {
    /// The origin of a user's message.
    pub(super) struct Origin { kind: "kind" as Text, }
}

wire! {
    /// The record that a fork has copied.
    pub(super) struct ForkedFrom { session_id: "sessionId" as Text, uuid: "messageUuid" as Text, }
}

wire! {
    /// The report of a call: about a subagent, a task or a command.
    pub(super) struct ToolReport {
        status: "status" as Text,
        agent_id: "agentId" as Text,
        agent_type: "agentType" as Text,
        is_async: "isAsync" as Flag,
        task: "task" => Task,
        interrupted: "interrupted" as Flag,
    }
}

wire! {
    /// The report of an edit.
    pub(super) struct EditReport { hunks: "structuredPatch" as List, }
}

wire! {
    /// A task in the background.
    pub(super) struct Task { id: "task_id" as Text, status: "status" as Text, }
}

wire! {
    /// What a call for a subagent asks for.
    pub(super) struct AgentInput {
        prompt: "prompt",
        agent_type: "subagent_type",
        is_background: "run_in_background",
    }
}

wire! {
    /// Progress of a call.
    pub(super) struct Progress { kind: "type", agent_id: "agentId", message: "message", }
}

wire! {
    /// A retry's error.
    pub(super) struct ApiError { formatted: "formatted" as Text, message: "message" as Text, status: "status", }
}

wire! {
    /// An attachment.
    pub(super) struct Attachment { kind: "type" as Text, system_prompt: "systemPrompt", prompt: "prompt", source_id: "source_uuid" as Text, }
}
