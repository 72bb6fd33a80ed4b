//! Decides whether a fact of one run is the same as a fact of another.
//!
//! Only the provider's ids are valid across runs. A fact without one is matched by its content, within a turn that both runs
//! have. That is a match, not a proof.

use std::collections::{HashMap, HashSet};

use steno_model::{EventType, ExchangeEvent};

use super::MatchRule;
use super::words::{hash, hash_of_texts, look, texts_of, typed_words, words, words_of, words_of_blocks};
use crate::fields::PayloadFields;

/// How many times a key has occurred in a run: the n-th of one run is the n-th of another.
pub(super) type KeyCounts = HashMap<String, u64>;

/// The facts of the session so far.
#[derive(Default)]
pub(super) struct Identities {
    /// By keys that prove identity.
    exact: HashMap<String, usize>,
    /// By keys of similar content, in the order in which they were added.
    alike: HashMap<String, Vec<usize>>,
    /// The messages that contain a text beside other blocks, by the key of that text alone.
    parts: HashMap<String, Vec<usize>>,
    /// The channels on which a message has an id.
    channels: HashMap<usize, Vec<String>>,
    /// The turns that have usage.
    with_usage: HashMap<String, usize>,
    /// The turn of each fact that has an id.
    turns: HashMap<String, String>,
    /// Hashes of messages and calls, in any turn.
    looks: HashMap<u64, u64>,
    /// The turns that have a message with certain texts, by the hash of speaker and texts.
    texts: HashMap<u64, Vec<String>>,
    /// The turns in which the model said something.
    answered: HashSet<String>,
}

/// How a fact matches the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactMatch {
    /// The session has it, by id.
    SameFact(usize),
    /// The session has one with the same content.
    Alike(usize),
    /// It is only usage, and this fact has the usage of its turn.
    UsageElsewhere(usize),
    /// No id links it to the session, and it has usage.
    Usage,
    /// No id links it to the session, which has its turn from another run.
    Untied,
    /// The session does not have it.
    New,
}

/// The keys of a fact.
#[derive(Default)]
pub(super) struct FactKeys {
    /// Each one alone proves identity.
    exact: Vec<String>,
    /// The content; the second one is that of a channel without thoughts.
    alike: Vec<String>,
    /// The keys that its blocks would have as messages of their own, as other channels report them.
    parts: Vec<String>,
    /// The hashes of speaker and texts: of the whole message, and of a prompt without the files behind it.
    texts: Vec<u64>,
    /// Whether it is a message with an id.
    has_id: bool,
    /// Whether it has usage.
    has_usage: bool,
    /// Whether it has nothing but usage.
    is_usage: bool,
}

/// The state of comparing a run with the session.
pub(super) struct Comparison {
    channel: String,
    /// The facts of the session that the run has.
    taken: HashSet<usize>,
    /// How many similar facts were skipped, by key and whether the run's fact has an id.
    passed: HashMap<(String, bool), usize>,
    /// Of how many messages that contain a text the run has parts, by the key of the text.
    parts: HashMap<String, usize>,
}

impl Comparison {
    pub(super) fn new(channel: Option<&str>) -> Self {
        let channel = channel.unwrap_or_default().to_owned();
        Self { channel, taken: HashSet::new(), passed: HashMap::new(), parts: HashMap::new() }
    }

    /// Records that the run has a fact of the session.
    pub(super) fn take(&mut self, node: usize) {
        self.taken.insert(node);
    }
}

impl Identities {
    /// Adds a fact of a run on a channel.
    pub(super) fn add(&mut self, keys: &FactKeys, turn: Option<&str>, node: usize, channel: &str) {
        if let Some(turn) = turn.filter(|_| keys.has_usage) {
            self.with_usage.entry(turn.to_owned()).or_insert(node);
        }
        for key in &keys.alike {
            self.alike.entry(key.clone()).or_default().push(node);
        }
        for key in keys.parts.iter().filter(|key| !is_id(key)) {
            self.parts.entry(key.clone()).or_default().push(node);
        }
        for texts in turn.map_or(&[][..], |_| &keys.texts) {
            self.texts.entry(*texts).or_default().extend(turn.map(str::to_owned));
        }
        if let Some(turn) = turn.filter(|_| keys.is_answer()) {
            self.answered.insert(turn.to_owned());
        }
        self.name(keys, turn, node, channel);
    }

    /// Records the content hash of an event.
    pub(super) fn see(&mut self, event: &ExchangeEvent) {
        if let Some(look) = look(event) {
            *self.looks.entry(look).or_default() += 1;
        }
    }

