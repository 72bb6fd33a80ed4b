//! The overview of a session, for lists.

use std::collections::BTreeMap;

use steno_model::{RunId, Timestamp};

use crate::run_overview::RunOverview;
use crate::{RunHead, SessionRuns};

/// The overview of a session, from the overviews of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOverview {
    /// Its runs.
    pub session: SessionRuns,
    /// Its state: `recording` if one of its runs is, else the state of its own file, else that of the run with the latest event.
    pub state: &'static str,
    /// The provider of the agent.
    pub provider: Option<String>,
    /// The directory that the agent worked in.
    pub project: Option<String>,
    /// The name of its first run.
    pub name: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The start of its own file, else of its first run.
    pub started: Option<Timestamp>,
    /// The end of the run that gives its state.
    pub ended: Option<Timestamp>,
    /// The time of the latest event of all its runs.
    pub last: Option<Timestamp>,
    /// The size of its runs.
    pub size: RunsSize,
    /// The size of the runs below it.
    pub size_below: RunsSize,
}

/// The size of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunsSize {
    /// How many they are.
    pub runs: u64,
    /// How many events they have.
    pub events: u64,
    /// How long their transcripts are.
    pub bytes: u64,
}

impl RunsSize {
    fn of(runs: &[RunId], overviews: &BTreeMap<RunId, RunOverview>) -> Self {
        let mut size = Self { runs: runs.len() as u64, ..Self::default() };
        for overview in runs.iter().filter_map(|run| overviews.get(run)) {
            size.events += overview.summary.as_ref().map_or(0, |summary| summary.events);
            size.bytes += overview.bytes;
        }
        size
    }
}

impl SessionOverview {
    /// Combines the overviews of its runs.
    #[must_use]
    pub fn of(session: SessionRuns, overviews: &BTreeMap<RunId, RunOverview>) -> Self {
        let all: Vec<&RunOverview> =
            session.runs.iter().chain(&session.below).filter_map(|run| overviews.get(run)).collect();
        let shown: Vec<&RunOverview> = session.runs.iter().filter_map(|run| overviews.get(run)).collect();
        let shown = if shown.is_empty() { &all } else { &shown };
        let own = overviews.get(&session.id);
        let first = own.filter(|own| own.summary.is_some()).or_else(|| earliest(shown));
        let judged =
            own.or_else(|| shown.iter().copied().max_by_key(|overview| (overview.last(), overview.head.run)));
        let is_recording = all.iter().any(|overview| overview.state == "recording");
        let head = |part: fn(&RunHead) -> Option<String>| {
            first.into_iter().chain(all.iter().copied()).find_map(|overview| part(&overview.head))
        };
        let summary = first.and_then(|overview| overview.summary.as_ref());
        let last = all
            .iter()
            .copied()
            .max_by_key(|overview| overview.last())
            .and_then(|overview| overview.summary.as_ref());
        Self {
            state: if is_recording { "recording" } else { judged.map_or("empty", |overview| overview.state) },
            provider: head(|head| head.provider.clone()),
            project: head(|head| head.project.clone()),
            name: summary.and_then(|summary| Some(summary.name.as_ref()?.to_text().into_owned())),
            kind: summary.and_then(|summary| Some(summary.kind.as_ref()?.to_text().into_owned())),
            started: summary.and_then(|summary| summary.started_at.clone()),
            ended: judged.and_then(|overview| overview.summary.as_ref()?.ended_at.clone()),
            last: last.and_then(|summary| summary.last_at.clone()),
            size: RunsSize::of(&session.runs, overviews),
            size_below: RunsSize::of(&session.below, overviews),
            session,
        }
    }

    /// Returns when it began, to sort by.
    #[must_use]
    pub fn started_instant(&self) -> Option<jiff::Timestamp> {
        self.started.as_ref()?.instant()
    }

    /// Returns the time of its latest event, to sort by.
    #[must_use]
    pub fn last_instant(&self) -> Option<jiff::Timestamp> {
        self.last.as_ref()?.instant()
    }

    /// Returns the first run to show.
    #[must_use]
    pub fn first_run(&self) -> Option<RunId> {
        self.session.runs.iter().chain(&self.session.below).next().copied()
    }
}

fn earliest<'a>(overviews: &[&'a RunOverview]) -> Option<&'a RunOverview> {
    let dated = overviews.iter().copied().filter(|overview| overview.summary.is_some());
    dated.min_by_key(|overview| (overview.started().is_none(), overview.started(), overview.head.run))
}

#[cfg(test)]
mod tests {
    use steno_model::ExchangeEvent;
    use steno_model::json::RawJson;
    use steno_views::summary::{state_name, summary_of_ends};

    use super::*;

    fn id(number: u32) -> RunId {
        RunId::parse(&format!("{number:08}-0000-4000-8000-000000000000")).unwrap()
    }

    /// A run of one event, at a minute of an hour.
    fn overview(run: u32, minute: u32, is_held: bool) -> RunOverview {
        let line = format!(
            r#"{{"seq":1,"run_id":"{}","type":"run.started","path":"","iteration":0,"timestamp":"2026-06-08T08:{minute:02}:00Z","payload":null}}"#,
            id(run)
        );
        let mut event = ExchangeEvent::parse(line.as_bytes()).unwrap();
        event.payload = RawJson::parse(&format!(r#"{{"name":"n{run}","cwd":"/w/{run}"}}"#)).unwrap();
        let summary = summary_of_ends(&event, &event);
        let state = state_name(Some(&summary), is_held);
        RunOverview { head: RunHead::of(&event), state, bytes: 10, summary: Some(summary), damage: None }
    }

    fn session(runs: &[u32], below: &[u32], overviews: &[RunOverview]) -> SessionOverview {
        let ids = |numbers: &[u32]| numbers.iter().map(|number| id(*number)).collect();
        let session = SessionRuns { id: id(1), runs: ids(runs), below: ids(below) };
        SessionOverview::of(
            session,
            &overviews.iter().map(|overview| (overview.head.run, overview.clone())).collect(),
        )
    }

    #[test]
    fn overview_uses_own_file_for_names_and_all_runs_for_times() {
        let seen =
            session(&[1, 2], &[3], &[overview(1, 20, false), overview(2, 10, false), overview(3, 50, false)]);
        assert_eq!((seen.name.as_deref(), seen.project.as_deref()), (Some("n1"), Some("/w/1")));
        let time = |time: &Option<Timestamp>| time.as_ref().map(ToString::to_string);
        assert_eq!(time(&seen.started).as_deref(), Some("2026-06-08T08:20:00Z"));
        assert_eq!(time(&seen.last).as_deref(), Some("2026-06-08T08:50:00Z"));
        let size = |runs, events, bytes| RunsSize { runs, events, bytes };
        assert_eq!((seen.state, seen.size, seen.size_below), ("open", size(2, 2, 20), size(1, 1, 10)));
    }

    #[test]
    fn overview_without_own_file_uses_the_first_run() {
        let seen = session(&[3, 2], &[], &[overview(2, 10, false), overview(3, 50, false)]);
        assert_eq!((seen.name.as_deref(), seen.project.as_deref()), (Some("n2"), Some("/w/2")));
    }

    #[test]
    fn session_is_recording_while_one_run_is() {
        assert_eq!(session(&[1], &[3], &[overview(1, 1, false), overview(3, 2, true)]).state, "recording");
    }
}
