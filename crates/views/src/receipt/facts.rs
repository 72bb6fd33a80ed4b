//! Facts of a turn besides its items: approvals, commands, file changes.

use std::collections::{HashMap, HashSet};

use steno_model::RunId;
use steno_model::receipt::{LineageRun, MissingRange};
use steno_model::records::{EventRecord, ItemKind, ItemRecord};
use steno_session::{
    Effect, Outcome, PayloadFields, RunNumber, Session, State, Turn, TurnId, has_provider_ids,
};

use super::approvals::{self, Approvals};

/// Facts of a turn besides its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFacts {
    /// The numbers of its events in its own run.
    pub seqs: Vec<u64>,
    /// The runs that were used; `None` for a directory of records.
    pub runs: Option<Vec<LineageRun>>,
    /// Its approvals.
    pub approvals: Approvals,
    /// How many times the sandbox refused something.
    pub sandbox_denied: u64,
    /// How many commands ran.
    pub commands: u64,
    /// How many changes of files were made.
    pub changes: u64,
    /// How many more commands may have run.
    pub commands_open: u64,
    /// How many more changes may have been made.
    pub changes_open: u64,
    /// The ids of calls by their items, if only events have them.
    pub call_ids: HashMap<String, String>,
    /// The runs that have the turn, its own first.
    pub channels: Vec<Channel>,
    /// What is missing in these runs according to their notes.
    pub missing: Vec<MissingRange>,
    /// What was left out of which run, and why.
    pub left_out: Vec<String>,
}

/// A run that has a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The kinds of facts it carries; `None` if it does not say.
    pub carries: Option<Vec<String>>,
    /// Whether it has the whole turn, without a gap.
    pub is_whole: bool,
}

impl TurnFacts {
    /// Reads the facts of a turn of a session; `missing` is from the notes of its runs.
    #[must_use]
    pub fn of_session(session: &Session, turn: TurnId, missing: &HashMap<RunId, Vec<MissingRange>>) -> Self {
        let Some(known) = session.turns.get(turn.0) else { return Self::default() };
        let mut facts = Self {
            seqs: seqs_in(known, known.at.run),
            left_out: left_out(session, known),
            runs: Some(runs(session)),
            approvals: approvals_of(session, turn),
            ..Self::default()
        };
        let is_sandbox = |fact: &&steno_session::Fact| {
            let is_kind = fact.kind.as_ref().is_some_and(|kind| kind.is("sandbox"));
            is_kind && fact.turn == Some(turn) && fact.state != State::Open
        };
        facts.read_channels(session, known, missing);
        facts.sandbox_denied = session.facts.iter().filter(is_sandbox).count() as u64;
        for call in session.calls.iter().filter(|call| call.turn == Some(turn)) {
            match call.effect() {
                Effect::Command => facts.commands += 1,
                Effect::Change => facts.changes += 1,
                Effect::Unknown if call.is_class("command") => facts.commands_open += 1,
                Effect::Unknown => facts.changes_open += 1,
                Effect::None => {}
            }
        }
        facts
    }

    /// Reads what the runs of a turn carry, and what each of them lacks.
    fn read_channels(&mut self, session: &Session, turn: &Turn, missing: &HashMap<RunId, Vec<MissingRange>>) {
        for (number, head) in turn.runs.iter().filter_map(|run| Some((*run, session.runs.get(run.0)?))) {
            let seqs = seqs_in(turn, number);
            let Some((first, last)) = seqs.iter().min().zip(seqs.iter().max()) else { continue };
            // An agent's own file may have the whole turn without a record of its end.
            let is_own_file = head.channel.as_deref() == Some("disk");
            let mut is_whole = is_own_file || turn.ended_in.is_empty() || turn.ended_in.contains(&number);
            for range in missing.get(&head.id()).into_iter().flatten() {
                if let MissingRange::Noted { after_seq, count, what, .. } = range
                    && (first..=last).contains(&after_seq)
                {
                    is_whole = false;
                    let run_id = (number != turn.at.run).then(|| head.id().to_string());
                    let (after_seq, count, what) = (*after_seq, *count, what.clone());
                    self.missing.push(MissingRange::Noted { after_seq, count, what, run_id });
                }
            }
            let begun = head.beginnings.iter().rev().find(|(seq, _)| seq.get() <= *last);
            let carries = begun.and_then(|(_, words)| words.clone());
            self.channels.push(Channel { carries, is_whole });
        }
    }

