//! Which reports are about one call: by its id, and by their place among those with the same id.
//!
//! Some providers use an id again for the next call. The n-th report of one channel is then the n-th of another, and the
//! n-th call in a turn of one run the n-th in the same turn of another.

use std::collections::{HashMap, HashSet};

use steno_model::json::JsonString;

use crate::session::{CallNumber, RunNumber, TurnId};

/// What of a call a report tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    /// That a response asks for it.
    Use,
    /// That it is made.
    Call,
    /// What came back.
    Result,
}

/// Who reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Channel {
    Router,
    Agent,
    Other,
}

/// What a report tells, who does, and in which run.
pub(crate) type Report = (Told, Channel, RunNumber);

/// The calls of a session by their ids.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashMap<String, OneId>);

#[derive(Debug, Default)]
struct OneId {
    calls: Vec<(CallNumber, Option<TurnId>)>,
    /// The same by turn, as far as somebody has asked for it: most ids are used once.
    by_turn: HashMap<Option<TurnId>, Vec<CallNumber>>,
    by_turn_len: usize,
    runs: Vec<RunCalls>,
    /// How many reports there were, by what they tell, who does and in which run; few have more than three.
    reports: Vec<(Report, usize)>,
}

/// The calls with one id that a run has.
#[derive(Debug)]
struct RunCalls {
    run: RunNumber,
    /// In the order of the run.
    calls: Vec<CallNumber>,
    taken: HashSet<CallNumber>,
    /// How many calls of the session, and of each turn, the run has from the first on.
    passed: usize,
    passed_in: HashMap<Option<TurnId>, usize>,
}

impl CallIds {
    /// Takes a report, and returns the number of its call: `new` when it is the first of one.
    ///
    /// The n-th report in a run is of the n-th call in the run. The first report of a call in a run is of a call that other
    /// runs have in the same turn, if there is one. A result may come in a later turn than its call.
    pub(crate) fn report(
        &mut self,
        id: &JsonString,
        report: Report,
        turn: Option<TurnId>,
        new: CallNumber,
    ) -> CallNumber {
        let known = self.0.entry(id.to_text().into_owned()).or_default();
        let count = known.count(report);
        let (told, _, run) = report;
        let place = known.run(run);
        if let Some(number) = known.runs[place].calls.get(count - 1) {
            return *number;
        }
        let number = known.find_elsewhere(place, told, turn).unwrap_or(new);
        if number == new {
            known.calls.push((new, turn));
        }
        known.runs[place].calls.push(number);
        known.runs[place].taken.insert(number);
        number
    }

    /// Returns the last call with this id: of the turn, if it has one.
    pub(crate) fn last(&mut self, id: &JsonString, turn: Option<TurnId>) -> Option<CallNumber> {
        let known = self.0.get_mut(&*id.to_text())?;
        let (last, last_turn) = *known.calls.last()?;
        if last_turn == turn {
            return Some(last);
        }
        Some(known.in_turn(turn).last().copied().unwrap_or(last))
    }
}

impl OneId {
    fn count(&mut self, report: Report) -> usize {
        let place = self.reports.iter().position(|(found, _)| *found == report).unwrap_or_else(|| {
            self.reports.push((report, 0));
            self.reports.len() - 1
        });
        self.reports[place].1 += 1;
        self.reports[place].1
    }

    /// Returns the place of a run.
    fn run(&mut self, run: RunNumber) -> usize {
        self.runs.iter().position(|found| found.run == run).unwrap_or_else(|| {
            let (calls, taken, passed_in) = (Vec::new(), HashSet::new(), HashMap::new());
            self.runs.push(RunCalls { run, calls, taken, passed: 0, passed_in });
            self.runs.len() - 1
        })
    }

    /// Finds a call of other runs that the run at a place does not have yet.
    fn find_elsewhere(&mut self, place: usize, told: Told, turn: Option<TurnId>) -> Option<CallNumber> {
        if self.runs[place].calls.len() == self.calls.len() {
            return None;
        }
        self.first_in(place, turn).or_else(|| match turn {
            Some(_) if told != Told::Result => self.first_in(place, None),
            Some(_) | None => {
                let run = &mut self.runs[place];
                let others = self.calls[run.passed..].iter();
                run.passed += others.take_while(|(number, _)| run.taken.contains(number)).count();
                self.calls.get(run.passed).map(|(number, _)| *number)
            }
        })
    }

    /// Finds the first call in a turn that the run at a place does not have yet.
    fn first_in(&mut self, place: usize, turn: Option<TurnId>) -> Option<CallNumber> {
        self.in_turn(turn);
        let (run, calls) = (&mut self.runs[place], self.by_turn.get(&turn)?);
        let passed = run.passed_in.entry(turn).or_default();
        *passed += calls[*passed..].iter().take_while(|number| run.taken.contains(number)).count();
        calls.get(*passed).copied()
    }

    fn in_turn(&mut self, turn: Option<TurnId>) -> &[CallNumber] {
        for (number, turn) in &self.calls[self.by_turn_len..] {
            self.by_turn.entry(*turn).or_default().push(*number);
        }
        self.by_turn_len = self.calls.len();
        self.by_turn.get(&turn).map_or(&[], Vec::as_slice)
    }
}
