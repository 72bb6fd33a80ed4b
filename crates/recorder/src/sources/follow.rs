//! Follows files as they grow, until asked to stop.
//!
//! A source is opened when it has new bytes, and closed when it has been quiet for a while. So a process holds few
//! files open, and another process can continue with the others.

mod pause;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use steno_capture::discovery::Home;
use steno_capture::tail::{Changes, TailOptions, Waker, Watch};
use steno_disk::StorePath;
use steno_journal::Pause;

use super::catalog::{packed_name, plain_name};
use super::follower_lock::{FollowerChange, FollowerLock, FollowerProcess};
use super::health::{FileOutcome, FileTally};
use super::import::count;
use super::locations::{SourceListing, SourceLocations};
use super::retries::{HELD_WAIT, Retries};
use super::source::{OPEN_FILES_MAX, OpenSource, ReadOutcome};
use super::{RecordingCounts, SourceError, SourceFile, SourceRecorder, is_unchanged};

/// A source without new bytes is closed after this time.
const QUIET_AFTER: Duration = Duration::from_secs(30);
/// The most sources that are open at a time. If more grow at once they take turns, each reopened from the vault.
const HELD_MAX: usize = 64;
/// How many files are open besides those of open sources: the watch, the pack, and files that are opened briefly.
const OPEN_FILES_BESIDE: usize = 20;
/// How many reads one source gets before the next source.
const LOOKS_PER_TURN: usize = 32;
/// The pack is closed after this time without new bytes, so that others can rely on it.
const SETTLE_AFTER: Duration = Duration::from_secs(5);
/// The longest wait before checking for quiet sources and new homes.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How long the last round may take after a stop, unless another time is set.
const LAST_ROUND_MAX: Duration = Duration::from_secs(5);

/// Receives the events of following, and says when to stop.
pub trait FollowObserver {
    /// Tells whether to stop.
    fn is_stopped(&self) -> bool;

    /// Tells whether recording is paused: no file is read meanwhile.
    fn is_paused(&self) -> bool {
        false
    }

    /// Returns the agents' homes that exist now. A new one is followed from then on.
    fn homes(&self) -> Vec<Home> {
        Vec::new()
    }

    /// Another process follows into the same store: its sources are left to it.
    fn other_follower(&mut self, _other: FollowerProcess) {}

    /// The other process has ended, and its sources are taken over.
    fn taken_over(&mut self) {}

    /// Everything that existed when following began is recorded; now it waits for changes.
    fn ready(&mut self) {}

    /// Events of a file were recorded.
    fn recorded(&mut self, path: &Path, events: u64);

    /// A file that was recorded no longer exists.
    fn gone(&mut self, _path: &Path) {}

    /// A file could not be recorded. It is tried again.
    fn failed(&mut self, path: &Path, error: &SourceError);
}

/// An open source.
struct FollowedSource {
    source: OpenSource,
    news: Instant,
    events: u64,
}

impl FollowedSource {
    /// Reports new events.
    fn tell(&mut self, watcher: &mut dyn FollowObserver) {
        let (events, _) = self.source.events();
        if events > self.events {
            watcher.recorded(self.source.path(), events - self.events);
            self.events = events;
        }
    }
}

/// Follows the files of some locations.
pub struct SourceFollower<'a> {
    recorder: &'a mut SourceRecorder,
    places: SourceLocations,
    watch: Watch,
    sources: HashMap<PathBuf, FollowedSource>,
    /// Files to read now.
    due: BTreeSet<PathBuf>,
    /// Files to read later.
    later: Retries,
    /// Whether all files have to be listed again.
    is_blind: bool,
    /// When homes were last listed.
    homes_looked_for: Instant,
    presence: FollowerLock,
    news: Instant,
    is_settled: bool,
    last_round_max: Duration,
    open_files_max: usize,
    files: FileTally,
    health: RecordingCounts,
    /// The current pause, if what is written during it is to be skipped.
    skipping: Option<Pause>,
}

impl<'a> SourceFollower<'a> {
    /// Begins to watch. Nothing is recorded before [`SourceFollower::run`].
    pub fn new(recorder: &'a mut SourceRecorder, places: SourceLocations, options: TailOptions) -> Self {
        let presence = FollowerLock::new(Arc::clone(recorder.disk()));
        Self {
            recorder,
            places,
            watch: Watch::new(options),
            sources: HashMap::new(),
            due: BTreeSet::new(),
            later: Retries::default(),
            is_blind: true,
            homes_looked_for: Instant::now(),
            presence,
            news: Instant::now(),
            is_settled: true,
            last_round_max: LAST_ROUND_MAX,
            open_files_max: usize::MAX,
            files: FileTally::default(),
            health: RecordingCounts::default(),
            skipping: None,
        }
    }

