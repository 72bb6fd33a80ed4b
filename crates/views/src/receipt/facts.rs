//! What a turn's events tell besides its items: who was asked, what ran, what changed.

use std::collections::HashMap;

use steno_model::receipt::LineageRun;
use steno_model::records::{EventRecord, ItemKind, ItemRecord};
use steno_session::{At, Effect, Outcome, PayloadFields, Session, State, TurnId};

use super::approvals::{self, Approvals};

/// What a turn's events tell besides its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFacts {
    /// The numbers of its events in the run that it is addressed by.
    pub seqs: Vec<u64>,
    /// The runs that were used; `None` for a directory of records.
    pub runs: Option<Vec<LineageRun>>,
    /// Who was asked, and what was not allowed.
    pub approvals: Approvals,
    /// How often the sandbox refused something.
    pub sandbox_denied: u64,
    /// How many commands ran.
    pub commands: u64,
    /// How many changes of files were made.
    pub changes: u64,
    /// How many commands may have run besides.
    pub commands_open: u64,
    /// How many changes may have been made besides.
    pub changes_open: u64,
    /// The ids of calls by their items, where only events tell them.
    pub call_ids: HashMap<String, String>,
}

impl TurnFacts {
    /// Reads the facts of a turn of a session.
    #[must_use]
    pub fn of_session(session: &Session, turn: TurnId) -> Self {
        let Some(known) = session.turns.get(turn.0) else { return Self::default() };
        let owner = known.at.run;
        let is_own = |at: &&At| at.run == owner;
        let mut facts = Self {
            seqs: known.events.iter().filter(is_own).map(|at| at.seq.get()).collect(),
            runs: Some(runs(session)),
            approvals: approvals_of(session, turn),
            ..Self::default()
        };
        let is_sandbox = |fact: &&steno_session::Fact| {
            let is_kind = fact.kind.as_ref().is_some_and(|kind| kind.is("sandbox"));
            is_kind && fact.turn == Some(turn) && fact.state != State::Open
        };
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

/// Counts questions and answers, and of denials each call once, with or without a question.
fn approvals_of(session: &Session, turn: TurnId) -> Approvals {
    let mut counts = Approvals::default();
    for approval in session.approvals.iter().filter(|approval| approval.turn == Some(turn)) {
        let is = |word: &str| approval.decision.as_ref().is_some_and(|decision| decision.is(word));
        counts.required += u64::from(approval.is_asked);
        counts.allowed += u64::from(is("allowed"));
        let is_counted = approval.call.is_some_and(|call| {
            let call = &session.calls[call.0];
            call.outcome() == Outcome::Denied && call.turn == Some(turn)
        });
        counts.denied += u64::from(is("denied") && !is_counted);
    }
    let is_denied =
        |call: &&steno_session::Call| call.turn == Some(turn) && call.outcome() == Outcome::Denied;
    counts.denied += session.calls.iter().filter(is_denied).count() as u64;
    counts
}

/// Names the runs that a session was read from.
fn runs(session: &Session) -> Vec<LineageRun> {
    let run = |run: &steno_session::RunHead| LineageRun {
        run_id: run.id.to_string(),
        tree_size: run.events,
        adapter: run.adapter.clone(),
    };
    session.runs.iter().map(run).collect()
}
