//! Deleting sources for good.
//!
//! The tombstone is written first. A source with a tombstone counts as deleted, and the next process completes an
//! interrupted deletion.

use std::sync::{Arc, Mutex, PoisonError};

use steno_disk::{Disk, Identity, LockGuard, StorePath, sync_dir};
use steno_model::ThreadId;

use crate::error::Error;
use crate::gate::ExclusiveGate;
use crate::ids::SourceId;
use crate::name_hash::NameHash;
use crate::names::{self, VaultFile};
use crate::outlines;
use crate::sweep::{self, SweepReport};
use crate::tail_file;
use crate::tombstones::{Exclusion, Reason, SpineTombstone, Tombstone, Tombstones};
use crate::vault::Vault;

/// How often the exclusive lock is tried before the sweep is left to another process.
const ALONE_TRIES: usize = 50;

/// What to forget. All of it is forgotten, or nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgetRequest<'a> {
    /// The sources.
    pub sources: &'a [SourceId],
    /// The threads whose spines are forgotten. The caller holds their locks and deletes their files.
    pub spines: &'a [ThreadId],
    /// Names to exclude from recording: sessions, and parts of files that they share.
    pub names: &'a [NameHash],
    /// Runs to delete. The caller deletes their files ([`Vault::runs_due`]).
    pub runs: &'a [NameHash],
}

/// The result of forgetting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgetReport {
    /// The tombstones of the sources, in the order of the request.
    pub tombstones: Vec<Tombstone>,
    /// The result of the sweep; `None` when other processes held the lock all the time. The next sweep deletes the rest
    /// then.
    pub swept: Option<SweepReport>,
}

/// The tombstones as last read, with the identity of their file.
#[derive(Default)]
pub(crate) struct TombstoneCache(Mutex<Option<(Identity, Arc<Tombstones>)>>);

impl TombstoneCache {
    /// Returns the tombstones; reads the file if it changed.
    pub(crate) fn tombstones(&self, disk: &dyn Disk) -> Result<Arc<Tombstones>, Error> {
        let path = VaultFile::Tombstones.path();
        // The identity is read before the file: at worst a change is read twice.
        let Some(identity) = disk.identity(&path).map_err(Error::io("access", &path))? else {
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
    /// Deletes sources permanently: their manifests, their tails, and all chunks that nothing else uses. A tombstone of
    /// each remains, and a forgotten source is never recorded again.
    ///
    /// Packs that running processes write are not changed; a later sweep ([`Vault::sweep_if_needed`]) handles them, and
    /// [`Tombstone::is_swept`] tells when that is done. Forgetting a source twice is not an error.
    ///
    /// # Errors
    /// [`Error::Locked`] when a source has an owner and [`Error::NoSuchSource`] when it does not exist: nothing is
    /// forgotten then. [`Error::Busy`] when another process is forgetting something. After any other error, for example
    /// of a damaged manifest, sources with a tombstone are forgotten, and the next sweep completes the deletion.
    pub fn forget(&self, sources: &[SourceId], why: Reason, now: &str) -> Result<ForgetReport, Error> {
        self.forget_all(ForgetRequest { sources, ..ForgetRequest::default() }, why, now)
    }

    /// Deletes sources permanently like [`Vault::forget`], and writes the tombstones of spines together with theirs, so
    /// that all of it is forgotten in one step. Call [`Vault::spines_swept`] when the files of the spines are deleted.
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

    /// Completes an interrupted or partial sweep; `None` when there is nothing to do, or another process holds the
    /// lock.
    ///
    /// # Errors
    /// [`Error::Damaged`] when a manifest cannot be read, because its chunks are not known then; or an I/O error.
    pub fn sweep_if_needed(&self) -> Result<Option<SweepReport>, Error> {
        if !self.forgotten()?.is_sweep_due() {
            return Ok(None);
        }
        let Some(_changing) = self.lock_tombstones(1)? else { return Ok(None) };
        let mut tombstones = Tombstones::read(&**self.disk())?;
        // The process that wrote them may have died or failed before they were safe. Nothing is deleted before they
        // are.
        tombstones.write(&**self.disk())?;
        self.sweep_pending(&mut tombstones, 1)
    }

    /// Tells whether forgotten bytes may still exist. A process that writes a pack should close it then, so that a
    /// sweep can delete them.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn is_sweep_due(&self) -> Result<bool, Error> {
        Ok(self.forgotten()?.is_sweep_due())
    }

    /// Lists the tombstones of sources, oldest first.
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

    /// Tells whether a name is excluded from recording.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn leaves_out(&self, name: NameHash) -> Result<bool, Error> {
        Ok(self.forgotten()?.leaves_out(name))
    }

