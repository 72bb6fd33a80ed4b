//! The shapes of Codex's records, with the fields that we use.

use crate::wire::{Raw, wire};

wire! {
    /// A line of a rollout; before 0.36 a line was the bare payload, after a header.
    pub(super) struct Line {
        timestamp: "timestamp",
        ordinal: "ordinal",
        kind: "type",
        payload: "payload" => Payload,
        id: "id",
        record_type: "record_type",
        instructions: "instructions",
        git: "git",
    }
}

wire! {
    /// A line whose payload is read separately or kept raw.
    pub(super) struct RawLine {
        timestamp: "timestamp",
        ordinal: "ordinal",
        kind: "type",
        payload: "payload",
    }
}

wire! {
    /// The header of a rollout.
    pub(super) struct SessionMeta {
        id: "id",
        session_id: "session_id",
        cwd: "cwd",
        originator: "originator",
        cli_version: "cli_version",
        source: "source",
        parent_thread_id: "parent_thread_id",
        forked_from_id: "forked_from_id",
        forked_from_ordinal: "forked_from_ordinal_exclusive",
        history_base: "history_base",
        history_start_ordinal: "subagent_history_start_ordinal",
        agent_nickname: "agent_nickname",
        agent_role: "agent_role",
        model_provider: "model_provider",
        base_instructions: "base_instructions",
        instructions: "instructions",
        git: "git",
    }
}

wire! {
    /// The location of a fork's history.
    pub(super) struct HistoryBase {
        thread_id: "thread_id",
        end_ordinal: "end_ordinal_exclusive",
        end_byte_offset: "end_byte_offset",
    }
}

wire! {
    /// The origin of a subagent's session.
    pub(super) struct SourceField { subagent: "subagent" => SubagentSource, }
}

wire! {
    pub(super) struct SubagentSource { spawn: "thread_spawn" => Spawn, }
}

wire! {
    pub(super) struct Spawn { parent_thread_id: "parent_thread_id", }
}

wire! {
    /// The settings of a turn.
    pub(super) struct TurnContext {
        turn_id: "turn_id",
        cwd: "cwd",
        approval_policy: "approval_policy",
        sandbox_policy: "sandbox_policy",
        model: "model",
        effort: "effort",
    }
}

wire! {
    /// The payload of a rollout's line: a response item or an event. Events are also the lines of `exec` up to 0.3x.
    /// Both have one shape, so that a line is read in one pass.
    pub(super) struct Payload {
        kind: "type",
        id: "id",
        role: "role",
        content: "content",
        phase: "phase",
        summary: "summary",
        name: "name",
        namespace: "namespace",
        arguments: "arguments",
        input: "input",
        call_id: "call_id",
        output: "output",
        status: "status",
        action: "action",
        tools: "tools",
        result: "result",
        author: "author",
        revised_prompt: "revised_prompt",
        passthrough: "internal_chat_message_metadata_passthrough" => Passthrough,
        turn_id: "turn_id",
        thread_id: "thread_id",
        attribution: "turn_attribution" => Attribution,
        message: "message",
        text: "text",
        images: "images",
        local_images: "local_images",
        last_agent_message: "last_agent_message",
        error: "error",
        reason: "reason",
        info: "info",
        item: "item",
        num_turns: "num_turns",
        thread_name: "thread_name",
        new_thread_id: "new_thread_id",
        receiver_thread_id: "receiver_thread_id",
        agent_thread_id: "agent_thread_id",
        activity: "kind",
        statuses: "statuses",
        invocation: "invocation",
        command: "command",
        stdout: "stdout",
        stderr: "stderr",
        aggregated_output: "aggregated_output",
        exit_code: "exit_code",
        duration: "duration" => Duration,
        duration_ms: "duration_ms",
        success: "success",
        changes: "changes",
        content_items: "content_items",
        query: "query",
        tool: "tool",
        path: "path",
    }
}

wire! {
    /// Content that compactions keep.
    pub(super) struct RetainedItem { kind: "type", call_id: "call_id", }
}

wire! {
    /// The origin of a turn.
    pub(super) struct Attribution { parent_turn_id: "parent_turn_id", }
}

wire! {
    /// Codex's notes about the parts of a message.
    pub(super) struct Passthrough { kinds: "content_item_kinds", turn_id: "turn_id", }
}

wire! {
    /// A part of a message's content, for both roles and all surfaces.
    pub(super) struct Part {
        kind: "type",
        text: "text",
        path: "path",
        name: "name",
        refusal: "refusal",
    }
}

