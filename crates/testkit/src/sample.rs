//! Sample runs: ids, drafts of any size, events in short notation.

use steno_model::json::RawJson;
use steno_model::{
    ContentBlock, Draft, EventType, Fidelity, MessagePayload, Payload, Role, RunId, Timestamp,
};

/// Returns the nth run id.
///
/// # Panics
/// Never: the text is a UUID.
#[must_use]
pub fn run_id(number: u64) -> RunId {
    RunId::parse(&format!("00000000-0000-4000-8000-{number:012x}")).expect("twelve hex digits end a UUID")
}

/// Returns a fixed time, so that output does not depend on the clock.
///
/// # Panics
/// Never: the text is a time.
#[must_use]
pub fn time() -> Timestamp {
    Timestamp::parse("2026-06-08T08:14:42.123Z").expect("the text is a time")
}

/// Returns a message that contains `label` and whose line has about `line_bytes` bytes.
///
/// # Panics
/// Never: a text block is a payload that a message may have.
#[must_use]
pub fn message(label: &str, line_bytes: usize) -> Draft {
    const ENVELOPE_BYTES: usize = 240;
    let filler = "x".repeat(line_bytes.saturating_sub(ENVELOPE_BYTES + label.len()));
    let block = ContentBlock::text(Fidelity::AgentEmitted, format!("{label} {filler}"));
    let payload = Payload::Message(MessagePayload::new(Role::Assistant, vec![block]));
    let draft = Draft::new(EventType::MessageAssistant, &payload).expect("a text block is a message");
    draft.at("turn-0001").at_time(time())
}

/// Returns the start of a run.
///
/// # Panics
/// Never: a run may start without a payload.
#[must_use]
pub fn run_started() -> Draft {
    let draft = Draft::from_raw_payload(EventType::RunStarted, RawJson::null());
    draft.expect("a run may start without a payload").at_time(time())
}
