//! The fields of MCP's messages that are read.

use crate::wire::wire;

wire! {
    /// The parameters and the result of `initialize`, and the note of our recorder.
    pub(super) struct Beginning {
        client_info: "clientInfo" as Object,
        server_info: "serverInfo" as Object,
        server: "server" as Text,
        session: "session" as Text,
        run: "run" as Text,
    }
}

wire! {
    pub(super) struct Program { name: "name", version: "version", }
}

wire! {
    /// The parameters of `tools/call`.
    pub(super) struct ToolCall { name: "name" as Text, arguments: "arguments", meta: "_meta" => Meta, }
}

wire! {
    /// What clients say about a call. Claude Code names its id; Codex names the call, its thread and its turn.
    pub(super) struct Meta {
        claude_call: "claudecode/toolUseId" as Text,
        codex_call: "callId" as Text,
        codex_call_snake: "call_id" as Text,
        thread: "threadId" as Text,
        thread_snake: "thread_id" as Text,
        turn: "turn_id" as Text,
        codex_turn: "x-codex-turn-metadata" => TurnMeta,
    }
}

wire! {
    pub(super) struct TurnMeta { thread: "thread_id" as Text, turn: "turn_id" as Text, }
}

wire! {
    /// The result of `tools/call`.
    pub(super) struct ToolResult { content: "content", is_error: "isError" as Flag, structured: "structuredContent", }
}

wire! {
    pub(super) struct Part { kind: "type", text: "text", }
}

wire! {
    /// The parameters of `notifications/cancelled`.
    pub(super) struct CancelNotice { request: "requestId", }
}
