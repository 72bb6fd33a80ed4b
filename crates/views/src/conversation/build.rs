//! Builds the conversation of a session.

use std::collections::BTreeMap;

use steno_model::json::RawJson;
use steno_model::{RunId, Seq};
use steno_session::{
    Call, CallNumber, Effect, EndedBy, EventPosition, ItemKind, Message as Record, Outcome, Response,
    ResponseId, ResponseOrigin, RunNumber, Session, SessionRun,
};

use super::{
    Approval, Block, ChildRun, Conversation, Fact, Item, LooseCall, Message, Prompt, SourceRun, ToolResult,
    ToolUse, Turn,
};
use crate::nodes::RECORDED_PATCHES;
use crate::{EventRef, State};

impl Conversation {
    /// Returns the conversation of a session.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        let shown = ConversationBuilder(session);
        let main = session.runs.first();
        let (mut turns, mut outside) = (shown.turns(), Vec::new());
        let mut outside_orders = Vec::new();
        for item in &session.items {
            let Some(made) = shown.item(item.kind) else { continue };
            if let Some(turn) = item.turn.and_then(|turn| turns.get_mut(turn.0)) {
                turn.items.push(made);
            } else {
                outside.push(made);
                outside_orders.push(item.order);
            }
        }
        for (turn, known) in turns.iter_mut().zip(&session.turns) {
            turn.outside_before = outside_orders.partition_point(|order| *order < known.order);
        }
        let text =
            |(name, count): (&steno_model::json::JsonString, &u64)| (name.to_text().into_owned(), *count);
        Self {
            run_id: session.id,
            runs: session.runs.iter().map(source_run).collect(),
            parent_run_id: main.and_then(|main| main.summary.parent_run_id),
            session_run_id: main.and_then(|main| main.summary.session_run_id),
            forked_from: main.and_then(|main| main.forked_from),
            name: main.and_then(|main| main.summary.name.clone()),
            state: main.map_or(State::Open, |main| main.summary.state),
            error: main.and_then(|main| main.summary.error.clone()),
            system_prompts: shown.system_prompts(),
            outside,
            turns,
            responses: session.responses.iter().filter(|response| is_known(response)).count() as u64,
            calls: session.calls.len() as u64,
            file_changes: session.calls.iter().filter(|call| call.effect() == Effect::Change).count() as u64,
            usage: session.used.map(|used| RawJson::object(|object| used.write(object))),
            dangling_calls: session.dangling().filter_map(|call| call.id.clone()).collect(),
            branches: session.branches.len() as u64,
            unknown_records: session.unknown_records.clone(),
            unknown_types: session.unknown_types.iter().map(text).collect(),
            unknown_blocks: session.unknown_blocks.iter().map(text).collect(),
            foreign_events: session.foreign_events,
        }
    }
}

/// Tells whether the records are known to be one response, and not only consecutive words.
fn is_known(response: &Response) -> bool {
    match response.origin {
        ResponseOrigin::Response => true,
        ResponseOrigin::Words => false,
    }
}

fn source_run(run: &SessionRun) -> SourceRun {
    SourceRun {
        run_id: run.id(),
        channel: run.channel.clone(),
        adapter: run.adapter.clone(),
        events: run.events,
        matched: run.matched,
        alike: run.alike,
        unmatched: run.unmatched,
    }
}

/// Builds the parts of a conversation from a session.
struct ConversationBuilder<'a>(&'a Session);

