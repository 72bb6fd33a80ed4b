//! `steno spine bundle`: a spine with its rollout and artifacts, to hand on.

use serde_json::json;
use steno_library::Rollout;
use steno_model::ThreadId;
use steno_spine::{
    BundleRequest, ChangedFile, LeftOut, SnapshotForm, WrittenBundle, check_bundle_path, write_bundle,
};
use steno_views::{Lines, count, visible};

use super::find_thread;
use crate::args::{self, SpineBundleArgs};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &SpineBundleArgs, settings: &Settings, output: &mut Output) -> Outcome {
    check_bundle_path(&args.output)?;
    let library = runs::need_library(settings)?;
    let thread = find_thread(&args.thread, &library)?;
    let rollouts = library.thread_rollouts(&thread)?;
    let (has_rollout, rollout_path) = (!rollouts.own.is_empty(), rollouts.path.clone());
    let (rollouts, left_out) = rollouts.select(args.with_base);
    let request = BundleRequest {
        rollouts: rollouts.iter().map(Rollout::about).collect::<Result<_, _>>()?,
        rollout_path,
        snapshots: snapshot_form(args),
        left_out,
    };
    let written = write_bundle(library.store()?, &thread, request, &args.output, |index, into| {
        Ok::<_, Failure>(rollouts[index].write_to(into)?)
    })?;
    if !has_rollout {
        tracing::warn!(
            "the rollout of `{thread}` is neither in the store nor at its original path; the bundle does not contain it"
        );
    }
    warn(&written);
    tell(args, &thread, &written, output);
    Ok(Exit::Done)
}

fn snapshot_form(args: &SpineBundleArgs) -> SnapshotForm {
    match args.with_snapshot {
        None => SnapshotForm::LeftOut,
        Some(args::SnapshotForm::Masked) => SnapshotForm::Masked,
        Some(args::SnapshotForm::Whole) => SnapshotForm::Whole,
    }
}

/// Reports what the bundle lacks or changes.
fn warn(written: &WrittenBundle) {
    for LeftOut { file, reason } in &written.plan.left_out {
        tracing::warn!("`{}` was left out: {reason}", visible(file, Lines::Escape));
    }
    for ChangedFile { file, masked, .. } in &written.plan.changed {
        let values = count(*masked, "value");
        tracing::warn!(
            "`{}` was changed: {values} of exported variables masked",
            visible(file, Lines::Escape)
        );
    }
}

fn tell(args: &SpineBundleArgs, thread: &ThreadId, written: &WrittenBundle, output: &mut Output) {
    let WrittenBundle { plan, report } = written;
    let path = args.output.display().to_string();
    let bytes: u64 = plan.entries.iter().map(|entry| entry.size_bytes).sum();
    if args.json {
        let object = json!({
            "output": path,
            "thread_id": thread.as_str(),
            "segments": report.segments,
            "records": report.records,
            "files": plan.entries.len(),
            "bytes": bytes,
            "left_out": plan.left_out.len(),
            "masked_values": plan.changed.iter().map(|changed| changed.masked).sum::<u64>(),
        });
        return output.json_line(&object.to_string());
    }
    output.line(&format!(
        "bundled  {thread}  {}, {}, {}, {} in `{}`",
        count(report.segments, "segment"),
        count(report.records, "record"),
        count(plan.entries.len() as u64, "file"),
        size(bytes),
        visible(&path, Lines::Escape)
    ));
}
