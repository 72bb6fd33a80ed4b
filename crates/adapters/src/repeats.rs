//! Detects repeated records of calls: a repetition adds nothing, and a record with more information amends the call.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, Hash, Hasher as _};

use steno_model::StepPayload;
use steno_model::json::{JsonString, RawJson};

use crate::emit::CallReport;

/// Returns the hash of a value.
pub(crate) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    foldhash::fast::FixedState::default().hash_one(value)
}

/// Returns the hash of several words, one after the other.
pub(crate) fn hash_of_words<'a>(words: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    words.for_each(|word| word.hash(&mut hasher));
    hasher.finish()
}

/// A map for keys that are looked up with each record.
pub(crate) type QuickMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A set of keys that are looked up with each record.
pub(crate) type QuickSet<K> = HashSet<K, foldhash::fast::RandomState>;

/// How many recent records are remembered, so that memory does not grow with the file.
const LATELY_MAX: usize = 1024;

/// The hashes of recent records.
#[derive(Default)]
pub(crate) struct RecentRecords {
    order: VecDeque<u64>,
    hashes: HashSet<u64>,
}

impl RecentRecords {
    /// Adds the hash of a record; tells whether it was there.
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

/// Returns the hash of a call's name and input.
pub(crate) fn hash_of_call(call: &CallReport) -> u64 {
    hash_of(&(call.name.as_raw(), call.input.as_str()))
}

/// Makes a step that amends a call with a later result.
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
    fn only_recent_hashes_are_remembered() {
        let mut lately = RecentRecords::default();
        assert!(!lately.was_there(0) && lately.was_there(0));
        (1..=LATELY_MAX as u64).for_each(|hash| assert!(!lately.was_there(hash)));
        assert!(!lately.was_there(0), "the oldest is forgotten");
        assert_eq!((lately.order.len(), lately.hashes.len()), (LATELY_MAX, LATELY_MAX));
    }
}
