//! Gemini CLI: chat files of every era, its stream of JSON lines, and its output as one JSON document.
//!
//! `docs/adapters/gemini.md` lists what each surface lacks, and the versions seen.

mod calls;
mod chat;
mod content;
mod lists;
mod messages;
mod output;
mod prompt;
mod results;
mod session;
mod stream;
mod usage;
mod wire;

use crate::adapter::{Adapter, Source};
use crate::documents::DocumentShape;
use crate::emit::AdapterInfo;

const PROVIDER: &str = "gemini";

/// How chat files are framed: releases before the append log write one document with a list of messages.
pub(crate) const CHAT_SHAPE: DocumentShape = DocumentShape::Listing("messages");

/// What chat files can show.
const CHANNEL: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "gemini_cli",
    adapter: "gemini/5",
    channel: "disk",
    carries: &["prompts", "calls", "results", "thinking", "usage", "compaction", "subagents"],
    detail_name: "chat_record",
};

/// Reads a chat file: a document that is rewritten, or a log of records, of the main agent or of a subagent.
#[must_use]
pub fn chat(source: Source) -> Adapter {
    let mapper = chat::Chat::new(&source);
    Adapter::new(source, Box::new(mapper)).of_documents(CHAT_SHAPE)
}

/// Reads the output of `--output-format stream-json`.
///
/// The result is a separate run: the session's main run comes from its chat file.
#[must_use]
pub fn stream(source: Source) -> Adapter {
    let mapper = stream::Stream::new(&source);
    Adapter::new(source, Box::new(mapper))
}

/// Reads the output of `--output-format json`, which may stand after other text.
#[must_use]
pub fn output(source: Source) -> Adapter {
    let mapper = output::Output::new(&source);
    Adapter::new(source, Box::new(mapper)).of_documents(DocumentShape::Whole)
}
