//! A thread on a stream: writes the events of items, for standard output and connections.

use std::collections::{HashMap, HashSet};

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity};

use super::PROVIDER;
use super::agents::{Child, Children, ended, is_spawn, receivers};
use super::items::{Tool, call_of, report_of, thought};
use super::session::{thinking_block, thread_run, use_block};
use super::shapes::are_texts;
use super::wire::Item;
use crate::emit::{Answer, CallReport, Emit, Outcome, push};
use crate::repeats::hash_of;
use crate::run::{Run, derived_run_id};
use crate::shapes::is_text;
use crate::wire::{Raw, RawField as _};

/// The channel of a thread's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// Standard output, which does not show the work of subagents: their runs are their rollouts.
    Exec,
    /// A connection, on which subagents are threads too.
    AppServer,
}

impl Channel {
    fn word(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::AppServer => "app-server",
        }
    }

    /// Returns the run of a thread on this channel. The rollout has the id of the thread, so this run has another id.
    pub(super) fn run_of(self, source: &str, thread: &str) -> RunOf {
        let run = derived_run_id(&[PROVIDER, self.word(), source, thread]);
        RunOf { run, session: (!thread.is_empty()).then(|| thread_run(thread)) }
    }
}

/// The run of a thread on a channel, and its session.
#[derive(Clone, Copy)]
pub(super) struct RunOf {
    pub(super) run: steno_model::RunId,
    pub(super) session: Option<steno_model::RunId>,
}

/// A tool's item.
#[derive(Clone, Copy)]
pub(super) struct ToolItem<'a, 'b> {
    /// The id of its call.
    pub(super) id: &'b JsonString,
    pub(super) item: &'b Item<'a>,
    pub(super) tool: Tool,
    /// The part of the record that is the detail of its entry.
    pub(super) detail: Option<&'b str>,
}

/// A thread while its items are read.
pub(super) struct Thread {
    channel: Channel,
    source: String,
    pub(super) run: Run,
    pub(super) model: Option<RawJson>,
    children: Children,
    /// Calls whose entry was written before the call itself could be.
    announced: HashSet<String>,
    /// The hash of the end of each call.
    ends: HashMap<String, u64>,
    /// The hash of each text, by item id.
    texts: HashMap<String, u64>,
    /// Calls that the client declined.
    pub(super) declined: HashSet<String>,
}

impl Thread {
    pub(super) fn new(channel: Channel, source: &str, run: Run) -> Self {
        Self {
            channel,
            source: source.to_owned(),
            run,
            model: None,
            children: Children::default(),
            announced: HashSet::new(),
            ends: HashMap::new(),
            texts: HashMap::new(),
            declined: HashSet::new(),
        }
    }

    /// Writes a message of the model.
    pub(super) fn say(
        &mut self,
        id: Option<RawJson>,
        block: ContentBlock,
        entry: Say<'_>,
        emit: &mut Emit<'_>,
    ) {
        let mut extra = Extra::default();
        push(&mut extra, "id", id);
        push(&mut extra, "model", self.model.clone());
        push(&mut extra, "phase", entry.phase.clone());
        emit.assistant(&self.run, vec![block], extra);
        entry.write(&self.run, emit);
    }

    /// Forgets the texts of items, because the next process numbers its items from the start.
    pub(super) fn forget_texts(&mut self) {
        self.texts.clear();
    }

    /// Writes the text or thought of an item; a text only once. False if a value is of an unexpected kind, or an item
    /// with this id had a different text.
    pub(super) fn write_text(
        &mut self,
        item: &Item<'_>,
        is_thought: bool,
        detail: Option<&str>,
        emit: &mut Emit<'_>,
    ) -> bool {
        let own = item.text.or(item.raw_content).or(item.content);
        let summary = item.summary.or(item.summary_text);
        let (block, entry_type, is_read) = if is_thought {
            let is_read = are_texts(own) && are_texts(summary);
            (thinking_block(thought(own, summary)), EntryType::Thinking, is_read)
        } else {
            let text = item.text.string().unwrap_or_else(|| "".into());
            let hash = hash_of(&*text.to_text());
            if let Some(id) = item.id.text() {
                let known = self.texts.get(&*id).copied();
                if let Some(known) = known {
                    return known == hash;
                }
                self.texts.insert(id.into_owned(), hash);
            }
            let block = ContentBlock::text(Fidelity::AgentEmitted, text);
            (block, EntryType::AssistantMessage, is_text(item.text))
        };
        let say = Say { entry_type: Some(entry_type), detail, phase: item.phase.json() };
        self.say(item.id.json(), block, say, emit);
        is_read
    }

