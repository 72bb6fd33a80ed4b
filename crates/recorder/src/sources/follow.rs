//! Follows files as they grow, until it is told to stop.
//!
//! A source that has something new is taken up, and let go again when it has been quiet for a while: a process holds few
//! files open however many there are, and another process can take over what this one leaves.

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
use super::source::{OPEN_FILES_MAX, OpenSource, Pace, ReadOutcome};
use super::{RecordingCounts, SourceError, SourceFile, SourceRecorder, is_unchanged};

/// After how long without news a source is let go.
const QUIET_AFTER: Duration = Duration::from_secs(30);
/// How many sources are held at a time, unless fewer are to be. When more are busy at once they take turns, each taken up
/// again from the vault.
const HELD_MAX: usize = 64;
/// How many files are open beside those of the sources that are held: what watches, the pack, and what is opened for a
/// moment.
const OPEN_FILES_BESIDE: usize = 20;
/// How many looks one source has before it is another's turn.
const LOOKS_PER_TURN: usize = 32;
/// After how long without news the pack is closed, so that others can rely on it.
const SETTLE_AFTER: Duration = Duration::from_secs(5);
/// How long to wait at most before looking after those that are quiet, and for new homes.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How long is looked for what is new after somebody said stop, unless another time is set.
const LAST_ROUND_MAX: Duration = Duration::from_secs(5);

/// Hears how following goes on, and says when to stop.
pub trait FollowObserver {
    /// Tells whether to stop.
    fn is_stopped(&self) -> bool;

    /// Tells whether recording is paused: files are left alone until it is not.
    fn is_paused(&self) -> bool {
        false
    }

    /// Returns the agents' homes that are there now. One that is new is followed from then on.
    fn homes(&self) -> Vec<Home> {
        Vec::new()
    }

    /// Another process follows into the store too: what it records is left to it.
    fn other_follower(&mut self, _other: FollowerProcess) {}

    /// The other process has ended, and what it recorded is taken over.
    fn taken_over(&mut self) {}

    /// Everything that was there when following began is recorded, and what comes is waited for.
    fn ready(&mut self) {}

    /// Events of a file were recorded.
    fn recorded(&mut self, path: &Path, events: u64);

    /// A file could not be recorded. It is tried again.
    fn failed(&mut self, path: &Path, error: &SourceError);
}

/// A source that is held.
struct FollowedSource {
    source: OpenSource,
    news: Instant,
    events: u64,
}

impl FollowedSource {
    /// Tells of the events that are new.
    fn tell(&mut self, watcher: &mut dyn FollowObserver) {
        let (events, _) = self.source.events();
        if events > self.events {
            watcher.recorded(self.source.path(), events - self.events);
            self.events = events;
        }
    }
}

/// Follows what is in some places.
pub struct SourceFollower<'a> {
    archive: &'a mut SourceRecorder,
    places: SourceLocations,
    watch: Watch,
    held: HashMap<PathBuf, FollowedSource>,
    /// What has to be looked at.
    due: BTreeSet<PathBuf>,
    /// What has to be looked at later.
    later: Retries,
    /// Whether everything has to be listed again.
    is_blind: bool,
    /// When homes were last looked for.
    homes_looked_for: Instant,
    presence: FollowerLock,
    news: Instant,
    is_settled: bool,
    last_round_max: Duration,
    open_files_max: usize,
    files: FileTally,
    health: RecordingCounts,
    /// The pause that is on, if what is written meanwhile is to be left out.
    skipping: Option<Pause>,
}