impl ConversationBuilder<'_> {
    fn run(&self, at: EventPosition) -> RunId {
        self.0.run_of(at)
    }

    fn event(&self, at: EventPosition) -> EventRef {
        EventRef { run: self.run(at), seq: at.seq }
    }

    /// Returns the first event of each run.
    fn first_events(&self, events: &[EventPosition]) -> Vec<EventRef> {
        let mut first = BTreeMap::<RunNumber, Seq>::new();
        for at in events {
            let seq = first.entry(at.run).or_insert(at.seq);
            *seq = at.seq.min(*seq);
        }
        first.into_iter().map(|(run, seq)| self.event(EventPosition { run, seq })).collect()
    }

    fn turns(&self) -> Vec<Turn> {
        let turn = |turn: &steno_session::Turn| Turn {
            path: self.0.steps[turn.step.0].path.clone(),
            turn_id: turn.turn_id.clone(),
            run: self.run(turn.at),
            seq: turn.at.seq,
            started_at: turn.started_at.clone(),
            ended_at: turn.ended_at.clone(),
            state: crate::state_of(turn.status),
            status: turn.status.name(),
            ended_by: turn.ended_by.map(EndedBy::name),
            error: turn.error.clone(),
            items: Vec::new(),
            outside_before: 0,
            first_events: self.first_events(&turn.events),
        };
        self.0.turns.iter().map(turn).collect()
    }

    fn system_prompts(&self) -> Vec<Prompt> {
        let prompts = self.0.items.iter().filter_map(|item| match item.kind {
            ItemKind::SystemPrompt(message) => Some(self.prompt_of(&self.0.messages[message.0])),
            ItemKind::Prompt(_)
            | ItemKind::Response(_)
            | ItemKind::Call(_)
            | ItemKind::Approval(_)
            | ItemKind::Child(_)
            | ItemKind::Fact(_) => None,
        });
        prompts.collect()
    }

    fn item(&self, kind: ItemKind) -> Option<Item> {
        Some(match kind {
            ItemKind::Prompt(message) => Item::Prompt(self.prompt_of(&self.0.messages[message.0])),
            ItemKind::SystemPrompt(_) => return None,
            ItemKind::Response(response) => Item::Message(self.message(response)?),
            ItemKind::Call(number) => {
                let call = &self.0.calls[number.0];
                let (run, seq) = (self.run(call.at), call.at.seq);
                Item::Call(LooseCall { run, seq, blocks: self.blocks_of(number).collect() })
            }
            ItemKind::Approval(approval) => Item::Approval(self.approval(approval)),
            ItemKind::Child(child) => Item::Child(self.child(child)),
            ItemKind::Fact(fact) => {
                let fact = self.fact(&self.0.facts[fact.0]);
                let is_compaction = fact.kind.as_ref().is_some_and(|kind| kind.is("compaction"));
                if is_compaction { Item::Compaction(fact) } else { Item::Fact(fact) }
            }
        })
    }

    fn prompt_of(&self, message: &Record) -> Prompt {
        Prompt {
            run: self.run(message.at),
            seq: message.at.seq,
            at: message.time.clone(),
            copied_from: run_of(message.copied_from.as_ref()),
            blocks: self.blocks(message).collect(),
        }
    }

    /// Returns a response as a message; `None` if only its usage is recorded.
    fn message(&self, id: ResponseId) -> Option<Message> {
        let response: &Response = &self.0.responses[id.0];
        if response.messages.is_empty() {
            return None;
        }
        let blocks = response.messages.iter().flat_map(|message| self.blocks(&self.0.messages[message.0]));
        Some(Message {
            run: self.run(response.at),
            seq: response.at.seq,
            at: response.time.clone(),
            copied_from: run_of(response.copied_from.as_ref()),
            response: response.id.clone(),
            model: response.model.clone(),
            stop_reason: response.stop_reason.clone(),
            blocks: blocks.collect(),
        })
    }

    fn blocks(&self, message: &Record) -> impl Iterator<Item = Block> {
        message.blocks.iter().flat_map(|block| match block {
            steno_session::Block::Recorded(block) => vec![Block::Recorded(block.clone())],
            steno_session::Block::Call(call) => self.blocks_of(*call).collect(),
            steno_session::Block::Elsewhere => Vec::new(),
        })
    }

    /// Returns a call as blocks: the call and its result.
    fn blocks_of(&self, number: CallNumber) -> impl Iterator<Item = Block> + use<> {
        let call = &self.0.calls[number.0];
        let result = self.result_of(call).map(|result| Block::ToolResult(Box::new(result)));
        [Block::ToolUse(Box::new(self.tool_use(call)))].into_iter().chain(result)
    }

    fn tool_use(&self, call: &Call) -> ToolUse {
        ToolUse {
            fidelity: call.fidelity.clone(),
            tool_name: call.name.clone(),
            tool_id: call.id.clone(),
            tool_input: call.input.clone(),
            class: call.class.clone(),
            run: self.run(call.called.unwrap_or(call.at)),
            seq_call: call.called.map(|at| at.seq),
            is_dangling: !call.is_answered,
            approvals: call.approvals.iter().map(|approval| self.approval(*approval)).collect(),
            child_runs: call.children.iter().map(|child| self.child(*child)).collect(),
            events: call.events.iter().map(|at| self.event(*at)).collect(),
        }
    }

    fn approval(&self, id: steno_session::ApprovalId) -> Approval {
        let approval = &self.0.approvals[id.0];
        Approval {
            request: approval.request.clone(),
            run: self.run(approval.at),
            seq: approval.at.seq,
            tool_call_id: approval.tool_call_id.clone(),
            state: approval.state,
            decision: approval.decision.clone(),
            by: approval.by.clone(),
            scope: approval.scope.clone(),
        }
    }

    fn child(&self, id: steno_session::ChildId) -> ChildRun {
        let child = &self.0.children[id.0];
        ChildRun {
            run_id: child.run_id,
            name: child.name.clone(),
            run: self.run(child.at),
            seq: child.at.seq,
            tool_call_id: child.tool_call_id.clone(),
            state: child.state,
            error: child.error.clone(),
        }
    }

    fn fact(&self, fact: &steno_session::Fact) -> Fact {
        Fact {
            run: self.run(fact.at),
            seq: fact.at.seq,
            at: fact.time.clone(),
            kind: fact.kind.clone(),
            name: fact.name.clone(),
            state: fact.state,
            error: fact.error.clone(),
            result: fact.result.clone(),
        }
    }

    fn result_of(&self, call: &Call) -> Option<ToolResult> {
        let result = call.result.as_ref()?;
        Some(ToolResult {
            fidelity: result.fidelity.clone(),
            tool_id: call.id.clone(),
            tool_content: result.output.clone(),
            outcome: match call.outcome() {
                Outcome::Failed => Some("failed".into()),
                Outcome::Open | Outcome::Ok | Outcome::Denied | Outcome::Interrupted | Outcome::Unknown => {
                    result.outcome.clone()
                }
            },
            error: result.error.clone(),
            exit_code: call.exit_code().map(RawJson::from).or_else(|| result.exit_code.clone()),
            patch: RECORDED_PATCHES.iter().find_map(|name| call.latest_field(name)),
            run: result.at.map(|at| self.run(at)),
            seq_result: result.at.map(|at| at.seq),
            duration_ms: crate::text_format::milliseconds_between(Some(&call.time), result.time.as_ref()),
            is_amended: !call.amendments.is_empty(),
        })
    }
}

/// Returns the run that a record is copied from, if it is a run.
fn run_of(copied_from: Option<&steno_model::json::JsonString>) -> Option<RunId> {
    RunId::parse(&copied_from?.to_text()).ok()
}
