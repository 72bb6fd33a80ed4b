//! What of a conversation was drawn, so that only what is new is drawn when the conversation has grown.
//!
//! When one of its runs grows, a session may be merged differently: another run gives the order, and facts are read from other
//! events. So nothing is recognised by its place. A turn is known by the first event that each run has of it, a call by the
//! events about it, everything else by its content, first in the same turn. What was drawn is drawn again only if it has
//! changed, and each content is drawn as often as the conversation has it.

mod names;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::{BTreeMap, HashMap, HashSet};

use steno_model::RunId;

use super::call_words::call_words;
use super::calls::{CallFace, CallView};
use super::steps::{approval_words, is_shown};
use super::units::{CallParts, Unit, UnitContent, units};
use super::{Detail, Screen, hash_of};
use crate::conversation::{ChildRun, Conversation, ToolResult, ToolUse, Turn};
use crate::{EventRef, State};
use names::{UnitName, child_hash, name_of, state_of};
use turns::{DrawnTurns, TurnNews, TurnNumber, place_of};

/// What of a conversation was drawn.
#[derive(Default)]
pub struct DrawnUnits {
    turns: DrawnTurns,
    units: HashMap<UnitName, Vec<DrawnUnit>>,
    calls: Vec<DrawnCall>,
    calls_by_event: HashMap<EventRef, usize>,
    /// The turn whose heading was drawn last.
    heading: Option<TurnNumber>,
}

/// A unit that was drawn.
struct DrawnUnit {
    turn: Option<TurnNumber>,
    /// A hash of what may change about it.
    state: u64,
}

/// A call that was drawn.
struct DrawnCall {
    /// The event about it that was known first.
    event: Option<EventRef>,
    name: UnitName,
    turn: Option<TurnNumber>,
    /// A hash of its records, which is quickly compared.
    records: u64,
    face: CallFace,
    approvals: Vec<u64>,
    /// The words about each subagent, and whether its conversation was drawn.
    children: BTreeMap<RunId, (u64, bool)>,
}

/// A unit of the conversation as it is now.
struct UnitNow<'u, 'a> {
    unit: &'u Unit<'a>,
    turn: Option<TurnNumber>,
    /// Whether it is not drawn yet, because it may still change.
    waits: bool,
}

/// A call of the conversation as it is now.
struct CallNow<'a> {
    call: &'a ToolUse,
    result: Option<&'a ToolResult>,
    turn: Option<TurnNumber>,
    detail: Detail,
}

/// What is new of a unit.
#[derive(Clone)]
enum UnitNews<'a> {
    Nothing,
    Whole,
    /// How it ended.
    End,
    /// A call again, with what is new of it.
    Again(UnitContent<'a>),
}

impl Screen<'_> {
    /// Draws what is new of a conversation that has grown. Once it has ended, nothing is held back.
    pub fn news(&mut self, conversation: &Conversation, drawn: &mut DrawnUnits, has_ended: bool) {
        let all = units(conversation);
        let detail = self.style.detail;
        let last = all.len().saturating_sub(1);
        let numbers = drawn.turns.numbers(conversation);
        let is_open =
            |unit: &Unit<'_>| unit.turn.map_or(conversation.state, |turn| turn.state) == State::Open;
        let now = all.iter().enumerate().map(|(place, unit)| UnitNow {
            unit,
            turn: unit.turn.map(|turn| numbers[&place_of(turn)]),
            waits: !has_ended && is_open(unit) && waits(unit, place == last, detail),
        });
        let now: Vec<UnitNow<'_, '_>> = now.collect();
        let has_child = |child: &ChildRun| self.style.children.contains_key(&child.run_id);
        let news = drawn.news(&now, detail, &has_child);
        let to_draw = drawn.list(&now, news, detail);
        self.units(&to_draw);
    }
}

