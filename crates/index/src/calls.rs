//! Finds calls: those that changed a file, and those that failed.

use std::collections::HashMap;

use rusqlite::types::Value;
use steno_model::{RunId, Seq};
use steno_session::Outcome;
use steno_views::digest::{CallDigest, TextKind};

use crate::rows::{CallRow, kind_number};
use crate::{Error, Index};

/// The condition on a path in `changes`: it is equal to the given one, ends with it, or is below it. Some agents record paths
/// relative to the directory of the session; these are compared with an absolute path as a whole.
pub(crate) const PATH_MATCHES: &str = "(changes.path = ?1 \
     OR instr('/' || changes.path || '/', '/' || ?1 || '/') > 0 \
     OR (substr(?1, 1, 1) = '/' AND substr(changes.path, 1, 1) <> '/' \
         AND instr(sessions.directory || '/' || changes.path || '/', ?1 || '/') = 1))";

/// Selects calls.
#[derive(Clone, Debug)]
pub enum CallFilter {
    /// Those that failed.
    Failed,
    /// Those that changed a file: any, or one with this path.
    Changed(Option<String>),
}

/// Where the line of an event is in a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// The run.
    pub run: RunId,
    /// Where the line begins.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
    /// Its checksum.
    pub crc: u32,
}

/// A call, and where its texts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedCall {
    /// Its top-level session.
    pub root: RunId,
    /// The call. It names only those of its changed files that were selected.
    pub call: CallRow,
    /// The event with its arguments, if it has some.
    pub arguments: Option<EventPlace>,
    /// The event with its output.
    pub output: Option<EventPlace>,
}

/// Returns a path as it is compared: without `./` at the beginning and `/` at the end.
pub(crate) fn plain_path(path: &str) -> &str {
    path.trim_start_matches("./").trim_end_matches('/')
}

impl Index {
    /// Returns the selected calls, the latest first. A call that was copied is returned only for the session that it
    /// was copied from, which started earlier.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn calls(&self, filter: &CallFilter) -> Result<Vec<IndexedCall>, Error> {
        let failed = self.failed("list calls");
        let columns = "sessions.id, sessions.root, calls.number, runs.run, calls.seq, calls.tool, calls.class, \
             calls.outcome, calls.exit_code, calls.at_ms, calls.duration_ms, calls.call_id, sessions.provider, \
             sessions.started_ms";
        let joins = "JOIN sessions ON sessions.id = calls.session JOIN runs ON runs.id = calls.run";
        let (statement, values) = match filter {
            CallFilter::Failed => (
                format!("SELECT {columns}, NULL FROM calls {joins} WHERE calls.outcome = 'failed'"),
                Vec::new(),
            ),
            CallFilter::Changed(path) => {
                let condition = if path.is_some() { PATH_MATCHES } else { "1" };
                let values = path.iter().map(|path| Value::from(plain_path(path).to_owned())).collect();
                let changes =
                    "JOIN changes ON changes.session = calls.session AND changes.call = calls.number";
                (
                    format!("SELECT {columns}, changes.path FROM calls {joins} {changes} WHERE {condition}"),
                    values,
                )
            }
        };
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        let rows =
            query.query_map(rusqlite::params_from_iter::<Vec<Value>>(values), found_call).map_err(&failed)?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
        self.with_places(without_copies(grouped(rows)))
    }

    /// Adds the places of the texts of calls.
    fn with_places(&self, calls: Vec<FoundCall>) -> Result<Vec<IndexedCall>, Error> {
        let (mut indexed, mut places) = (Vec::new(), CallPlaces::new());
        let mut session = None;
        for found in calls {
            if session != Some(found.session) {
                places = self.call_places(found.session)?;
                session = Some(found.session);
            }
            let place = |kind| places.get(&(found.number, kind_number(kind))).copied();
            let (arguments, output) = (place(TextKind::Command), place(TextKind::Output));
            // A call that was copied has neither.
            if arguments.is_some() || output.is_some() {
                indexed.push(IndexedCall { root: found.root, call: found.call, arguments, output });
            }
        }
        indexed.sort_by_key(|found| std::cmp::Reverse((found.call.at_ms, found.call.at)));
        Ok(indexed)
    }

    fn call_places(&self, session: i64) -> Result<CallPlaces, Error> {
        let failed = self.failed("list texts");
        let mut query = self
            .connection
            .prepare_cached(
                "SELECT texts.call, texts.kind, runs.run, texts.offset, texts.length, texts.crc FROM texts \
                 JOIN runs ON runs.id = texts.run WHERE texts.session = ?1 AND texts.call IS NOT NULL",
            )
            .map_err(&failed)?;
        let rows = query.query_map([session], |row| {
            let place = EventPlace {
                run: id(row, 2)?,
                offset: row.get::<_, i64>(3)?.cast_unsigned(),
                length: row.get::<_, i64>(4)?.cast_unsigned(),
                crc: row.get(5)?,
            };
            Ok(((row.get(0)?, row.get(1)?), place))
        });
        rows.map_err(&failed)?.collect::<rusqlite::Result<_>>().map_err(failed)
    }
}

/// The places of texts, by the number of their call and their kind.
type CallPlaces = HashMap<(i64, i64), EventPlace>;

struct FoundCall {
    session: i64,
    number: i64,
    root: RunId,
    call: CallRow,
    provider: Option<String>,
    started_ms: Option<i64>,
}

