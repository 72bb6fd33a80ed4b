//! The items of a turn: messages, thoughts, calls, compactions and errors.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use steno_model::json::{JsonString, RawJson};
use steno_model::records::{ItemKind, ItemRecord, RecordStatus};
use steno_model::{Timestamp, Word};
use steno_session::{
    Block, Call, Effect, EventPosition, Fact, Message, Outcome, PayloadFields, RunNumber, Session, Speaker,
    State, TurnId,
};

/// How many characters a summary has at most.
const SUMMARY_CHARS_MAX: usize = 280;

/// Returns the items of the wanted turns; those of one turn in the order of their events.
pub(super) fn all(session: &Session, wanted: &[bool]) -> Vec<(TurnId, ItemRecord)> {
    let is_wanted = |turn: Option<TurnId>| turn.is_some_and(|turn| wanted[turn.0]);
    let mut items = Vec::new();
    for message in session.messages.iter().filter(|message| is_wanted(message.turn)) {
        match message.speaker {
            Speaker::User => items.extend(prompt(message)),
            Speaker::Model => words(message, &mut items),
            // System prompts are not items.
            Speaker::System => {}
        }
    }
    let mut of_message = HashMap::new();
    let calls = session.calls.iter().filter(|call| is_wanted(call.turn));
    items.extend(calls.filter_map(|call| of_call(call, &mut of_message)));
    items.extend(session.facts.iter().filter(|fact| is_wanted(fact.turn)).filter_map(of_fact));
    // Every event of the session is inserted, so the hash has to be fast.
    let mut places = HashMap::<_, _, foldhash::fast::FixedState>::default();
    for (number, turn) in session.turns.iter().enumerate().filter(|(number, _)| wanted[*number]) {
        places.extend(turn.events.iter().enumerate().map(|(place, at)| ((TurnId(number), *at), place)));
    }
    items.sort_by_cached_key(|item| places.get(&(item.turn, item.at)).copied());
    items.into_iter().map(|item| (item.turn, item.record)).collect()
}

/// An item, and its first event.
struct ItemEntry {
    turn: TurnId,
    at: EventPosition,
    record: ItemRecord,
}

fn prompt(message: &Message) -> Option<ItemEntry> {
    let texts = message.blocks.iter().filter_map(|block| text_of(block, "text"));
    let text = texts.collect::<Vec<_>>().join(" ");
    let summary = Some(shortened(&text));
    let new = new_item(message.at, 0, ItemKind::UserMessage, &message.time);
    Some(ItemEntry { turn: message.turn?, at: message.at, record: ItemRecord { summary, ..new } })
}

fn words(message: &Message, items: &mut Vec<ItemEntry>) {
    for (number, block) in message.blocks.iter().enumerate() {
        items.extend(of_block(message, number, block));
    }
}

fn of_block(message: &Message, number: usize, block: &Block) -> Option<ItemEntry> {
    let Block::Recorded(recorded) = block else { return None };
    let turn = message.turn?;
    let fields = PayloadFields::parse(recorded.as_str());
    let new = |kind| new_item(message.at, number, kind, &message.time);
    let record = match &*fields.text("type").unwrap_or_default() {
        "text" => {
            let text = fields.text("text").unwrap_or_default();
            ItemRecord { summary: Some(shortened(&text)), ..new(ItemKind::AgentMessage) }
        }
        "thinking" => {
            // Only its hash: records do not contain thoughts.
            let thought = fields.text("thinking").filter(|thought| !thought.is_empty());
            let metadata = thought.map(|thought| {
                let hash = HEXLOWER.encode(&Sha256::digest(thought.as_bytes()));
                RawJson::parse(&format!(r#"{{"sha256":"{hash}"}}"#)).expect("a hash needs no escape")
            });
            ItemRecord { metadata, ..new(ItemKind::AgentReasoning) }
        }
        _ => return None,
    };
    Some(ItemEntry { turn, at: message.at, record })
}

/// Makes the item of a call; `of_message` counts the calls that only a message has, by its event.
fn of_call(call: &Call, of_message: &mut HashMap<EventPosition, u64>) -> Option<ItemEntry> {
    let kind = match call.effect() {
        Effect::Command => ItemKind::CommandExecution,
        Effect::Change => ItemKind::FileChange,
        // It is not known to have been carried out.
        Effect::None | Effect::Unknown => ItemKind::ToolCall,
    };
    let outcome = call.outcome();
    let id = call.id.clone().unwrap_or_else(|| JsonString::from_text(""));
    let metadata = RawJson::object(|out| {
        out.string("tool_call_id", &id);
        // Its result came without a call, and the adapter added one.
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
    let new = new_item(call.called.unwrap_or(call.at), 0, kind, &call.time);
    let is_told_alone =
        call.called.is_some() || call.result.as_ref().is_some_and(|result| result.at == Some(call.at));
    let number = (!is_told_alone).then(|| {
        let number = of_message.entry(call.at).or_default();
        *number += 1;
        *number
    });
    let record = ItemRecord {
        id: number.map_or_else(|| new.id.clone(), |number| format!("{}-call-{number}", new.id)),
        status: Word::Known(status),
        summary: Some(shortened(&name)),
        metadata: Some(metadata),
        ended_at: ended.map(time_of),
        ..new
    };
    Some(ItemEntry { turn: call.turn?, at: call.at, record })
}

fn of_fact(fact: &Fact) -> Option<ItemEntry> {
    let is = |kind: &str| fact.kind.as_ref().is_some_and(|own| own.is(kind));
    if fact.state == State::Open {
        return None;
    }
    let new = |kind| new_item(fact.at, 0, kind, &fact.time);
    let record = match () {
        () if is("compaction") => new(ItemKind::ContextCompaction),
        () if is("error") => {
            let summary = fact.error.as_ref().map(|error| shortened(&error.to_text()));
            ItemRecord { summary, status: Word::Known(RecordStatus::Failed), ..new(ItemKind::Error) }
        }
        () => return None,
    };
    Some(ItemEntry { turn: fact.turn?, at: fact.at, record })
}

fn new_item(at: EventPosition, number: usize, kind: ItemKind, time: &Timestamp) -> ItemRecord {
    let seq = at.seq;
    // Event numbers are unique within one run only.
    let of_run = match at.run {
        RunNumber::MAIN => String::new(),
        RunNumber(other) => format!("run{}-", other + 1),
    };
    let time = time_of(time);
    ItemRecord {
        id: if number == 0 { format!("item-{of_run}{seq}") } else { format!("item-{of_run}{seq}-{number}") },
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
    let mut room = SUMMARY_CHARS_MAX;
    for word in text.split_whitespace() {
        let space = usize::from(!line.is_empty());
        let end = word.char_indices().nth(room.saturating_sub(space)).map(|(end, _)| end);
        if space > 0 && room > 0 {
            line.push(' ');
        }
        line.push_str(&word[..end.unwrap_or(word.len())]);
        if end.is_some() {
            line.push('…');
            break;
        }
        room -= space + word.chars().count();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_one_line_of_280_characters() {
        assert_eq!(shortened("  one\n\ttwo  "), "one two");
        let full = "é".repeat(SUMMARY_CHARS_MAX);
        assert_eq!(shortened(&full), full);
        assert_eq!(shortened(&format!("{full}é")), format!("{full}…"));
        assert_eq!(shortened(&format!("{full} more")), format!("{full}…"));
        let words = "word ".repeat(56);
        assert_eq!(shortened(&words), words.trim_end());
        assert_eq!(shortened(&format!("{words}x")), format!("{words}…"));
    }
}