impl<'a> SourceFollower<'a> {
    /// Begins to watch. Nothing is recorded before [`SourceFollower::run`].
    pub fn new(archive: &'a mut SourceRecorder, places: SourceLocations, options: TailOptions) -> Self {
        let presence = FollowerLock::new(Arc::clone(archive.disk()));
        Self {
            archive,
            places,
            watch: Watch::new(options),
            held: HashMap::new(),
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

    /// Sets how long is looked for what is new after somebody said stop.
    #[must_use]
    pub fn with_last_round(self, last_round_max: Duration) -> Self {
        Self { last_round_max, ..self }
    }

    /// Sets how many files may be open. The fewer, the fewer sources are held at a time; one is in any case.
    #[must_use]
    pub fn with_open_files(self, open_files_max: usize) -> Self {
        Self { open_files_max, ..self }
    }

    /// Returns a handle that ends the waiting, for whoever wants to stop it.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.watch.waker()
    }

    /// Returns how the watching is done.
    #[must_use]
    pub fn watching(&self) -> steno_capture::tail::Health {
        self.watch.health()
    }

    /// Follows until the watcher says stop; then records what is there, lets go of everything, and returns what was done.
    ///
    /// # Errors
    /// What the vault says when it is left in order.
    pub fn run(mut self, watcher: &mut dyn FollowObserver) -> Result<RecordingCounts, SourceError> {
        let mut is_ready = false;
        // A pause begins with a file there.
        if let Some(store) = self.archive.disk().host_path(&StorePath::root()) {
            self.watch.add_dir(&store);
        }
        while !watcher.is_stopped() {
            if self.is_paused(watcher) {
                // What happens meanwhile is not kept in mind, but looked for afterwards.
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
            self.hear(changes);
        }
        // Who stops before all that was there is recorded does not want to wait for it.
        if is_ready && !watcher.is_paused() {
            self.last_round(watcher);
        }
        self.let_go_of_all(watcher);
        self.archive.settle()?;
        self.files.count(&mut self.health);
        if !watcher.is_paused() {
            self.health.files_unread = self.unread(is_ready);
        }
        Ok(self.health)
    }

    /// Looks at everything that is due, once: what has more is due again, after others had their turn.
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

    /// Looks at everything that is due, once, as long as it is not enough.
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

    /// Looks everywhere once more: agents write their last files while they end, and may have been stopped together
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

    /// Counts the files that have bytes which were not read. Who was never ready has not seen all of them.
    fn unread(&self, is_ready: bool) -> u64 {
        let listed = if is_ready { Vec::new() } else { self.places.list().files };
        let mut files: HashMap<PathBuf, SourceFile> =
            listed.into_iter().map(|file| (file.path().to_owned(), file)).collect();
        for path in self.due.iter().chain(self.later.paths()) {
            files.extend(self.places.at(path).map(|file| (path.clone(), file)));
        }
        let is_left = |file: &&SourceFile| !self.files.is_held(file.path()) && self.archive.is_unread(file);
        files.values().filter(is_left).count() as u64
    }

    /// Finds out what is due.
    fn gather(&mut self, watcher: &dyn FollowObserver) {
        self.look_for_homes(watcher);
        if std::mem::take(&mut self.is_blind) {
            self.take_all(SourceLocations::list);
        }
        self.due.extend(self.later.take_due(Instant::now()));
    }

    /// Takes in homes that were not there before: an agent makes its own when it runs for the first time.
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

    fn hear(&mut self, changes: Changes) {
        self.is_blind |= changes.overflow;
        for dir in changes.dirs {
            self.take_all(|places| places.list_below(&dir));
        }
        self.due.extend(changes.paths);
    }

    /// Takes in what is listed. Where that has directories that were not watched yet, it is listed once more: what was
    /// made in them before the watch was set is told of by nobody.
    fn take_all(&mut self, list: impl Fn(&SourceLocations) -> SourceListing) {
        while self.take(list(&self.places)) {}
    }

    /// Watches what was found, and has it looked at unless nothing is new; says whether directories are new.
    fn take(&mut self, found: SourceListing) -> bool {
        let mut has_new = false;
        for dir in &found.dirs {
            has_new |= self.watch.add_dir(dir);
        }
        for file in found.files {
            self.watch.add_file(file.path());
            self.files.take(file.path(), FileOutcome::Listed);
            let is_old = self.archive.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, &file));
            if !is_old {
                self.due.insert(file.path().to_owned());
            }
        }
        has_new
    }

    fn look_at(&mut self, path: &Path, watcher: &mut dyn FollowObserver) {
        let mut outcome = self.try_to_look_at(path, watcher);
        if outcome.as_ref().is_err_and(SourceError::is_too_many_files) && !self.held.is_empty() {
            // Those that are held have had their turn.
            self.let_go_of_all(watcher);
            outcome = self.try_to_look_at(path, watcher);
        }
        if let Err(error) = outcome {
            if error.is_forgotten() {
                self.files.take(path, FileOutcome::Forgotten);
                return;
            }
            if error.is_held() {
                self.later.held(path, Instant::now());
                self.files.take(path, FileOutcome::Held);
            } else {
                self.fail(path, &error, watcher);
            }
        }
    }

    fn try_to_look_at(&mut self, path: &Path, watcher: &mut dyn FollowObserver) -> Result<(), SourceError> {
        if let Some(held) = self.held.remove(path) {
            return self.read_on(held, watcher);
        }
        if let Some(file) = self.places.at(path) {
            return self.begin(&file, watcher);
        }
        self.look_for_packed(path);
        Ok(())
    }

