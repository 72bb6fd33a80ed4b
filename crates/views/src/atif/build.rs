//! Folds the events of one run into the steps of its trajectory.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;
use steno_model::json::RawJson;
use steno_model::{EventType, Evidence, ExchangeEvent, RunId, Word};

use super::blocks::{Marks, is_mark, part, told};
use super::calls::{Approval, CallNumber, Calls, Child};
use super::content::Part;
use super::group::{Adds, Belongs, Responses};
use super::metrics::{Used, told_in_all};
use super::steps::{Origin, Response, Role, Step, StepUsage, System, copied_from};
use crate::fields::{PayloadFields, session_run_id};
use crate::usage::{Tokens, UsageBuilder};

/// Where the bytes of records can be read, of which events carry only marks.
pub trait Records {
    /// Returns the bytes of a record; nothing where they cannot be had.
    fn record(&mut self, evidence: &Evidence) -> Option<Vec<u8>>;
}

/// No records: pictures in prompts are only named.
pub struct NoRecords;

impl Records for NoRecords {
    fn record(&mut self, _evidence: &Evidence) -> Option<Vec<u8>> {
        None
    }
}

/// Folds the events of one run, in order, into what a trajectory is written from. No event makes it fail.
pub struct RunBuilder {
    run: Run,
    usage: UsageBuilder,
    /// The last event that tells what the agent has added up for the session.
    total: Option<ExchangeEvent>,
    responses: Responses,
    /// Steps that have begun, by path, kind and name.
    open_steps: HashMap<[String; 3], usize>,
    /// Questions that wait for their answer, by the request's name.
    approvals: HashMap<String, (CallNumber, usize)>,
    effort: Option<RawJson>,
    /// Whether usage may come before the words that it is for.
    may_lead: bool,
}

/// A run that has been folded.
pub struct Run {
    pub(super) id: RunId,
    pub(super) parent: Option<RunId>,
    pub(super) session: Option<RunId>,
    /// The payload of `run.started`.
    pub(super) head: Option<RawJson>,
    pub(super) steps: Vec<Step>,
    pub(super) calls: Calls,
    /// The runs that it began, in order.
    pub(super) links: Vec<RunId>,
    /// What it used itself.
    pub(super) used: Option<Used>,
    /// What the agent says that it and its subagents used.
    pub(super) total: Option<Tokens>,
    pub(super) unknown: BTreeMap<String, u64>,
    /// Pictures of prompts whose bytes could not be read.
    pub(super) media_unread: u64,
}

impl Run {
    /// Returns the runs that it says it began.
    #[must_use]
    pub fn links(&self) -> &[RunId] {
        &self.links
    }
}

