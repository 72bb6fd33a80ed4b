//! Finds texts: those with the words of a query, or all that a query has to read.

use rusqlite::types::Value;
use steno_model::{RunId, Seq};
use steno_views::digest::TextKind;

use crate::query::{ExitQuery, Query};
use crate::rows::kind_number;
use crate::{Error, Index};

/// A text that a search found, or has to read.
#[derive(Clone, Debug, PartialEq)]
pub struct TextPlace {
    /// The session.
    pub session: RunId,
    /// Its top-level session.
    pub root: RunId,
    /// The run.
    pub run: RunId,
    /// The event.
    pub seq: Seq,
    /// Which block of a message it is.
    pub block: u32,
    /// What it is.
    pub kind: TextKind,
    /// Where its line begins.
    pub offset: u64,
    /// How long its line is.
    pub length: u64,
    /// The checksum of its line.
    pub crc: u32,
    /// How well it matches; smaller is better.
    pub rank: f64,
}

/// A run whose texts a search has to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunToRead {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: RunId,
    /// The top-level session of that.
    pub root: RunId,
    /// How many bytes of whole lines the index knows.
    pub bytes: u64,
    /// The numbers of run and session in the database.
    pub(crate) numbers: (i64, i64),
}

impl Index {
    /// Returns the texts with all words of a query, the best first. Outputs are not among them: they must be read.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn texts_with_words(&self, query: &Query) -> Result<Vec<TextPlace>, Error> {
        let Some(expression) = query.expression() else { return Ok(Vec::new()) };
        let (conditions, mut values) = conditions(query, false);
        values.push(Value::from(expression));
        // What the user wrote is looked for most, and what a tool was given often repeats it.
        let weight = format!(
            "CASE texts.kind WHEN {} THEN 2.0 WHEN {} THEN 1.5 ELSE 1.0 END",
            kind_number(TextKind::Prompt),
            kind_number(TextKind::Answer)
        );
        let statement = format!(
            "SELECT sessions.session, runs.run, texts.seq, texts.block, texts.kind, texts.offset, texts.length, \
             texts.crc, bm25(words, 2.0, 1.0) * {weight} AS rank, sessions.root \
             FROM words JOIN texts ON texts.id = words.rowid JOIN sessions ON sessions.id = texts.session \
             JOIN runs ON runs.id = texts.run {} WHERE {conditions} AND words MATCH ?{} \
             ORDER BY rank, sessions.last_ms DESC, sessions.session, runs.run, texts.seq, texts.block",
            calls(query),
            values.len()
        );
        let failed = self.failed("search");
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        let rows = query.query_map(rusqlite::params_from_iter(values), place).map_err(&failed)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }

    /// Returns all runs with texts, those of earlier sessions first.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn runs_to_read(&self) -> Result<Vec<RunToRead>, Error> {
        let failed = self.failed("list runs");
        let mut query = self
            .connection
            .prepare_cached(
                "SELECT runs.run, sessions.session, sessions.root, runs.bytes, runs.id, sessions.id \
                 FROM runs JOIN sessions ON sessions.id = runs.session \
                 ORDER BY sessions.started_ms, sessions.session, runs.run",
            )
            .map_err(&failed)?;
        let rows = query.query_map([], |row| {
            Ok(RunToRead {
                run: id(row, 0)?,
                session: id(row, 1)?,
                root: id(row, 2)?,
                bytes: row.get::<_, i64>(3)?.cast_unsigned(),
                numbers: (row.get(4)?, row.get(5)?),
            })
        });
        rows.map_err(&failed)?.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }

    /// Returns the texts of a run that a query has to read, in the order of their lines: outputs, or all.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn texts_of_run(
        &self,
        query: &Query,
        run: &RunToRead,
        is_outputs: bool,
    ) -> Result<Vec<TextPlace>, Error> {
        let (conditions, mut values) = conditions(query, is_outputs);
        values.extend([Value::from(run.numbers.1), Value::from(run.numbers.0)]);
        let statement = format!(
            "SELECT texts.seq, texts.block, texts.kind, texts.offset, texts.length, texts.crc FROM texts {} \
             WHERE {conditions} AND texts.session = ?{} AND texts.run = ?{} ORDER BY texts.offset, texts.block",
            calls(query),
            values.len() - 1,
            values.len()
        );
        let failed = self.failed("search");
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        let rows = query.query_map(rusqlite::params_from_iter(values), |row| {
            let line = LineColumns::read(row, 0)?;
            Ok(line.place((run.session, run.root), run.run, 0.0))
        });
        rows.map_err(&failed)?.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }

    /// Returns how many texts of each kind each top-level session has, with the sessions below it.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn text_counts(&self) -> Result<Vec<(RunId, TextKind, u64)>, Error> {
        let failed = self.failed("count texts");
        let mut query = self
            .connection
            .prepare_cached(
                "SELECT sessions.root, text_counts.kind, sum(text_counts.texts) FROM text_counts \
                 JOIN sessions ON sessions.id = text_counts.session GROUP BY sessions.root, text_counts.kind",
            )
            .map_err(&failed)?;
        let rows = query
            .query_map([], |row| Ok((id(row, 0)?, kind(row, 1)?, row.get::<_, i64>(2)?.cast_unsigned())));
        rows.map_err(&failed)?.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }

    /// Returns a number that changes when another connection has changed the database.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn data_version(&self) -> Result<i64, Error> {
        let failed = self.failed("read the version of the content");
        self.connection.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(failed)
    }

    /// Begins to read: until the returned guard is dropped, all answers are those of one moment.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn snapshot(&self) -> Result<impl Drop + use<'_>, Error> {
        self.connection.unchecked_transaction().map_err(self.failed("begin to read"))
    }
}