/// Tells whether a unit of an open turn may still change before it is of use.
fn waits(unit: &Unit<'_>, is_last: bool, detail: Detail) -> bool {
    // Only the final answer is shown, and how many calls came before it.
    let is_work = matches!(unit.content, UnitContent::Answer { .. } | UnitContent::Call { .. });
    (unit.may_grow && is_last) || (detail == Detail::Answers && is_work)
}

impl DrawnUnits {
    /// Decides what is new of each unit, and takes all as drawn.
    fn news<'a>(
        &mut self,
        now: &[UnitNow<'_, 'a>],
        detail: Detail,
        has_child: &dyn Fn(&ChildRun) -> bool,
    ) -> Vec<UnitNews<'a>> {
        let mut news = vec![UnitNews::Nothing; now.len()];
        let (mut groups, mut calls, mut turns) =
            (HashMap::<UnitName, Vec<usize>>::new(), Vec::new(), Vec::new());
        for (place, UnitNow { unit, turn, waits }) in now.iter().enumerate() {
            match (&unit.content, turn) {
                _ if *waits => {}
                (UnitContent::Turn(of), Some(number)) => turns.push((place, *of, *number)),
                (UnitContent::Call { call, result }, _) => {
                    calls.push((place, CallNow { call, result: *result, turn: *turn, detail }));
                }
                (content, _) => groups.entry(name_of(content)).or_default().push(place),
            }
        }
        // Turns come first: they decide which other units belong together.
        for (place, found) in self.turns.take(&turns) {
            news[place] = match found {
                TurnNews::Heading => UnitNews::Whole,
                TurnNews::End => UnitNews::End,
            };
        }
        for (name, places) in groups {
            self.group(name, &places, now, &mut news);
        }
        let known = self.known_calls(&calls);
        for ((place, call), known) in calls.into_iter().zip(known) {
            news[place] = self.call(&call, known, has_child);
        }
        news
    }

    /// Takes the units of one name.
    fn group<'a>(
        &mut self,
        name: UnitName,
        places: &[usize],
        now: &[UnitNow<'_, 'a>],
        news: &mut [UnitNews<'a>],
    ) {
        let drawn = self.units.entry(name).or_default();
        let before: Vec<_> = drawn.iter().map(|unit| self.turns.now(unit.turn)).collect();
        let wanted: Vec<_> = places.iter().map(|place| self.turns.now(now[*place].turn)).collect();
        for ((place, turn), known) in places.iter().zip(&wanted).zip(pairs(&before, &wanted)) {
            let unit = DrawnUnit { turn: *turn, state: state_of(&now[*place].unit.content) };
            if let Some(known) = known.map(|known| &mut drawn[known]) {
                if known.state != unit.state {
                    news[*place] = UnitNews::Whole;
                }
                *known = unit;
            } else {
                news[*place] = UnitNews::Whole;
                drawn.push(unit);
            }
        }
    }

    /// Finds the calls that were drawn: by an event about them, otherwise by tool and input.
    fn known_calls(&mut self, calls: &[(usize, CallNow<'_>)]) -> Vec<Option<usize>> {
        let by_event = |call: &CallNow<'_>| {
            call.call.events.iter().find_map(|event| self.calls_by_event.get(event)).copied()
        };
        let mut known: Vec<Option<usize>> = calls.iter().map(|(_, call)| by_event(call)).collect();
        self.settle_claims(calls, &mut known);
        let present: HashSet<usize> = known.iter().copied().flatten().collect();
        let mut gone = HashMap::<UnitName, Vec<usize>>::new();
        for (number, call) in self.calls.iter().enumerate().filter(|(number, _)| !present.contains(number)) {
            gone.entry(call.name).or_default().push(number);
        }
        let mut new = HashMap::<UnitName, Vec<usize>>::new();
        let unknown = known.iter().enumerate().filter(|(_, known)| known.is_none() && !gone.is_empty());
        for (place, _) in unknown {
            new.entry(calls[place].1.name()).or_default().push(place);
        }
        for (name, places) in new {
            let Some(gone) = gone.get(&name) else { continue };
            let before: Vec<_> = gone.iter().map(|call| self.turns.now(self.calls[*call].turn)).collect();
            let wanted: Vec<_> = places.iter().map(|place| self.turns.now(calls[*place].1.turn)).collect();
            for (place, pair) in places.iter().zip(pairs(&before, &wanted)) {
                known[*place] = pair.map(|pair| gone[pair]);
            }
        }
        known
    }

    /// Leaves each drawn call to one call. One that was drawn for another run may have been taken for an equal one, and
    /// both are there now: it is the one with the event that was known first.
    fn settle_claims(&self, calls: &[(usize, CallNow<'_>)], known: &mut [Option<usize>]) {
        let mut claims = HashMap::<usize, usize>::new();
        for place in 0..known.len() {
            let Some(number) = known[place] else { continue };
            let Some(other) = claims.get(&number).copied() else {
                claims.insert(number, place);
                continue;
            };
            let event = self.calls[number].event;
            let is_first = calls[place].1.call.events.iter().any(|own| Some(*own) == event);
            let (winner, loser) = if is_first { (place, other) } else { (other, place) };
            claims.insert(number, winner);
            known[loser] = None;
        }
    }

    /// Takes a call.
    fn call<'a>(
        &mut self,
        now: &CallNow<'a>,
        known: Option<usize>,
        has_child: &dyn Fn(&ChildRun) -> bool,
    ) -> UnitNews<'a> {
        let number = known.unwrap_or(self.calls.len());
        for event in &now.call.events {
            self.calls_by_event.insert(*event, number);
        }
        let children = || now.call.child_runs.iter();
        let is_known = |child: &ChildRun| {
            let drawn = known.and_then(|known| self.calls[known].children.get(&child.run_id));
            let words = child_hash(child);
            drawn.is_some_and(|(drawn, has_drawn)| *drawn == words && (*has_drawn || !has_child(child)))
        };
        let new_children: Vec<&ChildRun> = children().filter(|child| !is_known(child)).collect();
        let records = now.records();
        if known.is_some_and(|known| self.calls[known].records == records) && new_children.is_empty() {
            return UnitNews::Nothing;
        }
        let view = CallView::of(now.call, now.result);
        let shown = view.approvals(now.detail).iter();
        let approvals: Vec<u64> = shown.clone().map(|asked| hash_of(&approval_words(asked).1)).collect();
        let mut call = DrawnCall {
            event: now.call.events.first().copied(),
            name: now.name(),
            turn: now.turn,
            records,
            face: view.face(),
            approvals,
            children: children().map(|child| (child.run_id, (child_hash(child), has_child(child)))).collect(),
        };
        let Some(drawn) = known.map(|known| &mut self.calls[known]) else {
            self.calls.push(call);
            return UnitNews::Whole;
        };
        call.event = drawn.event;
        for (child, (_, was_drawn)) in &drawn.children {
            call.children.entry(*child).and_modify(|(_, is_drawn)| *is_drawn |= *was_drawn);
        }
        let is_new = |place: &usize| drawn.approvals.get(*place) != call.approvals.get(*place);
        let new_approvals: Vec<_> =
            shown.enumerate().filter(|(place, _)| is_new(place)).map(|(_, asked)| asked).collect();
        let has_new_end = drawn.face.end != call.face.end;
        let has_new_diff = call.face.has_diff && !drawn.face.has_diff;
        let news = if drawn.face.has_input != call.face.has_input {
            UnitNews::Whole
        } else if !has_new_end && !has_new_diff && new_approvals.is_empty() && new_children.is_empty() {
            UnitNews::Nothing
        } else {
            let (approvals, children) = (new_approvals, new_children);
            let was_drawn = drawn.children.iter().filter(|(_, (_, has_drawn))| *has_drawn);
            let drawn_children = was_drawn.map(|(child, _)| *child).collect();
            let parts = CallParts { approvals, children, drawn_children, has_new_end, has_new_diff };
            UnitNews::Again(UnitContent::CallAgain { call: now.call, result: now.result, parts })
        };
        *drawn = call;
        news
    }

    /// Returns the units to draw. One that belongs to another turn than the last one comes below the heading of its turn.
    fn list<'a>(
        &mut self,
        now: &[UnitNow<'_, 'a>],
        news: Vec<UnitNews<'a>>,
        detail: Detail,
    ) -> Vec<Unit<'a>> {
        let mut list = UnitsToDraw { units: Vec::new(), end: None };
        for (UnitNow { unit, turn, .. }, news) in now.iter().zip(news) {
            list.end_turn(unit.turn);
            let content = match (news, &unit.content) {
                (UnitNews::Nothing, _) => continue,
                (UnitNews::End, UnitContent::Turn(turn)) => {
                    list.end = Some(turn);
                    continue;
                }
                (UnitNews::Again(content), _) => content,
                (UnitNews::Whole | UnitNews::End, content) => content.clone(),
            };
            if let (Some(of), Some(number)) = (unit.turn, self.turns.now(*turn))
                && is_shown(&content, detail)
            {
                let is_elsewhere = self.turns.now(self.heading) != Some(number);
                if is_elsewhere && !matches!(content, UnitContent::Turn(_)) {
                    list.push(Some(of), UnitContent::Turn(of));
                }
                self.heading = Some(number);
            }
            list.push(unit.turn, content);
        }
        list.end_turn(None);
        list.units
    }
}

