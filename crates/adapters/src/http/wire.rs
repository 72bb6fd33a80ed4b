//! The objects of a recording, and those that several APIs share.

use crate::wire::wire;

wire! {
    /// A record of a recording, or the body of a request or an answer.
    pub(super) struct HttpRecord {
        http: "http",
        exchange: "exchange",
        method: "method",
        path: "path",
        headers: "headers" => Headers,
        body: "body",
        text: "text",
        base64: "base64",
        omitted: "omitted",
        status: "status",
        event: "event",
        data: "data",
        outcome: "outcome",
        error: "error",
        cut: "cut",
        upgrade: "upgrade",
        params: "params",
    }
}

wire! {
    /// The headers that identify the client.
    pub(super) struct Headers {
        user_agent: "user_agent",
        claude_session: "x_claude_code_session_id",
        claude_agent: "x_claude_code_agent_id",
        thread: "thread_id",
        session: "session_id",
        conversation: "conversation_id",
        parent_thread: "x_codex_parent_thread_id",
    }
}

wire! {
    /// The fields by which the body of a request or an answer is recognised.
    pub(super) struct BodyProbe {
        object: "object",
        kind: "type",
        role: "role",
        messages: "messages",
        system: "system",
        max_tokens: "max_tokens",
        anthropic_version: "anthropic_version",
        input: "input",
        contents: "contents",
        candidates: "candidates",
        usage_metadata: "usageMetadata",
        choices: "choices",
        content: "content",
        request: "request",
        response: "response",
        error: "error",
        model: "model",
    }
}

wire! {
    /// An error of any API.
    pub(super) struct ApiError {
        kind: "type",
        code: "code",
        status: "status",
        message: "message",
    }
}

wire! {
    /// A body that is an error.
    pub(super) struct ErrorBody { error: "error" => ApiError, message: "message", detail: "detail", }
}
