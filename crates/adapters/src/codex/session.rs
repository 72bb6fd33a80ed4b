//! The state of a rollout while it is read: its turn, its prompts, the calls that await their report.

use std::collections::{HashMap, HashSet};

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity, RunId, StepPayload};

use super::PROVIDER;
use super::agents::{Child, Children, End};
use super::items::Report;
use super::prompt::UserMessage;
use super::twins::{Shown, Side, Twins, Words};
use super::usage::{Growth, Named, Start, Totals, fields};
use super::wire::TokenInfo;
use crate::adapter::Read;
use crate::emit::{Answer, CallSeen, Emit, Outcome, push};
use crate::heard::{amendment, hash_of, hash_of_call};
use crate::run::{Run, run_id_of};

/// What the model's side of a call has said so far, as hashes: a record that repeats it adds nothing.
#[derive(Default)]
struct Heard {
    call: Option<u64>,
    output: Option<u64>,
    /// Whether its result says nothing of what the tool gave.
    is_silent: bool,
}

/// A turn that was announced and is not written yet.
struct TurnAnnounced {
    id: Option<JsonString>,
}

/// A rollout that has said who it is.
pub(super) struct Session {
    pub(super) run: Run,
    /// A turn that has begun, whose settings are still to come.
    waiting: Option<TurnAnnounced>,
    /// Whether turns are recorded as such; before 0.107 they begin with a prompt.
    pub(super) has_turn_records: bool,
    /// The settings that were told last.
    settings: Option<RawJson>,
    pub(super) model: Option<RawJson>,
    pub(super) twins: Twins,
    /// Reports that came before what the model was told.
    reports: HashMap<String, Report>,
    heard: HashMap<String, Heard>,
    pub(super) children: Children,
    pub(super) totals: Totals,
    /// The responses whose exact usage is known.
    responses: HashSet<String>,
    /// Counts what has no id of its own.
    unnamed: u32,
    /// Compactions that were told and not yet announced.
    pub(super) compactions: u32,
    /// Web searches that were told and whose record as the model sees it is still to come.
    pub(super) searches: u32,
}

impl Session {
    pub(super) fn new(run: Run, start: Start) -> Self {
        Self {
            run,
            waiting: None,
            has_turn_records: false,
            settings: None,
            model: None,
            twins: Twins::default(),
            reports: HashMap::new(),
            heard: HashMap::new(),
            children: Children::default(),
            totals: Totals::new(start),
            responses: HashSet::new(),
            unnamed: 0,
            compactions: 0,
            searches: 0,
        }
    }

    /// Notes that a turn has begun. It is written with its settings, or with the first thing that happens in it.
    pub(super) fn announce_turn(&mut self, id: Option<JsonString>, emit: &mut Emit<'_>) {
        self.has_turn_records = true;
        self.tie_up(emit);
        self.twins.end_prompts();
        self.open_turn(emit);
        self.waiting = Some(TurnAnnounced { id });
    }

    /// Writes the beginning of a turn that was announced, if there is one.
    pub(super) fn open_turn(&mut self, emit: &mut Emit<'_>) {
        if let Some(turn) = self.waiting.take() {
            emit.begin_turn(&mut self.run, turn.id.as_ref(), None);
        }
    }

    /// Takes the settings of the turn.
    pub(super) fn take_settings(&mut self, settings: RawJson, emit: &mut Emit<'_>) {
        if let Some(turn) = self.waiting.take() {
            emit.begin_turn(&mut self.run, turn.id.as_ref(), Some(settings.clone()));
            self.settings = Some(settings);
        } else if self.settings.as_ref() != Some(&settings) {
            // Older versions write them with every request, and after the prompt that began the turn.
            emit.system(&self.run, "turn_context", Some(settings.clone()));
            emit.entry(&self.run, EntryType::SystemEvent, Some("turn_context"));
            self.settings = Some(settings);
        }
    }

    /// Ends the turn; false when none was open.
    pub(super) fn end_turn(
        &mut self,
        error: Option<JsonString>,
        result: Option<RawJson>,
        emit: &mut Emit<'_>,
    ) -> bool {
        self.open_turn(emit);
        let is_open = self.run.turns.is_open();
        self.tie_up(emit);
        self.twins.end_prompts();
        emit.end_turn(&mut self.run, error, result);
        is_open
    }

    /// Takes one of the two records of a prompt; the second writes nothing.
    pub(super) fn prompt(
        &mut self,
        side: Side,
        id: Option<RawJson>,
        message: UserMessage,
        emit: &mut Emit<'_>,
    ) {
        if self.twins.is_second(side, &message.text) {
            for (kind, part) in message.beside {
                self.fact(&kind, Some(part), emit);
            }
            return;
        }
        self.open_turn(emit);
        if !self.has_turn_records || !self.run.turns.is_open() {
            self.tie_up(emit);
            emit.begin_turn(&mut self.run, None, None);
        }
        let mut extra = Extra::default();
        push(&mut extra, "id", id);
        emit.user(&self.run, message.blocks, extra);
        emit.entry(&self.run, EntryType::UserMessage, None);
    }

