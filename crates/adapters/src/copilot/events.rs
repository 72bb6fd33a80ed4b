//! The events of a session, in its file or in the output of `copilot -p`: finds the run of each record.

use std::borrow::Cow;
use std::collections::HashMap;

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{EntryType, RunId};

use super::agents::{Agent, data_of};
use super::facts::{is_bookkeeping, is_delta, is_fact, title};
use super::usage::{SessionTotals, compaction_usage, output_only};
use super::waiting::WaitingRecords;
use super::wire::{Context, Data, Line, RawLine, Usage};
use super::{DISK, DISK_WITHOUT_APPROVALS, PROVIDER, STREAM, UNTYPED};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, RawField as _, WireObject as _, object, parse};

/// Where the events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// The session's own file.
    Disk,
    /// The output of one process, or of several one after the other.
    Stream,
}

/// A source while it is read.
pub(super) struct Events {
    pub(super) channel: Channel,
    source: JsonString,
    /// The session in the file's name, as early releases write it.
    named_by_file: Option<String>,
    /// The provider's id of the session, once a record names it.
    pub(super) session: Option<String>,
    pub(super) agents: Vec<Agent>,
    /// The index of the current main agent. The output of another process begins another one.
    pub(super) main: usize,
    /// How many processes of the output have ended.
    ended: u32,
    /// Whether the main agent's process has ended, so that what follows belongs to another.
    is_over: bool,
    /// The subagents by their ids.
    pub(super) by_id: HashMap<String, usize>,
    /// The subagents by the calls that began them.
    pub(super) by_call: HashMap<String, usize>,
    /// The agents that made calls, by the calls.
    pub(super) makers: HashMap<String, usize>,
    pub(super) version: Option<JsonString>,
    /// The description of the session's run.
    opening: Extra,
    /// Whether the usage of each request is recorded.
    has_usage_records: bool,
    totals: SessionTotals,
    waiting: WaitingRecords,
}

impl Events {
    pub(super) fn new(source: &Source, channel: Channel) -> Self {
        Self {
            channel,
            source: source.id.clone(),
            named_by_file: named_by_file(source).filter(|_| channel == Channel::Disk),
            session: None,
            agents: Vec::new(),
            main: 0,
            ended: 0,
            is_over: false,
            by_id: HashMap::new(),
            by_call: HashMap::new(),
            makers: HashMap::new(),
            version: None,
            opening: Extra::default(),
            has_usage_records: false,
            totals: SessionTotals::default(),
            waiting: WaitingRecords::default(),
        }
    }

    /// Tells whether the session's run is known.
    fn is_open(&self) -> bool {
        !self.agents.is_empty() && !self.is_over
    }

    /// Opens the session's run. If no record names the session, the run's id comes from the source alone.
    fn open(&mut self, session: Option<&str>) {
        self.session = session.map(str::to_owned);
        let mut run = match (self.channel, session) {
            (Channel::Disk, Some(session)) => Run::main(run_id_of(PROVIDER, session)),
            (Channel::Disk, None) | (Channel::Stream, _) => Run::main(self.derived(None)),
        };
        if self.channel == Channel::Stream {
            run.mirrors = session.map(|session| run_id_of(PROVIDER, session));
        }
        if let Some(session) = session {
            run = run.of_session(session);
        }
        (self.main, self.is_over) = (self.agents.len(), false);
        self.agents.push(Agent::new(run));
    }

    /// Returns the id of a run that only the source identifies. The session is not part of it: a stream that was cut
    /// off may name its session later.
    pub(super) fn derived(&self, agent: Option<&str>) -> RunId {
        let (source, process) = (self.source.to_text(), self.ended.to_string());
        let mut key = vec![PROVIDER, self.about().channel, &source];
        if self.ended > 0 {
            key.push(&process);
        }
        key.extend(agent);
        derived_run_id(&key)
    }

    /// Sets the description of a run that begins with the record: older files do not have approvals.
    pub(super) fn set_about(&self, emit: &mut Emit<'_>) {
        let version = self.version.as_ref().map(JsonString::to_text);
        if self.channel == Channel::Disk && !version.is_some_and(|version| tells_approvals(&version)) {
            emit.set_about(&DISK_WITHOUT_APPROVALS);
        }
    }

