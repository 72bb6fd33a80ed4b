//! Shared syncs: a few threads sync the files that writers wait on. One sync serves all records that wait by then.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use steno_model::Seq;

use crate::error::Error;
use crate::sync::{Condvar, Gate, Mutex, MutexGuard, lock, thread, wait};

/// The number of threads that sync, for any number of open files.
const THREADS_MAX: usize = 4;

/// Records that are acknowledged by the same sync.
#[derive(Default)]
pub(crate) struct Batch {
    outcome: OnceLock<Result<(), Error>>,
    done: Gate,
}

impl Batch {
    /// Waits until the batch is synced.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        self.done.wait();
        self.outcome.get().cloned().unwrap_or(Ok(()))
    }

    /// Reports the outcome to all waiting records.
    pub(crate) fn finish(&self, outcome: Result<(), Error>) {
        // Set before the gate opens, and once: a batch belongs to one sync.
        self.outcome.set(outcome).ok();
        self.done.open();
    }

    /// Tells whether waiting would return at once.
    pub(crate) fn is_done(&self) -> bool {
        self.done.is_open()
    }
}

/// Something that commit threads sync.
pub(crate) trait Commit: Send + Sync {
    /// Syncs for all records that wait by now; returns whether more are waiting already.
    fn commit(&self) -> bool;

    /// Checks that the file was at its path after a record was written to it.
    fn look_after(&self, seq: Seq) -> Result<(), Error>;

    /// Called from time to time when there is nothing to do.
    #[cfg_attr(feature = "shuttle", expect(dead_code, reason = "there is no time under shuttle"))]
    fn idle(&self);
}

/// The commit threads. They run while this handle exists.
pub(crate) struct CommitPool {
    shared: Arc<PoolShared>,
}

#[derive(Default)]
struct PoolShared {
    state: Mutex<PoolState>,
    work: Condvar,
}

#[derive(Default)]
struct PoolState {
    queue: VecDeque<Arc<dyn Commit>>,
    watched: Vec<Weak<dyn Commit>>,
    threads: usize,
    waiting: usize,
    stopped: bool,
}

impl CommitPool {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { shared: Arc::default() })
    }

    /// Queues a file for a sync. The log makes sure that it is queued once at a time.
    pub(crate) fn push(&self, file: Arc<dyn Commit>) {
        let mut state = lock(&self.shared.state);
        state.queue.push_back(file);
        // Each waiting thread takes one file. A thread that was woken but has not run yet still counts as waiting.
        if state.queue.len() > state.waiting && state.threads < THREADS_MAX {
            state.start_thread(&self.shared);
        }
        if state.threads == 0 {
            // No thread can be started, so the caller does the work, even if that is slow.
            drop(state);
            self.shared.work_off();
            return;
        }
        drop(state);
        self.shared.work.notify_one();
    }

    /// Registers a file for idle checks.
    pub(crate) fn watch(&self, file: Weak<dyn Commit>) {
        let mut state = lock(&self.shared.state);
        state.watched.retain(|known| known.strong_count() > 0);
        state.watched.push(file);
        // Without a thread an idle run would not be noticed.
        if state.threads == 0 && cfg!(not(feature = "shuttle")) {
            state.start_thread(&self.shared);
        }
    }

    /// Returns how many threads there are.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.shared.state).threads
    }
}

impl Drop for CommitPool {
    fn drop(&mut self) {
        // Threads are not joined: the last handle may be dropped by one of them.
        lock(&self.shared.state).stopped = true;
        self.shared.work.notify_all();
    }
}

impl PoolState {
    fn start_thread(&mut self, shared: &Arc<PoolShared>) {
        let shared = Arc::clone(shared);
        let started = thread::Builder::new().name("steno-commit".to_owned()).spawn(move || shared.run());
        match started {
            Ok(_) => self.threads += 1,
            Err(error) => tracing::error!(%error, "a commit thread could not be started"),
        }
    }
}

impl PoolShared {
    fn run(&self) {
        while let Some(file) = self.next() {
            if file.commit() {
                // At the back of the queue, so that a busy run does not starve the others.
                lock(&self.state).queue.push_back(file);
            }
        }
    }

    /// Commits all queued files in the caller's thread.
    fn work_off(&self) {
        loop {
            let Some(file) = lock(&self.state).queue.pop_front() else { return };
            while file.commit() {}
        }
    }

    fn next(&self) -> Option<Arc<dyn Commit>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(file) = state.queue.pop_front() {
                return Some(file);
            }
            if state.stopped {
                state.threads -= 1;
                return None;
            }
            state = self.wait(state);
        }
    }

    #[cfg(feature = "shuttle")]
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, PoolState>) -> MutexGuard<'a, PoolState> {
        state.waiting += 1;
        let mut state = wait(&self.work, state);
        state.waiting -= 1;
        state
    }

    /// Waits for work. When there is none for a while, runs the idle checks.
    #[cfg(not(feature = "shuttle"))]
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, PoolState>) -> MutexGuard<'a, PoolState> {
        use std::sync::PoisonError;
        const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
        state.waiting += 1;
        let (mut state, is_idle) = if state.watched.is_empty() {
            (wait(&self.work, state), false)
        } else {
            let waited = self.work.wait_timeout(state, LOOK_INTERVAL);
            let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            (state, timeout.timed_out())
        };
        // Before the idle checks: they take time, and meanwhile this thread does not wait.
        state.waiting -= 1;
        if !is_idle {
            return state;
        }
        let watched: Vec<_> = state.watched.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for file in watched {
            file.idle();
        }
        lock(&self.state)
    }
}
