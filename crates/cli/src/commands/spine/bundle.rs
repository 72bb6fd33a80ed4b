//! `steno spine bundle`: a spine with its rollout and artifacts, to hand on.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use steno_disk::StorePath;
use steno_journal::{
    BundleContent, BundleEntry, BundleWish, LeftOut, Report, Rule, Snapshots, SpineReader, Store,
    plan_bundle, validate_spine,
};
use steno_model::json::{Fields, RawJson, text_of};
use steno_model::{SpineType, ThreadId, Word};
use steno_vault::Vault;
use steno_views::{Lines, count, visible};

use super::bundle_output::{BundleOutput, in_the_way};
use super::find_thread;
use super::rollouts::{self, Rollout};
use crate::args::SpineBundleArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &SpineBundleArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let thread = find_thread(&args.thread, &store)?;
    if args.output.symlink_metadata().is_ok() {
        return Err(in_the_way(&args.output));
    }
    let report = checked(&store, &thread)?;
    let vault = Vault::open(Arc::clone(store.disk()));
    let rollouts = rollouts::find(&vault, &thread)?;
    let rollout_path = match rollouts.first() {
        Some(first) => Some(first.about.path.clone()),
        None => recorded_path(&store, &thread)?,
    };
    let wish = BundleWish {
        rollouts: rollouts.iter().map(|rollout| rollout.about.clone()).collect(),
        rollout_path,
        snapshots: if args.with_snapshot { Snapshots::Included } else { Snapshots::LeftOut },
    };
    let Some((entries, left_out)) = plan_bundle(&thread, &report, wish) else {
        return Err(Failure::nothing(format!("the spine of `{thread}` has no sealed segment yet"))
            .with_hint("somebody is writing it; bundle it when that is done"));
    };
    let written =
        write(&args.output, &entries, &Sources { store: &store, vault: &vault, rollouts: &rollouts })?;
    if rollouts.is_empty() {
        tracing::warn!("the archive has no rollout of `{thread}`; the bundle is without it");
    }
    if report.findings.iter().any(|finding| finding.rule == Rule::ArtifactKind) {
        tracing::warn!(
            "records refer to artifacts of kinds that we don't know; their files are not in the bundle"
        );
    }
    for LeftOut { file, reason } in &left_out {
        tracing::warn!("`{}` was left out: {reason}", visible(file, Lines::Escape));
    }
    tell(args, &thread, &entries, &written, output);
    Ok(Exit::Done)
}

/// Checks the spine: what is wrong is not handed on.
fn checked(store: &Store, thread: &ThreadId) -> Result<Report, Failure> {
    let report = validate_spine(store, thread)?;
    if !report.is_valid() {
        let message = format!("the spine of `{thread}` is not valid; nothing was written");
        return Err(Failure::nothing(message).with_hint(format!("`steno spine validate {thread}` says why")));
    }
    if report.unsealed().next().is_some() && !store.is_spine_held(thread)? {
        let message = format!("the spine of `{thread}` was left open by a crash; nothing was written");
        let hint = format!("`steno spine validate {thread} --repair` seals it");
        return Err(Failure::nothing(message).with_hint(hint));
    }
    Ok(report)
}

/// Returns where the rollout lay, as the first record that tells says.
fn recorded_path(store: &Store, thread: &ThreadId) -> Result<Option<String>, Failure> {
    let mut reader = SpineReader::new(Arc::clone(store.disk()), StorePath::spine_of(thread));
    while let Some(record) = reader.read_next()? {
        if record.record_type == Word::Known(SpineType::SessionMeta)
            && let Some(path) = path_in(&record.payload)
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn path_in(payload: &RawJson) -> Option<String> {
    let mut fields = Fields::parse(payload.as_str()).ok()?;
    let text = |fields: &mut Fields<'_>, name| Some(text_of(fields.take(name).ok()??)?.into_owned());
    let source = fields.take("spine_source").ok().flatten();
    text(&mut fields, "rollout_path").or_else(|| text(&mut Fields::parse(source?.get()).ok()?, "path"))
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
                Some(rollout) => rollout.write_to(self.vault, into),
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

fn tell(
    args: &SpineBundleArgs,
    thread: &ThreadId,
    entries: &[BundleEntry],
    written: &Report,
    output: &mut Output,
) {
    let path = args.output.display().to_string();
    let bytes: u64 = entries.iter().map(|entry| entry.size_bytes).sum();
    if args.json {
        let object = json!({
            "output": path,
            "thread_id": thread.as_str(),
            "segments": written.segments,
            "records": written.records,
            "files": entries.len(),
            "bytes": bytes,
        });
        return output.json_line(&object.to_string());
    }
    output.line(&format!(
        "bundled  {thread}  {}, {}, {}, {} in `{}`",
        count(written.segments, "segment"),
        count(written.records, "record"),
        count(entries.len() as u64, "file"),
        size(bytes),
        visible(&path, Lines::Escape)
    ));
}