    /// Begins the session's run with the first of its records.
    fn begin(&mut self, emit: &mut Emit<'_>) {
        if !self.agents[self.main].run.is_started {
            self.set_about(emit);
        }
        let run = &mut self.agents[self.main].run;
        if !run.is_started {
            emit.begin(run, self.version.as_ref(), std::mem::take(&mut self.opening));
        }
    }

    /// Writes what has waited for the session.
    fn release(&mut self, emit: &mut Emit<'_>) {
        for waiter in self.waiting.take() {
            emit.release(&waiter.held, |emit| {
                if let Some(why) = &waiter.unreadable {
                    return self.unreadable(why, emit);
                }
                let line: Line<'_> = parse(waiter.held.text()).unwrap_or_default();
                let read = self.line(&line, emit);
                emit.read_late(read);
            });
        }
    }

    fn open_unnamed(&mut self, emit: &mut Emit<'_>) {
        self.open(None);
        self.release(emit);
    }

    /// Takes what the first record says about the session.
    fn describe(&mut self, data: &Data<'_>) {
        self.version = data.version.string();
        let cwd = data.context.and_then(object::<Context<'_>>).and_then(|context| context.cwd.json());
        push(&mut self.opening, "cwd", cwd);
        push(&mut self.opening, "model", data.selected_model.json());
        push(&mut self.opening, "spawned_by", data.spawned_by.json());
    }

    fn line(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        self.begin(emit);
        let kind = line.kind.text().unwrap_or(UNTYPED.into());
        if is_bookkeeping(&kind) {
            return RecordOutcome::Bookkeeping;
        }
        if kind == "result" && self.channel == Channel::Stream {
            return self.end_process(line, emit);
        }
        let data = line.data.unwrap_or_default();
        let place = self.agent_of(line, &data, emit);
        if is_fact(&kind) {
            return self.fact(place, &kind, &data, emit);
        }
        let calls = self.agents[place].run.calls.len();
        let read = self.conversation_record(place, &kind, (line, &data), emit);
        for call in self.agents[place].run.calls.open_after(calls) {
            self.makers.entry(call.clone()).or_insert(place);
        }
        let is_odd = line.is_odd() || is_odd_time(line, emit);
        if is_odd && !matches!(read, RecordOutcome::Unknown(_)) {
            return self.agents[place].unknown(&kind, emit);
        }
        read
    }

    /// Writes the facts of a record of the conversation.
    fn conversation_record(
        &mut self,
        place: usize,
        kind: &str,
        (line, data): (&Line<'_>, &Data<'_>),
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let agent = &mut self.agents[place];
        match kind {
            "user.message" => return agent.prompt(line, data, emit),
            "system.message" => return agent.system_prompt(line, data, emit),
            "assistant.message" => {
                let totals = &mut self.totals;
                let usage = if self.has_usage_records { None } else { output_only(data, totals) };
                return agent.response_record(line, data, usage, emit);
            }
            "assistant.reasoning" => return agent.thought(line, data, emit),
            "assistant.turn_start" | "assistant.turn_end" => {
                if kind == "assistant.turn_start" {
                    agent.begin_work(data.interaction_id, emit);
                    agent.failure = None;
                }
                emit.entry(&agent.run, EntryType::SystemEvent, Some(kind));
                return RecordOutcome::Bookkeeping;
            }
            "assistant.idle" | "session.idle" => agent.idle(data, emit),
            "abort" => agent.abort(data, emit),
            "tool.execution_start" | "tool.user_requested" | "external_tool.requested" => {
                return agent.start_call(kind, data, emit);
            }
            "tool.execution_complete" => return agent.result(line, data, emit),
            "permission.requested" => return agent.ask(data, emit),
            "permission.completed" => return agent.decide(data, emit),
            "session.usage_record" => {
                let usage = data.usage.and_then(object).unwrap_or_default();
                return self.usage(place, kind, &usage, emit);
            }
            "assistant.usage" => {
                let line: RawLine<'_> = parse(emit.text()).unwrap_or_default();
                let usage = line.data.and_then(object).unwrap_or_default();
                return self.usage(place, kind, &usage, emit);
            }
            "session.start" => self.start(place, data, emit),
            "session.error" => agent.error(data, emit),
            "assistant.turn_retry" => agent.retry(kind, data, emit),
            // Some versions do not say that a request is made again, but only make it.
            "model.call_start" if agent.failure.is_some() => agent.retry(kind, data, emit),
            "model.call_start" => return RecordOutcome::Bookkeeping,
            "session.compaction_start" => agent.compaction_begins(emit),
            "session.compaction_complete" => {
                agent.compaction_ends(data, emit);
                // Versions that record each request record this one too.
                if let Some(used) = data.tokens_used.filter(|_| !self.has_usage_records) {
                    agent.request_usage(&compaction_usage(used), &mut self.totals, emit);
                }
            }
            "session.title_changed" => {
                agent.fact_with("title", title(data).map(|title| title.to_json()), emit);
            }
            "session.binary_asset" => agent.asset(kind, emit),
            "user_input.requested" | "user_input.completed" | "human_response.recorded" => {
                agent.question(kind, data, emit);
            }
            "subagent.started" | "subagent.completed" | "subagent.failed" => {
                return self.subagent(place, kind, data, emit);
            }
            _ => return agent.unknown(kind, emit),
        }
        RecordOutcome::Understood
    }

    /// Writes a fact. Some facts also change the model, report usage or belong to a failed request.
    fn fact(&mut self, place: usize, kind: &str, data: &Data<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let agent = &mut self.agents[place];
        match kind {
            "model.call_failure" => agent.failed_request(kind, data, emit),
            "session.info" if data.info_type.is("model_retry") => agent.retry(kind, data, emit),
            "session.resume" => agent.fact_with("resume", data_of(emit), emit),
            "session.shutdown" => {
                agent.fact(kind, emit);
                agent.session_usage(data.model_metrics, &mut self.totals, emit);
            }
            _ => agent.fact(kind, emit),
        }
        match kind {
            "session.model_change" => agent.model = data.new_model.json(),
            "subagent.configured" => agent.model = data.model.json(),
            _ => {}
        }
        RecordOutcome::Understood
    }

    /// Takes the record that begins a session; a second one is a fact.
    fn start(&mut self, place: usize, data: &Data<'_>, emit: &mut Emit<'_>) {
        let agent = &mut self.agents[place];
        agent.model = data.selected_model.json();
        let is_first = emit.has_written() && data.session_id.text().as_deref() == self.session.as_deref();
        if is_first {
            emit.entry(&agent.run, EntryType::SystemEvent, Some("session_start"));
        } else {
            agent.fact("session.start", emit);
        }
    }

    fn usage(&mut self, place: usize, kind: &str, usage: &Usage<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let caller = usage.parent_tool_call_id.text();
        let place = caller.and_then(|call| self.by_call.get(&*call).copied()).unwrap_or(place);
        let is_read = self.agents[place].request_usage(usage, &mut self.totals, emit);
        self.has_usage_records |= is_read;
        if is_read { RecordOutcome::Understood } else { self.agents[place].unknown(kind, emit) }
    }

    /// Ends the runs of a process.
    fn end_process(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let main = &self.agents[self.main];
        main.fact_with("result", Some(emit.record()), emit);
        let Some(code) = line.exit_code.number() else { return main.unknown("result", emit) };
        for agent in &self.agents[self.main..] {
            let mut extra = Extra::default();
            extra.push("exit_code", RawJson::from(code));
            emit.complete(&agent.run, extra);
        }
        // What follows is the output of another process.
        self.ended += 1;
        self.is_over = true;
        self.session = None;
        (self.version, self.opening) = (None, Extra::default());
        (self.by_id, self.by_call, self.makers) = Default::default();
        RecordOutcome::Understood
    }
}

/// Returns the session that a record belongs to. Records of other types may name a session that they are about.
fn session_of<'a>(line: &Line<'a>, channel: Channel) -> Option<Cow<'a, str>> {
    let data = line.data.unwrap_or_default();
    let named = match &*line.kind.text()? {
        "session.start" => data.session_id.text(),
        "result" if channel == Channel::Stream => line.session_id.text(),
        "permission.requested" if line.agent_id.is_none() => data.owner_session_id.text(),
        "session.usage_record" if line.agent_id.is_none() => {
            let usage = data.usage.and_then(object::<Usage<'_>>)?;
            let is_main = usage.parent_tool_call_id.is_none();
            usage.accounting.filter(|_| is_main).and_then(|account| account.session_id.text())
        }
        _ => None,
    };
    named.filter(|session| !session.is_empty())
}

