//! Says which sessions the agents deleted, shortened or rewrote.

use std::collections::HashMap;

use jiff::Timestamp;
use steno_library::{Library, ListFilter, ListedSession, LossKind};
use steno_model::RunId;
use steno_views::{count, cut};

use crate::failure::Failure;
use crate::id_lines::{project_name, shortest_part};
use crate::output::notice;
use crate::runs;
use crate::settings::Settings;

/// How many sessions are named.
const NAMES_MAX: usize = 3;
/// How many columns of a title are shown.
const TITLE_COLUMNS: usize = 40;

/// Names the sessions of a store that the agents deleted, shortened or rewrote. An index is not made for that.
pub fn notice_losses(settings: &Settings) {
    let Ok(Some(store)) = runs::open_store(settings) else { return };
    let library = Library::new(Some(store));
    if library.has_index() {
        // The pass has reported what is wrong with the store.
        let lines = LossReporter::default().lines(&library, &settings.store_flags());
        lines.unwrap_or_default().iter().for_each(|line| notice(line));
    }
}

/// The losses that were reported.
#[derive(Default)]
pub struct LossReporter {
    known: HashMap<RunId, LossKind>,
}

impl LossReporter {
    /// Returns a line for each session that was lost since the last time, and the command that lists them; no line if
    /// nothing was. If there are many, only the latest sessions are named. `store_flags` are the flags that name the store.
    pub fn lines(&mut self, library: &Library, store_flags: &str) -> Result<Vec<String>, Failure> {
        let filter = ListFilter { is_gone: true, ..ListFilter::default() };
        let listed = library.list(&filter, Timestamp::now())?;
        let kind = |session: &ListedSession| session.loss.as_ref().map(|loss| (session.id, loss.kind));
        let now: HashMap<RunId, LossKind> = listed.iter().filter_map(kind).collect();
        let before = std::mem::replace(&mut self.known, now);
        let new: Vec<&ListedSession> = listed
            .iter()
            .filter(|session| kind(session).map(|(_, kind)| kind) != before.get(&session.id).copied())
            .collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let ids = library.index()?;
        let name = |session: &&ListedSession| {
            let digest = session.row.as_ref().map(|row| &row.digest);
            let agent = digest.and_then(|digest| digest.provider.as_deref()).unwrap_or("the agent");
            let what = session.loss.as_ref().map_or("", |loss| loss.kind.name());
            let title = digest.and_then(|digest| digest.title.as_deref()).unwrap_or("no title");
            let project = project_name(session.row.as_ref().and_then(|row| row.project.as_deref()));
            let project = if project.is_empty() { project } else { format!("{project}, ") };
            let id = shortest_part(ids, session.id);
            format!("{agent} {what} {id}  {}  ({project}kept here)", cut(title, TITLE_COLUMNS))
        };
        let mut lines: Vec<String> = new.iter().take(NAMES_MAX).map(name).collect();
        let more = new.len().saturating_sub(NAMES_MAX) as u64;
        let more = if more > 0 { format!("and {}; ", count(more, "other session")) } else { String::new() };
        lines
            .push(format!("{more}`steno ls --gone{store_flags}` lists the sessions and how to restore them"));
        Ok(lines)
    }
}
