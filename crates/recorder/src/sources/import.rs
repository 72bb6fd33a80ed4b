//! One pass over files: records what is new, and leaves nothing open.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use steno_vault::SharedCommits;

use super::catalog::{KnownSource, plain_name};
use super::lane::{Lane, LaneObserver, Pass, PlannedSource, SourceDone};
use super::run_recorder::RunClaims;
use super::runs::OlderRuns;
use super::source::OpenSource;
use super::{RecordingCounts, SourceError, SourceFile, SourceRecorder, is_unchanged};

/// How often the progress is asked whether it is enough while lanes are busy.
const ASK_INTERVAL: Duration = Duration::from_millis(50);
/// With fewer files to hold open, one lane works alone.
const OPEN_FILES_PER_LANE: usize = 128;
/// How many files are open besides those of lanes.
const OPEN_FILES_BESIDE: usize = 24;

/// The outcome of importing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It had no new bytes.
    Unchanged,
    /// New bytes were recorded.
    Recorded,
    /// Another process records it.
    Held,
    /// It was forgotten, and is not recorded.
    Forgotten,
    /// It could not be recorded; the error was reported.
    Failed,
}

/// Receives the progress of a pass.
pub trait ImportProgress {
    /// Some bytes of a file were recorded.
    fn bytes(&mut self, path: &Path, count: u64);

    /// A file is done.
    fn done(&mut self, file: &SourceFile, outcome: ImportOutcome);

    /// A file could not be recorded.
    fn failed(&mut self, file: &SourceFile, error: &SourceError);

    /// Tells whether to end the pass. What was read so far is recorded.
    fn is_enough(&self) -> bool {
        false
    }
}

impl SourceRecorder {
    /// Records what is new in each file, several at a time. A failure of one file does not affect the others. Progress
    /// hears of files in their order, whichever is done first.
    pub fn import(&mut self, files: &[SourceFile], progress: &mut dyn ImportProgress) -> RecordingCounts {
        let mut report = PassReport::new(files, progress);
        let commits = Arc::new(SharedCommits::new(&self.vault));
        let claims = Arc::new(RunClaims::default());
        let mut left: Vec<FileToPlan> = (0..files.len()).map(FileToPlan::new).collect();
        while !left.is_empty() && !report.is_enough() && !self.store().is_paused((self.options.clock)()) {
            let (mut now, later) = without_twins(files, left);
            let planned = self.plan(&mut now, &claims, &mut report);
            self.run_lanes(planned, &commits, &mut report);
            // The pass was stopped before these were opened.
            report.moved.drain().for_each(|(_, former)| self.catalog.put(former));
            left = later;
            // They are derived again first, and then recorded.
            left.extend(std::mem::take(&mut report.older).into_iter().map(FileToPlan::older));
        }
        report.finish()
    }

    /// Decides what to do with each file; returns the sources to record, in groups.
    fn plan(
        &mut self,
        files: &mut Vec<FileToPlan>,
        claims: &Arc<RunClaims>,
        report: &mut PassReport<'_>,
    ) -> Vec<Vec<PlannedSource>> {
        let mut groups: Vec<Vec<PlannedSource>> = Vec::new();
        let mut by_session: HashMap<String, usize> = HashMap::new();
        for plan in files.drain(..) {
            if report.is_enough() {
                break;
            }
            let file = &report.files[plan.index];
            match self.plan_one(file, &plan, claims, &mut report.health) {
                Ok(Plan::Record { source: planned, former }) => {
                    report.moved.extend(former.map(|former| (plan.index, *former)));
                    // Sources of one session may have the same run, and the first one gets it. Entries are logged in
                    // the order of the files.
                    let has_entries = self.options.entries.is_some();
                    let session = planned.parts.info.session.clone();
                    let session = if has_entries { Some(String::new()) } else { session };
                    let group = session
                        .map_or(groups.len(), |session| *by_session.entry(session).or_insert(groups.len()));
                    if group == groups.len() {
                        groups.push(Vec::new());
                    }
                    groups[group].push(*planned);
                }
                Ok(Plan::Done { outcome, bytes }) => {
                    if bytes > 0 {
                        report.progress.bytes(file.path(), bytes);
                    }
                    report.put(plan.index, Ok(outcome));
                }
                Err(error) => report.put(plan.index, Err(error)),
            }
        }
        groups
    }

