//! Claude Code: session files of every era, its stream of JSON lines, and its control protocol.
//!
//! What is lost on each, and which versions were seen, is in `docs/adapters/claude.md`.

mod agents;
mod content;
mod control;
mod disk;
mod facts;
mod frames;
mod messages;
mod prompt;
mod results;
mod shapes;
mod stream;
mod stream_facts;
mod stream_turns;
mod stream_user;
mod twins;
mod user;
mod waiting;
mod wire;

use crate::adapter::{Adapter, Source};

const PROVIDER: &str = "claude";
const ADAPTER: &str = "claude/1";
const ENTRY_ADAPTER: &str = "claude_agent_sdk";
/// What a record without a type is called.
const UNTYPED: &str = "untyped";
const DETAIL_NAME: &str = "sdk_entry";

/// Reads a session file, of the main agent or of a subagent.
#[must_use]
pub fn disk(source: Source) -> Adapter {
    let mapper = disk::Disk::new(&source);
    Adapter::new(source, Box::new(mapper))
}

/// Reads what Claude Code prints with `--output-format stream-json`, and what it is sent if that was captured too.
///
/// The agent's output is one lane, its input the other. A run of its own comes out: the session's own is its file's.
#[must_use]
pub fn stream(source: Source) -> Adapter {
    let mapper = stream::Stream::new(&source);
    Adapter::new(source, Box::new(mapper))
}
