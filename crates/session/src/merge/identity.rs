//! What makes a fact of one run the same as one of another.
//!
//! Only ids that the provider made count across runs. A fact without one is known by its words, in the turn that both runs
//! have: that is a match, and no proof.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use steno_model::{EventType, ExchangeEvent};

use super::Matching;
use crate::fields::PayloadFields;

/// How often a key has come up in a run: the n-th of one run is the n-th of another.
pub(super) type Counts = HashMap<String, u64>;

/// The facts of the session so far.
#[derive(Default)]
pub(super) struct Identities {
    /// By what shows that it is the same.
    exact: HashMap<String, usize>,
    /// By what makes it look the same.
    alike: HashMap<String, usize>,
    /// The turns that have usage.
    with_usage: HashMap<String, usize>,
    /// The turn of each fact that has an id.
    turns: HashMap<String, String>,
    /// What was said and called, whatever the turn.
    looks: HashMap<u64, u64>,
}

/// What is known of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The session has it, as ids show.
    SameFact(usize),
    /// The session has one that says the same.
    Alike(usize),
    /// It is usage without words, of a turn whose usage this fact tells.
    UsageElsewhere(usize),
    /// No id ties it to the session, and it tells usage.
    Usage,
    /// No id ties it to the session, which has its turn from another run.
    Untied,
    /// The session does not have it.
    New,
}

/// What identifies a fact.
#[derive(Default)]
struct Keys {
    /// Each one alone shows that it is the same.
    exact: Vec<String>,
    alike: Option<String>,
    /// Whether it tells usage.
    has_usage: bool,
    /// Whether it tells nothing else.
    is_usage: bool,
}

impl Identities {
    /// Takes a fact of the run whose order counts.
    pub(super) fn learn(
        &mut self,
        event: &ExchangeEvent,
        turn: Option<&str>,
        counts: &mut Counts,
        node: usize,
    ) {
        let keys = keys(event, turn.unwrap_or_default(), counts);
        self.keep(keys, event, turn, node);
    }

    /// Takes a fact that another run has added; its keys were counted when it was looked for.
    pub(super) fn add(
        &mut self,
        event: &ExchangeEvent,
        turn: Option<&str>,
        counts: &mut Counts,
        node: usize,
    ) {
        // Looked for before, so that the numbers are those of the last look.
        let keys = keys_again(event, turn.unwrap_or_default(), counts);
        self.keep(keys, event, turn, node);
    }

    fn keep(&mut self, keys: Keys, event: &ExchangeEvent, turn: Option<&str>, node: usize) {
        if keys.has_usage
            && let Some(turn) = turn
        {
            self.with_usage.entry(turn.to_owned()).or_insert(node);
        }
        for key in keys.exact {
            if let Some(turn) = turn {
                self.turns.entry(key.clone()).or_insert_with(|| turn.to_owned());
            }
            self.exact.entry(key).or_insert(node);
        }
        if let Some(key) = keys.alike {
            self.alike.entry(key).or_insert(node);
        }
        if let Some(look) = look(event) {
            *self.looks.entry(look).or_default() += 1;
        }
    }

    /// Looks for a fact of another run.
    pub(super) fn find(&self, event: &ExchangeEvent, turn: Option<&str>, counts: &mut Counts) -> Known {
        let keys = keys(event, turn.unwrap_or_default(), counts);
        if let Some(node) = keys.exact.iter().find_map(|key| self.exact.get(key)) {
            return Known::SameFact(*node);
        }
        if let Some(node) = turn.filter(|_| keys.is_usage).and_then(|turn| self.with_usage.get(turn)) {
            return Known::UsageElsewhere(*node);
        }
        match keys.alike.and_then(|key| self.alike.get(&key)) {
            Some(node) => Known::Alike(*node),
            None => Known::New,
        }
    }

    /// Looks for a fact of another run by the provider's ids alone. `is_own` tells that no other run has its turn.
    pub(super) fn find_id(
        &self,
        event: &ExchangeEvent,
        turn: Option<&str>,
        counts: &mut Counts,
        is_own: bool,
    ) -> Known {
        let keys = keys(event, turn.unwrap_or_default(), counts);
        let mut ids = keys.exact.iter().filter(|key| is_id(key));
        if let Some(node) = ids.clone().find_map(|key| self.exact.get(key)) {
            return Known::SameFact(*node);
        }
        match () {
            () if is_own || ids.any(|key| stands_alone(key)) => Known::New,
            () if keys.has_usage => Known::Usage,
            () => Known::Untied,
        }
    }

