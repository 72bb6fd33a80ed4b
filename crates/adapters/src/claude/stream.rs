//! `stream-json`: the output of Claude Code and, with the control protocol, its input. Finds the agent of each frame.

use std::collections::HashMap;

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{EntryType, Lane, RunId};

use super::agents::{Agent, SubagentStart};
use super::control::{RequestId, Requests};
use super::frames::{Denial, Request, StreamFrame};
use super::messages::{self, MessageContext};
use super::repeated_prompts::SentPrompts;
use super::results::{self, ResultContext, ResultOutcome};
use super::shapes::is_odd_frame;
use super::stream_turns::StreamTurns;
use super::wire::Block;
use super::{CHANNEL, PROVIDER, UNTYPED, stream_facts, stream_user};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push};
use crate::pending::{PendingKind, PendingRecords};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, Raw, RawField as _, list, object, parse};

static STREAM: AdapterInfo = AdapterInfo {
    channel: "stream",
    carries: &["calls", "results", "thinking", "usage", "retries", "compaction", "subagents"],
    ..CHANNEL
};

static CONTROL: AdapterInfo = AdapterInfo { channel: "control", ..CHANNEL };

/// Frames without information about the work: deltas, keep-alives, copies of a session file's lines, and the
/// environment that a host passes on, which is private.
const BOOKKEEPING: [&str; 5] =
    ["keep_alive", "stream_event", "tool_progress", "transcript_mirror", "update_environment_variables"];

/// Frames that are facts of the session; their type is the fact's name.
const FACTS: [&str; 8] = [
    "active_goal",
    "auth_status",
    "conversation_reset",
    "prompt_suggestion",
    "rate_limit_event",
    "streamlined_text",
    "streamlined_tool_use_summary",
    "tool_use_summary",
];

/// The state of a session while another one is active.
#[derive(Default)]
struct SessionState {
    turns: StreamTurns,
    settings: Option<RawJson>,
    is_compacting: bool,
}

/// A stream while it is read.
pub(super) struct Stream {
    source: JsonString,
    /// Whether there was any input.
    is_control: bool,
    pub(super) agents: Vec<Agent>,
    /// Which of the agents is the session's main one now: `/clear` begins another session in the same process.
    pub(super) main: usize,
    /// The subagents by the calls that began them.
    by_call: HashMap<String, usize>,
    /// The same by their runs: a subagent that is called again continues.
    by_run: HashMap<RunId, usize>,
    /// The agents that made calls, by the calls.
    makers: HashMap<String, usize>,
    /// The ids of subagents by those calls, if only a task's record has them.
    agent_ids: HashMap<String, String>,
    /// The last call that began a subagent, by its id.
    agent_calls: HashMap<String, String>,
    pub(super) turns: StreamTurns,
    pub(super) sent: SentPrompts,
    pub(super) is_compacting: bool,
    version: Option<JsonString>,
    /// The description of the session's run.
    opening: Extra,
    /// The last `init`.
    pub(super) settings: Option<RawJson>,
    pub(super) requests: Requests,
    waiting: PendingRecords,
    /// The indexes of sessions' main agents, by session id.
    sessions: HashMap<String, usize>,
    /// The inactive sessions, by the indexes of their agents.
    parked: HashMap<usize, SessionState>,
}

