//! Writes prompts, system prompts, responses and thoughts.

use std::collections::HashMap;

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity};

use super::PROVIDER;
use super::agents::Agent;
use super::calls::{CallSource, report_of};
use super::wire::{Data, Line, ReasoningBlocks, ServerTools, ToolRequest, TypeTag};
use crate::adapter::RecordOutcome;
use crate::emit::{CallReport, Emit, push, string};
use crate::repeats::hash_of;
use crate::shapes::{is_absent, is_text};
use crate::wire::{Raw, RawField as _, list, object, objects};

/// The thoughts of a turn, as hashes: each comes with its response and, in some versions, in a record of its own too.
#[derive(Default)]
pub(super) struct Thoughts {
    /// Thoughts that were in a response, and in no other record yet.
    in_responses: HashMap<u64, u32>,
    /// Thoughts that were in another record, and in no response yet.
    alone: HashMap<u64, u32>,
}

impl Thoughts {
    pub(super) fn clear(&mut self) {
        self.in_responses.clear();
        self.alone.clear();
    }

    /// Takes a thought of a response; false if it was written before.
    fn of_response(&mut self, text: &str) -> bool {
        Self::take(&mut self.alone, &mut self.in_responses, text)
    }

    /// Takes a thought that a response only repeats.
    fn repeated(&mut self, text: &str) {
        *self.in_responses.entry(hash_of(text)).or_default() += 1;
    }

    /// Takes a thought of another record; false if it was written before.
    fn of_record(&mut self, text: &str) -> bool {
        Self::take(&mut self.in_responses, &mut self.alone, text)
    }

    fn take(twins: &mut HashMap<u64, u32>, own: &mut HashMap<u64, u32>, text: &str) -> bool {
        let hash = hash_of(text);
        if let Some(count) = twins.get_mut(&hash).filter(|count| **count > 0) {
            *count -= 1;
            return false;
        }
        *own.entry(hash).or_default() += 1;
        true
    }
}

/// What a response says.
#[derive(Default)]
struct ResponseContent {
    blocks: Vec<ContentBlock>,
    entries: Vec<EntryType>,
    calls: Vec<(JsonString, CallReport)>,
    /// Whether something in it is of an unknown kind.
    is_odd: bool,
}

impl Agent {
    /// Writes a prompt; another agent or Copilot itself may have written it.
    pub(super) fn prompt(&mut self, line: &Line<'_>, data: &Data<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let text = data.content.string();
        let marks = attachments(data.attachments);
        if text.is_none() && marks.is_empty() {
            return self.unknown("user.message", emit);
        }
        self.begin_prompted(data.interaction_id, emit);
        let mut blocks = Vec::new();
        if let Some(text) = text.clone().filter(|text| !text.is_empty() || marks.is_empty()) {
            blocks.push(ContentBlock::text(Fidelity::AgentEmitted, text));
        }
        blocks.extend(marks);
        let mut extra = Extra::default();
        push(&mut extra, "id", line.id.json());
        push(&mut extra, "origin", data.source.json());
        push(&mut extra, "delivery", data.delivery.json().filter(|_| !data.delivery.is("idle")));
        push(&mut extra, "autopilot", data.is_autopilot.is_true().then(|| RawJson::from(true)));
        emit.user(&self.run, blocks, extra);
        emit.entry(&self.run, EntryType::UserMessage, None);
        let is_read = text.is_some() || is_absent(data.content);
        if is_read { RecordOutcome::Understood } else { self.unknown("user.message", emit) }
    }

