//! Folds events into a session in one pass. No event makes it fail.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use steno_model::json::{JsonString, RawJson};
use steno_model::{BlockType, EventType, ExchangeEvent, RunId, Vocabulary as _, Word};

use crate::calls::{Calls, Content};
use crate::fields::{BlockFields, PayloadFields};
use crate::grouping::Grouping;
use crate::reports::{Reports, Subject};
use crate::session::{
    Approval, ApprovalId, Branch, Call, CallNumber, CallResult, ChildId, ChildLink, EventPosition, Fact,
    FactId, Item, ItemKind, Message, Response, ResponseId, RunNumber, Session, SessionRun, StepId, TurnId,
};
use crate::state::State;
use crate::steps::StepFold;
use crate::turns::Turns;
use crate::usage::{SessionUsage, UsageBuilder, UsedBelow};

/// Folds the events of one run, in order, into a [`Session`]. For several runs see [`merge`](crate::merge()).
pub struct SessionBuilder {
    pub(crate) id: RunId,
    pub(crate) content: Content,
    pub(crate) runs: Vec<SessionRun>,
    pub(crate) steps: StepFold,
    pub(crate) turns: Turns,
    pub(crate) messages: Vec<Message>,
    pub(crate) responses: Vec<Response>,
    pub(crate) calls: Calls,
    pub(crate) approvals: Vec<Approval>,
    pub(crate) children: Vec<ChildLink>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) items: Vec<Item>,
    pub(crate) grouping: Grouping,
    /// A response, and how many of its first calls have results.
    answered: (ResponseId, usize),
    /// Responses that were merged into an earlier one.
    pub(crate) absorbed: Vec<bool>,
    /// The last approval request by run and name.
    pub(crate) asked: HashMap<(RunNumber, String), ApprovalId>,
    /// How many approvals of a call each run has.
    pub(crate) asks: HashMap<(CallNumber, RunNumber), usize>,
    /// Children by their run ids.
    pub(crate) children_by_run: HashMap<RunId, ChildId>,
    links: Vec<(RunId, Option<StepId>)>,
    /// The step of the current event.
    step_now: Option<StepId>,
    pub(crate) reports: Reports,
    /// Steps that have begun, by path, kind and name.
    open_facts: HashMap<[String; 3], FactId>,
    /// The reasoning effort that the model is set to.
    pub(crate) effort: Option<RawJson>,
    unknown_records: BTreeMap<String, u64>,
    unknown_types: BTreeMap<JsonString, u64>,
    unknown_blocks: BTreeMap<JsonString, u64>,
    foreign_events: u64,
    pub(crate) branches: Vec<Branch>,
    usage: SessionUsage,
}

/// An event that is being folded in.
pub(crate) struct IncomingEvent<'a> {
    pub(crate) event: &'a ExchangeEvent,
    pub(crate) fields: PayloadFields<'a>,
    /// The blocks of a message.
    pub(crate) blocks: Vec<BlockFields<'a>>,
    pub(crate) at: EventPosition,
    pub(crate) step: Option<StepId>,
    pub(crate) turn: Option<TurnId>,
    /// Whether another run has the same fact: then the event may make the fact more exact, and adds no new one.
    pub(crate) is_repeat: bool,
}

impl SessionBuilder {
    /// Begins the session of a run; events of other runs are counted and left out.
    #[must_use]
    pub fn new(run: RunId, content: Content) -> Self {
        Self::of_runs(run, &[run], content)
    }

    /// Begins a session of several runs.
    pub(crate) fn of_runs(id: RunId, runs: &[RunId], content: Content) -> Self {
        Self {
            id,
            content,
            runs: runs.iter().map(|run| SessionRun::new(*run)).collect(),
            steps: StepFold::new(),
            turns: Turns::default(),
            messages: Vec::new(),
            responses: Vec::new(),
            calls: Calls::default(),
            approvals: Vec::new(),
            children: Vec::new(),
            facts: Vec::new(),
            items: Vec::new(),
            grouping: Grouping::default(),
            answered: (ResponseId(0), 0),
            absorbed: Vec::new(),
            asked: HashMap::new(),
            asks: HashMap::new(),
            children_by_run: HashMap::new(),
            links: Vec::new(),
            step_now: None,
            reports: Reports::default(),
            open_facts: HashMap::new(),
            effort: None,
            unknown_records: BTreeMap::new(),
            unknown_types: BTreeMap::new(),
            unknown_blocks: BTreeMap::new(),
            foreign_events: 0,
            branches: Vec::new(),
            usage: SessionUsage::default(),
        }
    }

