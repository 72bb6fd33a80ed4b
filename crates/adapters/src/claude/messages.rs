//! Writes the messages of both sides, in files and in streams.

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity};

use super::agents::Agent;
use super::content::{is_all_text, text_of};
use super::facts;
use super::results::{self, ResultContext, ResultOutcome};
use super::wire::{Block, Message};
use crate::adapter::RecordOutcome;
use crate::emit::{CallReport, Emit, push, string};
use crate::repeats::{amendment, hash_of, hash_of_call};
use crate::run::{Class, Run};
use crate::shapes::{is_text, words};
use crate::wire::{Raw, RawField as _, WireObject as _, list};

/// The model name of messages that Claude Code wrote itself.
const SYNTHETIC: &str = "<synthetic>";

/// The fields next to a message.
#[derive(Clone, Copy)]
pub(super) struct MessageContext<'a> {
    pub(super) uuid: Raw<'a>,
    pub(super) request_id: Raw<'a>,
    /// Whether Claude Code wrote it to report a failed request.
    pub(super) is_api_error: bool,
    /// The class of an API's error; a response may have one too.
    pub(super) error: Raw<'a>,
    /// The messages that it replaces.
    pub(super) supersedes: Raw<'a>,
    /// Whether it was cut short.
    pub(super) aborted: Raw<'a>,
}

/// Returns what a tool does, by its name.
pub(super) fn class_of(name: &str) -> Class {
    match name {
        "Bash" | "BashOutput" | "KillShell" | "KillBash" => Class::Command,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => Class::FileChange,
        "Task" | "Agent" => Class::Agent,
        _ if name.starts_with("mcp__") => Class::Mcp,
        _ => Class::Other,
    }
}

/// Writes a response: one message, then its calls.
pub(super) fn assistant(
    agent: &mut Agent,
    message: &Message<'_>,
    context: MessageContext<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    if context.is_api_error || is_synthetic(message) {
        let text = message.content.map(text_of).unwrap_or_default();
        not_the_model(&agent.run, &text, context, emit);
        let is_read = is_all_text(message.content) && is_text(context.error);
        return if is_read {
            RecordOutcome::Understood
        } else {
            facts::unknown(&agent.run, "assistant", emit)
        };
    }
    let mut spoken = ResponseContent::default();
    spoken.take_all(message.content);
    let is_repeated = spoken.leave_out_repeated(agent);
    let has_end = message.usage.json().is_some() || message.stop_reason.json().is_some();
    // Each record of a response repeats its usage.
    let cost = [message.id, message.usage, message.stop_reason].map(|field| field.map(RawValue::get));
    let is_cost_told = !agent.cost_told.insert(hash_of(&cost));
    let is_heard = is_repeated && spoken.is_empty() && is_cost_told;
    let run = &mut agent.run;
    let mut is_news = !spoken.blocks.is_empty() || (has_end && !is_heard);
    if is_news {
        let extra = response_fields(message, context, &mut agent.unnamed_responses);
        emit.assistant(run, spoken.blocks, extra);
    }
    for entry_type in spoken.entries {
        emit.entry(run, entry_type, None);
    }
    for ResponseCall { id, call, .. } in spoken.calls {
        made(agent, &id, call, emit);
    }
    for block in spoken.results {
        match results::result(agent, &block, ResultContext::default(), emit) {
            ResultOutcome::News => is_news = true,
            ResultOutcome::Again => {}
            ResultOutcome::Odd => spoken.unknown.push(name_of(&block)),
        }
    }
    if let Some(error) = words(context.error).filter(|_| !is_heard) {
        emit.error(&agent.run, "response", &error.to_text());
        emit.entry(&agent.run, EntryType::Error, None);
        is_news = true;
    }
    for name in &spoken.unknown {
        emit.unknown(&agent.run, name, None);
        emit.entry(&agent.run, EntryType::Unknown, None);
    }
    tell_usage(agent, message, emit);
    match spoken.unknown.into_iter().next() {
        Some(name) => RecordOutcome::Unknown(name),
        None if is_news => RecordOutcome::Understood,
        None if message.content.is_none() => facts::unknown(&agent.run, "assistant", emit),
        None => RecordOutcome::Bookkeeping,
    }
}

/// Tells whether Claude Code wrote a message instead of the model.
pub(super) fn is_synthetic(message: &Message<'_>) -> bool {
    message.model.is(SYNTHETIC)
}

/// Writes the entry about a response's usage with the first of its records.
fn tell_usage(agent: &mut Agent, message: &Message<'_>, emit: &mut Emit<'_>) {
    let Some(id) = message.id.text().filter(|_| message.usage.json().is_some()) else { return };
    if agent.usage_told.insert(hash_of(&*id)) {
        emit.entry(&agent.run, EntryType::TokenUsage, None);
    }
}

/// A message of Claude Code instead of the model: the API failed, or there is no response.
fn not_the_model(run: &Run, text: &str, context: MessageContext<'_>, emit: &mut Emit<'_>) {
    if context.is_api_error || context.error.json().is_some() {
        emit.error(run, &context.error.text().unwrap_or("api".into()), text);
        emit.entry(run, EntryType::Error, None);
    } else {
        emit.system(run, "synthetic", Some(string(text)));
        emit.entry(run, EntryType::SystemEvent, Some("synthetic"));
    }
}

