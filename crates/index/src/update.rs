//! Puts runs and sessions into the index, and takes them out.

use std::collections::HashMap;

use rusqlite::{Transaction, TransactionBehavior, params};
use steno_model::{RunId, Seq, Timestamp};
use steno_session::usage::Dollars;
use steno_views::digest::TextKind;

use crate::rows::{
    CallRow, IndexedSession, RunRow, SESSION_COLUMNS, TextRow, kind_number, numbers_of, outcome_name,
};
use crate::{Error, Index, family_usage, used_by_model};

/// The columns of a run.
const RUN_COLUMNS: &str = "run, parent, shows, source, provider, channel, adapter, directory, started_at, inode, \
     size, changed, bytes, seq_last, crc, state, damage, shows_by_ids";

/// A transaction that brings the index up to date. Dropped without [`Update::commit`], it changes nothing.
pub struct Update<'a> {
    transaction: Transaction<'a>,
    index: &'a Index,
}

/// The identity of a text row: the same text of an unchanged line need not be indexed again.
#[derive(PartialEq, Eq, Hash)]
struct TextKey {
    run: i64,
    seq: i64,
    block: u32,
    kind: i64,
    offset: i64,
    crc: u32,
}

impl Index {
    /// Begins an update. Waits while another process updates.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn update(&self) -> Result<Update<'_>, Error> {
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
            .map_err(self.failed("begin an update"))?;
        Ok(Update { transaction, index: self })
    }

    /// Returns all runs, in the order of their ids.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn known_runs(&self) -> Result<Vec<RunRow>, Error> {
        let failed = self.failed("list runs");
        let statement = format!("SELECT {RUN_COLUMNS} FROM runs ORDER BY run");
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        let rows = query.query_map([], read_run).map_err(&failed)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }
}

