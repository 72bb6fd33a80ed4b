//! Reads the filters of sessions that several commands take.

use steno_index::SessionFilter;
use steno_library::ListFilter;

use crate::args::FilterArgs;
use crate::failure::Failure;
use crate::time_words::{FORMS, now, parse_time};

/// Reads the filters of sessions, and the words that their titles must have.
pub fn read_filter(args: &FilterArgs, words: &[String]) -> Result<ListFilter, Failure> {
    let now = now();
    let time = |text: &Option<String>| -> Result<Option<i64>, Failure> {
        let Some(text) = text else { return Ok(None) };
        let time = parse_time(text, &now).ok_or_else(|| {
            Failure::usage(format!("`{text}` is not a time")).with_hint(format!("use {FORMS}"))
        })?;
        Ok(Some(time.as_millisecond()))
    };
    let sessions = SessionFilter {
        since_ms: time(&args.since)?,
        until_ms: time(&args.until)?,
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
