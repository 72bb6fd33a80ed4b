//! Items: what was said, thought, called and changed in a turn.

use sha2::{Digest as _, Sha256};
use steno_model::json::{JsonString, RawJson};
use steno_model::records::{ItemKind, ItemRecord, RecordStatus};
use steno_model::{Timestamp, Word};
use steno_session::{
    At, Block, Call, Effect, Fact, ItemKind as Kind, Message, Outcome, PayloadFields, RunNumber, Session,
    State, TurnId,
};

use crate::receipt::hex;

/// How many characters a summary has at most.
const SUMMARY_CHARS_MAX: usize = 280;

/// Returns the items of all turns, in the order of the session.
pub(super) fn all(session: &Session) -> Vec<(TurnId, ItemRecord)> {
    let maker = Maker { session };
    let mut items = Vec::new();
    for item in &session.items {
        match item.kind {
            Kind::Prompt(message) => items.extend(maker.prompt(&session.messages[message.0])),
            Kind::Response(response) => {
                for message in &session.responses[response.0].messages {
                    maker.words(&session.messages[message.0], &mut items);
                }
            }
            Kind::Call(call) => items.extend(maker.call(&session.calls[call.0])),
            Kind::Fact(fact) => items.extend(maker.fact(&session.facts[fact.0])),
            // What the model was told to be is nobody's words.
            Kind::SystemPrompt(_) | Kind::Approval(_) | Kind::Child(_) => {}
        }
    }
    items
}

struct Maker<'a> {
    session: &'a Session,
}

impl Maker<'_> {
    fn prompt(&self, message: &Message) -> Option<(TurnId, ItemRecord)> {
        let texts = message.blocks.iter().filter_map(|block| text_of(block, "text"));
        let said = texts.collect::<Vec<_>>().join(" ");
        let summary = Some(shortened(&said));
        let new = self.new_item(message.at, 0, ItemKind::UserMessage, &message.time);
        Some((message.turn?, ItemRecord { summary, ..new }))
    }

    fn words(&self, message: &Message, items: &mut Vec<(TurnId, ItemRecord)>) {
        for (number, block) in message.blocks.iter().enumerate() {
            let found = match block {
                Block::Recorded(_) => self.block(message, number, block),
                Block::Call(call) => self.call(&self.session.calls[call.0]),
                Block::Elsewhere => None,
            };
            items.extend(found);
        }
    }

    fn block(&self, message: &Message, number: usize, block: &Block) -> Option<(TurnId, ItemRecord)> {
        let Block::Recorded(recorded) = block else { return None };
        let turn = message.turn?;
        let new = |kind| self.new_item(message.at, number, kind, &message.time);
        let item = match &*PayloadFields::parse(recorded.as_str()).text("type").unwrap_or_default() {
            "text" => {
                let said = text_of(block, "text").unwrap_or_default();
                ItemRecord { summary: Some(shortened(&said)), ..new(ItemKind::AgentMessage) }
            }
            "thinking" => {
                // By its hash alone: nobody who reads records gets at its words.
                let thought = text_of(block, "thinking").filter(|thought| !thought.is_empty());
                let metadata = thought.map(|thought| {
                    let hash = hex(&Sha256::digest(thought.as_bytes()));
                    RawJson::parse(&format!(r#"{{"sha256":"{hash}"}}"#)).expect("a hash needs no escape")
                });
                ItemRecord { metadata, ..new(ItemKind::AgentReasoning) }
            }
            _ => return None,
        };
        Some((turn, item))
    }

    fn call(&self, call: &Call) -> Option<(TurnId, ItemRecord)> {
        let kind = match call.effect() {
            Effect::Command => ItemKind::CommandExecution,
            Effect::Change => ItemKind::FileChange,
            // It was asked for, and nobody can say that it was carried out.
            Effect::None | Effect::Unknown => ItemKind::ToolCall,
        };
        let outcome = call.outcome();
        let id = call.id.clone().unwrap_or_else(|| JsonString::from_text(""));
        let metadata = RawJson::object(|out| {
            out.string("tool_call_id", &id);
            // Its result came without a call, which was put in its place.
            if !call.is_recorded {
                out.json("call_recorded", &false.into());
            }
            if call.is_answered && outcome == Outcome::Interrupted {
                out.json("result_recorded", &true.into());
            }
        });
        let name = call.name.as_ref().map(|name| name.to_text().into_owned()).unwrap_or_default();
        let status = match outcome {
            _ if !call.is_answered => RecordStatus::InProgress,
            Outcome::Failed | Outcome::Denied => RecordStatus::Failed,
            Outcome::Interrupted => RecordStatus::Interrupted,
            Outcome::Ok | Outcome::Unknown | Outcome::Open => RecordStatus::Completed,
        };
        let ended = call.result.as_ref().and_then(|result| result.time.as_ref()).filter(|_| call.is_answered);
        let new = self.new_item(call.called.unwrap_or(call.at), 0, kind, &call.time);
        let item = ItemRecord {
            status: Word::Known(status),
            summary: Some(shortened(&name)),
            metadata: Some(metadata),
            ended_at: ended.map(time_of),
            ..new
        };
        Some((call.turn?, item))
    }

    fn fact(&self, fact: &Fact) -> Option<(TurnId, ItemRecord)> {
        let is = |kind: &str| fact.kind.as_ref().is_some_and(|found| found.is(kind));
        if fact.state == State::Open {
            return None;
        }
        let new = |kind| self.new_item(fact.at, 0, kind, &fact.time);
        let item = match () {
            () if is("compaction") => new(ItemKind::ContextCompaction),
            () if is("error") => {
                let summary = fact.error.as_ref().map(|error| shortened(&error.to_text()));
                ItemRecord { summary, status: Word::Known(RecordStatus::Failed), ..new(ItemKind::Error) }
            }
            () => return None,
        };
        Some((fact.turn?, item))
    }

    fn new_item(&self, at: At, number: usize, kind: ItemKind, time: &Timestamp) -> ItemRecord {
        let seq = at.seq;
        let of_run = match at.run {
            RunNumber::MAIN => String::new(),
            other => {
                let channel = self.session.runs.get(other.0).and_then(|run| run.channel.as_deref());
                format!("{}-", channel.unwrap_or("other"))
            }
        };
        let time = time_of(time);
        ItemRecord {
            id: if number == 0 {
                format!("item-{of_run}{seq}")
            } else {
                format!("item-{of_run}{seq}-{number}")
            },
            turn_id: String::new(),
            kind: Word::Known(kind),
            status: Word::Known(RecordStatus::Completed),
            summary: None,
            detail: None,
            metadata: None,
            artifact_refs: Vec::new(),
            started_at: Some(time.clone()),
            ended_at: Some(time),
        }
    }
}

fn time_of(time: &Timestamp) -> String {
    time.as_json().to_text().into_owned()
}

fn text_of(block: &Block, name: &str) -> Option<String> {
    let Block::Recorded(block) = block else { return None };
    PayloadFields::parse(block.as_str()).text(name).map(std::borrow::Cow::into_owned)
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