    /// Takes the next event of the run.
    pub fn push(&mut self, event: &ExchangeEvent) {
        if event.run_id != self.runs[0].id() {
            self.foreign_events += 1;
            return;
        }
        self.runs[0].push(event);
        let fields = PayloadFields::of(event);
        if self.content == Content::Whole {
            self.usage.push(event, &fields);
        }
        self.take_event(RunNumber::MAIN, event, fields, false);
    }

    /// Adds the usage of an event.
    pub(crate) fn use_tokens(&mut self, event: &ExchangeEvent) {
        let is_wanted = self.content == Content::Whole;
        if is_wanted && event.event_type.known().is_some_and(UsageBuilder::may_tell) {
            self.usage.push(event, &PayloadFields::of(event));
        }
    }

    /// Takes an event of one of the runs. The head of the run is updated separately.
    pub(crate) fn take(&mut self, run: RunNumber, event: &ExchangeEvent, is_repeat: bool) {
        self.take_event(run, event, PayloadFields::of(event), is_repeat);
    }

    fn take_event(
        &mut self,
        run: RunNumber,
        event: &ExchangeEvent,
        fields: PayloadFields<'_>,
        is_repeat: bool,
    ) {
        let blocks = match event.event_type.known() {
            Some(EventType::MessageUser | EventType::MessageAssistant) => BlockFields::all(&fields),
            Some(_) | None => Vec::new(),
        };
        if !is_repeat && may_have_unknown_blocks(event, &fields, &blocks) {
            for name in event.unknown_block_types() {
                *self.unknown_blocks.entry(name).or_default() += 1;
            }
        }
        let step = self.steps.owner(event);
        let turn = self.turns.around(&event.path.to_text());
        let at = EventPosition { run, seq: event.seq };
        let incoming = IncomingEvent { event, fields, blocks, at, step, turn, is_repeat };
        self.step_now = step;
        let turn = match &event.event_type {
            Word::Known(known) => self.take_known(*known, &incoming),
            Word::Unknown(name) => {
                if !is_repeat {
                    *self.unknown_types.entry(name.clone()).or_default() += 1;
                }
                turn
            }
        };
        if let Some(child) = event.child_run_id.filter(|_| !is_repeat) {
            self.links.push((child, self.step_now));
        }
        self.turns.saw(turn, at);
    }

    /// Takes an event of one of the ten types; returns the turn that it belongs to.
    fn take_known(&mut self, event_type: EventType, incoming: &IncomingEvent<'_>) -> Option<TurnId> {
        match event_type {
            EventType::RunStarted | EventType::RunCompleted => {}
            EventType::MessageUser => self.user(incoming),
            EventType::MessageAssistant => self.assistant(incoming),
            EventType::ToolCall => self.call(incoming),
            EventType::ToolResult => self.result(incoming),
            EventType::CallWorkflowStarted | EventType::CallWorkflowCompleted => {
                let is_end = event_type == EventType::CallWorkflowCompleted;
                let step = self.place_step(incoming, is_end);
                self.child(incoming, step, is_end);
            }
            EventType::StepStarted => return self.step(incoming, false),
            EventType::StepCompleted => return self.step(incoming, true),
        }
        incoming.turn
    }

    fn place_step(&mut self, incoming: &IncomingEvent<'_>, is_end: bool) -> Option<StepId> {
        if incoming.is_repeat {
            return incoming.step;
        }
        let IncomingEvent { event, fields, at, .. } = incoming;
        self.step_now = Some(if is_end {
            self.steps.completed(event, fields, *at)
        } else {
            self.steps.started(event, fields, *at)
        });
        self.step_now
    }

    fn step(&mut self, incoming: &IncomingEvent<'_>, is_end: bool) -> Option<TurnId> {
        let kind = incoming.fields.text("kind").unwrap_or_default();
        if kind == "turn" {
            return self.turn(incoming, is_end);
        }
        self.place_step(incoming, is_end);
        let turn = incoming.turn;
        match &*kind {
            "approval" => self.approval(incoming, turn, is_end),
            "unknown" if !incoming.is_repeat => {
                let name = incoming.fields.text("name").unwrap_or_default().into_owned();
                *self.unknown_records.entry(name).or_default() += 1;
            }
            "unknown" => {}
            "amend" => match self.calls.amended(&incoming.fields, turn) {
                Some(call) if incoming.is_repeat => self.note_report(call, incoming),
                Some(call) => {
                    self.calls.amend(call, &incoming.fields, self.content);
                    if let Some(result) = &mut self.calls.all[call.0].result {
                        result.amended = Some(incoming.at);
                    }
                    self.note_report(call, incoming);
                }
                None => self.fact(incoming, turn, is_end),
            },
            "compaction" => {
                self.grouping.end();
                self.turns.fact(turn, incoming);
                let named = incoming.fields.json_text("response");
                let named = named.and_then(|id| self.grouping.named(&response_key(id, incoming.at.run)));
                if let Some(summary) = named {
                    self.responses[summary.0].is_compaction = true;
                }
                self.fact(incoming, turn, is_end);
            }
            "error" => {
                self.turns.error(turn, incoming);
                self.fact(incoming, turn, is_end);
            }
            _ => self.fact(incoming, turn, is_end),
        }
        turn
    }

