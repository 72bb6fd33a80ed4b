//! Turns: the steps of that kind, and what was in force and used during each.

use std::collections::HashMap;

use steno_model::json::JsonString;
use steno_model::records::{ItemKind, ItemRecord, RecordStatus, TurnRecord};
use steno_model::{EventType, ExchangeEvent, Timestamp, Word};

use super::settings;
use super::usage::TurnUsage;
use crate::fields::PayloadFields;

/// What an agent writes for a turn that was stopped.
const INTERRUPTED: [&str; 2] = ["interrupted", "aborted"];

/// All turns so far.
#[derive(Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// The turn that goes on, or was last, at a path.
    at: HashMap<String, usize>,
}

struct Turn {
    beginning: Beginning,
    record: TurnRecord,
    usage: TurnUsage,
    prompts: u64,
}

/// Where a turn begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    path: String,
    /// The event that began it.
    pub(super) seq: u64,
}

impl Beginning {
    /// Tells whether it is at the path of another, or below it: it then says which events are the other's.
    pub(super) fn is_inside(&self, other: &Self) -> bool {
        let rest = self.path.strip_prefix(other.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && !other.path.ends_with('\\'))
    }
}

impl Turns {
    pub(super) fn begin(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>, time: &str) {
        let path = event.path.to_text().into_owned();
        let record = TurnRecord {
            // A path that was a turn's before is told apart by where this one begins.
            id: if self.at.contains_key(&path) {
                format!("{path}@{}", event.seq.get())
            } else {
                path.clone()
            },
            provider_id: fields.text("turn_id").map(std::borrow::Cow::into_owned),
            thread_id: String::new(),
            status: Word::Known(RecordStatus::InProgress),
            input_summary: None,
            started_at: Some(time.to_owned()),
            ended_at: None,
            duration_ms: None,
            usage: None,
            usage_is_lower_bound: false,
            error: None,
            steer_count: None,
            item_ids: Vec::new(),
            settings: settings::read(&fields.object("settings")),
        };
        self.at.insert(path.clone(), self.turns.len());
        let beginning = Beginning { path, seq: event.seq.get() };
        self.turns.push(Turn { beginning, record, usage: TurnUsage::default(), prompts: 0 });
    }

    /// Finds the turn that a path lies in.
    pub(super) fn at(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(turn) = self.at.get(path) {
                return Some(*turn);
            }
            path = parent(path)?;
        }
    }

    /// Takes what an event says of its turn.
    pub(super) fn take(
        &mut self,
        turn: usize,
        event_type: EventType,
        event: &ExchangeEvent,
        fields: &PayloadFields<'_>,
    ) {
        let turn = &mut self.turns[turn];
        turn.prompts += u64::from(event_type == EventType::MessageUser);
        if event_type == EventType::MessageAssistant {
            if let Some(model) = fields.text("model").filter(|_| event.path.is(&turn.beginning.path)) {
                turn.record.settings.model.get_or_insert_with(|| model.into_owned());
            }
            turn.usage.take(fields);
        }
    }

    pub(super) fn end(&mut self, turn: usize, fields: &PayloadFields<'_>, time: &str) {
        let record = &mut self.turns[turn].record;
        record.error = fields.error().map(|error| error.to_text().into_owned());
        record.status = Word::Known(match record.error.as_deref() {
            None => RecordStatus::Completed,
            Some(error) if INTERRUPTED.contains(&error) => RecordStatus::Interrupted,
            Some(_) => RecordStatus::Failed,
        });
        record.ended_at = Some(time.to_owned());
        record.duration_ms = record.started_at.as_deref().and_then(|start| milliseconds(start, time));
    }

    /// Tells whether a turn's step is at a path, and not something inside of it.
    pub(super) fn is_at(&self, turn: usize, path: &JsonString) -> bool {
        path.is(&self.turns[turn].beginning.path)
    }

    /// Returns what a turn is called: by its step's path, and as no other turn of the run.
    pub(super) fn id(&self, turn: usize) -> &str {
        &self.turns[turn].record.id
    }

    /// Returns the turns, and where each of them begins.
    pub(super) fn finish(self, thread: &str, items: &[ItemRecord]) -> (Vec<TurnRecord>, Vec<Beginning>) {
        let mut item_ids: HashMap<&str, Vec<String>> = HashMap::new();
        let mut prompts: HashMap<&str, String> = HashMap::new();
        for item in items {
            item_ids.entry(&item.turn_id).or_default().push(item.id.clone());
            if item.kind.known() == Some(ItemKind::UserMessage)
                && let Some(summary) = &item.summary
            {
                prompts.entry(&item.turn_id).or_insert_with(|| summary.clone());
            }
        }
        let finish = |turn: Turn| {
            let (usage, usage_is_lower_bound) = turn.usage.finish();
            let id = turn.record.id.as_str();
            let record = TurnRecord {
                thread_id: thread.to_owned(),
                input_summary: prompts.remove(id),
                steer_count: Some(turn.prompts.saturating_sub(1)),
                usage,
                usage_is_lower_bound,
                item_ids: item_ids.remove(id).unwrap_or_default(),
                ..turn.record
            };
            (record, turn.beginning)
        };
        self.turns.into_iter().map(finish).unzip()
    }
}

/// Returns the path above another. A dot in a step's name is written `\.`.
fn parent(path: &str) -> Option<&str> {
    let mut dots = path.rmatch_indices('.').filter(|(at, _)| !path[..*at].ends_with('\\'));
    dots.next().map(|(at, _)| &path[..at])
}

const NANOSECONDS_IN_MILLISECOND: i128 = 1_000_000;

/// Returns how long it is from one time to another; `None` where one is no time, or the second comes first.
fn milliseconds(start: &str, end: &str) -> Option<u64> {
    // Cut as their digits are, also before 1970.
    let unix_ms = |text: &str| {
        Some(Timestamp::parse(text).ok()?.instant()?.as_nanosecond().div_euclid(NANOSECONDS_IN_MILLISECOND))
    };
    u64::try_from(unix_ms(end)? - unix_ms(start)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_the_digits() {
        for (start, end, want) in [
            ("2026-06-02T09:00:00.9999Z", "2026-06-02T09:00:01Z", Some(1)),
            ("1969-12-31T23:59:59.9995Z", "1970-01-01T00:00:00Z", Some(1)),
            ("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", Some(31_622_400_000)),
            ("9999-12-30T22:00:00Z", "9999-12-30T22:00:00.999Z", Some(999)),
            ("9999-12-30T22:00:00Z", "9999-12-30T22:00:01Z", None),
            ("2026-06-02T09:00:00.1234567891Z", "2026-06-02T09:00:01Z", None),
            ("2026-06-02T09:00:01Z", "2026-06-02T09:00:00Z", None),
        ] {
            assert_eq!(milliseconds(start, end), want, "{start} to {end}");
        }
    }
}
