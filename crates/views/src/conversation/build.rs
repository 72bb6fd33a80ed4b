//! Folds the events of one run into its conversation.

use std::collections::HashMap;

use steno_model::json::RawJson;
use steno_model::{EventType, ExchangeEvent, RunId, Word};

use super::calls::{CallNumber, Calls, Reported};
use super::parts::{Part, Piece, TurnNumber, Turns, blocks, copied_from, end_state};
use super::{Approval, ChildRun, Conversation, Fact, Message, Said};
use crate::State;
use crate::fields::{PayloadFields, forked_from, session_run_id};

/// Where the latest state of something is kept: with a call, or in a place of its own.
#[derive(Clone, Copy)]
enum Kept {
    WithCall(CallNumber, usize),
    Apart(usize),
}

/// Folds the events of one run, in order, into a [`Conversation`]. No event makes it fail.
pub struct ConversationBuilder {
    shown: Conversation,
    turns: Turns,
    calls: Calls,
    parts: Vec<(Option<TurnNumber>, Part)>,
    system_prompts: Vec<(Said, Vec<Piece>)>,
    /// The message that goes on when more of the model's words come: after a result or a prompt none does.
    speaking: Option<usize>,
    /// Messages by the provider's id of their response.
    responses: HashMap<String, usize>,
    approvals: HashMap<String, Kept>,
    children: HashMap<RunId, Kept>,
    /// Steps that have begun, by path, kind and name.
    open_steps: HashMap<[String; 3], usize>,
}

impl ConversationBuilder {
    /// Begins the conversation of `run_id`; events of other runs are counted and left out.
    #[must_use]
    pub fn new(run_id: RunId) -> Self {
        let shown = Conversation {
            run_id,
            parent_run_id: None,
            session_run_id: None,
            forked_from: None,
            name: None,
            state: State::Open,
            error: None,
            system_prompts: Vec::new(),
            outside: Vec::new(),
            turns: Vec::new(),
            calls: 0,
            dangling_calls: Vec::new(),
            unknown_records: std::collections::BTreeMap::new(),
            unknown_types: std::collections::BTreeMap::new(),
            unknown_blocks: std::collections::BTreeMap::new(),
            foreign_events: 0,
        };
        Self {
            shown,
            turns: Turns::default(),
            calls: Calls::default(),
            parts: Vec::new(),
            system_prompts: Vec::new(),
            speaking: None,
            responses: HashMap::new(),
            approvals: HashMap::new(),
            children: HashMap::new(),
            open_steps: HashMap::new(),
        }
    }

    /// Takes the next event of the run.
    pub fn push(&mut self, event: &ExchangeEvent) {
        if event.run_id != self.shown.run_id {
            self.shown.foreign_events += 1;
            return;
        }
        self.shown.parent_run_id = self.shown.parent_run_id.or(event.parent_run_id);
        self.shown.session_run_id = self.shown.session_run_id.or_else(|| session_run_id(event));
        for found in event.unknown_block_types() {
            *self.shown.unknown_blocks.entry(found.to_text().into_owned()).or_default() += 1;
        }
        match &event.event_type {
            Word::Known(known) => self.push_known(*known, event),
            Word::Unknown(found) => {
                *self.shown.unknown_types.entry(found.to_text().into_owned()).or_default() += 1;
            }
        }
    }

    /// Returns the conversation of what has been pushed.
    #[must_use]
    pub fn finish(mut self) -> Conversation {
        let calls = &mut self.calls;
        let items = self.parts.into_iter();
        let items = items.filter_map(|(turn, part)| part.finish(calls).map(|item| (turn, item))).collect();
        let (turns, outside) = self.turns.fill(items);
        let prompts = self.system_prompts.into_iter();
        let system_prompts =
            prompts.map(|(said, pieces)| Said { blocks: blocks(pieces, calls), ..said }).collect();
        let (count, dangling_calls) = (calls.len(), calls.dangling());
        Conversation { turns, outside, system_prompts, calls: count, dangling_calls, ..self.shown }
    }

    fn push_known(&mut self, event_type: EventType, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        match event_type {
            EventType::RunStarted => {
                self.shown.name = fields.string("name").or(self.shown.name.take());
                self.shown.forked_from = self.shown.forked_from.or_else(|| forked_from(&fields));
                (self.shown.state, self.shown.error) = (State::Open, None);
            }
            EventType::RunCompleted => {
                self.shown.error = fields.error();
                self.shown.state = end_state(self.shown.error.is_some());
            }
            EventType::MessageUser => self.user(event, &fields),
            EventType::MessageAssistant => self.assistant(event, &fields),
            EventType::ToolCall => {
                let reported = self.calls.called(event.seq, &fields);
                self.place_call(event, &reported);
            }
            EventType::ToolResult => {
                let reported = self.calls.answered(event.seq, &fields);
                self.place_call(event, &reported);
                self.speaking = None;
            }
            EventType::CallWorkflowStarted | EventType::CallWorkflowCompleted => {
                self.child(event_type == EventType::CallWorkflowCompleted, event, &fields);
            }
            EventType::StepStarted => self.step(false, event, &fields),
            EventType::StepCompleted => self.step(true, event, &fields),
        }
    }

