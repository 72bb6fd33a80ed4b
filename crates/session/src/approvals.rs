//! Approvals of calls, and the child runs that calls start.

use crate::builder::{IncomingEvent, SessionBuilder};
use crate::reports::Subject;
use crate::session::{Approval, ApprovalId, CallNumber, ChildId, ChildLink, ItemKind, StepId, TurnId};
use crate::state::State;

impl SessionBuilder {
    pub(crate) fn approval(&mut self, incoming: &IncomingEvent<'_>, turn: Option<TurnId>, is_end: bool) {
        self.turns.fact(turn, incoming);
        let fields = &incoming.fields;
        let answer = fields.object("result");
        let asked = Approval {
            at: incoming.at,
            time: incoming.event.timestamp.clone(),
            turn,
            path: incoming.event.path.clone(),
            request: fields.string("name"),
            tool_call_id: fields.string("tool_call_id"),
            call: fields.string("tool_call_id").and_then(|id| self.calls.last(&id, turn)),
            is_asked: !is_end,
            state: if is_end { State::of_end(fields.error().is_some()) } else { State::Open },
            decision: answer.string("decision"),
            by: answer.string("by"),
            scope: answer.string("scope"),
            answer: fields.json("result").filter(|answer| !answer.is_null()),
            runs: Vec::new(),
        };
        if let Some(call) = asked.call {
            self.note_report(call, incoming);
        }
        let name = fields.text("name").unwrap_or_default().into_owned();
        let key = (incoming.at.run, name);
        let known = if is_end { self.asked.get(&key).copied() } else { None };
        let known = known.or_else(|| self.approval_again(&asked, incoming));
        if known.is_none() && asked.call.is_none() && incoming.is_repeat {
            return;
        }
        let id = known.unwrap_or(ApprovalId(self.approvals.len()));
        self.reports.add(Subject::Approval(id), incoming.turn, incoming.at);
        if !is_end {
            self.asked.insert(key, id);
        }
        if known.is_some() {
            return self.approvals[id.0].refine(asked);
        }
        match asked.call {
            Some(call) => self.calls.all[call.0].approvals.push(id),
            None => self.add(turn, ItemKind::Approval(id)),
        }
        self.approvals.push(asked);
    }

    /// Finds the approval that another run has reported: the n-th approval of a call in one run is the n-th in another.
    fn approval_again(&mut self, asked: &Approval, incoming: &IncomingEvent<'_>) -> Option<ApprovalId> {
        let call = asked.call?;
        let count = self.asks.entry((call, incoming.at.run)).or_default();
        *count += 1;
        self.calls.all[call.0].approvals.get(*count - 1).copied()
    }

    pub(crate) fn child(&mut self, incoming: &IncomingEvent<'_>, step: Option<StepId>, is_end: bool) {
        let IncomingEvent { event, fields, .. } = incoming;
        let turn = incoming.turn;
        let Some(run_id) = event.child_run_id else { return self.fact(incoming, turn, is_end) };
        let error = fields.error();
        let state = if is_end { State::of_end(error.is_some()) } else { State::Open };
        let tool_call_id = fields.string("tool_call_id");
        let call = tool_call_id.as_ref().and_then(|id| self.calls.last(id, turn));
        if let Some(known) =
            self.children_by_run.get(&run_id).or_else(|| self.child_of_call(call, incoming)).copied()
        {
            let link = &mut self.children[known.0];
            if is_end || !incoming.is_repeat {
                (link.state, link.error) = (state, error);
            }
            self.children_by_run.insert(run_id, known);
            return;
        }
        let id = ChildId(self.children.len());
        match call {
            Some(call) => self.calls.all[call.0].children.push(id),
            None => self.add(turn, ItemKind::Child(id)),
        }
        self.children.push(ChildLink {
            at: incoming.at,
            time: event.timestamp.clone(),
            turn,
            step,
            path: event.path.clone(),
            run_id,
            name: fields.string("name"),
            tool_call_id,
            call,
            state,
            error,
        });
        self.children_by_run.insert(run_id, id);
    }

    /// Finds the child that another run reports for the same call under another id.
    fn child_of_call(&self, call: Option<CallNumber>, incoming: &IncomingEvent<'_>) -> Option<&ChildId> {
        let children = &self.calls.all[call?.0].children;
        children.iter().find(|child| self.children[child.0].at.run != incoming.at.run)
    }
}

impl Approval {
    /// Tells whether it was allowed; `None` if the answer is neither yes nor no, or missing.
    #[must_use]
    pub fn is_allowed(&self) -> Option<bool> {
        decision_is_yes(&self.decision.as_ref()?.to_text())
    }

    /// Adds what another event says about the same approval; the first answer counts.
    fn refine(&mut self, other: Self) {
        let is_better = self.decision.is_none() || other.is_allowed().is_some();
        self.tool_call_id = self.tool_call_id.take().or(other.tool_call_id);
        self.request = self.request.take().or(other.request);
        self.is_asked |= other.is_asked;
        if self.state == State::Open {
            self.state = other.state;
        }
        if self.is_allowed().is_none() && is_better {
            (self.decision, self.by, self.scope) = (other.decision, other.by, other.scope);
        }
        self.answer = self.answer.take().or(other.answer);
    }
}

/// Tells whether a decision means yes; `None` if it means neither yes nor no.
#[must_use]
pub fn decision_is_yes(word: &str) -> Option<bool> {
    match word {
        "allow" | "allowed" | "approve" | "approved" => Some(true),
        "deny" | "denied" | "reject" | "rejected" => Some(false),
        _ => None,
    }
}
