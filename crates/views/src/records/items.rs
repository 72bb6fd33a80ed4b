//! Items: what was said, thought, called and changed in a turn.

use std::collections::HashMap;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use steno_model::json::{JsonString, RawJson, text_of};
use steno_model::records::{ItemKind, ItemRecord, RecordStatus};
use steno_model::{EventType, ExchangeEvent, Word};

use super::turns::Turns;
use crate::fields::PayloadFields;
use crate::receipt::hex;

/// How many characters a summary has at most.
const SUMMARY_CHARS_MAX: usize = 280;

/// All items so far.
#[derive(Default)]
pub(super) struct Items {
    all: Vec<(ItemRecord, usize)>,
    /// Calls that wait for their results, by id, the last one last.
    calls: HashMap<String, Vec<Waiting>>,
    /// The last event that an item came of, and the item.
    last: Option<(u64, usize)>,
    /// Lines that turns are made of beside their own events: results of their calls that came in another turn, and the calls
    /// of other turns that got their results here.
    others: Vec<(usize, u64)>,
}

/// A call that waits for its result.
#[derive(Clone, Copy)]
struct Waiting {
    /// Its event.
    seq: u64,
    /// Its item; `None` for a call outside of any turn, which is nobody's.
    item: Option<usize>,
}

/// What an item is made with.
struct New<'a> {
    /// Which one of its event it is.
    number: usize,
    kind: ItemKind,
    summary: Option<&'a str>,
    metadata: Option<RawJson>,
}

impl New<'_> {
    fn first(kind: ItemKind) -> Self {
        Self { number: 0, kind, summary: None, metadata: None }
    }
}

impl Items {
    /// Takes what an event adds. A result belongs to the turn of its call, whenever it comes.
    pub(super) fn push(
        &mut self,
        turn: Option<usize>,
        event_type: EventType,
        event: &ExchangeEvent,
        fields: &PayloadFields<'_>,
    ) {
        if event_type == EventType::ToolResult {
            return self.answer(turn, event, fields);
        }
        let Some(turn) = turn else {
            if event_type == EventType::ToolCall {
                self.wait(fields, Waiting { seq: event.seq.get(), item: None });
            }
            return;
        };
        match event_type {
            EventType::MessageUser => {
                let texts = fields.items("blocks").into_iter().filter_map(|block| block_text(block, "text"));
                let said = texts.collect::<Vec<_>>().join(" ");
                self.add(turn, event, New { summary: Some(&said), ..New::first(ItemKind::UserMessage) });
            }
            EventType::MessageAssistant => self.say(turn, event, fields),
            EventType::ToolCall => self.call(turn, event, fields),
            EventType::StepCompleted => match &*fields.text("kind").unwrap_or_default() {
                "compaction" => {
                    self.add(turn, event, New::first(ItemKind::ContextCompaction));
                }
                "error" => {
                    let error = fields.error().map(|error| error.to_text().into_owned());
                    let new = New { summary: error.as_deref(), ..New::first(ItemKind::Error) };
                    let item = self.add(turn, event, new);
                    self.all[item].0.status = Word::Known(RecordStatus::Failed);
                }
                _ => {}
            },
            EventType::RunStarted
            | EventType::RunCompleted
            | EventType::StepStarted
            | EventType::CallWorkflowStarted
            | EventType::CallWorkflowCompleted
            | EventType::ToolResult => {}
        }
    }

    /// Returns the item that an event made or ended.
    pub(super) fn last_of(&self, seq: u64) -> Option<String> {
        self.last.filter(|(of, _)| *of == seq).map(|(_, item)| self.all[item].0.id.clone())
    }