    /// Returns the turn of the session that has a fact, by its id.
    pub(super) fn turn_of(&self, event: &ExchangeEvent, matching: Matching) -> Option<String> {
        let keys = keys(event, "", &mut Counts::new());
        let is_known_by = |key: &&String| match matching {
            Matching::Ids => is_id(key),
            Matching::Likeness => !key.contains('\0'),
        };
        let found = keys.exact.iter().filter(is_known_by);
        found.into_iter().find_map(|key| self.turns.get(key)).cloned()
    }

    /// Tells whether the session has something that looks like a fact without ids; `None` for what is not compared.
    pub(super) fn looks_like(&self, event: &ExchangeEvent) -> Option<bool> {
        look(event).map(|look| self.looks.contains_key(&look))
    }
}

/// Tells whether a key is made of ids, and not of what is said.
fn is_id(key: &str) -> bool {
    !key.starts_with("total ") && (!key.contains('\0') || key.starts_with("turn\0"))
}

/// Tells whether what has this id is the same on every channel. Messages have other ids on some.
fn stands_alone(key: &str) -> bool {
    !["message ", "response ", "usage "].iter().any(|what| key.starts_with(what))
}

/// Returns the keys of an event. Keys that hold for one turn alone have a zero byte in them.
fn keys(event: &ExchangeEvent, turn: &str, counts: &mut Counts) -> Keys {
    keys_with(event, turn, &mut |key| {
        let count = counts.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    })
}

/// Returns the keys that the last look at the event gave.
fn keys_again(event: &ExchangeEvent, turn: &str, counts: &Counts) -> Keys {
    keys_with(event, turn, &mut |key| counts.get(key).copied().unwrap_or(1))
}

fn keys_with(event: &ExchangeEvent, turn: &str, count: &mut dyn FnMut(&str) -> u64) -> Keys {
    let fields = PayloadFields::of(event);
    let Some(event_type) = event.event_type.known() else {
        let key = format!("other\0{turn}\0{:x}", hash(event.payload.as_str()));
        return Keys { exact: vec![numbered(&key, count)], ..Keys::default() };
    };
    let is_end = matches!(event_type, EventType::StepCompleted | EventType::CallWorkflowCompleted);
    match event_type {
        EventType::RunStarted | EventType::RunCompleted => Keys::default(),
        EventType::MessageUser => {
            let words = format!("prompt\0{turn}\0{:x}", hash(&words(&fields)));
            let id = fields.text("id").map(|id| format!("message {id}"));
            let alike = Some(numbered(&words, count));
            Keys { exact: id.into_iter().collect(), alike, ..Keys::default() }
        }
        EventType::MessageAssistant => assistant(&fields, turn, count),
        EventType::ToolCall => of_call("call", &fields, count),
        EventType::ToolResult => of_call("result", &fields, count),
        EventType::CallWorkflowStarted | EventType::CallWorkflowCompleted => {
            let child = event.child_run_id.map(|child| format!("child {child} {is_end}"));
            let call = fields.text("tool_call_id").map(|id| format!("child of {id} {is_end}"));
            Keys { exact: child.into_iter().chain(call).collect(), ..Keys::default() }
        }
        EventType::StepStarted | EventType::StepCompleted => step(&fields, turn, is_end, count),
    }
}

fn assistant(fields: &PayloadFields<'_>, turn: &str, count: &mut dyn FnMut(&str) -> u64) -> Keys {
    let blocks = fields.items("blocks");
    let has_usage = fields.json_text("usage").is_some();
    let response = fields.text("response");
    if blocks.is_empty() {
        let id = response.map(|id| format!("usage {id}"));
        let total = fields.json_text("thread_tokens").map(|total| format!("total {total}"));
        return Keys {
            exact: id.into_iter().chain(total).collect(),
            alike: None,
            has_usage,
            is_usage: has_usage,
        };
    }
    let mut exact: Vec<String> = fields.text("id").map(|id| format!("message {id}")).into_iter().collect();
    let words = hash(&words(fields));
    if let Some(response) = response {
        exact.push(numbered(&format!("response {response} {words:x}"), count));
    }
    let calls = blocks.iter().map(|block| {
        let block = PayloadFields::parse(block.get());
        let is_use = block.text("type").is_some_and(|kind| kind == "tool_use");
        block.text("tool_id").filter(|_| is_use).map(std::borrow::Cow::into_owned)
    });
    // A record that asks for one call is known by the call.
    if let Some(calls) = calls.collect::<Option<Vec<_>>>() {
        exact.push(numbered(&format!("use {}", calls.join(" ")), count));
        return Keys { exact, alike: None, has_usage, is_usage: false };
    }
    let alike = Some(numbered(&format!("words\0{turn}\0{words:x}"), count));
    Keys { exact, alike, has_usage, is_usage: false }
}

