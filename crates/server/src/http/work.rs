//! What reads or writes files: beside those who wait for messages, so many at a time, and as long as somebody waits for it.

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

/// How much room an answer is given before it is known how long it will be.
pub(super) const ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// How often an answer is made anew that has become longer than the room for it.
const ATTEMPTS: usize = 3;
/// What is said to those for whom there was no room in time.
pub(super) const TOO_BUSY: &str = "the server is busy, and has not begun with it: try again later";

/// What does not wait for the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Answers.
    Answers,
    /// Events that are recorded.
    Records,
    /// Events of a long body, on a thread of their own: the allocator keeps memory that a thread has given back for that
    /// thread, and of a long body each would keep many times its length.
    LongRecords,
    /// Live streams.
    Streams,
}

/// How many are at work in each lane.
pub(super) struct Workers {
    answers: Arc<Semaphore>,
    records: Arc<Semaphore>,
    long_records: Arc<Semaphore>,
    long_thread: OneThread,
    streams: Arc<Semaphore>,
}

impl Workers {
    pub(super) fn new(limits: &Limits) -> Self {
        let some = |count| Arc::new(Semaphore::new(count));
        Self {
            answers: some(limits.reading),
            records: some(limits.recording),
            long_records: some(1),
            long_thread: OneThread::new(),
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

/// A thread that does one thing after the other. It ends with the API.
struct OneThread(Sender<Box<dyn FnOnce() + Send>>);

impl OneThread {
    fn new() -> Self {
        let (sender, works) = channel::<Box<dyn FnOnce() + Send>>();
        std::thread::spawn(move || {
            for work in works {
                // Who waits for it sees that nothing comes, and the next one has its turn.
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

/// Something that is being done.
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
    /// Ends work that nobody waits for any more. What takes long asks now and then.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let is_wanted = self.is_wanted.load(Ordering::Relaxed);
        if is_wanted { Ok(()) } else { Err(Problem::internal("nobody waits for it any more")) }
    }
}

/// Who waits for something.
struct Asker(Arc<AtomicBool>);

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Api {
    /// Does something when it has its turn.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        lane: Lane,
        work: impl FnOnce(&Job) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = async {
            self.workers.of(lane).acquire_owned().await.map_err(|_| Problem::internal("the server ends"))
        };
        let turn = within(self.limits.patience, turn, TOO_BUSY).await?;
        let asker = Asker(Arc::new(AtomicBool::new(true)));
        let job = Job { api: Arc::clone(self), is_wanted: Arc::clone(&asker.0) };
        let work = move || {
            let done = work(&job);
            drop(turn);
            done
        };
        if lane == Lane::LongRecords {
            let done = self.workers.long_thread.run(work).await;
            return done.ok_or_else(|| Problem::internal("it was given up"))?;
        }
        let done = tokio::task::spawn_blocking(work);
        done.await.map_err(|error| Problem::internal(error.to_string()))?
    }

    /// Answers with JSON that is made from files. There is room for it before it is made, and until it was read.
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
            // It is made again when there is room for it: those who wait for that hold nothing.
            bytes = json.len();
        }
        Err(Problem::too_much("the answer has become longer again and again: try again later"))
    }
}
