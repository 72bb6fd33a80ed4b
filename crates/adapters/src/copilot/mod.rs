//! Copilot CLI: the events of a session, from its file (`events.jsonl`) and from `copilot -p --output-format json`.
//!
//! `docs/adapters/copilot.md` lists what each surface lacks, and the versions seen. Both surfaces write the same events,
//! so one mapper reads them; `events` has what differs.

mod agents;
mod approvals;
mod calls;
mod events;
mod facts;
mod messages;
mod subagents;
mod turns;
mod usage;
mod waiting;
mod wire;

use crate::adapter::{Adapter, Source};
use crate::emit::AdapterInfo;

const PROVIDER: &str = "copilot";

/// The name for a record without a type.
const UNTYPED: &str = "untyped";

/// What session files can show. Failed requests that were made again are not written there.
static DISK: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "copilot_cli",
    adapter: "copilot/3",
    channel: "disk",
    carries: &["prompts", "calls", "results", "thinking", "usage", "compaction", "subagents", "approvals"],
    detail_name: "session_event",
};

/// What session files of older versions show.
static DISK_WITHOUT_APPROVALS: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "copilot_cli",
    adapter: "copilot/3",
    channel: "disk",
    carries: &["prompts", "calls", "results", "thinking", "usage", "compaction", "subagents"],
    detail_name: "session_event",
};

/// What the output can show: no approvals, and no usage in the versions seen.
static STREAM: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "copilot_cli",
    adapter: "copilot/3",
    channel: "stream",
    carries: &["prompts", "calls", "results", "thinking", "retries", "compaction", "subagents"],
    detail_name: "session_event",
};

/// Reads a session file, `events.jsonl`; subagents are in it too.
#[must_use]
pub fn events(source: Source) -> Adapter {
    let mapper = events::Events::new(&source, events::Channel::Disk);
    Adapter::new(source, Box::new(mapper))
}

/// Reads what `copilot -p --output-format json` prints.
///
/// The result is a separate run: the session's main run comes from its file.
#[must_use]
pub fn stream(source: Source) -> Adapter {
    let mapper = events::Events::new(&source, events::Channel::Stream);
    Adapter::new(source, Box::new(mapper))
}

#[cfg(test)]
mod tests {
    use steno_model::{Draft, Frame, RunId};

    use super::*;

    const START: &str = r#"{"type":"session.start","data":{"sessionId":"s1"},"id":"i0"}"#;

    /// Reads one event of each type; compares how many were passed over and how many became events.
    #[track_caller]
    fn check(kinds: &[&str], want: (u64, usize)) {
        assert!(kinds.is_sorted_by(|one, next| one < next), "{kinds:?}");
        let line = |kind: &&str| format!(r#"{{"type":"{kind}","data":{{}},"id":"{kind}"}}"#);
        let lines: Vec<String> = kinds.iter().map(line).collect();
        let text = format!("{START}\n{}\n", lines.join("\n"));
        let mut adapter = events(Source::named("s1"));
        let mut drafts: Vec<(RunId, Draft)> = Vec::new();
        adapter.feed(Frame::of_file(0, text.as_bytes()), &mut drafts);
        let completeness = adapter.completeness();
        assert_eq!((completeness.bookkeeping, drafts.len() - 1), want);
        assert_eq!(completeness.unknown.len(), 0);
    }

    #[test]
    fn listed_types_are_passed_over_or_become_facts() {
        check(&facts::BOOKKEEPING, (58, 0));
        check(&facts::FACTS, (0, 78));
    }
}
