//! The summary of a run for lists, from its first and last event.

use steno_model::ExchangeEvent;
use steno_session::{RunSummary, State};

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

/// Summarises a run from its first and its last event alone.
///
/// This equals folding all events, except for two things that only lines between can have: a `run.completed` that is not
/// the last line, and a parent or session that the first line does not name.
#[must_use]
pub fn summary_of_ends(first: &ExchangeEvent, last: &ExchangeEvent) -> RunSummary {
    let mut summary = RunSummary::new(first.run_id);
    summary.push(first);
    summary.push(last);
    summary
}

#[cfg(test)]
mod tests {
    use steno_model::json::JsonString;
    use steno_model::{Seq, Timestamp};

    use super::*;
    use crate::testing::{events, run_id, time};

    fn fold(events: &[ExchangeEvent]) -> RunSummary {
        let mut summary = RunSummary::new(run_id(1));
        for event in events {
            summary.push(event);
        }
        summary
    }

    fn at(seq: u64) -> Timestamp {
        Timestamp::parse(&time(seq)).unwrap()
    }

    /// Checks the fold, and that the first and the last event alone say the same.
    #[track_caller]
    fn check(lines: &[&str], want: &RunSummary) {
        let events = events(1, lines);
        assert_eq!(&fold(&events), want, "{lines:?}");
        let ends = summary_of_ends(&events[0], &events[events.len() - 1]);
        assert_eq!(&ends, want, "ends of {lines:?}");
    }

    fn summary(state: State, events: u64) -> RunSummary {
        RunSummary {
            state,
            started_at: Some(at(1)),
            last_at: Some(at(events)),
            ended_at: (state != State::Open).then(|| at(events)),
            seq_first: Some(Seq::FIRST),
            seq_last: Seq::new(events),
            events,
            ..RunSummary::new(run_id(1))
        }
    }

    #[test]
    fn run_is_open_until_its_end_is_recorded() {
        check(&["run"], &summary(State::Open, 1));
        check(&["run", "> a", "< a error=boom"], &summary(State::Open, 3));
        check(&["run", "u -", "end"], &summary(State::Completed, 3));
        let failed = RunSummary {
            name: Some("".into()),
            kind: Some("command".into()),
            error: Some("exit 1".into()),
            ..summary(State::Failed, 2)
        };
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
        assert_eq!(fold(&events(2, &["run", "end"])), RunSummary::new(run_id(1)));
        assert_eq!(RunSummary::new(run_id(1)).events, 0);
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
