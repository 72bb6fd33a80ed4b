//! Collects the deltas of items, for entries of items that are completed without their text (R16).

use std::collections::HashMap;

use steno_model::EntryType;
use steno_model::limits::LINE_BYTES_MAX;

use super::items::{Kind, Tool, kind_of, type_of};
use super::wire::{Item, Params, Payload};
use crate::wire::{Raw, RawField as _};

/// Notices that are a delta of an item.
pub(super) const DELTAS: [&str; 6] = [
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
];

/// The suffix of event names that are a delta of an item, in rollouts and in the first protocol.
pub(super) const DELTA_EVENT: &str = "_delta";

/// Returns true if an event is a delta of an item.
pub(super) fn is_delta(event: &Payload<'_>) -> bool {
    event.kind.text().is_some_and(|kind| kind.ends_with(DELTA_EVENT))
}

/// The deltas of an item so far.
#[derive(Default)]
struct Pieces {
    /// Its position among the items.
    order: u64,
    /// The entry type of the item; none for the output of a call.
    entry_type: Option<EntryType>,
    text: String,
    summary: String,
}

impl Pieces {
    fn text(self) -> String {
        if self.text.is_empty() { self.summary } else { self.text }
    }
}

/// The items of a connection that are not complete.
#[derive(Default)]
pub(super) struct Deltas {
    /// By thread and item.
    items: HashMap<String, HashMap<String, Pieces>>,
    /// How many bytes are kept.
    bytes: usize,
    /// How many items there were.
    count: u64,
}

impl Deltas {
    /// Takes a delta of an item.
    pub(super) fn take(&mut self, method: &str, params: &Params<'_>) {
        let (Some(thread), Some(item)) = (params.thread_id.text(), params.item_id.text()) else { return };
        let is_part = method == "item/reasoning/summaryPartAdded";
        let Some(piece) = params.delta.text().or_else(|| is_part.then(|| "\n\n".into())) else { return };
        if self.bytes + piece.len() > LINE_BYTES_MAX {
            return;
        }
        let items = self.items.entry(thread.into_owned()).or_default();
        let pieces = items.entry(item.into_owned()).or_insert_with(|| {
            self.count += 1;
            Pieces { order: self.count, entry_type: entry_type_of(method), ..Pieces::default() }
        });
        let text =
            if method.starts_with("item/reasoning/summary") { &mut pieces.summary } else { &mut pieces.text };
        if !(is_part && text.is_empty()) {
            text.push_str(&piece);
            self.bytes += piece.len();
        }
    }

    /// Drops a completed item; returns the text of its deltas if the item has none.
    pub(super) fn complete(&mut self, thread: &str, item: &Item<'_>) -> Option<String> {
        let pieces = self.items.get_mut(thread)?.remove(&*item.id.text()?)?;
        self.bytes -= pieces.text.len() + pieces.summary.len();
        let text = pieces.text();
        (!text.is_empty() && !has_text(item)).then_some(text)
    }

    /// Drops the items of an ended turn; returns the text of incomplete ones, in order.
    pub(super) fn end_turn(&mut self, thread: &str) -> Vec<(EntryType, String)> {
        let items = self.items.remove(thread).unwrap_or_default();
        let mut left: Vec<Pieces> = items.into_values().collect();
        left.sort_by_key(|pieces| pieces.order);
        self.bytes -= left.iter().map(|pieces| pieces.text.len() + pieces.summary.len()).sum::<usize>();
        left.into_iter().filter_map(|pieces| Some((pieces.entry_type?, pieces.text()))).collect()
    }
}

/// Returns the entry type of an item by the method of its deltas.
fn entry_type_of(method: &str) -> Option<EntryType> {
    match method {
        "item/agentMessage/delta" => Some(EntryType::AssistantMessage),
        _ if method.starts_with("item/reasoning/") => Some(EntryType::Thinking),
        _ => None,
    }
}

/// Returns true if an item has the text of its deltas.
fn has_text(item: &Item<'_>) -> bool {
    let says = |field: Raw<'_>| field.is_some_and(|value| !matches!(value.get(), "null" | "\"\"" | "[]"));
    match kind_of(&type_of(item)) {
        Kind::Reasoning => says(item.text) || says(item.content) || says(item.summary),
        Kind::Tool(Tool::Command) => says(item.output()),
        Kind::Tool(_)
        | Kind::UserMessage
        | Kind::AgentMessage
        | Kind::Compaction
        | Kind::SubagentActivity
        | Kind::Fact(_)
        | Kind::Warning
        | Kind::Unknown => says(item.text),
    }
}
