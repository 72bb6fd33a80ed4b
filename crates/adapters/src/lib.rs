//! Turns the records of agents into drafts of events: one folder per provider, and the parts that all share.
//!
//! A source is a file or a stream of one agent. Its bytes come as frames, cut anywhere; an [`Adapter`] joins them to
//! lines, reads each as a record of its provider, and passes drafts of events to a [`Sink`], with the bytes that each
//! was made from. Import, tailing and live capture use the same adapter, so they give the same events.
//!
//! ```
//! use steno_adapters::{Source, open, sniff};
//! use steno_model::{EventType, Frame};
//!
//! let file = br#"{"type":"user","uuid":"u1","sessionId":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-06-08T08:14:42.123Z","message":{"role":"user","content":"Fix the build."}}
//! {"type":"dream","sessionId":"550e8400-e29b-41d4-a716-446655440000"}
//! "#;
//! let sniffed = sniff(file).expect("a session file of Claude Code");
//! let mut adapter = open(&sniffed, Source::named("s1")).expect("a surface that can be read");
//! let mut drafts = Vec::new();
//! adapter.feed(Frame::of_file(0, file), &mut drafts);
//! adapter.finish(&mut drafts);
//!
//! let types: Vec<_> = drafts.iter().map(|(_, draft)| draft.event_type()).collect();
//! use EventType::{MessageUser, RunStarted, StepCompleted, StepStarted};
//! assert_eq!(types, [RunStarted, StepStarted, MessageUser, StepCompleted]);
//! assert_eq!(adapter.completeness().unknown["dream"], 1);
//! ```
//!
//! # How a record becomes events
//! `lines` finds the lines and `repair` splits unusual ones: two records on one line, a torn record before a whole one,
//! raw control characters, bytes that are not UTF-8. `wire` reads a provider's object in one pass, the fields that we
//! use as raw JSON. A mapper (`claude`, `codex`, `copilot`) knows what they mean and holds the state of the session: its
//! [runs](steno_model::RunId), turns and open calls. `emit` has all that a mapper can write, and gives each draft its
//! path, time and evidence.
//!
//! # Promises
//! - Pure: no file, clock, network, thread or environment; the same frames give the same drafts, however they are cut.
//! - Nothing in a source makes an adapter fail or panic, and no good record is lost next to a bad one.
//! - Unknown types become steps of kind `unknown` and are counted; record types without information about the work are
//!   on a list that the provider's page in `docs/adapters` explains.
//! - Ends are never invented. [`Adapter::pause`] reads a last line that has no newline, [`Adapter::finish`] also what has
//!   waited for a session's name; neither closes anything.
//! - Foreign values are kept as they came: numbers, key order, duplicate keys, lone surrogates.
//!
//! # Restart
//! [`Position`](steno_model::Position)s of one source are ordered as its events are. After a crash the source is fed
//! again from its beginning, and drafts up to the last position written are dropped: each event is written once, also
//! when the crash came between two events of one record. A source that was rewritten comes with the next generation:
//! records that were read before give no event again, a step says that it was rewritten, and another names each record
//! that it has lost, as soon as one behind it shows that it was left out. Records that are missing at the end of a
//! generation may still be written again; they are named when the next generation begins.

pub mod acp;
mod adapter;
pub mod claude;
pub mod codex;
mod conversation;
pub mod copilot;
mod documents;
mod emit;
#[cfg(test)]
mod example;
pub mod gemini;
pub mod http;
mod lines;
pub mod mcp;
pub mod opencode;
mod patches;
mod pending;
mod record_bounds;
mod repair;
mod repeats;
mod requests;
mod rpc;
mod run;
mod shapes;
mod sink;
mod sniff;
mod surface;
mod version;
mod wire;
mod wrap;

pub use adapter::{Adapter, Completeness, Source};
pub use record_bounds::{RecordAt, RecordFraming, SourceLine, SourceLines};
pub use sink::{AdapterEntry, Sink};
pub use sniff::{HEAD_BYTES_MAX, NoSession, SniffResult, no_session, sniff};
pub use surface::Surface;
pub use version::{AdapterAge, adapter_age, adapter_versions};

/// Opens the adapter for a sniff result; `None` for surfaces that are recognised but not yet read.
#[must_use]
pub fn open(sniffed: &SniffResult, source: Source) -> Option<Adapter> {
    let adapter = adapter_of(sniffed.surface, source);
    Some(match (sniffed.is_conversation, sniffed.is_event_stream) {
        (true, _) => adapter.of_conversation(),
        (false, true) => adapter.of_events(),
        (false, false) => adapter,
    })
}

/// Makes the adapter of a surface.
fn adapter_of(surface: Surface, source: Source) -> Adapter {
    match surface {
        Surface::ClaudeDisk => claude::disk(source),
        Surface::ClaudeStream => claude::stream(source),
        Surface::CodexRollout => codex::rollout(source),
        Surface::CodexExec => codex::exec(source),
        Surface::CodexAppServer => codex::app_server(source),
        Surface::GeminiChat => gemini::chat(source),
        Surface::GeminiStream => gemini::stream(source),
        Surface::GeminiOutput => gemini::output(source),
        Surface::CopilotEvents => copilot::events(source),
        Surface::CopilotStream => copilot::stream(source),
        Surface::OpenCodeStream => opencode::stream(source),
        Surface::Http => http::recording(source),
        Surface::Acp => acp::connection(source),
        Surface::Mcp => mcp::connection(source),
        Surface::Wrap => wrap::wrap(source),
    }
}
