//! Deleting sources for good.
//!
//! The tombstone is written first. A source that has one counts as gone, and whoever comes next completes what a crash
//! has cut short.

use std::sync::{Arc, Mutex, PoisonError};

use steno_disk::{Disk, Identity, LockGuard, StorePath, sync_dir};
use steno_model::ThreadId;

use crate::error::Error;
use crate::gate::ExclusiveGate;
use crate::ids::SourceId;
use crate::name_hash::NameHash;
use crate::names::{self, VaultFile};
use crate::sweep::{self, SweepReport};
use crate::tail_file;
use crate::tombstones::{Exclusion, Reason, SpineTombstone, Tombstone, Tombstones};
use crate::vault::Vault;

/// How often one tries to be alone before the sweep is left to somebody else.
const ALONE_TRIES: usize = 50;

/// What is to be forgotten, all of it or nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgetRequest<'a> {
    /// The sources.
    pub sources: &'a [SourceId],
    /// The threads whose spines go. Their files are for the caller to delete, who holds their locks.
    pub spines: &'a [ThreadId],
    /// What is not to be recorded again: sessions, and pieces of files that they share.
    pub names: &'a [NameHash],
    /// Runs that go. Their files are for the caller to delete ([`Vault::runs_due`]).
    pub runs: &'a [NameHash],
}

/// What forgetting came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgetReport {
    /// The tombstones of the sources, in the order in which they were named.
    pub tombstones: Vec<Tombstone>,
    /// What was swept; `None` when others relied on chunks all the time. What is left then goes with the next sweep.
    pub swept: Option<SweepReport>,
}

/// The tombstones as they were last read, with the file that they were in.
#[derive(Default)]
pub(crate) struct TombstoneCache(Mutex<Option<(Identity, Arc<Tombstones>)>>);

impl TombstoneCache {
    /// Returns the tombstones, and reads them unless they are known.
    pub(crate) fn tombstones(&self, disk: &dyn Disk) -> Result<Arc<Tombstones>, Error> {
        let path = VaultFile::Tombstones.path();
        // Looked at before it is read: what comes in between is read twice at worst.
        let Some(identity) = disk.identity(&path).map_err(Error::io("look at", &path))? else {
            return Ok(Arc::default());
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, tombstones)) = &*known
            && *seen == identity
        {
            return Ok(Arc::clone(tombstones));
        }
        let tombstones = Arc::new(Tombstones::read(disk)?);
        *known = Some((identity, Arc::clone(&tombstones)));
        Ok(tombstones)
    }
}

impl Vault {
    /// Deletes sources for good: their manifests, their tails, and all chunks that nothing else uses. A tombstone stays
    /// of each, and a forgotten source is not written again.
    ///
    /// Packs that running processes write are not affected; what is to go in them goes with a later sweep
    /// ([`Vault::sweep_if_needed`]), and [`Tombstone::is_swept`] tells when it has. A source that was forgotten before is
    /// fine.
    ///
    /// # Errors
    /// [`Error::Locked`] when a source has an owner and [`Error::NoSuchSource`] when there is none: nothing is forgotten
    /// then. [`Error::Busy`] when others forget something just now. After any other error, of a damaged manifest for
    /// one, sources that have a tombstone are gone, and the next sweep completes it.
    pub fn forget(&self, sources: &[SourceId], why: Reason, now: &str) -> Result<ForgetReport, Error> {
        self.forget_all(ForgetRequest { sources, ..ForgetRequest::default() }, why, now)
    }

    /// Deletes sources for good like [`Vault::forget`], and puts the tombstones of spines in place with theirs: whatever
    /// happens then, all of it is forgotten. [`Vault::spines_swept`] is to be told when the spines are gone.
    ///
    /// # Errors
    /// As [`Vault::forget`].
    pub fn forget_all(&self, what: ForgetRequest<'_>, why: Reason, now: &str) -> Result<ForgetReport, Error> {
        let ForgetRequest { sources, spines, names, runs } = what;
        let _changing = self.change_tombstones()?;
        let root = names::root();
        self.disk().make_dir(&root).map_err(Error::io("make", &root))?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        let mut locks = Vec::new();
        for source in sources {
            locks.push(self.lock_source(*source)?);
            if !tombstones.all.iter().any(|tombstone| tombstone.source == *source) {
                tombstones.all.push(self.tombstone(*source, why, now)?);
            }
        }
        for thread in spines {
            tombstones.add_spine(thread, why, now);
        }
        for name in names {
            tombstones.leave_out(Exclusion { name: *name, time: now.to_owned(), why });
        }
        tombstones.runs_due.extend(runs);
        tombstones.write(&**self.disk())?;
        let is_nothing = sources.is_empty() && !tombstones.is_sweep_due();
        let swept = if is_nothing {
            Some(SweepReport::default())
        } else {
            self.sweep_pending(&mut tombstones, ALONE_TRIES)?
        };
        let of =
            |source: &SourceId| tombstones.all.iter().find(|tombstone| tombstone.source == *source).cloned();
        Ok(ForgetReport { tombstones: sources.iter().filter_map(of).collect(), swept })
    }

