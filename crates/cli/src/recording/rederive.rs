//! Derives runs again after an update: after a pass, while following, or on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use steno_journal::Journal;
use steno_recorder::sources::{
    RederivePlan, RederiveProgress, RederiveReport, SourceError, SourceRecorder, SourceRecorderOptions,
    SourceToRederive,
};
use steno_views::{Lines, count, visible};

use super::stop_signal::StopSignal;
use super::{error_text, failure, warn};
use crate::failure::Failure;
use crate::output::notice;

/// A progress bar that also warns of failures.
struct RederiveBar {
    shown: ProgressBar,
    is_stopped: Arc<AtomicBool>,
}

impl RederiveBar {
    fn new(is_stopped: Arc<AtomicBool>, target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} derived again  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { shown: bar, is_stopped }
    }
}

impl RederiveProgress for RederiveBar {
    fn begin(&mut self, awaiting: &RederivePlan) {
        self.shown.set_length(awaiting.sources.iter().map(|source| source.bytes).sum());
    }

    fn next(&mut self, source: &SourceToRederive) {
        let name = source.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.shown.set_message(visible(&name, Lines::Escape).into_owned());
    }

    fn done(&mut self, source: &SourceToRederive) {
        self.shown.inc(source.bytes);
    }

    fn failed(&mut self, _source: &SourceToRederive, error: &SourceError) {
        self.shown.suspend(|| warn(&error_text(error)));
    }

    fn is_enough(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

impl Drop for RederiveBar {
    fn drop(&mut self) {
        self.shown.finish_and_clear();
    }
}

/// Derives the given sources again, with a progress bar.
pub fn rederive(
    archive: &mut SourceRecorder,
    awaiting: &RederivePlan,
    stop: &StopSignal,
) -> Result<RederiveReport, Failure> {
    let mut bar = RederiveBar::new(stop.flag(), ProgressDrawTarget::stderr());
    let done = archive.rederive(awaiting, &mut bar);
    drop(bar);
    archive.settle().map_err(failure)?;
    Ok(done)
}

/// Derives again what an older adapter derived, and notes when nothing is left.
pub fn finish(archive: &mut SourceRecorder, stop: &StopSignal) -> Result<RederiveReport, Failure> {
    if !archive.may_need_rederive() {
        return Ok(RederiveReport::default());
    }
    let mut awaiting = archive.rederive_plan().map_err(failure)?;
    awaiting.skip_given_up();
    let done = rederive(archive, &awaiting, stop)?;
    note(archive, &done);
    Ok(done)
}

/// Notes that nothing is left to derive, if that is so. If this fails, the next start looks again.
pub fn note(archive: &mut SourceRecorder, done: &RederiveReport) {
    if done.is_complete()
        && let Err(error) = archive.note_derived()
    {
        tracing::debug!(%error, "cannot note that everything is derived");
    }
}

/// Derives runs again in a worker thread while agents are followed. Sources that are being followed are skipped.
pub fn spawn(journal: Journal, is_stopped: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        if let Err(error) = rederive_in_background(journal, is_stopped) {
            warn(&error_text(&error));
        }
    })
}

fn rederive_in_background(journal: Journal, is_stopped: Arc<AtomicBool>) -> Result<(), SourceError> {
    let mut archive = SourceRecorder::open(journal, SourceRecorderOptions::default())?;
    if !archive.may_need_rederive() {
        return Ok(());
    }
    let mut awaiting = archive.rederive_plan()?;
    awaiting.skip_given_up();
    let done = archive.rederive(&awaiting, &mut RederiveBar::new(is_stopped, ProgressDrawTarget::hidden()));
    archive.settle()?;
    note(&mut archive, &done);
    for line in report_lines(&done) {
        notice(&line);
    }
    Ok(())
}

/// Returns a line for each kind of result; none if there was nothing to do.
pub fn report_lines(done: &RederiveReport) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |number: u64, noun: &str, rest: &str| {
        if number > 0 {
            lines.push(format!("{} {rest}", count(number, noun)));
        }
    };
    line(done.runs, "run", "derived again; the old transcripts are kept");
    line(done.runs_new, "run", "added");
    line(done.runs_mended, "run", "repaired: derived again from the store; the damaged transcripts are kept");
    line(done.events_carried, "event", "of other writers carried over");
    line(
        done.runs_withdrawn,
        "run",
        "withdrawn: no longer produced by the newer adapter; the old transcripts are kept",
    );
    line(
        done.runs_kept,
        "run",
        "left unchanged: damaged, or with events of other writers; `steno verify` shows what is wrong",
    );
    line(
        done.runs_without_evidence,
        "run",
        "of an older adapter left unchanged: the store has no file to derive it from",
    );
    line(done.sources_held, "file", "not derived again: in use by another `steno`");
    line(done.sources_failed, "file", "not derived again: see above");
    line(done.sources_left, "file", "not derived again yet; the next start continues");
    lines
}