    /// Adds the ids of a fact on a channel, unless an earlier fact has them.
    pub(super) fn name(&mut self, keys: &FactKeys, turn: Option<&str>, node: usize, channel: &str) {
        for key in keys.exact.iter().chain(keys.parts.iter().filter(|key| is_id(key))) {
            self.exact.entry(key.clone()).or_insert(node);
            if let Some(turn) = turn {
                self.turns.entry(key.clone()).or_insert_with(|| turn.to_owned());
            }
        }
        if keys.has_id {
            let channels = self.channels.entry(node).or_default();
            if !channels.iter().any(|known| known == channel) {
                channels.push(channel.to_owned());
            }
        }
    }

    /// Finds a fact by keys that prove identity.
    pub(super) fn same(&self, keys: &FactKeys, turn: Option<&str>, matching: MatchRule) -> Option<usize> {
        let counts = |key: &&String| matching == MatchRule::Likeness || is_id(key);
        keys.exact.iter().filter(counts).find_map(|key| {
            // An id that is reused in another turn belongs to another call.
            let known = self.turns.get(key).map(String::as_str);
            let is_elsewhere = may_return(key) && turn.is_some() && known.is_some() && known != turn;
            self.exact.get(key).filter(|_| !is_elsewhere).copied()
        })
    }

    /// Returns the first fact of a turn.
    pub(super) fn beginning_of(&self, turn: &str) -> Option<usize> {
        self.exact.get(&turn_key(turn, false)).copied()
    }

    /// Finds a fact of another run that no id matches.
    pub(super) fn find(&self, keys: &FactKeys, turn: Option<&str>, run: &mut Comparison) -> FactMatch {
        if let Some(node) = turn.filter(|_| keys.is_usage).and_then(|turn| self.with_usage.get(turn)) {
            return FactMatch::UsageElsewhere(*node);
        }
        let alike = keys.alike.iter().find_map(|key| self.alike(key, keys.has_id, run));
        match alike.or_else(|| self.whole(keys.alike.first().filter(|_| !keys.has_id)?, run)) {
            Some(node) => FactMatch::Alike(node),
            None => FactMatch::New,
        }
    }

    /// Finds the first message with the same content that the run does not have yet. On one channel, different ids mean
    /// different messages.
    fn alike(&self, key: &str, has_id: bool, run: &mut Comparison) -> Option<usize> {
        let nodes = self.alike.get(key)?;
        let passed = run.passed.entry((key.to_owned(), has_id)).or_default();
        let is_other = |node: &usize| {
            let channels = self.channels.get(node).filter(|_| has_id);
            run.taken.contains(node) || channels.is_some_and(|channels| channels.contains(&run.channel))
        };
        *passed += nodes[*passed..].iter().take_while(|node| is_other(node)).count();
        nodes.get(*passed).copied()
    }

    /// Finds the next message that contains a text of the run beside other blocks.
    fn whole(&self, key: &str, run: &mut Comparison) -> Option<usize> {
        let passed = run.parts.entry(key.to_owned()).or_default();
        let node = self.parts.get(key)?.get(*passed).copied()?;
        *passed += 1;
        Some(node)
    }

    /// Matches a fact of another run by the provider's ids alone. `is_own` means that no other run has its turn.
    pub(super) fn find_id(keys: &FactKeys, is_own: bool) -> FactMatch {
        let mut ids = keys.exact.iter().filter(|key| is_id(key));
        match () {
            () if is_own || ids.any(|key| stands_alone(key)) => FactMatch::New,
            () if keys.has_usage => FactMatch::Usage,
            () => FactMatch::Untied,
        }
    }

    /// Returns the turn of the session that has a fact, by its id. Ids that occur several times are ignored.
    pub(super) fn turn_of(
        &self,
        event: &ExchangeEvent,
        matching: MatchRule,
        counts: &mut KeyCounts,
    ) -> Option<String> {
        let keys = FactKeys::of(event, "", counts);
        let is_known_by = |key: &&String| match matching {
            MatchRule::Ids => is_id(key),
            MatchRule::Likeness => !key.contains('\0'),
        };
        let is_unique = |key: &&String| {
            let base = key.rsplit_once(" #").map_or(key.as_str(), |(base, _)| base);
            !may_return(key) || !self.exact.contains_key(&format!("{base} #2"))
        };
        let unique_keys = keys.exact.iter().filter(is_known_by).filter(is_unique);
        unique_keys.into_iter().find_map(|key| self.turns.get(key)).cloned()
    }

    /// Returns the turns that have the texts of a message without an id; `None` if it has an id or no text.
    pub(super) fn turns_with_texts(&self, event: &ExchangeEvent) -> Option<&[String]> {
        let texts = texts_of(event).filter(|_| PayloadFields::of(event).text("id").is_none())?;
        Some(self.texts.get(&texts).map(Vec::as_slice).unwrap_or_default())
    }

    /// Tells whether the model said something in a turn.
    pub(super) fn is_answered(&self, turn: &str) -> bool {
        self.answered.contains(turn)
    }