/// Returns the session in a file's name, if the name is a UUID.
fn named_by_file(source: &Source) -> Option<String> {
    let stem = source.file_name.as_deref()?.strip_suffix(".jsonl")?;
    RunId::parse(stem).ok().map(|_| stem.to_owned())
}

/// Tells whether files of a version have requests for permission. Those of 1.0.24 do not, those of 1.0.44 do.
fn tells_approvals(version: &str) -> bool {
    const FIRST: [u32; 3] = [1, 0, 44];
    let mut parts = version.split(['.', '-']).map(str::parse::<u32>);
    let mut part = || parts.next().and_then(Result::ok);
    let (Some(major), Some(minor), Some(patch)) = (part(), part(), part()) else { return false };
    [major, minor, patch] >= FIRST
}

fn is_odd_time(line: &Line<'_>, emit: &Emit<'_>) -> bool {
    emit.is_time_inferred() && line.timestamp.json().is_some()
}

impl Mapper for Events {
    fn about(&self) -> &'static AdapterInfo {
        match self.channel {
            Channel::Disk => &DISK,
            Channel::Stream => &STREAM,
        }
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let line: Line<'_> = parse(record.text)?;
        emit.set_time(line.timestamp.string());
        if line.timestamp.string().is_none() {
            emit.set_time_ms(line.timestamp.number());
        }
        if emit.is_known(line.id.text().as_deref()) {
            return Ok(RecordOutcome::Understood);
        }
        let by_file = || self.named_by_file.as_deref().map(Cow::Borrowed);
        if !self.is_open()
            && let Some(session) = session_of(&line, self.channel).or_else(by_file).map(Cow::into_owned)
        {
            if line.kind.is("session.start") {
                self.describe(&line.data.unwrap_or_default());
            }
            self.open(Some(&session));
            self.release(emit);
        }
        if self.is_open() {
            return Ok(self.line(&line, emit));
        }
        let kind = line.kind.text().unwrap_or(UNTYPED.into());
        if is_bookkeeping(&kind) {
            return Ok(RecordOutcome::Bookkeeping);
        }
        if !self.waiting.keep(None, emit) {
            self.open_unnamed(emit);
        }
        Ok(RecordOutcome::Waiting)
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if self.is_open() {
            self.begin(emit);
            let agent = &self.agents[self.main];
            emit.unknown(&agent.run, "unreadable", Some(why));
            emit.entry(&agent.run, EntryType::Unknown, None);
        } else if !self.waiting.keep(Some(why), emit) {
            self.open_unnamed(emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.agents.first().map(|agent| &agent.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let line: Line<'_> = parse(text).unwrap_or_default();
        if line.kind.text().is_some_and(|kind| is_delta(&kind)) {
            return LeftoverRecord::Delta;
        }
        let of_id = line.agent_id.text().and_then(|id| self.by_id.get(&*id));
        let call = || line.data.and_then(|data| data.parent_tool_call_id.text());
        let place = of_id.or_else(|| self.by_call.get(&*call()?)).copied();
        let agent = place.and_then(|place| self.agents.get(place));
        let agent = agent.or_else(|| self.agents.get(self.main));
        agent.map_or(LeftoverRecord::Waiting, |agent| LeftoverRecord::Unknown {
            run: &agent.run,
            detail: text,
        })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if !self.is_open() && !self.waiting.is_empty() {
            self.open_unnamed(emit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_tell_approvals_from_a_version_on() {
        for (version, want) in [
            ("1.0.102", true),
            ("1.0.44", true),
            ("1.0.55-3", true),
            ("2.0.0", true),
            ("1.0.24", false),
            ("0.0.409", false),
            ("dev", false),
        ] {
            assert_eq!(tells_approvals(version), want, "{version}");
        }
    }
}
