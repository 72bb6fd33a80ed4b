//! Finds the runs that the index does not know as they are now.

use std::collections::{BTreeMap, HashMap};

use steno_index::{RunMark, RunRow};
use steno_journal::{RunFile, Store};
use steno_model::RunId;
use steno_vault::SourceId;

use crate::{Error, RunHead};

/// The runs that the index does not know as they are now.
pub(super) struct Stale {
    /// The runs that are new or have changed, with how their files look.
    pub(super) changed: BTreeMap<RunId, RunMark>,
    /// The runs that the store does not have any more.
    pub(super) gone: Vec<RunId>,
}

impl Stale {
    /// Compares the files of the store with what the index knows.
    pub(super) fn find(store: &Store, known: &[RunRow]) -> Result<Self, Error> {
        let mut before: HashMap<RunId, RunMark> = known.iter().map(|row| (row.run, row.mark)).collect();
        let mut changed = BTreeMap::new();
        for run in store.runs()? {
            let Some(mark) = mark_of(store, run)? else { continue };
            if before.remove(&run) != Some(mark) {
                changed.insert(run, mark);
            }
        }
        Ok(Self { changed, gone: before.into_keys().collect() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }

    /// Reads the heads of the changed runs.
    pub(super) fn read_heads(&self, store: &Store) -> Result<Vec<RunRow>, Error> {
        let mut rows = Vec::new();
        for (run, mark) in &self.changed {
            if let Some(head) = RunHead::read(store, *run)? {
                rows.push(row_of(head, *mark));
            }
        }
        Ok(rows)
    }
}

/// Returns how the file of a run looks; `None` if it is gone.
fn mark_of(store: &Store, run: RunId) -> Result<Option<RunMark>, Error> {
    let path = RunFile::Transcript(run).path();
    let found = store.disk().identity(&path).map_err(|source| steno_journal::Error::Io {
        doing: "access",
        path,
        source: source.into(),
    })?;
    Ok(found.map(|found| RunMark { inode: found.inode, size: found.size_bytes, changed: found.changed_ns }))
}

fn row_of(head: RunHead, mark: RunMark) -> RunRow {
    RunRow {
        run: head.run,
        parent: head.parent,
        shows: head.session,
        source: head.source.map(|source| source.to_string()),
        provider: head.provider,
        channel: head.channel,
        adapter: head.adapter,
        directory: head.project,
        started: head.started,
        mark,
        bytes: 0,
        seq_last: 0,
        crc: 0,
        state: "empty".to_owned(),
        damage: None,
    }
}

/// Returns the head of a run that the index knows.
pub(crate) fn head_of(row: &RunRow) -> RunHead {
    RunHead {
        run: row.run,
        parent: row.parent,
        session: row.shows,
        source: row.source.as_deref().and_then(SourceId::parse),
        provider: row.provider.clone(),
        channel: row.channel.clone(),
        adapter: row.adapter.clone(),
        project: row.directory.clone(),
        started: row.started.clone(),
    }
}
