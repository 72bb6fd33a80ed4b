//! The ids of calls in a trajectory: those of the providers, made unique.

use std::collections::{HashMap, HashSet};

use steno_model::json::JsonString;

use super::build::Run;
use super::calls::CallNumber;

/// The id of each call of a run.
pub(super) struct CallIds(Vec<JsonString>);

impl CallIds {
    /// Gives every call an id. A provider may use an id again, and foreign writers may give none.
    pub(super) fn of(run: &Run) -> Self {
        let mut seen: HashSet<String> =
            run.calls.iter().filter_map(|call| call.id.as_ref()).map(text).collect();
        let mut used = HashSet::new();
        // The last number for each id, since an id may be used many times.
        let mut numbers = HashMap::<String, u64>::new();
        let mut ids = Vec::with_capacity(run.calls.len());
        for (place, call) in run.calls.iter().enumerate() {
            let own = call.id.as_ref().filter(|id| used.insert(text(id)));
            ids.push(own.cloned().unwrap_or_else(|| {
                let base = call.id.as_ref().map_or_else(|| format!("call-{}", place + 1), text);
                let mut id = base.clone();
                let number = numbers.entry(base.clone()).or_insert(2);
                while !seen.insert(id.clone()) {
                    id = format!("{base}#{number}");
                    *number += 1;
                }
                id.into()
            }));
        }
        Self(ids)
    }

    pub(super) fn get(&self, number: CallNumber) -> &JsonString {
        &self.0[number.0]
    }
}

fn text(id: &JsonString) -> String {
    id.to_text().into_owned()
}
