//! The files of agents that sessions were read from: where they were, and what they lost.

use rusqlite::params;

use crate::rows::RunMark;
use crate::update::Update;
use crate::{Error, Index};

/// A file that was archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// Its id in the vault.
    pub source: String,
    /// How its manifest looked when it was read.
    pub mark: RunMark,
    /// Its path, as bytes.
    pub path: Vec<u8>,
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
    /// What SQLite says.
    pub fn known_sources(&self) -> Result<Vec<SourceRow>, Error> {
        let failed = self.failed("list sources");
        let mut query = self.connection.prepare_cached("SELECT * FROM sources").map_err(&failed)?;
        let rows = query.query_map([], read_source).map_err(&failed)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
    }
}

impl Update<'_> {
    /// Puts a source in, or replaces it.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn put_source(&self, source: &SourceRow) -> Result<(), Error> {
        let loss = source.loss.as_ref();
        self.run(
            "INSERT OR REPLACE INTO sources \
             (source, inode, size, changed, path, seen_at, lost, lost_at, lost_generation) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                source.source,
                source.mark.inode.cast_signed(),
                source.mark.size.cast_signed(),
                source.mark.changed,
                source.path,
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
    /// What SQLite says.
    pub fn remove_source(&self, source: &str) -> Result<(), Error> {
        self.run("DELETE FROM sources WHERE source = ?1", [source])
    }
}

fn read_source(row: &rusqlite::Row<'_>) -> rusqlite::Result<SourceRow> {
    let generation: Option<u32> = row.get("lost_generation")?;
    let kind: Option<String> = row.get("lost")?;
    let at = row.get("lost_at")?;
    Ok(SourceRow {
        source: row.get("source")?,
        mark: RunMark {
            inode: row.get::<_, i64>("inode")?.cast_unsigned(),
            size: row.get::<_, i64>("size")?.cast_unsigned(),
            changed: row.get("changed")?,
        },
        path: row.get("path")?,
        seen_at: row.get("seen_at")?,
        loss: kind.zip(generation).map(|(kind, generation)| ContentLoss { kind, at, generation }),
    })
}