    /// Tells whether a fact of a turn that only texts match is new to it: a call, a result, or a text of the model.
    pub(super) fn is_new_to(&self, turn: Option<&str>, event: &ExchangeEvent) -> bool {
        let is_there = |texts: &[String]| texts.iter().any(|known| Some(known.as_str()) == turn);
        match event.event_type.known() {
            Some(EventType::ToolCall | EventType::ToolResult) => true,
            Some(EventType::MessageAssistant) if texts_of(event).is_some() => {
                !self.turns_with_texts(event).is_some_and(is_there)
            }
            // A record that only asks for calls would be a response of its own: the calls say as much.
            _ => false,
        }
    }

    /// Tells whether the session has a fact with the same content; `None` if the event is not compared.
    pub(super) fn looks_like(&self, event: &ExchangeEvent) -> Option<bool> {
        look(event).map(|look| self.looks.contains_key(&look))
    }
}

/// Tells whether a key is made of ids, and not of content.
fn is_id(key: &str) -> bool {
    !key.starts_with("total ") && (!key.contains('\0') || key.starts_with("turn\0"))
}

/// Tells whether an id is the same on every channel. Messages have different ids on some channels.
fn stands_alone(key: &str) -> bool {
    !["message ", "response ", "usage "].iter().any(|what| key.starts_with(what))
}

/// Tells whether a key is made of a call id, which an agent may reuse.
fn may_return(key: &str) -> bool {
    ["call ", "result ", "approval ", "use ", "child of "].iter().any(|what| key.starts_with(what))
}

impl FactKeys {
    /// Tells whether it is a message in which the model said something.
    fn is_answer(&self) -> bool {
        self.alike.first().is_some_and(|key| key.starts_with("words\0"))
    }

    /// Returns the keys of an event. Keys that are valid within one turn contain a zero byte.
    pub(super) fn of(event: &ExchangeEvent, turn: &str, counts: &mut KeyCounts) -> Self {
        let fields = PayloadFields::of(event);
        let Some(event_type) = event.event_type.known() else {
            let key = format!("other\0{turn}\0{:x}", hash(event.payload.as_str()));
            return Self { exact: vec![numbered(&key, counts)], ..Self::default() };
        };
        let is_end = matches!(event_type, EventType::StepCompleted | EventType::CallWorkflowCompleted);
        match event_type {
            EventType::RunStarted | EventType::RunCompleted => Self::default(),
            EventType::MessageUser => {
                let alike = format!("prompt\0{turn}\0{:x}", hash(&words(&fields)));
                let id = fields.text("id").map(|id| format!("message {id}"));
                let has_id = id.is_some();
                let (exact, alike) = (id.into_iter().collect(), vec![alike]);
                let typed = typed_words(&fields);
                let parts = typed.as_ref().map(|(words, _)| format!("prompt\0{turn}\0{:x}", hash(words)));
                let texts = [texts_of(event), typed.map(|(_, text)| hash_of_texts("user", &[text]))];
                let (parts, texts) = (parts.into_iter().collect(), texts.into_iter().flatten().collect());
                Self { exact, alike, parts, texts, has_id, ..Self::default() }
            }
            EventType::MessageAssistant => {
                let texts = texts_of(event).into_iter().collect();
                Self { texts, ..assistant(&fields, turn, counts) }
            }
            EventType::ToolCall => of_call("call", &fields, turn, counts),
            EventType::ToolResult => of_call("result", &fields, turn, counts),
            EventType::CallWorkflowStarted | EventType::CallWorkflowCompleted => {
                let mut exact: Vec<String> =
                    event.child_run_id.map(|child| format!("child {child} {is_end}")).into_iter().collect();
                if let Some(call) = fields.text("tool_call_id") {
                    exact.extend(by_call(&format!("child of {call} {is_end}"), "", turn, counts));
                }
                Self { exact, ..Self::default() }
            }
            EventType::StepStarted | EventType::StepCompleted => step(&fields, turn, is_end, counts),
        }
    }
}

