//! Counts approval requests and their answers, each request once.

use std::collections::HashMap;

use steno_model::records::EventRecord;

use steno_session::{PayloadFields, decision_is_yes};

/// The numbers of approval requests and of their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// How many requests there were.
    pub required: u64,
    /// How many were allowed.
    pub allowed: u64,
    /// How many were denied, by anybody.
    pub denied: u64,
}

#[derive(Default)]
struct Request {
    is_required: bool,
    /// The first answer.
    is_allowed: Option<bool>,
}

/// Counts the approvals among a turn's events.
///
/// A request that timed out is recorded twice, the second time as a denial. An answer may come without a request, and a
/// request may have no answer.
pub(super) fn count<'a>(events: impl Iterator<Item = &'a EventRecord>) -> Approvals {
    let mut requests: HashMap<String, Request> = HashMap::new();
    for event in events {
        let decision = match &*event.event {
            "approval.required" => None,
            "approval.decided" => Some(decision(event)),
            // A timeout is followed by a decision.
            _ => continue,
        };
        let request = requests.entry(id(event)).or_default();
        match decision {
            None => request.is_required = true,
            Some(decision) => request.is_allowed = request.is_allowed.or(decision),
        }
    }
    let mut approvals = Approvals::default();
    for request in requests.values() {
        approvals.required += u64::from(request.is_required);
        approvals.allowed += u64::from(request.is_allowed == Some(true));
        approvals.denied += u64::from(request.is_allowed == Some(false));
    }
    approvals
}

/// Returns the id of a request; one without an id is unique.
fn id(event: &EventRecord) -> String {
    let fields = PayloadFields::parse(event.payload.as_str());
    let name = ["approval_id", "id", "tool_call_id"].into_iter().find_map(|name| fields.text(name));
    name.map_or_else(|| format!("\0{}", event.seq), std::borrow::Cow::into_owned)
}

fn decision(event: &EventRecord) -> Option<bool> {
    let fields = PayloadFields::parse(event.payload.as_str());
    decision_is_yes(&fields.text("decision")?)
}