/// Returns the join with calls, if a query has conditions on them.
fn calls(query: &Query) -> &'static str {
    if query.tool.is_some() || query.path.is_some() || query.exit.is_some() {
        "JOIN calls ON calls.session = texts.session AND calls.number = texts.call"
    } else {
        ""
    }
}

/// Returns the conditions on texts and their calls, with their values.
fn conditions(query: &Query, is_outputs: bool) -> (String, Vec<Value>) {
    let is_read = |kind: TextKind| query.wants(kind) && (!is_outputs || kind == TextKind::Output);
    let kinds: Vec<String> = TextKind::ALL
        .into_iter()
        .filter(|kind| is_read(*kind))
        .map(|kind| kind_number(kind).to_string())
        .collect();
    let mut parts = vec![format!("texts.kind IN ({})", kinds.join(", "))];
    let mut values = Vec::new();
    let mut add = |part: &str, value: Value| {
        values.push(value);
        parts.push(part.replace("??", &format!("?{}", values.len())));
    };
    if let Some(tool) = &query.tool {
        add("instr(lower(calls.tool), ??) > 0", Value::from(tool.to_lowercase()));
    }
    if let Some(path) = &query.path {
        add(
            "EXISTS (SELECT 1 FROM changes WHERE changes.session = calls.session \
             AND changes.call = calls.number AND instr(changes.path, ??) > 0)",
            Value::from(path.clone()),
        );
    }
    match query.exit {
        Some(ExitQuery::Is(code)) => add("calls.exit_code = ??", Value::from(code)),
        Some(ExitQuery::IsNot(code)) => add("calls.exit_code <> ??", Value::from(code)),
        None => {}
    }
    (parts.join(" AND "), values)
}

/// The columns of a text that say where it is.
struct LineColumns {
    seq: Seq,
    block: u32,
    kind: TextKind,
    offset: u64,
    length: u64,
    crc: u32,
}

impl LineColumns {
    /// Reads the columns from this one on.
    fn read(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let seq = row.get::<_, i64>(first)?.cast_unsigned();
        Ok(Self {
            seq: Seq::new(seq).ok_or(rusqlite::Error::InvalidQuery)?,
            block: row.get(first + 1)?,
            kind: kind(row, first + 2)?,
            offset: row.get::<_, i64>(first + 3)?.cast_unsigned(),
            length: row.get::<_, i64>(first + 4)?.cast_unsigned(),
            crc: row.get(first + 5)?,
        })
    }

    fn place(self, (session, root): (RunId, RunId), run: RunId, rank: f64) -> TextPlace {
        let Self { seq, block, kind, offset, length, crc } = self;
        TextPlace { session, root, run, seq, block, kind, offset, length, crc, rank }
    }
}

fn place(row: &rusqlite::Row<'_>) -> rusqlite::Result<TextPlace> {
    let line = LineColumns::read(row, 2)?;
    Ok(line.place((id(row, 0)?, id(row, 9)?), id(row, 1)?, row.get(8)?))
}

fn id(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<RunId> {
    RunId::parse(row.get_ref(column)?.as_str()?).map_err(|_| rusqlite::Error::InvalidQuery)
}

fn kind(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<TextKind> {
    let number: usize = row.get::<_, u32>(column)?.try_into().unwrap_or(usize::MAX);
    TextKind::ALL.get(number).copied().ok_or(rusqlite::Error::InvalidQuery)
}
