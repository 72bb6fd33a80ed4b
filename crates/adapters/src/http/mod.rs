//! Model calls over HTTP: Messages of Anthropic, Responses and Chat Completions of `OpenAI`, `generateContent` of Gemini.
//!
//! `steno proxy` records exchanges, and this adapter reads its recordings; it also reads plain bodies of requests and
//! answers. One recording has the calls of any number of conversations: `client` and `threads` tell them apart.
//! A client sends the whole conversation with each request: `history` finds what is new in it. `anthropic`, `responses`,
//! `chat` and `gemini` know the four APIs, and give the same parts for all of them (`content`).
//! `docs/adapters/http.md` is the page.

mod answers;
mod anthropic;
mod chat;
mod class;
mod client;
mod content;
mod exchange;
mod gemini;
mod history;
mod mapper;
mod reply;
mod requests;
mod responses;
mod responses_items;
mod thread;
mod threads;
mod wire;

use steno_model::{Draft, EventType, Frame, RunId};

use crate::adapter::{Adapter, Source};
use crate::documents::DocumentShape;
use crate::emit::AdapterInfo;
use crate::sink::Sink;
use crate::wire::parse;

/// What an exchange shows: everything sent to the model and everything that it answers.
const CHANNEL: AdapterInfo = AdapterInfo {
    provider: "openai",
    entry_adapter: "openai_http",
    adapter: "http/3",
    channel: "http",
    carries: &["prompts", "calls", "results", "thinking", "usage", "retries"],
    detail_name: "http_record",
};

static OPENAI: AdapterInfo = CHANNEL;
static ANTHROPIC: AdapterInfo =
    AdapterInfo { provider: "anthropic", entry_adapter: "anthropic_http", ..CHANNEL };
static GEMINI: AdapterInfo = AdapterInfo { provider: "gemini", entry_adapter: "gemini_http", ..CHANNEL };
/// Model calls of Claude Code. They belong to the session of Claude Code's own file.
static CLAUDE_CODE: AdapterInfo =
    AdapterInfo { provider: "claude", entry_adapter: "anthropic_http", ..CHANNEL };
/// Model calls of Codex, in the same way.
static CODEX: AdapterInfo = AdapterInfo { provider: "codex", ..CHANNEL };
/// Model calls of Copilot CLI, in the same way, with the API of `OpenAI` or of Anthropic.
static COPILOT: AdapterInfo = AdapterInfo { provider: "copilot", ..CHANNEL };
static COPILOT_ANTHROPIC: AdapterInfo =
    AdapterInfo { provider: "copilot", entry_adapter: "anthropic_http", ..CHANNEL };

/// Returns which run each exchange of a recording belongs to. Exchanges that are not model calls belong to none.
#[must_use]
pub fn exchanges(source: Source, recording: &[u8]) -> Vec<(u64, RunId)> {
    let mut mapper = mapper::Http::new(&source);
    let log = mapper.log();
    let mut adapter = Adapter::new(source, Box::new(mapper)).of_conversation().read_once();
    adapter.feed(Frame::of_file(0, recording), &mut NoSink);
    adapter.finish(&mut NoSink);
    drop(adapter);
    log.try_iter().collect()
}

/// Tells whether a text is the body of a request to a model, or of its answer.
pub(crate) fn is_body(text: &str) -> bool {
    parse::<wire::BodyProbe<'_>>(text).is_ok_and(|probe| requests::Api::of_body(&probe).is_some())
}

/// A sink that wants nothing.
struct NoSink;

impl Sink for NoSink {
    fn draft(&mut self, _run: RunId, _draft: Draft) {}

    fn wants(&self, _event_type: EventType) -> bool {
        false
    }

    fn wants_whole(&self) -> bool {
        false
    }
}

/// Reads a recording of HTTP exchanges, or bodies of requests and answers, each on one line or on several.
#[must_use]
pub fn recording(source: Source) -> Adapter {
    let mapper = mapper::Http::new(&source);
    Adapter::new(source, Box::new(mapper)).of_documents(DocumentShape::Whole)
}
