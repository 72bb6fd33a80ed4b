//! Makes the steps of a trajectory from a session.

use std::collections::BTreeMap;

use steno_model::json::{JsonString, RawJson};
use steno_model::{Evidence, RunId};
use steno_session::usage::{TokenUsage, Tokens};
use steno_session::{
    Block, EventPosition, ItemKind, Message, PayloadFields, ResponseOrigin, Session, SessionRun, State, Turn,
    TurnStatus,
};

use super::blocks::{Marks, is_mark, part, split_text};
use super::calls::{CallNumber, Calls};
use super::content::Part;
use super::steps::{Origin, Response, Role, Stands, Step, System};

/// Access to the records of events that carry only marks.
pub trait Records {
    /// Returns the bytes of a record, if they are available.
    fn record(&mut self, evidence: &Evidence) -> Option<Vec<u8>>;
}

/// Access to no records: pictures in prompts are only named.
pub struct NoRecords;

impl Records for NoRecords {
    fn record(&mut self, _evidence: &Evidence) -> Option<Vec<u8>> {
        None
    }
}

/// A session that can be written as a trajectory.
pub struct Run {
    pub(super) id: RunId,
    pub(super) parent: Option<RunId>,
    pub(super) session: Option<RunId>,
    /// The runs that the session consists of.
    pub(super) runs: Vec<RunId>,
    /// The payload of `run.started`.
    pub(super) head: Option<RawJson>,
    pub(super) steps: Vec<Step>,
    pub(super) calls: Calls,
    /// The runs that it started, in order.
    pub(super) links: Vec<RunId>,
    /// Its own usage.
    pub(super) used: Option<TokenUsage>,
    /// The usage of the session and its subagents, as the agent reports it.
    pub(super) total: Option<Tokens>,
    pub(super) unknown: BTreeMap<String, u64>,
    /// The number of pictures in prompts whose bytes could not be read.
    pub(super) media_unread: u64,
}

impl Run {
    /// Makes the steps of a session. Reads pictures of prompts from the records.
    #[must_use]
    pub fn of(session: Session, records: &mut dyn Records) -> Self {
        let main = session.runs.first();
        let mut maker = Maker { session: &session, records, steps: Vec::new(), media_unread: 0 };
        maker.all();
        if let Some(error) = main.and_then(|main| main.summary.error.as_ref()) {
            maker.run_failed(error);
        }
        let Maker { steps, media_unread, .. } = maker;
        let mut links = Vec::new();
        for child in &session.children {
            if !links.contains(&child.run_id) {
                links.push(child.run_id);
            }
        }
        Self {
            id: session.id,
            parent: main.and_then(|main| main.summary.parent_run_id),
            session: main.and_then(|main| main.summary.session_run_id),
            runs: session.runs.iter().map(SessionRun::id).collect(),
            head: main.and_then(|main| main.head.clone()),
            steps,
            links,
            used: session.used,
            total: session.reported_total.as_ref().map(Tokens::reported_sum),
            unknown: session.unknown_records.clone(),
            media_unread,
            calls: Calls::of(session),
        }
    }

    /// Returns the runs that the session names as its children.
    #[must_use]
    pub fn links(&self) -> &[RunId] {
        &self.links
    }
}

struct Maker<'a> {
    session: &'a Session,
    records: &'a mut dyn Records,
    steps: Vec<Step>,
    media_unread: u64,
}