impl Stream {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source: source.id.clone(),
            is_control: false,
            agents: Vec::new(),
            main: 0,
            by_call: HashMap::new(),
            by_run: HashMap::new(),
            makers: HashMap::new(),
            agent_ids: HashMap::new(),
            agent_calls: HashMap::new(),
            turns: StreamTurns::default(),
            sent: SentPrompts::default(),
            is_compacting: false,
            version: None,
            opening: Extra::default(),
            settings: None,
            requests: Requests::default(),
            waiting: PendingRecords::default(),
            sessions: HashMap::new(),
            parked: HashMap::new(),
        }
    }

    /// Sets the session from the first frame that names one, and again when another begins; false if none has.
    fn open(&mut self, frame: &StreamFrame<'_>, lane: Lane) -> bool {
        let session = frame.session_id.text();
        let Some(session) = session.filter(|session| !session.is_empty() && lane == Lane::FromAgent) else {
            return !self.agents.is_empty();
        };
        match self.sessions.get(&*session).copied() {
            Some(place) if place == self.main => {}
            Some(place) => self.turn_to(place),
            None if is_leading(frame) => self.open_session(&session, frame),
            None => return !self.agents.is_empty(),
        }
        true
    }

    /// Makes another session active.
    fn turn_to(&mut self, place: usize) {
        let mut then = self.parked.remove(&place).unwrap_or_default();
        std::mem::swap(&mut then.turns, &mut self.turns);
        std::mem::swap(&mut then.settings, &mut self.settings);
        std::mem::swap(&mut then.is_compacting, &mut self.is_compacting);
        self.parked.insert(self.main, then);
        self.main = place;
    }

    fn open_session(&mut self, session: &str, frame: &StreamFrame<'_>) {
        let source = self.source.to_text();
        let key = [PROVIDER, self.about().channel, &source, session];
        let mut run = Run::main(derived_run_id(&key)).of_session(session);
        run.mirrors = (!session.is_empty()).then(|| run_id_of(PROVIDER, session));
        self.agents.push(Agent::new(run, key.iter().map(|part| (*part).to_owned()).collect()));
        self.sessions.insert(session.to_owned(), self.agents.len() - 1);
        if self.agents.len() > 1 {
            self.turn_to(self.agents.len() - 1);
        }
        self.version = frame.version.string();
        self.opening = Extra::default();
        push(&mut self.opening, "cwd", frame.cwd.json());
        push(&mut self.opening, "model", frame.model.json());
    }

    /// Begins the session's run with the first of its records, which may be older than the one that named it.
    fn begin(&mut self, emit: &mut Emit<'_>) {
        let run = &mut self.agents[self.main].run;
        if !run.is_started {
            emit.begin(run, self.version.as_ref(), std::mem::take(&mut self.opening));
        }
    }

    /// Writes what has waited for the session.
    fn release(&mut self, emit: &mut Emit<'_>) {
        for waiter in self.waiting.take() {
            emit.release(&waiter.record, |emit| match waiter.what {
                PendingKind::Unreadable(why) => self.unreadable(&why, emit),
                PendingKind::Record(lane) => {
                    let frame: StreamFrame<'_> = parse(waiter.record.text()).unwrap_or_default();
                    let read = self.frame(&frame, lane, emit);
                    emit.read_late(read);
                }
            });
        }
    }

    fn open_unnamed(&mut self, emit: &mut Emit<'_>) {
        self.open_session("", &StreamFrame::default());
        self.release(emit);
    }

    fn frame(&mut self, frame: &StreamFrame<'_>, lane: Lane, emit: &mut Emit<'_>) -> RecordOutcome {
        self.begin(emit);
        let kind = frame.kind.text().unwrap_or(UNTYPED.into());
        if BOOKKEEPING.contains(&&*kind) {
            return RecordOutcome::Bookkeeping;
        }
        let read = self.write_kind(&kind, frame, lane, emit);
        // For a fact the whole frame is kept.
        let is_whole =
            kind == "system" || FACTS.contains(&&*kind) || matches!(read, RecordOutcome::Unknown(_));
        let is_odd = !is_whole && is_odd_frame(frame, emit);
        if is_odd { self.unknown(&kind, emit) } else { read }
    }

    /// Writes the events of a frame.
    fn write_kind(
        &mut self,
        kind: &str,
        frame: &StreamFrame<'_>,
        lane: Lane,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        match (kind, lane) {
            ("user", Lane::ToAgent) => stream_user::sent(self, frame, emit),
            ("user", Lane::FromAgent) => stream_user::printed(self, frame, emit),
            ("assistant", Lane::FromAgent) => self.assistant(frame, emit),
            ("result", Lane::FromAgent) => {
                self.denials(frame, emit);
                let run = &mut self.agents[self.main].run;
                self.turns.end(run, frame, emit);
                if frame.local_command.json().is_none() {
                    self.sent.end_turn();
                }
                RecordOutcome::Understood
            }
            ("system", Lane::FromAgent) => stream_facts::system(self, frame, emit),
            ("control_request", _) => self.request(frame, lane, emit),
            ("control_response", _) => {
                let response = frame.response.unwrap_or_default();
                self.requests.answer((&self.agents, self.main), lane, response, emit)
            }
            ("control_cancel_request", _) => {
                self.requests.cancel((&self.agents, self.main), lane, frame.request_id, emit)
            }
            _ if FACTS.contains(&kind) => {
                super::facts::fact(&self.agents[self.main].run, kind, emit);
                RecordOutcome::Understood
            }
            _ => self.unknown(kind, emit),
        }
    }

    /// Writes which calls of the turn were refused, if their results do not show it.
    fn denials(&mut self, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) {
        let denials = frame.permission_denials.and_then(list::<Denial<'_>>).unwrap_or_default();
        for id in denials.into_iter().flatten().filter_map(|denial| denial.tool_use_id.string()) {
            let place = self.agent_with_call(&id.to_text()).unwrap_or(self.main);
            results::denied(&mut self.agents[place], &id, emit);
        }
    }

    pub(super) fn unknown(&self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        super::facts::unknown(&self.agents[self.main].run, name, emit)
    }

    fn assistant(&mut self, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let place = self.agent_at_work(frame, emit);
        let Some(message) = frame.message else { return self.unknown("assistant", emit) };
        let context = MessageContext {
            uuid: frame.uuid,
            request_id: frame.request_id,
            is_api_error: frame.is_api_error.is_true(),
            error: frame.error,
            supersedes: frame.supersedes,
            aborted: frame.aborted,
        };
        let calls_before = self.agents[place].run.calls.len();
        let read = messages::assistant(&mut self.agents[place], &message, context, emit);
        for call in self.agents[place].run.calls.open_after(calls_before) {
            self.makers.entry(call.clone()).or_insert(place);
        }
        read
    }

    fn request(&mut self, frame: &StreamFrame<'_>, lane: Lane, emit: &mut Emit<'_>) -> RecordOutcome {
        let request = frame.request.and_then(object::<Request<'_>>).unwrap_or_default();
        let agent = match lane {
            Lane::FromAgent => self.agent_asking(&request, emit),
            Lane::ToAgent => self.main,
        };
        if lane == Lane::ToAgent && request.subtype.is("interrupt") {
            self.turns.interrupt();
        }
        if request.subtype.is("can_use_tool") && agent == self.main {
            self.turns.begin_due(&mut self.agents[agent].run, emit);
        }
        let ask = RequestId { lane, id: frame.request_id, agent };
        let read = self.requests.ask(&mut self.agents[agent], ask, frame.request, emit);
        if let Some(call) = request.tool_use_id.text() {
            self.keep_maker(&call, agent);
        }
        read
    }

    /// Remembers the agent of a call.
    fn keep_maker(&mut self, call: &str, place: usize) {
        if !self.makers.contains_key(call) && self.agents[place].run.calls.get(call).is_some() {
            self.makers.insert(call.to_owned(), place);
        }
    }

    /// Writes a result; it may come among the frames of another agent than the one that made the call.
    pub(super) fn result(
        &mut self,
        place: usize,
        block: &Block<'_>,
        origin: ResultContext<'_>,
        emit: &mut Emit<'_>,
    ) -> ResultOutcome {
        let call = block.tool_use_id.text().unwrap_or_default();
        let is_own = self.agents[place].run.calls.get(&call).is_some();
        let maker = if is_own { place } else { self.agent_with_call(&call).unwrap_or(place) };
        let agent = &mut self.agents[maker];
        agent.named_last = None;
        let outcome = results::result(agent, block, origin, emit);
        if let Some((agent, call)) = agent.named_last.take() {
            self.name_agent(&call, &agent);
        }
        self.keep_maker(&call, maker);
        outcome
    }

    /// Returns the index of the agent that asks; it may be the first frame of a subagent.
    fn agent_asking(&mut self, request: &Request<'_>, emit: &mut Emit<'_>) -> usize {
        if let Some(place) = request.tool_use_id.text().and_then(|call| self.agent_with_call(&call)) {
            return place;
        }
        let call = request.agent_id.text().and_then(|agent| self.call_of_agent(&agent));
        call.map_or(self.main, |call| self.subagent_at_work(&call, None, emit))
    }

    pub(super) fn agent_with_call(&self, call: &str) -> Option<usize> {
        self.makers.get(call).copied()
    }

    /// Returns the last call that began a subagent, or a task that is one.
    pub(super) fn call_of_agent(&self, agent: &str) -> Option<String> {
        self.agent_calls.get(agent).cloned()
    }

    /// Returns the index of the frame's agent, in a turn that has begun.
    pub(super) fn agent_at_work(&mut self, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) -> usize {
        let Some(call) = frame.parent_tool_use_id.text() else {
            self.turns.begin_due(&mut self.agents[self.main].run, emit);
            return self.main;
        };
        self.subagent_at_work(&call, frame.agent_id, emit)
    }

    /// Returns the index of the subagent that a call has begun, in a turn.
    fn subagent_at_work(&mut self, call: &str, agent_id: Raw<'_>, emit: &mut Emit<'_>) -> usize {
        let place = self.subagent(call, agent_id, emit);
        let run = &mut self.agents[place].run;
        if run.turns.path().is_empty() {
            emit.begin_turn(run, None, None);
        }
        place
    }

    /// Remembers the agent that a call has begun.
    pub(super) fn name_agent(&mut self, call: &str, agent: &str) {
        self.agent_ids.insert(call.to_owned(), agent.to_owned());
        self.agent_calls.insert(agent.to_owned(), call.to_owned());
    }

    /// Returns the index of the subagent that a call has begun; its first frame creates it.
    fn subagent(&mut self, call: &str, agent_id: Raw<'_>, emit: &mut Emit<'_>) -> usize {
        if let Some(place) = self.by_call.get(call) {
            return *place;
        }
        if let Some(id) = agent_id.text() {
            self.name_agent(call, &id);
        }
        let agent = self.agent_ids.get(call).cloned();
        let parent = self.agent_with_call(call).unwrap_or(self.main);
        let parent = &mut self.agents[parent];
        let name = agent.clone().unwrap_or_else(|| call.to_owned());
        let child = parent.child_id(&name);
        let started =
            SubagentStart { call, child, agent: agent.as_deref(), agent_type: None, matched_by: None };
        parent.start_child(started, emit);
        if let Some(place) = self.by_run.get(&child).copied() {
            self.by_call.insert(call.to_owned(), place);
            emit.begin_turn(&mut self.agents[place].run, None, None);
            return place;
        }
        let session = parent.run.session.clone().unwrap_or_default();
        let mut run = Run::subagent(child, parent.run.id, &name).of_session(&session);
        let key = parent.children_key.clone();
        let on_disk = |agent: String| derived_run_id(&[PROVIDER, &session, &agent]);
        run.mirrors = agent.filter(|_| !session.is_empty()).map(on_disk);
        emit.begin(&mut run, self.version.as_ref(), Extra::default());
        self.agents.push(Agent::new(run, key));
        let place = self.agents.len() - 1;
        self.by_call.insert(call.to_owned(), place);
        self.by_run.insert(child, place);
        place
    }
}

/// Tells whether a frame names the active session.
fn is_leading(frame: &StreamFrame<'_>) -> bool {
    frame.subtype.is("init") || ["assistant", "user", "result"].iter().any(|kind| frame.kind.is(kind))
}

impl Mapper for Stream {
    fn about(&self) -> &'static AdapterInfo {
        if self.is_control { &CONTROL } else { &STREAM }
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let frame: StreamFrame<'_> = parse(record.text)?;
        emit.set_time_or_captured(frame.timestamp.string());
        if emit.is_known(frame.uuid.text().as_deref()) {
            return Ok(RecordOutcome::Understood);
        }
        // It is set before the run begins and does not change, because the run's id is derived from it.
        self.is_control |= record.lane == Lane::ToAgent && self.agents.is_empty();
        let main = self.main;
        if self.open(&frame, record.lane) {
            self.release(emit);
            let read = self.frame(&frame, record.lane, emit);
            // A late frame of an ended session does not make it active again.
            if self.main != main && !is_leading(&frame) {
                self.turn_to(main);
            }
            return Ok(read);
        }
        let kind = frame.kind.text().unwrap_or(UNTYPED.into());
        if BOOKKEEPING.contains(&&*kind) {
            return Ok(RecordOutcome::Bookkeeping);
        }
        if !self.waiting.keep(PendingKind::Record(record.lane), emit) {
            self.open_unnamed(emit);
        }
        Ok(RecordOutcome::Waiting)
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if !self.agents.is_empty() {
            self.begin(emit);
            let agent = &self.agents[self.main];
            emit.unknown(&agent.run, "unreadable", Some(why));
            emit.entry(&agent.run, EntryType::Unknown, None);
        } else if !self.waiting.keep(PendingKind::Unreadable(why.into()), emit) {
            self.open_unnamed(emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.agents.first().map(|agent| &agent.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let frame: StreamFrame<'_> = parse(text).unwrap_or_default();
        let piece: Block<'_> = frame.event.and_then(object).unwrap_or_default();
        if frame.kind.is("stream_event") && piece.kind.is("content_block_delta") {
            return LeftoverRecord::Delta;
        }
        let call = frame.parent_tool_use_id.text();
        let subagent =
            call.and_then(|call| self.by_call.get(&*call)).and_then(|place| self.agents.get(*place));
        let agent = subagent.or_else(|| self.agents.get(self.main));
        agent.map_or(LeftoverRecord::Waiting, |agent| LeftoverRecord::Unknown {
            run: &agent.run,
            detail: text,
        })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.agents.is_empty() && !self.waiting.is_empty() {
            self.open_unnamed(emit);
        }
    }
}