    /// Sets how long the last round may take after a stop.
    #[must_use]
    pub fn with_last_round(self, last_round_max: Duration) -> Self {
        Self { last_round_max, ..self }
    }

    /// Sets how many files may be open. This limits the number of open sources; one is always possible.
    #[must_use]
    pub fn with_open_files(self, open_files_max: usize) -> Self {
        Self { open_files_max, ..self }
    }

    /// Returns a handle that ends the wait, to stop following.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.watch.waker()
    }

    /// Follows until the observer says stop; then records what is there, closes everything, and returns the counts.
    ///
    /// # Errors
    /// An error of the vault when the pack is closed.
    pub fn run(mut self, watcher: &mut dyn FollowObserver) -> Result<RecordingCounts, SourceError> {
        let mut is_ready = false;
        // A pause begins with a file in this directory.
        if let Some(store) = self.recorder.disk().host_path(&StorePath::root()) {
            self.watch.add_dir(&store);
        }
        while !watcher.is_stopped() {
            if self.is_paused(watcher) {
                // Changes during the pause are not collected; everything is listed afterwards.
                self.let_go_of_all(watcher);
                self.settle(watcher);
                (self.due, self.is_blind) = (BTreeSet::new(), true);
            } else {
                self.round(watcher);
                if !is_ready && self.due.is_empty() {
                    is_ready = true;
                    watcher.ready();
                }
            }
            let changes = self.watch.wait(self.patience());
            self.take_changes(changes);
        }
        // If stopped before everything that existed is recorded, do not wait for the rest.
        if is_ready && !watcher.is_paused() {
            self.last_round(watcher);
        }
        self.let_go_of_all(watcher);
        self.recorder.settle()?;
        self.files.count(&mut self.health);
        if !watcher.is_paused() {
            self.health.files_unread = self.unread(is_ready);
        }
        Ok(self.health)
    }

    /// Reads all due files once. A file with more bytes is due again after the others.
    fn round(&mut self, watcher: &mut dyn FollowObserver) {
        match self.presence.show() {
            FollowerChange::AsBefore => {}
            FollowerChange::Follows(other) => watcher.other_follower(other),
            FollowerChange::Ended => watcher.taken_over(),
        }
        self.gather(watcher);
        self.look_at_due(watcher, |watcher| watcher.is_stopped());
        self.let_go_of_quiet(watcher);
    }

    /// Reads all due files once, until `is_enough`.
    fn look_at_due(
        &mut self,
        watcher: &mut dyn FollowObserver,
        is_enough: impl Fn(&dyn FollowObserver) -> bool,
    ) {
        let mut due = std::mem::take(&mut self.due);
        while !is_enough(watcher)
            && let Some(path) = due.pop_first()
        {
            self.look_at(&path, watcher);
        }
        self.due.append(&mut due);
    }

    /// Lists everything once more: agents write their last files while they end, and may have been stopped together
    /// with us.
    fn last_round(&mut self, watcher: &mut dyn FollowObserver) {
        let begun = Instant::now();
        self.is_blind = true;
        self.gather(watcher);
        let most = self.last_round_max;
        let is_enough = |_: &dyn FollowObserver| begun.elapsed() >= most;
        while !self.due.is_empty() && !is_enough(watcher) {
            self.look_at_due(watcher, is_enough);
        }
    }

    /// Counts the files with unread bytes. If following was never ready, it has not seen all files.
    fn unread(&self, is_ready: bool) -> u64 {
        let listed = if is_ready { Vec::new() } else { self.places.list().files };
        let mut files: HashMap<PathBuf, SourceFile> =
            listed.into_iter().map(|file| (file.path().to_owned(), file)).collect();
        for path in self.due.iter().chain(self.later.paths()) {
            files.extend(self.places.at(path).map(|file| (path.clone(), file)));
        }
        let is_left = |file: &&SourceFile| !self.files.is_held(file.path()) && self.recorder.is_unread(file);
        files.values().filter(is_left).count() as u64
    }

    /// Collects the due files.
    fn gather(&mut self, watcher: &dyn FollowObserver) {
        self.look_for_homes(watcher);
        if std::mem::take(&mut self.is_blind) {
            self.take_all(SourceLocations::list);
        }
        self.due.extend(self.later.take_due(Instant::now()));
    }

    /// Adds new homes: an agent creates its home when it runs for the first time.
    fn look_for_homes(&mut self, watcher: &dyn FollowObserver) {
        if !self.is_blind && self.homes_looked_for.elapsed() < WAIT_MAX {
            return;
        }
        self.homes_looked_for = Instant::now();
        for home in watcher.homes() {
            let is_same = |known: &Home| (known.provider, &known.root) == (home.provider, &home.root);
            if !self.places.homes.iter().any(is_same) {
                self.places.homes.push(home);
                self.is_blind = true;
            }
        }
    }

    fn take_changes(&mut self, changes: Changes) {
        self.is_blind |= changes.overflow;
        for dir in changes.dirs {
            self.take_all(|places| places.list_below(&dir));
        }
        self.due.extend(changes.paths);
    }

    /// Takes a listing. If it has directories that were not watched yet, lists once more: the watch does not report
    /// files that were created before it was set.
    fn take_all(&mut self, list: impl Fn(&SourceLocations) -> SourceListing) {
        while self.take(list(&self.places)) {}
    }

    /// Watches the listed files and makes changed ones due; returns whether directories are new.
    fn take(&mut self, listing: SourceListing) -> bool {
        let mut has_new = false;
        for dir in &listing.dirs {
            has_new |= self.watch.add_dir(dir);
        }
        for file in listing.files {
            self.watch.add_file(file.path());
            self.files.take(file.path(), FileOutcome::Listed);
            let is_old =
                self.recorder.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, &file));
            if !is_old {
                self.due.insert(file.path().to_owned());
            }
        }
        has_new
    }

    fn look_at(&mut self, path: &Path, watcher: &mut dyn FollowObserver) {
        let mut outcome = self.try_to_look_at(path, watcher);
        if outcome.as_ref().is_err_and(SourceError::is_too_many_files) && !self.sources.is_empty() {
            // The open sources have had their turn.
            self.let_go_of_all(watcher);
            outcome = self.try_to_look_at(path, watcher);
        }
        if let Err(error) = outcome {
            if error.is_forgotten() {
                self.files.take(path, FileOutcome::Forgotten);
                return;
            }
            if error.is_held() {
                self.later.retry_held(path, Instant::now());
                self.files.take(path, FileOutcome::Held);
            } else {
                self.fail(path, &error, watcher);
            }
        }
    }

    fn try_to_look_at(&mut self, path: &Path, watcher: &mut dyn FollowObserver) -> Result<(), SourceError> {
        if let Some(entry) = self.sources.remove(path) {
            return self.read_on(entry, watcher);
        }
        if let Some(file) = self.places.at(path) {
            return self.begin(&file, watcher);
        }
        self.look_for_packed(path);
        if self.recorder.catalog.at(path).is_some() {
            watcher.gone(path);
        }
        Ok(())
    }

    fn begin(&mut self, file: &SourceFile, watcher: &mut dyn FollowObserver) -> Result<(), SourceError> {
        if self.recorder.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
            return Ok(());
        }
        let Some(recording) = self.recorder.enter(file.path())? else { return Ok(()) };
        self.make_way(file, watcher);
        if let Some(mixed) = self.recorder.mixed(file) {
            let look = self.recorder.record_mixed(file, mixed)?;
            self.health.add_mixed(look);
            self.later.succeeded(file.path());
            self.files.take(file.path(), if look.added > 0 { FileOutcome::New } else { FileOutcome::Quiet });
            (self.news, self.is_settled) = (Instant::now(), self.is_settled && look.added == 0);
            return Ok(());
        }
        self.make_room(watcher);
        let source = self.recorder.take_up(file)?;
        drop(recording);
        self.read_on(FollowedSource { source, news: Instant::now(), events: 0 }, watcher)
    }

    /// Reads new bytes and keeps the source open.
    fn read_on(
        &mut self,
        mut entry: FollowedSource,
        watcher: &mut dyn FollowObserver,
    ) -> Result<(), SourceError> {
        let before = entry.source.read;
        let mut turn = ReadOutcome::More;
        for _ in 0..LOOKS_PER_TURN {
            turn = entry.source.turn(&self.recorder.now())?;
            if turn != ReadOutcome::More {
                break;
            }
        }
        let path = entry.source.path().to_owned();
        match turn {
            ReadOutcome::More => drop(self.due.insert(path.clone())),
            ReadOutcome::AtEnd | ReadOutcome::Paused => {}
            ReadOutcome::Gone => {
                self.look_for_packed(&path);
                watcher.gone(&path);
            }
        }
        entry.tell(watcher);
        self.later.succeeded(&path);
        let is_new = entry.source.read > before;
        self.files.take(&path, if is_new { FileOutcome::New } else { FileOutcome::Quiet });
        if is_new {
            (entry.news, self.news, self.is_settled) = (Instant::now(), Instant::now(), false);
        }
        let is_shared = entry.source.is_shared();
        self.sources.insert(path.clone(), entry);
        if is_shared && turn != ReadOutcome::More {
            // Every session adds to this file, so `steno forget` needs it.
            self.let_go(&path, watcher);
        }
        Ok(())
    }

    /// Makes the compressed form of a missing file due: it was not reported while both existed.
    fn look_for_packed(&mut self, path: &Path) {
        let packed = packed_name(path).filter(|packed| packed.exists() && !self.sources.contains_key(packed));
        self.due.extend(packed);
    }

    /// Closes open sources that may be this file under a former name, so that it can be opened under this one.
    fn make_way(&mut self, file: &SourceFile, watcher: &mut dyn FollowObserver) {
        let may_be = |(path, entry): &(&PathBuf, &FollowedSource)| {
            let is_named = plain_name(path).file_name() == plain_name(file.path()).file_name();
            plain_name(path) == plain_name(file.path())
                || ((is_named || entry.source.file() == Some(file.file)) && !path.exists())
        };
        let former: Vec<PathBuf> = self.sources.iter().filter(may_be).map(|(path, _)| path.clone()).collect();
        for path in &former {
            self.let_go(path, watcher);
        }
    }

    /// Closes the sources that have been quiet for longest, if there are many or another one could open too many files.
    fn make_room(&mut self, watcher: &mut dyn FollowObserver) {
        let room = self.open_files_max.saturating_sub(OPEN_FILES_BESIDE + OPEN_FILES_MAX);
        let open = |sources: &HashMap<PathBuf, FollowedSource>| {
            sources.values().map(|entry| entry.source.open_files()).sum::<usize>()
        };
        while self.sources.len() >= HELD_MAX || open(&self.sources) > room {
            let oldest =
                self.sources.iter().min_by_key(|(_, entry)| entry.news).map(|(path, _)| path.clone());
            let Some(path) = oldest else { return };
            self.let_go(&path, watcher);
        }
    }

    fn let_go_of_quiet(&mut self, watcher: &mut dyn FollowObserver) {
        let quiet = |entry: &FollowedSource| entry.news.elapsed() >= QUIET_AFTER;
        let paths: Vec<PathBuf> =
            self.sources.iter().filter(|(_, entry)| quiet(entry)).map(|(path, _)| path.clone()).collect();
        for path in &paths {
            self.let_go(path, watcher);
        }
        // Forgotten data cannot be deleted as long as it is in an open pack.
        let is_waited_for = || self.recorder.vault().is_sweep_due().unwrap_or(false);
        if self.news.elapsed() >= SETTLE_AFTER || !self.is_settled && is_waited_for() {
            self.settle(watcher);
        }
    }

    /// Closes the pack, so that others can rely on it.
    fn settle(&mut self, watcher: &mut dyn FollowObserver) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        if let Err(error) = self.recorder.settle() {
            watcher.failed(Path::new(""), &error);
        }
    }

    fn let_go_of_all(&mut self, watcher: &mut dyn FollowObserver) {
        let mut paths: Vec<PathBuf> = self.sources.keys().cloned().collect();
        paths.sort();
        for path in &paths {
            self.let_go(path, watcher);
        }
    }

    fn let_go(&mut self, path: &Path, watcher: &mut dyn FollowObserver) {
        let Some(mut entry) = self.sources.remove(path) else { return };
        let is_sure = if watcher.is_paused() { Ok(()) } else { entry.source.make_sure(&self.recorder.now()) };
        entry.tell(watcher);
        count(&entry.source, &mut self.health);
        if let Err(error) = is_sure.and_then(|()| self.recorder.let_go(entry.source)) {
            self.fail(path, &error, watcher);
        }
    }

    fn fail(&mut self, path: &Path, error: &SourceError, watcher: &mut dyn FollowObserver) {
        self.later.retry_failed(path, Instant::now());
        self.files.take(path, FileOutcome::Failed);
        watcher.failed(path, error);
    }

    /// Returns how long to wait for changes.
    fn patience(&self) -> Duration {
        if !self.due.is_empty() {
            return Duration::ZERO;
        }
        // While another process follows, check often whether it has ended.
        let most = if self.presence.has_other() { HELD_WAIT } else { WAIT_MAX };
        self.later.wait(Instant::now()).unwrap_or(most).min(most)
    }
}