    /// Reads the facts of a turn of a directory of records.
    #[must_use]
    pub fn of_records(items: &[&ItemRecord], events: &[&EventRecord]) -> Self {
        let of_kind =
            |kind: ItemKind| items.iter().filter(|item| item.kind.known() == Some(kind)).count() as u64;
        let mut call_ids = HashMap::new();
        for event in events.iter().filter(|event| event.event == "item.started") {
            let payload = PayloadFields::parse(event.payload.as_str());
            if let Some((item, id)) = event.item_id.as_ref().zip(payload.object("tool").text("id")) {
                call_ids.entry(item.clone()).or_insert_with(|| id.into_owned());
            }
        }
        Self {
            seqs: events.iter().map(|event| event.seq).collect(),
            approvals: approvals::count(events.iter().copied()),
            sandbox_denied: events.iter().filter(|event| event.event == "sandbox.denied").count() as u64,
            commands: of_kind(ItemKind::CommandExecution),
            changes: of_kind(ItemKind::FileChange),
            call_ids,
            ..Self::default()
        }
    }
}

/// Counts requests and answers, and each denied call once, with or without a request.
fn approvals_of(session: &Session, turn: TurnId) -> Approvals {
    let mut counts = Approvals::default();
    let mut denied_calls = HashSet::new();
    for approval in session.approvals.iter().filter(|approval| approval.turn == Some(turn)) {
        counts.required += u64::from(approval.is_asked);
        match (approval.is_allowed(), approval.call) {
            (Some(true), _) => counts.allowed += 1,
            (Some(false), Some(call)) => drop(denied_calls.insert(call.0)),
            (Some(false), None) => counts.denied += 1,
            (None, _) => {}
        }
    }
    for (number, call) in session.calls.iter().enumerate() {
        if call.turn == Some(turn) && call.outcome() == Outcome::Denied {
            denied_calls.insert(number);
        }
    }
    counts.denied += denied_calls.len() as u64;
    counts
}

/// Returns the numbers of a turn's events in one run.
fn seqs_in(turn: &Turn, run: RunNumber) -> Vec<u64> {
    let all = turn.events.iter().chain(&turn.left_out);
    all.filter(|at| at.run == run).map(|at| at.seq.get()).collect()
}

/// Returns what a receipt leaves out, because no id links it to the turn.
fn left_out(session: &Session, turn: &Turn) -> Vec<String> {
    let mut reasons = Vec::new();
    for (number, run) in session.runs.iter().enumerate() {
        let events = turn.left_out.iter().filter(|at| at.run == RunNumber(number)).count() as u64;
        if RunNumber(number) != RunNumber::MAIN && !has_provider_ids(run) {
            reasons.push(format!("run {} is left out: its ids are its own", run.id()));
        } else if events > 0 {
            let events = crate::count_in_digits(events, "event");
            reasons.push(format!("{events} of run {} left out: no id ties them to the turn", run.id()));
        }
    }
    reasons
}

/// Returns the runs that a session was read from.
fn runs(session: &Session) -> Vec<LineageRun> {
    let run = |run: &steno_session::SessionRun| LineageRun {
        run_id: run.id().to_string(),
        tree_size: run.events,
        adapter: run.head.as_ref().and_then(|head| {
            let source = PayloadFields::parse(head.as_str()).object("source");
            source.text("adapter").map(std::borrow::Cow::into_owned)
        }),
    };
    session.runs.iter().map(run).collect()
}
