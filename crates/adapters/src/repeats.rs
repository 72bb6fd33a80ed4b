//! What was said of calls before: a record that repeats it adds nothing, one that knows more amends it.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, Hash};

use steno_model::StepPayload;
use steno_model::json::{JsonString, RawJson};

use crate::emit::CallReport;

/// Returns what stands for a value among those of a source.
pub(crate) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    foldhash::fast::FixedState::default().hash_one(value)
}

/// How many records back a repeated one is known: memory must not grow with the file.
const LATELY_MAX: usize = 1024;

/// The records that were read lately.
#[derive(Default)]
pub(crate) struct RecentRecords {
    order: VecDeque<u64>,
    hashes: HashSet<u64>,
}

impl RecentRecords {
    /// Takes what stands for a record; tells whether it was there.
    pub(crate) fn was_there(&mut self, hash: u64) -> bool {
        if !self.hashes.insert(hash) {
            return true;
        }
        self.order.push_back(hash);
        if self.order.len() > LATELY_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        false
    }
}

/// Returns what stands for a call's name and input.
pub(crate) fn hash_of_call(call: &CallReport) -> u64 {
    hash_of(&(call.name.as_raw(), call.input.as_str()))
}

/// Makes a step that says what became known of a call later.
pub(crate) fn amendment(call: &JsonString, result: RawJson) -> StepPayload {
    let mut payload = StepPayload::new(call.clone(), "amend");
    payload.extra.push("tool_call_id", call.to_json());
    payload.result = Some(result);
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_there_lately_is_known() {
        let mut lately = RecentRecords::default();
        assert!(!lately.was_there(0) && lately.was_there(0));
        (1..=LATELY_MAX as u64).for_each(|hash| assert!(!lately.was_there(hash)));
        assert!(!lately.was_there(0), "the oldest is forgotten");
        assert_eq!((lately.order.len(), lately.hashes.len()), (LATELY_MAX, LATELY_MAX));
    }
}
