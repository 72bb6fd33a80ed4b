//! Blocks of content: text, and a mark for each picture, sound or file.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{ContentBlock, Fidelity};

use super::wire::Block;
use crate::emit::string;
use crate::wire::{Raw, RawField as _, object, objects};

/// The kinds of blocks that are not text.
const MARKED: [&str; 4] = ["audio", "image", "resource", "resource_link"];

/// The blocks of a prompt.
#[derive(Default)]
pub(super) struct Prompt {
    pub(super) blocks: Vec<ContentBlock>,
    /// The words among them.
    pub(super) text: String,
    /// Whether something in it is of an unknown kind.
    pub(super) is_odd: bool,
}

/// Reads a prompt: a list of blocks, or a plain text.
pub(super) fn prompt(content: Raw<'_>) -> Prompt {
    let mut prompt = Prompt::default();
    if let Some(text) = content.string() {
        prompt.text = text.to_text().into_owned();
        prompt.blocks.push(ContentBlock::text(Fidelity::AgentEmitted, text));
        return prompt;
    }
    let Some(parts) = content.and_then(objects::<Block<'_>>) else {
        return Prompt { is_odd: true, ..prompt };
    };
    for (raw, block) in parts {
        let block = block.unwrap_or_default();
        if let Some(text) = text_of(&block) {
            prompt.text.push_str(&text.to_text());
        }
        prompt.is_odd |= is_odd(&block);
        prompt.blocks.push(block_of(raw, &block));
    }
    prompt
}

/// Returns the text of a block.
pub(super) fn text_of(block: &Block<'_>) -> Option<JsonString> {
    block.text.string().filter(|_| block.kind.is("text"))
}

/// Tells whether a block is of an unknown kind.
pub(super) fn is_odd(block: &Block<'_>) -> bool {
    text_of(block).is_none() && !MARKED.iter().any(|kind| block.kind.is(kind))
}

/// Makes a block of the transcript: the text, or a mark with its kind and its address or size.
pub(super) fn block_of(raw: &RawValue, block: &Block<'_>) -> ContentBlock {
    if let Some(text) = text_of(block) {
        return ContentBlock::text(Fidelity::AgentEmitted, text);
    }
    let mut mark = ContentBlock::text(Fidelity::AgentEmitted, "");
    mark.extra.push("label", string(&block.kind.text().unwrap_or("part".into())));
    match block.uri.json() {
        Some(uri) => mark.extra.push("path", uri),
        None => mark.extra.push("size_bytes", RawJson::from(raw.get().len() as u64)),
    }
    mark
}

/// Returns the content of a call as MCP has it: blocks without their wrapping; diffs and terminals stay as they are.
pub(super) fn of_call(content: &RawValue) -> Option<Vec<RawJson>> {
    let parts = objects::<Block<'_>>(content)?;
    let inner = |(raw, part): (&RawValue, Option<Block<'_>>)| {
        let wrapped = part.filter(|part| part.kind.is("content")).and_then(|part| part.content);
        RawJson::from_raw(wrapped.unwrap_or(raw))
    };
    Some(parts.into_iter().map(inner).collect())
}

/// Returns the texts in the content of a call.
pub(super) fn texts(content: &[RawJson]) -> Option<JsonString> {
    let text = |part: &RawJson| {
        let raw: &RawValue = serde_json::from_str(part.as_str()).ok()?;
        Some(text_of(&object::<Block<'_>>(raw)?)?.to_text().into_owned())
    };
    let texts: Vec<String> = content.iter().filter_map(text).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n").as_str().into())
}
