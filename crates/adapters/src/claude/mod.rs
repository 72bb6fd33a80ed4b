//! Claude Code: session files of every era, its stream of JSON lines, and its control protocol.
//!
//! `docs/adapters/claude.md` lists what each surface lacks, and the versions seen.

mod agents;
mod content;
mod control;
mod disk;
mod facts;
mod frames;
mod messages;
mod progress;
mod prompt;
mod repeated_prompts;
mod results;
mod shapes;
mod stream;
mod stream_facts;
mod stream_turns;
mod stream_user;
mod user;
mod wire;

use crate::adapter::{Adapter, Source};
use crate::emit::AdapterInfo;
use crate::run::Class;

const PROVIDER: &str = "claude";
/// The name for a record without a type.
const UNTYPED: &str = "untyped";

/// What session files and the control protocol can show: everything.
const CHANNEL: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "claude_agent_sdk",
    adapter: "claude/6",
    channel: "disk",
    carries: &[
        "prompts",
        "calls",
        "results",
        "thinking",
        "usage",
        "retries",
        "compaction",
        "subagents",
        "approvals",
    ],
    detail_name: "sdk_entry",
};

/// What session files of older versions show.
const CARRIES_WITHOUT_APPROVALS: &[&str] =
    &["prompts", "calls", "results", "thinking", "usage", "retries", "compaction", "subagents"];

/// Returns what a tool does, by its name.
pub(crate) fn class_of(name: &str) -> Class {
    messages::class_of(name)
}

/// Returns the name of a notice that Claude Code puts between the user's words; `None` if a person wrote it.
pub(crate) fn notice(text: &str) -> Option<&'static str> {
    match prompt::kind_of(text) {
        prompt::Kind::Prompt => None,
        prompt::Kind::Interrupt => Some("interrupt"),
        prompt::Kind::Notice(name) => Some(name),
        prompt::Kind::TaskNotice => Some("task_notification"),
    }
}

/// Reads a session file, of the main agent or of a subagent.
#[must_use]
pub fn disk(source: Source) -> Adapter {
    let mapper = disk::Disk::new(&source);
    Adapter::new(source, Box::new(mapper))
}

/// Reads the output of `--output-format stream-json`, and the input if it was captured too.
///
/// The agent's output is one lane, its input the other. The result is a separate run: the session's main run comes from
/// its file.
#[must_use]
pub fn stream(source: Source) -> Adapter {
    let mapper = stream::Stream::new(&source);
    Adapter::new(source, Box::new(mapper))
}