impl Update<'_> {
    /// Puts a run in, or replaces it.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn put_run(&self, run: &RunRow) -> Result<(), Error> {
        let id = |id: Option<RunId>| id.map(|id| id.to_string());
        self.run(
            "INSERT INTO runs (run, parent, shows, source, provider, channel, adapter, directory, started_at, inode, \
             size, changed, bytes, seq_last, crc, state, damage, shows_by_ids) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) \
             ON CONFLICT (run) DO UPDATE SET parent = ?2, shows = ?3, source = ?4, provider = ?5, channel = ?6, \
             adapter = ?7, directory = ?8, started_at = ?9, inode = ?10, size = ?11, changed = ?12, bytes = ?13, \
             seq_last = ?14, crc = ?15, state = ?16, damage = ?17, shows_by_ids = ?18",
            params![
                run.run.to_string(),
                id(run.parent),
                id(run.shows),
                run.source,
                run.provider,
                run.channel,
                run.adapter,
                run.directory,
                run.started.as_ref().map(ToString::to_string),
                signed(run.mark.inode),
                signed(run.mark.size),
                run.mark.changed,
                signed(run.bytes),
                signed(run.seq_last),
                run.crc,
                run.state,
                run.damage,
                id(run.shows_by_ids),
            ],
        )
    }

    /// Takes a run out.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn remove_run(&self, run: RunId) -> Result<(), Error> {
        self.run("DELETE FROM runs WHERE run = ?1", params![run.to_string()])
    }

    /// Takes a session out, with its calls and texts.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn remove_session(&self, session: RunId) -> Result<(), Error> {
        let Some(number) = self.number_of(session)? else { return Ok(()) };
        self.run("DELETE FROM words WHERE rowid IN (SELECT id FROM texts WHERE session = ?1)", [number])?;
        for table in ["texts", "text_counts", "calls", "changes"] {
            self.run(&format!("DELETE FROM {table} WHERE session = ?1"), [number])?;
        }
        self.run("UPDATE runs SET session = NULL WHERE session = ?1", [number])?;
        self.run("DELETE FROM sessions WHERE id = ?1", [number])
    }

    /// Puts a session in, or replaces it. Its runs must be in the index. Texts that are in the index already are kept.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn put_session(&self, session: &IndexedSession, own_runs: &[RunRow]) -> Result<(), Error> {
        self.put_digest(session)?;
        let Some(number) = self.number_of(session.digest.id)? else { return Ok(()) };
        for run in own_runs {
            self.run("UPDATE runs SET session = ?2 WHERE run = ?1", params![run.run.to_string(), number])?;
        }
        let mut runs = HashMap::new();
        for run in
            session.texts.iter().map(|text| text.at.0).chain(session.calls.iter().map(|call| call.at.0))
        {
            if let std::collections::hash_map::Entry::Vacant(place) = runs.entry(run) {
                place.insert(self.run_number(run)?);
            }
        }
        for table in ["calls", "changes"] {
            self.run(&format!("DELETE FROM {table} WHERE session = ?1"), [number])?;
        }
        for (place, call) in session.calls.iter().enumerate() {
            self.put_call(number, place, runs.get(&call.at.0).copied().unwrap_or(0), call)?;
        }
        self.put_texts(number, &runs, &session.texts)
    }

    fn put_digest(&self, session: &IndexedSession) -> Result<(), Error> {
        let digest = &session.digest;
        let id = |id: Option<RunId>| id.map(|id| id.to_string());
        let text = |time: &Option<Timestamp>| time.as_ref().map(ToString::to_string);
        let ms = |time: &Option<Timestamp>| Some(time.as_ref()?.instant()?.as_millisecond());
        let [input, output, cache_read, cache_write, cache_write_1h, reasoning] =
            numbers_of(digest.usage.map(|used| used.tokens));
        let columns: Vec<&str> = SESSION_COLUMNS.split(',').map(str::trim).collect();
        let values: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
        let sets: Vec<String> = columns
            .iter()
            .zip(&values)
            .skip(1)
            .map(|(column, value)| format!("{column} = {value}"))
            .collect();
        let statement = format!(
            "INSERT INTO sessions ({SESSION_COLUMNS}) VALUES ({}) ON CONFLICT (session) DO UPDATE SET {}",
            values.join(", "),
            sets.join(", ")
        );
        self.run(
            &statement,
            params![
                digest.id.to_string(),
                session.root.to_string(),
                id(digest.parent),
                id(digest.forked_from),
                digest.provider,
                digest.name,
                digest.kind,
                digest.version,
                digest.models.join("\n"),
                digest.title,
                digest.is_own_title,
                digest.directory,
                session.project,
                digest.branch,
                text(&digest.started_at),
                ms(&digest.started_at),
                text(&digest.last_at),
                ms(&digest.last_at),
                digest.state.name(),
                signed(digest.prompts),
                signed(digest.responses),
                signed(digest.calls),
                signed(digest.failures),
                signed(digest.denials),
                input,
                output,
                cache_read,
                cache_write,
                cache_write_1h,
                reasoning,
                digest.usage.map(|used| !used.is_lower_bound),
                used_by_model::to_text(&digest.used_by_model),
                digest.agent_cost.map(Dollars::decimal),
                signed(digest.runs),
                signed(session.events),
                signed(session.bytes),
            ],
        )?;
        self.run(
            "UPDATE sessions SET usage_parts = ?2 WHERE session = ?1",
            params![digest.id.to_string(), session.usage_parts.as_ref().map(family_usage::to_text)],
        )
    }

    fn put_call(&self, session: i64, place: usize, run: i64, call: &CallRow) -> Result<(), Error> {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        self.run(
            "INSERT INTO calls (session, number, run, seq, call_id, tool, class, outcome, exit_code, at_ms, \
             duration_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                session,
                place,
                run,
                number(call.at.1),
                call.digest.id,
                call.digest.tool,
                call.digest.class,
                outcome_name(call.outcome),
                call.digest.exit_code,
                call.at_ms,
                call.digest.duration_ms,
            ],
        )?;
        for path in &call.digest.paths {
            self.run(
                "INSERT OR IGNORE INTO changes (session, call, path) VALUES (?1, ?2, ?3)",
                params![session, place, path],
            )?;
        }
        Ok(())
    }

    fn put_texts(&self, session: i64, runs: &HashMap<RunId, i64>, texts: &[TextRow]) -> Result<(), Error> {
        let mut known = self.texts_of(session)?;
        for text in texts {
            let key = TextKey {
                run: runs.get(&text.at.0).copied().unwrap_or(0),
                seq: number(text.at.1),
                block: text.block,
                kind: kind_number(text.kind),
                offset: signed(text.offset),
                crc: text.crc,
            };
            if known.remove(&key).is_none() {
                self.put_text(session, &key, text)?;
            }
        }
        for id in known.into_values() {
            self.run("DELETE FROM words WHERE rowid = ?1", [id])?;
            self.run("DELETE FROM texts WHERE id = ?1", [id])?;
        }
        self.run("DELETE FROM text_counts WHERE session = ?1", [session])?;
        for kind in TextKind::ALL {
            let count = texts.iter().filter(|text| text.kind == kind).count();
            if let Some(count) = i64::try_from(count).ok().filter(|count| *count > 0) {
                self.run(
                    "INSERT INTO text_counts (session, kind, texts) VALUES (?1, ?2, ?3)",
                    params![session, kind_number(kind), count],
                )?;
            }
        }
        Ok(())
    }

    fn texts_of(&self, session: i64) -> Result<HashMap<TextKey, i64>, Error> {
        let failed = self.index.failed("list texts");
        let mut query = self
            .transaction
            .prepare_cached("SELECT id, run, seq, block, kind, offset, crc FROM texts WHERE session = ?1")
            .map_err(&failed)?;
        let rows = query.query_map([session], |row| {
            let key = TextKey {
                run: row.get(1)?,
                seq: row.get(2)?,
                block: row.get(3)?,
                kind: row.get(4)?,
                offset: row.get(5)?,
                crc: row.get(6)?,
            };
            Ok((key, row.get(0)?))
        });
        rows.map_err(&failed)?.collect::<rusqlite::Result<_>>().map_err(failed)
    }

    fn put_text(&self, session: i64, key: &TextKey, text: &TextRow) -> Result<(), Error> {
        self.run(
            "INSERT INTO texts (session, run, seq, block, kind, call, offset, length, crc) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                session,
                key.run,
                key.seq,
                key.block,
                key.kind,
                text.call.map(signed),
                key.offset,
                signed(text.length),
                key.crc,
            ],
        )?;
        let Some(terms) = text.terms.as_ref().filter(|_| text.kind != TextKind::Output) else {
            return Ok(());
        };
        let id = self.transaction.last_insert_rowid();
        self.run(
            "INSERT INTO words (rowid, terms, parts) VALUES (?1, ?2, ?3)",
            params![id, terms.words, terms.parts],
        )
    }

    /// Sets the top-level session of every session.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn set_roots(&self, root_of: impl Fn(RunId) -> RunId) -> Result<(), Error> {
        let failed = self.index.failed("list sessions");
        let mut query =
            self.transaction.prepare_cached("SELECT id, session, root FROM sessions").map_err(&failed)?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(&failed)?;
        let rows: Vec<(i64, String, String)> = rows.collect::<rusqlite::Result<_>>().map_err(failed)?;
        for (number, session, root) in rows {
            let Ok(session) = RunId::parse(&session) else { continue };
            let now = root_of(session).to_string();
            if now != root {
                self.run("UPDATE sessions SET root = ?2 WHERE id = ?1", params![number, now])?;
            }
        }
        Ok(())
    }

    pub(crate) fn prepare(&self, statement: &str) -> rusqlite::Result<rusqlite::CachedStatement<'_>> {
        self.transaction.prepare_cached(statement)
    }

    pub(crate) fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Error + '_ {
        self.index.failed(doing)
    }

    fn number_of(&self, session: RunId) -> Result<Option<i64>, Error> {
        self.one("SELECT id FROM sessions WHERE session = ?1", session)
    }

    fn run_number(&self, run: RunId) -> Result<i64, Error> {
        Ok(self.one("SELECT id FROM runs WHERE run = ?1", run)?.unwrap_or(0))
    }

    fn one(&self, statement: &str, id: RunId) -> Result<Option<i64>, Error> {
        let failed = self.index.failed("find a row");
        let mut query = self.transaction.prepare_cached(statement).map_err(&failed)?;
        let mut rows = query.query([id.to_string()]).map_err(&failed)?;
        let row = rows.next().map_err(&failed)?;
        row.map(|row| row.get(0)).transpose().map_err(failed)
    }

    pub(crate) fn run(&self, statement: &str, values: impl rusqlite::Params) -> Result<(), Error> {
        let failed = self.index.failed("write");
        let mut query = self.transaction.prepare_cached(statement).map_err(&failed)?;
        query.execute(values).map(|_| ()).map_err(failed)
    }

    /// Makes the update visible to all connections.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn commit(self) -> Result<(), Error> {
        let (index, failed) = (self.index, self.index.failed("commit"));
        self.transaction.commit().map_err(failed)?;
        index.checkpoint_if_long()
    }
}

