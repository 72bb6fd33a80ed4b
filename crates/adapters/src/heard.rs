//! What was said of calls before: a record that repeats it adds nothing, one that knows more amends it.

use std::hash::{BuildHasher as _, Hash};

use steno_model::StepPayload;
use steno_model::json::{JsonString, RawJson};

use crate::emit::CallSeen;

/// Returns what stands for a value among those of a source.
pub(crate) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    foldhash::fast::FixedState::default().hash_one(value)
}

/// Returns what stands for a call's name and input.
pub(crate) fn hash_of_call(call: &CallSeen) -> u64 {
    hash_of(&(call.name.as_raw(), call.input.as_str()))
}

/// Makes a step that says what became known of a call later.
pub(crate) fn amendment(call: &JsonString, result: RawJson) -> StepPayload {
    let mut payload = StepPayload::new(call.clone(), "amend");
    payload.extra.push("tool_call_id", call.to_json());
    payload.result = Some(result);
    payload
}
