//! Follows agents' files until a signal comes.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use signal_hook::iterator::Signals;
use steno_capture::discovery::{self, Environment, Home, Origin};
use steno_capture::tail::TailOptions;
use steno_journal::Store;
use steno_recorder::sources::{
    FollowObserver, FollowerProcess, SourceError, SourceFollower, SourceListing, SourceLocations,
    SourceRecorder,
};
use steno_views::count;

use super::indexing::{IndexSignal, IndexThread};
use super::stop_signal::{SIGNALS, StopSignal};
use super::{ImportPass, Report, error_text, failure, rederive, warn};
use crate::failure::{Exit, Outcome};
use crate::output::{Output, notice, size};

/// Reports on stderr what happens while following.
struct StderrWatcher<'a> {
    stop: &'a StopSignal,
    /// Where to look for agents' homes, unless paths were given.
    environment: Option<Environment>,
    store: Store,
    /// Whether another process follows into the same store.
    has_other_follower: bool,
    /// Whether all existing files are recorded.
    is_ready: bool,
    index: IndexSignal,
}

impl FollowObserver for StderrWatcher<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn is_paused(&self) -> bool {
        self.store.is_paused(Timestamp::now())
    }

    fn ready(&mut self) {
        self.is_ready = true;
        // While another process follows, this one only waits, and has said so.
        if !self.has_other_follower {
            notice("following; press Ctrl-C to stop");
        }
    }

    fn other_follower(&mut self, other: FollowerProcess) {
        self.has_other_follower = true;
        notice(&format!(
            "{} is recording into this store; its files are skipped until it ends; \
             press Ctrl-C to stop",
            another(Some(other))
        ));
    }

    fn taken_over(&mut self) {
        self.has_other_follower = false;
        let rest = if self.is_ready { "; following; press Ctrl-C to stop" } else { "" };
        notice(&format!("the other `steno` has ended{rest}"));
    }

    fn homes(&self) -> Vec<Home> {
        self.environment.as_ref().map(|environment| discovery::homes(environment).found).unwrap_or_default()
    }

    fn recorded(&mut self, path: &Path, events: u64) {
        tracing::debug!("{events} events of `{}`", path.display());
        self.index.changed();
    }

    fn gone(&mut self, _path: &Path) {
        self.index.changed();
    }

    fn failed(&mut self, _path: &Path, error: &SourceError) {
        warn(&format!("{}; trying again later", error_text(error)));
    }
}

/// Returns a message about unread bytes when following ends.
fn unread(files: u64) -> Option<String> {
    let have = match files {
        0 => return None,
        1 => "has",
        _ => "have",
    };
    let files = count(files, "file");
    Some(format!("{files} {have} unread bytes; the next start continues there"))
}

/// Names another `steno` process, with its pid if it is known.
pub fn another(follower: Option<FollowerProcess>) -> String {
    let pid = follower.and_then(|follower| follower.pid);
    pid.map_or_else(|| "another `steno`".to_owned(), |pid| format!("another `steno` (pid {pid})"))
}

/// A request to follow agents' files.
pub struct Follow<'a> {
    pub archive: &'a mut SourceRecorder,
    pub places: SourceLocations,
    pub stop: &'a StopSignal,
    pub options: TailOptions,
    /// The flags that name the store, for commands in messages.
    pub store_flags: String,
    pub as_json: bool,
}

impl Follow<'_> {
    /// Archives what is there, and follows it until a signal comes.
    ///
    /// Ctrl-C and SIGTERM are the usual ways to stop, and not failures.
    pub fn run(self, output: &mut Output) -> Outcome {
        let Self { archive, places, stop, options, store_flags, as_json } = self;
        if archive.store().is_paused(Timestamp::now()) {
            notice("recording is paused; `steno resume` ends the pause");
        } else {
            ImportPass { archive, places: &places, stop, as_json, rederives: false }.run(output)?;
        }
        let is_given = |home: &Home| home.origin == Origin::NamedPath;
        let is_named = !places.given.is_empty() || places.homes.iter().any(is_given);
        let environment = (!is_named).then(super::environment);
        let (store, vault) = (archive.store().clone(), Arc::clone(archive.vault()));
        let (journal, may_need_rederive) = (archive.journal().clone(), archive.may_need_rederive());
        let following = SourceFollower::new(archive, places, options)
            .with_open_files(super::open_files_max().unwrap_or(usize::MAX));
        let mut signals = Signals::new(SIGNALS)?;
        let (handle, waker) = (signals.handle(), following.waker());
        let listener = std::thread::spawn(move || signals.forever().for_each(|_| waker.wake()));
        let indexing = IndexThread::start(store.clone(), store_flags);
        let deriving = may_need_rederive.then(|| rederive::spawn(journal, stop.flag()));
        let health = following
            .run(&mut StderrWatcher {
                stop,
                environment,
                store: store.clone(),
                has_other_follower: false,
                is_ready: false,
                index: indexing.signal(),
            })
            .map_err(failure);
        drop(indexing);
        handle.close();
        listener.join().ok();
        if let Some(deriving) = deriving {
            deriving.join().ok();
        }
        let health = health?;
        if as_json {
            Report::of(&store, &vault, vault.outlines()?, &SourceListing::default(), health)?
                .print(output, as_json);
        } else {
            notice(&format!("{} recorded, {} read", count(health.events, "event"), size(health.bytes_read)));
        }
        if let Some(text) = unread(health.files_unread) {
            notice(&text);
        }
        Ok(Exit::Done)
    }
}
