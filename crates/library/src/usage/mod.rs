//! The usage of all runs of a store, and its rows.

mod columns;
mod table;
#[cfg(test)]
mod tests;
mod windows;

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use steno_journal::{Error as JournalError, Reader, Store};
use steno_model::{ExchangeEvent, RunId};
use steno_session::usage::UsageBuilder;
use steno_vault::{Error as VaultError, Manifest, Role, Vault};

use crate::in_order::in_order;
use crate::read_session::read_all;
use crate::{Error, Library};

pub use columns::UsageColumn;
pub(crate) use table::unpriced_models;
pub use table::{AgentCost, UsageFilter, UsageQuery, UsageRow, UsageTable};
pub use windows::{WINDOW_MS, window_at};

/// How much of the end of a file is read for its last line.
const LAST_LINE_BYTES_MAX: u64 = 1024 * 1024;

/// How many runs were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// All of them.
    pub total: u64,
    /// Runs that could not be read completely.
    pub damaged: u64,
}

impl Library {
    /// Adds the usage of every run of the store to the builder, while `is_wanted` is true.
    ///
    /// A run that cannot be read is logged and marked as incomplete; the others are still read. Runs of files that end inside a
    /// record are marked too.
    ///
    /// # Errors
    /// If the store cannot list its runs.
    pub fn usage(
        &self,
        builder: &mut UsageBuilder,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<RunCounts, Error> {
        let store = self.store()?;
        let mut read = RunCounts::default();
        let relations = self.relations()?;
        let (merged, alone): (Vec<RunId>, Vec<RunId>) =
            store.runs()?.into_iter().partition(|run| relations.has_runs_by_ids(relations.owner(*run)));
        let take = |run: RunRead| {
            for event in &run.events {
                builder.push(event);
            }
            match run.end {
                Ok(()) => read.total += 1,
                // It was deleted meanwhile.
                Err(JournalError::NoSuchRun { .. }) => {}
                Err(error) => {
                    read.total += 1;
                    read.damaged += 1;
                    tracing::warn!("cannot read all usage of run {}: {error}", run.id);
                    builder.mark_incomplete(run.id);
                }
            }
            is_wanted()
        };
        in_order(&alone, |run| RunRead::of(store, *run, is_wanted), take);
        let sessions: BTreeSet<RunId> = merged.iter().map(|run| relations.owner(*run)).collect();
        for session in sessions.into_iter().take_while(|_| is_wanted()) {
            self.session_usage(session, builder, &mut read)?;
        }
        for run in self.torn_runs()? {
            builder.mark_incomplete(run);
        }
        Ok(read)
    }

    /// Adds the usage of a session whose runs have no id of a turn or a response in common.
    fn session_usage(
        &self,
        session: RunId,
        builder: &mut UsageBuilder,
        read: &mut RunCounts,
    ) -> Result<(), Error> {
        let (store, relations) = (self.store()?, self.relations()?);
        let mut whole = Vec::new();
        for run in relations.runs_of(session) {
            match read_all(store, vec![run], relations) {
                Ok(events) => whole.extend(events),
                Err(Error::Journal(JournalError::NoSuchRun { .. })) => continue,
                Err(error) => {
                    read.damaged += 1;
                    tracing::warn!("cannot read all usage of run {run}: {error}");
                    builder.mark_incomplete(run);
                }
            }
            read.total += 1;
        }
        builder.push_session(session, whole);
        Ok(())
    }

    /// Sets the titles of rows that are grouped by session, from the index.
    ///
    /// # Errors
    /// An error of the index or the system.
    pub fn set_titles(&self, table: &mut UsageTable) -> Result<(), Error> {
        let id_of = |row: &UsageRow| {
            let (_, id) = row.group.iter().find(|(column, _)| *column == UsageColumn::Session)?;
            RunId::parse(id).ok()
        };
        if table.rows.iter().any(|row| id_of(row).is_some()) {
            let index = self.indexed()?;
            for row in &mut table.rows {
                row.title = id_of(row).map(|id| index.title(id)).transpose()?.flatten();
            }
        }
        Ok(())
    }

    /// Returns the runs of stored files that end inside a record. Unreadable sources are skipped; `steno verify` reports them.
    fn torn_runs(&self) -> Result<Vec<RunId>, Error> {
        let vault = self.vault()?;
        let sources = vault.sources().unwrap_or_default().into_iter();
        let manifests = sources.filter_map(|id| vault.manifest(id).ok().flatten());
        let torn = manifests.filter(|manifest| is_torn(vault, manifest).unwrap_or(false));
        let runs = torn.flat_map(|manifest| manifest.adapted.into_iter().flat_map(|adapted| adapted.runs));
        Ok(runs.filter_map(|run| RunId::parse(&run).ok()).collect())
    }
}

fn is_torn(vault: &Vault, manifest: &Manifest) -> Result<bool, VaultError> {
    let ends_in =
        |ending: &str| manifest.info.path.0.extension().is_some_and(|extension| extension == ending);
    let is_packed = ends_in("zst");
    let Some(last) = manifest.generation_last().filter(|_| manifest.info.role == Role::Transcript) else {
        return Ok(false);
    };
    let len = vault.len(manifest, last)?;
    if is_packed || len == 0 || end_of(vault, manifest, last, len - 1)? == b"\n" {
        return Ok(false);
    }
    let end = end_of(vault, manifest, last, len.saturating_sub(LAST_LINE_BYTES_MAX))?;
    let line = end.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    // The end of a document of many lines, or of one that is too long to be read here.
    let is_document_end = line == b"}" || (ends_in("json") && line.ends_with(b"}"));
    Ok(!line.is_empty() && !is_document_end && serde_json::from_slice::<IgnoredAny>(line).is_err())
}

fn end_of(vault: &Vault, manifest: &Manifest, generation: u32, from: u64) -> Result<Vec<u8>, VaultError> {
    let mut end = Vec::new();
    vault.read(manifest, generation, from, |_, bytes| {
        end.extend_from_slice(bytes);
        true
    })?;
    Ok(end)
}

/// What was read of a run.
struct RunRead {
    id: RunId,
    /// The events that usage is counted from.
    events: Vec<ExchangeEvent>,
    end: Result<(), JournalError>,
}

impl RunRead {
    fn of(store: &Store, id: RunId, is_wanted: &dyn Fn() -> bool) -> Self {
        let mut events = Vec::new();
        let end = read_run(store, id, is_wanted, &mut events);
        Self { id, events, end }
    }
}

fn read_run(
    store: &Store,
    run: RunId,
    is_wanted: &dyn Fn() -> bool,
    events: &mut Vec<ExchangeEvent>,
) -> Result<(), JournalError> {
    let mut reader = Reader::open(store, run)?.until_now()?;
    while is_wanted()
        && let Some(event) = reader.read_next_of(UsageBuilder::wants_line)?
    {
        events.push(event);
    }
    Ok(())
}