/// Reads a run from the columns of [`RUN_COLUMNS`].
fn read_run(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunRow> {
    let id = |place: usize| -> rusqlite::Result<Option<RunId>> {
        Ok(row.get_ref(place)?.as_str_or_null()?.and_then(|text| RunId::parse(text).ok()))
    };
    let started = row.get_ref(8)?.as_str_or_null()?;
    Ok(RunRow {
        run: id(0)?.ok_or(rusqlite::Error::InvalidQuery)?,
        parent: id(1)?,
        shows: id(2)?,
        source: row.get(3)?,
        provider: row.get(4)?,
        channel: row.get(5)?,
        adapter: row.get(6)?,
        directory: row.get(7)?,
        started: started.and_then(|text| Timestamp::parse(text).ok()),
        mark: crate::RunMark {
            inode: unsigned(row.get(9)?),
            size: unsigned(row.get(10)?),
            changed: row.get(11)?,
        },
        bytes: unsigned(row.get(12)?),
        seq_last: unsigned(row.get(13)?),
        crc: row.get(14)?,
        state: row.get(15)?,
        damage: row.get(16)?,
        shows_by_ids: id(17)?,
    })
}

/// SQLite's integers are signed; the bits are kept.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

fn number(seq: Seq) -> i64 {
    signed(seq.get())
}
