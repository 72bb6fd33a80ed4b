//! `steno spine bundle`: a spine with its rollout and artifacts, to hand on.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use steno_disk::StorePath;
use steno_journal::{ARTIFACT_BYTES_MAX, SpineReader, Store};
use steno_model::json::{Fields, RawJson, text_of};
use steno_model::{SpineType, ThreadId, Word};
use steno_spine::{
    BundleContent, BundleEntry, BundlePlan, BundleWish, ChangedFile, LeftOut, Masked, Report, Snapshots,
    mask_exports, plan_bundle, validate_spine,
};
use steno_vault::Vault;
use steno_views::{Lines, count, visible};

use super::bundle_output::{BundleOutput, check_name, in_the_way};
use super::find_thread;
use super::rollouts::{self, Base, Rollout};
use crate::args::{SnapshotForm, SpineBundleArgs};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &SpineBundleArgs, settings: &Settings, output: &mut Output) -> Outcome {
    check_name(&args.output)?;
    let library = runs::need_library(settings)?;
    let store = library.store()?;
    let thread = find_thread(&args.thread, &library)?;
    if args.output.symlink_metadata().is_ok() {
        return Err(in_the_way(&args.output));
    }
    let report = checked(store, &thread)?;
    let vault = library.vault()?;
    let mut rollouts = rollouts::find(&library, &thread)?;
    let mut rollout_path = rollouts.first().map(|first| first.about.path.clone());
    if rollouts.is_empty() {
        rollout_path = recorded_path(store, &thread)?;
        let lying = rollout_path.as_deref().map(|path| rollouts::at_path(path, vault, &thread));
        rollouts.extend(lying.transpose()?.flatten());
    }
    let first = match rollouts::base_of(vault, &rollouts, thread.as_str())? {
        None if rollouts.is_empty() => recorded_base(store, &thread)?,
        base => base,
    };
    let bases = rollouts::bases(&library, &thread, first)?;
    let has_rollout = !rollouts.is_empty();
    let mut left_out = Vec::new();
    for base in bases {
        take_base(base, args.with_base, &mut rollouts, &mut left_out);
    }
    let wish = BundleWish {
        rollouts: rollouts.iter().map(|rollout| rollout.about.clone()).collect(),
        rollout_path,
        snapshots: snapshots(args.with_snapshot, store, &thread, &report)?,
        left_out,
    };
    let Some(plan) = plan_bundle(&thread, &report, wish) else {
        return Err(Failure::nothing(format!("the spine of `{thread}` has no sealed segment yet"))
            .with_hint("it is being written; try again when recording has stopped"));
    };
    let sources = Sources { store, vault, rollouts: &rollouts };
    let written = write(&args.output, &plan.entries, &sources)?;
    if !has_rollout {
        tracing::warn!(
            "the rollout of `{thread}` is neither in the store nor at its original path; the bundle does not contain it"
        );
    }
    for LeftOut { file, reason } in &plan.left_out {
        tracing::warn!("`{}` was left out: {reason}", visible(file, Lines::Escape));
    }
    for ChangedFile { file, masked, .. } in &plan.changed {
        let values = count(*masked, "value");
        tracing::warn!(
            "`{}` was changed: {values} of exported variables masked",
            visible(file, Lines::Escape)
        );
    }
    tell(args, &thread, &plan, &written, output);
    Ok(Exit::Done)
}

/// Takes the files of a thread in that the bundle's goes on from, or says why not.
fn take_base(base: Base, is_wanted: bool, rollouts: &mut Vec<Rollout>, left_out: &mut Vec<LeftOut>) {
    let Base { thread, rollouts: found } = base;
    let goes_on = format!("the session goes on from that of thread {thread}");
    if found.is_empty() {
        let reason = format!("{goes_on}, which the archive does not have");
        left_out.push(LeftOut { file: format!("rollout/{thread}.jsonl"), reason });
    }
    for rollout in found {
        if is_wanted {
            rollouts.push(rollout);
        } else {
            let reason = format!("{goes_on}; `--with-base` puts it in");
            left_out.push(LeftOut { file: rollout.about.file, reason });
        }
    }
}

/// Returns what becomes of shell snapshots, and reads those that are to be masked.
fn snapshots(
    form: Option<SnapshotForm>,
    store: &Store,
    thread: &ThreadId,
    report: &Report,
) -> Result<Snapshots, Failure> {
    match form {
        None => return Ok(Snapshots::LeftOut),
        Some(SnapshotForm::Whole) => return Ok(Snapshots::Whole),
        Some(SnapshotForm::Masked) => {}
    }
    let mut all = BTreeMap::new();
    for name in report.shell_snapshots() {
        let path = StorePath::spine_of(thread).below("artifacts").below(name);
        let failed = |error: io::Error| Failure::could_not(format!("cannot read `{path}`: {error}"));
        let file = store.disk().open_read(&path).map_err(failed)?;
        let file = file.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let size = file.identity().map_err(failed)?.size_bytes;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0).min(ARTIFACT_BYTES_MAX)];
        let read = steno_disk::read_full(&*file, &mut bytes, 0).map_err(failed)?;
        let (bytes, values) = mask_exports(&bytes[..read]);
        all.insert(name.to_owned(), Masked { bytes, values });
    }
    Ok(Snapshots::Masked(all))
}

