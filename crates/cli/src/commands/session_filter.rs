//! Reads the filters of sessions that several commands take.

use steno_index::SessionFilter;
use steno_library::ListFilter;

use crate::args::FilterArgs;
use crate::failure::Failure;
use crate::time_words::{now, read_time};

/// Reads the filters of sessions, and the words that their titles must have.
pub fn read_filter(args: &FilterArgs, words: &[String]) -> Result<ListFilter, Failure> {
    let now = now();
    let sessions = SessionFilter {
        since_ms: read_time(args.since.as_deref(), &now)?,
        until_ms: read_time(args.until.as_deref(), &now)?,
        project: args.project.clone(),
        agent: args.agent.clone(),
        model: args.model.clone(),
        branch: args.branch.clone(),
        is_failed: args.failed,
        touched: args.touched.clone(),
        words: words.to_vec(),
        sessions: None,
    };
    Ok(ListFilter { sessions, is_live: args.live, is_gone: args.gone })
}