    fn say(&mut self, turn: usize, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        for (number, block) in fields.items("blocks").into_iter().enumerate() {
            let kind = PayloadFields::parse(block.get()).text("type").unwrap_or_default().into_owned();
            match &*kind {
                "text" => {
                    let said = block_text(block, "text").unwrap_or_default();
                    let kind = ItemKind::AgentMessage;
                    self.add(turn, event, New { number, kind, summary: Some(&said), metadata: None });
                }
                "thinking" => {
                    // By its hash alone: nobody who reads records gets at its words.
                    let thought = block_text(block, "thinking").filter(|thought| !thought.is_empty());
                    let metadata = thought.map(|thought| {
                        let hash = hex(&Sha256::digest(thought.as_bytes()));
                        RawJson::parse(&format!(r#"{{"sha256":"{hash}"}}"#)).expect("a hash needs no escape")
                    });
                    let kind = ItemKind::AgentReasoning;
                    self.add(turn, event, New { number, kind, summary: None, metadata });
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, turn: usize, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let kind = match &*fields.text("class").unwrap_or_default() {
            "command" => ItemKind::CommandExecution,
            "file_change" => ItemKind::FileChange,
            _ => ItemKind::ToolCall,
        };
        let id = fields.text("call_id").unwrap_or_default().into_owned();
        let name = fields.text("name").unwrap_or_default();
        let metadata = RawJson::object(|out| {
            out.string("tool_call_id", &JsonString::from_text(&id));
            // Its result came without a call, which was put in its place.
            if fields.json_text("input_available") == Some("false") {
                out.json("call_recorded", &false.into());
            }
        });
        let item =
            self.add(turn, event, New { number: 0, kind, summary: Some(&name), metadata: Some(metadata) });
        let (record, _) = &mut self.all[item];
        (record.status, record.ended_at) = (Word::Known(RecordStatus::InProgress), None);
        self.wait(fields, Waiting { seq: event.seq.get(), item: Some(item) });
    }

    fn wait(&mut self, fields: &PayloadFields<'_>, waiting: Waiting) {
        let id = fields.text("call_id").unwrap_or_default().into_owned();
        self.calls.entry(id).or_default().push(waiting);
    }

    fn answer(&mut self, turn: Option<usize>, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let id = fields.text("call_id").unwrap_or_default().into_owned();
        let call = self.calls.get_mut(&id).and_then(Vec::pop);
        let turn_of = |item: Option<usize>| item.map(|item| self.all[item].1);
        if let (Some(call), Some(turn)) = (call, turn)
            && turn_of(call.item) != Some(turn)
        {
            self.others.push((turn, call.seq));
        }
        let item = match (call, turn) {
            (Some(Waiting { item: Some(item), .. }), _) => item,
            (Some(Waiting { item: None, .. }), _) | (None, None) => return,
            (None, Some(turn)) => self.answer_alone(turn, event, fields),
        };
        if turn != Some(self.all[item].1) {
            self.others.push((self.all[item].1, event.seq.get()));
        }
        let (record, _) = &mut self.all[item];
        let outcome = fields.text("outcome").unwrap_or_default();
        record.status = Word::Known(match &*outcome {
            "failed" | "denied" => RecordStatus::Failed,
            "interrupted" => RecordStatus::Interrupted,
            _ => RecordStatus::Completed,
        });
        if outcome == "denied" {
            // It was asked for, and not carried out.
            record.kind = Word::Known(ItemKind::ToolCall);
        }
        record.ended_at = Some(event.timestamp.as_json().to_text().into_owned());
        self.last = Some((event.seq.get(), item));
    }

    /// Makes an item of a result that has no call.
    fn answer_alone(&mut self, turn: usize, event: &ExchangeEvent, fields: &PayloadFields<'_>) -> usize {
        let id = fields.text("call_id").unwrap_or_default();
        let metadata = RawJson::object(|out| {
            out.string("tool_call_id", &JsonString::from_text(&id));
            out.json("call_recorded", &false.into());
        });
        let name = fields.text("name").unwrap_or_default();
        let new = New { number: 0, kind: ItemKind::ToolCall, summary: Some(&name), metadata: Some(metadata) };
        self.add(turn, event, new)
    }

    /// Returns the lines that turns are made of beside their own events.
    pub(super) fn others(&self) -> &[(usize, u64)] {
        &self.others
    }

    fn add(&mut self, turn: usize, event: &ExchangeEvent, new: New<'_>) -> usize {
        let New { number, kind, summary, metadata } = new;
        let time = event.timestamp.as_json().to_text().into_owned();
        let seq = event.seq.get();
        let record = ItemRecord {
            id: if number == 0 { format!("item-{seq}") } else { format!("item-{seq}-{number}") },
            turn_id: String::new(),
            kind: Word::Known(kind),
            status: Word::Known(RecordStatus::Completed),
            summary: summary.map(shortened),
            detail: None,
            metadata,
            artifact_refs: Vec::new(),
            started_at: Some(time.clone()),
            ended_at: Some(time),
        };
        self.last = Some((seq, self.all.len()));
        self.all.push((record, turn));
        self.all.len() - 1
    }

    pub(super) fn finish(self, turns: &Turns) -> Vec<ItemRecord> {
        let named =
            |(item, turn): (ItemRecord, usize)| ItemRecord { turn_id: turns.id(turn).to_owned(), ..item };
        self.all.into_iter().map(named).collect()
    }
}

fn block_text(block: &RawValue, name: &str) -> Option<String> {
    let fields = PayloadFields::parse(block.get());
    fields
        .json(name)
        .and_then(|raw| raw.read::<&RawValue>().ok().and_then(text_of).map(std::borrow::Cow::into_owned))
}

/// Cuts text to a summary, on one line.
fn shortened(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        // A word of megabytes need not be copied.
        line.extend(word.chars().take(SUMMARY_CHARS_MAX + 1));
        if let Some((at, _)) = line.char_indices().nth(SUMMARY_CHARS_MAX) {
            line.truncate(at);
            line.push('…');
            break;
        }
    }
    line
}
