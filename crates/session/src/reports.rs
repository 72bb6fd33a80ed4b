//! Which events tell of which calls and approvals, so that a turn knows what it is made of besides its own events.

use std::collections::BTreeMap;

use crate::session::{ApprovalId, CallNumber, EventPosition, TurnId};
use crate::turns::Turns;

/// What events tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Call(CallNumber),
    Approval(ApprovalId),
}

/// The events that tell of each subject, with their turns.
#[derive(Default)]
pub(crate) struct Reports(BTreeMap<Subject, Vec<(Option<TurnId>, EventPosition)>>);

impl Reports {
    /// Takes note that an event tells of something.
    pub(crate) fn add(&mut self, subject: Subject, turn: Option<TurnId>, at: EventPosition) {
        self.0.entry(subject).or_default().push((turn, at));
    }

    /// Tells each turn of the events elsewhere that its calls and approvals are made of.
    pub(crate) fn tell(self, turns: &mut Turns) {
        for reports in self.0.into_values() {
            let mut told: Vec<TurnId> = reports.iter().filter_map(|(turn, _)| *turn).collect();
            told.sort_unstable();
            told.dedup();
            for turn in told {
                let elsewhere = reports.iter().filter(|(other, _)| *other != Some(turn));
                elsewhere.for_each(|(_, at)| turns.other(turn, *at));
            }
        }
    }
}
