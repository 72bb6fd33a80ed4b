//! Recognises provider, surface and version of a file or stream by its content, not its name.

use memchr::{memchr, memmem};
use serde_json::value::RawValue;
use steno_model::json::JsonString;
use steno_model::wrap::WRAP_MAGIC;

use crate::conversation::{Message, is_envelope};
use crate::http;
use crate::repair::{self, PieceContent};
use crate::rpc::{BEGAN, rpc_surface, rpc_version};
use crate::surface::Surface;
use crate::wire::{RawField as _, parse, wire};

/// The most bytes of a source that are examined.
pub const HEAD_BYTES_MAX: usize = 1024 * 1024;

/// In how many bytes a chat of Gemini CLI names itself.
const CHAT_FIELDS_BYTES_MAX: usize = 512;

/// How deep the comma may be at which a cut object is closed.
const CLOSED_DEPTH_MAX: usize = 4;

/// What was recognised about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SniffResult {
    /// The surface of its records.
    pub surface: Surface,
    /// Whether both sides of a connection were recorded, each message with its direction.
    pub is_conversation: bool,
    /// Whether it is a stream of server-sent events as it came.
    pub is_event_stream: bool,
    /// The version of the program that wrote them, if recorded.
    pub version: Option<JsonString>,
}

wire! {
    /// What tells records apart.
    struct Probe {
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
        result: "result" => Initialized,
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
    struct Meta { version: "cli_version", }
}

wire! {
    struct Initialized { user_agent: "userAgent", }
}

wire! {
    struct Data { version: "copilotVersion", }
}

wire! {
    struct Stats { models: "models", tools: "tools", }
}

wire! {
    struct Old { kind: "type", }
}

/// Files whose lines look like an agent's but that are not sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSession {
    /// A tar archive: its content is not the file of one session.
    Archive,
    /// A segment of a trace spine, which repeats the content of sessions.
    Spine,
}

/// Recognises files that are not sessions, although their lines may look like one.
#[must_use]
pub fn no_session(head: &[u8]) -> Option<NoSession> {
    /// Where every header of a tar archive has these letters, the old ones of GNU too.
    const MAGIC: (usize, &[u8]) = (257, b"ustar");
    if head.get(MAGIC.0..).is_some_and(|rest| rest.starts_with(MAGIC.1)) {
        return Some(NoSession::Archive);
    }
    let first = lines_of(head).find(|line| !line.trim_ascii().is_empty())?;
    // Most lines have no such field, and need not be parsed.
    memmem::find(first, b"\"schema_version\"")?;
    let text = str::from_utf8(first).map_or_else(|_| beginning_of(first), str::to_owned);
    let is_spine = |text: &str| {
        let probe = parse::<Probe<'_>>(text).ok();
        probe.is_some_and(|probe| {
            probe.schema.text().is_some_and(|schema| schema.starts_with("codex_trace_spine"))
        })
    };
    (is_spine(&text) || is_spine(&beginning_of(first))).then_some(NoSession::Spine)
}

/// Recognises a source by its beginning; `None` if the provider is unknown or it is not a session.
#[must_use]
pub fn sniff(head: &[u8]) -> Option<SniffResult> {
    if no_session(head).is_some() {
        return None;
    }
    if head.starts_with(WRAP_MAGIC) {
        return Some(SniffResult {
            surface: Surface::Wrap,
            is_conversation: false,
            is_event_stream: false,
            version: None,
        });
    }
    let mut found: Option<SniffResult> = None;
    look_at_document(head, &mut found);
    // Another record over many lines is not the file of a session.
    found = found.filter(|found| found.surface.is_document());
    if found.is_some() {
        return found;
    }
    let mut looked = 0;
    let mut lines = lines_of(head).peekable();
    while let Some(line) = lines.next() {
        // The first event of a stream is enough.
        if let Some(data) = line.strip_prefix(b"data:")
            && found.is_none()
            && str::from_utf8(data).is_ok_and(|text| look(text, &mut found))
        {
            return found.map(|found| SniffResult { is_event_stream: true, ..found });
        }
        // The usual line is one record and need not be split.
        if !str::from_utf8(line).is_ok_and(|text| look(text, &mut found)) {
            for piece in repair::pieces(line, |fields| repair::is_record(fields) || is_envelope(fields)) {
                let PieceContent::Object { text, .. } = &piece.content else { continue };
                look(text, &mut found);
            }
        }
        looked += usize::from(found.is_some());
        if found.as_ref().is_some_and(|found| !may_have_version(found) && !is_unsettled(found, looked)) {
            break;
        }
        if found.is_none() && lines.peek().is_none() {
            // The first line is longer than the examined bytes: its first fields may be enough.
            look(&beginning_of(line), &mut found);
        }
    }
    found
}

