//! Finds the runs that are missing or out of date in the index.

use std::collections::{BTreeMap, HashMap};

use steno_disk::Identity;
use steno_index::{RunMark, RunRow};
use steno_journal::{RunFiles, Store};
use steno_model::RunId;
use steno_vault::SourceId;

use crate::{Error, RunHead};

/// The runs that are missing or out of date in the index.
pub(super) struct Stale {
    /// The runs that are new or have changed, with how their files look.
    pub(super) changed: BTreeMap<RunId, RunMark>,
    /// The runs that the store no longer has.
    pub(super) gone: Vec<RunId>,
}

impl Stale {
    /// Compares the files of the store with what the index knows.
    pub(super) fn find(files: &[RunFiles], known: &[RunRow]) -> Self {
        let mut before: HashMap<RunId, RunMark> = known.iter().map(|row| (row.run, row.mark)).collect();
        let mut changed = BTreeMap::new();
        for found in files {
            let mark = mark_of_run(found);
            if before.remove(&found.run) != Some(mark) {
                changed.insert(found.run, mark);
            }
        }
        Self { changed, gone: before.into_keys().collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of runs.
    pub(super) fn len(&self) -> usize {
        self.changed.len() + self.gone.len()
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

/// Returns how a file looks.
pub(super) fn mark_of(found: &Identity) -> RunMark {
    RunMark { inode: found.inode, size: found.size_bytes, changed: found.changed_ns }
}

/// Returns how the files of a run look: damage may show in its seals only.
fn mark_of_run(found: &RunFiles) -> RunMark {
    let mark = mark_of(&found.transcript);
    let Some(seals) = &found.seals else { return mark };
    let size = mark.size.saturating_add(seals.size_bytes);
    RunMark { size, changed: mark.changed.max(seals.changed_ns), ..mark }
}

fn row_of(head: RunHead, mark: RunMark) -> RunRow {
    RunRow {
        run: head.run,
        parent: head.parent,
        shows: head.session,
        shows_by_ids: head.session_by_ids,
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
        session_by_ids: row.shows_by_ids,
        source: row.source.as_deref().and_then(SourceId::parse),
        provider: row.provider.clone(),
        channel: row.channel.clone(),
        adapter: row.adapter.clone(),
        project: row.directory.clone(),
        started: row.started.clone(),
    }
}
