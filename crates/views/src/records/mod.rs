//! A run as thread, turn, item and event records (003): a session is a thread, turn steps are turns, messages and calls are
//! items, events keep their numbers.
//!
//! `docs/receipts.md` has the mapping as tables. Nothing is inferred: what a source does not say is `None`.

mod items;
mod settings;
mod turns;
mod usage;

use steno_model::json::{ObjectWriter, RawJson};
use steno_model::records::{EventRecord, ItemRecord, ThreadRecord, TurnRecord};
use steno_model::{EventType, ExchangeEvent, RunId, Vocabulary};

use crate::fields::PayloadFields;
use items::Items;
use turns::{Beginning, Turns};

pub use settings::Flags;

/// What the beginning of a run is called.
const THREAD_STARTED: &str = "thread.started";

/// All records of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// The session.
    pub thread: ThreadRecord,
    /// Its turns, in order.
    pub turns: Vec<TurnRecord>,
    /// Their items, in order.
    pub items: Vec<ItemRecord>,
    /// Its events, in order.
    pub events: Vec<EventRecord>,
    /// Where the run began, again and again perhaps, and what the source could tell of from then on; `None` where it does
    /// not say.
    begun: Vec<(u64, Option<Vec<String>>)>,
    /// The lines that turns are made of beside their own events.
    others: Vec<(String, u64)>,
    /// Where each turn begins, in the order of `turns`.
    beginnings: Vec<Beginning>,
}

impl Records {
    /// Finds the turns that a name may mean: the one with that id, else those that the provider calls so.
    #[must_use]
    pub fn turns_named(&self, name: &str) -> Vec<&TurnRecord> {
        let with_id: Vec<&TurnRecord> = self.turns.iter().filter(|turn| turn.id == name).collect();
        let is_called = |turn: &&TurnRecord| turn.provider_id.as_deref() == Some(name);
        if with_id.is_empty() { self.turns.iter().filter(is_called).collect() } else { with_id }
    }

    /// Returns what the source could tell of during a turn; `None` where it does not say.
    #[must_use]
    pub fn carries(&self, turn: &str) -> Option<&[String]> {
        let last = self.last_of(turn);
        let begun = self.begun.iter().rev().find(|(seq, _)| *seq <= last)?;
        begun.1.as_deref()
    }

    fn last_of(&self, turn: &str) -> u64 {
        let own = |event: &&EventRecord| event.turn_id.as_deref() == Some(turn);
        self.events.iter().filter(own).map(|event| event.seq).max().unwrap_or(0)
    }

    /// Returns the numbers of the events that a turn's records are made of, in order: its own, the beginnings of the run and of
    /// turns at its path and below it up to its last one, results of its calls that came elsewhere, and calls of others whose
    /// results came in it.
    #[must_use]
    pub fn lines_of(&self, turn: &str) -> Vec<u64> {
        let last = self.last_of(turn);
        let own =
            self.events.iter().filter(|event| event.turn_id.as_deref() == Some(turn)).map(|event| event.seq);
        let begun = self.begun.iter().map(|(seq, _)| *seq).filter(|seq| *seq <= last);
        let others = self.others.iter().filter(|(of, _)| of == turn).map(|(_, seq)| *seq);
        let mut seqs: Vec<u64> = own.chain(begun).chain(others).collect();
        let end = seqs.iter().max().copied().unwrap_or(0);
        if let Some(at) = self.turns.iter().position(|known| known.id == turn) {
            let own = &self.beginnings[at];
            let inside = self.beginnings.iter().filter(|other| other.is_inside(own) && other.seq <= end);
            seqs.extend(inside.map(|other| other.seq));
        }
        seqs.sort_unstable();
        seqs.dedup();
        seqs
    }
}

/// What is kept of each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    /// All of it.
    Whole,
    /// What counts are made of. A session's outputs are large.
    Counted,
}

/// Folds the events of one run, in order, into records.
pub struct RecordsBuilder {
    thread: ThreadRecord,
    begun: Vec<(u64, Option<Vec<String>>)>,
    turns: Turns,
    items: Items,
    events: Vec<(EventRecord, Option<usize>)>,
    payloads: Payloads,
}

impl RecordsBuilder {
    /// Begins with a run.
    #[must_use]
    pub fn new(run: RunId, payloads: Payloads) -> Self {
        let thread = ThreadRecord {
            id: run.to_string(),
            title: None,
            created_at: None,
            updated_at: None,
            model: None,
            workspace: None,
            mode: None,
            allow_shell: None,
            trust_mode: None,
            auto_approve: None,
            task_id: None,
            latest_turn_id: None,
        };
        let (turns, items) = (Turns::default(), Items::default());
        Self { thread, begun: Vec::new(), turns, items, events: Vec::new(), payloads }
    }