    /// Takes the beginning or the end of a turn.
    fn turn(&mut self, incoming: &IncomingEvent<'_>, is_end: bool) -> Option<TurnId> {
        self.grouping.end();
        if !is_end {
            let effort = incoming.fields.object("settings").json("effort");
            self.effort =
                effort.filter(|effort| effort.as_str().starts_with(['"', '-']) || is_number(effort));
        }
        if let Some(known) = self.turns.at_path(incoming).filter(|_| is_end || incoming.is_repeat) {
            let step = self.turns.step_of(known);
            if !is_end {
                self.turns.refine(known, incoming);
            } else if self.turns.end(known, incoming, self.items.len()) {
                self.steps.end_turn(step, incoming);
            }
            return Some(known);
        }
        if incoming.is_repeat {
            return incoming.turn;
        }
        let step = self.place_step(incoming, is_end)?;
        let turn = self.turns.begin(step, incoming, self.items.len());
        self.steps.steps[step.0].turn = Some(turn);
        if is_end {
            self.turns.end(turn, incoming, self.items.len());
        }
        Some(turn)
    }

    fn call(&mut self, incoming: &IncomingEvent<'_>) {
        let reported = self.calls.called(&incoming.fields, new_call(incoming), self.content);
        self.note_report(reported.number, incoming);
        self.turns.fact(incoming.turn, incoming);
        if reported.is_new {
            self.add(incoming.turn, ItemKind::Call(reported.number));
        }
    }

    fn result(&mut self, incoming: &IncomingEvent<'_>) {
        let new = new_call(incoming);
        let reported = self.calls.answered(&incoming.fields, new, new_result(incoming), self.content);
        if reported.is_new {
            self.add(incoming.turn, ItemKind::Call(reported.number));
        }
        if self.calls.all[reported.number.0].response.is_none() {
            // No record says which response made the call, so the next words begin a new response.
            self.grouping.answered();
        }
        self.note_report(reported.number, incoming);
        self.turns.fact(self.calls.all[reported.number.0].turn, incoming);
        self.end_answered();
    }

    /// Ends the current response when all its calls have results.
    pub(crate) fn end_answered(&mut self) {
        let Some(now) = self.grouping.now() else { return };
        let calls = &self.responses[now.0].calls;
        let is_answered = |call: &&CallNumber| self.calls.all[call.0].result.is_some();
        if self.answered.0 != now {
            self.answered = (now, 0);
        }
        self.answered.1 += calls[self.answered.1..].iter().take_while(is_answered).count();
        if !calls.is_empty() && self.answered.1 == calls.len() {
            self.grouping.answered();
        }
    }

    /// Records that an event is about a call.
    pub(crate) fn note_report(&mut self, call: CallNumber, incoming: &IncomingEvent<'_>) {
        self.reports.add(Subject::Call(call), incoming.turn, incoming.at);
    }

    /// Records an event of another run that no id links to the session.
    pub(crate) fn leave_out(&mut self, run: RunNumber, event: &ExchangeEvent) {
        let turn = self.turns.around(&event.path.to_text());
        self.turns.leave_out(turn, EventPosition { run, seq: event.seq });
    }

    pub(crate) fn add(&mut self, turn: Option<TurnId>, kind: ItemKind) {
        self.items.push(Item { order: self.items.len(), turn, kind });
    }

    pub(crate) fn fact(&mut self, incoming: &IncomingEvent<'_>, turn: Option<TurnId>, is_end: bool) {
        let IncomingEvent { event, fields, is_repeat: false, .. } = incoming else { return };
        let text = |name| fields.text(name).unwrap_or_default().into_owned();
        let key = [event.path.to_text().into_owned(), text("kind"), text("name")];
        let begun = if is_end { self.open_facts.remove(&key) } else { None };
        let is_whole = self.content == Content::Whole;
        let extra = if is_whole { fields.others(&["name", "kind", "result", "error"]) } else { Vec::new() };
        let error = fields.error();
        let state = if is_end { State::of_end(error.is_some()) } else { State::Open };
        let result = if is_whole { fields.json("result") } else { None };
        if let Some(known) = begun {
            let fact = &mut self.facts[known.0];
            (fact.state, fact.error, fact.result) = (state, error, result);
            fact.extra.extend(extra);
            return;
        }
        let id = FactId(self.facts.len());
        self.facts.push(Fact {
            at: incoming.at,
            time: event.timestamp.clone(),
            turn,
            path: event.path.clone(),
            copied_from: copied_from(event),
            kind: fields.string("kind"),
            name: fields.string("name"),
            is_begun: !is_end,
            state,
            error,
            result,
            extra,
        });
        self.add(turn, ItemKind::Fact(id));
        if !is_end {
            self.open_facts.insert(key, id);
        }
    }