/// Returns the lines of a text without their newlines, as `split` does.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let end = memchr(b'\n', bytes);
        rest = end.map(|end| &bytes[end + 1..]);
        Some(&bytes[..end.unwrap_or(bytes.len())])
    })
}

/// Tells whether a later record may name the version. Gemini CLI never writes its version.
fn may_have_version(found: &SniffResult) -> bool {
    let is_geminis =
        matches!(found.surface, Surface::GeminiChat | Surface::GeminiStream | Surface::GeminiOutput);
    found.version.is_none() && !is_geminis
}

/// Tells whether a later record may show that a source is another surface: Copilot's output has the same records as its
/// file, and others that are never written to a file.
fn is_unsettled(found: &SniffResult, looked: usize) -> bool {
    const LOOKED_MAX: usize = 2;
    found.surface == Surface::CopilotEvents && looked < LOOKED_MAX
}

/// Returns the fields that a cut object begins with, as an object; what was cut in the middle is left out.
fn beginning_of(line: &[u8]) -> String {
    const FIELDS_BYTES_MAX: usize = 4096;
    let text = String::from_utf8_lossy(&line[..line.len().min(FIELDS_BYTES_MAX)]);
    let ends = text.char_indices().filter(|(_, letter)| *letter == ',').map(|(at, _)| at);
    let whole = |at: usize| format!("{}}}", &text[..at]);
    let ends: Vec<usize> = ends.collect();
    let closed = ends.into_iter().rev().map(whole).find(|text| parse::<Probe<'_>>(text).is_ok());
    closed.unwrap_or_default()
}

/// Takes what one record tells; false if it is not a record.
fn look(text: &str, found: &mut Option<SniffResult>) -> bool {
    // Most records are in no envelope, and need not be parsed as one.
    let direction = memmem::find(text.as_bytes(), b"\"dir\"");
    let message = direction.and_then(|_| Message::read(text).ok());
    let text = message.as_ref().map_or(text, |message| message.text);
    let Ok(probe) = parse::<Probe<'_>>(text) else { return false };
    let is_ours = message.as_ref().is_some_and(|message| message.is_recorders);
    let is_rpc = probe.jsonrpc.is_some() || (is_ours && probe.method.is(BEGAN));
    if found.is_none() {
        let is_conversation = message.is_some();
        let is_body = || !is_conversation && http::is_body(text);
        let surface = if is_rpc { rpc_surface(text) } else { surface_of(&probe) };
        let surface = surface.or_else(|| is_body().then_some(Surface::Http));
        *found = surface.map(|surface| SniffResult {
            surface,
            is_conversation,
            is_event_stream: false,
            version: None,
        });
    }
    if let Some(found) = found {
        if found.surface == Surface::CopilotEvents && surface_of(&probe) == Some(Surface::CopilotStream) {
            found.surface = Surface::CopilotStream;
        }
        let version =
            || if is_rpc { rpc_version(found.surface, text) } else { version_of(found.surface, &probe) };
        found.version = found.version.take().or_else(version);
    }
    true
}

fn surface_of(probe: &Probe<'_>) -> Option<Surface> {
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

/// Recognises a document over many lines, which begins with a line that has only a bracket.
fn look_at_document(head: &[u8], found: &mut Option<SniffResult>) {
    let mut at = 0;
    while at < head.len() {
        let end = memchr(b'\n', &head[at..]).map_or(head.len(), |newline| at + newline + 1);
        let line = &head[at..end];
        let text = line.strip_prefix(repair::BYTE_ORDER_MARK).unwrap_or(line);
        if text.trim_ascii() == b"{" && text.ends_with(b"\n") {
            let rest = &head[at + (line.len() - text.len())..];
            // A chat of Gemini CLI names itself before its messages, so they need not be read.
            look(&closed(&rest[..rest.len().min(CHAT_FIELDS_BYTES_MAX)]), found);
            if found.as_ref().is_some_and(|found| found.surface == Surface::GeminiChat) {
                return;
            }
            *found = None;
            let whole = repair::first_object(rest).map(repair::to_text);
            if !whole.is_some_and(|text| look(&text, found)) {
                look(&closed(rest), found);
            }
            return;
        }
        at = end;
    }
}

/// Returns the beginning of an object that was cut, with its brackets closed: all of it, or up to the last comma.
fn closed(begin: &[u8]) -> String {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let (mut open, mut at_comma) = (Vec::new(), (0, Vec::new()));
    for (at, byte) in begin.iter().enumerate() {
        match byte {
            _ if is_in_string => {
                is_in_string = *byte != b'"' || is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
            }
            b'"' => is_in_string = true,
            b'{' | b'[' => open.push(if *byte == b'{' { '}' } else { ']' }),
            b'}' | b']' if open.pop().is_none() => break,
            b',' if open.len() <= CLOSED_DEPTH_MAX => at_comma = (at, open.clone()),
            _ => {}
        }
    }
    let close = |(end, open): (usize, Vec<char>)| {
        let text = String::from_utf8_lossy(&begin[..end]);
        text.chars().chain(open.into_iter().rev()).collect::<String>()
    };
    // Only the last bracket is missing if a file without a newline at its end is read line by line.
    let all = close((begin.len(), open));
    if parse::<Probe<'_>>(&all).is_ok() { all } else { close(at_comma) }
}

fn version_of(surface: Surface, probe: &Probe<'_>) -> Option<JsonString> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, want: Option<(Surface, Option<&str>)>) {
        let found = sniff(head.as_bytes());
        let found = found.map(|found| (found.surface, found.version.map(|text| text.to_text().into_owned())));
        assert_eq!(
            found,
            want.map(|(surface, version)| (surface, version.map(str::to_owned))),
            "{head:.100}"
        );
    }

    #[test]
    fn sniff_recognizes_exchanges_over_http() {
        let http = Some((Surface::Http, None));
        check(r#"{"dir":"recorder","t":1.5,"ticket":1,"msg":{"method":"steno/http","params":{}}}"#, http);
        check(r#"{"dir":"c2s","t":1.5,"ticket":2,"msg":{"http":"request","exchange":1}}"#, http);
        check(r#"{"model":"m","messages":[{"role":"user","content":"Hi."}]}"#, http);
        check(r#"{"contents":[{"role":"user","parts":[]}]}"#, http);
        check(r#"{"model":"m","input":"Hi."}"#, http);
        check(r#"{"id":"x","object":"chat.completion","choices":[]}"#, http);
        check("event: x\ndata: {\"type\":\"message_start\",\"message\":{}}\n", http);
        assert!(sniff(b"data: {\"object\":\"response\"}\n").unwrap().is_event_stream);
        // Without a model it is a sample for training, or an item of something else.
        check(r#"{"messages":[{"role":"user","content":"Hi."}]}"#, None);
        check(r#"{"type":"message","role":"assistant","content":[]}"#, None);
        check("data: none\n", None);
    }

    #[test]
    fn sniff_recognizes_each_surface() {
        let disk = r#"{"type":"user","uuid":"u","sessionId":"s","version":"2.1.3"}"#;
        check(disk, Some((Surface::ClaudeDisk, Some("2.1.3"))));
        check(r#"{"type":"system","session_id":"s","sessionId":"s"}"#, Some((Surface::ClaudeDisk, None)));
        check(
            r#"{"type":"system","subtype":"init","session_id":"s","claude_code_version":"2"}"#,
            Some((Surface::ClaudeStream, Some("2"))),
        );
        check(
            r#"{"timestamp":"t","type":"session_meta","payload":{"cli_version":"0.1"}}"#,
            Some((Surface::CodexRollout, Some("0.1"))),
        );
        check(r#"{"id":"i","timestamp":"t","instructions":null}"#, Some((Surface::CodexRollout, None)));
        check(r#"{"type":"thread.started","thread_id":"t"}"#, Some((Surface::CodexExec, None)));
        check(r#"{"workdir":"w","sandbox":"s"}"#, Some((Surface::CodexExec, None)));
        check(
            r#"{"id":0,"result":{"userAgent":"x/0.166.0 (y)"}}"#,
            Some((Surface::CodexAppServer, Some("0.166.0"))),
        );
        check(r#"{"sessionId":"s","projectHash":"p"}"#, Some((Surface::GeminiChat, None)));
        check(r#"{"type":"init","session_id":"s"}"#, Some((Surface::GeminiStream, None)));
        check(r#"{"type":"session.start","data":{},"id":"i"}"#, Some((Surface::CopilotEvents, None)));
        check(
            r#"{"type":"text","timestamp":7,"sessionID":"s","part":{}}"#,
            Some((Surface::OpenCodeStream, None)),
        );
        let failed = r#"{"type":"error","timestamp":7,"sessionID":"s","error":{"name":"APIError"}}"#;
        check(failed, Some((Surface::OpenCodeStream, None)));
        let result = r#"{"type":"result","sessionId":"s","exitCode":0}"#;
        check(result, Some((Surface::CopilotStream, None)));
        let torn = r#"{"type":"tool_result","timestamp":"t","tool_id":"x","status":"success"}"#;
        check(torn, Some((Surface::GeminiStream, None)));
        check(r#"{"session_id":"s","response":"Hello."}"#, Some((Surface::GeminiOutput, None)));
        check(
            r#"{"response":"Hello.","stats":{"models":{},"tools":{}}}"#,
            Some((Surface::GeminiOutput, None)),
        );
        check(r#"{"session_id":"s","error":{"type":"Error"}}"#, Some((Surface::GeminiOutput, None)));
    }

    #[test]
    fn sniff_recognizes_documents_over_many_lines() {
        let chat = "{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"p\",\n  \"messages\": [\n";
        check(chat, Some((Surface::GeminiChat, None)));
        check(&format!("\u{feff}{chat}"), Some((Surface::GeminiChat, None)));
        let whole = format!("{chat}    {{\"id\": \"}}\"}}\n  ]\n}}");
        check(&whole, Some((Surface::GeminiChat, None)));
        let output = "{\n  \"session_id\": \"s\",\n  \"response\": \"Hello.\",\n  \"stats\": {";
        check(output, Some((Surface::GeminiOutput, None)));
        check(&format!("YOLO mode {{\n}}\n{output}"), Some((Surface::GeminiOutput, None)));
        check("{\n  \"name\": \"package\"\n}\n", None);
        let request =
            "{\n  \"model\": \"m\",\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"a, \\\"b\"}";
        check(&format!("{request}\n  ]\n}}"), Some((Surface::Http, None)));
        // Longer than the bytes that are looked at, or without a newline at its end.
        check(&format!("{request},\n    {{\"role\": \"assi"), Some((Surface::Http, None)));
        check(&format!("{request}\n  ],\n  \"stream\": true\n"), Some((Surface::Http, None)));
        check(
            "{\n  \"contents\": [\n    {\"role\": \"user\", \"parts\": [{\"te",
            Some((Surface::Http, None)),
        );
        check("{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"a\"}\n  ]\n}\n", None);
    }

    #[test]
    fn output_of_copilot_has_records_that_its_file_never_has() {
        let start = r#"{"type":"session.start","data":{"copilotVersion":"1.0.24"},"id":"i","parentId":null}"#;
        let user = r#"{"type":"user.message","data":{},"id":"u","parentId":"i"}"#;
        let live = r#"{"type":"assistant.intent","data":{},"id":"e","ephemeral":true}"#;
        check(&format!("{start}\n{user}\n"), Some((Surface::CopilotEvents, Some("1.0.24"))));
        check(&format!("{user}\n{live}\n"), Some((Surface::CopilotStream, None)));
        check(&format!("{start}\n{live}\n{user}\n"), Some((Surface::CopilotStream, Some("1.0.24"))));
        // A file is not searched for them to its end.
        check(&format!("{start}\n{user}\n{live}\n"), Some((Surface::CopilotEvents, Some("1.0.24"))));
    }

    #[test]
    fn sniff_returns_none_for_unknown_content() {
        for text in [
            "",
            "hello",
            "[1]",
            r#"{"session_id":"s"}"#,
            r#"{"type":"text","timestamp":"t","sessionID":"s","part":{}}"#,
            r#"{"type":"text","timestamp":7,"sessionID":"s","part":7}"#,
            r#"{"type":"text","sessionID":"s","messageID":"m","text":"Hi."}"#,
            r#"{"jsonrpc":"2.0","method":"x"}"#,
            r#"{"seq":1,"run_id":"r","type":"run.started","timestamp":"t","payload":null}"#,
            r#"{"seq":1,"run_id":"r","type":"run.started","timestamp":"t","payload":{}}"#,
        ] {
            check(text, None);
        }
    }

    #[test]
    fn archives_and_spines_are_not_sessions() {
        let line = r#"{"timestamp":"t","type":"session_meta","payload":{"cli_version":"0.1"}}"#;
        let archive =
            |magic: &str| format!("{:\0<257}{magic}{:\0<249}\n{line}\n", "bundle/rollout/x.jsonl", "");
        check(&archive("usta\0r"), Some((Surface::CodexRollout, Some("0.1"))));
        for magic in ["ustar\0", "ustar "] {
            check(&archive(magic), None);
            assert_eq!(no_session(archive(magic).as_bytes()), Some(NoSession::Archive));
        }
        let spine = line.replacen('{', r#"{"schema_version":"codex_trace_spine_v1","#, 1);
        check(&spine, None);
        assert_eq!(no_session(spine.as_bytes()), Some(NoSession::Spine));
        // A first line that is longer than the bytes that are read.
        let cut = spine.replace("0.1", &"x".repeat(9_000));
        assert_eq!(no_session(&cut.as_bytes()[..8_000]), Some(NoSession::Spine));
        assert_eq!(no_session(line.as_bytes()), None);
    }

    #[test]
    fn leading_unrelated_lines_are_skipped() {
        let disk = r#"{"type":"user","uuid":"u","sessionId":"s","version":"2.1.3"}"#;
        check(
            &format!("{}{disk}", "{\"junk\":1}\n".repeat(1_000)),
            Some((Surface::ClaudeDisk, Some("2.1.3"))),
        );
        check(&format!("\u{feff}{disk}"), Some((Surface::ClaudeDisk, Some("2.1.3"))));
    }

    #[test]
    fn cut_first_line_is_recognized_by_its_first_fields() {
        let long = format!(
            r#"{{"type":"user","sessionId":"s","version":"2.1.3","message":{{"content":"{}"#,
            "x".repeat(9_000)
        );
        check(&long, Some((Surface::ClaudeDisk, Some("2.1.3"))));
    }
}