fn assistant(fields: &PayloadFields<'_>, turn: &str, counts: &mut KeyCounts) -> FactKeys {
    let blocks = fields.items("blocks");
    let has_usage = fields.json_text("usage").is_some();
    let response = fields.text("response");
    if blocks.is_empty() {
        let id = response.map(|id| format!("usage {id}"));
        let total = fields.json_text("thread_tokens").map(|total| format!("total {total}"));
        let exact = id.into_iter().chain(total).collect();
        return FactKeys { exact, has_usage, is_usage: has_usage, ..FactKeys::default() };
    }
    let mut exact: Vec<String> = fields.text("id").map(|id| format!("message {id}")).into_iter().collect();
    let has_id = !exact.is_empty();
    let words = hash(&words(fields));
    if let Some(response) = response {
        exact.push(numbered(&format!("response {response} {words:x}"), counts));
        // Another channel may have a record for each block, with ids of its own.
        for block in &blocks {
            let block = hash(&words_of_blocks(&[*block], |kind| kind != "tool_use"));
            exact.push(numbered(&format!("block\0{response}\0{block:x}"), counts));
        }
    }
    let calls = blocks.iter().map(|block| {
        let block = PayloadFields::parse(block.get());
        let is_use = block.text("type").is_some_and(|kind| kind == "tool_use");
        block.text("tool_id").filter(|_| is_use).map(std::borrow::Cow::into_owned)
    });
    // A record that only makes calls is identified by the calls.
    if let Some(calls) = calls.collect::<Option<Vec<_>>>() {
        exact.extend(by_call(&format!("use {}", calls.join(" ")), "", turn, counts));
        // Another channel may have a record for each of them.
        for call in calls.iter().filter(|_| calls.len() > 1) {
            exact.extend(by_call(&format!("use {call}"), "", turn, counts));
        }
        return FactKeys { exact, has_id, has_usage, ..FactKeys::default() };
    }
    let texts = hash(&words_of(fields, |kind| kind != "thinking"));
    let mut alike = vec![format!("words\0{turn}\0{words:x}")];
    if texts != words && fields.items("blocks").len() > 1 {
        alike.push(format!("words\0{turn}\0{texts:x}"));
    }
    let parts = if blocks.len() > 1 { parts(&blocks, turn, counts) } else { Vec::new() };
    FactKeys { exact, alike, parts, has_id, has_usage, ..FactKeys::default() }
}

/// Returns the keys of blocks as messages of their own.
fn parts(blocks: &[&serde_json::value::RawValue], turn: &str, counts: &mut KeyCounts) -> Vec<String> {
    let keys = blocks.iter().flat_map(|block| {
        let fields = PayloadFields::parse(block.get());
        let is_use = fields.text("type").is_some_and(|kind| kind == "tool_use");
        match fields.text("tool_id").filter(|_| is_use) {
            Some(call) => by_call(&format!("use {call}"), "", turn, counts),
            None => vec![format!("words\0{turn}\0{:x}", hash(&words_of_blocks(&[*block], |_| true)))],
        }
    });
    keys.collect()
}

fn of_call(what: &str, fields: &PayloadFields<'_>, turn: &str, counts: &mut KeyCounts) -> FactKeys {
    // The router and the agent report the same call: their reports are counted separately.
    let fidelity = fields.text("fidelity").unwrap_or_default();
    let id = fields.text("call_id");
    let exact = id.map(|id| by_call(&format!("{what} {id}"), &fidelity, turn, counts));
    FactKeys { exact: exact.into_iter().flatten().collect(), ..FactKeys::default() }
}

/// Returns the keys of a call id: the n-th in its turn, and the n-th in its run.
fn by_call(what: &str, apart: &str, turn: &str, counts: &mut KeyCounts) -> Vec<String> {
    let mut number = |turn: &str| {
        let count = counts.entry(format!("{what}\0{apart}\0{turn}")).or_default();
        *count += 1;
        *count
    };
    let in_run = format!("{what} #{}", number(""));
    match turn {
        "" => vec![in_run],
        _ => vec![format!("turn\0{turn}\0{what} #{}", number(turn)), in_run],
    }
}

fn step(fields: &PayloadFields<'_>, turn: &str, is_end: bool, counts: &mut KeyCounts) -> FactKeys {
    let kind = fields.text("kind").unwrap_or_default();
    let call = fields.text("tool_call_id");
    let exact = match (&*kind, call) {
        ("turn", _) => vec![turn_key(turn, is_end)],
        ("approval", Some(call)) => by_call(&format!("approval {call} {is_end}"), "", turn, counts),
        // Channels describe a retry differently.
        ("compaction" | "retry", _) => vec![numbered(&format!("{kind}\0{turn}\0{is_end}"), counts)],
        ("amend", Some(call)) => {
            let content = hash(fields.json_text("result").unwrap_or_default());
            vec![numbered(&format!("amend {call} {content:x}"), counts)]
        }
        _ => {
            let content =
                [fields.json_text("result"), fields.json_text("error")].map(Option::unwrap_or_default);
            let name = fields.text("name").unwrap_or_default();
            let content = hash(&content.join("\0"));
            vec![numbered(&format!("{kind}\0{turn}\0{name}\0{is_end}\0{content:x}"), counts)]
        }
    };
    FactKeys { exact, ..FactKeys::default() }
}

/// Returns the key of the start or the end of a turn.
fn turn_key(turn: &str, is_end: bool) -> String {
    format!("turn\0{turn}\0{is_end}")
}

fn numbered(key: &str, counts: &mut KeyCounts) -> String {
    let count = counts.entry(key.to_owned()).or_default();
    *count += 1;
    format!("{key} #{count}")
}
