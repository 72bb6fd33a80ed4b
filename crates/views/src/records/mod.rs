//! A session as thread, turn and item records (003): a session is a thread, its turns are turns, messages and calls are
//! items. Its events are those of its transcripts.
//!
//! `docs/receipts/README.md` has the mapping as tables. Nothing is inferred: what a source does not say is `None`.

mod items;
mod settings;

use steno_model::records::{ItemKind, ItemRecord, RecordStatus, ThreadRecord, TurnRecord};
use steno_model::{Timestamp, Word};
use steno_session::{EventPosition, PayloadFields, RunNumber, Session, SessionRun, Turn, TurnId, TurnStatus};

pub use settings::Flags;

/// All records of a session.
pub struct SessionRecords {
    /// The session.
    pub thread: ThreadRecord,
    /// Its turns, in order.
    pub turns: Vec<TurnRecord>,
    /// Their items, in order.
    pub items: Vec<ItemRecord>,
    /// What they are made from.
    pub session: Session,
}

impl SessionRecords {
    /// Makes the records of a session.
    #[must_use]
    pub fn of(session: Session) -> Self {
        Self::with_items_of(session, |_| true)
    }

    /// Makes the records of a session with the items of selected turns: a receipt needs those of one.
    #[must_use]
    pub fn with_items_of(session: Session, is_wanted: impl Fn(&Turn) -> bool) -> Self {
        let id = session.id.to_string();
        let mut of_turns: Vec<Vec<ItemRecord>> = session.turns.iter().map(|_| Vec::new()).collect();
        let wanted: Vec<bool> = session.turns.iter().map(is_wanted).collect();
        for (turn, item) in items::all(&session, &wanted) {
            let turn_id = session.turns[turn.0].name.clone();
            of_turns[turn.0].push(ItemRecord { turn_id, ..item });
        }
        let of_turn = |(turn, items): (&Turn, &Vec<ItemRecord>)| turn_record(turn, &id, items);
        let turns: Vec<TurnRecord> = session.turns.iter().zip(&of_turns).map(of_turn).collect();
        let thread = thread_record(&session, id, turns.last());
        let items = of_turns.into_iter().flatten().collect();
        Self { thread, turns, items, session }
    }

    /// Finds turns by name: the one with that id, else those with that provider id.
    #[must_use]
    pub fn turns_named(&self, name: &str) -> Vec<&TurnRecord> {
        let with_id: Vec<&TurnRecord> = self.turns.iter().filter(|turn| turn.id == name).collect();
        let is_called = |turn: &&TurnRecord| turn.provider_id.as_deref() == Some(name);
        if with_id.is_empty() { self.turns.iter().filter(is_called).collect() } else { with_id }
    }

    /// Returns the turn of a record.
    #[must_use]
    pub fn turn_of(&self, record: &TurnRecord) -> Option<(TurnId, &Turn)> {
        let number = self.turns.iter().position(|turn| turn.id == record.id)?;
        Some((TurnId(number), self.session.turns.get(number)?))
    }

