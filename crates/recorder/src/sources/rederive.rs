//! Derives runs again from the vault, after an adapter has become newer.

use std::path::Path;
use std::sync::Arc;

use steno_journal::Error as JournalError;
use steno_model::RunId;
use steno_vault::{Manifest, Sighting, SourceId};

use super::rederive_plan::{RederivePlan, SourceToRederive, missing_runs, plan_rederive, plan_rederive_runs};
use super::rewrite::has_others;
use super::runs::OlderRuns;
use super::source::{OpenSource, Pace, SourceParts, runs_named};
use super::{SourceError, SourceRecorder};

/// Counts of what was derived again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RederiveReport {
    /// Sources that were derived again.
    pub sources: u64,
    /// Runs whose transcript was replaced.
    pub runs: u64,
    /// Runs that are new, or were missing.
    pub runs_new: u64,
    /// Runs whose damaged transcript was replaced on request.
    pub runs_mended: u64,
    /// Runs that were withdrawn because the newer adapter does not give them.
    pub runs_withdrawn: u64,
    /// Runs that stay as they are: damaged, or with events of others that cannot be carried over.
    pub runs_kept: u64,
    /// Runs that stay as they are because the vault does not have their source.
    pub runs_without_evidence: u64,
    /// Events that were written.
    pub events: u64,
    /// Events of others that were carried over.
    pub events_carried: u64,
    /// Sources that were skipped because another process holds them.
    pub sources_held: u64,
    /// Sources that could not be derived again; they are retried.
    pub sources_failed: u64,
    /// Sources that remained when the operation was stopped.
    pub sources_left: u64,
}

/// Receives the progress of deriving again.
pub trait RederiveProgress {
    /// It begins.
    fn begin(&mut self, _awaiting: &RederivePlan) {}

    /// A source is next.
    fn next(&mut self, _source: &SourceToRederive) {}

    /// A source is done, or was skipped.
    fn done(&mut self, _source: &SourceToRederive) {}

    /// A source could not be derived again.
    fn failed(&mut self, source: &SourceToRederive, error: &SourceError);

    /// Tells whether to stop before the next source.
    fn is_enough(&self) -> bool {
        false
    }
}

impl SourceRecorder {
    /// Tells whether something may have to be derived again. Reads no transcript.
    #[must_use]
    pub fn may_need_rederive(&self) -> bool {
        let is_given_up = |id| self.derived.is_given_up(id);
        !self.derived.is_current()
            || self.catalog.has_older(is_given_up)
            || self.catalog.has_missing(self.store(), is_given_up)
    }

    /// Finds what has to be derived again.
    ///
    /// # Errors
    /// An error of the journal or the vault.
    pub fn rederive_plan(&self) -> Result<RederivePlan, SourceError> {
        plan_rederive(self.store(), &self.vault)
    }

    /// Finds what has to be derived again for named runs, including damaged ones.
    ///
    /// # Errors
    /// As [`plan_rederive_runs`].
    pub fn rederive_plan_of(&self, runs: &[RunId]) -> Result<RederivePlan, SourceError> {
        plan_rederive_runs(self.store(), &self.vault, runs)
    }

    /// Derives sources again, one after the other. A failure of one does not affect the others.
    pub fn rederive(&mut self, plan: &RederivePlan, progress: &mut dyn RederiveProgress) -> RederiveReport {
        let mut all =
            RederiveReport { runs_without_evidence: plan.runs_without_evidence, ..RederiveReport::default() };
        progress.begin(plan);
        for (index, source) in plan.sources.iter().enumerate() {
            if progress.is_enough() || self.store().is_paused((self.options.clock)()) {
                all.sources_left = (plan.sources.len() - index) as u64;
                break;
            }
            progress.next(source);
            match self.rederive_one(source) {
                Ok(one) => {
                    self.derived.set_given_up(source.id, one.runs_kept > 0);
                    all.add(one);
                }
                Err(error) if error.is_damage() => {
                    self.derived.set_given_up(source.id, true);
                    all.runs_kept += source.runs.len().max(1) as u64;
                    progress.failed(source, &error);
                }
                Err(error) if error.is_held() => all.sources_held += 1,
                // It was forgotten meanwhile.
                Err(error) if error.is_forgotten() => {}
                Err(error) => {
                    all.sources_failed += 1;
                    progress.failed(source, &error);
                }
            }
            progress.done(source);
        }
        all
    }

