//! Who was asked, and what the answers were: each request once.

use std::collections::HashMap;

use steno_model::records::EventRecord;

use steno_session::{PayloadFields, decision_is_yes};

/// How often somebody was asked, and how often the answer was yes or no.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// How often somebody was asked.
    pub required: u64,
    /// How often the answer was yes.
    pub allowed: u64,
    /// How often something was not allowed, whoever decided.
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
/// A request that has timed out is told twice, the second time as a denial; an answer may come without a request, and a
/// request may never be answered.
pub(super) fn count<'a>(events: impl Iterator<Item = &'a EventRecord>) -> Approvals {
    let mut requests: HashMap<String, Request> = HashMap::new();
    for event in events {
        let decision = match &*event.event {
            "approval.required" => None,
            "approval.decided" => Some(decision(event)),
            // A timeout too: what comes of it is decided.
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

/// Returns what a request is called; one without a name is its own.
fn id(event: &EventRecord) -> String {
    let fields = PayloadFields::parse(event.payload.as_str());
    let name = ["approval_id", "id", "tool_call_id"].into_iter().find_map(|name| fields.text(name));
    name.map_or_else(|| format!("\0{}", event.seq), std::borrow::Cow::into_owned)
}

fn decision(event: &EventRecord) -> Option<bool> {
    let fields = PayloadFields::parse(event.payload.as_str());
    decision_is_yes(&fields.text("decision")?)
}