wire! {
    /// The output of a command before 0.80: JSON inside a string.
    pub(super) struct OutputText { output: "output", metadata: "metadata" => OutputMetadata, }
}

wire! {
    pub(super) struct OutputMetadata { exit_code: "exit_code", }
}

wire! {
    pub(super) struct Invocation { server: "server", tool: "tool", arguments: "arguments", }
}

wire! {
    pub(super) struct Duration { secs: "secs", nanos: "nanos", }
}

wire! {
    /// Rust's `Result`, as serde writes it.
    pub(super) struct OkOrErr { ok: "Ok", err: "Err", }
}

wire! {
    /// The state of an MCP call's result.
    pub(super) struct McpResult { is_error: "isError", is_error_snake: "is_error", }
}

wire! {
    /// A failure, on any surface.
    pub(super) struct Failure { message: "message", }
}

wire! {
    /// Usage as `token_count` has it.
    pub(super) struct TokenInfo { total: "total_token_usage", last: "last_token_usage", }
}

wire! {
    /// The exact usage of a response.
    pub(super) struct TokenUsageRecord { response_id: "response_id", usage: "usage", }
}

wire! {
    /// The result of a compaction.
    pub(super) struct CompactionRecord {
        message: "message",
        window_id: "window_id",
        response_id: "compaction_response_id",
        replacement_history: "replacement_history",
    }
}

wire! {
    /// An item in the spelling of `exec` (snake case), the app-server (camel case) and paginated rollouts (both).
    pub(super) struct Item {
        kind: "type",
        legacy_kind: "item_type",
        id: "id",
        text: "text",
        content: "content",
        summary: "summary",
        summary_text: "summary_text",
        raw_content: "raw_content",
        phase: "phase",
        command: "command",
        cwd: "cwd",
        status: "status",
        aggregated_output: "aggregated_output",
        aggregated_output_camel: "aggregatedOutput",
        exit_code: "exit_code",
        exit_code_camel: "exitCode",
        duration: "duration" => Duration,
        duration_ms: "duration_ms",
        duration_ms_camel: "durationMs",
        changes: "changes",
        stdout: "stdout",
        stderr: "stderr",
        server: "server",
        tool: "tool",
        namespace: "namespace",
        arguments: "arguments",
        result: "result",
        error: "error",
        message: "message",
        content_items: "content_items",
        content_items_camel: "contentItems",
        success: "success",
        receivers: "receiver_thread_ids",
        receivers_camel: "receiverThreadIds",
        states: "agents_states",
        states_camel: "agentsStates",
        prompt: "prompt",
        agent_thread_id: "agent_thread_id",
        agent_thread_id_camel: "agentThreadId",
        sender_camel: "senderThreadId",
        activity: "kind",
        query: "query",
        action: "action",
        results: "results",
        path: "path",
        items: "items",
        name: "name",
        raw_output: "output",
        revised_prompt: "revised_prompt",
        revised_prompt_camel: "revisedPrompt",
        saved_path: "saved_path",
        saved_path_camel: "savedPath",
        failure: "failure",
    }
}

wire! {
    /// The state of a subagent: `{"completed":"…"}` in rollouts, `{"status":"completed","message":"…"}` elsewhere.
    pub(super) struct AgentState {
        status: "status",
        message: "message",
        completed: "completed",
        errored: "errored",
    }
}

wire! {
    /// The output of the tools that create and await subagents.
    pub(super) struct AgentAnswer { agent_id: "agent_id", status: "status", }
}

wire! {
    /// The notification about a subagent to its parent.
    pub(super) struct AgentNotice { agent_path: "agent_path", agent_id: "agent_id", status: "status", }
}

wire! {
    /// A line of `codex exec --json`, of either shape.
    pub(super) struct ExecLine {
        kind: "type",
        thread_id: "thread_id",
        session_id: "session_id",
        item: "item" => Item,
        usage: "usage",
        error: "error",
        message: "message",
        id: "id",
        msg: "msg",
        prompt: "prompt",
        workdir: "workdir",
        model: "model",
        approval: "approval",
        sandbox: "sandbox",
        provider: "provider",
    }
}

wire! {
    /// A message of the app-server's connection.
    pub(super) struct Message {
        id: "id",
        method: "method",
        params: "params",
        result: "result",
        error: "error",
        emitted_at_ms: "emittedAtMs",
    }
}

