//! The events about each call and approval, so that a turn can list the outside events it depends on.

use std::collections::BTreeMap;

use crate::session::{Approval, ApprovalId, Call, CallNumber, EventPosition, RunNumber, TurnId};
use crate::turns::Turns;

/// What events are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Call(CallNumber),
    Approval(ApprovalId),
}

/// The events about each subject, with their turns.
#[derive(Default)]
pub(crate) struct Reports(BTreeMap<Subject, Vec<(Option<TurnId>, EventPosition)>>);

impl Reports {
    /// Records that an event is about a subject.
    pub(crate) fn add(&mut self, subject: Subject, turn: Option<TurnId>, at: EventPosition) {
        self.0.entry(subject).or_default().push((turn, at));
    }

    /// Names the runs that report each call and approval, and marks the calls that were declined.
    pub(crate) fn name_runs(&self, calls: &mut [Call], approvals: &mut [Approval]) {
        for (subject, reports) in &self.0 {
            let mut runs: Vec<RunNumber> = reports.iter().map(|(_, at)| at.run).collect();
            runs.sort_unstable();
            runs.dedup();
            match subject {
                Subject::Call(CallNumber(call)) => {
                    let call = &mut calls[*call];
                    call.events = reports.iter().map(|(_, at)| *at).collect();
                    call.events.dedup();
                    call.runs = runs;
                }
                Subject::Approval(ApprovalId(approval)) => approvals[*approval].runs = runs,
            }
        }
        for call in calls {
            let mut decisions = call.approvals.iter().map(|approval| approvals[approval.0].is_allowed());
            // If a request was allowed, the call may have run.
            call.is_declined = decisions.clone().any(|allowed| allowed == Some(false))
                && decisions.all(|allowed| allowed != Some(true));
        }
    }

    /// Adds to each turn the events elsewhere about its calls and approvals.
    pub(crate) fn tell(self, turns: &mut Turns) {
        for reports in self.0.into_values() {
            let mut turns_reported: Vec<TurnId> = reports.iter().filter_map(|(turn, _)| *turn).collect();
            turns_reported.sort_unstable();
            turns_reported.dedup();
            for turn in turns_reported {
                let elsewhere = reports.iter().filter(|(other, _)| *other != Some(turn));
                elsewhere.for_each(|(_, at)| turns.other(turn, *at));
            }
        }
    }
}
