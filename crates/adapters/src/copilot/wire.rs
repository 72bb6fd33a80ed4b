//! The shapes of Copilot's events, as far as they are read.

use crate::wire::wire;

wire! {
    /// A line: an event, or the last line of the output.
    pub(super) struct Line {
        kind: "type" as Text,
        data: "data" => Data,
        id: "id" as Text,
        timestamp: "timestamp",
        agent_id: "agentId" as Text,
        session_id: "sessionId" as Text,
        exit_code: "exitCode",
    }
}

wire! {
    /// A line whose data are kept as they came.
    pub(super) struct RawLine { data: "data", }
}

wire! {
    /// What events say; each type has some of these fields.
    pub(super) struct Data {
        content: "content",
        interaction_id: "interactionId" as Text,
        parent_tool_call_id: "parentToolCallId" as Text,
        model: "model",
        api_call_id: "apiCallId" as Text,
        message_id: "messageId" as Text,
        tool_requests: "toolRequests" as List,
        output_tokens: "outputTokens",
        reasoning_text: "reasoningText" as Text,
        reasoning_opaque: "reasoningOpaque",
        reasoning_id: "reasoningId",
        reasoning_blocks: "reasoningBlocks",
        encrypted_content: "encryptedContent",
        server_tools: "serverTools",
        phase: "phase",
        tool_call_id: "toolCallId" as Text,
        tool_name: "toolName",
        arguments: "arguments",
        mcp_server: "mcpServerName",
        success: "success" as Flag,
        result: "result",
        error: "error",
        shell: "shellExecution",
        source: "source",
        delivery: "delivery",
        attachments: "attachments" as List,
        is_autopilot: "isAutopilotContinuation",
        request_id: "requestId" as Text,
        permission: "permissionRequest",
        is_by_hook: "resolvedByHook",
        owner_session_id: "ownerSessionId",
        decided_by: "decisionSource",
        usage: "usage",
        model_metrics: "modelMetrics",
        session_id: "sessionId",
        version: "copilotVersion",
        selected_model: "selectedModel",
        new_model: "newModel",
        context: "context",
        spawned_by: "detachedFromSpawningParentSessionId",
        agent_name: "agentName",
        display_name: "agentDisplayName",
        spawner_id: "parentId",
        is_cancelled: "cancelled",
        aborted: "aborted",
        reason: "reason",
        message: "message",
        error_type: "errorType",
        error_message: "errorMessage",
        status_code: "statusCode",
        retry_attempt: "retryAttempt",
        info_type: "infoType",
        title: "title",
        summary: "summaryContent",
        tokens_used: "compactionTokensUsed",
        role: "role",
    }
}

wire! {
    /// A call that a response asks for.
    pub(super) struct ToolRequest {
        id: "toolCallId",
        name: "name",
        arguments: "arguments",
        mcp_server: "mcpServerName",
    }
}

wire! {
    /// The thoughts of a response as the model's provider wrote them.
    pub(super) struct ReasoningBlocks { blocks: "blocks", }
}

wire! {
    /// What tools of the model's provider did.
    pub(super) struct ServerTools { items: "items", blocks: "rawContentBlocks", }
}

wire! {
    /// One of these thoughts, or the type of an attachment.
    pub(super) struct TypeTag { kind: "type", }
}

wire! {
    /// What a tool gave back.
    pub(super) struct ToolResult {
        content: "content",
        contents: "contents",
        detailed: "detailedContent",
        binary: "binaryResultsForLlm",
    }
}

wire! {
    /// A part of what a tool gave back, or how a shell ended.
    pub(super) struct Part { kind: "type", exit_code: "exitCode", }
}

wire! {
    /// Why a call failed.
    pub(super) struct ToolError { message: "message", code: "code", }
}

wire! {
    /// What is to be allowed.
    pub(super) struct PermissionRequest {
        kind: "kind",
        tool_call_id: "toolCallId",
        tool_name: "toolName",
        arguments: "args",
        command: "fullCommandText",
    }
}

wire! {
    /// What was decided.
    pub(super) struct PermissionResult { kind: "kind", }
}

wire! {
    /// What a request to the model cost, or all requests to one model.
    pub(super) struct Usage {
        model: "model",
        api_call_id: "apiCallId",
        finish_reason: "finishReason",
        parent_tool_call_id: "parentToolCallId",
        accounting: "accounting" => UsageOrigin,
        input: "inputTokens",
        output: "outputTokens",
        cache_read: "cacheReadTokens",
        cache_write: "cacheWriteTokens",
        reasoning: "reasoningTokens",
    }
}

wire! {
    /// What a compaction cost, in the first versions.
    pub(super) struct OldUsage { input: "input", output: "output", cached: "cachedInput", }
}

wire! {
    /// Which session a request is counted in, and under which id.
    pub(super) struct UsageOrigin { session_id: "sourceSessionId", usage_id: "usageId", }
}

wire! {
    /// All requests of a session to one model.
    pub(super) struct ModelMetric { usage: "usage", }
}

wire! {
    /// Where a session began.
    pub(super) struct Context { cwd: "cwd", }
}

wire! {
    /// A picture or another file that a tool gave back.
    pub(super) struct BinaryAsset {
        id: "assetId",
        kind: "type",
        mime_type: "mimeType",
        length: "byteLength",
        description: "description",
    }
}

wire! {
    /// What a subagent has cost.
    pub(super) struct SubagentReport {
        model: "model",
        duration_ms: "durationMs",
        tokens: "totalTokens",
        calls: "totalToolCalls",
    }
}
