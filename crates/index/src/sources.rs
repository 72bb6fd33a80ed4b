//! The files of agents that sessions were read from: where they were, and what they lost.

use rusqlite::params;

use crate::rows::RunMark;
use crate::update::Update;
use crate::{Error, Index};

/// The columns of a source.
const COLUMNS: &str = "source, inode, size, changed, path, provider, role, session, runs, seen_at, lost, lost_at, \
     lost_generation";

/// A file that was archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// Its id in the vault.
    pub source: String,
    /// How its manifest looked when it was read.
    pub mark: RunMark,
    /// Its path, as bytes. Empty if the manifest could not be read.
    pub path: Vec<u8>,
    /// The provider of the agent, if it was recognised.
    pub provider: Option<String>,
    /// What the file is to its session, as the manifest says.
    pub role: Option<String>,
    /// The agent's id of the session, without the project.
    pub session: Option<String>,
    /// How many runs were made from it.
    pub runs: u64,
    /// When it was last seen, as the manifest says.
    pub seen_at: Option<String>,
    /// The last change after which content was missing.
    pub loss: Option<ContentLoss>,
}

/// A change after which content of a file was missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentLoss {
    /// What happened: `shortened`, `rewritten` or `replaced`.
    pub kind: String,
    /// When it was noticed.
    pub at: Option<String>,
    /// The generation that still has the content.
    pub generation: u32,
}

impl Index {
    /// Returns all sources.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn known_sources(&self) -> Result<Vec<SourceRow>, Error> {
        let failed = self.failed("list sources");
        let statement = format!("SELECT {COLUMNS} FROM sources");
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        let rows = query.query_map([], read_source).map_err(&failed)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }
}

impl Update<'_> {
    /// Puts a source in, or replaces it.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn put_source(&self, source: &SourceRow) -> Result<(), Error> {
        let loss = source.loss.as_ref();
        self.run(
            &format!(
                "INSERT OR REPLACE INTO sources ({COLUMNS}) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
            ),
            params![
                source.source,
                source.mark.inode.cast_signed(),
                source.mark.size.cast_signed(),
                source.mark.changed,
                source.path,
                source.provider,
                source.role,
                source.session,
                source.runs.cast_signed(),
                source.seen_at,
                loss.map(|loss| &loss.kind),
                loss.and_then(|loss| loss.at.as_ref()),
                loss.map(|loss| loss.generation),
            ],
        )
    }

    /// Takes a source out.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn remove_source(&self, source: &str) -> Result<(), Error> {
        self.run("DELETE FROM sources WHERE source = ?1", [source])
    }
}

/// Reads a source from the columns of [`COLUMNS`].
fn read_source(row: &rusqlite::Row<'_>) -> rusqlite::Result<SourceRow> {
    let (kind, at): (Option<String>, Option<String>) = (row.get(10)?, row.get(11)?);
    let generation: Option<u32> = row.get(12)?;
    Ok(SourceRow {
        source: row.get(0)?,
        mark: RunMark {
            inode: row.get::<_, i64>(1)?.cast_unsigned(),
            size: row.get::<_, i64>(2)?.cast_unsigned(),
            changed: row.get(3)?,
        },
        path: row.get(4)?,
        provider: row.get(5)?,
        role: row.get(6)?,
        session: row.get(7)?,
        runs: row.get::<_, i64>(8)?.cast_unsigned(),
        seen_at: row.get(9)?,
        loss: kind.zip(generation).map(|(kind, generation)| ContentLoss { kind, at, generation }),
    })
}
