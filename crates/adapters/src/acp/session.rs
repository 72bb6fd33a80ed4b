//! A session on a connection while it is read: its run, its turn, and words that are not complete.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity, StepPayload};

use super::calls::CallState;
use super::content::{block_of, is_odd, text_of};
use super::wire::{Block, Update};
use crate::emit::{Emit, EndedBy, PendingRecord, TurnEnd, push, string};
use crate::run::Run;
use crate::wire::{Raw, RawField as _, object};

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    Thought,
}

/// Words that come in chunks.
struct Speech {
    speaker: Speaker,
    message: Option<RawJson>,
    /// The text so far, as it is between the quotes of a JSON string.
    text: String,
    /// The last chunk.
    held: PendingRecord,
    /// Whether that is the record that is being read.
    is_fresh: bool,
    /// Whether something was written that comes after it in the source.
    is_overtaken: bool,
}

/// A session while it is read.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) run: Run,
    speech: Option<Speech>,
    /// Whether words were written at an earlier record since the last look.
    has_flushed: bool,
    /// The words of the turn's prompt, which agents may repeat.
    prompt: Option<String>,
    /// Ids of messages that are complete; chunks of them add nothing.
    complete: HashSet<String>,
    pub(super) calls: HashMap<String, CallState>,
    /// Calls that the user declined.
    pub(super) declined: HashSet<String>,
    is_compacting: bool,
    summary: String,
}

impl Session {
    pub(super) fn new(id: &str, run: Run) -> Self {
        Self {
            id: id.to_owned(),
            run,
            speech: None,
            has_flushed: false,
            prompt: None,
            complete: HashSet::new(),
            calls: HashMap::new(),
            declined: HashSet::new(),
            is_compacting: false,
            summary: String::new(),
        }
    }