impl RunBuilder {
    /// Begins the trajectory of a run; events of other runs are left out.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        let run = Run {
            id: run,
            parent: None,
            session: None,
            head: None,
            steps: Vec::new(),
            calls: Calls::default(),
            links: Vec::new(),
            used: None,
            total: None,
            unknown: BTreeMap::new(),
            media_unread: 0,
        };
        Self {
            run,
            usage: UsageBuilder::new(),
            total: None,
            responses: Responses::default(),
            open_steps: HashMap::new(),
            approvals: HashMap::new(),
            effort: None,
            may_lead: false,
        }
    }

    /// Takes the next event of the run.
    pub fn push(&mut self, event: &ExchangeEvent, records: &mut dyn Records) {
        if event.run_id != self.run.id {
            return;
        }
        self.run.parent = self.run.parent.or(event.parent_run_id);
        self.run.session = self.run.session.or_else(|| session_run_id(event));
        let Word::Known(event_type) = &event.event_type else { return };
        let fields = PayloadFields::of(event);
        if UsageBuilder::wants(*event_type) {
            self.count(event, &fields);
        }
        match event_type {
            EventType::RunStarted => self.begin(event, &fields),
            EventType::RunCompleted => self.fail(event, &fields, "run"),
            EventType::MessageUser => self.user(event, &fields, records),
            EventType::MessageAssistant => self.assistant(event, &fields),
            EventType::ToolCall => {
                let (number, is_new) = self.run.calls.called(&fields);
                self.place(event, number, is_new);
            }
            EventType::ToolResult => self.result(event, &fields),
            EventType::CallWorkflowStarted | EventType::CallWorkflowCompleted => self.child(event, &fields),
            EventType::StepStarted => self.step(false, event, &fields),
            EventType::StepCompleted => self.step(true, event, &fields),
        }
    }

    /// Returns the run.
    #[must_use]
    pub fn finish(self) -> Run {
        let used = Used::of(self.usage).or_else(|| {
            let mut usage = UsageBuilder::new();
            usage.push(self.total.as_ref()?);
            Used::of(usage)
        });
        let total = self.total.as_ref().and_then(|event| PayloadFields::of(event).json("usage"));
        Run { used, total: total.map(|report| told_in_all(&report)), ..self.run }
    }

    /// Adds up what was used. What was copied was used elsewhere, and the agent's own total counts only where there is
    /// nothing else: it may include what subagents used.
    fn count(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let is_total = fields.text("usage_scope").is_some_and(|scope| scope == "session");
        match copied_from(event) {
            Some(_) => {}
            None if is_total => self.total = Some(event.clone()),
            None => self.usage.push(event),
        }
    }

    fn begin(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        if self.run.head.is_none() && !event.payload.is_null() {
            self.may_lead = fields.object("source").text("channel").is_some_and(|channel| channel == "disk");
            self.run.head = Some(event.payload.clone());
        }
    }

    fn add(&mut self, step: Step) -> usize {
        self.run.steps.push(step);
        self.run.steps.len() - 1
    }

    /// Makes a step of a failure; what ended well says nothing.
    fn fail(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>, kind: &str) {
        let Some(error) = fields.error() else { return };
        let system = System { kind: Some(kind.into()), name: fields.string("name"), ..System::default() };
        let mut step = Step::of(event, Role::System(system));
        step.parts.push(Part::Text(error));
        self.add(step);
    }

    fn user(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>, records: &mut dyn Records) {
        self.responses.end();
        let (mut system, mut said) = (Vec::new(), Vec::new());
        let blocks = fields.items("blocks");
        let mut media = Marks::of(event, &blocks, records);
        for block in &blocks {
            let inside = PayloadFields::parse(block.get());
            let kind = inside.text("type").unwrap_or_default();
            if kind == "tool_result" && self.run.calls.answered_in_message(&inside) {
                continue;
            }
            let is_system = inside.text("label").is_some_and(|label| label == "system_prompt");
            let part = if is_mark(&inside) { media.next(&inside) } else { part(&inside, block) };
            if is_system { system.push(part) } else { said.push(part) }
        }
        self.run.media_unread += media.unread;
        if !system.is_empty() {
            let role = System { kind: Some("system_prompt".into()), ..System::default() };
            let step = Step { parts: system, ..Step::of(event, Role::System(role)) };
            self.add(step);
        }
        if !said.is_empty() || blocks.is_empty() {
            let facts = fields.others(&["role", "blocks"]);
            let step = Step { parts: said, facts, ..Step::of(event, Role::User) };
            self.add(step);
        }
    }

    fn assistant(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let blocks = fields.items("blocks");
        let usage = StepUsage::read(fields);
        // Totals of a turn or a session belong to no step.
        if blocks.is_empty() && usage.is_none() {
            return;
        }
        let id = fields.json("response").filter(|id| !id.is_null());
        let adds = blocks.first().map(|block| {
            let is_call =
                PayloadFields::parse(block.get()).text("type").is_some_and(|kind| kind == "tool_use");
            if is_call { Adds::Call } else { Adds::Words }
        });
        let number = self.step_for(event, id.as_ref(), adds);
        for block in blocks {
            self.say(number, block);
        }
        let Some(Step { role: Role::Agent(response), facts, .. }) = self.run.steps.get_mut(number) else {
            return;
        };
        response.model = fields.string("model").or(response.model.take());
        response.stop_reason = fields.string("stop_reason").or(response.stop_reason.take());
        if let Some(phase) = fields.json("phase").filter(|_| facts.is_empty()) {
            facts.push(("phase".into(), phase));
        }
        if let Some(id) = id {
            self.responses.name(id.as_str(), number);
            response.id = Some(id);
            response.origin = Origin::Response;
        }
        if let Some(usage) = usage {
            response.origin = Origin::Response;
            match &mut response.usage {
                Some(known) => known.refine(usage),
                None => response.usage = Some(usage),
            }
            self.responses.used();
        }
    }

    /// Finds the step that a record of a response belongs to, or begins one. A record that adds nothing is usage.
    fn step_for(&mut self, event: &ExchangeEvent, id: Option<&RawJson>, adds: Option<Adds>) -> usize {
        if let Some(known) = id.and_then(|id| self.responses.named(id.as_str())) {
            return known;
        }
        let copied_from = copied_from(event);
        let is_elsewhere = |step: &Step| step.path != event.path || step.copied_from != copied_from;
        let now = self.responses.now().and_then(|now| self.run.steps.get(now));
        if now.is_some_and(is_elsewhere) {
            self.responses.end();
        }
        let belongs = match (adds, id) {
            (None, _) => self.responses.usage(self.may_lead),
            (Some(adds), None) => self.responses.more(adds),
            (Some(_), Some(_)) => Belongs::ToNone,
        };
        match belongs {
            Belongs::To(number, absorbed) => {
                for other in absorbed {
                    let (before, after) = self.run.steps.split_at_mut(other);
                    if let (Some(step), Some(other)) = (before.get_mut(number), after.first_mut()) {
                        step.absorb(other);
                    }
                }
                number
            }
            Belongs::ToNone => {
                let response = Response { effort: self.effort.clone(), ..Response::default() };
                let number = self.add(Step::of(event, Role::Agent(Box::new(response))));
                self.responses.begin(number, adds.unwrap_or(Adds::Words));
                number
            }
        }
    }

    /// Adds a block to a response.
    fn say(&mut self, number: usize, block: &RawValue) {
        let inside = PayloadFields::parse(block.get());
        let kind = inside.text("type").unwrap_or_default();
        if kind == "tool_result" && self.run.calls.answered_in_message(&inside) {
            return;
        }
        let call = (kind == "tool_use").then(|| self.run.calls.used(&inside));
        let Some(step) = self.run.steps.get_mut(number) else { return };
        let Role::Agent(response) = &mut step.role else { return };
        match (call, &*kind) {
            (Some(call), _) if !response.calls.contains(&call) => response.calls.push(call),
            (Some(_), _) => {}
            (None, "thinking") => match inside.string("thinking").filter(|thought| !thought.is_empty()) {
                Some(thought) => response.thoughts.push(thought),
                None => response.hidden_thoughts += 1,
            },
            (None, _) => step.parts.push(part(&inside, block)),
        }
    }

    /// Gives a call a step of its own until a response has it.
    fn place(&mut self, event: &ExchangeEvent, number: CallNumber, is_new: bool) {
        if is_new {
            let response = Response { calls: vec![number], origin: Origin::CallAlone, ..Response::default() };
            self.add(Step::of(event, Role::Agent(Box::new(response))));
        }
    }

    fn result(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let (number, is_new) = self.run.calls.answered(&event.timestamp, fields);
        self.place(event, number, is_new);
        let Some(step) = self.responses.now().and_then(|now| self.run.steps.get(now)) else { return };
        let Role::Agent(response) = &step.role else { return };
        let is_answered = |call: &CallNumber| self.run.calls.get(*call).result.is_some();
        if !response.calls.is_empty() && response.calls.iter().all(is_answered) {
            self.responses.answered();
        }
    }

    fn child(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let Some(run) = event.child_run_id else { return };
        let is_new = !self.run.links.contains(&run);
        if is_new {
            self.run.links.push(run);
        }
        let call = fields.string("tool_call_id").and_then(|id| self.run.calls.last(&id));
        let name = fields.string("name");
        match call {
            Some(number) => {
                let call = self.run.calls.get_mut(number);
                // Its end is told by another call, which began nothing.
                let is_known = call.children.iter().any(|child| child.run == run);
                if !is_known && event.event_type == Word::Known(EventType::CallWorkflowStarted) {
                    call.children.push(Child { run, name });
                }
            }
            None if is_new => {
                let system = System {
                    kind: Some("subagent".into()),
                    child: Some(run),
                    name: name.clone(),
                    ..System::default()
                };
                let mut step = Step::of(event, Role::System(system));
                step.parts.extend(name.map(Part::Text));
                self.add(step);
            }
            None => {}
        }
    }

    fn step(&mut self, is_end: bool, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        match &*fields.text("kind").unwrap_or_default() {
            "turn" => {
                self.responses.end();
                if is_end {
                    return self.fail(event, fields, "turn");
                }
                let effort = fields.object("settings").json("effort");
                self.effort =
                    effort.filter(|effort| effort.as_str().starts_with(['"', '-']) || is_number(effort));
            }
            "approval" => self.approval(is_end, event, fields),
            "unknown" => {
                let name = fields.text("name").unwrap_or_default().into_owned();
                *self.run.unknown.entry(name).or_default() += 1;
            }
            "amend" => {
                let id = fields.string("tool_call_id").or_else(|| fields.string("name"));
                let facts = fields.json("result").unwrap_or_else(RawJson::null);
                if !id.is_some_and(|id| self.run.calls.amended(&id, &facts)) {
                    self.fact(is_end, event, fields);
                }
            }
            "compaction" => {
                self.responses.end();
                let summary = fields.json("response").and_then(|id| self.responses.named(id.as_str()));
                if let Some(Step { role: Role::Agent(response), .. }) =
                    summary.and_then(|step| self.run.steps.get_mut(step))
                {
                    response.is_compaction = true;
                }
                self.fact(is_end, event, fields);
            }
            _ => self.fact(is_end, event, fields),
        }
    }

    fn approval(&mut self, is_end: bool, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let asked = Approval::read(fields, is_end);
        let name = fields.text("name").unwrap_or_default().into_owned();
        let begun = if is_end { self.approvals.remove(&name) } else { None };
        if let Some((call, place)) = begun {
            if let Some(known) = self.run.calls.get_mut(call).approvals.get_mut(place) {
                *known = asked;
            }
            return;
        }
        let Some(call) = fields.string("tool_call_id").and_then(|id| self.run.calls.last(&id)) else {
            return self.fact(is_end, event, fields);
        };
        let approvals = &mut self.run.calls.get_mut(call).approvals;
        approvals.push(asked);
        if !is_end {
            self.approvals.insert(name, (call, approvals.len() - 1));
        }
    }

    /// Makes a step of any other step: its beginning and its end are one.
    fn fact(&mut self, is_end: bool, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let text = |name| fields.text(name).unwrap_or_default().into_owned();
        let key = [event.path.to_text().into_owned(), text("kind"), text("name")];
        let begun = if is_end { self.open_steps.remove(&key) } else { None };
        let number = begun.unwrap_or_else(|| self.add(Step::of(event, Role::System(System::default()))));
        let (said, result) = told(fields.json("result"));
        let error = fields.error();
        let Some(step) = self.run.steps.get_mut(number) else { return };
        step.facts.extend(fields.others(&["name", "kind", "result", "error"]));
        let said = said.or_else(|| error.clone()).or_else(|| fields.string("name"));
        step.parts = said.map(Part::Text).into_iter().collect();
        step.role = Role::System(System {
            kind: fields.string("kind"),
            name: fields.string("name"),
            error,
            result,
            is_open: !is_end,
            child: None,
        });
        if !is_end {
            self.open_steps.insert(key, number);
        }
    }
}

fn is_number(json: &RawJson) -> bool {
    json.as_str().starts_with(|first: char| first.is_ascii_digit())
}