    /// Writes what the model said in one record: one message, and an entry for each block.
    pub(super) fn say(
        &mut self,
        blocks: Vec<ContentBlock>,
        mut extra: Extra,
        entry: EntryType,
        emit: &mut Emit<'_>,
    ) {
        self.open_turn(emit);
        if !self.has_turn_records {
            // Once the model has spoken, a prompt begins the next turn.
            self.twins.end_prompts();
        }
        push(&mut extra, "model", self.model.clone());
        let entries = blocks.len();
        emit.assistant(&self.run, blocks, extra);
        for _ in 0..entries {
            emit.entry(&self.run, entry, None);
        }
    }

    /// Takes a call of the model's; false when it has the id of another.
    pub(super) fn call(
        &mut self,
        id: &JsonString,
        call: CallSeen,
        item: Option<RawJson>,
        emit: &mut Emit<'_>,
    ) -> bool {
        self.open_turn(emit);
        let hash = hash_of_call(&call);
        let heard = self.heard.entry(id.to_text().into_owned()).or_default();
        if let Some(known) = heard.call {
            return known == hash;
        }
        heard.call = Some(hash);
        match self.run.calls.get(&id.to_text()).map(|call| call.path.clone()) {
            // It was made up for what came before it.
            Some(path) => {
                let result = RawJson::object(|object| {
                    object.string("name", &call.name);
                    object.json("input", &call.input);
                });
                emit.step_completed(&self.run, &path, amendment(id, result));
            }
            None => self.write_call(id, call, item, emit),
        }
        true
    }

    /// Writes a call: a block of the response, and the call itself.
    fn write_call(&mut self, id: &JsonString, call: CallSeen, item: Option<RawJson>, emit: &mut Emit<'_>) {
        let mut extra = Extra::default();
        push(&mut extra, "id", item);
        self.say(vec![use_block(id, &call)], extra, EntryType::ToolUse, emit);
        emit.call(&mut self.run, id, call);
    }

    /// Takes how a call ended; it waits for what the model was told, or comes after it.
    pub(super) fn report(&mut self, id: &JsonString, report: Report, call: CallSeen, emit: &mut Emit<'_>) {
        let key = id.to_text().into_owned();
        match self.run.calls.get(&key).map(|call| (call.is_answered, call.path.clone())) {
            // A report that knows no more than the result did amends nothing.
            Some((true, _)) if report.adds_nothing() => {}
            Some((true, path)) => emit.step_completed(&self.run, &path, report.into_amendment(id)),
            Some((false, _)) => {
                self.reports.insert(key, report);
            }
            // A command of the user's own, or a call that a script of the model's made: no response has it.
            None => {
                self.write_call(id, call, None, emit);
                self.answer(id, report.into_answer(RawJson::null()), emit);
            }
        }
    }

    /// Takes what the model was told of a call; false when it was told something else before.
    pub(super) fn told(&mut self, id: &JsonString, answer: Answer, emit: &mut Emit<'_>) -> bool {
        self.open_turn(emit);
        let key = id.to_text();
        let heard = self.heard.entry(key.clone().into_owned()).or_default();
        let hash = hash_of(answer.output.as_str());
        if let Some(known) = heard.output {
            return known == hash;
        }
        heard.output = Some(hash);
        let is_news = heard.is_silent && answer.output != RawJson::null();
        let call = self.run.calls.get(&key).filter(|call| call.is_answered);
        if let Some(path) = call.map(|call| call.path.clone()) {
            if is_news {
                let result = RawJson::object(|object| object.json("output", &answer.output));
                emit.step_completed(&self.run, &path, amendment(id, result));
            }
            return true;
        }
        let answer = match self.reports.remove(&*key) {
            Some(report) => report.into_answer(answer.output),
            None => answer,
        };
        self.answer(id, answer, emit);
        true
    }

    fn answer(&mut self, id: &JsonString, answer: Answer, emit: &mut Emit<'_>) {
        self.heard.entry(id.to_text().into_owned()).or_default().is_silent = answer.output == RawJson::null();
        emit.result(&mut self.run, id, "", answer);
        emit.entry(&self.run, EntryType::ToolResult, None);
    }

    /// Writes what is left of a turn that is over: what one side told and the other did not.
    fn tie_up(&mut self, emit: &mut Emit<'_>) {
        self.flush_reports(emit);
        for Shown { words, id, text } in self.twins.end_words() {
            let mut extra = Extra::default();
            push(&mut extra, "id", id.map(|id| id.to_json()));
            match words {
                Words::Text => {
                    let block = ContentBlock::text(Fidelity::AgentEmitted, text);
                    self.say(vec![block], extra, EntryType::AssistantMessage, emit);
                }
                Words::Thought => self.say(vec![thinking_block(text)], extra, EntryType::Thinking, emit),
            }
        }
    }

