//! The Agent Client Protocol: the messages between an editor and an agent, versions 1 and 2.
//!
//! `docs/adapters/acp.md` is the page: what is recorded, what the channel lacks, what is passed over. A connection has
//! several sessions; each is a run that names the agent's own session.

mod calls;
mod connection;
mod content;
mod permissions;
mod requests;
mod session;
mod updates;
mod usage;
mod wire;

use crate::adapter::{Adapter, Source};

pub(crate) const PROVIDER: &str = "acp";

/// This adapter and its version.
const ADAPTER: &str = "acp/1";

/// Reads both directions of a connection between a client and its agent.
#[must_use]
pub fn connection(source: Source) -> Adapter {
    let mapper = connection::Connection::new(&source);
    Adapter::new(source, Box::new(mapper))
}

#[cfg(test)]
mod tests {
    use steno_model::{Draft, Frame, Lane, RunId};

    use super::*;

    /// Reads an update that begins a run and then one line of each name; compares how many were passed over and how many
    /// became events.
    #[track_caller]
    fn check(lane: Lane, names: &[&str], message: impl Fn(&str) -> String, want: (u64, usize)) {
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
        let first = format!("{}\n", update("plan"));
        let rest: Vec<String> = names.iter().map(|name| message(name) + "\n").collect();
        let mut adapter = connection(Source::named("s1"));
        let mut drafts: Vec<(RunId, Draft)> = Vec::new();
        adapter.feed(Frame::of_file(0, first.as_bytes()), &mut drafts);
        let before = drafts.len();
        let rest = rest.concat();
        let rest = Frame { lane, ..Frame::of_file(first.len() as u64, rest.as_bytes()) };
        adapter.feed(rest, &mut drafts);
        let completeness = adapter.completeness();
        assert_eq!((completeness.bookkeeping, drafts.len() - before), want);
        assert_eq!(completeness.unknown.len(), 0, "{:?}", completeness.unknown);
    }

    fn update(kind: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}"}}}}}}"#
        )
    }

    #[test]
    fn listed_names_are_passed_over_and_the_others_are_facts() {
        let method =
            |name: &str| format!(r#"{{"jsonrpc":"2.0","method":"{name}","params":{{"sessionId":"s"}}}}"#);
        check(Lane::ToAgent, &requests::BOOKKEEPING, method, (requests::BOOKKEEPING.len() as u64, 0));
        check(Lane::ToAgent, &requests::FACTS, method, (0, requests::FACTS.len()));
        check(Lane::FromAgent, &updates::BOOKKEEPING, update, (updates::BOOKKEEPING.len() as u64, 0));
        check(Lane::FromAgent, &updates::FACTS, update, (0, updates::FACTS.len()));
    }
}
