//! The state of a rollout while it is read: its turn, prompts, calls, and events that wait for a later record.

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
use super::waits::{PendingReport, Wait};
use super::wire::TokenInfo;
use crate::adapter::RecordOutcome;
use crate::emit::{Answer, CallReport, Emit, EndedBy, Outcome, TurnEnd, push};
use crate::run::{Run, run_id_of};

/// An announced turn that is not written yet.
struct TurnAnnounced {
    id: Option<JsonString>,
    wait: Wait,
}

/// A rollout whose run has begun.
pub(super) struct Session {
    pub(super) run: Run,
    /// A turn that waits for its settings.
    waiting: Option<TurnAnnounced>,
    /// The thread of the file, if known.
    pub(super) thread: Option<String>,
    pub(super) turn_ids: TurnIds,
    /// Whether turns are recorded as such; before 0.107 they begin with a prompt.
    pub(super) has_turn_records: bool,
    /// The last settings.
    settings: Option<RawJson>,
    pub(super) model: Option<RawJson>,
    pub(super) twins: Twins,
    /// The records of the displayed texts that wait in `twins`.
    displayed_in: Vec<Wait>,
    /// A report whose output may be in the next record.
    pub(super) awaited: Option<PendingReport>,
    /// Whether the current record has only added waiting events.
    pub(super) is_quiet: bool,
    /// The run from which the current record was copied.
    pub(super) copied_from: Option<RunId>,
    pub(super) call_hashes: HashMap<String, CallHashes>,
    /// The last script of the model, which may go on after its call has a result.
    pub(super) script: Option<JsonString>,
    pub(super) children: Children,
    pub(super) totals: Totals,
    /// The responses whose exact usage is known.
    responses: HashSet<String>,
    /// A counter for items without an id.
    unnamed: u32,
    /// Compactions whose notice is still to come.
    pub(super) compactions: u32,
    /// Web searches whose response item is still to come.
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
            displayed_in: Vec::new(),
            awaited: None,
            is_quiet: false,
            copied_from: None,
            call_hashes: HashMap::new(),
            script: None,
            children: Children::default(),
            totals: Totals::new(start),
            responses: HashSet::new(),
            unnamed: 0,
            compactions: 0,
            searches: 0,
        }
    }

    /// Begins a record. A report that waits for the next record is written, unless this record has its output.
    pub(super) fn begin_record(&mut self, output_of: Option<&str>, emit: &mut Emit<'_>) {
        match &self.awaited {
            None => {}
            Some(awaited) if output_of == Some(&*awaited.report.id.to_text()) => self.link_awaited(emit),
            Some(_) => self.write_awaited(emit),
        }
    }

    /// Ends a record: waiting events lose their own position, unless the record wrote nothing.
    pub(super) fn end_record(&mut self, read: &RecordOutcome) {
        let is_quiet = std::mem::take(&mut self.is_quiet) && *read == RecordOutcome::Understood;
        if !is_quiet && *read != RecordOutcome::Bookkeeping {
            self.overtake();
        }
    }

    /// Notes that something is written, so waiting events lose their own position. A record may write before it opens
    /// the turn.
    pub(super) fn overtake(&mut self) {
        if let Some(turn) = &mut self.waiting {
            turn.wait.overtake();
        }
        // All earlier ones are overtaken already.
        let shown = self.displayed_in.iter_mut().rev().take_while(|wait| !wait.is_overtaken());
        shown.for_each(Wait::overtake);
    }

    /// Writes all waiting events in order, at the end of the source.
    pub(super) fn finish(&mut self, emit: &mut Emit<'_>) {
        let is_written = self.open_turn(emit) | self.write_displayed(emit);
        if let Some(awaited) = self.awaited.as_mut().filter(|_| is_written) {
            awaited.wait.overtake();
        }
        self.write_awaited(emit);
    }

    /// Notes that a turn has begun. It is written with its settings or with its first event.
    pub(super) fn announce_turn(&mut self, id: Option<JsonString>, emit: &mut Emit<'_>) {
        self.has_turn_records = true;
        let is_written = self.write_displayed(emit) | self.open_turn(emit);
        self.twins.end_prompts();
        let mut wait = Wait::new(self.copied_from, emit);
        if is_written {
            wait.overtake();
        }
        self.waiting = Some(TurnAnnounced { id, wait });
        self.is_quiet = true;
        emit.entry(&self.run, EntryType::Unknown, None);
    }

    /// Begins a turn without an announcement.
    pub(super) fn begin_unannounced(&mut self, id: Option<&JsonString>, emit: &mut Emit<'_>) {
        self.has_turn_records = true;
        self.write_displayed(emit);
        self.open_turn(emit);
        self.twins.end_prompts();
        emit.begin_turn(&mut self.run, id, None);
    }

    /// Writes the start of an announced turn, if there is one; returns true if it was written at the current record.
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
            // Older versions write settings with every request, after the prompt that began the turn.
            emit.system(&self.run, "turn_context", Some(settings.clone()));
            emit.entry(&self.run, EntryType::SystemEvent, Some("turn_context"));
            self.settings = Some(settings);
        }
    }

    /// Ends the turn; false if none was open.
    pub(super) fn end_turn(
        &mut self,
        error: Option<JsonString>,
        result: Option<RawJson>,
        emit: &mut Emit<'_>,
    ) -> bool {
        self.open_turn(emit);
        let is_open = self.run.turns.is_open();
        self.write_displayed(emit);
        self.twins.end_prompts();
        emit.end_turn(&mut self.run, TurnEnd { by: EndedBy::Record, error, result });
        is_open
    }

    /// Takes one of the two records of a prompt; the second writes only parts that the first lacks.
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
            for (kind, part) in message.others.into_iter().chain(unseen) {
                self.fact(&kind, Some(part), emit);
            }
            return;
        }
        self.open_turn(emit);
        if !self.has_turn_records || !self.run.turns.is_open() {
            self.write_displayed(emit);
            emit.begin_turn(&mut self.run, None, None);
        }
        let mut extra = Extra::default();
        push(&mut extra, "id", id);
        emit.user(&self.run, message.blocks, extra);
        emit.entry(&self.run, EntryType::UserMessage, None);
    }

    /// Writes a message of the model, with an entry for each block.
    pub(super) fn say(
        &mut self,
        blocks: Vec<ContentBlock>,
        mut extra: Extra,
        entry: EntryType,
        emit: &mut Emit<'_>,
    ) {
        self.open_turn(emit);
        if !self.has_turn_records {
            // After a message of the model, a prompt begins the next turn.
            self.twins.end_prompts();
        }
        push(&mut extra, "model", self.model.clone());
        let entries = blocks.len();
        emit.assistant(&self.run, blocks, extra);
        for _ in 0..entries {
            emit.entry(&self.run, entry, None);
        }
    }

    /// Takes texts that the user was shown. They wait for a response with the same text until the turn ends.
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
            self.twins.show(self.displayed_in.len(), shown);
        }
        self.displayed_in.push(wait);
        self.is_quiet = true;
        // The type of the entry is only known at the end of the turn, and entries come in order.
        emit.entry(&self.run, EntryType::Unknown, None);
    }

    /// Writes the displayed texts of a turn that no response has; returns true if any was written at the current
    /// record.
    fn write_displayed(&mut self, emit: &mut Emit<'_>) -> bool {
        let mut is_late = false;
        let mut waits: Vec<Option<Wait>> =
            std::mem::take(&mut self.displayed_in).into_iter().map(Some).collect();
        for words in self.twins.end_words().chunk_by(|(one, _), (other, _)| one == other) {
            let wait = words.first().and_then(|(record, _)| waits.get_mut(*record)).and_then(Option::take);
            let Some(mut wait) = wait else { continue };
            if is_late {
                wait.overtake();
            }
            is_late = wait.is_overtaken();
            self.write_displayed_record(words.iter().map(|(_, shown)| shown), &mut wait, emit);
        }
        is_late
    }

    /// Writes the displayed texts of one record.
    fn write_displayed_record<'a>(
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

    /// Takes a running total, without the exact usage that is already recorded.
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

    /// Writes that a record is of an unknown kind or has a value of an unknown kind.
    pub(super) fn unknown(&mut self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        if let Some(awaited) = &mut self.awaited {
            // The report is in the current record, which cannot be written at its position twice.
            awaited.wait.overtake();
        }
        self.write_awaited(emit);
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
        RecordOutcome::Unknown(name.to_owned())
    }

    /// Returns the number for the next item without an id.
    pub(super) fn next_unnamed(&mut self) -> u32 {
        self.unnamed += 1;
        self.unnamed
    }

    /// Writes the start and the end of a compaction.
    pub(super) fn compaction(&mut self, result: Option<RawJson>, extra: Extra, emit: &mut Emit<'_>) {
        self.open_turn(emit);
        let path = self.run.turns.path_of("compaction");
        emit.step_started(&self.run, &path, StepPayload::new("compaction", "compaction"));
        let payload = StepPayload { result, extra, ..StepPayload::new("compaction", "compaction") };
        emit.step_completed(&self.run, &path, payload);
        emit.entry(&self.run, EntryType::SystemEvent, Some("compaction"));
    }

    /// Writes a fact. A fact before the settings of a turn does not begin the turn.
    pub(super) fn fact(&mut self, name: &str, result: Option<RawJson>, emit: &mut Emit<'_>) {
        self.overtake();
        emit.system(&self.run, name, result);
        emit.entry(&self.run, EntryType::SystemEvent, Some(name));
    }

    /// Writes the user's answer to a call.
    pub(super) fn answered(
        &mut self,
        name: &JsonString,
        call: &JsonString,
        answer: RawJson,
        emit: &mut Emit<'_>,
    ) {
        self.open_turn(emit);
        let mut extra = Extra::default();
        push(&mut extra, "tool_call_id", Some(call.to_json()));
        let payload =
            StepPayload { result: Some(answer), extra, ..StepPayload::new(name.clone(), "user_input") };
        emit.step_completed(&self.run, &self.run.turns.path_of("user_input"), payload);
        emit.entry(&self.run, EntryType::SystemEvent, Some("user_input_resolved"));
    }

    /// Writes an error.
    pub(super) fn error(&mut self, name: &str, error: &str, emit: &mut Emit<'_>) {
        self.open_turn(emit);
        emit.error(&self.run, name, error);
        emit.entry(&self.run, EntryType::Error, None);
    }

    /// Writes that a subagent was created.
    pub(super) fn begin_child(&mut self, thread: &str, call: Option<&str>, emit: &mut Emit<'_>) {
        self.overtake();
        self.children.begin(&self.run, child(thread), call, emit);
    }

    /// Writes which subagents have ended.
    pub(super) fn end_children(&mut self, ended: Vec<(String, End)>, emit: &mut Emit<'_>) {
        for (thread, end) in ended {
            self.overtake();
            self.children.end(&self.run, child(&thread), end, emit);
        }
    }
}

/// Returns a subagent. Its run is its rollout, which has the id of its thread.
fn child(thread: &str) -> Child<'_> {
    Child { thread, run: thread_run(thread), session: None }
}

/// Returns the run of a thread's rollout.
pub(super) fn thread_run(thread: &str) -> RunId {
    run_id_of(PROVIDER, thread)
}

/// Makes the block for a call in a response.
pub(super) fn use_block(id: &JsonString, call: &CallReport) -> ContentBlock {
    let content = BlockContent::ToolUse {
        tool_name: Some(call.name.clone()),
        tool_id: Some(id.clone()),
        tool_input: Some(call.input.clone()),
    };
    ContentBlock::new(Fidelity::AgentEmitted, content)
}

/// Makes the block of a thought; a thought without text is marked as redacted.
pub(super) fn thinking_block(thought: JsonString) -> ContentBlock {
    let is_secret = thought.is_empty();
    let mut block = ContentBlock::new(Fidelity::AgentEmitted, BlockContent::Thinking(Some(thought)));
    if is_secret {
        block.extra.push("redacted", RawJson::from(true));
    }
    block
}

/// Makes an answer with only an output.
pub(super) fn plain_answer(output: RawJson) -> Answer {
    Answer::new(output, Outcome::Unknown)
}