    /// Completes what was begun with forgetting; `None` when there is nothing to do, or others are in the way.
    ///
    /// # Errors
    /// [`Error::Damaged`] when a manifest cannot be read, so that nobody can know which chunks it names, or what the
    /// system says.
    pub fn sweep_if_needed(&self) -> Result<Option<SweepReport>, Error> {
        if !self.forgotten()?.is_sweep_due() {
            return Ok(None);
        }
        let Some(_changing) = self.lock_tombstones(1)? else { return Ok(None) };
        let mut tombstones = Tombstones::read(&**self.disk())?;
        // Whoever wrote them may have died, or failed, before they were safe: nothing is deleted for their sake alone.
        tombstones.write(&**self.disk())?;
        self.sweep_pending(&mut tombstones, 1)
    }

    /// Tells whether bytes of what was forgotten may still be there: whoever writes a pack should close it, so that they can
    /// go.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn is_sweep_due(&self) -> Result<bool, Error> {
        Ok(self.forgotten()?.is_sweep_due())
    }

    /// Lists what was forgotten, oldest first.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::TooNew`], or an I/O error.
    pub fn tombstones(&self) -> Result<Vec<Tombstone>, Error> {
        Ok(self.forgotten()?.all.clone())
    }

    /// Tells whether a source was forgotten.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn is_forgotten(&self, source: SourceId) -> Result<bool, Error> {
        Ok(self.forgotten()?.all.iter().any(|tombstone| tombstone.source == source))
    }

    /// Tells whether something is not to be recorded.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn leaves_out(&self, name: NameHash) -> Result<bool, Error> {
        Ok(self.forgotten()?.leaves_out(name))
    }

    /// Tells whether anything is not to be recorded.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn leaves_out_anything(&self) -> Result<bool, Error> {
        Ok(!self.forgotten()?.left_out.is_empty())
    }

    /// Has things left out from now on. What is there of them stays.
    ///
    /// # Errors
    /// [`Error::Busy`] when others forget something just now, or as [`Vault::tombstones`].
    pub fn leave_out(&self, names: &[NameHash], why: Reason, now: &str) -> Result<(), Error> {
        let _changing = self.change_tombstones()?;
        let root = names::root();
        self.disk().make_dir(&root).map_err(Error::io("make", &root))?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        for name in names {
            tombstones.leave_out(Exclusion { name: *name, time: now.to_owned(), why });
        }
        tombstones.write(&**self.disk())
    }

    /// Has chunks deleted that nothing uses, with the next sweep: somebody is about to take something out of a source
    /// ([`SourceWriter::rewrite`](crate::SourceWriter::rewrite)).
    ///
    /// # Errors
    /// As [`Vault::leave_out`].
    pub fn sweep_later(&self, now: &str) -> Result<(), Error> {
        let _changing = self.change_tombstones()?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        tombstones.sweep_due.get_or_insert_with(|| now.to_owned());
        tombstones.write(&**self.disk())
    }

    /// Has something recorded again that was left out.
    ///
    /// # Errors
    /// As [`Vault::leave_out`].
    pub fn take_in(&self, name: NameHash) -> Result<(), Error> {
        if !self.leaves_out(name)? {
            return Ok(());
        }
        let _changing = self.change_tombstones()?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        if tombstones.take_in(name) { tombstones.write(&**self.disk()) } else { Ok(()) }
    }

    /// Takes names in plain text out of the tombstones, which a former version has left.
    pub(crate) fn hash_names(&self) -> Result<(), Error> {
        if !self.forgotten()?.has_names {
            return Ok(());
        }
        let Some(_changing) = self.lock_tombstones(1)? else { return Ok(()) };
        Tombstones::read(&**self.disk())?.write(&**self.disk())
    }

    /// Lists the runs that were forgotten and may still be there, as names of sessions.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn runs_due(&self) -> Result<Vec<NameHash>, Error> {
        Ok(self.forgotten()?.runs_due.clone())
    }

    /// Takes word that runs which were forgotten are gone.
    ///
    /// # Errors
    /// As [`Vault::leave_out`].
    pub fn runs_gone(&self, runs: &[NameHash]) -> Result<(), Error> {
        let _changing = self.change_tombstones()?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        tombstones.runs_due.retain(|run| !runs.contains(run));
        tombstones.write(&**self.disk())
    }

    /// Lists the spines that were forgotten.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn spine_tombstones(&self) -> Result<Vec<SpineTombstone>, Error> {
        Ok(self.forgotten()?.spines.clone())
    }

    /// Takes word that nothing is left of spines that were forgotten.
    ///
    /// # Errors
    /// [`Error::Busy`] when others forget something just now, or as [`Vault::tombstones`].
    pub fn spines_swept(&self, threads: &[NameHash]) -> Result<(), Error> {
        let _changing = self.change_tombstones()?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        for tombstone in &mut tombstones.spines {
            tombstone.is_swept |= threads.contains(&tombstone.thread);
        }
        tombstones.write(&**self.disk())
    }

    /// Puts the tombstones in place once more. Whoever wrote them may have died, or failed, before they were safe, and
    /// nothing is deleted for their sake alone.
    ///
    /// # Errors
    /// As [`Vault::spines_swept`].
    pub fn make_tombstones_safe(&self) -> Result<(), Error> {
        let _changing = self.change_tombstones()?;
        Tombstones::read(&**self.disk())?.write(&**self.disk())
    }

    fn change_tombstones(&self) -> Result<Box<dyn LockGuard>, Error> {
        self.lock_tombstones(ALONE_TRIES)?.ok_or_else(|| Error::Busy { path: lock_path() })
    }

    fn lock_tombstones(&self, tries: usize) -> Result<Option<Box<dyn LockGuard>>, Error> {
        crate::gate::try_lock(&**self.disk(), &lock_path(), tries)
    }

    fn lock_source(&self, source: SourceId) -> Result<Box<dyn LockGuard>, Error> {
        let path = VaultFile::SourceLock(source).path();
        let lock = self.disk().try_lock(&path).map_err(Error::io("lock", &path))?;
        lock.ok_or(Error::Locked { source_id: source })
    }

    /// Makes the tombstone of a source that is there.
    fn tombstone(&self, source: SourceId, why: Reason, now: &str) -> Result<Tombstone, Error> {
        let manifest = match self.manifest(source) {
            // What cannot be read can be forgotten.
            Err(Error::Damaged { .. } | Error::TooNew { .. }) => None,
            read => Some(read?.ok_or(Error::NoSuchSource { source_id: source })?),
        };
        let mut tombstone = Tombstone::new(source, manifest.as_ref(), why, now);
        if let Some(manifest) = &manifest {
            let tail = tail_file::read(&**self.disk(), source)?;
            let chunked: u64 = manifest.generations.iter().map(|generation| generation.len).sum();
            let last = manifest.generation_last().unwrap_or_default();
            let stored = manifest.generations.last().map_or(0, |generation| generation.len);
            tombstone.bytes = chunked + tail.bytes_from(last, stored).len() as u64;
        }
        Ok(tombstone)
    }

    /// Deletes what belongs to forgotten sources alone, then all chunks that nothing names.
    fn sweep_pending(&self, tombstones: &mut Tombstones, tries: usize) -> Result<Option<SweepReport>, Error> {
        let disk = &**self.disk();
        let pending: Vec<SourceId> = tombstones.pending().collect();
        for source in &pending {
            for path in [VaultFile::Manifest(*source).path(), VaultFile::Tail(*source).path()] {
                disk.remove(&path).map_err(Error::io("delete", &path))?;
            }
        }
        for dir in [names::sources(), names::tails()] {
            for path in unfinished(disk, &dir, &pending)? {
                disk.remove(&path).map_err(Error::io("delete", &path))?;
            }
            // Before any chunk goes: a manifest that a power cut brings back must not miss some.
            sync_dir(disk, &dir).map_err(Error::not_synced(&dir))?;
        }
        // Chunks in a pack of our own could not go either.
        self.close_pack()?;
        let Some(alone) = ExclusiveGate::take(disk, tries)? else { return Ok(None) };
        let swept = sweep::sweep(self, &alone)?;
        if swept.packs_busy == 0 {
            tombstones.all.iter_mut().for_each(|tombstone| tombstone.is_swept = true);
            tombstones.sweep_due = None;
            tombstones.write(disk)?;
        }
        Ok(Some(swept))
    }
}

/// Lists the files that owners of these sources were about to put in place when they died.
fn unfinished(disk: &dyn Disk, dir: &StorePath, sources: &[SourceId]) -> Result<Vec<StorePath>, Error> {
    let is_theirs = |path: &StorePath| {
        let file = path.temporary_of().and_then(|path| VaultFile::parse(path.as_str()));
        matches!(file, Some(VaultFile::Manifest(source) | VaultFile::Tail(source)) if sources.contains(&source))
    };
    let entries = disk.list(dir).map_err(Error::io("list", dir))?;
    Ok(entries.iter().map(|name| dir.below(name)).filter(is_theirs).collect())
}

fn lock_path() -> StorePath {
    VaultFile::TombstonesLock.path()
}