    /// Takes a chunk of words; false if it is of an unknown kind.
    pub(super) fn chunk(&mut self, speaker: Speaker, update: &Update<'_>, emit: &mut Emit<'_>) -> bool {
        let Some((raw, block)) = update.content.and_then(|raw| Some((raw, object::<Block<'_>>(raw)?))) else {
            return false;
        };
        let message = update.message.json();
        if message.as_ref().is_some_and(|message| self.complete.contains(message.as_str())) {
            return true;
        }
        let goes_on = |speech: &Speech| speech.speaker == speaker && speech.message == message;
        if !self.speech.as_ref().is_some_and(goes_on) {
            self.flush(emit);
        }
        let Some(text) = text_of(&block) else {
            self.flush(emit);
            self.say(speaker, vec![block_of(raw, &block)], message, emit);
            emit.entry(&self.run, entry_type(speaker), None);
            return !is_odd(&block);
        };
        let before = self.speech.take().map(|speech| speech.text).unwrap_or_default();
        let (held, is_overtaken) = (emit.hold(), emit.has_written());
        let text = before + &inside(&text);
        self.speech = Some(Speech { speaker, message, text, held, is_fresh: true, is_overtaken });
        true
    }

    /// Takes a message that is complete. It replaces the chunks of the same message; false if it cannot be read.
    pub(super) fn message(&mut self, speaker: Speaker, update: &Update<'_>, emit: &mut Emit<'_>) -> bool {
        let message = update.message.json();
        let is_its = |speech: &Speech| speech.speaker == speaker && speech.message == message;
        if message.is_some() && self.speech.as_ref().is_some_and(is_its) {
            self.speech = None;
        }
        self.flush(emit);
        if let Some(message) = &message
            && !self.complete.insert(message.as_str().to_owned())
        {
            return true;
        }
        let content = super::content::prompt(update.content.map(listed).as_deref().or(update.content));
        if speaker == Speaker::User && self.prompt.as_ref() == Some(&content.text) {
            return !content.is_odd;
        }
        let is_read = !content.is_odd;
        let blocks = content.blocks.into_iter().map(|block| of_speaker(speaker, block)).collect();
        self.say(speaker, blocks, message, emit);
        emit.entry(&self.run, entry_type(speaker), None);
        is_read
    }

    /// Notes that a record was read. If it wrote events, waiting words cannot be written at their own position any more,
    /// because positions must increase.
    pub(super) fn end_record(&mut self, has_written: bool) {
        if let Some(speech) = &mut self.speech {
            speech.is_overtaken |= has_written && !speech.is_fresh;
            speech.is_fresh = false;
        }
    }

    /// Tells whether words were written at an earlier record since the last call.
    pub(super) fn take_flushed(&mut self) -> bool {
        std::mem::take(&mut self.has_flushed)
    }

    /// Writes the words that have come in chunks, where the last chunk is if nothing after it was written.
    pub(super) fn flush(&mut self, emit: &mut Emit<'_>) {
        let Some(speech) = self.speech.take() else { return };
        let Speech { speaker, message, text, held, is_overtaken, .. } = speech;
        let Some(text) = whole(&text).filter(|text| !text.is_empty()) else { return };
        // Agents repeat the prompt.
        if speaker == Speaker::User && self.prompt.as_deref() == Some(&*text.to_text()) {
            return;
        }
        let plain = emit.wants_entries().then(|| text.to_text().into_owned());
        let block = of_speaker(speaker, ContentBlock::text(Fidelity::AgentEmitted, text));
        if is_overtaken {
            self.say(speaker, vec![block], message, emit);
            return emit.release(&held, |emit| self.entry_of_chunks(speaker, plain, emit));
        }
        self.has_flushed = true;
        emit.release(&held, |emit| {
            self.say(speaker, vec![block], message, emit);
            self.entry_of_chunks(speaker, plain, emit);
        });
    }

    fn entry_of_chunks(&self, speaker: Speaker, text: Option<String>, emit: &mut Emit<'_>) {
        emit.set_accumulated(text);
        emit.entry(&self.run, entry_type(speaker), None);
        emit.set_accumulated(None);
    }

    fn say(
        &self,
        speaker: Speaker,
        blocks: Vec<ContentBlock>,
        message: Option<RawJson>,
        emit: &mut Emit<'_>,
    ) {
        let mut extra = Extra::default();
        push(&mut extra, "id", message);
        match speaker {
            Speaker::User => emit.user(&self.run, blocks, extra),
            Speaker::Agent | Speaker::Thought => emit.assistant(&self.run, blocks, extra),
        }
    }

    /// Begins a turn with a prompt.
    pub(super) fn begin_turn(&mut self, prompt: super::content::Prompt, emit: &mut Emit<'_>) {
        self.flush(emit);
        emit.begin_turn(&mut self.run, None, None);
        emit.user(&self.run, prompt.blocks, Extra::default());
        self.prompt = Some(prompt.text);
    }

    /// Begins a turn whose prompt is not in the recording, unless one is open.
    pub(super) fn begin_unasked_turn(&mut self, emit: &mut Emit<'_>) {
        if !self.run.turns.is_open() {
            emit.begin_turn(&mut self.run, None, None);
            self.prompt = None;
        }
    }

    /// Ends the turn with the reason that the agent gives.
    pub(super) fn end_turn(&mut self, reason: &str, emit: &mut Emit<'_>) {
        self.flush(emit);
        let result = Some(RawJson::object(|object| object.json("stop_reason", &string(reason))));
        let (by, error) = match reason {
            "cancelled" => (EndedBy::Interrupt, Some("interrupted".into())),
            _ => (EndedBy::Record, None),
        };
        emit.end_turn(&mut self.run, TurnEnd { by, error, result });
    }

    /// Ends the turn with an error.
    pub(super) fn fail_turn(&mut self, error: JsonString, emit: &mut Emit<'_>) {
        self.flush(emit);
        emit.end_turn(&mut self.run, TurnEnd::failed(error));
    }

    /// Takes a part of a compaction's summary.
    pub(super) fn summarise(&mut self, content: Raw<'_>) {
        let block = content.and_then(object::<Block<'_>>).unwrap_or_default();
        self.summary.push_str(&block.text.text().unwrap_or_default());
    }

    /// Takes the state of a compaction.
    pub(super) fn compact(&mut self, update: &Update<'_>, emit: &mut Emit<'_>) {
        self.flush(emit);
        let path = self.run.turns.path_of("compaction");
        if !std::mem::replace(&mut self.is_compacting, true) {
            emit.step_started(&self.run, &path, StepPayload::new("compaction", "compaction"));
        }
        let status = update.status.text();
        if matches!(status.as_deref(), Some("pending" | "in_progress" | "started" | "running")) {
            return;
        }
        self.is_compacting = false;
        let mut payload = StepPayload::new("compaction", "compaction");
        let summary = Some(std::mem::take(&mut self.summary)).filter(|summary| !summary.is_empty());
        payload.result = update.summary.json().or_else(|| summary.map(|summary| string(&summary)));
        if let Some(failed) = status.filter(|status| matches!(&**status, "failed" | "cancelled")) {
            payload.error = Some(failed.as_ref().into());
        }
        emit.step_completed(&self.run, &path, payload);
    }
}

fn entry_type(speaker: Speaker) -> EntryType {
    match speaker {
        Speaker::User => EntryType::UserMessage,
        Speaker::Agent => EntryType::AssistantMessage,
        Speaker::Thought => EntryType::Thinking,
    }
}

/// Makes the text of a thought a thinking block.
fn of_speaker(speaker: Speaker, mut block: ContentBlock) -> ContentBlock {
    if speaker == Speaker::Thought
        && let BlockContent::Text(text) = &mut block.content
    {
        block.content = BlockContent::Thinking(text.take());
    }
    block
}

/// Returns a text as it is between its quotes: chunks may cut a character that is two escapes.
fn inside(text: &JsonString) -> String {
    let raw = text.as_raw();
    raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

fn whole(inside: &str) -> Option<JsonString> {
    let token = format!("\"{inside}\"");
    serde_json::from_str::<&RawValue>(&token).ok().and_then(JsonString::from_raw)
}

/// Returns a single block as a list.
fn listed(content: &RawValue) -> Box<RawValue> {
    let text = content.get();
    let list = if text.starts_with('{') { format!("[{text}]") } else { text.to_owned() };
    RawValue::from_string(list).unwrap_or_default()
}
