//! What is known of one of a session's runs.

use steno_model::json::RawJson;
use steno_model::{EventType, ExchangeEvent, RunId, Seq};

use super::run_summary::RunSummary;
use crate::fields::{PayloadFields, forked_from};

/// What is known of one of a session's runs.
#[derive(Clone, Debug)]
pub struct SessionRun {
    /// Its names, its start and its end.
    pub summary: RunSummary,
    /// The run that it is a fork of.
    pub forked_from: Option<RunId>,
    /// Where its records come from: `disk`, `stream`, `app-server`, ….
    pub channel: Option<String>,
    /// The adapter that made it, like `claude/2`.
    pub adapter: Option<String>,
    /// How many events were folded.
    pub events: u64,
    /// The starts of the run, and what its source carries from each of them on; `None` if the start does not say it.
    pub beginnings: Vec<(Seq, Option<Vec<String>>)>,
    /// The payload of its first `run.started`.
    pub head: Option<RawJson>,
    /// How many of its facts another run has too, by ids or bytes.
    pub matched: u64,
    /// How many of its facts have the same content as one of another run.
    pub alike: u64,
    /// How many of its facts have no match in other runs, on a channel without ids; they are not counted.
    pub unmatched: u64,
}

impl SessionRun {
    /// Counts a fact that was compared with the session by content, if it was.
    pub(crate) fn compare(&mut self, is_there: Option<bool>) {
        match is_there {
            Some(true) => self.alike += 1,
            Some(false) => self.unmatched += 1,
            None => {}
        }
    }

    pub(crate) fn new(id: RunId) -> Self {
        Self {
            summary: RunSummary::new(id),
            forked_from: None,
            channel: None,
            adapter: None,
            events: 0,
            beginnings: Vec::new(),
            head: None,
            matched: 0,
            alike: 0,
            unmatched: 0,
        }
    }

    /// Returns the run's id.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.summary.run_id
    }

    /// Takes the next event of the run.
    pub(crate) fn push(&mut self, event: &ExchangeEvent) {
        self.events += 1;
        self.summary.push(event);
        if event.event_type.known() == Some(EventType::RunStarted) {
            self.begin(event);
        }
    }

    fn begin(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        let source = fields.object("source");
        self.forked_from = self.forked_from.or_else(|| forked_from(&fields));
        let text = |name: &str| source.text(name).map(std::borrow::Cow::into_owned);
        self.channel = self.channel.take().or_else(|| text("channel"));
        self.adapter = text("adapter").or(self.adapter.take());
        let is_list = source.json_text("carries").is_some_and(|list| list.starts_with('['));
        let words = source.items("carries").into_iter();
        let words = words.filter_map(|word| serde_json::from_str(word.get()).ok()).collect();
        self.beginnings.push((event.seq, is_list.then_some(words)));
        if self.head.is_none() && !event.payload.is_null() {
            self.head = Some(event.payload.clone());
        }
    }

    /// Tells whether usage may come before its words.
    pub(crate) fn usage_may_lead(&self) -> bool {
        self.channel.as_deref() == Some("disk")
    }
}

/// Returns the precedence of a channel, the best first.
pub(crate) fn channel_rank(channel: Option<&str>) -> u8 {
    match channel {
        Some("disk") => 0,
        Some("app-server" | "control" | "acp") => 1,
        Some("stream") => 2,
        Some("progress") => 3,
        Some("exec") => 4,
        Some(_) | None => 5,
    }
}
