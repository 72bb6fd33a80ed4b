//! Selects the sessions of a list.

use std::collections::HashSet;

use steno_model::RunId;
use steno_views::digest::DigestState;

use crate::rows::SessionRow;

/// Tells whether a text contains a part, in upper or lower case.
#[must_use]
pub fn contains_part(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// Selects the sessions that a list shows. An empty filter selects all.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only sessions with an event at or after this time, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Only sessions that began before this time.
    pub until_ms: Option<i64>,
    /// Only sessions of a project whose path or name contains this.
    pub project: Option<String>,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Only sessions with a model whose name contains this.
    pub model: Option<String>,
    /// Only sessions on this branch.
    pub branch: Option<String>,
    /// Only sessions with a failed call, or that failed themselves.
    pub is_failed: bool,
    /// Only sessions that changed a file whose path ends with this.
    pub touched: Option<String>,
    /// Only sessions whose title, project or branch contains each of these words.
    pub words: Vec<String>,
    /// Only these sessions.
    pub sessions: Option<HashSet<RunId>>,
}

impl SessionFilter {
    /// Tells whether every session passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let texts = [&self.project, &self.agent, &self.model, &self.branch, &self.touched];
        texts.iter().all(|text| text.is_none())
            && self.since_ms.is_none()
            && self.until_ms.is_none()
            && !self.is_failed
            && self.words.is_empty()
            && self.sessions.is_none()
    }

    /// Tells whether a session passes, apart from the files that it changed.
    pub(crate) fn accepts(&self, row: &SessionRow) -> bool {
        let digest = &row.digest;
        let ms = |time: &Option<steno_model::Timestamp>| Some(time.as_ref()?.instant()?.as_millisecond());
        let contains = |text: Option<&str>, part: &str| text.is_some_and(|text| contains_part(text, part));
        let is_in =
            |wanted: &Option<String>, accepts: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(accepts);
        self.since_ms.is_none_or(|since| ms(&digest.last_at).is_some_and(|last| last >= since))
            && self.until_ms.is_none_or(|until| ms(&digest.started_at).is_some_and(|start| start < until))
            && is_in(&self.project, &|part| contains(row.project.as_deref(), part))
            && is_in(&self.agent, &|name| {
                digest.provider.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(name))
            })
            && is_in(&self.model, &|part| digest.models.iter().any(|model| contains(Some(model), part)))
            && is_in(&self.branch, &|name| digest.branch.as_deref() == Some(name))
            && (!self.is_failed || digest.failures > 0 || digest.state == DigestState::Failed)
            && self.words.iter().all(|word| {
                [&digest.title, &row.project, &digest.branch]
                    .into_iter()
                    .any(|text| contains(text.as_deref(), word))
            })
            && self.sessions.as_ref().is_none_or(|ids| ids.contains(&digest.id))
    }
}