    /// Tells whether any name is excluded from recording.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn leaves_out_anything(&self) -> Result<bool, Error> {
        Ok(!self.forgotten()?.left_out.is_empty())
    }

    /// Excludes names from recording. What is already recorded stays.
    ///
    /// # Errors
    /// [`Error::Busy`] when another process is forgetting something, or as [`Vault::tombstones`].
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

    /// Schedules a sweep, because the caller is about to remove something from a source
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

    /// Removes an exclusion.
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

    /// Replaces names in plain text, from version 1, by hashes.
    pub(crate) fn hash_names(&self) -> Result<(), Error> {
        if !self.forgotten()?.has_names {
            return Ok(());
        }
        let Some(_changing) = self.lock_tombstones(1)? else { return Ok(()) };
        Tombstones::read(&**self.disk())?.write(&**self.disk())
    }

    /// Lists forgotten runs whose files may still exist, hashed like names of sessions.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn runs_due(&self) -> Result<Vec<NameHash>, Error> {
        Ok(self.forgotten()?.runs_due.clone())
    }

    /// Records that the files of forgotten runs are deleted.
    ///
    /// # Errors
    /// As [`Vault::leave_out`].
    pub fn runs_gone(&self, runs: &[NameHash]) -> Result<(), Error> {
        let _changing = self.change_tombstones()?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        tombstones.runs_due.retain(|run| !runs.contains(run));
        tombstones.write(&**self.disk())
    }

    /// Lists the tombstones of spines.
    ///
    /// # Errors
    /// As [`Vault::tombstones`].
    pub fn spine_tombstones(&self) -> Result<Vec<SpineTombstone>, Error> {
        Ok(self.forgotten()?.spines.clone())
    }

    /// Records that the files of forgotten spines are deleted.
    ///
    /// # Errors
    /// [`Error::Busy`] when another process is forgetting something, or as [`Vault::tombstones`].
    pub fn spines_swept(&self, threads: &[NameHash]) -> Result<(), Error> {
        let _changing = self.change_tombstones()?;
        let mut tombstones = Tombstones::read(&**self.disk())?;
        for tombstone in &mut tombstones.spines {
            tombstone.is_swept |= threads.contains(&tombstone.thread);
        }
        tombstones.write(&**self.disk())
    }

    /// Writes the tombstones again and syncs them. The process that wrote them may have died or failed before they were
    /// safe, and nothing may be deleted before they are.
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

    pub(crate) fn lock_tombstones(&self, tries: usize) -> Result<Option<Box<dyn LockGuard>>, Error> {
        crate::gate::try_lock(&**self.disk(), &lock_path(), tries)
    }

    fn lock_source(&self, source: SourceId) -> Result<Box<dyn LockGuard>, Error> {
        let path = VaultFile::SourceLock(source).path();
        let lock = self.disk().try_lock(&path).map_err(Error::io("lock", &path))?;
        lock.ok_or(Error::Locked { source_id: source })
    }

    /// Makes the tombstone of an existing source.
    fn tombstone(&self, source: SourceId, why: Reason, now: &str) -> Result<Tombstone, Error> {
        let manifest = match self.manifest(source) {
            // A source that cannot be read can be forgotten.
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

    /// Deletes the files of forgotten sources, then all chunks that no manifest names.
    fn sweep_pending(&self, tombstones: &mut Tombstones, tries: usize) -> Result<Option<SweepReport>, Error> {
        let disk = &**self.disk();
        let pending: Vec<SourceId> = tombstones.pending().collect();
        for source in &pending {
            for path in [VaultFile::Manifest(*source).path(), VaultFile::Tail(*source).path()] {
                disk.remove(&path).map_err(Error::io("delete", &path))?;
            }
        }
        // Who saves outlines holds the lock of the tombstones, as our caller does, and looks for the manifests.
        outlines::remove_file(disk)?;
        for dir in [names::sources(), names::tails()] {
            for path in unfinished(disk, &dir, &pending)? {
                disk.remove(&path).map_err(Error::io("delete", &path))?;
            }
            // Before any chunk is deleted: after a power cut a manifest may be back, and its chunks must then exist.
            sync_dir(disk, &dir).map_err(Error::not_synced(&dir))?;
        }
        // A sweep does not change open packs, so ours is closed.
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

/// Lists the temporary files that dead owners of these sources left.
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
