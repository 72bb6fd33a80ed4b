//! Work that reads or writes files: on blocking threads, up to a limit, and cancelled when the client is gone.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use axum::response::Response;
use tokio::sync::{Semaphore, oneshot};

use super::app::json_response;
use super::connections::within;
use super::{Api, Limits, Problem};

/// How much memory is reserved for an answer of unknown length.
pub(super) const ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// How often an answer is built again when it is longer than the memory reserved for it.
const ATTEMPTS: usize = 3;
/// The detail of a problem for a request that did not start in time.
pub(super) const TOO_BUSY: &str = "the server is busy and did not start the request: try again later";

/// A queue of work. Queues do not wait for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Answers.
    Answers,
    /// Recording events.
    Records,
    /// Recording a long body, on one worker thread: the allocator caches freed memory per thread, and each thread would cache
    /// many times the length of a long body.
    LongRecords,
    /// Live streams.
    Streams,
}

/// The limits of each lane.
pub(super) struct Workers {
    answers: Arc<Semaphore>,
    records: Arc<Semaphore>,
    long_records: Arc<Semaphore>,
    long_thread: SerialWorker,
    streams: Arc<Semaphore>,
}

impl Workers {
    pub(super) fn new(limits: &Limits) -> Self {
        let some = |count| Arc::new(Semaphore::new(count));
        Self {
            answers: some(limits.reading),
            records: some(limits.recording),
            long_records: some(1),
            long_thread: SerialWorker::new(),
            streams: some(limits.reading),
        }
    }

    fn of(&self, lane: Lane) -> Arc<Semaphore> {
        Arc::clone(match lane {
            Lane::Answers => &self.answers,
            Lane::Records => &self.records,
            Lane::LongRecords => &self.long_records,
            Lane::Streams => &self.streams,
        })
    }
}

/// A worker thread that does one task after the other. It ends with the API.
struct SerialWorker(Sender<Box<dyn FnOnce() + Send>>);

impl SerialWorker {
    fn new() -> Self {
        let (sender, works) = channel::<Box<dyn FnOnce() + Send>>();
        std::thread::spawn(move || {
            for work in works {
                // The waiting request sees that its channel closed, and the next task runs.
                catch_unwind(AssertUnwindSafe(work)).ok();
            }
        });
        Self(sender)
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (tell, done) = oneshot::channel();
        let work = move || drop(tell.send(work()));
        self.0.send(Box::new(work)).ok()?;
        done.await.ok()
    }
}

/// A task, with the API that it works on.
pub(super) struct Job {
    api: Arc<Api>,
    is_wanted: Arc<AtomicBool>,
}

impl Deref for Job {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Job {
    /// Fails when the client is gone. Long work calls this regularly.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let is_wanted = self.is_wanted.load(Ordering::Relaxed);
        if is_wanted { Ok(()) } else { Err(Problem::internal("the client is gone")) }
    }
}

/// Marks the task as cancelled when the request is dropped.
struct CancelGuard(Arc<AtomicBool>);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Api {
    /// Runs a task in its lane.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        lane: Lane,
        work: impl FnOnce(&Job) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = async {
            self.workers
                .of(lane)
                .acquire_owned()
                .await
                .map_err(|_| Problem::internal("the server is stopping"))
        };
        let turn = within(self.limits.patience, turn, TOO_BUSY).await?;
        let asker = CancelGuard(Arc::new(AtomicBool::new(true)));
        let job = Job { api: Arc::clone(self), is_wanted: Arc::clone(&asker.0) };
        let work = move || {
            let done = work(&job);
            drop(turn);
            done
        };
        if lane == Lane::LongRecords {
            let done = self.workers.long_thread.run(work).await;
            return done.ok_or_else(|| Problem::internal("the task failed"))?;
        }
        let done = tokio::task::spawn_blocking(work);
        done.await.map_err(|error| Problem::internal(error.to_string()))?
    }

    /// Answers with JSON that is built from files. Its memory is reserved before it is built, until it is sent.
    pub(super) async fn answer(
        self: &Arc<Self>,
        work: impl Fn(&Job) -> Result<String, Problem> + Clone + Send + 'static,
    ) -> Result<Response, Problem> {
        let mut bytes = ANSWER_BYTES;
        for _ in 0..ATTEMPTS {
            let mut room = within(self.limits.patience, self.answers.reserve(bytes), TOO_BUSY).await?;
            let json = self.work(Lane::Answers, work.clone()).await?;
            if room.fit(json.len()) {
                return Ok(json_response(room.hold(json.into_bytes())));
            }
            // It is built again when there is memory, so that a waiting request holds none.
            bytes = json.len();
        }
        Err(Problem::too_much("the answer grew while it was built: try again later"))
    }
}
