//! One thread of a pass. It records sources in rounds, and the sources of a round share their syncs.
//!
//! A round reads its sources, makes their bytes safe in the vault, makes events of them, makes these safe, and then
//! says in the manifests how far each source is. No step begins for any source before the step before it is synced for
//! all of them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use steno_disk::{SyncSet, SyncTicket};
use steno_journal::{Error as JournalError, Journal};
use steno_model::Timestamp;
use steno_vault::{SharedCommits, SourceEnd};

use super::catalog::KnownSource;
use super::import::count;
use super::source::{OPEN_FILES_MAX, OpenSource, ReadOutcome, SourceParts};
use super::{RecordingCounts, SourceError};

/// How many files a source with one run holds open.
const FILES_PER_SOURCE: usize = 7;
/// The most bytes that a round reads. All lanes together hold this much in memory, a few times over.
const ROUND_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Rounds are not made smaller than this to keep all lanes busy.
const ROUND_BYTES_MIN: u64 = 1024 * 1024;
/// The most sources of a round.
const ROUND_SOURCES_MAX: usize = 128;

/// A source that is to be recorded.
pub(super) struct PlannedSource {
    /// The index of its file in the pass.
    pub(super) index: usize,
    pub(super) size_bytes: u64,
    pub(super) parts: SourceParts,
}

/// What the lanes of a pass share.
pub(super) struct Pass {
    pub(super) journal: Journal,
    pub(super) commits: Arc<SharedCommits>,
    pub(super) clock: fn() -> jiff::Timestamp,
    /// Sources that are waiting. Those of a group are recorded one after the other, by one lane.
    groups: Mutex<VecDeque<Vec<PlannedSource>>>,
    round_bytes: u64,
    /// How many files a lane may hold open.
    open_files_max: usize,
}

/// The outcome of recording a source.
pub(super) struct SourceDone {
    pub(super) index: usize,
    pub(super) counts: RecordingCounts,
    /// The source, if it could be opened.
    pub(super) known: Option<KnownSource>,
    /// Whether it had news.
    pub(super) outcome: Result<bool, SourceError>,
}

/// Receives what a lane does.
pub(super) trait LaneObserver {
    fn bytes(&mut self, index: usize, count: u64);
    fn done(&mut self, done: SourceDone);
    fn is_enough(&self) -> bool;
}

/// How far a source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    More,
    AtEnd,
    /// It is not read to its end, because the pass was stopped.
    Stopped,
}

struct Member {
    index: usize,
    source: OpenSource,
    progress: Progress,
    failed: Option<SourceError>,
}

impl Member {
    fn end(&self) -> SourceEnd {
        if self.progress == Progress::More { SourceEnd::Open } else { SourceEnd::Reached }
    }

    /// Runs a step unless an earlier one failed.
    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<(), SourceError>) {
        if self.failed.is_none() {
            self.failed = step(self).err();
        }
    }
}

impl Pass {
    pub(super) fn new(
        journal: &Journal,
        commits: &Arc<SharedCommits>,
        clock: fn() -> jiff::Timestamp,
        groups: Vec<Vec<PlannedSource>>,
        (lanes, open_files_max): (usize, usize),
    ) -> Self {
        let bytes: u64 = groups.iter().flatten().map(|source| source.size_bytes).sum();
        Self {
            journal: journal.clone(),
            commits: Arc::clone(commits),
            clock,
            groups: Mutex::new(groups.into()),
            round_bytes: (bytes / (2 * lanes as u64)).clamp(ROUND_BYTES_MIN, ROUND_BYTES_MAX),
            open_files_max: open_files_max / lanes,
        }
    }

    fn next_group(&self) -> Option<Vec<PlannedSource>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn now(&self) -> String {
        Timestamp::from_instant((self.clock)()).to_string()
    }

    /// Returns how many sources a lane has open at a time. One source with many runs must always be possible.
    fn sources_max(&self) -> usize {
        let room = self.open_files_max.saturating_sub(OPEN_FILES_MAX);
        (room / FILES_PER_SOURCE).clamp(1, ROUND_SOURCES_MAX)
    }
}