    fn plan_one(
        &mut self,
        file: &SourceFile,
        plan: &FileToPlan,
        claims: &Arc<RunClaims>,
        health: &mut RecordingCounts,
    ) -> Result<Plan, SourceError> {
        let done = |outcome, bytes| Ok(Plan::Done { outcome, bytes });
        if self.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
            return done(ImportOutcome::Unchanged, 0);
        }
        if let Some(mixed) = self.mixed(file) {
            // The guard of the recording names the file.
            let Some(_recording) = self.enter(file.path())? else { return done(ImportOutcome::Unchanged, 0) };
            let look = self.record_mixed(file, mixed)?;
            health.add_mixed(look);
            let outcome = if look.added > 0 { ImportOutcome::Recorded } else { ImportOutcome::Unchanged };
            return done(outcome, look.added);
        }
        let twin = plan.twin.as_deref();
        let (parts, former) = self.plan_source(file, (plan.older, twin), claims)?;
        let source = PlannedSource { index: plan.index, size_bytes: file.size_bytes, parts };
        Ok(Plan::Record { source: Box::new(source), former: former.map(Box::new) })
    }

    /// Records the planned sources.
    fn run_lanes(
        &mut self,
        groups: Vec<Vec<PlannedSource>>,
        commits: &Arc<SharedCommits>,
        report: &mut PassReport<'_>,
    ) {
        if groups.is_empty() {
            return;
        }
        let room = self.options.open_files_max.saturating_sub(OPEN_FILES_BESIDE);
        let lanes = self.options.lanes.min(room / OPEN_FILES_PER_LANE).min(groups.len()).max(1);
        let pass = Pass::new(&self.journal, commits, self.options.clock, groups, (lanes, room));
        if lanes == 1 {
            let mut observer = DirectObserver { recorder: self, report };
            Lane::new(&pass, &mut observer).run();
            return;
        }
        let is_enough = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                let mut observer = SendingObserver { sender: sender.clone(), is_enough: &is_enough };
                let pass = &pass;
                scope.spawn(move || Lane::new(pass, &mut observer).run());
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(ASK_INTERVAL) {
                    Ok(LaneMessage::Bytes { index, count }) => {
                        report.progress.bytes(report.files[index].path(), count);
                    }
                    Ok(LaneMessage::Done(done)) => self.take_done(*done, report),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                if !is_enough.load(Ordering::Relaxed) && report.is_enough() {
                    is_enough.store(true, Ordering::Relaxed);
                }
            }
        });
    }

    fn take_done(&mut self, done: SourceDone, report: &mut PassReport<'_>) {
        let SourceDone { index, counts, known, outcome } = done;
        // Sources that have to be derived again are counted when they are recorded after that.
        if !matches!(outcome, Err(SourceError::OlderAdapter { .. })) {
            report.health += counts;
        }
        let known = match report.moved.remove(&index) {
            // The vault may have it under either name.
            Some(former) if outcome.is_err() => Some(self.as_recorded(former)),
            _ => known,
        };
        if let Some(known) = known {
            self.catalog.put(known);
        }
        match outcome {
            Err(SourceError::OlderAdapter { .. }) => report.older.push(index),
            Ok(true) => report.put(index, Ok(ImportOutcome::Recorded)),
            Ok(false) => report.put(index, Ok(ImportOutcome::Unchanged)),
            Err(error) => report.put(index, Err(error)),
        }
    }

    /// Returns what the vault says of a source, or what it said before if it cannot be read.
    fn as_recorded(&self, before: KnownSource) -> KnownSource {
        let manifest = self.manifest(before.id).ok().flatten();
        manifest.as_ref().map_or(before, KnownSource::of)
    }
}

/// A file that is not planned yet.
struct FileToPlan {
    index: usize,
    /// What to do with runs that an older adapter derived.
    older: OlderRuns,
    /// The path of a file with the same name and size that was recorded before it.
    twin: Option<std::path::PathBuf>,
}

impl FileToPlan {
    fn new(index: usize) -> Self {
        Self { index, older: OlderRuns::Report, twin: None }
    }

    fn older(index: usize) -> Self {
        Self { index, older: OlderRuns::Refuse, twin: None }
    }
}

/// What to do with a file.
enum Plan {
    Done {
        outcome: ImportOutcome,
        bytes: u64,
    },
    Record {
        source: Box<PlannedSource>,
        /// The source as it was, if its file has moved.
        former: Option<Box<KnownSource>>,
    },
}

/// Separates files that have the same name and size as an earlier one: they may be copies of it, which shows when it is
/// recorded.
fn without_twins(files: &[SourceFile], left: Vec<FileToPlan>) -> (Vec<FileToPlan>, Vec<FileToPlan>) {
    let mut first: HashMap<(&OsStr, u64), usize> = HashMap::new();
    let (mut now, mut later) = (Vec::new(), Vec::new());
    for mut plan in left {
        let file = &files[plan.index];
        let name = plain_name(file.path()).file_name().unwrap_or_default();
        match first.entry((name, file.size_bytes)) {
            std::collections::hash_map::Entry::Occupied(twin) if file.is_wanted() => {
                plan.twin = Some(files[*twin.get()].path().to_owned());
                later.push(plan);
            }
            std::collections::hash_map::Entry::Occupied(_) => now.push(plan),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(plan.index);
                now.push(plan);
            }
        }
    }
    (now, later)
}

