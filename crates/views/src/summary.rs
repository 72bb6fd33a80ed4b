//! The summary of a run for lists.

use serde::{Serialize, Serializer};
use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent, RunId, Seq, Timestamp, Word};

use crate::State;
use crate::wire::Verbatim;
use steno_session::{PayloadFields, session_run_id};

/// One run in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run_id: RunId,
    /// The run that called it.
    pub parent_run_id: Option<RunId>,
    /// The session that it records from outside.
    pub session_run_id: Option<RunId>,
    /// The provider of the agent: `source.provider` of `run.started`, else the part of `source.adapter` before `/`.
    pub provider: Option<JsonString>,
    /// Its name, from `run.started`.
    pub name: Option<JsonString>,
    /// Its kind, from `run.started`.
    pub kind: Option<JsonString>,
    /// Its state; a `run.started` after a `run.completed` opens it again.
    pub state: State,
    /// The time of its first event.
    pub started_at: Option<Timestamp>,
    /// The time of `run.completed`; ends are never inferred.
    pub ended_at: Option<Timestamp>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
    /// The number of its last event.
    pub seq_last: Option<Seq>,
    /// How many events it has, by their numbers: a file has no gaps, which `verify` checks.
    pub events: u64,
}

/// Returns the state of a run in a word, from its first and last event and whether it is being recorded.
#[must_use]
pub fn state_name(summary: Option<&RunSummary>, is_held: bool) -> &'static str {
    match summary.map(|summary| summary.state) {
        _ if is_held => "recording",
        None => "empty",
        Some(State::Completed) => "completed",
        Some(State::Failed) => "failed",
        Some(State::Open) => "open",
    }
}

impl RunSummary {
    /// Summarises a run from its first and its last event alone.
    ///
    /// This equals folding all events, except for two things that only lines between can have: a `run.completed` that is not
    /// the last line, and a parent or session that the first line does not name.
    #[must_use]
    pub fn from_ends(first: &ExchangeEvent, last: &ExchangeEvent) -> Self {
        let mut builder = SummaryBuilder::new(first.run_id);
        builder.push(first);
        builder.push(last);
        builder.finish()
    }
}

/// Folds events of one run, in order, into a [`RunSummary`]. Events may be left out between the first and the last.
#[derive(Clone)]
pub struct SummaryBuilder {
    summary: RunSummary,
    seq_first: Option<Seq>,
}

impl SummaryBuilder {
    /// Begins the summary of `run_id`; events of other runs are left out.
    #[must_use]
    pub fn new(run_id: RunId) -> Self {
        let summary = RunSummary {
            run_id,
            parent_run_id: None,
            session_run_id: None,
            provider: None,
            name: None,
            kind: None,
            state: State::Open,
            started_at: None,
            ended_at: None,
            last_at: None,
            seq_last: None,
            events: 0,
        };
        Self { summary, seq_first: None }
    }

    /// Takes the next event of the run.
    pub fn push(&mut self, event: &ExchangeEvent) {
        let summary = &mut self.summary;
        if event.run_id != summary.run_id {
            return;
        }
        let seq_first = *self.seq_first.get_or_insert(event.seq);
        summary.events = event.seq.get().saturating_sub(seq_first.get()).saturating_add(1);
        summary.seq_last = Some(event.seq);
        summary.parent_run_id = summary.parent_run_id.or(event.parent_run_id);
        summary.session_run_id = summary.session_run_id.or_else(|| session_run_id(event));
        summary.started_at.get_or_insert_with(|| event.timestamp.clone());
        summary.last_at = Some(event.timestamp.clone());
        match &event.event_type {
            Word::Known(EventType::RunStarted) => self.run_started(event),
            Word::Known(EventType::RunCompleted) => self.run_completed(event),
            Word::Known(
                EventType::StepStarted
                | EventType::StepCompleted
                | EventType::CallWorkflowStarted
                | EventType::CallWorkflowCompleted
                | EventType::MessageUser
                | EventType::MessageAssistant
                | EventType::ToolCall
                | EventType::ToolResult,
            )
            | Word::Unknown(_) => {}
        }
    }

    /// Returns the summary of what has been pushed.
    #[must_use]
    pub fn finish(self) -> RunSummary {
        self.summary
    }

    fn run_started(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        let summary = &mut self.summary;
        summary.provider = provider_of(&fields.object("source")).or(summary.provider.take());
        summary.name = fields.string("name").or(summary.name.take());
        summary.kind = fields.string("kind").or(summary.kind.take());
        (summary.state, summary.ended_at) = (State::Open, None);
    }

    fn run_completed(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        let summary = &mut self.summary;
        summary.state = if fields.error().is_some() { State::Failed } else { State::Completed };
        summary.ended_at = Some(event.timestamp.clone());
        summary.name = summary.name.take().or_else(|| fields.string("name"));
        summary.kind = summary.kind.take().or_else(|| fields.string("kind"));
    }
}

/// Returns the provider of a run's source.
#[must_use]
pub fn provider_of(source: &PayloadFields<'_>) -> Option<JsonString> {
    source.string("provider").or_else(|| {
        let adapter = source.string("adapter")?;
        let text = adapter.to_text();
        Some(text.split('/').next().unwrap_or(&text).into())
    })
}

