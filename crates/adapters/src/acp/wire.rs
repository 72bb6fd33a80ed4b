//! The fields of ACP's messages that are read.

use crate::wire::wire;

wire! {
    /// The parameters of requests and notices.
    pub(super) struct Params {
        session: "sessionId" as Text,
        update: "update" as Object,
        prompt: "prompt",
        tool_call: "toolCall" => Update,
        options: "options" as List,
        cwd: "cwd" as Text,
    }
}

wire! {
    /// An update of a session; a request for permission has the call in the same form.
    pub(super) struct Update {
        kind: "sessionUpdate" as Text,
        content: "content",
        message: "messageId",
        call: "toolCallId" as Text,
        title: "title" as Text,
        name: "name" as Text,
        tool_kind: "kind" as Text,
        status: "status" as Text,
        locations: "locations" as List,
        raw_input: "rawInput",
        raw_output: "rawOutput",
        stop_reason: "stopReason" as Text,
        summary: "summary" as Text,
    }
}

wire! {
    /// The result of a request.
    pub(super) struct Reply {
        session: "sessionId" as Text,
        stop_reason: "stopReason" as Text,
        agent: "agentInfo" as Object,
        usage: "usage" => Usage,
        meta: "_meta" => ReplyMeta,
        outcome: "outcome" => Choice,
    }
}

wire! {
    pub(super) struct Program { name: "name", version: "version", }
}

wire! {
    /// Counts over the whole session, as Copilot CLI gives them.
    pub(super) struct Usage {
        input: "inputTokens",
        output: "outputTokens",
        total: "totalTokens",
        thought: "thoughtTokens",
        cached_read: "cachedReadTokens",
        cached_write: "cachedWriteTokens",
    }
}

wire! {
    pub(super) struct ReplyMeta { quota: "quota" => Quota, }
}

wire! {
    /// Counts of the turn, as Gemini CLI gives them.
    pub(super) struct Quota { tokens: "token_count" as Object, models: "model_usage" as List, }
}

wire! {
    pub(super) struct ModelUsage { model: "model", }
}

wire! {
    /// The answer to a request for permission.
    pub(super) struct Choice { outcome: "outcome" as Text, option: "optionId" as Text, }
}

wire! {
    /// An option of a request for permission.
    pub(super) struct PermissionOption { id: "optionId", kind: "kind", }
}

wire! {
    /// A block of content.
    pub(super) struct Block { kind: "type", text: "text", uri: "uri", content: "content", }
}

wire! {
    /// What tools return in a form of their own.
    pub(super) struct RawOutput { message: "message", contents: "contents" as List, }
}

wire! {
    /// A part of what Copilot's tools return.
    pub(super) struct OutputPart { exit_code: "exitCode", }
}