wire! {
    /// The parameters of a request or a notification.
    pub(super) struct Params {
        thread_id: "threadId",
        conversation_id: "conversationId",
        turn_id: "turnId",
        thread: "thread" => Thread,
        turn: "turn",
        item: "item" => Item,
        item_id: "itemId",
        call_id: "callId",
        input: "input",
        request_id: "requestId",
        token_usage: "tokenUsage",
        error: "error",
        will_retry: "willRetry",
        message: "message",
        summary: "summary",
        command: "command",
        cwd: "cwd",
        reason: "reason",
        server_name: "serverName",
        meta: "_meta" => ElicitationMeta,
        namespace: "namespace",
        tool: "tool",
        arguments: "arguments",
        file_changes: "fileChanges",
        permissions: "permissions",
        model: "model",
        effort: "effort",
        approval_policy: "approvalPolicy",
        sandbox_policy: "sandboxPolicy",
        settings: "threadSettings" => ThreadSettings,
        thread_name: "threadName",
        response_id: "responseId",
        usage: "usage",
        started_at_ms: "startedAtMs",
        item_text: "text",
        delta: "delta",
        client_info: "clientInfo",
    }
}

wire! {
    /// The purpose of an elicitation: Codex uses one to ask for approval of an MCP call.
    pub(super) struct ElicitationMeta {
        approval_kind: "codex_approval_kind",
        persist: "persist",
    }
}

wire! {
    pub(super) struct Thread {
        id: "id",
        session_id: "sessionId",
        forked_from_id: "forkedFromId",
        parent_thread_id: "parentThreadId",
        cli_version: "cliVersion",
        cwd: "cwd",
        model: "model",
        name: "name",
        agent_nickname: "agentNickname",
        source: "source",
        model_provider: "modelProvider",
        path: "path",
        created_at: "createdAt",
        git_info: "gitInfo",
    }
}

wire! {
    pub(super) struct Turn { id: "id", status: "status", error: "error", root_turn_id: "rootTurnId", }
}

wire! {
    /// Who a client is.
    pub(super) struct ClientInfo { name: "name", }
}

wire! {
    pub(super) struct ThreadUsage { total: "total", last: "last", }
}

wire! {
    /// The settings of a thread, also as the parameters of a turn and the answer to a thread's start have them.
    pub(super) struct ThreadSettings {
        model: "model",
        model_provider: "modelProvider",
        effort: "effort",
        reasoning_effort: "reasoningEffort",
        approval_policy: "approvalPolicy",
        sandbox: "sandbox",
        sandbox_policy: "sandboxPolicy",
        cwd: "cwd",
        collaboration_mode: "collaborationMode",
    }
}

wire! {
    /// The answer to a request, of either side.
    pub(super) struct RpcReply {
        thread: "thread" => Thread,
        turn: "turn" => Turn,
        model: "model",
        cwd: "cwd",
        approval_policy: "approvalPolicy",
        sandbox: "sandbox",
        effort: "reasoningEffort",
        user_agent: "userAgent",
        decision: "decision",
        action: "action",
        meta: "_meta" => ElicitationMeta,
        scope: "scope",
        permissions: "permissions",
        content_items: "contentItems",
        success: "success",
    }
}

wire! {
    /// A decision with details.
    pub(super) struct WideDecision {
        exec_policy: "acceptWithExecpolicyAmendment",
        network_policy: "applyNetworkPolicyAmendment" => NetworkDecision,
        exec_policy_v1: "approved_execpolicy_amendment",
    }
}

wire! {
    pub(super) struct NetworkDecision { amendment: "network_policy_amendment" => NetworkAmendment, }
}

wire! {
    pub(super) struct NetworkAmendment { action: "action", }
}

wire! {
    /// How the process of a server ended, in a note of our recorder.
    pub(super) struct ServerEnd { exit_code: "exit_code", signal: "signal", }
}

impl<'a> Item<'a> {
    pub(super) fn output(&self) -> Raw<'a> {
        self.aggregated_output.or(self.aggregated_output_camel)
    }

    pub(super) fn exit(&self) -> Raw<'a> {
        self.exit_code.or(self.exit_code_camel)
    }

    pub(super) fn receivers(&self) -> Raw<'a> {
        self.receivers.or(self.receivers_camel)
    }

    pub(super) fn states(&self) -> Raw<'a> {
        self.states.or(self.states_camel)
    }
}
