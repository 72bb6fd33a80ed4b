//! Lists sessions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use rusqlite::OptionalExtension as _;
use steno_model::{RunId, Timestamp};

use crate::calls::{PATH_MATCHES, plain_path};
use crate::rows::{BELOW_COLUMNS, SESSION_COLUMNS, SessionRow, row_below, session_row};
use crate::{Error, Index, SessionFilter};

impl Index {
    /// Returns the top-level sessions that pass a filter, the one with the latest event first.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, Error> {
        let touched = filter.touched.as_deref().map(|path| self.touched_by(path)).transpose()?;
        let mut rows = self.families()?;
        rows.retain(|row| {
            filter.accepts(row) && touched.as_ref().is_none_or(|roots| roots.contains(&row.digest.id))
        });
        let last_ms = |row: &SessionRow| row.digest.last_at.as_ref().and_then(Timestamp::unix_ms);
        rows.sort_by_cached_key(|row| (Reverse(last_ms(row)), row.digest.id));
        Ok(rows)
    }

    /// Returns the title of a session, which may be below another one.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn title(&self, session: RunId) -> Result<Option<String>, Error> {
        let failed = self.failed("find a session");
        let mut query = self
            .connection
            .prepare_cached("SELECT title FROM sessions WHERE session = ?")
            .map_err(&failed)?;
        let title = query.query_row([session.to_string()], |row| row.get(0)).optional().map_err(failed)?;
        Ok(title.flatten())
    }

    /// Returns the ids of the top-level sessions in the order of [`Index::sessions`].
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn latest_sessions(&self) -> Result<Vec<RunId>, Error> {
        let failed = self.failed("list sessions");
        let statement = "SELECT root FROM sessions GROUP BY root HAVING max(session = root) \
             ORDER BY max(last_ms) DESC NULLS LAST, root";
        let mut query = self.connection.prepare_cached(statement).map_err(&failed)?;
        let rows = query.query_map([], |row| row.get::<_, String>(0)).map_err(&failed)?;
        let ids = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
        Ok(ids.iter().filter_map(|id| RunId::parse(id).ok()).collect())
    }

    /// Returns the ids of all sessions, also of those below others.
    ///
    /// # Errors
    /// An error of SQLite.
    pub fn session_ids(&self) -> Result<HashSet<RunId>, Error> {
        let failed = self.failed("list sessions");
        let mut query = self.connection.prepare_cached("SELECT session FROM sessions").map_err(&failed)?;
        let rows = query.query_map([], |row| row.get::<_, String>(0)).map_err(&failed)?;
        let ids = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
        Ok(ids.iter().filter_map(|id| RunId::parse(id).ok()).collect())
    }

    /// Returns every top-level session with the sums of the sessions below it.
    fn families(&self) -> Result<Vec<SessionRow>, Error> {
        let failed = self.failed("list sessions");
        let statement = format!("SELECT {SESSION_COLUMNS} FROM sessions WHERE session = root");
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        let rows = query.query_map([], session_row).map_err(&failed)?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(&failed)?;
        let mut roots: BTreeMap<RunId, SessionRow> = rows.into_iter().map(|row| (row.root, row)).collect();
        // Most sessions are below others, and only sums of them are shown.
        let statement = format!("SELECT {BELOW_COLUMNS} FROM sessions WHERE session <> root");
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        for row in query.query_map([], row_below).map_err(&failed)? {
            let row = row.map_err(&failed)?;
            if let Some(root) = roots.get_mut(&row.root) {
                root.add_below(&row);
            }
        }
        Ok(roots.into_values().collect())
    }

    /// Returns the top-level sessions that changed a file. A path is equal, or ends with `/` and the given one.
    fn touched_by(&self, path: &str) -> Result<HashSet<RunId>, Error> {
        let failed = self.failed("find changed files");
        let path = plain_path(path);
        let statement = format!(
            "SELECT DISTINCT sessions.root FROM changes JOIN sessions ON sessions.id = changes.session \
             WHERE {PATH_MATCHES}"
        );
        let mut query = self.connection.prepare_cached(&statement).map_err(&failed)?;
        let rows = query.query_map([path], |row| row.get::<_, String>(0)).map_err(&failed)?;
        let roots = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
        Ok(roots.iter().filter_map(|root| RunId::parse(root).ok()).collect())
    }
}