    /// Returns the events that a turn's records are made of, in order: its events in every run; events elsewhere about the same
    /// calls; the first event of each run; the starts of the runs that have the turn, up to its last event there; and the
    /// starts of turns whose paths identify this turn.
    #[must_use]
    pub fn lines_of(&self, turn: &Turn) -> Vec<EventPosition> {
        let in_turn = || turn.events.iter().chain(&turn.left_out).copied();
        let mut lines: Vec<EventPosition> = in_turn().chain(turn.others.iter().copied()).collect();
        for (number, head) in self.session.runs.iter().enumerate() {
            let run = RunNumber(number);
            lines.extend(head.summary.seq_first.map(|seq| EventPosition { run, seq }));
            let Some(last) = in_turn().filter(|at| at.run == run).max() else { continue };
            let begun = head.beginnings.iter().map(|(seq, _)| EventPosition { run, seq: *seq });
            lines.extend(begun.filter(|at| *at <= last));
        }
        let path = |turn: &Turn| self.session.steps[turn.step.0].path.to_text().into_owned();
        let own = path(turn);
        let last_in = |lines: &[EventPosition], run| lines.iter().filter(|at| at.run == run).max().copied();
        for other in &self.session.turns {
            let is_before = last_in(&lines, other.at.run).is_some_and(|last| other.at <= last);
            let other_path = path(other);
            // A turn of another run is named after the path that was already taken.
            let gives_name = own.strip_prefix(&other_path).is_some_and(|rest| rest.starts_with('@'));
            if is_before && is_inside(&other_path, &own) || gives_name {
                lines.push(other.at);
            }
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

/// Tells whether a path equals another, or is below it.
fn is_inside(path: &str, other: &str) -> bool {
    let rest = path.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && !other.ends_with('\\'))
}

fn thread_record(session: &Session, id: String, last: Option<&TurnRecord>) -> ThreadRecord {
    let time = |time: &Timestamp| time.as_json().to_text().into_owned();
    let main = session.runs.first();
    let field = |name: &str| {
        let of_run = |run: &SessionRun| {
            let head = run.head.as_ref()?;
            Some(PayloadFields::parse(head.as_str()).text(name)?.into_owned())
        };
        session.runs.iter().find_map(of_run)
    };
    let settings = last.map(|turn| &turn.settings);
    let flags = settings.map(Flags::of).unwrap_or_default();
    ThreadRecord {
        id,
        title: field("title"),
        created_at: main.and_then(|main| main.summary.started_at.as_ref()).map(time),
        updated_at: main.and_then(|main| main.summary.last_at.as_ref()).map(time),
        model: settings.and_then(|settings| settings.model.clone()),
        workspace: field("cwd"),
        mode: settings.and_then(|settings| settings.mode.clone()),
        allow_shell: None,
        trust_mode: flags.trust_mode,
        auto_approve: flags.auto_approve,
        task_id: None,
        latest_turn_id: last.map(|turn| turn.id.clone()),
    }
}

fn turn_record(turn: &Turn, thread: &str, items: &[ItemRecord]) -> TurnRecord {
    let text = |time: &Option<Timestamp>| time.as_ref().map(|time| time.as_json().to_text().into_owned());
    let (started_at, ended_at) = (text(&turn.started_at), text(&turn.ended_at));
    let duration_ms = started_at.as_deref().zip(ended_at.as_deref());
    let is_prompt = |item: &&ItemRecord| item.kind.known() == Some(ItemKind::UserMessage);
    let prompts = items.iter().filter(is_prompt).count() as u64;
    let mut settings = settings::of(turn.settings.as_ref());
    if settings.model.is_none() {
        settings.model = turn.model.as_ref().map(|model| model.to_text().into_owned());
    }
    TurnRecord {
        id: turn.name.clone(),
        provider_id: turn.turn_id.as_ref().map(|id| id.to_text().into_owned()),
        thread_id: thread.to_owned(),
        status: Word::Known(status_of(turn.status)),
        input_summary: items.iter().find(is_prompt).and_then(|item| item.summary.clone()),
        duration_ms: duration_ms.and_then(|(start, end)| milliseconds(start, end)),
        started_at,
        ended_at,
        usage: turn.usage.as_ref().map(|cost| cost.report.clone()),
        usage_is_lower_bound: turn.usage.as_ref().is_some_and(|cost| cost.is_lower_bound),
        error: turn.error.as_ref().map(|error| error.to_text().into_owned()),
        steer_count: Some(prompts.saturating_sub(1)),
        item_ids: items.iter().map(|item| item.id.clone()).collect(),
        settings,
    }
}

fn status_of(status: TurnStatus) -> RecordStatus {
    match status {
        TurnStatus::InProgress => RecordStatus::InProgress,
        TurnStatus::Completed => RecordStatus::Completed,
        TurnStatus::Interrupted => RecordStatus::Interrupted,
        TurnStatus::Failed => RecordStatus::Failed,
    }
}

const NANOSECONDS_IN_MILLISECOND: i128 = 1_000_000;

/// Returns how long it is from one time to another; `None` where one is no time, or the second comes first.
fn milliseconds(start: &str, end: &str) -> Option<u64> {
    // Truncated to milliseconds, also before 1970.
    let unix_ms = |text: &str| {
        Some(Timestamp::parse(text).ok()?.instant()?.as_nanosecond().div_euclid(NANOSECONDS_IN_MILLISECOND))
    };
    u64::try_from(unix_ms(end)? - unix_ms(start)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_truncated_milliseconds() {
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