    /// Writes a system prompt, if it has changed.
    pub(super) fn system_prompt(
        &mut self,
        line: &Line<'_>,
        data: &Data<'_>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let Some(text) = data.content.string() else { return self.unknown("system.message", emit) };
        if self.system_prompt.replace(hash_of(text.as_raw())) == Some(hash_of(text.as_raw())) {
            return RecordOutcome::Bookkeeping;
        }
        let mut block = ContentBlock::text(Fidelity::AgentEmitted, text);
        block.extra.push("label", string("system_prompt"));
        let mut extra = Extra::default();
        push(&mut extra, "id", line.id.json());
        push(&mut extra, "provider_role", data.role.json().filter(|_| !data.role.is("system")));
        emit.user(&self.run, vec![block], extra);
        emit.entry(&self.run, EntryType::UserMessage, None);
        RecordOutcome::Understood
    }

    /// Writes a response: one message, then its calls.
    pub(super) fn response_record(
        &mut self,
        line: &Line<'_>,
        data: &Data<'_>,
        usage: Option<RawJson>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        self.begin_work(data.interaction_id, emit);
        (self.last_error, self.failure) = (None, None);
        let mut content = ResponseContent::default();
        self.take_thoughts(data, &mut content);
        content.take_text(data.content);
        content.take_calls(data.tool_requests);
        if !content.blocks.is_empty() || usage.is_some() {
            let extra = self.response_fields(line, data, usage);
            emit.assistant(&self.run, content.blocks, extra);
        }
        for entry_type in content.entries {
            emit.entry(&self.run, entry_type, None);
        }
        let mut is_odd = content.is_odd;
        for (id, call) in content.calls {
            is_odd |= !self.call(&id, call, CallSource::Response, emit);
        }
        if let Some(tools) = server_tools(data.server_tools) {
            self.fact_with("server_tools", Some(tools), emit);
        }
        if is_odd { self.unknown("assistant.message", emit) } else { RecordOutcome::Understood }
    }

    fn take_thoughts(&mut self, data: &Data<'_>, content: &mut ResponseContent) {
        let text = data.reasoning_text.string().filter(|text| !text.is_empty());
        let is_new = text.as_ref().is_some_and(|text| self.is_new_thought(&text.to_text(), data));
        let has_text = text.is_some();
        let mut text = text.filter(|_| is_new);
        let read = data.reasoning_blocks.and_then(object::<ReasoningBlocks<'_>>).unwrap_or_default();
        let mut secrets = 0;
        for block in read.blocks.and_then(list::<TypeTag<'_>>).unwrap_or_default().into_iter().flatten() {
            if block.kind.is("redacted_thinking") {
                secrets += 1;
                content.think("".into());
            } else if let Some(text) = text.take() {
                content.think(text);
            }
        }
        if let Some(text) = text {
            content.think(text);
        }
        let is_secret = !is_absent(data.reasoning_opaque) || !is_absent(data.encrypted_content);
        if !has_text && secrets == 0 && is_secret {
            content.think("".into());
        }
    }

    /// Takes the thought of a response; false if it was written before. Some versions repeat the turn's last thought, and
    /// its signature if there is one, in responses without a thought.
    fn is_new_thought(&mut self, text: &str, data: &Data<'_>) -> bool {
        let hash = hash_of(&(text, data.reasoning_opaque.map(RawValue::get)));
        if self.last_thought.replace(hash) == Some(hash) {
            self.thoughts.repeated(text);
            return false;
        }
        self.thoughts.of_response(text)
    }

    fn response_fields(&mut self, line: &Line<'_>, data: &Data<'_>, usage: Option<RawJson>) -> Extra {
        let mut extra = Extra::default();
        push(&mut extra, "id", line.id.json());
        extra.push("response", self.response(&[data.api_call_id, data.message_id]));
        // Copilot itself asks for some calls, in messages that name neither.
        let is_named = !is_absent(data.model) || !is_absent(data.api_call_id);
        let is_made = self.names_models && !is_named;
        let model = data.model.json().or_else(|| self.model.clone().filter(|_| !is_made));
        push(&mut extra, "model", model);
        push(&mut extra, "made_by", is_made.then(|| string(PROVIDER)));
        self.names_models |= is_named;
        push(&mut extra, "stop_reason", self.last_usage.stop_reason(data.api_call_id));
        push(&mut extra, "phase", data.phase.json());
        if let Some(usage) = usage {
            extra.push("usage", usage);
            extra.push("usage_scope", string("response"));
            extra.push("final", RawJson::from(false));
            extra.push("lower_bound", RawJson::from(true));
        }
        extra
    }

    /// Writes a thought that comes by itself, unless a response had it.
    pub(super) fn thought(&mut self, line: &Line<'_>, data: &Data<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(text) = data.content.string() else { return self.unknown("assistant.reasoning", emit) };
        if !self.thoughts.of_record(&text.to_text()) {
            return RecordOutcome::Understood;
        }
        self.begin_work(data.interaction_id, emit);
        let mut content = ResponseContent::default();
        content.think(text);
        let mut extra = Extra::default();
        push(&mut extra, "id", line.id.json());
        extra.push("response", self.response(&[data.reasoning_id]));
        emit.assistant(&self.run, content.blocks, extra);
        emit.entry(&self.run, EntryType::Thinking, None);
        RecordOutcome::Understood
    }

    /// Writes that a record, or something in it, is of an unknown kind.
    pub(super) fn unknown(&self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
        RecordOutcome::Unknown(name.to_owned())
    }
}

impl ResponseContent {
    /// Adds a thought. One without text exists but is kept secret.
    fn think(&mut self, thought: JsonString) {
        let is_secret = thought.is_empty();
        let mut block = ContentBlock::new(Fidelity::AgentEmitted, BlockContent::Thinking(Some(thought)));
        if is_secret {
            block.extra.push("redacted", RawJson::from(true));
        }
        self.blocks.push(block);
        self.entries.push(EntryType::Thinking);
    }

