//! Codex: rollout files, `codex exec --json`, and the app-server's JSON-RPC, of versions 0.20 to 0.166.
//!
//! `docs/adapters/codex.md` is the page: which surface carries what, how records become events, what is lost. Each
//! surface has a mapper; what they have in common is here once, since all of them show the same items in different
//! spellings.

mod agents;
mod app_notices;
mod app_requests;
mod app_server;
mod calls;
mod connection;
mod deltas;
mod events;
mod exec;
mod items;
mod legacy;
mod notes;
mod outbox;
mod patch_commands;
mod prompt;
mod rejections;
mod responses;
mod rollout;
mod session;
mod shapes;
pub mod spine;
mod thread;
mod turn_ids;
mod twins;
mod usage;
mod waits;
mod wire;

use steno_model::RunId;

use crate::adapter::{Adapter, Source};
use crate::run::Class;

pub(crate) const PROVIDER: &str = "codex";

/// The name of entries' adapter, for all surfaces (R26).
const ENTRY_ADAPTER: &str = "codex_app_server";

/// This adapter and its version.
const ADAPTER: &str = "codex/4";

/// Reads a rollout file: `rollout-<time>-<thread>.jsonl`, decompressed.
#[must_use]
pub fn rollout(source: Source) -> Adapter {
    let mapper = rollout::Rollout::new(&source);
    Adapter::new(source, Box::new(mapper))
}

/// Reads what `codex exec --json` prints.
#[must_use]
pub fn exec(source: Source) -> Adapter {
    let mapper = exec::Exec::new(&source);
    Adapter::new(source, Box::new(mapper))
}

/// Reads both directions of a connection to `codex app-server`; what the server sends is the agent's lane.
#[must_use]
pub fn app_server(source: Source) -> Adapter {
    let mapper = app_server::AppServer::new(&source);
    Adapter::new(source, Box::new(mapper))
}

/// Returns what a tool does, by its name.
pub(crate) fn class_of(name: &str) -> Class {
    responses::class_of(name, "")
}

/// Returns the name of a notice that Codex puts between the user's words; `None` if a person wrote it.
pub(crate) fn notice(text: &str) -> Option<&'static str> {
    prompt::notice(text)
}

/// Returns the run that a thread's session file is. What is said on the thread elsewhere names it in `session_run_id`.
#[must_use]
pub fn session_run(thread: &str) -> RunId {
    session::thread_run(thread)
}

#[cfg(test)]
mod tests {
    use steno_model::{Draft, Frame};

    use super::*;

    const META: &str = r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#;
    const STARTED: &str = r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#;

    /// Reads a first line and then one of each kind; compares how many were skipped and how many became events.
    #[track_caller]
    fn check(mut adapter: Adapter, first: &str, lines: &[String], want: (u64, usize)) {
        let text = format!("{first}\n{}\n", lines.join("\n"));
        let mut drafts: Vec<(RunId, Draft)> = Vec::new();
        adapter.feed(Frame::of_file(0, text.as_bytes()), &mut drafts);
        let completeness = adapter.completeness();
        assert_eq!((completeness.bookkeeping, drafts.len() - 1), want);
        assert_eq!(completeness.unknown.len(), 0);
    }

    fn lines(kinds: &[&str], line: impl Fn(&str) -> String) -> Vec<String> {
        assert!(kinds.is_sorted_by(|one, next| one < next), "{kinds:?}");
        kinds.iter().map(|kind| line(kind)).collect()
    }

    #[test]
    fn bookkeeping_types_give_no_events_and_fact_types_give_one_each() {
        let source = || Source::named("s1");
        let record = |kind: &str| format!(r#"{{"type":"{kind}","payload":{{}}}}"#);
        let event = |kind: &str| format!(r#"{{"type":"event_msg","payload":{{"type":"{kind}"}}}}"#);
        let notice = |kind: &str| format!(r#"{{"method":"{kind}","params":{{"threadId":"t1"}}}}"#);
        check(rollout(source()), META, &lines(&rollout::BOOKKEEPING, record), (2, 0));
        check(rollout(source()), META, &lines(&rollout::FACTS, record), (0, 4));
        check(rollout(source()), META, &lines(&events::TWINS, event), (0, 0));
        check(rollout(source()), META, &lines(&events::BOOKKEEPING, event), (44, 0));
        check(rollout(source()), META, &lines(&events::FACTS, event), (0, 18));
        check(app_server(source()), STARTED, &lines(&app_notices::BOOKKEEPING, notice), (50, 0));
        check(app_server(source()), STARTED, &lines(&app_notices::FACTS, notice), (0, 30));
    }
}
