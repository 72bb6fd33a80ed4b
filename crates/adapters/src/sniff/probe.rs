//! Recognises a surface and a version by the fields of one record.

use serde_json::value::RawValue;
use steno_model::json::JsonString;

use crate::surface::Surface;
use crate::wire::{RawField as _, wire};

wire! {
    /// What tells records apart.
    pub(super) struct Probe {
        kind: "type",
        subtype: "subtype",
        session_camel: "sessionId",
        session_snake: "session_id",
        leaf: "leafUuid",
        timestamp: "timestamp",
        payload: "payload" => Meta,
        id: "id",
        instructions: "instructions",
        record_type: "record_type",
        method: "method",
        jsonrpc: "jsonrpc",
        result: "result" => InitializeResult,
        error: "error",
        thread: "thread_id",
        message: "msg" => Old,
        work_dir: "workdir",
        sandbox: "sandbox",
        version: "version",
        claude_version: "claude_code_version",
        request: "request",
        response: "response",
        data: "data" => Data,
        run: "run_id",
        project_hash: "projectHash",
        stats: "stats" => Stats,
        role: "role",
        tool: "tool_id",
        status: "status",
        schema: "schema_version",
        ephemeral: "ephemeral",
        exit_code: "exitCode",
        http: "http",
        exchange: "exchange",
        session_upper: "sessionID",
        part: "part",
    }
}

wire! {
    pub(super) struct Meta { version: "cli_version", }
}

wire! {
    pub(super) struct InitializeResult { user_agent: "userAgent", }
}

wire! {
    pub(super) struct Data { version: "copilotVersion", }
}

wire! {
    pub(super) struct Stats { models: "models", tools: "tools", }
}

wire! {
    pub(super) struct Old { kind: "type", }
}

/// Returns the surface that has such records.
pub(super) fn surface_of(probe: &Probe<'_>) -> Option<Surface> {
    let kind = probe.kind.text().unwrap_or_default();
    if probe.method.is("steno/http") || (probe.http.text().is_some() && probe.exchange.number().is_some()) {
        return Some(Surface::Http);
    }
    if probe.method.text().is_some()
        || (probe.id.is_some() && (probe.result.is_some() || probe.error.is_some()))
    {
        return Some(Surface::CodexAppServer);
    }
    if matches!(&*kind, "thread.started" | "turn.started" | "turn.completed" | "turn.failed")
        || kind.starts_with("item.")
        || probe.message.is_some_and(|old| old.kind.is_some())
        || (probe.work_dir.is_some() && probe.sandbox.is_some())
    {
        return Some(Surface::CodexExec);
    }
    if let Some(other) = surface_of_others(probe, &kind) {
        return Some(other);
    }
    let is_bare_rollout = probe.kind.is_none() && probe.id.is_some() && probe.instructions.is_some();
    let is_enveloped = probe.payload.is_some() && probe.timestamp.is_some() && probe.run.is_none();
    if is_bare_rollout || probe.record_type.is("state") || is_enveloped {
        return Some(Surface::CodexRollout);
    }
    if probe.session_snake.is_some() && probe.session_camel.is_none() && !kind.is_empty()
        || matches!(&*kind, "control_request" | "control_response" if probe.request.is_some() || probe.response.is_some())
    {
        return Some(Surface::ClaudeStream);
    }
    let is_title = kind == "summary" && probe.leaf.is_some();
    let is_bare = matches!(&*kind, "file-history-snapshot" | "file-history-delta");
    (is_title || is_bare || (probe.session_camel.is_some() && !kind.is_empty()))
        .then_some(Surface::ClaudeDisk)
}

/// Recognises other providers first, so that their records are not taken for another's.
fn surface_of_others(probe: &Probe<'_>, kind: &str) -> Option<Surface> {
    if probe.session_camel.is_some() && probe.project_hash.is_some() {
        return Some(Surface::GeminiChat);
    }
    if is_gemini_stream(probe, kind) {
        return Some(Surface::GeminiStream);
    }
    if is_gemini_output(probe) {
        return Some(Surface::GeminiOutput);
    }
    if is_opencode(probe, kind) {
        return Some(Surface::OpenCodeStream);
    }
    let is_copilots = kind.contains('.') && probe.data.is_some() && probe.id.is_some();
    let is_result = kind == "result" && probe.session_camel.is_some() && probe.exit_code.is_some();
    match () {
        () if is_result || (is_copilots && probe.ephemeral.is_true()) => Some(Surface::CopilotStream),
        () => is_copilots.then_some(Surface::CopilotEvents),
    }
}

fn is_gemini_stream(probe: &Probe<'_>, kind: &str) -> bool {
    // Without its first line a stream names no session.
    let has_no_ids = probe.session_snake.is_none() && probe.session_camel.is_none() && probe.id.is_none();
    let is_later = has_no_ids && probe.timestamp.is_some();
    match kind {
        "init" => probe.session_snake.is_some() && probe.subtype.is_none(),
        "message" => is_later && probe.role.is_some(),
        "tool_use" | "tool_result" => is_later && probe.tool.is_some(),
        _ => false,
    }
}

fn is_opencode(probe: &Probe<'_>, kind: &str) -> bool {
    let is_object = |raw: &RawValue| raw.get().starts_with('{');
    let has_content =
        probe.part.is_some_and(is_object) || (kind == "error" && probe.error.is_some_and(is_object));
    has_content
        && !kind.is_empty()
        && probe.session_upper.text().is_some()
        && probe.timestamp.number().is_some()
}

fn is_gemini_output(probe: &Probe<'_>) -> bool {
    let has_text = probe.response.text().is_some();
    let is_failed = probe.error.is_some_and(|error| error.get().starts_with('{'));
    let has_sums = probe.stats.is_some_and(|stats| stats.models.is_some() && stats.tools.is_some());
    probe.kind.is_none() && (has_sums || (probe.session_snake.is_some() && (has_text || is_failed)))
}

/// Returns the version that a record names.
pub(super) fn version_of(surface: Surface, probe: &Probe<'_>) -> Option<JsonString> {
    match surface {
        Surface::ClaudeDisk => probe.version.string(),
        Surface::ClaudeStream => probe.claude_version.string(),
        Surface::CodexRollout => probe.payload.and_then(|meta| meta.version.string()),
        Surface::CopilotEvents | Surface::CopilotStream => probe.data.and_then(|data| data.version.string()),
        Surface::CodexExec
        | Surface::GeminiChat
        | Surface::GeminiStream
        | Surface::GeminiOutput
        | Surface::OpenCodeStream
        | Surface::Acp
        | Surface::Mcp
        | Surface::Http
        | Surface::Wrap => None,
        Surface::CodexAppServer => {
            // Like `client/0.166.0 (…)`.
            let agent = probe.result.and_then(|result| result.user_agent.text())?;
            let version = agent.split_once('/')?.1.split(' ').next()?;
            Some(version.into())
        }
    }
}
