//! Recognises provider, surface and version of a file or stream by its content, not its name.

mod cut;
mod probe;
#[cfg(test)]
mod tests;

use memchr::{memchr, memmem};
use steno_model::json::JsonString;
use steno_model::wrap::WRAP_MAGIC;

use self::cut::{beginning_of, closed};
use self::probe::{Probe, surface_of, version_of};
use crate::conversation::{Message, is_envelope};
use crate::http;
use crate::repair::{self, PieceContent};
use crate::rpc::{BEGAN, rpc_surface, rpc_version};
use crate::surface::Surface;
use crate::wire::{RawField as _, parse};

/// The most bytes of a source that are examined.
pub const HEAD_BYTES_MAX: usize = 1024 * 1024;

/// In how many bytes a chat of Gemini CLI names itself.
const CHAT_FIELDS_BYTES_MAX: usize = 512;

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