/// Removes calls that the same agent made at the same time with the same id in a session that started earlier. Some forks
/// repeat the calls of another session and do not say so.
fn without_copies(calls: Vec<FoundCall>) -> Vec<FoundCall> {
    let mut firsts = HashMap::new();
    for found in &calls {
        if let Some(key) = found.key() {
            let session = (found.started_ms, found.root);
            let first = firsts.entry(key).or_insert(session);
            *first = session.min(*first);
        }
    }
    let is_copy = |found: &FoundCall| {
        let first = found.key().and_then(|key| firsts.get(&key));
        first.is_some_and(|(_, root)| *root != found.root)
    };
    let copies: Vec<bool> = calls.iter().map(is_copy).collect();
    calls.into_iter().zip(copies).filter(|(_, is_copy)| !is_copy).map(|(found, _)| found).collect()
}

impl FoundCall {
    /// Returns what a copy of it has too.
    fn key(&self) -> Option<(Option<&str>, &str, i64, &str)> {
        let digest = &self.call.digest;
        Some((self.provider.as_deref(), digest.id.as_deref()?, self.call.at_ms?, &*digest.tool))
    }
}

/// Puts the paths of each call together, and the calls of each session.
fn grouped(rows: Vec<FoundCall>) -> Vec<FoundCall> {
    let mut rows = rows;
    rows.sort_by_key(|row| (row.session, row.number));
    let mut calls: Vec<FoundCall> = Vec::new();
    for row in rows {
        match calls.last_mut() {
            Some(last) if (last.session, last.number) == (row.session, row.number) => {
                last.call.digest.paths.extend(row.call.digest.paths);
            }
            Some(_) | None => calls.push(row),
        }
    }
    calls
}

fn found_call(row: &rusqlite::Row<'_>) -> rusqlite::Result<FoundCall> {
    let seq = Seq::new(row.get::<_, i64>(4)?.cast_unsigned()).ok_or(rusqlite::Error::InvalidQuery)?;
    let digest = CallDigest {
        id: row.get(11)?,
        tool: row.get(5)?,
        class: row.get(6)?,
        exit_code: row.get(8)?,
        duration_ms: row.get(10)?,
        paths: row.get::<_, Option<String>>(14)?.into_iter().collect(),
    };
    let outcome = outcome_of(&row.get::<_, String>(7)?);
    let call = CallRow { at: (id(row, 3)?, seq), at_ms: row.get(9)?, outcome, digest };
    Ok(FoundCall {
        session: row.get(0)?,
        number: row.get(2)?,
        root: id(row, 1)?,
        call,
        provider: row.get(12)?,
        started_ms: row.get(13)?,
    })
}

fn id(row: &rusqlite::Row<'_>, number: usize) -> rusqlite::Result<RunId> {
    RunId::parse(&row.get::<_, String>(number)?).map_err(|_| rusqlite::Error::InvalidQuery)
}

/// Returns the outcome with a name.
fn outcome_of(name: &str) -> Outcome {
    match name {
        "open" => Outcome::Open,
        "ok" => Outcome::Ok,
        "failed" => Outcome::Failed,
        "denied" => Outcome::Denied,
        "interrupted" => Outcome::Interrupted,
        _ => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(root: u32, started_ms: i64, id: Option<&str>, at_ms: Option<i64>) -> FoundCall {
        let root = RunId::parse(&format!("{root:08}-0000-4000-8000-000000000000")).unwrap();
        let digest = CallDigest {
            id: id.map(str::to_owned),
            tool: "Bash".to_owned(),
            class: None,
            exit_code: Some(1),
            duration_ms: None,
            paths: Vec::new(),
        };
        let call = CallRow { at: (root, Seq::FIRST), at_ms, outcome: Outcome::Failed, digest };
        let (provider, started_ms) = (Some("claude".to_owned()), Some(started_ms));
        FoundCall { session: started_ms.unwrap(), number: 0, root, call, provider, started_ms }
    }

    #[track_caller]
    fn check(calls: Vec<FoundCall>, want: &[i64]) {
        let kept: Vec<i64> = without_copies(calls).iter().map(|found| found.session).collect();
        assert_eq!(kept, want);
    }

    #[test]
    fn copied_call_is_kept_only_for_the_session_that_started_first() {
        let call = |root, started_ms| found(root, started_ms, Some("c1"), Some(50));
        check(vec![call(1, 70), call(2, 40), call(3, 80)], &[40]);
        // The first session has the call twice.
        check(vec![call(1, 40), call(2, 70), call(1, 40)], &[40, 40]);
    }

    #[test]
    fn calls_without_an_id_or_at_other_times_are_no_copies() {
        let call = |root, id, at_ms| found(root, i64::from(root), id, at_ms);
        check(vec![call(1, None, Some(50)), call(2, None, Some(50))], &[1, 2]);
        check(vec![call(1, Some("c1"), Some(50)), call(2, Some("c1"), Some(51))], &[1, 2]);
        check(vec![call(1, Some("c1"), Some(50)), call(2, Some("c2"), Some(50))], &[1, 2]);
        check(vec![call(1, Some("c1"), None), call(2, Some("c1"), None)], &[1, 2]);
        let mut other = call(2, Some("c1"), Some(50));
        other.provider = Some("codex".to_owned());
        check(vec![call(1, Some("c1"), Some(50)), other], &[1, 2]);
    }
}