    /// Writes the results of calls that ended without the model being told.
    fn flush_reports(&mut self, emit: &mut Emit<'_>) {
        let mut reports: Vec<(String, Report)> = std::mem::take(&mut self.reports).into_iter().collect();
        reports.sort_by(|one, other| one.0.cmp(&other.0));
        for (id, report) in reports {
            self.answer(&id.as_str().into(), report.into_answer(RawJson::null()), emit);
        }
    }

    /// Writes the exact usage of a response, once.
    pub(super) fn use_exactly(&mut self, response: &JsonString, usage: RawJson, emit: &mut Emit<'_>) {
        if self.responses.insert(response.to_text().into_owned()) {
            let extra = fields(Growth::Exact(usage), Named::Id(response.to_json()), self.model.clone());
            self.used(extra, emit);
        }
    }

    /// Takes a running total, unless exact usage is recorded beside it.
    pub(super) fn use_total(&mut self, info: &TokenInfo<'_>, emit: &mut Emit<'_>) {
        let growth = self.totals.take(info.total, info.last);
        if self.responses.is_empty() && growth != Growth::None {
            let named = Named::Number(self.next_unnamed(), &self.totals);
            let extra = fields(growth, named, self.model.clone());
            self.used(extra, emit);
        }
    }

    fn used(&mut self, extra: Option<Extra>, emit: &mut Emit<'_>) {
        if let Some(extra) = extra {
            self.open_turn(emit);
            emit.assistant(&self.run, Vec::new(), extra);
            emit.entry(&self.run, EntryType::TokenUsage, None);
        }
    }

    /// Writes that a record is of a kind that nobody knows, or holds something that is.
    pub(super) fn unknown(&self, name: &str, emit: &mut Emit<'_>) -> Read {
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
        Read::Unknown(name.to_owned())
    }

    /// Returns the number of the next thing that has no id.
    pub(super) fn next_unnamed(&mut self) -> u32 {
        self.unnamed += 1;
        self.unnamed
    }

    /// Writes a compaction, begun and ended at once.
    pub(super) fn compaction(&mut self, result: Option<RawJson>, extra: Extra, emit: &mut Emit<'_>) {
        self.open_turn(emit);
        let path = self.run.turns.path_of("compaction");
        emit.step_started(&self.run, &path, StepPayload::new("compaction", "compaction"));
        let payload = StepPayload { result, extra, ..StepPayload::new("compaction", "compaction") };
        emit.step_completed(&self.run, &path, payload);
        emit.entry(&self.run, EntryType::SystemEvent, Some("compaction"));
    }

    /// Writes a fact; one that comes before a turn has its settings does not begin the turn.
    pub(super) fn fact(&mut self, name: &str, result: Option<RawJson>, emit: &mut Emit<'_>) {
        emit.system(&self.run, name, result);
        emit.entry(&self.run, EntryType::SystemEvent, Some(name));
    }

    /// Writes what failed.
    pub(super) fn error(&mut self, name: &str, error: &str, emit: &mut Emit<'_>) {
        self.open_turn(emit);
        emit.error(&self.run, name, error);
        emit.entry(&self.run, EntryType::Error, None);
    }

    /// Writes that a subagent was made.
    pub(super) fn begin_child(&mut self, thread: &str, call: Option<&str>, emit: &mut Emit<'_>) {
        self.children.begin(&self.run, child(thread), call, emit);
    }

    /// Writes which subagents are done.
    pub(super) fn end_children(&mut self, ended: Vec<(String, End)>, emit: &mut Emit<'_>) {
        for (thread, end) in ended {
            self.children.end(&self.run, child(&thread), end, emit);
        }
    }
}

/// A subagent has a rollout of its own, which owns its thread's id.
fn child(thread: &str) -> Child<'_> {
    Child { thread, run: thread_run(thread), session: None }
}

/// Returns the run that a thread's rollout is.
pub(super) fn thread_run(thread: &str) -> RunId {
    run_id_of(PROVIDER, thread)
}

/// Makes the block of a response that asks for a call.
pub(super) fn use_block(id: &JsonString, call: &CallSeen) -> ContentBlock {
    let content = BlockContent::ToolUse {
        tool_name: Some(call.name.clone()),
        tool_id: Some(id.clone()),
        tool_input: Some(call.input.clone()),
    };
    ContentBlock::new(Fidelity::AgentEmitted, content)
}

/// Makes the block of a thought; one without words is there and kept secret.
pub(super) fn thinking_block(thought: JsonString) -> ContentBlock {
    let is_secret = thought.is_empty();
    let mut block = ContentBlock::new(Fidelity::AgentEmitted, BlockContent::Thinking(Some(thought)));
    if is_secret {
        block.extra.push("redacted", RawJson::from(true));
    }
    block
}

/// Makes an answer of which only the output is known.
pub(super) fn plain_answer(output: RawJson) -> Answer {
    Answer::new(output, Outcome::Unknown)
}
