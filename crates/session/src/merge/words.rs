//! The content of messages and calls, as text and as hashes, by which facts without ids are compared.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use steno_model::{EventType, ExchangeEvent};

use crate::fields::PayloadFields;

/// Returns the content of a message: its texts, thoughts, and call ids.
pub(super) fn words(fields: &PayloadFields<'_>) -> String {
    words_of(fields, |_| true)
}

/// Returns the content of a message's blocks of some types.
pub(super) fn words_of(fields: &PayloadFields<'_>, is_wanted: impl Fn(&str) -> bool) -> String {
    words_of_blocks(&fields.items("blocks"), is_wanted)
}

pub(super) fn words_of_blocks(
    blocks: &[&serde_json::value::RawValue],
    is_wanted: impl Fn(&str) -> bool,
) -> String {
    let mut words = String::new();
    for block in blocks {
        let block = PayloadFields::parse(block.get());
        if !is_wanted(&block.text("type").unwrap_or_default()) {
            continue;
        }
        for name in ["type", "text", "thinking", "tool_id", "command"] {
            words.push_str(&block.text(name).unwrap_or_default());
            words.push('\0');
        }
    }
    words
}

/// Returns the words and the text of a prompt's first block, if more follows: one channel may have the content of the
/// files that the prompt names, and another only what the user typed.
pub(super) fn typed_words(fields: &PayloadFields<'_>) -> Option<(String, String)> {
    let blocks = fields.items("blocks");
    let first = blocks.first().filter(|_| blocks.len() > 1)?;
    let text = PayloadFields::parse(first.get()).text("text").filter(|text| !text.is_empty())?.into_owned();
    Some((words_of_blocks(&[*first], |kind| kind == "text"), text))
}

/// Returns the hash of a message's speaker and texts; `None` if it has no text.
pub(super) fn texts_of(event: &ExchangeEvent) -> Option<u64> {
    let speaker = match event.event_type.known()? {
        EventType::MessageUser => "user",
        EventType::MessageAssistant => "assistant",
        EventType::RunStarted
        | EventType::RunCompleted
        | EventType::StepStarted
        | EventType::StepCompleted
        | EventType::CallWorkflowStarted
        | EventType::CallWorkflowCompleted
        | EventType::ToolCall
        | EventType::ToolResult => return None,
    };
    let fields = PayloadFields::of(event);
    let mut texts = Vec::new();
    for block in fields.items("blocks") {
        let block = PayloadFields::parse(block.get());
        if block.text("type").is_some_and(|kind| kind == "text") {
            texts.push(block.text("text").unwrap_or_default().into_owned());
        }
    }
    let has_text = texts.iter().any(|text| !text.is_empty());
    has_text.then(|| hash_of_texts(speaker, &texts))
}

pub(super) fn hash_of_texts(speaker: &str, texts: &[String]) -> u64 {
    // With their lengths: a text may contain any character.
    let mut all = format!("{speaker}\0");
    for text in texts {
        all.push_str(&format!("{} {text}", text.len()));
    }
    hash(&all)
}

/// Returns the content hash of a message or a call.
pub(super) fn look(event: &ExchangeEvent) -> Option<u64> {
    let fields = PayloadFields::of(event);
    match event.event_type.known()? {
        EventType::MessageUser | EventType::MessageAssistant if fields.items("blocks").is_empty() => None,
        EventType::MessageUser | EventType::MessageAssistant => {
            let blocks = fields.items("blocks");
            let is_call = |block: &&serde_json::value::RawValue| {
                PayloadFields::parse(block.get()).text("type").is_some_and(|kind| kind == "tool_use")
            };
            // The call is compared separately.
            (!blocks.iter().any(is_call)).then(|| hash(&words(&fields)))
        }
        EventType::ToolCall => {
            let class = fields.text("class").unwrap_or_default();
            let input = fields.object("input");
            let command = ["command", "cmd"].into_iter().find_map(|name| input.json_text(name));
            Some(hash(&format!("{class}\0{}", command.or(fields.json_text("input")).unwrap_or_default())))
        }
        EventType::RunStarted
        | EventType::RunCompleted
        | EventType::StepStarted
        | EventType::StepCompleted
        | EventType::CallWorkflowStarted
        | EventType::CallWorkflowCompleted
        | EventType::ToolResult => None,
    }
}

/// Returns a hash of what a run adds to its session.
///
/// `run.started` is left out: it may name other runs, and ids of runs depend on where their files are.
pub(super) fn content_hash(events: &[ExchangeEvent]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for event in events.iter().filter(|event| event.event_type.known() != Some(EventType::RunStarted)) {
        event.timestamp.hash(&mut hasher);
        event.payload.as_str().hash(&mut hasher);
    }
    hasher.finish()
}

pub(super) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
