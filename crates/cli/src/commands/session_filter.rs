//! Reads the filters of sessions that several commands take.

use steno_index::SessionFilter;
use steno_library::ListFilter;
use steno_model::{Provider, Vocabulary as _};

use crate::args::FilterArgs;
use crate::failure::Failure;
use crate::time_words::{now, read_time};

/// What else `--agent` takes: programs that are not known by name, by the API, the protocol or the way that was recorded.
const OTHER_SOURCES: [&str; 4] = ["anthropic", "openai", "mcp", "command"];

/// Returns the failure for a filter that no session passes.
pub fn no_session_matches(filter: &ListFilter) -> Failure {
    let hint = "`steno ls` without filters lists all sessions, `steno search` looks into their texts";
    let hint = unknown_agent_hint(filter.sessions.agent.as_deref()).unwrap_or_else(|| hint.to_owned());
    Failure::empty("no session matches".to_owned()).with_hint(hint)
}

/// Returns the names of the agents as a hint, if a filter names another one.
pub fn unknown_agent_hint(agent: Option<&str>) -> Option<String> {
    let agents = Provider::ALL.iter().map(|known| known.as_str());
    let names: Vec<&str> = agents.chain(OTHER_SOURCES).collect();
    let agent =
        agent.filter(|agent| !names.iter().any(|known| known.eq_ignore_ascii_case(&agent_name(agent))))?;
    Some(format!("unknown agent `{agent}`; known agents: {}", names.join(", ")))
}

/// Returns the name of an agent by its name or title, such as `Claude Code`; other words are unchanged.
pub fn agent_name(word: &str) -> String {
    let known = Provider::ALL.iter().find(|known| known.title().eq_ignore_ascii_case(word));
    known.map_or(word, |known| known.as_str()).to_owned()
}

/// Reads the filters of sessions, and the words that their titles must have.
pub fn read_filter(args: &FilterArgs, words: &[String]) -> Result<ListFilter, Failure> {
    let now = now();
    let sessions = SessionFilter {
        since_ms: read_time(args.since.as_deref(), &now)?,
        until_ms: read_time(args.until.as_deref(), &now)?,
        project: args.project.clone(),
        agent: args.agent.as_deref().map(agent_name),
        model: args.model.clone(),
        branch: args.branch.clone(),
        is_failed: args.failed,
        touched: args.touched.clone(),
        words: words.to_vec(),
        sessions: None,
    };
    Ok(ListFilter { sessions, is_live: args.live, is_gone: args.gone })
}