fn response_fields(message: &Message<'_>, context: MessageContext<'_>, unnamed: &mut u64) -> Extra {
    let mut extra = Extra::default();
    push(&mut extra, "id", context.uuid.json());
    let response = message.id.json().or_else(|| context.request_id.json());
    extra.push(
        "response",
        response.unwrap_or_else(|| {
            *unnamed += 1;
            RawJson::from(*unnamed)
        }),
    );
    push(&mut extra, "model", message.model.json());
    push(&mut extra, "stop_reason", message.stop_reason.json());
    push(&mut extra, "supersedes", context.supersedes.json());
    push(&mut extra, "aborted", context.aborted.json());
    if let Some(usage) = message.usage.json() {
        extra.push("usage", usage);
        extra.push("usage_scope", string("response"));
        let is_final = message.stop_reason.json().is_some();
        extra.push("final", RawJson::from(is_final));
    }
    extra
}

/// Writes a call of a response. If it already exists, it was inferred from its result or from a request for approval.
fn made(agent: &mut Agent, id: &JsonString, call: CallReport, emit: &mut Emit<'_>) {
    let (hash, asked) = (hash_of_call(&call), agent.call_history(id).asked);
    match agent.run.calls.get(&id.to_text()).map(|call| call.path.clone()) {
        None => emit.call(&mut agent.run, id, call),
        Some(_) if asked == Some(hash) => {}
        Some(path) => {
            let result = RawJson::object(|object| {
                object.string("name", &call.name);
                object.json("input", &call.input);
            });
            emit.step_completed(&agent.run, &path, amendment(id, result));
        }
    }
}

fn name_of(block: &Block<'_>) -> String {
    format!("block.{}", block.kind.text().unwrap_or_default())
}

/// A call of a response.
struct ResponseCall {
    id: JsonString,
    call: CallReport,
    /// The index of its block in the response.
    place: usize,
}

/// The parts of a response.
#[derive(Default)]
struct ResponseContent<'a> {
    blocks: Vec<ContentBlock>,
    calls: Vec<ResponseCall>,
    /// Results of tools that run at the API.
    results: Vec<Block<'a>>,
    entries: Vec<EntryType>,
    unknown: Vec<String>,
}

impl<'a> ResponseContent<'a> {
    fn take_all(&mut self, content: Raw<'a>) {
        if let Some(text) = content.string() {
            return self.say(EntryType::AssistantMessage, BlockContent::Text(Some(text)));
        }
        match content.filter(|raw| raw.get() != "null").map(list::<Block<'_>>) {
            Some(Some(blocks)) => blocks.into_iter().for_each(|block| self.take(block)),
            Some(None) => self.unknown.push("content".to_owned()),
            None => {}
        }
    }

    /// Removes calls that the response has made before; a different call with a used id is unknown. Tells whether any
    /// were removed.
    fn leave_out_repeated(&mut self, agent: &mut Agent) -> bool {
        let mut is_kept = vec![true; self.blocks.len()];
        self.calls.retain(|called| {
            let hash = hash_of_call(&called.call);
            let recorded = &mut agent.call_history(&called.id).call;
            let is_new = recorded.is_none();
            let known = *recorded.get_or_insert(hash);
            is_kept[called.place] = is_new || known != hash;
            if !is_new && known != hash {
                self.unknown.push("block.tool_use".to_owned());
            }
            is_new
        });
        let is_repeated = is_kept.contains(&false);
        let (mut of_blocks, mut of_entries) = (is_kept.iter(), is_kept.iter());
        self.blocks.retain(|_| of_blocks.next() == Some(&true));
        self.entries.retain(|_| of_entries.next() == Some(&true));
        is_repeated
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.results.is_empty() && self.unknown.is_empty()
    }

    fn take(&mut self, block: Option<Block<'a>>) {
        let Some(block) = block else { return self.unknown.push("block".to_owned()) };
        if !self.understand(block) {
            self.unknown.push(name_of(&block));
        }
    }

    /// Takes a block; false if it has something unknown.
    fn understand(&mut self, block: Block<'a>) -> bool {
        let kind = block.kind.text().unwrap_or_default();
        match &*kind {
            "text" => {
                let Some(text) = block.text.string() else { return false };
                self.say(EntryType::AssistantMessage, BlockContent::Text(Some(text)));
            }
            "thinking" => {
                let thinking = block.thinking.string().unwrap_or_else(|| "".into());
                let is_redacted = thinking.is_empty();
                self.say(EntryType::Thinking, BlockContent::Thinking(Some(thinking)));
                self.mark_redacted(is_redacted);
            }
            "redacted_thinking" => {
                self.say(EntryType::Thinking, BlockContent::Thinking(Some("".into())));
                self.mark_redacted(true);
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let Some(id) = block.id.string() else { return false };
                self.call(id, &block);
            }
            // It is checked when it is written.
            _ if kind.ends_with("tool_result") => {
                self.results.push(block);
                return true;
            }
            _ => return false,
        }
        !block.is_odd()
    }

    fn say(&mut self, entry_type: EntryType, content: BlockContent) {
        self.blocks.push(ContentBlock::new(Fidelity::AgentEmitted, content));
        self.entries.push(entry_type);
    }

    /// Marks the text of the last block as withheld by the provider.
    fn mark_redacted(&mut self, is_redacted: bool) {
        if let Some(block) = self.blocks.last_mut().filter(|_| is_redacted) {
            block.extra.push("redacted", RawJson::from(true));
        }
    }

    fn call(&mut self, id: JsonString, block: &Block<'_>) {
        let name = block.name.string().unwrap_or_else(|| "".into());
        let input = block.input.map_or_else(RawJson::null, RawJson::from_raw);
        let content = BlockContent::ToolUse {
            tool_name: Some(name.clone()),
            tool_id: Some(id.clone()),
            tool_input: Some(input.clone()),
        };
        self.say(EntryType::ToolUse, content);
        let class = class_of(&name.to_text());
        let keep_input = class == Class::Agent;
        let call = CallReport { keep_input, ..CallReport::new(name, class, input) };
        self.calls.push(ResponseCall { id, call, place: self.blocks.len() - 1 });
    }
}
