//! Removes values that nest too deep for a line, and keeps the rest of an event.

use steno_model::json::{Extra, RawJson, depth};
use steno_model::limits::DEPTH_MAX;
use steno_model::{BlockContent, Payload};

use super::string;

/// How deep a value may nest: a payload puts it a few levels further down.
const VALUE_DEPTH_MAX: usize = DEPTH_MAX - 8;

/// Replaces each value that nests too deep by null, and notes where; the bytes are in the evidence.
pub(super) fn shallow(payload: &Payload) -> Payload {
    let mut payload = payload.clone();
    let mut left_out = Vec::new();
    match &mut payload {
        Payload::Message(message) => {
            for block in &mut message.blocks {
                match &mut block.content {
                    BlockContent::ToolUse { tool_input: Some(value), .. } => {
                        cut(value, "tool_input", &mut left_out);
                    }
                    BlockContent::ToolResult { tool_content: Some(value), .. } => {
                        cut(value, "tool_content", &mut left_out);
                    }
                    BlockContent::ToolUse { tool_input: None, .. }
                    | BlockContent::ToolResult { tool_content: None, .. }
                    | BlockContent::Text(_)
                    | BlockContent::Thinking(_)
                    | BlockContent::Command(_)
                    | BlockContent::Stream(_)
                    | BlockContent::Unknown(_) => {}
                }
            }
            cut_extra(&mut message.extra, &mut left_out);
        }
        Payload::Tool(tool) => {
            tool.input.iter_mut().for_each(|value| cut(value, "input", &mut left_out));
            tool.output.iter_mut().for_each(|value| cut(value, "output", &mut left_out));
            cut_extra(&mut tool.extra, &mut left_out);
        }
        Payload::Step(step) => {
            step.result.iter_mut().for_each(|value| cut(value, "result", &mut left_out));
            cut_extra(&mut step.extra, &mut left_out);
        }
        Payload::Null | Payload::Blocks(_) | Payload::Other(_) => {}
    }
    let names = RawJson::array(left_out.iter().map(|name| string(name)));
    match &mut payload {
        Payload::Message(message) => message.extra.push("too_deep", names),
        Payload::Tool(tool) => tool.extra.push("too_deep", names),
        Payload::Step(step) => step.extra.push("too_deep", names),
        Payload::Null | Payload::Blocks(_) | Payload::Other(_) => {}
    }
    payload
}

fn cut(value: &mut RawJson, name: &str, left_out: &mut Vec<String>) {
    if depth(value.as_str()) > VALUE_DEPTH_MAX {
        *value = RawJson::null();
        left_out.push(name.to_owned());
    }
}

fn cut_extra(extra: &mut Extra, left_out: &mut Vec<String>) {
    let mut kept = Extra::default();
    for (name, mut value) in std::mem::take(extra).into_pairs() {
        cut(&mut value, &name.to_text(), left_out);
        kept.push(name, value);
    }
    *extra = kept;
}
