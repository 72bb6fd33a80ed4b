//! Recognises provider, surface and version of a file or stream by its content, not its name.

use steno_model::json::JsonString;

use crate::conversation::{Message, is_envelope};
use crate::repair::{self, PieceContent};
use crate::wire::{RawField as _, parse, wire};

/// The most bytes of a source that are examined.
pub const HEAD_BYTES_MAX: usize = 1024 * 1024;

/// What a provider's records look like in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Surface {
    /// A session file of Claude Code.
    ClaudeDisk,
    /// Claude Code's `stream-json`, with or without the control protocol.
    ClaudeStream,
    /// A rollout of Codex.
    CodexRollout,
    /// `codex exec --json`.
    CodexExec,
    /// Codex's app-server.
    CodexAppServer,
    /// A chat file of Gemini CLI; recognised, not yet read.
    GeminiChat,
    /// Gemini CLI's `stream-json`; recognised, not yet read.
    GeminiStream,
    /// Copilot CLI's events, from its file or its output; recognised, not yet read.
    CopilotEvents,
}

impl Surface {
    /// Returns the provider's name.
    #[must_use]
    pub fn provider(self) -> &'static str {
        match self {
            Self::ClaudeDisk | Self::ClaudeStream => "claude",
            Self::CodexRollout | Self::CodexExec | Self::CodexAppServer => "codex",
            Self::GeminiChat | Self::GeminiStream => "gemini",
            Self::CopilotEvents => "copilot",
        }
    }

    /// Returns the surface's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDisk => "disk",
            Self::ClaudeStream | Self::GeminiStream => "stream",
            Self::CodexRollout => "rollout",
            Self::CodexExec => "exec",
            Self::CodexAppServer => "app-server",
            Self::GeminiChat => "chat",
            Self::CopilotEvents => "events",
        }
    }
}

/// What was recognised about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SniffResult {
    /// The surface of its records.
    pub surface: Surface,
    /// Whether both sides of a connection were recorded, each message with its direction.
    pub is_conversation: bool,
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
        schema: "schema_version",
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
    let first = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
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
    let mut found: Option<SniffResult> = None;
    let mut lines = head.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        // The usual line is one record and need not be split.
        if !str::from_utf8(line).is_ok_and(|text| look(text, &mut found)) {
            for piece in repair::pieces(line, |fields| repair::is_record(fields) || is_envelope(fields)) {
                let PieceContent::Object { text, .. } = &piece.content else { continue };
                look(text, &mut found);
            }
        }
        if found.as_ref().is_some_and(|found| found.version.is_some()) {
            break;
        }
        if found.is_none() && lines.peek().is_none() {
            // The first line is longer than the examined bytes: its first fields may be enough.
            look(&beginning_of(line), &mut found);
        }
    }
    found
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
    let message = Message::read(text).ok();
    let text = message.as_ref().map_or(text, |message| message.text);
    let Ok(probe) = parse::<Probe<'_>>(text) else { return false };
    if found.is_none() {
        let is_conversation = message.is_some();
        *found = surface_of(&probe).map(|surface| SniffResult { surface, is_conversation, version: None });
    }
    if let Some(found) = found {
        found.version = version_of(found.surface, &probe);
    }
    true
}

fn surface_of(probe: &Probe<'_>) -> Option<Surface> {
    let kind = probe.kind.text().unwrap_or_default();
    if probe.method.text().is_some()
        || (probe.id.is_some() && (probe.result.is_some() || probe.error.is_some()))
    {
        // With `jsonrpc` it is another protocol of the same family.
        return probe.jsonrpc.is_none().then_some(Surface::CodexAppServer);
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

/// Recognises providers that have no adapter yet, so that their records are not taken for another's.
fn surface_of_others(probe: &Probe<'_>, kind: &str) -> Option<Surface> {
    if probe.session_camel.is_some() && probe.project_hash.is_some() {
        return Some(Surface::GeminiChat);
    }
    if kind == "init" && probe.session_snake.is_some() && probe.subtype.is_none() {
        return Some(Surface::GeminiStream);
    }
    (kind.contains('.') && probe.data.is_some() && probe.id.is_some()).then_some(Surface::CopilotEvents)
}

fn version_of(surface: Surface, probe: &Probe<'_>) -> Option<JsonString> {
    match surface {
        Surface::ClaudeDisk => probe.version.string(),
        Surface::ClaudeStream => probe.claude_version.string(),
        Surface::CodexRollout => probe.payload.and_then(|meta| meta.version.string()),
        Surface::CopilotEvents => probe.data.and_then(|data| data.version.string()),
        Surface::CodexExec | Surface::GeminiChat | Surface::GeminiStream => None,
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
    fn surfaces_are_told_by_content() {
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
    }

    #[test]
    fn what_nobody_wrote_is_nobodys() {
        for text in [
            "",
            "hello",
            "[1]",
            r#"{"session_id":"s"}"#,
            r#"{"jsonrpc":"2.0","method":"x"}"#,
            r#"{"seq":1,"run_id":"r","type":"run.started","timestamp":"t","payload":null}"#,
            r#"{"seq":1,"run_id":"r","type":"run.started","timestamp":"t","payload":{}}"#,
        ] {
            check(text, None);
        }
    }

    #[test]
    fn archives_and_spines_are_no_sessions_whatever_their_lines_look_like() {
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
        // One that is longer than what is looked at.
        let cut = spine.replace("0.1", &"x".repeat(9_000));
        assert_eq!(no_session(&cut.as_bytes()[..8_000]), Some(NoSession::Spine));
        assert_eq!(no_session(line.as_bytes()), None);
    }

    #[test]
    fn what_stands_before_the_first_that_tells_is_passed_over() {
        let disk = r#"{"type":"user","uuid":"u","sessionId":"s","version":"2.1.3"}"#;
        check(
            &format!("{}{disk}", "{\"junk\":1}\n".repeat(1_000)),
            Some((Surface::ClaudeDisk, Some("2.1.3"))),
        );
        check(&format!("\u{feff}{disk}"), Some((Surface::ClaudeDisk, Some("2.1.3"))));
    }

    #[test]
    fn a_first_line_that_is_cut_is_told_by_its_first_fields() {
        let long = format!(
            r#"{{"type":"user","sessionId":"s","version":"2.1.3","message":{{"content":"{}"#,
            "x".repeat(9_000)
        );
        check(&long, Some((Surface::ClaudeDisk, Some("2.1.3"))));
    }
}
