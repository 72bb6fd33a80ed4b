//! Live events to subscribers: bounded, drop-newest, and never in the writer's way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steno_model::{Epoch, ExchangeEvent, Seq};

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// How many events wait for a subscriber before it misses some (R68).
pub const SUBSCRIBER_QUEUE_LEN_MAX: usize = 256;

const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// All subscribers of one run.
#[derive(Default)]
pub(crate) struct FanOut {
    subscribers: Mutex<Subscribers>,
}

#[derive(Default)]
pub(crate) struct Subscribers {
    queues: Vec<Arc<Queue>>,
    /// What subscribers had missed who have left.
    missed: Vec<Missed>,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    ready: Condvar,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<Arc<ExchangeEvent>>,
    waiting: bool,
    closed: bool,
    missed: Missed,
    warned: Option<Instant>,
}

/// What a subscriber did not get live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// How many events.
    pub count: u64,
    /// The first and the last of them.
    pub range: Option<(Seq, Seq)>,
}

impl FanOut {
    /// Takes the lock under which events are passed on.
    ///
    /// Taken before the append lock is given up, so that subscribers see the file's order, and held after it, so
    /// that the next line can be written meanwhile.
    pub(crate) fn enter(&self) -> MutexGuard<'_, Subscribers> {
        lock(&self.subscribers)
    }

    pub(crate) fn subscribe(&self, epoch: Epoch) -> Subscription {
        let queue = Arc::<Queue>::default();
        let mut subscribers = lock(&self.subscribers);
        if subscribers.closed {
            lock(&queue.state).closed = true;
        } else {
            subscribers.queues.push(Arc::clone(&queue));
        }
        Subscription { queue, epoch }
    }

    /// Ends all subscriptions after what they have queued; returns what they missed.
    pub(crate) fn close(&self) -> Vec<Missed> {
        let mut subscribers = lock(&self.subscribers);
        subscribers.closed = true;
        let queues = std::mem::take(&mut subscribers.queues);
        let mut missed = std::mem::take(&mut subscribers.missed);
        drop(subscribers);
        missed.extend(queues.iter().map(|queue| queue.close()).filter(|missed| missed.count > 0));
        missed
    }
}

impl Subscribers {
    /// Passes an event on to everyone; makes it only when somebody listens.
    pub(crate) fn deliver(&mut self, event: impl FnOnce() -> ExchangeEvent) {
        if self.queues.is_empty() {
            return;
        }
        let event = Arc::new(event());
        let missed = &mut self.missed;
        self.queues.retain(|queue| match queue.offer(&event) {
            Offered::Taken => true,
            Offered::Gone(gone) => {
                missed.extend((gone.count > 0).then_some(gone));
                false
            }
        });
    }
}

enum Offered {
    Taken,
    Gone(Missed),
}

impl Queue {
    /// Queues an event, or counts it as missed.
    fn offer(&self, event: &Arc<ExchangeEvent>) -> Offered {
        let mut state = lock(&self.state);
        if state.closed {
            return Offered::Gone(state.missed);
        }
        if state.events.len() >= SUBSCRIBER_QUEUE_LEN_MAX {
            state.miss(event.seq);
            return Offered::Taken;
        }
        state.events.push_back(Arc::clone(event));
        let wake = state.waiting;
        drop(state);
        if wake {
            self.ready.notify_one();
        }
        Offered::Taken
    }

    fn close(&self) -> Missed {
        let mut state = lock(&self.state);
        state.closed = true;
        let missed = state.missed;
        drop(state);
        self.ready.notify_all();
        missed
    }
}

impl QueueState {
    fn miss(&mut self, seq: Seq) {
        self.missed.count += 1;
        let first = self.missed.range.map_or(seq, |(first, _)| first);
        self.missed.range = Some((first, seq));
        let now = Instant::now();
        if self.warned.is_none_or(|warned| now.duration_since(warned) >= WARNING_INTERVAL) {
            self.warned = Some(now);
            tracing::warn!(missed = self.missed.count, %seq, "a subscriber is too slow and misses live events");
        }
    }
}

/// A live stream of a run's events, in the file's order, with the gaps that slowness makes.
///
/// Events that were missed are in the file: see [`crate::CatchUp`].
pub struct Subscription {
    queue: Arc<Queue>,
    epoch: Epoch,
}

impl Subscription {
    /// Waits for the next event; `None` after the end.
    #[must_use]
    pub fn recv(&mut self) -> Option<Arc<ExchangeEvent>> {
        let mut state = lock(&self.queue.state);
        loop {
            if let Some(event) = state.events.pop_front() {
                return Some(event);
            }
            if state.closed {
                return None;
            }
            state.waiting = true;
            state = wait(&self.queue.ready, state);
            state.waiting = false;
        }
    }

    /// Returns the next event if there is one already.
    #[must_use]
    pub fn try_recv(&mut self) -> Option<Arc<ExchangeEvent>> {
        lock(&self.queue.state).events.pop_front()
    }

    /// Returns what was missed so far.
    #[must_use]
    pub fn missed(&self) -> Missed {
        lock(&self.queue.state).missed
    }

    /// Returns the epoch of the writer that is listened to.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Ends the subscription; doing it again does nothing.
    pub fn close(&self) {
        self.queue.close();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.close();
    }
}
