//! Folds one session for the index: its rows, with the places of its texts.

use std::collections::HashMap;

use steno_index::{CallRow, IndexedSession, RunRow, SessionUsageParts, TextRow, terms};
use steno_journal::{Error as JournalError, Reader, Store};
use steno_model::{RunId, Seq, with_causes};
use steno_session::{Content, EventPosition, RunEvents, Session};
use steno_views::digest::{CallDigest, ListEntry, SessionDigest, TextKind, each_text, entries_beside_calls};
use steno_views::summary::state_name;

use super::project::Projects;
use crate::read_session::fold as fold_runs;
use crate::run_overview::damage_of_ends;
use crate::{Error, Relations};

/// A session as it is now, and how far its runs were read.
pub(super) struct FoldedSession {
    pub(super) runs: Vec<RunRow>,
    pub(super) session: Option<IndexedSession>,
}

/// The place of a line in its transcript.
#[derive(Clone, Copy)]
struct LinePlace {
    offset: u64,
    length: u64,
    crc: u32,
}

/// The lines of a run, by number.
type RunLines = HashMap<RunId, Vec<LinePlace>>;

/// Reads all runs of a session and folds them; `None` if it has none.
pub(super) fn session(
    store: &Store,
    (id, relations): (RunId, &Relations),
    mut runs: Vec<RunRow>,
    projects: &Projects,
) -> Result<Option<FoldedSession>, Error> {
    if runs.is_empty() {
        return Ok(None);
    }
    let (mut read, mut places) = (Vec::new(), RunLines::new());
    for row in &mut runs {
        let (mut events, lines) = read_run(store, row)?;
        relations.name_session(row.run, &mut events);
        if !events.is_empty() {
            read.push(RunEvents { id: row.run, events });
        }
        places.insert(row.run, lines);
    }
    if read.is_empty() {
        return Ok(Some(FoldedSession { runs, session: None }));
    }
    let mut session = fold_runs(id, read, Content::Whole);
    // The ids as recorded: which session a run shows may change later.
    let usage_parts = usage_parts(&session);
    session.rename_children(|run| relations.owner(run));
    for (row, run) in runs.iter_mut().filter_map(|row| {
        let run = session.runs.iter().find(|run| run.id() == row.run)?;
        Some((row, run))
    }) {
        if row.damage.is_none() {
            state_name(Some(&run.summary), false).clone_into(&mut row.state);
        }
    }
    let digest = SessionDigest::of(&session);
    let indexed = IndexedSession {
        project: digest.directory.as_deref().map(|directory| projects.root_of(directory)),
        root: relations.root(id),
        usage_parts,
        events: runs.iter().map(|row| row.seq_last).sum(),
        bytes: runs.iter().map(|row| row.bytes).sum(),
        calls: calls(&session),
        texts: texts(&session, &places),
        digest,
    };
    Ok(Some(FoldedSession { runs, session: Some(indexed) }))
}

/// Reads a run up to its end, or to its first damaged line, and notes how far.
fn read_run(
    store: &Store,
    row: &mut RunRow,
) -> Result<(Vec<steno_model::ExchangeEvent>, Vec<LinePlace>), Error> {
    let (mut events, mut places) = (Vec::new(), Vec::new());
    let mut reader = match Reader::open(store, row.run) {
        Ok(reader) => reader.until_now()?,
        Err(JournalError::NoSuchRun { .. }) => return Ok((events, places)),
        Err(error) => {
            damage(row, "unreadable", &error);
            return Ok((events, places));
        }
    };
    loop {
        let read = reader.read_placed(|offset, line, event| {
            places.push(LinePlace { offset, length: line.len() as u64, crc: crc32fast::hash(line) });
            events.push(event);
        });
        match read {
            Ok(Some(())) => {}
            Ok(None) => break,
            Err(error) => {
                damage(row, "damaged", &error);
                break;
            }
        }
    }
    // The seals say more about damage than a damaged line does.
    if let Some((state, why)) = damage_of_ends(store, row.run)? {
        state.clone_into(&mut row.state);
        row.damage = Some(why);
    }
    if let (Some(place), Some(event)) = (places.last(), events.last()) {
        (row.bytes, row.crc) = (place.offset + place.length + 1, place.crc);
        row.seq_last = event.seq.get();
    }
    Ok((events, places))
}

fn damage(row: &mut RunRow, state: &str, error: &JournalError) {
    state.clone_into(&mut row.state);
    row.damage = Some(with_causes(error));
}

/// Returns what the usage of a session is made of, and the sessions that it started, if one of both matters to others.
fn usage_parts(session: &Session) -> Option<SessionUsageParts> {
    let (parts, children) = (session.usage_parts.clone(), session.linked_sessions());
    (parts.needs_below() || !children.is_empty()).then_some(SessionUsageParts { parts, children })
}

fn calls(session: &Session) -> Vec<CallRow> {
    let call = |call: &steno_session::Call| {
        let at = call.called.unwrap_or(call.at);
        CallRow {
            at: (session.run_of(at), at.seq),
            at_ms: call.time.instant().map(jiff::Timestamp::as_millisecond),
            outcome: call.outcome(),
            digest: CallDigest::of(call),
        }
    };
    let entry = |entry: ListEntry| CallRow {
        at: (session.run_of(entry.at), entry.at.seq),
        at_ms: entry.time.and_then(|time| Some(time.instant()?.as_millisecond())),
        outcome: entry.outcome,
        digest: entry.digest,
    };
    let entries = entries_beside_calls(session).into_iter().map(entry);
    session.calls.iter().map(call).chain(entries).collect()
}

fn texts(session: &Session, places: &RunLines) -> Vec<TextRow> {
    let mut rows = Vec::new();
    each_text(session, |unit, text| {
        let run = session.run_of(unit.at);
        let Some(place) = place_of(places, run, unit.at) else { return };
        rows.push(TextRow {
            at: (run, unit.at.seq),
            block: unit.block,
            kind: unit.kind,
            call: unit.call.map(|call| call.0 as u64),
            offset: place.offset,
            length: place.length,
            crc: place.crc,
            terms: text.filter(|_| unit.kind != TextKind::Output).map(|text| terms(&text)),
        });
    });
    rows
}

fn place_of(places: &RunLines, run: RunId, at: EventPosition) -> Option<LinePlace> {
    let number = usize::try_from(at.seq.get() - Seq::FIRST.get()).ok()?;
    places.get(&run)?.get(number).copied()
}