impl Serialize for RunSummary {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Self { run_id, parent_run_id, session_run_id, state, seq_last, events, .. } = *self;
        RunSummaryExport {
            run_id,
            parent_run_id,
            session_run_id,
            provider: Verbatim::text(self.provider.as_ref()),
            name: Verbatim::text(self.name.as_ref()),
            kind: Verbatim::text(self.kind.as_ref()),
            state,
            started_at: Verbatim::time(self.started_at.as_ref()),
            ended_at: Verbatim::time(self.ended_at.as_ref()),
            last_at: Verbatim::time(self.last_at.as_ref()),
            seq_last,
            events,
        }
        .serialize(out)
    }
}

/// The summary's fields on the wire; null where something is not known.
#[derive(Serialize)]
struct RunSummaryExport<'a> {
    run_id: RunId,
    parent_run_id: Option<RunId>,
    session_run_id: Option<RunId>,
    provider: Option<Verbatim<'a>>,
    name: Option<Verbatim<'a>>,
    kind: Option<Verbatim<'a>>,
    state: State,
    started_at: Option<Verbatim<'a>>,
    ended_at: Option<Verbatim<'a>>,
    last_at: Option<Verbatim<'a>>,
    seq_last: Option<Seq>,
    events: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{events, run_id, time};

    fn fold(events: &[ExchangeEvent]) -> RunSummary {
        let mut builder = SummaryBuilder::new(run_id(1));
        for event in events {
            builder.push(event);
        }
        builder.finish()
    }

    fn at(seq: u64) -> Timestamp {
        Timestamp::parse(&time(seq)).unwrap()
    }

    /// Checks the fold, and that the first and the last event alone say the same.
    #[track_caller]
    fn check(lines: &[&str], want: &RunSummary) {
        let events = events(1, lines);
        assert_eq!(&fold(&events), want, "{lines:?}");
        let ends = RunSummary::from_ends(&events[0], &events[events.len() - 1]);
        assert_eq!(&ends, want, "ends of {lines:?}");
    }

    fn summary(state: State, events: u64) -> RunSummary {
        RunSummary {
            state,
            started_at: Some(at(1)),
            last_at: Some(at(events)),
            ended_at: (state != State::Open).then(|| at(events)),
            seq_last: Seq::new(events),
            events,
            ..SummaryBuilder::new(run_id(1)).finish()
        }
    }

    #[test]
    fn run_is_open_until_its_end_is_recorded() {
        check(&["run"], &summary(State::Open, 1));
        check(&["run", "> a", "< a error=boom"], &summary(State::Open, 3));
        check(&["run", "u -", "end"], &summary(State::Completed, 3));
        let failed =
            RunSummary { name: Some("".into()), kind: Some("command".into()), ..summary(State::Failed, 2) };
        check(&["run", "end - error=exit_1"], &failed);
        check(&["future.type", "> a"], &summary(State::Open, 2));
    }

    #[test]
    fn restarted_run_is_open() {
        assert_eq!(fold(&events(1, &["run", "end", "run"])), summary(State::Open, 3));
    }

    #[test]
    fn names_come_from_the_first_event_that_has_them() {
        let want = RunSummary {
            name: Some("review".into()),
            kind: Some("session".into()),
            parent_run_id: Some(run_id(7)),
            session_run_id: Some(run_id(9)),
            ..summary(State::Completed, 3)
        };
        check(
            &["run - name=review kind=session parent=7 session=9", "u - parent=8", "end - name=x session=8"],
            &want,
        );
    }

    #[test]
    fn events_of_other_runs_are_ignored() {
        assert_eq!(fold(&events(2, &["run", "end"])), SummaryBuilder::new(run_id(1)).finish());
        assert_eq!(SummaryBuilder::new(run_id(1)).finish().events, 0);
    }

    #[track_caller]
    fn check_provider(source: &str, want: Option<&str>) {
        let mut events = events(1, &["run"]);
        let payload = format!(r#"{{"name":"n","kind":"session","source":{source}}}"#);
        events[0].payload = steno_model::json::RawJson::parse(&payload).unwrap();
        assert_eq!(fold(&events).provider, want.map(JsonString::from), "{source}");
    }

    #[test]
    fn provider_falls_back_to_the_adapter() {
        check_provider(r#"{"provider":"claude","adapter":"x/1"}"#, Some("claude"));
        check_provider(r#"{"provider":null,"adapter":"codex/1"}"#, Some("codex"));
        check_provider(r#"{"adapter":"gemini"}"#, Some("gemini"));
        for unknown in ["{}", "null", "[]", r#"{"adapter":7}"#] {
            check_provider(unknown, None);
        }
    }

    #[test]
    fn json_has_every_field() {
        let events = events(1, &["run - name=review kind=workflow", "end"]);
        let want = concat!(
            r#"{"run_id":"00000001-0000-4000-8000-000000000000","parent_run_id":null,"session_run_id":null,"#,
            r#""provider":null,"name":"review","kind":"workflow","state":"completed","#,
            r#""started_at":"2026-06-08T00:00:01Z","ended_at":"2026-06-08T00:00:02Z","#,
            r#""last_at":"2026-06-08T00:00:02Z","seq_last":2,"events":2}"#,
        );
        assert_eq!(serde_json::to_string(&fold(&events)).unwrap(), want);
    }
}