    fn begin(&mut self, file: &SourceFile, watcher: &mut dyn FollowObserver) -> Result<(), SourceError> {
        if self.archive.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
            return Ok(());
        }
        let Some(recording) = self.archive.enter(file.path())? else { return Ok(()) };
        self.make_way(file, watcher);
        if let Some(mixed) = self.archive.mixed(file) {
            let look = self.archive.record_mixed(file, mixed)?;
            self.health.add_mixed(look);
            self.later.succeeded(file.path());
            self.files.take(file.path(), if look.added > 0 { FileOutcome::New } else { FileOutcome::Quiet });
            (self.news, self.is_settled) = (Instant::now(), self.is_settled && look.added == 0);
            return Ok(());
        }
        self.make_room(watcher);
        let source = self.archive.take_up(file, Pace::Live)?;
        drop(recording);
        self.read_on(FollowedSource { source, news: Instant::now(), events: 0 }, watcher)
    }

    /// Reads what is new, and holds on to the source.
    fn read_on(
        &mut self,
        mut held: FollowedSource,
        watcher: &mut dyn FollowObserver,
    ) -> Result<(), SourceError> {
        let before = held.source.read;
        let mut turn = ReadOutcome::More;
        for _ in 0..LOOKS_PER_TURN {
            turn = held.source.turn(&self.archive.now())?;
            if turn != ReadOutcome::More {
                break;
            }
        }
        let path = held.source.path().to_owned();
        match turn {
            ReadOutcome::More => drop(self.due.insert(path.clone())),
            ReadOutcome::AtEnd | ReadOutcome::Paused => {}
            ReadOutcome::Gone => self.look_for_packed(&path),
        }
        held.tell(watcher);
        self.later.succeeded(&path);
        let is_new = held.source.read > before;
        self.files.take(&path, if is_new { FileOutcome::New } else { FileOutcome::Quiet });
        if is_new {
            (held.news, self.news, self.is_settled) = (Instant::now(), Instant::now(), false);
        }
        let is_shared = held.source.is_shared();
        self.held.insert(path.clone(), held);
        if is_shared && turn != ReadOutcome::More {
            // Every session adds to it: whoever has one of them forgotten needs it.
            self.let_go(&path, watcher);
        }
        Ok(())
    }

    /// Has the compressed form of a file looked at that is not there: nobody told of it while both were.
    fn look_for_packed(&mut self, path: &Path) {
        let packed = packed_name(path).filter(|packed| packed.exists() && !self.held.contains_key(packed));
        self.due.extend(packed);
    }

    /// Lets go of what may be a file under the name that it had before, so that it can be taken up under this one.
    fn make_way(&mut self, file: &SourceFile, watcher: &mut dyn FollowObserver) {
        let may_be = |(path, held): &(&PathBuf, &FollowedSource)| {
            let is_named = plain_name(path).file_name() == plain_name(file.path()).file_name();
            plain_name(path) == plain_name(file.path())
                || ((is_named || held.source.file() == Some(file.file)) && !path.exists())
        };
        let former: Vec<PathBuf> = self.held.iter().filter(may_be).map(|(path, _)| path.clone()).collect();
        for path in &former {
            self.let_go(path, watcher);
        }
    }

    /// Lets go of the sources that have been quiet for longest, when there are many, or another could open too many files.
    fn make_room(&mut self, watcher: &mut dyn FollowObserver) {
        let room = self.open_files_max.saturating_sub(OPEN_FILES_BESIDE + OPEN_FILES_MAX);
        let open = |held: &HashMap<PathBuf, FollowedSource>| {
            held.values().map(|held| held.source.open_files()).sum::<usize>()
        };
        while self.held.len() >= HELD_MAX || open(&self.held) > room {
            let oldest = self.held.iter().min_by_key(|(_, held)| held.news).map(|(path, _)| path.clone());
            let Some(path) = oldest else { return };
            self.let_go(&path, watcher);
        }
    }

    fn let_go_of_quiet(&mut self, watcher: &mut dyn FollowObserver) {
        let quiet = |held: &FollowedSource| held.news.elapsed() >= QUIET_AFTER;
        let paths: Vec<PathBuf> =
            self.held.iter().filter(|(_, held)| quiet(held)).map(|(path, _)| path.clone()).collect();
        for path in &paths {
            self.let_go(path, watcher);
        }
        // What was forgotten cannot go as long as it stands in a pack that is open.
        let is_waited_for = || self.archive.vault().is_sweep_due().unwrap_or(false);
        if self.news.elapsed() >= SETTLE_AFTER || !self.is_settled && is_waited_for() {
            self.settle(watcher);
        }
    }

    /// Closes the pack, so that others can rely on it.
    fn settle(&mut self, watcher: &mut dyn FollowObserver) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        if let Err(error) = self.archive.settle() {
            watcher.failed(Path::new(""), &error);
        }
    }

    fn let_go_of_all(&mut self, watcher: &mut dyn FollowObserver) {
        let mut paths: Vec<PathBuf> = self.held.keys().cloned().collect();
        paths.sort();
        for path in &paths {
            self.let_go(path, watcher);
        }
    }

    fn let_go(&mut self, path: &Path, watcher: &mut dyn FollowObserver) {
        let Some(mut held) = self.held.remove(path) else { return };
        let is_sure = if watcher.is_paused() { Ok(()) } else { held.source.make_sure(&self.archive.now()) };
        held.tell(watcher);
        count(&held.source, &mut self.health);
        if let Err(error) = is_sure.and_then(|()| self.archive.let_go(held.source)) {
            self.fail(path, &error, watcher);
        }
    }

    fn fail(&mut self, path: &Path, error: &SourceError, watcher: &mut dyn FollowObserver) {
        self.later.failed(path, Instant::now());
        self.files.take(path, FileOutcome::Failed);
        watcher.failed(path, error);
    }

    /// Returns how long to wait for news.
    fn patience(&self) -> Duration {
        if !self.due.is_empty() {
            return Duration::ZERO;
        }
        // Who waits for another to end takes over soon.
        let most = if self.presence.has_other() { HELD_WAIT } else { WAIT_MAX };
        self.later.wait(Instant::now()).unwrap_or(most).min(most)
    }
}