    /// Saves that the whole store was derived with the adapters of this program, so that it is not checked again.
    ///
    /// # Errors
    /// An I/O error.
    pub fn note_derived(&mut self) -> std::io::Result<()> {
        let disk = Arc::clone(self.disk());
        self.derived.write(&*disk)
    }

    /// Derives the runs of one source again before it continues.
    pub(super) fn rederive_known(&mut self, manifest: &Manifest) -> Result<(), SourceError> {
        let runs = runs_named(manifest.adapted.as_ref());
        let (id, path) = (manifest.id, manifest.info.path.0.clone());
        let flawed = missing_runs(self.store(), &self.vault, manifest)?;
        let older = runs.clone();
        let plan = SourceToRederive { id, path, bytes: 0, runs, is_given_up: false, older, flawed };
        let done = self.rederive_one(&plan)?;
        self.derived_first.add(done);
        Ok(())
    }

    /// Returns what was derived again since the last call because its source continued.
    pub fn take_derived_first(&mut self) -> RederiveReport {
        std::mem::take(&mut self.derived_first)
    }

    fn rederive_one(&mut self, plan: &SourceToRederive) -> Result<RederiveReport, SourceError> {
        let SourceToRederive { id, path, .. } = plan;
        let Some(_recording) = self.enter(path)? else { return Ok(RederiveReport::default()) };
        let Some(manifest) = self.vault.manifest(*id).map_err(SourceError::vault(path))? else {
            return Ok(RederiveReport::default());
        };
        let mut source = OpenSource::open(SourceParts {
            vault: Arc::clone(&self.vault),
            journal: self.journal.clone(),
            id: *id,
            info: manifest.info,
            seen: Sighting::from(self.now().as_str()),
            is_wanted: true,
            read_bytes: self.options.max_read_bytes,
            pace: Pace::Once,
            entries: None,
            older: OlderRuns::Rewrite,
            flawed: plan.flawed.clone(),
            claims: Arc::default(),
        })?;
        let Some((runs, events_carried)) = source.derive()? else { return Ok(RederiveReport::default()) };
        let given = source.runs();
        let mut done = RederiveReport {
            sources: 1,
            runs,
            runs_new: source.runs_begun(),
            runs_mended: source.runs_mended(),
            events: source.events().0,
            events_carried,
            ..RederiveReport::default()
        };
        let gone: Vec<RunId> =
            plan.older.iter().filter(|run| !given.contains(&run.to_string())).copied().collect();
        for run in gone {
            let is_withdrawn = self.withdraw(*id, run, path)?;
            *(if is_withdrawn { &mut done.runs_withdrawn } else { &mut done.runs_kept }) += 1;
        }
        done.runs_kept += source.runs_refused();
        let known = source.close(&self.now())?;
        self.catalog.put(known);
        Ok(done)
    }

    /// Withdraws a run that the newer adapter does not give, unless it has events of others.
    fn withdraw(&self, source: SourceId, run: RunId, path: &Path) -> Result<bool, SourceError> {
        let failed = |source| SourceError::Journal { path: path.to_owned(), source };
        let is_whole = match has_others(self.store(), run, source) {
            Err(JournalError::NoSuchRun { .. }) => return Ok(true),
            Err(JournalError::Damaged { .. }) => false,
            has_others => !has_others.map_err(failed)?,
        };
        if is_whole {
            self.store().withdraw(run, (self.options.clock)()).map_err(failed)?;
        } else {
            tracing::warn!(%run, "the newer adapter does not produce this run; it is kept because it has events of another program");
        }
        Ok(is_whole)
    }
}

impl RederiveReport {
    /// Adds other counts.
    pub fn add(&mut self, more: Self) {
        let Self { sources, runs, runs_new, runs_withdrawn, runs_kept, runs_without_evidence, .. } = more;
        self.sources += sources;
        self.runs += runs;
        self.runs_new += runs_new;
        self.runs_mended += more.runs_mended;
        self.runs_withdrawn += runs_withdrawn;
        self.runs_kept += runs_kept;
        self.runs_without_evidence += runs_without_evidence;
        self.events += more.events;
        self.events_carried += more.events_carried;
        self.sources_held += more.sources_held;
        self.sources_failed += more.sources_failed;
        self.sources_left += more.sources_left;
    }

    /// Tells whether no source remains.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.sources_held + self.sources_failed + self.sources_left == 0
    }
}
