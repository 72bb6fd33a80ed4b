//! Checks whether the fields of items, events and usage have the kinds that Codex writes.

use serde_json::value::RawValue;
use steno_model::json::Fields;

use super::items::{Tool, text_of_part};
use super::wire::{Invocation, Item, Payload, TokenInfo};
use crate::shapes::{are_names, elements, is_absent, is_number, is_object, is_text};
use crate::wire::{Raw, RawField as _, object};

/// Returns true if a field is absent, a text, or a list of parts with texts.
pub(super) fn are_texts(raw: Raw<'_>) -> bool {
    is_text(raw)
        || elements(raw).is_some_and(|parts| parts.into_iter().all(|part| text_of_part(part).is_some()))
}

/// Returns true if a field is absent or has the states of subagents by thread.
pub(super) fn are_states(raw: Raw<'_>) -> bool {
    let is_state = |state: &RawValue| is_text(Some(state)) || is_object(Some(state));
    let fields = raw.and_then(|raw| Fields::parse(raw.get()).ok());
    is_absent(raw) || fields.is_some_and(|fields| fields.iter().all(|(_, state)| is_state(state)))
}

/// Returns true if a tool's item has a value of an unexpected kind, which would be skipped.
pub(super) fn is_odd_item(item: &Item<'_>, tool: Tool) -> bool {
    let of_tool = match tool {
        Tool::Command => is_number(item.exit()),
        Tool::FileChange => is_text(item.stderr),
        Tool::Mcp => is_text(item.server) && is_text(item.tool),
        Tool::Dynamic => is_text(item.tool),
        Tool::Collab => is_text(item.tool) && are_names(item.receivers()) && are_states(item.states()),
        Tool::Output => is_text(item.name),
        Tool::WebSearch | Tool::ImageView | Tool::ImageGeneration | Tool::Sleep => true,
    };
    !(of_tool && is_text(item.status))
}

/// Returns true if an event that ends a call has a value of an unexpected kind, which would be skipped.
pub(super) fn is_odd_end(kind: &str, event: &Payload<'_>) -> bool {
    let is_readable = match kind {
        "exec_command_end" => {
            let is_told = event.aggregated_output.json().is_some();
            is_number(event.exit_code) && (is_told || (is_text(event.stdout) && is_text(event.stderr)))
        }
        "patch_apply_end" => is_text(event.stderr),
        "mcp_tool_call_begin" | "mcp_tool_call_end" => {
            let invocation: Option<Invocation<'_>> = event.invocation.and_then(object);
            let is_known = invocation.is_some_and(|read| {
                is_text(read.server) && is_text(read.tool) && (read.server.is_some() || read.tool.is_some())
            });
            is_absent(event.invocation) || is_known
        }
        "dynamic_tool_call_response" => is_text(event.tool),
        _ => true,
    };
    !(is_readable && is_text(event.status))
}

/// Returns true if a report of usage has no readable total.
pub(super) fn is_odd_usage(info: Raw<'_>) -> bool {
    let read: Option<TokenInfo<'_>> = info.and_then(object);
    !is_absent(info) && !has_counts(read.and_then(|info| info.total))
}

/// Returns true if a total has counts.
pub(super) fn has_counts(total: Raw<'_>) -> bool {
    super::usage::only_counts(total).is_some()
}
