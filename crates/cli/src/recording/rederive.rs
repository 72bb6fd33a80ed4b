//! Deriving runs anew after an update: behind a pass, beside following, or on request.

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

/// Shows on a terminal how far it is, and says what fails.
struct RederiveBar {
    shown: ProgressBar,
    is_stopped: Arc<AtomicBool>,
}

impl RederiveBar {
    fn new(is_stopped: Arc<AtomicBool>, target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} derived anew  {msg}");
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

/// Derives anew what is named, with a bar on a terminal.
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

/// Derives anew what awaits it, if anything does, and writes down that nothing does any more.
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

/// Writes down that nothing awaits it any more, if that is so. Should that fail, it is looked for again the next time.
pub fn note(archive: &mut SourceRecorder, done: &RederiveReport) {
    if done.is_complete()
        && let Err(error) = archive.note_derived()
    {
        tracing::debug!(%error, "that everything is derived could not be written down");
    }
}

/// Derives anew what awaits it while agents are followed. What follows has the sources that it is recording.
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

/// Says what was done; nothing when there was nothing to do.
pub fn report_lines(done: &RederiveReport) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |number: u64, noun: &str, rest: &str| {
        if number > 0 {
            lines.push(format!("{} {rest}", count(number, noun)));
        }
    };
    line(done.runs, "run", "derived anew; the old transcripts are kept");
    line(done.runs_new, "run", "added");
    line(done.runs_mended, "run", "mended: derived anew from the archive; the damaged transcripts are kept");
    line(done.events_carried, "event", "of others carried over");
    line(
        done.runs_withdrawn,
        "run",
        "withdrawn: not given by the newer adapter; the old transcripts are kept",
    );
    line(
        done.runs_kept,
        "run",
        "left unchanged: damaged, or with events of others; `steno verify` says what is wrong",
    );
    line(done.runs_without_evidence, "run", "of an older adapter left unchanged: no evidence in the archive");
    line(done.sources_held, "file", "not derived anew: held by another `steno`");
    line(done.sources_failed, "file", "not derived anew: see above");
    line(done.sources_left, "file", "left for the next time");
    lines
}
