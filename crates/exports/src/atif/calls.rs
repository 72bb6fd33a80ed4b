//! The calls of a session for a trajectory: with results, approvals and child runs.

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{RunId, Timestamp};
use steno_session::{PayloadFields, Session, State};

use super::text::push_clean;

/// The index of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallNumber(pub(super) usize);

/// The known facts about a call.
pub(super) struct Call {
    /// The provider's id.
    pub(super) id: Option<JsonString>,
    pub(super) name: Option<JsonString>,
    pub(super) input: Option<RawJson>,
    /// Other facts of its `tool.call`.
    pub(super) facts: Vec<(JsonString, RawJson)>,
    pub(super) result: Option<CallResult>,
    /// Facts of amendments, in order.
    pub(super) amended: Vec<RawJson>,
    pub(super) approvals: Vec<Approval>,
    pub(super) children: Vec<Child>,
}

/// The result of a call.
pub(super) struct CallResult {
    pub(super) at: Option<Timestamp>,
    pub(super) output: Option<RawJson>,
    pub(super) error: Option<JsonString>,
    /// Other facts of its record: outcome, exit code, duration and so on.
    pub(super) facts: Vec<(JsonString, RawJson)>,
}

/// An approval of a call.
pub(super) struct Approval {
    request: Option<JsonString>,
    /// The answer, as recorded in its event.
    answer: Option<RawJson>,
    is_answered: bool,
}

/// A run that a call started.
pub(super) struct Child {
    pub(super) run: RunId,
    pub(super) name: Option<JsonString>,
}

/// All calls of a session, in the order of their first event.
pub(super) struct Calls(Vec<Call>);

impl Calls {
    /// Takes the calls of a session.
    pub(super) fn of(mut session: Session) -> Self {
        let calls = std::mem::take(&mut session.calls);
        Self(calls.into_iter().map(|call| Call::of(&session, call)).collect())
    }

    pub(super) fn get(&self, number: CallNumber) -> &Call {
        &self.0[number.0]
    }

    /// Iterates over all calls.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Call {
    fn of(session: &Session, call: steno_session::Call) -> Self {
        let approval = |id: &steno_session::ApprovalId| {
            let approval = &session.approvals[id.0];
            Approval {
                request: approval.request.clone(),
                answer: approval.answer.clone(),
                is_answered: approval.state != State::Open,
            }
        };
        let child = |id: &steno_session::ChildId| {
            let child = &session.children[id.0];
            Child { run: child.run_id, name: child.name.clone() }
        };
        let approvals = call.approvals.iter().map(approval).collect();
        let children = call.children.iter().map(child).collect();
        let result = call.result.filter(|_| call.is_answered).map(|mut result| {
            let facts = facts_of(&mut result);
            CallResult {
                at: result.at.and(result.time),
                output: result.given.or(result.output),
                error: result.error,
                facts,
            }
        });
        Self {
            id: call.id,
            name: call.name,
            input: call.input,
            facts: call.extra,
            result,
            amended: call.amendments,
            approvals,
            children,
        }
    }

    /// Returns the latest value of a fact of the result: amendments take precedence.
    pub(super) fn fact(&self, name: &str) -> Option<RawJson> {
        let later =
            self.amended.iter().rev().find_map(|facts| PayloadFields::parse(facts.as_str()).json(name));
        let at_first = || {
            let facts = &self.result.as_ref()?.facts;
            facts.iter().rev().find(|(key, _)| key.is(name)).map(|(_, value)| value.clone())
        };
        later.or_else(at_first)
    }

    /// Returns true if its result is known.
    pub(super) fn has_outcome(&self) -> bool {
        self.result.is_some()
            || !self.amended.is_empty()
            || !self.approvals.is_empty()
            || !self.children.is_empty()
    }
}

/// Returns the facts of a result, with the amended outcome.
fn facts_of(result: &mut steno_session::CallResult) -> Vec<(JsonString, RawJson)> {
    let mut facts = std::mem::take(&mut result.extra);
    let known = [
        ("outcome", result.outcome.as_ref().map(JsonString::to_json)),
        ("exit_code", result.exit_code.clone()),
    ];
    for (name, value) in known {
        let Some(value) = value else { continue };
        match facts.iter_mut().find(|(key, _)| key.is(name)) {
            Some((_, old)) => *old = value,
            None => facts.push((name.into(), value)),
        }
    }
    facts
}

impl Approval {
    pub(super) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.optional("request", self.request.as_ref(), |object, name, request| {
            object.nested(name, |out| push_clean(out, request.as_raw()));
        });
        object.json("answered", &RawJson::from(self.is_answered));
        object.optional("answer", self.answer.as_ref(), |object, name, answer| {
            object.nested(name, |out| push_clean(out, answer.as_str()));
        });
        object.end();
    }
}