    /// Returns the session of all pushed events.
    #[must_use]
    pub fn finish(mut self) -> Session {
        self.reports.name_runs(&mut self.calls.all, &mut self.approvals);
        self.reports.tell(&mut self.turns);
        let turns = self.turns.finish(&self.calls.all, &self.runs, self.content);
        let is_shown = |item: &Item| match item.kind {
            // A call that a response holds is shown there.
            ItemKind::Call(call) => self.calls.all[call.0].response.is_none(),
            ItemKind::Response(response) => !self.absorbed[response.0],
            ItemKind::Prompt(_)
            | ItemKind::SystemPrompt(_)
            | ItemKind::Approval(_)
            | ItemKind::Child(_)
            | ItemKind::Fact(_) => true,
        };
        let items = self.items.iter().filter(|item| is_shown(item)).copied().collect();
        let usage = self.usage.finish();
        // Sessions below it may be added later.
        let below = UsedBelow { is_complete: self.links.is_empty(), ..UsedBelow::default() };
        let (used, used_by_model) = usage.parts.sum(below);
        Session {
            id: self.id,
            runs: self.runs,
            steps: self.steps.steps,
            roots: self.steps.roots,
            turns,
            messages: self.messages,
            responses: self.responses,
            calls: self.calls.all,
            approvals: self.approvals,
            children: self.children,
            links: self.links,
            facts: self.facts,
            items,
            unknown_records: self.unknown_records,
            unknown_types: self.unknown_types,
            unknown_blocks: self.unknown_blocks,
            foreign_events: self.foreign_events,
            branches: self.branches,
            used,
            used_by_model,
            usage_parts: usage.parts,
            reported_total: usage.reported_total,
            agent_cost: usage.agent_cost,
        }
    }
}

/// Tells whether an event may have blocks of unknown types. This is a quick check, because most have none.
fn may_have_unknown_blocks(
    event: &ExchangeEvent,
    fields: &PayloadFields<'_>,
    blocks: &[BlockFields<'_>],
) -> bool {
    match event.event_type.known() {
        // Their payloads are large and have no blocks.
        Some(EventType::ToolCall | EventType::ToolResult) => false,
        Some(EventType::MessageUser | EventType::MessageAssistant) if !blocks.is_empty() => {
            let is_known = |block: &BlockFields<'_>| {
                block.fields.text("type").is_some_and(|kind| BlockType::find(&kind).is_some())
            };
            !blocks.iter().all(is_known)
        }
        Some(_) | None => fields.json_text("blocks").is_some() || event.payload.as_str().starts_with('['),
    }
}

/// Makes the call that an event may start.
pub(crate) fn new_call(incoming: &IncomingEvent<'_>) -> Call {
    Call {
        at: incoming.at,
        time: incoming.event.timestamp.clone(),
        turn: incoming.turn,
        step: incoming.step,
        path: incoming.event.path.clone(),
        id: None,
        called: None,
        is_recorded: false,
        name: None,
        input: None,
        fidelity: None,
        class: None,
        extra: Vec::new(),
        result: None,
        is_answered: false,
        amendments: Vec::new(),
        approvals: Vec::new(),
        children: Vec::new(),
        response: None,
        runs: Vec::new(),
        events: Vec::new(),
        is_declined: false,
    }
}

/// Makes the result that an event has.
pub(crate) fn new_result(incoming: &IncomingEvent<'_>) -> CallResult {
    CallResult {
        at: Some(incoming.at),
        time: Some(incoming.event.timestamp.clone()),
        step: incoming.step,
        ..CallResult::default()
    }
}

/// Returns the run or session that an event is copied from.
pub(crate) fn copied_from(event: &ExchangeEvent) -> Option<JsonString> {
    let from = event.extra.get("copied_from").filter(|from| !from.is_null())?;
    let run = || serde_json::from_str(from.as_str()).ok().and_then(JsonString::from_raw);
    let session = PayloadFields::parse(from.as_str()).string("session_id");
    Some(session.or_else(run).unwrap_or_else(|| "unknown".into()))
}

/// Returns the key of a response: the provider's id, else a number that is valid in its run.
pub(crate) fn response_key(id: &str, run: RunNumber) -> Cow<'_, str> {
    if id.starts_with('"') { Cow::Borrowed(id) } else { Cow::Owned(format!("{}#{id}", run.0)) }
}

fn is_number(json: &RawJson) -> bool {
    json.as_str().starts_with(|first: char| first.is_ascii_digit())
}