/// Checks the spine: what is wrong is not handed on.
fn checked(store: &Store, thread: &ThreadId) -> Result<Report, Failure> {
    let report = validate_spine(store, thread)?;
    if !report.is_valid() {
        let message = format!("the spine of `{thread}` is not valid; nothing was written");
        return Err(Failure::nothing(message).with_hint(format!("`steno spine validate {thread}` says why")));
    }
    if report.unsealed().next().is_some() && !store.is_spine_locked(thread)? {
        let message = format!("the spine of `{thread}` was left open by a crash; nothing was written");
        let hint = format!("`steno spine validate {thread} --repair` seals it");
        return Err(Failure::nothing(message).with_hint(hint));
    }
    Ok(report)
}

/// Returns where the rollout lay, as the first record that tells says.
fn recorded_path(store: &Store, thread: &ThreadId) -> Result<Option<String>, Failure> {
    in_session_meta(store, thread, |payload| {
        let mut fields = Fields::parse(payload.as_str()).ok()?;
        let source = fields.take("spine_source").ok().flatten();
        text_in(&mut fields, "rollout_path")
            .or_else(|| text_in(&mut Fields::parse(source?.get()).ok()?, "path"))
    })
}

/// Returns the thread that this one goes on from, as the first record that tells says.
fn recorded_base(store: &Store, thread: &ThreadId) -> Result<Option<String>, Failure> {
    in_session_meta(store, thread, |payload| {
        let base = Fields::parse(payload.as_str()).ok()?.take("history_base").ok()??;
        text_in(&mut Fields::parse(base.get()).ok()?, "thread_id").filter(|base| base != thread.as_str())
    })
}

/// Returns what the first `session_meta` that has it says.
fn in_session_meta(
    store: &Store,
    thread: &ThreadId,
    find: impl Fn(&RawJson) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let mut reader = SpineReader::new(Arc::clone(store.disk()), StorePath::spine_of(thread));
    while let Some(record) = reader.read_next()? {
        if record.record_type == Word::Known(SpineType::SessionMeta)
            && let Some(found) = find(&record.payload)
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn text_in(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    Some(text_of(fields.take(name).ok()??)?.into_owned())
}

/// Where the bytes of a bundle come from.
struct Sources<'a> {
    store: &'a Store,
    vault: &'a Vault,
    rollouts: &'a [Rollout],
}

fn write(path: &Path, entries: &[BundleEntry], sources: &Sources<'_>) -> Result<Report, Failure> {
    let mut output = BundleOutput::begin(path)?;
    for entry in entries {
        if let Err(failure) = output.put(entry, |into| sources.copy(entry, into)) {
            output.give_up();
            return Err(failure);
        }
    }
    output.finish()
}

impl Sources<'_> {
    fn copy(&self, entry: &BundleEntry, into: &mut dyn Write) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::could_not(format!("cannot write `{}`: {error}", entry.name));
        match &entry.content {
            BundleContent::Bytes(bytes) => into.write_all(bytes).map_err(failed),
            BundleContent::Stored(path) => self.copy_stored(path, entry.size_bytes, into).map_err(failed),
            BundleContent::Rollout(index) => match self.rollouts.get(*index) {
                Some(rollout) => rollout.write_to(self.vault, into).map(|_| ()),
                None => Err(failed(io::ErrorKind::NotFound.into())),
            },
        }
    }

    fn copy_stored(&self, path: &StorePath, size_bytes: u64, into: &mut dyn Write) -> io::Result<()> {
        const PIECE_BYTES: usize = 256 * 1024;
        let file = self.store.disk().open_read(path)?.ok_or(io::ErrorKind::NotFound)?;
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
}

fn tell(args: &SpineBundleArgs, thread: &ThreadId, plan: &BundlePlan, written: &Report, output: &mut Output) {
    let path = args.output.display().to_string();
    let bytes: u64 = plan.entries.iter().map(|entry| entry.size_bytes).sum();
    if args.json {
        let object = json!({
            "output": path,
            "thread_id": thread.as_str(),
            "segments": written.segments,
            "records": written.records,
            "files": plan.entries.len(),
            "bytes": bytes,
            "left_out": plan.left_out.len(),
            "masked_values": plan.changed.iter().map(|changed| changed.masked).sum::<u64>(),
        });
        return output.json_line(&object.to_string());
    }
    output.line(&format!(
        "bundled  {thread}  {}, {}, {}, {} in `{}`",
        count(written.segments, "segment"),
        count(written.records, "record"),
        count(plan.entries.len() as u64, "file"),
        size(bytes),
        visible(&path, Lines::Escape)
    ));
}
