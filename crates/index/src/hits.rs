//! Finds texts: by their words in the index, or all that a query has to read.

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
    /// How well it fits; smaller is better.
    pub rank: f64,
}

impl Index {
    /// Returns the texts with all words of a query, the best first. Outputs are not among them: they must be read.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn texts_with_words(&self, query: &Query) -> Result<Vec<TextPlace>, Error> {
        let Some(expression) = query.expression() else { return self.texts_to_read(query, false) };
        let (conditions, mut values) = conditions(query, false);
        values.push(Value::from(expression));
        let statement = format!(
            "SELECT sessions.session, runs.run, texts.seq, texts.block, texts.kind, texts.offset, texts.length, \
             texts.crc, bm25(words, 2.0, 1.0) AS rank, sessions.root \
             FROM words JOIN texts ON texts.id = words.rowid JOIN sessions ON sessions.id = texts.session \
             JOIN runs ON runs.id = texts.run LEFT JOIN calls ON calls.session = texts.session \
             AND calls.number = texts.call WHERE {conditions} AND words MATCH ?{} ORDER BY rank",
            values.len()
        );
        self.places(&statement, values)
    }

    /// Returns the texts that a query has to read, in the order of their runs: outputs, or all.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn texts_to_read(&self, query: &Query, is_outputs: bool) -> Result<Vec<TextPlace>, Error> {
        let (conditions, values) = conditions(query, is_outputs);
        let statement = format!(
            "SELECT sessions.session, runs.run, texts.seq, texts.block, texts.kind, texts.offset, texts.length, \
             texts.crc, 0.0 AS rank, sessions.root \
             FROM texts JOIN sessions ON sessions.id = texts.session JOIN runs ON runs.id = texts.run \
             LEFT JOIN calls ON calls.session = texts.session AND calls.number = texts.call \
             WHERE {conditions} ORDER BY texts.run, texts.offset"
        );
        self.places(&statement, values)
    }

    fn places(&self, statement: &str, values: Vec<Value>) -> Result<Vec<TextPlace>, Error> {
        let failed = self.failed("search");
        let mut query = self.connection.prepare_cached(statement).map_err(&failed)?;
        let rows = query.query_map(rusqlite::params_from_iter(values), place).map_err(&failed)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }

    /// Returns how many texts of a kind each top-level session has, with the sessions below it.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn text_counts(&self, kind: TextKind) -> Result<Vec<(RunId, u64)>, Error> {
        let failed = self.failed("count texts");
        let mut query = self
            .connection
            .prepare_cached(
                "SELECT sessions.root, count(*) FROM texts JOIN sessions ON sessions.id = texts.session \
                 WHERE texts.kind = ?1 GROUP BY sessions.root",
            )
            .map_err(&failed)?;
        let rows = query
            .query_map([kind_number(kind)], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))
            .map_err(&failed)?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
        let count = |(root, count): (String, i64)| Some((RunId::parse(&root).ok()?, count.cast_unsigned()));
        Ok(rows.into_iter().filter_map(count).collect())
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

fn place(row: &rusqlite::Row<'_>) -> rusqlite::Result<TextPlace> {
    let id = |number: usize| -> rusqlite::Result<RunId> {
        RunId::parse(&row.get::<_, String>(number)?).map_err(|_| rusqlite::Error::InvalidQuery)
    };
    let kind: usize = row.get::<_, u32>(4)?.try_into().unwrap_or(usize::MAX);
    Ok(TextPlace {
        session: id(0)?,
        run: id(1)?,
        seq: Seq::new(row.get::<_, i64>(2)?.cast_unsigned()).ok_or(rusqlite::Error::InvalidQuery)?,
        block: row.get(3)?,
        kind: *TextKind::ALL.get(kind).ok_or(rusqlite::Error::InvalidQuery)?,
        offset: row.get::<_, i64>(5)?.cast_unsigned(),
        length: row.get::<_, i64>(6)?.cast_unsigned(),
        crc: row.get(7)?,
        rank: row.get(8)?,
        root: id(9)?,
    })
}
