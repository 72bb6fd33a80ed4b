//! MCP: the messages between an agent and a server of tools, as `steno mcp` records them.
//!
//! `docs/adapters/mcp.md` is the page: what is recorded, how a call is linked to its session, what is passed over. A
//! connection shows calls and results, and nothing of what the model said; its runs name the session that they belong to.

mod connection;
mod requests;
mod wire;

use crate::adapter::{Adapter, Source};

pub(crate) const PROVIDER: &str = "mcp";

/// This adapter and its version.
const ADAPTER: &str = "mcp/1";

/// Reads both directions of a connection to an MCP server; what the server sends is the agent's lane.
#[must_use]
pub fn connection(source: Source) -> Adapter {
    let mapper = connection::Connection::new(&source);
    Adapter::new(source, Box::new(mapper))
}

#[cfg(test)]
mod tests {
    use steno_model::{Draft, Frame, RunId};

    use super::*;

    /// Reads a call and then one line of each method, and compares how many were passed over and how many became events.
    #[track_caller]
    fn check(methods: &[&str], want: (u64, usize)) {
        assert!(methods.is_sorted_by(|one, next| one < next), "{methods:?}");
        let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"add"}}"#;
        let lines = methods.iter().map(|method| format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
        let text = format!("{call}\n{}\n", lines.collect::<Vec<_>>().join("\n"));
        let mut adapter = connection(Source::named("s1"));
        let mut drafts: Vec<(RunId, Draft)> = Vec::new();
        adapter.feed(
            Frame { lane: steno_model::Lane::ToAgent, ..Frame::of_file(0, text.as_bytes()) },
            &mut drafts,
        );
        let completeness = adapter.completeness();
        // The run and the call come first.
        assert_eq!((completeness.bookkeeping, drafts.len() - 2), want);
        assert_eq!(completeness.unknown.len(), 0);
    }

    #[test]
    fn listed_methods_are_passed_over_and_the_others_are_facts() {
        check(&requests::BOOKKEEPING, (requests::BOOKKEEPING.len() as u64, 0));
        check(&requests::FACTS, (0, requests::FACTS.len()));
    }
}
