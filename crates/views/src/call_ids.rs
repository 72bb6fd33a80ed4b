//! Which reports are about one call: by its id, and by their place among those with the same id.
//!
//! Some providers use an id again for the next call. The n-th report of one channel is then the n-th of another.

use std::collections::HashMap;

use steno_model::json::JsonString;

/// What of a call a report tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// That a response asks for it.
    Use,
    /// That it is made.
    Call,
    /// What came back.
    Result,
}

/// Who reports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Channel {
    Router,
    Agent,
    Other,
}

/// The calls of a run by their ids, each as its number among all of them.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashMap<String, OneId>);

#[derive(Debug, Default)]
struct OneId {
    numbers: Vec<usize>,
    /// How many reports there were, by what they tell and who does.
    reports: [[usize; 3]; 3],
}

impl CallIds {
    /// Takes a report, and returns the number of its call; `None` when it is the first of one.
    pub(crate) fn report(&mut self, id: &JsonString, told: Told, channel: Channel) -> Option<usize> {
        let known = self.0.entry(id.to_text().into_owned()).or_default();
        let count = &mut known.reports[told as usize][channel as usize];
        *count += 1;
        known.numbers.get(*count - 1).copied()
    }

    /// Adds a call.
    pub(crate) fn add(&mut self, id: &JsonString, number: usize) {
        self.0.entry(id.to_text().into_owned()).or_default().numbers.push(number);
    }

    /// Returns the last call with this id.
    pub(crate) fn last(&self, id: &JsonString) -> Option<usize> {
        self.0.get(&*id.to_text())?.numbers.last().copied()
    }
}
