//! Follows files as they grow, until it is told to stop.
//!
//! A source that has something new is taken up, and let go again when it has been quiet for a while: a process holds few
//! files open however many there are, and another process can take over what this one leaves.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use steno_capture::tail::{Changes, TailOptions, Waker, Watch};

use super::import::count;
use super::places::{Found, Places};
use super::presence::Presence;
use super::source::{OpenSource, Pace, Turn};
use super::{Archive, Error, Health, ToArchive, is_unchanged};

/// After how long without news a source is let go.
const QUIET_AFTER: Duration = Duration::from_secs(30);
/// How many sources are held at a time, unless more than that have news at once.
const HELD_MAX: usize = 64;
/// How many looks one source has before it is another's turn.
const LOOKS_PER_TURN: usize = 32;
/// After how long a source is tried again that could not be recorded, or that another process held.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// After how long without news the pack is closed, so that others can rely on it.
const SETTLE_AFTER: Duration = Duration::from_secs(5);
/// How often it is asked where to look.
const PLACES_EVERY: Duration = Duration::from_secs(30);
/// How long to wait at most before looking after those that are quiet.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Hears how following goes on, and says when to stop.
pub trait Watcher {
    /// Tells whether to stop.
    fn is_stopped(&self) -> bool;

    /// Tells whether recording is paused: files are left alone until it is not.
    fn is_paused(&self) -> bool {
        false
    }

    /// Returns where to look now, if that may have changed: agents are installed and removed. Asked now and then.
    fn places(&self) -> Option<Places> {
        None
    }

    /// Everything that was there when following began is recorded, and what comes is waited for.
    fn ready(&mut self) {}

    /// Events of a file were recorded.
    fn recorded(&mut self, path: &Path, events: u64);

    /// A file could not be recorded. It is tried again.
    fn failed(&mut self, path: &Path, error: &Error);
}

/// A source that is held.
struct Held {
    source: OpenSource,
    news: Instant,
    events: u64,
}

/// Follows what is in some places.
pub struct Following<'a> {
    archive: &'a mut Archive,
    places: Places,
    watch: Watch,
    held: HashMap<PathBuf, Held>,
    /// What has to be looked at.
    due: BTreeSet<PathBuf>,
    /// What has to be looked at later.
    later: HashMap<PathBuf, Instant>,
    /// Whether everything has to be listed again.
    is_blind: bool,
    /// When it was last asked where to look.
    asked: Instant,
    presence: Presence,
    news: Instant,
    is_settled: bool,
    health: Health,
}

impl<'a> Following<'a> {
    /// Begins to watch. Nothing is recorded before [`Following::run`].
    pub fn new(archive: &'a mut Archive, places: Places, options: TailOptions) -> Self {
        let presence = Presence::new(Arc::clone(archive.journal.store().disk()));
        Self {
            archive,
            places,
            watch: Watch::new(options),
            held: HashMap::new(),
            due: BTreeSet::new(),
            later: HashMap::new(),
            is_blind: true,
            asked: Instant::now(),
            presence,
            news: Instant::now(),
            is_settled: true,
            health: Health::default(),
        }
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
    pub fn run(mut self, watcher: &mut dyn Watcher) -> Result<Health, Error> {
        let mut is_ready = false;
        while !watcher.is_stopped() {
            if watcher.is_paused() {
                // What happens meanwhile is not kept in mind, but looked for afterwards.
                self.let_go_of_all(watcher);
                (self.due, self.is_blind) = (BTreeSet::new(), true);
            } else {
                self.round(watcher);
            }
            if !is_ready && self.due.is_empty() {
                is_ready = true;
                watcher.ready();
            }
            let changes = self.watch.wait(self.patience());
            self.hear(changes);
        }
        if !watcher.is_paused() {
            // Agents write their last files while they end, and may have been stopped together with us.
            self.last_round(watcher);
        }
        self.let_go_of_all(watcher);
        self.archive.settle()?;
        Ok(self.health)
    }

    /// Looks at everything that is due.
    fn round(&mut self, watcher: &mut dyn Watcher) {
        self.presence.show();
        if self.asked.elapsed() >= PLACES_EVERY {
            self.asked = Instant::now();
            self.ask_again(watcher);
        }
        if std::mem::take(&mut self.is_blind) {
            let found = self.places.list();
            self.take(found);
        }
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(_, at)| *at <= now);
        let due: HashMap<PathBuf, Instant> = due;
        self.later = later;
        self.due.extend(due.into_keys());
        while !self.due.is_empty() && !watcher.is_stopped() {
            for path in std::mem::take(&mut self.due) {
                self.look_at(&path, watcher);
            }
        }
        self.let_go_of_quiet(watcher);
    }

    /// Looks at everything once more, whoever wants it to stop.
    fn last_round(&mut self, watcher: &mut dyn Watcher) {
        let found = self.places.list();
        self.take(found);
        while !self.due.is_empty() {
            for path in std::mem::take(&mut self.due) {
                self.look_at(&path, watcher);
            }
        }
    }