    fn add(&mut self, event: &ExchangeEvent, part: Part) -> usize {
        self.parts.push((self.turns.around(&event.path.to_text()), part));
        self.parts.len() - 1
    }

    fn place_call(&mut self, event: &ExchangeEvent, reported: &Reported) {
        if reported.is_new {
            self.add(event, Part::Call(event.seq, reported.number));
        }
    }

    fn user(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        self.speaking = None;
        let (mut system, mut said) = (Vec::new(), Vec::new());
        let is_empty = fields.items("blocks").is_empty();
        for block in fields.items("blocks") {
            let inside = PayloadFields::parse(block.get());
            if inside.string("type").is_some_and(|found| found.is("tool_result"))
                && self.calls.answered_in_message(&inside)
            {
                continue;
            }
            let is_system = inside.string("label").is_some_and(|label| label.is("system_prompt"));
            let blocks = if is_system { &mut system } else { &mut said };
            blocks.push(Piece::Recorded(RawJson::from_raw(block)));
        }
        let head = Said {
            seq: event.seq,
            at: event.timestamp.clone(),
            copied_from: copied_from(event),
            blocks: Vec::new(),
        };
        if !said.is_empty() || is_empty {
            self.add(event, Part::Prompt(head.clone(), said));
        }
        if !system.is_empty() {
            self.system_prompts.push((head, system));
        }
    }

    fn assistant(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let mut pieces = Vec::new();
        for block in fields.items("blocks") {
            let inside = PayloadFields::parse(block.get());
            let kind = inside.string("type");
            let is = |name: &str| kind.as_ref().is_some_and(|kind| kind.is(name));
            if is("tool_result") && self.calls.answered_in_message(&inside) {
                continue;
            }
            let call = if is("tool_use") { self.calls.used(&inside) } else { None };
            pieces.push(call.map_or_else(|| Piece::Recorded(RawJson::from_raw(block)), Piece::Call));
        }
        let response = fields.json("response").filter(|response| !response.is_null());
        // Usage that comes apart names the response that it was for; what comes next is another one.
        let is_usage = pieces.is_empty();
        let Some(place) = self.message_for(event, response.as_ref(), is_usage) else { return };
        let Some((_, Part::Message(message, said))) = self.parts.get_mut(place) else { return };
        said.extend(pieces);
        message.model = fields.string("model").or(message.model.take());
        message.stop_reason = fields.string("stop_reason").or(message.stop_reason.take());
        if let Some(response) = response {
            self.responses.insert(response.as_str().to_owned(), place);
            message.response = Some(response);
        }
        self.speaking = (!is_usage).then_some(place);
    }

    /// Finds the message that more of a response belongs to, or begins one; usage alone begins none.
    fn message_for(
        &mut self,
        event: &ExchangeEvent,
        response: Option<&RawJson>,
        is_usage: bool,
    ) -> Option<usize> {
        let turn = self.turns.around(&event.path.to_text());
        let known = response.and_then(|response| self.responses.get(response.as_str()));
        let is_here = |place: &usize| self.parts.get(*place).is_some_and(|(found, _)| *found == turn);
        if let Some(place) = known.copied().filter(is_here) {
            return Some(place);
        }
        let is_same = |place: &usize| match self.parts.get(*place) {
            Some((_, Part::Message(message, _))) => response.is_none() || message.response.is_none(),
            Some(_) | None => false,
        };
        if let Some(place) = self.speaking.filter(is_here).filter(is_same) {
            return Some(place);
        }
        if is_usage {
            return None;
        }
        let message = Message {
            seq: event.seq,
            at: event.timestamp.clone(),
            copied_from: copied_from(event),
            response: None,
            model: None,
            stop_reason: None,
            blocks: Vec::new(),
        };
        Some(self.add(event, Part::Message(message, Vec::new())))
    }