/// One thread of a pass.
pub(super) struct Lane<'a> {
    pass: &'a Pass,
    observer: &'a mut dyn LaneObserver,
    /// The rest of the group.
    waiting: VecDeque<PlannedSource>,
    members: Vec<Member>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(pass: &'a Pass, observer: &'a mut dyn LaneObserver) -> Self {
        Self { pass, observer, waiting: VecDeque::new(), members: Vec::new() }
    }

    /// Records sources until there are no more, or until it is enough.
    pub(super) fn run(mut self) {
        loop {
            let recording = self.pass.journal.store().begin_recording((self.pass.clock)());
            let is_stopped = match &recording {
                Ok(_) => self.observer.is_enough(),
                Err(JournalError::Paused) => true,
                Err(error) => {
                    self.fail_all(error);
                    return;
                }
            };
            if is_stopped {
                for member in &mut self.members {
                    member.progress = Progress::Stopped;
                }
            } else {
                self.take_sources();
            }
            if self.members.is_empty() {
                return;
            }
            self.round();
        }
    }

    /// Fails everything that is not recorded.
    fn fail_all(&mut self, error: &JournalError) {
        let failed = |path| SourceError::Journal { path, source: error.clone() };
        for member in &mut self.members {
            member.failed.get_or_insert_with(|| failed(member.source.path().to_owned()));
        }
        self.report();
        while let Some(PlannedSource { index, parts, .. }) = self.next_source() {
            self.tell_failed(index, failed(parts.info.path.0));
        }
    }

    fn next_source(&mut self) -> Option<PlannedSource> {
        if self.waiting.is_empty() {
            self.waiting = self.pass.next_group()?.into();
        }
        self.waiting.pop_front()
    }

    /// Opens sources until there is enough to read.
    fn take_sources(&mut self) {
        let mut bytes = 0;
        while bytes < self.pass.round_bytes
            && self.members.len() < self.pass.sources_max()
            && let Some(PlannedSource { index, size_bytes, parts }) = self.next_source()
        {
            bytes += size_bytes;
            match OpenSource::begin(parts) {
                Ok(source) => {
                    self.members.push(Member { index, source, progress: Progress::More, failed: None });
                }
                Err(error) => self.tell_failed(index, error),
            }
        }
    }

    fn tell_failed(&mut self, index: usize, error: SourceError) {
        let counts = RecordingCounts::default();
        self.observer.done(SourceDone { index, counts, known: None, outcome: Err(error) });
    }

    fn round(&mut self) {
        let ticket = self.pass.commits.begin();
        self.commit_found(ticket);
        self.read();
        if cfg!(feature = "mutant-events-before-evidence") {
            self.write_events(ticket);
            self.commit_bytes(ticket);
        } else {
            self.commit_bytes(ticket);
            self.write_events(ticket);
        }
        self.end_sources(ticket);
        self.report();
    }

    /// Makes safe what the vault had of the sources, and continues after it.
    fn commit_found(&mut self, ticket: SyncTicket) {
        for member in self.members.iter_mut().filter(|member| member.source.is_found()) {
            if member.source.writer().has_tail() {
                member.step(|member| member.source.commit_found());
            }
        }
        self.commit(ticket, |member| member.source.is_found(), |_| SourceEnd::Open);
        for member in &mut self.members {
            member.step(|member| member.source.take_found());
        }
    }

    /// Reads the sources, one after the other, until the round has enough bytes.
    fn read(&mut self) {
        let mut left = self.pass.round_bytes;
        let now = self.pass.now();
        let observer = &mut *self.observer;
        for member in self.members.iter_mut().filter(|member| member.progress == Progress::More) {
            member.step(|member| {
                while left > 0 && member.progress == Progress::More {
                    let before = member.source.read;
                    let read = member.source.read_more(&now)?;
                    let count = member.source.read - before;
                    left = left.saturating_sub(count);
                    observer.bytes(member.index, count);
                    member.progress = match read {
                        // A file may grow faster than it is read.
                        ReadOutcome::More if observer.is_enough() => Progress::Stopped,
                        ReadOutcome::More => Progress::More,
                        ReadOutcome::AtEnd | ReadOutcome::Gone | ReadOutcome::Paused => Progress::AtEnd,
                    };
                }
                if member.progress == Progress::More { Ok(()) } else { member.source.store_rest() }
            });
        }
    }

    /// Makes the bytes safe that were read.
    fn commit_bytes(&mut self, ticket: SyncTicket) {
        self.commit(ticket, |_| true, Member::end);
    }

    fn commit(
        &mut self,
        ticket: SyncTicket,
        is_meant: impl Fn(&Member) -> bool,
        end: impl Fn(&Member) -> SourceEnd,
    ) {
        let mut members: Vec<&mut Member> =
            self.members.iter_mut().filter(|member| member.failed.is_none() && is_meant(member)).collect();
        let mut writers: Vec<_> = members
            .iter_mut()
            .map(|member| {
                let end = end(member);
                (member.source.writer(), end)
            })
            .collect();
        let outcomes = self.pass.commits.commit(ticket, &mut writers);
        drop(writers);
        for (member, outcome) in members.into_iter().zip(outcomes) {
            let path = member.source.path().to_owned();
            member.step(|_| outcome.map_err(SourceError::vault(&path)));
        }
    }

    /// Makes events of the bytes that are safe, and makes these safe.
    fn write_events(&mut self, ticket: SyncTicket) {
        let mut set = SyncSet::default();
        let mut open_files = 0;
        let open_files_max = self.pass.open_files_max.saturating_sub(OPEN_FILES_MAX);
        for member in &mut self.members {
            member.step(|member| {
                member.source.feed_committed()?;
                if member.progress == Progress::AtEnd {
                    member.source.finish()?;
                }
                member.source.write_out(&mut set)?;
                open_files += member.source.open_files();
                if open_files > open_files_max { member.source.close_runs() } else { Ok(()) }
            });
        }
        if let Err(error) = self.pass.commits.sync(ticket, &set) {
            for member in &mut self.members {
                member.step(|member| Err(member.source.sync_failed(|| same(&error))));
            }
        }
    }

    /// Says in the manifests how far the sources are that are read to their ends.
    fn end_sources(&mut self, ticket: SyncTicket) {
        let mut set = SyncSet::default();
        let now = self.pass.now();
        for member in self.members.iter_mut().filter(|member| member.progress != Progress::More) {
            member.step(|member| member.source.write_end(&now, &mut set));
        }
        if let Err(error) = self.pass.commits.sync(ticket, &set) {
            for member in self.members.iter_mut().filter(|member| member.progress != Progress::More) {
                member.step(|member| Err(member.source.sync_failed(|| same(&error))));
            }
        }
    }

    /// Releases the sources that are done or failed.
    fn report(&mut self) {
        for mut member in std::mem::take(&mut self.members) {
            if member.failed.is_none() && member.progress == Progress::More {
                self.members.push(member);
                continue;
            }
            let mut counts = RecordingCounts::default();
            count(&member.source, &mut counts);
            let outcome = match member.failed.take() {
                Some(error) => Err(error),
                None => member.source.end().map(|_| member.source.read > 0),
            };
            let known = Some(member.source.known());
            let index = member.index;
            // Its locks are released before anyone hears of it.
            drop(member);
            self.observer.done(SourceDone { index, counts, known, outcome });
        }
    }
}

/// Returns the same error for another source.
fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error)
}
