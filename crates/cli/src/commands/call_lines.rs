//! What lists of calls share: the session of a call, its handle, and its time.

use anstyle::Style;
use jiff::Zoned;
use steno_index::IndexedCall;
use steno_library::{CallList, IdIndex, ListFilter};
use steno_model::RunId;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use super::session_filter::no_session_matches;
use crate::failure::Failure;
use crate::id_lines::{event_handle, project_name};
use crate::time_words::{TimeForm, time_word};

/// How many calls are listed on a terminal, unless another number is given.
const TERMINAL_LIMIT: usize = 20;

/// Fails if no session passes a filter: nothing was looked at, so nothing can be said of its calls.
pub fn check_matches(filter: &ListFilter, list: &CallList) -> Result<(), Failure> {
    if list.sessions.is_empty() && !filter.is_empty() {
        return Err(no_session_matches(filter));
    }
    Ok(())
}

pub struct CallLines<'a> {
    pub ids: &'a IdIndex<RunId>,
    pub list: &'a CallList,
    pub now: Zoned,
    pub time: TimeForm,
    pub width: Option<usize>,
}

impl CallLines<'_> {
    /// Returns the beginning of the line of a call: when, where to open it, and the project.
    pub fn start(&self, call: &IndexedCall) -> (String, usize) {
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let time = self.time(call);
        let handle = self.handle(call);
        let project = self.list.sessions.get(&call.root).and_then(|row| row.project.as_deref());
        let project = project_name(project);
        let columns = time.len().max(3) + 2 + handle.len() + 2 + steno_views::columns_of(&project) + 2;
        (format!("{dim}{time:>3}{dim:#}  {bold}{handle}{bold:#}  {project}  "), columns)
    }

    pub fn handle(&self, call: &IndexedCall) -> String {
        event_handle(self.ids, call.call.at.0, call.call.at.1)
    }

    fn time(&self, call: &IndexedCall) -> String {
        let at = call.call.at_ms.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        at.map(|at| time_word(at, &self.now, self.time)).unwrap_or_default()
    }

    /// Writes the fields that every call has.
    pub fn fields(&self, call: &IndexedCall, object: &mut ObjectWriter<'_>) {
        let row = self.list.sessions.get(&call.root);
        let digest = row.map(|row| &row.digest);
        let at = call.call.at_ms.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        text(object, "session_run_id", Some(&call.root.to_string()));
        text(object, "run_id", Some(&call.call.at.0.to_string()));
        object.number("seq", call.call.at.1.get());
        text(object, "handle", Some(&self.handle(call)));
        text(object, "at", at.map(|at| at.to_string()).as_deref());
        text(object, "provider", digest.and_then(|digest| digest.provider.as_deref()));
        text(object, "project", row.and_then(|row| row.project.as_deref()));
        text(object, "branch", digest.and_then(|digest| digest.branch.as_deref()));
        text(object, "title", digest.and_then(|digest| digest.title.as_deref()));
        text(object, "tool", Some(call.call.digest.tool.as_str()).filter(|tool| !tool.is_empty()));
    }
}

/// Returns how many of some rows are listed.
pub fn shown_count(limit: Option<usize>, width: Option<usize>, rows: usize) -> usize {
    match limit.unwrap_or(if width.is_some() { TERMINAL_LIMIT } else { 0 }) {
        0 => rows,
        limit => rows.min(limit),
    }
}

/// Writes a text, or null.
pub fn text(object: &mut ObjectWriter<'_>, name: &'static str, text: Option<&str>) {
    let json = text.map_or_else(RawJson::null, |text| JsonString::from(text).to_json());
    object.json(name, &json);
}
