//! Gemini CLI's objects, as far as they are used.

use crate::wire::wire;

wire! {
    lists
    /// A record of a chat file: the header, a message, an update, or the fields of a document outside its messages.
    pub(super) struct ChatRecord {
        session_id: "sessionId" as Text,
        project_hash: "projectHash" as Text,
        start_time: "startTime" as Text,
        kind: "kind" as Text,
        directories: "directories" as List,
        summary: "summary" as Text,
        set: "$set" as Object,
        rewind_to: "$rewindTo" as Text,
        id: "id",
        timestamp: "timestamp" as Text,
        message_type: "type" as Text,
        content: "content",
        display_content: "displayContent",
        thoughts: "thoughts" of ThoughtRecord,
        tokens: "tokens" as Object,
        model: "model" as Text,
        tool_calls: "toolCalls" of ToolCall,
    }
}

wire! {
    /// A thought of the model's, as its message keeps it.
    pub(super) struct ThoughtRecord {
        subject: "subject" as Text,
        description: "description" as Text,
    }
}

wire! {
    /// A call in a message.
    pub(super) struct ToolCall {
        id: "id",
        name: "name" as Text,
        args: "args",
        result: "result",
        status: "status" as Text,
        timestamp: "timestamp" as Text,
        agent_id: "agentId" as Text,
        display_name: "displayName" as Text,
        result_display: "resultDisplay",
    }
}

wire! {
    /// What a call shows about its subagent.
    pub(super) struct AgentDisplay {
        agent_name: "agentName",
        state: "state",
        terminate_reason: "terminateReason",
    }
}

wire! {
    /// What the user is shown of an edit.
    pub(super) struct EditDisplay { diff: "fileDiff", }
}

wire! {
    /// The arguments of a call that begins a subagent.
    pub(super) struct AgentArgs {
        agent_name: "agent_name",
    }
}

wire! {
    /// A part of a message's content.
    pub(super) struct Part {
        text: "text" as Text,
        thought: "thought",
        function_call: "functionCall" => FunctionCall,
        function_response: "functionResponse" => FunctionResponse,
        inline_data: "inlineData" => Blob,
        file_data: "fileData" => Blob,
    }
}

wire! {
    /// A call as the model made it.
    pub(super) struct FunctionCall {
        id: "id",
        name: "name" as Text,
        args: "args",
    }
}

wire! {
    /// The result of a call as the model sees it.
    pub(super) struct FunctionResponse {
        id: "id",
        name: "name" as Text,
        response: "response",
    }
}

wire! {
    /// A picture or another file.
    pub(super) struct Blob {
        mime_type: "mimeType",
        data: "data",
        file_uri: "fileUri",
    }
}

wire! {
    /// A line of `stream-json`.
    pub(super) struct StreamLine {
        kind: "type" as Text,
        timestamp: "timestamp" as Text,
        session_id: "session_id" as Text,
        model: "model" as Text,
        role: "role" as Text,
        content: "content" as Text,
        delta: "delta" as Flag,
        tool_name: "tool_name" as Text,
        tool_id: "tool_id",
        parameters: "parameters",
        status: "status" as Text,
        output: "output",
        error: "error" => ErrorReport,
        severity: "severity" as Text,
        message: "message" as Text,
        stats: "stats" as Object,
    }
}

wire! {
    /// Why something failed.
    pub(super) struct ErrorReport {
        kind: "type" as Text,
        message: "message" as Text,
        code: "code",
    }
}

wire! {
    /// The document of `--output-format json`.
    pub(super) struct OutputDocument {
        session_id: "session_id" as Text,
        response: "response" as Text,
        stats: "stats" => Stats,
        error: "error" => ErrorReport,
        warnings: "warnings" as List,
    }
}

wire! {
    /// The sums of a process.
    pub(super) struct Stats {
        models: "models" as Object,
        tools: "tools" as Object,
        files: "files" as Object,
    }
}

wire! {
    /// The sums of one model.
    pub(super) struct ModelStats {
        tokens: "tokens" as Object,
        roles: "roles" => RoleStats,
    }
}

wire! {
    /// The sums of one model, by role.
    pub(super) struct RoleStats {
        main: "main" => Sums,
    }
}

wire! {
    /// The sums of one model for one role.
    pub(super) struct Sums {
        tokens: "tokens" as Object,
    }
}