    /// Asks where to look; where there is a new place, everything is listed again.
    fn ask_again(&mut self, watcher: &dyn Watcher) {
        let Some(places) = watcher.places() else { return };
        let is_known = |root: &Path| self.places.homes.iter().any(|home| home.root == root);
        self.is_blind |= places.homes.iter().any(|home| !is_known(&home.root));
        self.places = places;
    }

    fn hear(&mut self, changes: Changes) {
        self.is_blind |= changes.overflow;
        for dir in changes.dirs {
            let found = self.places.list_below(&dir);
            self.take(found);
        }
        self.due.extend(changes.paths);
    }

    /// Watches what was found, and has it looked at unless nothing is new.
    fn take(&mut self, found: Found) {
        found.dirs.iter().for_each(|dir| self.watch.add_dir(dir));
        for file in found.files {
            self.watch.add_file(file.path());
            let is_old = self.archive.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, &file));
            if !is_old {
                self.due.insert(file.path().to_owned());
            }
        }
    }

    fn look_at(&mut self, path: &Path, watcher: &mut dyn Watcher) {
        let outcome = match self.held.remove(path) {
            Some(held) => self.read_on(held, watcher),
            None => match self.places.at(path) {
                Some(file) => self.begin(&file, watcher),
                None => return,
            },
        };
        if let Err(error) = outcome {
            self.later.insert(path.to_owned(), Instant::now() + RETRY_AFTER);
            if error.is_held() {
                self.health.files_held += 1;
            } else {
                self.health.files_failed += 1;
                watcher.failed(path, &error);
            }
        }
    }

    fn begin(&mut self, file: &ToArchive, watcher: &mut dyn Watcher) -> Result<(), Error> {
        if self.archive.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
            return Ok(());
        }
        self.make_room(watcher);
        let source = self.archive.take_up(file, Pace::Live)?;
        self.read_on(Held { source, news: Instant::now(), events: 0 }, watcher)
    }

    /// Reads what is new, and holds on to the source.
    fn read_on(&mut self, mut held: Held, watcher: &mut dyn Watcher) -> Result<(), Error> {
        let before = held.source.read;
        let mut turn = Turn::More;
        for _ in 0..LOOKS_PER_TURN {
            turn = held.source.turn(&self.archive.now())?;
            if turn != Turn::More {
                break;
            }
        }
        let path = held.source.path().to_owned();
        if turn == Turn::More {
            self.due.insert(path.clone());
        }
        let (events, _) = held.source.events();
        if events > held.events {
            watcher.recorded(&path, events - held.events);
            held.events = events;
        }
        if held.source.read > before {
            (held.news, self.news, self.is_settled) = (Instant::now(), Instant::now(), false);
        }
        self.held.insert(path, held);
        Ok(())
    }

    /// Lets go of the source that has been quiet for longest, when there are many.
    fn make_room(&mut self, watcher: &mut dyn Watcher) {
        while self.held.len() >= HELD_MAX {
            let oldest = self.held.iter().min_by_key(|(_, held)| held.news).map(|(path, _)| path.clone());
            let Some(path) = oldest else { return };
            self.let_go(&path, watcher);
        }
    }

    fn let_go_of_quiet(&mut self, watcher: &mut dyn Watcher) {
        let quiet = |held: &Held| held.news.elapsed() >= QUIET_AFTER;
        let paths: Vec<PathBuf> =
            self.held.iter().filter(|(_, held)| quiet(held)).map(|(path, _)| path.clone()).collect();
        for path in &paths {
            self.let_go(path, watcher);
        }
        if !self.is_settled && self.news.elapsed() >= SETTLE_AFTER {
            self.is_settled = true;
            if let Err(error) = self.archive.settle() {
                watcher.failed(Path::new(""), &error);
            }
        }
    }

    fn let_go_of_all(&mut self, watcher: &mut dyn Watcher) {
        let mut paths: Vec<PathBuf> = self.held.keys().cloned().collect();
        paths.sort();
        for path in &paths {
            self.let_go(path, watcher);
        }
    }

    fn let_go(&mut self, path: &Path, watcher: &mut dyn Watcher) {
        // Growth hides a change in the middle of a file; before nobody looks any more, all of it is compared.
        if let Some(held) = self.held.get_mut(path) {
            held.source.recheck();
        }
        loop {
            let Some(held) = self.held.remove(path) else { return };
            if let Err(error) = self.read_on(held, watcher) {
                self.later.insert(path.to_owned(), Instant::now() + RETRY_AFTER);
                watcher.failed(path, &error);
                return;
            }
            if !self.due.remove(path) {
                break;
            }
        }
        let Some(held) = self.held.remove(path) else { return };
        count(&held.source, &mut self.health);
        self.health.files_new += 1;
        if let Err(error) = self.archive.let_go(held.source) {
            self.later.insert(path.to_owned(), Instant::now() + RETRY_AFTER);
            watcher.failed(path, &error);
        }
    }

    /// Returns how long to wait for news.
    fn patience(&self) -> Duration {
        if !self.due.is_empty() {
            return Duration::ZERO;
        }
        let retry = self.later.values().min().map(|at| at.saturating_duration_since(Instant::now()));
        retry.unwrap_or(WAIT_MAX).min(WAIT_MAX)
    }
}
