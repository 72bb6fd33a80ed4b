//! Matches reports to calls: by the call id, and by the order among reports with the same id.
//!
//! Some providers reuse an id for the next call. The n-th report in a turn is then about the n-th call in the turn, on every
//! channel and in every run.

use std::collections::HashMap;

use steno_model::json::JsonString;

use crate::session::{CallNumber, RunNumber, TurnId};

/// What a report says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReportKind {
    /// A response asks for it.
    Use,
    /// It is made.
    Call,
    /// Its result.
    Result,
}

/// The reporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Channel {
    Router,
    Agent,
    Other,
}

/// What a report says, the reporter, and its run.
pub(crate) type Report = (ReportKind, Channel, RunNumber);

/// The calls of a session by their ids.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashMap<String, CallsWithId>);

/// The calls with one id. Most ids have one call.
#[derive(Debug, Default)]
struct CallsWithId {
    calls: Vec<CallEntry>,
    /// The positions of calls by turn, as far as they are indexed.
    by_turn: HashMap<Option<TurnId>, Vec<usize>>,
    by_turn_len: usize,
    /// How many of the first calls have this report, in all or in a turn.
    passed: HashMap<(Report, Scope), usize>,
}

#[derive(Debug)]
struct CallEntry {
    number: CallNumber,
    turn: Option<TurnId>,
    /// The runs that have it, with their reports.
    runs: Vec<(RunNumber, ReportSet)>,
}

/// A set of report kinds and reporters, one bit for each.
#[derive(Clone, Copy, Debug, Default)]
struct ReportSet(u16);

/// Where a call is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope {
    All,
    Turn(Option<TurnId>),
}

/// Whether a run has a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOwner {
    /// The run has other reports of it, but not this one.
    Own,
    /// Only other runs have it.
    Others,
}

impl CallIds {
    /// Adds a report, and returns the number of its call: `new` for the first report of a call.
    ///
    /// The report belongs to the first call in its turn without such a report of the run: first of the run's own calls, then of
    /// other runs' calls. A result may come in a later turn than its call.
    pub(crate) fn report(
        &mut self,
        id: &JsonString,
        report: Report,
        turn: Option<TurnId>,
        new: CallNumber,
    ) -> CallNumber {
        let known = self.0.entry(id.to_text().into_owned()).or_default();
        let place = known.find(report, turn).unwrap_or_else(|| {
            known.calls.push(CallEntry { number: new, turn, runs: Vec::new() });
            known.calls.len() - 1
        });
        known.calls[place].take(report);
        known.calls[place].number
    }

    /// Returns the last call with this id, preferably in the turn.
    pub(crate) fn last(&mut self, id: &JsonString, turn: Option<TurnId>) -> Option<CallNumber> {
        let known = self.0.get_mut(&*id.to_text())?;
        let last = known.calls.last()?;
        let (last, is_in_turn) = (last.number, last.turn == turn);
        if is_in_turn || known.calls.len() == 1 {
            return Some(last);
        }
        known.sort_by_turn();
        let in_turn = known.by_turn.get(&turn).and_then(|places| places.last());
        Some(in_turn.map_or(last, |place| known.calls[*place].number))
    }
}

impl CallsWithId {
    /// Finds the call of a report.
    fn find(&mut self, report: Report, turn: Option<TurnId>) -> Option<usize> {
        let (kind, _, _) = report;
        let is_anywhere = kind == ReportKind::Result || turn.is_none();
        match &self.calls[..] {
            [] => return None,
            [call] => {
                let is_near = is_anywhere || call.turn.is_none() || call.turn == turn;
                return call.whose(report).filter(|_| is_near).map(|_| 0);
            }
            _ => self.sort_by_turn(),
        }
        let elsewhere = if is_anywhere { Scope::All } else { Scope::Turn(None) };
        self.first(report, Scope::Turn(turn), CallOwner::Own)
            .or_else(|| self.first(report, Scope::Turn(turn), CallOwner::Others))
            .or_else(|| self.first(report, elsewhere, CallOwner::Own))
            .or_else(|| self.first(report, elsewhere, CallOwner::Others))
    }

    /// Finds the first call, in a turn or in all, without such a report of the run.
    fn first(&mut self, report: Report, scope: Scope, whose: CallOwner) -> Option<usize> {
        let places = match scope {
            Scope::All => None,
            Scope::Turn(turn) => Some(self.by_turn.get(&turn)?),
        };
        let len = places.map_or(self.calls.len(), Vec::len);
        let place_of = |at: usize| places.map_or(at, |places| places[at]);
        let whose_is = |at: usize| self.calls[place_of(at)].whose(report);
        let passed = self.passed.entry((report, scope)).or_default();
        *passed += (*passed..len).take_while(|at| whose_is(*at).is_none()).count();
        (*passed..len).find(|at| whose_is(*at) == Some(whose)).map(place_of)
    }

    fn sort_by_turn(&mut self) {
        for (place, call) in self.calls.iter().enumerate().skip(self.by_turn_len) {
            self.by_turn.entry(call.turn).or_default().push(place);
        }
        self.by_turn_len = self.calls.len();
    }
}

impl CallEntry {
    /// Tells whether a report may be about this call, and which runs have it.
    fn whose(&self, report: Report) -> Option<CallOwner> {
        let (_, _, run) = report;
        match self.runs.iter().find(|(known, _)| *known == run) {
            None => Some(CallOwner::Others),
            Some((_, reports)) => (reports.0 & ReportSet::of(report).0 == 0).then_some(CallOwner::Own),
        }
    }

    fn take(&mut self, report: Report) {
        let (_, _, run) = report;
        let place = self.runs.iter().position(|(known, _)| *known == run).unwrap_or_else(|| {
            self.runs.push((run, ReportSet::default()));
            self.runs.len() - 1
        });
        self.runs[place].1.0 |= ReportSet::of(report).0;
    }
}

impl ReportSet {
    fn of((kind, channel, _): Report) -> Self {
        Self(1 << (kind as u16 * 3 + channel as u16))
    }
}