impl Maker<'_> {
    /// Makes all steps, in order: the content of the session, and turns that failed.
    fn all(&mut self) {
        let session = self.session;
        let mut ends: Vec<&Turn> = session.turns.iter().filter(|turn| turn.order_end.is_some()).collect();
        ends.sort_by_key(|turn| turn.order_end);
        let mut ends = ends.into_iter().peekable();
        for item in &session.items {
            while let Some(turn) = ends.next_if(|turn| turn.order_end.is_some_and(|end| end <= item.order)) {
                self.turn_ended(turn);
            }
            self.item(item.kind);
        }
        ends.for_each(|turn| self.turn_ended(turn));
    }

    fn item(&mut self, kind: ItemKind) {
        let session = self.session;
        match kind {
            ItemKind::Prompt(id) => {
                let message = &session.messages[id.0];
                let parts = self.parts(message);
                let facts = message.extra.clone();
                self.steps.push(Step { parts, facts, ..Step::of(stands(message), Role::User) });
            }
            ItemKind::SystemPrompt(id) => {
                let message = &session.messages[id.0];
                let parts = self.parts(message);
                let system = System { kind: Some("system_prompt".into()), ..System::default() };
                self.steps.push(Step { parts, ..Step::of(stands(message), Role::System(system)) });
            }
            ItemKind::Response(id) => self.response(&session.responses[id.0]),
            ItemKind::Call(number) => {
                let call = &session.calls[number.0];
                let calls = vec![CallNumber(number.0)];
                let response = Response { calls, origin: Origin::CallAlone, ..Response::default() };
                let at = place(call.at, &call.time, &call.path, None);
                self.steps.push(Step::of(at, Role::Agent(Box::new(response))));
            }
            ItemKind::Approval(id) => self.approval(&session.approvals[id.0]),
            ItemKind::Child(id) => {
                let child = &session.children[id.0];
                let name = child.name.clone();
                let kind = Some("subagent".into());
                let system = System { kind, child: Some(child.run_id), name, ..System::default() };
                let at = place(child.at, &child.time, &child.path, None);
                let parts = child.name.clone().map(Part::Text).into_iter().collect();
                self.steps.push(Step { parts, ..Step::of(at, Role::System(system)) });
            }
            ItemKind::Fact(id) => self.fact(&session.facts[id.0]),
        }
    }

    /// Returns the parts of a message, with the pictures that can be found.
    fn parts(&mut self, message: &Message) -> Vec<Part> {
        let mut media = Marks::of(message, self.records);
        let mut parts = Vec::new();
        for block in &message.blocks {
            let Block::Recorded(block) = block else { continue };
            let inside = PayloadFields::parse(block.as_str());
            parts.push(if is_mark(&inside) { media.next(&inside) } else { part(&inside, block) });
        }
        self.media_unread += media.unread;
        parts
    }

    fn response(&mut self, known: &steno_session::Response) {
        let mut parts = Vec::new();
        let mut response = Response {
            id: known.id.clone(),
            model: known.model.clone(),
            effort: known.effort.clone(),
            stop_reason: known.stop_reason.clone(),
            calls: known.calls.iter().map(|call| CallNumber(call.0)).collect(),
            usage: known.usage.clone(),
            origin: match known.origin {
                ResponseOrigin::Words => Origin::Words,
                ResponseOrigin::Response => Origin::Response,
            },
            is_compaction: known.is_compaction,
            ..Response::default()
        };
        for block in known.messages.iter().flat_map(|id| &self.session.messages[id.0].blocks) {
            let Block::Recorded(block) = block else { continue };
            let inside = PayloadFields::parse(block.as_str());
            if inside.text("type").is_none_or(|kind| kind != "thinking") {
                parts.push(part(&inside, block));
                continue;
            }
            match inside.string("thinking").filter(|thought| !thought.is_empty()) {
                Some(thought) => response.thoughts.push(thought),
                None => response.hidden_thoughts += 1,
            }
        }
        let facts = known.phase.clone().map(|phase| ("phase".into(), phase)).into_iter().collect();
        let at = place(known.at, &known.time, &known.path, known.copied_from.as_ref());
        self.steps.push(Step { parts, facts, ..Step::of(at, Role::Agent(Box::new(response))) });
    }

    /// Makes a step of an approval that belongs to no call.
    fn approval(&mut self, approval: &steno_session::Approval) {
        let (text, result) = split_text(approval.answer.clone());
        let text = text.or_else(|| approval.request.clone());
        let system = System {
            kind: Some("approval".into()),
            name: approval.request.clone(),
            result,
            is_open: approval.state == State::Open,
            ..System::default()
        };
        let facts = approval.tool_call_id.as_ref().map(|id| ("tool_call_id".into(), id.to_json()));
        let at = place(approval.at, &approval.time, &approval.path, None);
        let parts = text.map(Part::Text).into_iter().collect();
        let facts = facts.into_iter().collect();
        self.steps.push(Step { parts, facts, ..Step::of(at, Role::System(system)) });
    }

    /// Makes one step of the beginning and the end of any other step.
    fn fact(&mut self, fact: &steno_session::Fact) {
        let (text, result) = split_text(fact.result.clone());
        let text = text.or_else(|| fact.error.clone()).or_else(|| fact.name.clone());
        let system = System {
            kind: fact.kind.clone(),
            name: fact.name.clone(),
            error: fact.error.clone(),
            result,
            is_open: fact.state == State::Open,
            child: None,
        };
        let at = place(fact.at, &fact.time, &fact.path, fact.copied_from.as_ref());
        let parts = text.map(Part::Text).into_iter().collect();
        let facts = fact.extra.clone();
        self.steps.push(Step { parts, facts, ..Step::of(at, Role::System(system)) });
    }

    /// Makes a step of a turn that failed or was interrupted. A completed turn gives no step.
    fn turn_ended(&mut self, turn: &Turn) {
        let session = self.session;
        let is_bad = matches!(turn.status, TurnStatus::Failed | TurnStatus::Interrupted);
        let Some(error) = turn.error.as_ref().filter(|_| is_bad) else { return };
        let step = &session.steps[turn.step.0];
        let Some((at, time)) = step.completed.zip(step.ended_at.as_ref()) else { return };
        let system = System { kind: Some("turn".into()), name: step.name.clone(), ..System::default() };
        let at = place(at, time, &step.path, None);
        self.steps
            .push(Step { parts: vec![Part::Text(error.clone())], ..Step::of(at, Role::System(system)) });
    }

    /// Makes a step of a failed run.
    fn run_failed(&mut self, error: &JsonString) {
        let Some(SessionRun { summary, .. }) = self.session.runs.first() else { return };
        let Some((seq, time)) = summary.seq_last.zip(summary.ended_at.as_ref()) else { return };
        let system = System { kind: Some("run".into()), name: summary.name.clone(), ..System::default() };
        let path = JsonString::from("");
        let at = place(EventPosition { run: steno_session::RunNumber::MAIN, seq }, time, &path, None);
        let step = Step::of(at, Role::System(system));
        self.steps.push(Step { parts: vec![Part::Text(error.clone())], ..step });
    }
}

fn stands(message: &Message) -> Stands<'_> {
    place(message.at, &message.time, &message.path, message.copied_from.as_ref())
}

fn place<'a>(
    at: EventPosition,
    time: &'a steno_model::Timestamp,
    path: &'a JsonString,
    copied_from: Option<&'a JsonString>,
) -> Stands<'a> {
    Stands { run: at.run, seq: at.seq, time, path, copied_from }
}
