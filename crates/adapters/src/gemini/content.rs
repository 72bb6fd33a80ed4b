//! The content of a message: a text, one part, or a list of parts.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{ContentBlock, Fidelity};

use super::wire::{Blob, FunctionCall, FunctionResponse, Part};
use crate::emit::string;
use crate::shapes::elements;
use crate::wire::{Raw, RawField as _, WireObject as _, list, object};

/// A part of a message's content.
pub(super) enum ContentPart<'a> {
    /// A text; the value is a string.
    Text(&'a RawValue),
    /// A thought; the value is a string.
    Thought(&'a RawValue),
    Call(FunctionCall<'a>),
    Response(FunctionResponse<'a>),
    /// A picture or another file.
    File(Blob<'a>),
    /// Something of an unknown kind.
    Unknown,
}

/// Reads the parts of a message's content.
pub(super) fn parts_of(content: Raw<'_>) -> Vec<ContentPart<'_>> {
    let Some(raw) = content else { return Vec::new() };
    match raw.get().as_bytes() {
        b"null" | b"\"\"" => Vec::new(),
        [b'[', ..] => match list::<Part<'_>>(raw) {
            // The usual list has only objects, and is read in one pass.
            Some(parts) if parts.iter().all(Option::is_some) => parts.iter().flatten().map(kind_of).collect(),
            _ => elements(content).unwrap_or_default().into_iter().map(part_of).collect(),
        },
        _ => vec![part_of(raw)],
    }
}

fn part_of(raw: &RawValue) -> ContentPart<'_> {
    if raw.get().starts_with('"') {
        return ContentPart::Text(raw);
    }
    object(raw).map_or(ContentPart::Unknown, |part| kind_of(&part))
}

/// Tells what a part is by its fields.
fn kind_of<'a>(part: &Part<'a>) -> ContentPart<'a> {
    match *part {
        _ if part.is_odd() => ContentPart::Unknown,
        Part { function_call: Some(call), .. } => ContentPart::Call(call),
        Part { function_response: Some(response), .. } => ContentPart::Response(response),
        Part { inline_data: Some(blob), .. } | Part { file_data: Some(blob), .. } => ContentPart::File(blob),
        Part { text: Some(text), thought, .. } if thought.is_true() => ContentPart::Thought(text),
        Part { text: Some(text), .. } => ContentPart::Text(text),
        _ => ContentPart::Unknown,
    }
}

/// Returns the text of all text parts together.
pub(super) fn text_of<'a>(parts: &[ContentPart<'a>]) -> Cow<'a, str> {
    let text = |part: &ContentPart<'a>| match part {
        ContentPart::Text(raw) => Some(*raw).text(),
        ContentPart::Thought(_)
        | ContentPart::Call(_)
        | ContentPart::Response(_)
        | ContentPart::File(_)
        | ContentPart::Unknown => None,
    };
    let mut texts = parts.iter().filter_map(text);
    // The usual message has one text, which need not be copied.
    let mut all = texts.next().unwrap_or_default();
    texts.for_each(|text| all.to_mut().push_str(&text));
    all
}

/// Makes the block of a text.
pub(super) fn text_block(raw: &RawValue) -> ContentBlock {
    ContentBlock::text(Fidelity::AgentEmitted, JsonString::from_raw(raw).unwrap_or_else(|| "".into()))
}

/// Makes a mark for a picture or another file, with its type and size; the evidence has its bytes.
pub(super) fn file_mark(blob: &Blob<'_>) -> ContentBlock {
    let mut mark = ContentBlock::text(Fidelity::AgentEmitted, "");
    let kind = blob.mime_type.text();
    let is_image = kind.as_deref().is_none_or(|kind| kind.starts_with("image/"));
    mark.extra.push("label", string(if is_image { "image" } else { "file" }));
    if let Some(kind) = blob.mime_type.json() {
        mark.extra.push("media_type", kind);
    }
    if let Some(uri) = blob.file_uri.json() {
        mark.extra.push("file_uri", uri);
    }
    if let Some(data) = blob.data {
        mark.extra.push("size_bytes", RawJson::from(data.get().len() as u64));
    }
    mark
}