fn of_call(what: &str, fields: &PayloadFields<'_>, count: &mut dyn FnMut(&str) -> u64) -> Keys {
    let fidelity = fields.text("fidelity").unwrap_or_default();
    let key = fields.text("call_id").map(|id| {
        // The router's report and the agent's are one call: each is counted apart.
        let number = count(&format!("{what} {id} {fidelity}"));
        format!("{what} {id} #{number}")
    });
    Keys { exact: key.into_iter().collect(), ..Keys::default() }
}

fn step(fields: &PayloadFields<'_>, turn: &str, is_end: bool, count: &mut dyn FnMut(&str) -> u64) -> Keys {
    let kind = fields.text("kind").unwrap_or_default();
    let call = fields.text("tool_call_id");
    let key = match (&*kind, call) {
        ("turn", _) => return Keys { exact: vec![format!("turn\0{turn}\0{is_end}")], ..Keys::default() },
        ("approval", Some(call)) => numbered(&format!("approval {call} {is_end}"), count),
        ("compaction", _) => numbered(&format!("compaction\0{turn}\0{is_end}"), count),
        ("amend", Some(call)) => {
            let said = hash(fields.json_text("result").unwrap_or_default());
            numbered(&format!("amend {call} {said:x}"), count)
        }
        _ => {
            let said = [fields.json_text("result"), fields.json_text("error")].map(Option::unwrap_or_default);
            let name = fields.text("name").unwrap_or_default();
            numbered(&format!("{kind}\0{turn}\0{name}\0{is_end}\0{:x}", hash(&said.join("\0"))), count)
        }
    };
    Keys { exact: vec![key], ..Keys::default() }
}

fn numbered(key: &str, count: &mut dyn FnMut(&str) -> u64) -> String {
    format!("{key} #{}", count(key))
}

/// Returns the words of a message: its texts and thoughts, and what it calls.
fn words(fields: &PayloadFields<'_>) -> String {
    let mut words = String::new();
    for block in fields.items("blocks") {
        let block = PayloadFields::parse(block.get());
        for name in ["type", "text", "thinking", "tool_id", "command"] {
            words.push_str(&block.text(name).unwrap_or_default());
            words.push('\0');
        }
    }
    words
}

/// Returns how something looks that was said or called.
fn look(event: &ExchangeEvent) -> Option<u64> {
    let fields = PayloadFields::of(event);
    match event.event_type.known()? {
        EventType::MessageUser | EventType::MessageAssistant if fields.items("blocks").is_empty() => None,
        EventType::MessageUser | EventType::MessageAssistant => {
            let blocks = fields.items("blocks");
            let is_call = |block: &&serde_json::value::RawValue| {
                PayloadFields::parse(block.get()).text("type").is_some_and(|kind| kind == "tool_use")
            };
            // Its call is compared as such.
            (!blocks.iter().any(is_call)).then(|| hash(&words(&fields)))
        }
        EventType::ToolCall => {
            let class = fields.text("class").unwrap_or_default();
            let input = fields.object("input");
            let said = ["command", "cmd"].into_iter().find_map(|name| input.json_text(name));
            Some(hash(&format!("{class}\0{}", said.or(fields.json_text("input")).unwrap_or_default())))
        }
        EventType::RunStarted
        | EventType::RunCompleted
        | EventType::StepStarted
        | EventType::StepCompleted
        | EventType::CallWorkflowStarted
        | EventType::CallWorkflowCompleted
        | EventType::ToolResult => None,
    }
}

/// Returns a number that differs where events differ, whatever their run.
pub(super) fn content_hash(events: &[ExchangeEvent]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for event in events {
        event.payload.as_str().hash(&mut hasher);
    }
    hasher.finish()
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