    /// Takes an event.
    pub fn push(&mut self, event: &ExchangeEvent) {
        let time = event.timestamp.as_json().to_text().into_owned();
        self.thread.created_at.get_or_insert_with(|| time.clone());
        self.thread.updated_at = Some(time.clone());
        let fields = PayloadFields::of(event);
        let kind = fields.text("kind").unwrap_or_default();
        let event_type = event.event_type.known();
        if event_type == Some(EventType::RunStarted) {
            self.begin(event.seq.get(), &fields);
        }
        if event_type == Some(EventType::StepStarted) && kind == "turn" {
            self.turns.begin(event, &fields, &time);
        }
        let turn = self.turns.at(&event.path.to_text());
        if let Some(event_type) = event_type {
            self.items.push(turn, event_type, event, &fields);
            if let Some(turn) = turn {
                self.turns.take(turn, event_type, event, &fields);
            }
        }
        if event_type == Some(EventType::StepCompleted)
            && kind == "turn"
            && let Some(turn) = turn
            && self.turns.is_at(turn, &event.path)
        {
            self.turns.end(turn, &fields, &time);
        }
        let item = self.items.last_of(event.seq.get());
        let (name, payload) = self.told(event, &kind, &fields);
        let record = EventRecord {
            seq: event.seq.get(),
            timestamp: time,
            thread_id: self.thread.id.clone(),
            turn_id: None,
            item_id: item,
            event: name,
            payload,
        };
        self.events.push((record, turn));
    }

    fn begin(&mut self, seq: u64, fields: &PayloadFields<'_>) {
        let text = |name: &str| fields.text(name).map(std::borrow::Cow::into_owned);
        self.thread.title = text("title").or_else(|| self.thread.title.take());
        self.thread.workspace = text("cwd").or_else(|| self.thread.workspace.take());
        let source = fields.object("source");
        let is_list = source.json_text("carries").is_some_and(|list| list.starts_with('['));
        let words = source.items("carries").into_iter();
        let words = words.filter_map(|word| serde_json::from_str(word.get()).ok()).collect();
        self.begun.push((seq, is_list.then_some(words)));
    }

    /// Returns an event's name as 003 has it, and what is kept of its payload.
    fn told(&self, event: &ExchangeEvent, kind: &str, fields: &PayloadFields<'_>) -> (String, RawJson) {
        let Some(event_type) = event.event_type.known() else {
            return (event.event_type.to_string(), self.kept(event));
        };
        let name = match (event_type, kind) {
            (EventType::StepStarted, "approval") => "approval.required",
            (EventType::StepCompleted, "approval") => "approval.decided",
            (EventType::StepCompleted, "sandbox") => "sandbox.denied",
            (EventType::RunStarted, _) => THREAD_STARTED,
            (EventType::StepStarted, "turn") => "turn.started",
            (EventType::StepCompleted, "turn") => "turn.completed",
            (EventType::MessageUser | EventType::MessageAssistant, _) => "item.completed",
            (EventType::ToolCall, _) => "item.started",
            (EventType::ToolResult, _) => match &*fields.text("outcome").unwrap_or_default() {
                "failed" | "denied" => "item.failed",
                "interrupted" => "item.interrupted",
                _ => "item.completed",
            },
            (other, _) => other.as_str(),
        };
        let payload = match name {
            "approval.required" | "approval.decided" => approval(fields),
            _ => self.kept(event),
        };
        (name.to_owned(), payload)
    }

    fn kept(&self, event: &ExchangeEvent) -> RawJson {
        match self.payloads {
            Payloads::Whole => event.payload.clone(),
            Payloads::Counted => RawJson::null(),
        }
    }

    /// Returns the records.
    #[must_use]
    pub fn finish(mut self) -> Records {
        let id = |turn: usize| self.turns.id(turn).to_owned();
        let named =
            |(event, turn): (EventRecord, Option<usize>)| EventRecord { turn_id: turn.map(id), ..event };
        let events = self.events.into_iter().map(named).collect();
        let others = self.items.others().iter().map(|(turn, seq)| (id(*turn), *seq)).collect();
        let items = self.items.finish(&self.turns);
        let (turns, beginnings) = self.turns.finish(&self.thread.id, &items);
        if let Some(last) = turns.last() {
            self.thread.latest_turn_id = Some(last.id.clone());
            self.thread.model.clone_from(&last.settings.model);
            self.thread.mode.clone_from(&last.settings.mode);
            let flags = Flags::of(&last.settings);
            self.thread.auto_approve = flags.auto_approve;
            self.thread.trust_mode = flags.trust_mode;
        }
        Records { thread: self.thread, turns, items, events, begun: self.begun, others, beginnings }
    }
}

/// What is said of an approval, in the words of 003.
fn approval(fields: &PayloadFields<'_>) -> RawJson {
    let result = fields.object("result");
    let decision = result.text("decision");
    RawJson::object(|out| {
        out.optional("id", fields.string("name").as_ref(), ObjectWriter::string);
        out.optional("tool_call_id", fields.string("tool_call_id").as_ref(), ObjectWriter::string);
        let decision = decision.as_deref().map(|word| match word {
            "allowed" => "allow",
            "denied" => "deny",
            other => other,
        });
        out.optional("decision", decision.map(Into::into).as_ref(), ObjectWriter::string);
        out.optional("by", result.string("by").as_ref(), ObjectWriter::string);
    })
}