    fn step(&mut self, is_end: bool, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let kind = fields.string("kind");
        let is = |name: &str| kind.as_ref().is_some_and(|kind| kind.is(name));
        match () {
            () if is("turn") => {
                self.speaking = None;
                if is_end { self.turns.end(event) } else { self.turns.begin(event) }
            }
            () if is("approval") => self.approval(is_end, event, fields),
            () if is("unknown") => {
                let name = fields.string("name").map_or_else(String::new, |name| name.to_text().into_owned());
                *self.shown.unknown_records.entry(name).or_default() += 1;
            }
            () if is("amend") => {
                let id = fields.string("tool_call_id").or_else(|| fields.string("name"));
                if !id.is_some_and(|id| self.calls.amended(&id, &fields.object("result"))) {
                    self.fact(is_end, event, fields);
                }
            }
            () => self.fact(is_end, event, fields),
        }
    }

    fn fact(&mut self, is_end: bool, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let text = |name| fields.string(name).map_or_else(String::new, |text| text.to_text().into_owned());
        let key = [event.path.to_text().into_owned(), text("kind"), text("name")];
        let begun = if is_end { self.open_steps.remove(&key) } else { None };
        let error = fields.error();
        let state = if is_end { end_state(error.is_some()) } else { State::Open };
        if let Some((_, Part::Fact(fact) | Part::Compaction(fact))) =
            begun.and_then(|place| self.parts.get_mut(place))
        {
            (fact.state, fact.error, fact.result) = (state, error, fields.json("result"));
            return;
        }
        let fact = Fact {
            seq: event.seq,
            at: event.timestamp.clone(),
            kind: fields.string("kind"),
            name: fields.string("name"),
            state,
            error,
            result: fields.json("result"),
        };
        let is_compaction = fact.kind.as_ref().is_some_and(|kind| kind.is("compaction"));
        let place = self.add(event, if is_compaction { Part::Compaction(fact) } else { Part::Fact(fact) });
        if !is_end {
            self.open_steps.insert(key, place);
        }
    }

    fn approval(&mut self, is_end: bool, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let answer = fields.object("result");
        let asked = Approval {
            request: fields.string("name"),
            seq: event.seq,
            tool_call_id: fields.string("tool_call_id"),
            state: if is_end { end_state(fields.error().is_some()) } else { State::Open },
            decision: answer.string("decision"),
            by: answer.string("by"),
            scope: answer.string("scope"),
        };
        let name = asked.request.as_ref().map_or_else(String::new, |name| name.to_text().into_owned());
        let begun = if is_end { self.approvals.remove(&name) } else { None };
        if let Some(kept) = begun {
            let found = match kept {
                Kept::WithCall(call, place) => self.calls.get(call).tool_use.approvals.get_mut(place),
                Kept::Apart(place) => match self.parts.get_mut(place) {
                    Some((_, Part::Approval(approval))) => Some(approval),
                    Some(_) | None => None,
                },
            };
            if let Some(found) = found {
                *found = Approval {
                    seq: found.seq,
                    tool_call_id: found.tool_call_id.take().or(asked.tool_call_id),
                    ..asked
                };
            }
            return;
        }
        let call = asked.tool_call_id.as_ref().and_then(|id| self.calls.last(id));
        let kept = match call {
            Some(call) => {
                let approvals = &mut self.calls.get(call).tool_use.approvals;
                approvals.push(asked);
                Kept::WithCall(call, approvals.len() - 1)
            }
            None => Kept::Apart(self.add(event, Part::Approval(asked))),
        };
        if !is_end {
            self.approvals.insert(name, kept);
        }
    }

    fn child(&mut self, is_end: bool, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let Some(run_id) = event.child_run_id else { return self.fact(is_end, event, fields) };
        let error = fields.error();
        let state = if is_end { end_state(error.is_some()) } else { State::Open };
        let found = match self.children.get(&run_id) {
            Some(Kept::WithCall(call, place)) => self.calls.get(*call).tool_use.child_runs.get_mut(*place),
            Some(Kept::Apart(place)) => match self.parts.get_mut(*place) {
                Some((_, Part::Child(child))) => Some(child),
                Some(_) | None => None,
            },
            None => None,
        };
        if let Some(child) = found {
            (child.state, child.error) = (state, error);
            return;
        }
        let tool_call_id = fields.string("tool_call_id");
        let call = tool_call_id.as_ref().and_then(|id| self.calls.last(id));
        let name = fields.string("name");
        let child = ChildRun { run_id, name, seq: event.seq, tool_call_id, state, error };
        let kept = match call {
            Some(call) => {
                let children = &mut self.calls.get(call).tool_use.child_runs;
                children.push(child);
                Kept::WithCall(call, children.len() - 1)
            }
            None => Kept::Apart(self.add(event, Part::Child(child))),
        };
        self.children.insert(run_id, kept);
    }
}
