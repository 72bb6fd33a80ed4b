//! Writes the bundle of a spine of the store: checks the spine, plans the files, and copies them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use steno_disk::StorePath;
use steno_journal::{ARTIFACT_BYTES_MAX, Store};
use steno_model::ThreadId;

use crate::bundle::{BundleContent, BundleEntry, BundlePlan, BundleWish, MaskedFile, Snapshots, plan_bundle};
use crate::bundle_error::BundleError;
use crate::bundle_json::{LeftOut, RolloutFile};
use crate::bundle_output::{BundleOutput, check_bundle_path};
use crate::directory::validate_spine;
use crate::masking::mask_exports;
use crate::validator::Report;

/// What a bundle has besides the spine.
#[derive(Clone, Debug)]
pub struct BundleRequest {
    /// The rollouts of the thread, and of threads that it continues.
    pub rollouts: Vec<RolloutFile>,
    /// The path of the first rollout, even if it no longer exists.
    pub rollout_path: Option<String>,
    /// How shell snapshots are written.
    pub snapshots: SnapshotForm,
    /// What is left out besides snapshots and unknown artifacts.
    pub left_out: Vec<LeftOut>,
}

/// How shell snapshots are written to a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotForm {
    /// They are left out.
    LeftOut,
    /// Without the values of exported variables.
    Masked,
    /// Unchanged.
    Whole,
}

/// A bundle that was written and checked.
#[derive(Debug)]
pub struct WrittenBundle {
    /// Its files.
    pub plan: BundlePlan,
    /// The result of its check.
    pub report: Report,
}

/// Writes the bundle of a thread's spine to a path that does not exist. `copy_rollout` writes the bytes of the rollout
/// with an index of the request.
///
/// # Errors
///
/// [`BundleError`], or the error of `copy_rollout`; then nothing is at the path.
pub fn write_bundle<E: From<BundleError>>(
    store: &Store,
    thread: &ThreadId,
    request: BundleRequest,
    path: &Path,
    copy_rollout: impl Fn(usize, &mut dyn Write) -> Result<(), E>,
) -> Result<WrittenBundle, E> {
    check_bundle_path(path)?;
    let report = checked(store, thread)?;
    let BundleRequest { rollouts, rollout_path, snapshots, left_out } = request;
    let snapshots = read_snapshots(snapshots, store, thread, &report)?;
    let wish = BundleWish { rollouts, rollout_path, snapshots, left_out };
    let plan = plan_bundle(thread, &report, wish);
    let plan = plan.ok_or_else(|| BundleError::NoSegment { thread: thread.clone() })?;
    let mut output = BundleOutput::begin(path)?;
    for entry in &plan.entries {
        let put = output.put(entry, |into| match &entry.content {
            BundleContent::Rollout(index) => copy_rollout(*index, into),
            BundleContent::Bytes(bytes) => Ok(into.write_all(bytes).map_err(failed(entry))?),
            BundleContent::Stored(path) => {
                Ok(copy_stored(store, path, entry.size_bytes, into).map_err(failed(entry))?)
            }
        });
        if let Err(error) = put {
            output.give_up();
            return Err(error);
        }
    }
    let report = output.finish()?;
    Ok(WrittenBundle { plan, report })
}

fn failed(entry: &BundleEntry) -> impl Fn(io::Error) -> BundleError {
    BundleError::io("write", Path::new(&entry.name))
}

/// Checks the spine. A spine with an error is not bundled.
fn checked(store: &Store, thread: &ThreadId) -> Result<Report, BundleError> {
    let report = validate_spine(store, thread)?;
    if !report.is_valid() {
        return Err(BundleError::InvalidSpine { thread: thread.clone() });
    }
    if report.unsealed().next().is_some() && !store.is_spine_locked(thread)? {
        return Err(BundleError::OpenSegment { thread: thread.clone() });
    }
    Ok(report)
}

/// Returns what happens to shell snapshots, and reads those that are masked.
fn read_snapshots(
    form: SnapshotForm,
    store: &Store,
    thread: &ThreadId,
    report: &Report,
) -> Result<Snapshots, BundleError> {
    match form {
        SnapshotForm::LeftOut => return Ok(Snapshots::LeftOut),
        SnapshotForm::Whole => return Ok(Snapshots::Whole),
        SnapshotForm::Masked => {}
    }
    let mut all = BTreeMap::new();
    for name in report.shell_snapshots() {
        let path = StorePath::spine_of(thread).below("artifacts").below(name);
        let bytes = read_artifact(store, &path);
        let bytes = bytes.map_err(BundleError::io("read", Path::new(path.as_str())))?;
        let (bytes, values) = mask_exports(&bytes);
        all.insert(name.to_owned(), MaskedFile { bytes, values });
    }
    Ok(Snapshots::Masked(all))
}

fn read_artifact(store: &Store, path: &StorePath) -> io::Result<Vec<u8>> {
    let file = store.disk().open_read(path)?.ok_or(io::ErrorKind::NotFound)?;
    let size = file.identity()?.size_bytes;
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0).min(ARTIFACT_BYTES_MAX)];
    let read = steno_disk::read_full(&*file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn copy_stored(store: &Store, path: &StorePath, size_bytes: u64, into: &mut dyn Write) -> io::Result<()> {
    const PIECE_BYTES: usize = 256 * 1024;
    let file = store.disk().open_read(path)?.ok_or(io::ErrorKind::NotFound)?;
    let (mut piece, mut offset) = (vec![0; PIECE_BYTES], 0);
    while offset < size_bytes {
        let wanted = usize::try_from(size_bytes - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let read = steno_disk::read_full(&*file, &mut piece[..wanted], offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        into.write_all(&piece[..read])?;
        offset += read as u64;
    }
    Ok(())
}