/// Units to draw, and the turn whose end comes after its last one.
struct UnitsToDraw<'a> {
    units: Vec<Unit<'a>>,
    end: Option<&'a Turn>,
}

impl<'a> UnitsToDraw<'a> {
    /// Adds the end of the last turn before a unit of another one.
    fn end_turn(&mut self, next: Option<&Turn>) {
        let is_over = |turn: &&Turn| next.is_none_or(|next| place_of(next) != place_of(turn));
        if let Some(turn) = self.end.take_if(|turn| is_over(&&**turn)) {
            self.push(Some(turn), UnitContent::TurnEnd(turn));
        }
    }

    fn push(&mut self, turn: Option<&'a Turn>, content: UnitContent<'a>) {
        self.units.push(Unit { turn, content, may_grow: false });
    }
}

impl CallNow<'_> {
    /// Returns the name under which it is found if no event about it is known.
    fn name(&self) -> UnitName {
        UnitName("call", hash_of(&(&self.call.class, call_words(self.call, &[], None))))
    }

    /// Returns a hash of its records.
    fn records(&self) -> u64 {
        let result = self.result.map(|result| {
            let end = (&result.outcome, &result.error, &result.exit_code, self.call.is_dangling);
            (&result.tool_content, &result.patch, end)
        });
        let approvals = self.call.approvals.iter();
        let approvals: Vec<_> = approvals.map(|asked| hash_of(&approval_words(asked).1)).collect();
        hash_of(&(&self.call.tool_input, result, approvals))
    }
}

/// Pairs what was drawn with what there is now: in the same turn first. What is left is paired from the end, because what was
/// drawn live is at the end of what another run has.
fn pairs(drawn: &[Option<TurnNumber>], now: &[Option<TurnNumber>]) -> Vec<Option<usize>> {
    let mut by_turn = HashMap::<Option<TurnNumber>, Vec<usize>>::new();
    for (number, turn) in drawn.iter().enumerate().rev() {
        by_turn.entry(*turn).or_default().push(number);
    }
    let mut pairs: Vec<Option<usize>> =
        now.iter().map(|turn| by_turn.get_mut(turn).and_then(Vec::pop)).collect();
    let mut rest: Vec<usize> = by_turn.into_values().flatten().collect();
    rest.sort_unstable();
    for pair in pairs.iter_mut().rev().filter(|pair| pair.is_none()) {
        *pair = rest.pop();
    }
    pairs
}
