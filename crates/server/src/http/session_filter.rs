//! The filters of sessions that several routes take.

use jiff::Timestamp;
use serde::Deserialize;
use steno_index::SessionFilter;
use steno_library::ListFilter;
use utoipa::IntoParams;

use super::Problem;

/// Which sessions a route is about. Each route has it beside its own parameters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionFilterQuery {
    /// Only sessions with an event since this time
    #[param(nullable = false, format = DateTime)]
    since: Option<String>,
    /// Only sessions that began before this time
    #[param(nullable = false, format = DateTime)]
    until: Option<String>,
    /// Only sessions of projects whose path contains this
    #[param(nullable = false)]
    project: Option<String>,
    /// Only sessions of this agent
    #[param(nullable = false)]
    agent: Option<String>,
    /// Only sessions with a model whose name contains this
    #[param(nullable = false)]
    model: Option<String>,
    /// Only sessions on this branch
    #[param(nullable = false)]
    branch: Option<String>,
    /// Only sessions that changed this file or directory
    #[param(nullable = false)]
    touched: Option<String>,
    /// Only sessions that failed or have a failed call
    #[param(nullable = false)]
    failed: Option<bool>,
    /// Only sessions that are being recorded, or grew within a minute
    #[param(nullable = false)]
    live: Option<bool>,
    /// Only sessions that the agent deleted, shortened or rewrote
    #[param(nullable = false)]
    gone: Option<bool>,
}

impl SessionFilterQuery {
    /// Reads the filters, with the words that titles must have.
    pub(super) fn read(self, words: &[&str]) -> Result<ListFilter, Problem> {
        let sessions = SessionFilter {
            since_ms: time("since", self.since.as_deref())?,
            until_ms: time("until", self.until.as_deref())?,
            project: self.project,
            agent: self.agent,
            model: self.model,
            branch: self.branch,
            is_failed: self.failed.unwrap_or(false),
            touched: self.touched,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            sessions: None,
        };
        let (is_live, is_gone) = (self.live.unwrap_or(false), self.gone.unwrap_or(false));
        Ok(ListFilter { sessions, is_live, is_gone })
    }
}

/// Reads a time.
pub(super) fn time(name: &str, text: Option<&str>) -> Result<Option<i64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let time: Option<Timestamp> = text.parse().ok();
    let wrong = || Problem::bad_request(format!("`{name}` must be a time like 2026-11-01T08:00:00Z"));
    Ok(Some(time.ok_or_else(wrong)?.as_millisecond()))
}
