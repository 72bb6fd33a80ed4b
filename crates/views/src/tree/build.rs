//! Builds the step tree of a session.

use std::collections::{HashMap, HashSet};

use steno_model::CallId;
use steno_model::json::{JsonString, RawJson};
use steno_session::{
    Block, Call, EventPosition, Message, Outcome, PayloadFields, Session, Speaker, Step as SessionStep,
    StepId, TurnStatus,
};

use super::{Counts, Link, RunTree, Step};
use crate::EventRef;
use crate::digest::DigestState;

impl RunTree {
    /// Returns the tree of a session.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        let main = session.runs.first();
        let mut tree = Self::new(session.id);
        if let Some(main) = main {
            let summary = &main.summary;
            tree.parent_run_id = summary.parent_run_id;
            tree.session_run_id = summary.session_run_id;
            tree.forked_from = main.forked_from;
            (tree.name, tree.kind) = (summary.name.clone(), summary.kind.clone());
            (tree.state, tree.error) = (summary.state, summary.error.clone());
            (tree.started_at, tree.ended_at) = (summary.started_at.clone(), summary.ended_at.clone());
            tree.last = summary.seq_last.map(|seq| EventRef { run: main.id(), seq });
        }
        tree.session_state = DigestState::of(session);
        tree.events = session.runs.iter().map(|run| run.events).sum();
        tree.roots.clone_from(&session.roots);
        let mut tools = HashMap::new();
        for call in &session.calls {
            if let Some((id, name)) =
                call.id.as_ref().zip(call.name.as_ref()).filter(|(_, name)| !name.is_empty())
            {
                tools.entry(id.to_text().into_owned()).or_insert(name);
            }
        }
        let calls: HashSet<String> =
            session.calls.iter().filter_map(|call| Some(call.id.as_ref()?.to_text().into_owned())).collect();
        let is_folded = |step: &SessionStep| {
            let id = step.tool_call_id.as_ref().or(step.name.as_ref());
            let is_amend = step.kind.as_ref().is_some_and(|kind| kind.is("amend"));
            is_amend && id.is_some_and(|id| calls.contains(&*id.to_text()))
        };
        tree.steps = session
            .steps
            .iter()
            .map(|step| Step { is_folded: is_folded(step), ..shown(session, step, &tools) })
            .collect();
        tree.links = links(session);
        tree.dangling = session.dangling().filter_map(|call| call.id.clone()).map(CallId).collect();
        tree.unknown_types.clone_from(&session.unknown_types);
        tree.unknown_blocks.clone_from(&session.unknown_blocks);
        tree.foreign_events = session.foreign_events;
        tree.count(session);
        tree
    }

    fn counts_at(&mut self, step: Option<StepId>) -> &mut Counts {
        match step.and_then(|step| self.steps.get_mut(step.0)) {
            Some(step) => &mut step.counts,
            None => &mut self.counts,
        }
    }

    fn count(&mut self, session: &Session) {
        for message in session.messages.iter().filter(|message| message.speaker == Speaker::User) {
            self.counts_at(message.step).messages += u64::from(says_something(message));
        }
        for response in &session.responses {
            let mut records = response.messages.iter().map(|message| &session.messages[message.0]);
            self.counts_at(response.step).messages += u64::from(records.any(says_something));
        }
        for call in &session.calls {
            self.counts_at(call.step).calls += u64::from(call.is_recorded);
            let place = call.result.as_ref().and_then(|result| result.step).or(call.step);
            let counts = self.counts_at(place);
            counts.results += u64::from(call.is_answered);
            match ending(call) {
                Some(BadOutcome::Failed) => counts.failed += 1,
                Some(BadOutcome::Denied) => counts.denied += 1,
                None => {}
            }
        }
    }
}

/// The outcomes of calls that are counted as bad.
enum BadOutcome {
    Failed,
    Denied,
}

fn ending(call: &Call) -> Option<BadOutcome> {
    match call.outcome() {
        Outcome::Denied => Some(BadOutcome::Denied),
        Outcome::Failed | Outcome::Interrupted => Some(BadOutcome::Failed),
        Outcome::Open | Outcome::Ok | Outcome::Unknown => None,
    }
}

/// Returns the runs that are named as children, each once a step.
fn links(session: &Session) -> Vec<Link> {
    let mut seen = HashSet::new();
    let mut links = Vec::new();
    for &(run_id, step) in &session.links {
        if seen.insert((run_id, step)) {
            links.push(Link { run_id, step });
        }
    }
    links
}

fn shown(session: &Session, step: &SessionStep, tools: &HashMap<String, &JsonString>) -> Step {
    let is_approval = step.kind.as_ref().is_some_and(|kind| kind.is("approval"));
    let call = step.tool_call_id.as_ref().filter(|_| is_approval);
    let turn = step.turn.map(|turn| &session.turns[turn.0]);
    let event = |at: EventPosition| EventRef { run: session.run_of(at), seq: at.seq };
    let mut shown = Step {
        facts: step.clone(),
        started: step.started.map(event),
        completed: step.completed.map(event),
        tool_name: call.and_then(|id| tools.get(&*id.to_text())).map(|name| (*name).clone()),
        is_interrupted: turn.is_some_and(|turn| turn.status == TurnStatus::Interrupted),
        is_folded: false,
        counts: Counts::default(),
    };
    if let Some(turn) = turn {
        // The session model decides how a turn ended.
        shown.facts.state = crate::state_of(turn.status);
        shown.facts.error.clone_from(&turn.error);
        shown.facts.ended_at.clone_from(&turn.ended_at);
    }
    shown
}

/// Tells whether a message has content.
fn says_something(message: &Message) -> bool {
    message.blocks.iter().any(|block| match block {
        Block::Recorded(block) => block_says_something(block),
        Block::Call(_) => true,
        Block::Elsewhere => false,
    })
}

/// Tells whether a block has content. Results are counted separately.
fn block_says_something(block: &RawJson) -> bool {
    let block = PayloadFields::parse(block.as_str());
    let is = |name: &str, word: &str| block.text(name).is_some_and(|text| text == word);
    let is_empty = |name: &str| block.text(name).is_none_or(|text| text.is_empty());
    if is("type", "tool_result") {
        return false;
    }
    let is_blank = is_empty("text") && is_empty("label");
    !(is("type", "text") && is_blank)
}
