//! Calls of all sessions: what changed files, and what failed. Texts are read from the transcripts.

use std::collections::HashMap;

use jiff::Timestamp;
use steno_index::{CallFilter, IndexedCall, SessionRow};
use steno_model::json::RawJson;
use steno_model::{EventType, RunId};
use steno_session::PayloadFields;
use steno_views::digest::{TextKind, error_output, unit_text};
use steno_views::nodes::{FileDiff, RECORDED_PATCHES, call_diffs};

use super::ListFilter;
use crate::search::read_event;
use crate::{Error, Library};

/// Calls of several sessions, the latest first.
#[derive(Clone, Debug, Default)]
pub struct CallList {
    /// The calls.
    pub calls: Vec<IndexedCall>,
    /// The top-level sessions that they are in.
    pub sessions: HashMap<RunId, SessionRow>,
}

/// The output of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutput {
    /// All of it.
    pub text: String,
    /// What a command of `steno run` printed to standard error.
    pub errors: Option<String>,
}

impl Library {
    /// Returns the wanted calls of the sessions that pass a filter, and of its time.
    ///
    /// # Errors
    /// An error of the index or the system.
    pub fn calls(&self, wanted: &CallFilter, filter: &ListFilter, now: Timestamp) -> Result<CallList, Error> {
        let filter = self.resolve_filter(filter, now)?;
        let index = self.indexed()?;
        let sessions: HashMap<RunId, SessionRow> =
            index.sessions(&filter)?.into_iter().map(|row| (row.digest.id, row)).collect();
        let mut calls = index.calls(wanted)?;
        // A long session may have begun before the requested time, and continued after it.
        let is_in_time = |at_ms: i64| {
            filter.since_ms.is_none_or(|since| at_ms >= since)
                && filter.until_ms.is_none_or(|until| at_ms < until)
        };
        calls.retain(|call| sessions.contains_key(&call.root) && call.call.at_ms.is_none_or(is_in_time));
        Ok(CallList { calls, sessions })
    }

    /// Reads the arguments of a call; `None` if its line differs from the one that was indexed.
    #[must_use]
    pub fn call_arguments(&self, call: &IndexedCall) -> Option<RawJson> {
        let event = read_event(self.store.as_ref()?, call.arguments.as_ref()?)?;
        let fields = PayloadFields::of(&event);
        match event.event_type.known() {
            // The start of a command of `steno run`.
            Some(EventType::RunStarted) => fields.json("wrap"),
            _ => fields.json("input"),
        }
    }

    /// Reads what a call changed, with the numbers of lines if its result has them.
    #[must_use]
    pub fn call_diffs(&self, call: &IndexedCall) -> Vec<FileDiff> {
        let Some(arguments) = self.call_arguments(call) else { return Vec::new() };
        let result = || read_event(self.store.as_ref()?, call.output.as_ref()?);
        let patch = result().and_then(|event| {
            let fields = PayloadFields::of(&event);
            RECORDED_PATCHES.iter().find_map(|name| fields.json(name))
        });
        call_diffs(&arguments, patch.as_ref())
    }

    /// Reads the output of a call, or the text of an error; `None` if there is none.
    #[must_use]
    pub fn call_output(&self, call: &IndexedCall) -> Option<CallOutput> {
        let event = read_event(self.store.as_ref()?, call.output.as_ref()?)?;
        let text = unit_text(&event, 0, TextKind::Output)?;
        Some(CallOutput { text, errors: error_output(&event) })
    }
}
