//! Which reports are about one call: by its id, and by their place among those with the same id.
//!
//! Some providers use an id again for the next call. The n-th report of one channel is then the n-th of another, and the
//! n-th report in one run the n-th in another.

use std::collections::HashMap;

use steno_model::json::JsonString;

use crate::session::{CallNumber, RunNumber};

/// What of a call a report tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    /// That a response asks for it.
    Use,
    /// That it is made.
    Call,
    /// What came back.
    Result,
}

/// Who reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Channel {
    Router,
    Agent,
    Other,
}

/// What a report tells, who does, and in which run.
pub(crate) type Report = (Told, Channel, RunNumber);

/// The calls of a session by their ids.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashMap<String, OneId>);

#[derive(Debug, Default)]
struct OneId {
    numbers: Vec<CallNumber>,
    /// How many reports there were, by what they tell, who does and in which run; few have more than three.
    reports: Vec<(Report, usize)>,
}

impl CallIds {
    /// Takes a report, and returns the number of its call; `None` when it is the first of one.
    pub(crate) fn report(&mut self, id: &JsonString, report: Report) -> Option<CallNumber> {
        let known = self.0.entry(id.to_text().into_owned()).or_default();
        let place = known.reports.iter().position(|(found, _)| *found == report).unwrap_or_else(|| {
            known.reports.push((report, 0));
            known.reports.len() - 1
        });
        known.reports[place].1 += 1;
        known.numbers.get(known.reports[place].1 - 1).copied()
    }

    /// Adds a call.
    pub(crate) fn add(&mut self, id: &JsonString, number: CallNumber) {
        self.0.entry(id.to_text().into_owned()).or_default().numbers.push(number);
    }

    /// Returns the last call with this id.
    pub(crate) fn last(&self, id: &JsonString) -> Option<CallNumber> {
        self.0.get(&*id.to_text())?.numbers.last().copied()
    }
}