/// What a pass reports, in the order of its files.
struct PassReport<'a> {
    files: &'a [SourceFile],
    progress: &'a mut dyn ImportProgress,
    health: RecordingCounts,
    /// Outcomes of files that come after one without an outcome.
    outcomes: HashMap<usize, Result<ImportOutcome, SourceError>>,
    next: usize,
    /// Files whose runs have to be derived again first.
    older: Vec<usize>,
    /// Sources as they were before their files moved, until they are recorded.
    moved: HashMap<usize, KnownSource>,
}

impl<'a> PassReport<'a> {
    fn new(files: &'a [SourceFile], progress: &'a mut dyn ImportProgress) -> Self {
        let health = RecordingCounts::default();
        Self {
            files,
            progress,
            health,
            outcomes: HashMap::new(),
            next: 0,
            older: Vec::new(),
            moved: HashMap::new(),
        }
    }

    fn is_enough(&self) -> bool {
        self.progress.is_enough()
    }

    fn put(&mut self, index: usize, outcome: Result<ImportOutcome, SourceError>) {
        self.outcomes.insert(index, outcome);
        while let Some(outcome) = self.outcomes.remove(&self.next) {
            self.tell(self.next, outcome);
            self.next += 1;
        }
    }

    fn tell(&mut self, index: usize, outcome: Result<ImportOutcome, SourceError>) {
        let file = &self.files[index];
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) if error.is_held() => ImportOutcome::Held,
            Err(error) if error.is_forgotten() => ImportOutcome::Forgotten,
            Err(error) => {
                self.progress.failed(file, &error);
                ImportOutcome::Failed
            }
        };
        let health = &mut self.health;
        health.files += 1;
        match outcome {
            ImportOutcome::Unchanged => {}
            ImportOutcome::Recorded => health.files_new += 1,
            ImportOutcome::Held => health.files_held += 1,
            ImportOutcome::Forgotten => health.files_forgotten += 1,
            ImportOutcome::Failed => health.files_failed += 1,
        }
        self.progress.done(file, outcome);
    }

    /// Reports the files after one that was not recorded because the pass was stopped.
    fn finish(mut self) -> RecordingCounts {
        let mut rest: Vec<_> = std::mem::take(&mut self.outcomes).into_iter().collect();
        rest.sort_by_key(|(index, _)| *index);
        for (index, outcome) in rest {
            self.tell(index, outcome);
        }
        self.health
    }
}

/// Observes the only lane of a pass, which runs in the thread of the caller.
struct DirectObserver<'a, 'b> {
    recorder: &'a mut SourceRecorder,
    report: &'a mut PassReport<'b>,
}

impl LaneObserver for DirectObserver<'_, '_> {
    fn bytes(&mut self, index: usize, count: u64) {
        self.report.progress.bytes(self.report.files[index].path(), count);
    }

    fn done(&mut self, done: SourceDone) {
        self.recorder.take_done(done, self.report);
    }

    fn is_enough(&self) -> bool {
        self.report.is_enough()
    }
}

/// What a lane says to the thread that started it.
enum LaneMessage {
    Bytes { index: usize, count: u64 },
    Done(Box<SourceDone>),
}

/// Observes a lane that has its own thread.
struct SendingObserver<'a> {
    sender: mpsc::Sender<LaneMessage>,
    is_enough: &'a AtomicBool,
}

impl LaneObserver for SendingObserver<'_> {
    // The receiver is there as long as any lane runs.
    fn bytes(&mut self, index: usize, count: u64) {
        self.sender.send(LaneMessage::Bytes { index, count }).ok();
    }

    fn done(&mut self, done: SourceDone) {
        self.sender.send(LaneMessage::Done(Box::new(done))).ok();
    }

    fn is_enough(&self) -> bool {
        self.is_enough.load(Ordering::Relaxed)
    }
}

/// Adds the counts of a source.
pub(super) fn count(source: &OpenSource, health: &mut RecordingCounts) {
    let (events, refused) = source.events();
    health.bytes_read += source.read;
    health.events += events;
    health.events_refused += refused;
    if let Some(completeness) = source.completeness() {
        health.records_unknown += completeness.unknown.values().sum::<u64>();
        health.records_unreadable += completeness.unreadable;
    }
}
