//! The state of a rollout while it is read: its turn, its prompts, its calls, and what waits for a record to come.

use std::collections::{HashMap, HashSet};

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity, RunId, StepPayload};

use super::PROVIDER;
use super::agents::{Child, Children, End};
use super::calls::CallHashes;
use super::prompt::UserMessage;
use super::turn_ids::TurnIds;
use super::twins::{DisplayedText, Side, Twins, Words};
use super::usage::{Growth, ResponseName, Start, Totals, fields};
use super::waits::{Awaited, Wait};
use super::wire::TokenInfo;
use crate::adapter::RecordOutcome;
use crate::emit::{Answer, CallReport, Emit, EndedBy, Outcome, TurnEnd, push};
use crate::run::{Run, run_id_of};

/// A turn that was announced and is not written yet.
struct TurnAnnounced {
    id: Option<JsonString>,
    wait: Wait,
}

/// A rollout that has said who it is.
pub(super) struct Session {
    pub(super) run: Run,
    /// A turn that has begun, whose settings are still to come.
    waiting: Option<TurnAnnounced>,
    /// The thread that the file is of, if it says so.
    pub(super) thread: Option<String>,
    pub(super) turn_ids: TurnIds,
    /// Whether turns are recorded as such; before 0.107 they begin with a prompt.
    pub(super) has_turn_records: bool,
    /// The settings that were told last.
    settings: Option<RawJson>,
    pub(super) model: Option<RawJson>,
    pub(super) twins: Twins,
    /// The records that showed the words which wait in `twins`.
    shown_in: Vec<Wait>,
    /// A report whose output may be in the next record.
    pub(super) awaited: Option<Awaited>,
    /// Whether the record at hand has only made something wait.
    pub(super) is_quiet: bool,
    /// The run that the record at hand is a copy from.
    pub(super) copied_from: Option<RunId>,
    pub(super) heard: HashMap<String, CallHashes>,
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
            thread: None,
            turn_ids: TurnIds::default(),
            has_turn_records: false,
            settings: None,
            model: None,
            twins: Twins::default(),
            shown_in: Vec::new(),
            awaited: None,
            is_quiet: false,
            copied_from: None,
            heard: HashMap::new(),
            children: Children::default(),
            totals: Totals::new(start),
            responses: HashSet::new(),
            unnamed: 0,
            compactions: 0,
            searches: 0,
        }
    }

    /// Begins a record. What waited for the very next one is written, unless this is the output of the call.
    pub(super) fn begin_record(&mut self, output_of: Option<&str>, emit: &mut Emit<'_>) {
        match &self.awaited {
            None => {}
            Some(awaited) if output_of == Some(&*awaited.report.id.to_text()) => self.link_awaited(emit),
            Some(_) => self.write_awaited(emit),
        }
    }

    /// Ends a record: whatever waits has been overtaken, unless nothing was written.
    pub(super) fn end_record(&mut self, read: &RecordOutcome) {
        let is_quiet = std::mem::take(&mut self.is_quiet) && *read == RecordOutcome::Understood;
        if !is_quiet && *read != RecordOutcome::Bookkeeping {
            self.overtake();
        }
    }

    /// Takes note that something is written. A record may do that and open the turn only after it.
    pub(super) fn overtake(&mut self) {
        if let Some(turn) = &mut self.waiting {
            turn.wait.overtake();
        }
        // Whatever came before one that was overtaken was too.
        let shown = self.shown_in.iter_mut().rev().take_while(|wait| !wait.is_overtaken());
        shown.for_each(Wait::overtake);
    }

    /// Writes what waits, in order: nothing more will come.
    pub(super) fn finish(&mut self, emit: &mut Emit<'_>) {
        let is_written = self.open_turn(emit) | self.tie_up(emit);
        if let Some(awaited) = self.awaited.as_mut().filter(|_| is_written) {
            awaited.wait.overtake();
        }
        self.write_awaited(emit);
    }

    /// Notes that a turn has begun. It is written with its settings, or with the first thing that happens in it.
    pub(super) fn announce_turn(&mut self, id: Option<JsonString>, emit: &mut Emit<'_>) {
        self.has_turn_records = true;
        let is_written = self.tie_up(emit) | self.open_turn(emit);
        self.twins.end_prompts();
        let mut wait = Wait::new(self.copied_from, emit);
        if is_written {
            wait.overtake();
        }
        self.waiting = Some(TurnAnnounced { id, wait });
        self.is_quiet = true;
        emit.entry(&self.run, EntryType::Unknown, None);
    }

    /// Begins a turn that nothing has announced.
    pub(super) fn begin_unannounced(&mut self, id: Option<&JsonString>, emit: &mut Emit<'_>) {
        self.has_turn_records = true;
        self.tie_up(emit);
        self.open_turn(emit);
        self.twins.end_prompts();
        emit.begin_turn(&mut self.run, id, None);
    }

    /// Writes the beginning of a turn that was announced, if there is one; tells whether it stands at the record at
    /// hand.
    pub(super) fn open_turn(&mut self, emit: &mut Emit<'_>) -> bool {
        let Some(TurnAnnounced { id, mut wait }) = self.waiting.take() else { return false };
        let is_late = wait.is_overtaken();
        wait.write(emit, |emit| emit.begin_turn(&mut self.run, id.as_ref(), None));
        is_late
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
        emit.end_turn(&mut self.run, TurnEnd { by: EndedBy::Record, error, result });
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
        let pictures = message.pictures.len();
        if let Some(known) = self.twins.pictures_of_first(side, &message.text, pictures) {
            let unseen = message.pictures.into_iter().skip(known);
            for (kind, part) in message.beside.into_iter().chain(unseen) {
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

    /// Takes words that the user was shown. They wait for the response that has them, until the turn is over.
    pub(super) fn show(&mut self, shown: Vec<DisplayedText>, emit: &mut Emit<'_>) {
        if shown.is_empty() {
            return;
        }
        let is_written = self.open_turn(emit);
        let mut wait = Wait::new(self.copied_from, emit);
        if is_written {
            wait.overtake();
        }
        for shown in shown {
            self.twins.show(self.shown_in.len(), shown);
        }
        self.shown_in.push(wait);
        self.is_quiet = true;
        // What it is becomes clear when the turn is over, and entries come in order.
        emit.entry(&self.run, EntryType::Unknown, None);
    }

    /// Writes the words of a turn that is over which the user was shown and no response has; tells whether any stand
    /// at the record at hand.
    fn tie_up(&mut self, emit: &mut Emit<'_>) -> bool {
        let mut is_late = false;
        let mut waits: Vec<Option<Wait>> = std::mem::take(&mut self.shown_in).into_iter().map(Some).collect();
        for words in self.twins.end_words().chunk_by(|(one, _), (other, _)| one == other) {
            let wait = words.first().and_then(|(record, _)| waits.get_mut(*record)).and_then(Option::take);
            let Some(mut wait) = wait else { continue };
            if is_late {
                wait.overtake();
            }
            is_late = wait.is_overtaken();
            self.say_shown(words.iter().map(|(_, shown)| shown), &mut wait, emit);
        }
        is_late
    }

    /// Writes words that one record showed.
    fn say_shown<'a>(
        &mut self,
        words: impl Iterator<Item = &'a DisplayedText>,
        wait: &mut Wait,
        emit: &mut Emit<'_>,
    ) {
        let mut entries = Vec::new();
        wait.write(emit, |emit| {
            for DisplayedText { words, id, text } in words {
                let mut extra = Extra::default();
                push(&mut extra, "id", id.as_ref().map(JsonString::to_json));
                push(&mut extra, "model", self.model.clone());
                let (block, entry) = match words {
                    Words::Text => {
                        let block = ContentBlock::text(Fidelity::AgentEmitted, text.clone());
                        (block, EntryType::AssistantMessage)
                    }
                    Words::Thought => (thinking_block(text.clone()), EntryType::Thinking),
                };
                emit.assistant(&self.run, vec![block], extra);
                entries.push(entry);
            }
        });
        let run = &self.run;
        wait.write_entry(emit, |emit| entries.into_iter().for_each(|entry| emit.entry(run, entry, None)));
    }

    /// Writes the exact usage of a response, once.
    pub(super) fn use_exactly(&mut self, response: &JsonString, usage: RawJson, emit: &mut Emit<'_>) {
        if self.responses.insert(response.to_text().into_owned()) {
            self.totals.use_exactly(&usage);
            let extra =
                fields(Growth::Exact(usage), ResponseName::Id(response.to_json()), self.model.clone());
            self.used(extra, emit);
        }
    }

    /// Takes a running total; what is recorded beside it response by response is not told again.
    pub(super) fn use_total(&mut self, info: &TokenInfo<'_>, emit: &mut Emit<'_>) {
        let growth = self.totals.take(info.total, info.last);
        if growth != Growth::None {
            let named = ResponseName::Number(self.next_unnamed(), &self.totals);
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
    pub(super) fn unknown(&mut self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        if let Some(awaited) = &mut self.awaited {
            // The record that reported is the one at hand, and cannot be written at its place a second time.
            awaited.wait.overtake();
        }
        self.write_awaited(emit);
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
        RecordOutcome::Unknown(name.to_owned())
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
        self.overtake();
        emit.system(&self.run, name, result);
        emit.entry(&self.run, EntryType::SystemEvent, Some(name));
    }

    /// Writes what the user has answered to a call that asked.
    pub(super) fn answered(
        &mut self,
        name: &JsonString,
        call: &JsonString,
        told: RawJson,
        emit: &mut Emit<'_>,
    ) {
        self.open_turn(emit);
        let mut extra = Extra::default();
        push(&mut extra, "tool_call_id", Some(call.to_json()));
        let payload =
            StepPayload { result: Some(told), extra, ..StepPayload::new(name.clone(), "user_input") };
        emit.step_completed(&self.run, &self.run.turns.path_of("user_input"), payload);
        emit.entry(&self.run, EntryType::SystemEvent, Some("user_input_resolved"));
    }

    /// Writes what failed.
    pub(super) fn error(&mut self, name: &str, error: &str, emit: &mut Emit<'_>) {
        self.open_turn(emit);
        emit.error(&self.run, name, error);
        emit.entry(&self.run, EntryType::Error, None);
    }

    /// Writes that a subagent was made.
    pub(super) fn begin_child(&mut self, thread: &str, call: Option<&str>, emit: &mut Emit<'_>) {
        self.overtake();
        self.children.begin(&self.run, child(thread), call, emit);
    }

    /// Writes which subagents are done.
    pub(super) fn end_children(&mut self, ended: Vec<(String, End)>, emit: &mut Emit<'_>) {
        for (thread, end) in ended {
            self.overtake();
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
pub(super) fn use_block(id: &JsonString, call: &CallReport) -> ContentBlock {
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