    fn take_text(&mut self, content: Raw<'_>) {
        self.is_odd |= !is_text(content);
        if let Some(text) = content.string().filter(|text| !text.is_empty()) {
            self.blocks.push(ContentBlock::text(Fidelity::AgentEmitted, text));
            self.entries.push(EntryType::AssistantMessage);
        }
    }

    fn take_calls(&mut self, requests: Raw<'_>) {
        for request in requests.and_then(list::<ToolRequest<'_>>).unwrap_or_default() {
            let id = request.and_then(|request| request.id.string());
            let (Some(request), Some(id)) = (request, id) else {
                self.is_odd = true;
                continue;
            };
            self.is_odd |= !is_text(request.name);
            let call = report_of(request.name, request.arguments, request.mcp_server);
            let content = BlockContent::ToolUse {
                tool_name: Some(call.name.clone()),
                tool_id: Some(id.clone()),
                tool_input: Some(call.input.clone()),
            };
            self.blocks.push(ContentBlock::new(Fidelity::AgentEmitted, content));
            self.entries.push(EntryType::ToolUse);
            self.calls.push((id, call));
        }
    }
}

/// Returns a mark for each attachment: its type and its size.
fn attachments(raw: Raw<'_>) -> Vec<ContentBlock> {
    let mark = |(raw, typed): (&RawValue, Option<TypeTag<'_>>)| {
        let kind = typed.and_then(|typed| typed.kind.text()).unwrap_or("attachment".into());
        let mut mark = ContentBlock::text(Fidelity::AgentEmitted, "");
        mark.extra.push("label", string(&kind));
        mark.extra.push("size_bytes", RawJson::from(raw.get().len() as u64));
        mark
    };
    raw.and_then(objects::<TypeTag<'_>>).unwrap_or_default().into_iter().map(mark).collect()
}

/// Returns what tools of the model's provider did, if anything.
fn server_tools(raw: Raw<'_>) -> Option<RawJson> {
    let tools: ServerTools<'_> = raw.and_then(object)?;
    let has_items = |items: Raw<'_>| items.is_some_and(|items| !matches!(items.get(), "[]" | "null"));
    raw.json().filter(|_| has_items(tools.items) || has_items(tools.blocks))
}