    /// Writes the call of a started item; false if an item with this id has ended.
    pub(super) fn start(&mut self, tool_item: &ToolItem<'_, '_>, emit: &mut Emit<'_>) -> bool {
        let ToolItem { id, item, tool, detail } = *tool_item;
        if self.ends.contains_key(&*id.to_text()) {
            return false;
        }
        // The query is not known yet; the completed item has it.
        let is_nothing = |query: Raw<'_>| query.json().is_none_or(|query| query.as_str() == "\"\"");
        let is_empty = tool == Tool::WebSearch && is_nothing(item.query);
        if is_empty {
            if self.announced.insert(id.to_text().into_owned()) {
                Say::entry(EntryType::ToolUse, detail).write(&self.run, emit);
            }
            return true;
        }
        self.call(id, call_of(item, tool), detail, emit);
        true
    }

    /// Writes a call: a block of the response, and the call itself.
    pub(super) fn call(
        &mut self,
        id: &JsonString,
        call: CallReport,
        detail: Option<&str>,
        emit: &mut Emit<'_>,
    ) {
        let key = id.to_text();
        if self.run.calls.get(&key).is_some() {
            return;
        }
        let entry_type = (!self.announced.remove(&*key)).then_some(EntryType::ToolUse);
        let say = Say { entry_type, detail, phase: None };
        self.say(None, use_block(id, &call), say, emit);
        emit.call(&mut self.run, id, call);
    }

    /// Writes the result of a completed item, and its call if that is missing; false if an item with this id ended in
    /// another way.
    pub(super) fn complete(&mut self, tool_item: &ToolItem<'_, '_>, emit: &mut Emit<'_>) -> bool {
        let ToolItem { id, item, tool, detail } = *tool_item;
        self.call(id, call_of(item, tool), detail, emit);
        if tool == Tool::Collab {
            self.link_children(id, item, emit);
        }
        let output = if tool == Tool::ImageView { item.path.json() } else { item.states().json() };
        let answer = report_of(item, tool).into_answer(output.unwrap_or_else(RawJson::null));
        let hash = hash_of(&(answer.output.as_str(), answer.outcome.as_str()));
        let is_same = *self.ends.entry(id.to_text().into_owned()).or_insert(hash) == hash;
        self.answer(id, answer, detail, emit);
        is_same
    }

    /// Writes a result, once.
    pub(super) fn answer(
        &mut self,
        id: &JsonString,
        mut answer: Answer,
        detail: Option<&str>,
        emit: &mut Emit<'_>,
    ) {
        let key = id.to_text();
        if self.run.calls.get(&key).is_some_and(|call| call.is_answered) {
            return;
        }
        if self.declined.contains(&*key) && answer.outcome == Outcome::Failed {
            answer.outcome = Outcome::Denied;
        }
        emit.result(&mut self.run, id, "", answer);
        Say::entry(EntryType::ToolResult, detail).write(&self.run, emit);
    }

    fn link_children(&mut self, id: &JsonString, item: &Item<'_>, emit: &mut Emit<'_>) {
        if item.tool.text().is_some_and(|tool| is_spawn(&tool)) {
            for thread in receivers(item) {
                self.begin_child(&thread, Some(&id.to_text()), emit);
            }
        }
        for (thread, end) in ended(item.states()) {
            let child = self.child(&thread);
            self.children.end(&self.run, child, end, emit);
        }
    }

    /// Writes that a subagent was created.
    pub(super) fn begin_child(&mut self, thread: &str, call: Option<&str>, emit: &mut Emit<'_>) {
        let child = self.child(thread);
        self.children.begin(&self.run, child, call, emit);
    }

    fn child<'a>(&self, thread: &'a str) -> Child<'a> {
        match self.channel {
            Channel::Exec => Child { thread, run: thread_run(thread), session: None },
            Channel::AppServer => {
                let of = self.channel.run_of(&self.source, thread);
                Child { thread, run: of.run, session: of.session }
            }
        }
    }
}

/// The entry that goes with a message.
pub(super) struct Say<'a> {
    pub(super) entry_type: Option<EntryType>,
    /// The part of the record that is its detail; none means the whole record.
    pub(super) detail: Option<&'a str>,
    pub(super) phase: Option<RawJson>,
}

impl<'a> Say<'a> {
    pub(super) fn entry(entry_type: EntryType, detail: Option<&'a str>) -> Self {
        Self { entry_type: Some(entry_type), detail, phase: None }
    }

    fn write(self, run: &Run, emit: &mut Emit<'_>) {
        match (self.entry_type, self.detail) {
            (None, _) => {}
            (Some(entry_type), None) => emit.entry(run, entry_type, None),
            (Some(entry_type), Some(detail)) => emit.entry_with(run, entry_type, None, detail),
        }
    }
}
