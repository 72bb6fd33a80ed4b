//! Keeps the search index up to date while agents are followed, and says which sessions the agents deleted or rewrote.
//!
//! The index is derived, so this may lag behind: it waits between two updates, and longer if the last one took long.
//! Recording never waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steno_journal::Store;
use steno_library::Library;
use steno_model::with_causes;

use super::losses::LossReporter;
use super::warn;
use crate::output::notice;

/// The least time between two updates.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// How many times as long as the last update took to wait before the next one.
const PAUSE_FACTOR: u32 = 10;
/// The priority of the thread: everything else goes first.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// What the thread waits for.
#[derive(Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_behind: bool,
    is_ended: bool,
}

/// The thread that updates the index.
pub struct IndexThread {
    signal: Arc<Signal>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Tells the thread that something was recorded, or that a file is gone.
#[derive(Clone)]
pub struct IndexSignal(Arc<Signal>);

impl IndexSignal {
    /// Says that there is something to look at.
    pub fn changed(&self) {
        self.0.set(|state| state.is_behind = true);
    }
}

impl IndexThread {
    /// Starts the thread. It first brings the index up to date. `store_flags` are the flags that name the store.
    pub fn start(store: Store, store_flags: String) -> Self {
        let signal = Arc::new(Signal::default());
        signal.set(|state| state.is_behind = true);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let thread = {
            let (signal, is_stopped) = (Arc::clone(&signal), Arc::clone(&is_stopped));
            std::thread::spawn(move || run(&store, &store_flags, &signal, &is_stopped))
        };
        Self { signal, is_stopped, thread: Some(thread) }
    }

    pub fn signal(&self) -> IndexSignal {
        IndexSignal(Arc::clone(&self.signal))
    }
}

impl Drop for IndexThread {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.signal.set(|state| state.is_ended = true);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Signal {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until the index is behind; false at the end.
    fn wait(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.changed.wait_while(state, |state| !state.is_behind && !state.is_ended);
        let mut state = waiting.unwrap_or_else(PoisonError::into_inner);
        state.is_behind = false;
        !state.is_ended
    }

    /// Waits for a time, or until the end.
    fn pause(&self, time: Duration) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(state, time, |state| !state.is_ended));
    }
}

fn run(store: &Store, store_flags: &str, signal: &Signal, is_stopped: &AtomicBool) {
    // On Linux this is for the thread and those that it starts.
    #[cfg(target_os = "linux")]
    rustix::process::setpriority_process(None, NICE).ok();
    let (mut last_error, mut losses) = (None, LossReporter::default());
    while signal.wait() {
        let begun = Instant::now();
        let library = Library::new(Some(store.clone()));
        let done = library.update_index(&|| is_stopped.load(Ordering::Relaxed));
        if done.is_ok() && !is_stopped.load(Ordering::Relaxed) {
            // An error of the list is that of the next update.
            losses.lines(&library, store_flags).unwrap_or_default().iter().for_each(|line| notice(line));
        }
        let error = done.err().map(|error| with_causes(&error));
        // The same error is reported once.
        if let Some(text) = error.as_ref().filter(|_| error != last_error) {
            warn(&format!("{text}; the next search updates the index"));
        }
        last_error = error;
        signal.pause((begun.elapsed() * PAUSE_FACTOR).max(PAUSE_MIN));
    }
}
