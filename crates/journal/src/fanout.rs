//! Delivers live events to subscribers: bounded queues that drop the newest event and never block the writer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steno_model::{Epoch, ExchangeEvent, Seq};

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// How many events a subscriber's queue holds before it misses some (R68).
pub const SUBSCRIBER_QUEUE_LEN_MAX: usize = 256;

const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// All subscribers of one run.
#[derive(Default)]
pub(crate) struct FanOut {
    subscribers: Arc<Mutex<Subscribers>>,
}

#[derive(Default)]
struct Subscribers {
    queues: Vec<Arc<Queue>>,
    /// What all ended subscriptions together have missed.
    missed: MissedEvents,
    closed: bool,
}

/// The lock under which events are delivered. Warnings are logged when it is dropped.
pub(crate) struct Delivery<'a> {
    subscribers: Option<MutexGuard<'a, Subscribers>>,
    warnings: Vec<(u64, Seq)>,
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
    missed: MissedEvents,
    warned: Option<Instant>,
}

/// Events that a subscriber did not receive live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissedEvents {
    /// How many events.
    pub count: u64,
    /// The first and the last of them.
    pub range: Option<(Seq, Seq)>,
}

impl MissedEvents {
    fn miss(&mut self, seq: Seq) {
        self.add(Self { count: 1, range: Some((seq, seq)) });
    }

    /// Adds what another subscriber missed.
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.range = match (self.range, other.range) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (ours, theirs) => ours.or(theirs),
        };
    }
}

impl FanOut {
    /// Takes the lock under which events are delivered.
    ///
    /// Taken before the append lock is released, so that subscribers see file order, and held after that, so that the
    /// next line can be written meanwhile.
    pub(crate) fn enter(&self) -> Delivery<'_> {
        Delivery { subscribers: Some(lock(&self.subscribers)), warnings: Vec::new() }
    }

    pub(crate) fn subscribe(&self, epoch: Epoch) -> Subscription {
        let queue = Arc::<Queue>::default();
        let mut subscribers = lock(&self.subscribers);
        if subscribers.closed {
            lock(&queue.state).closed = true;
        } else {
            subscribers.queues.push(Arc::clone(&queue));
        }
        Subscription { queue, epoch, subscribers: Arc::clone(&self.subscribers) }
    }

    /// Ends all subscriptions after their queued events; returns what each missed, and what the ended ones missed
    /// together.
    pub(crate) fn close(&self) -> Vec<MissedEvents> {
        let mut subscribers = lock(&self.subscribers);
        subscribers.closed = true;
        let queues = std::mem::take(&mut subscribers.queues);
        let left = std::mem::take(&mut subscribers.missed);
        drop(subscribers);
        let missed = std::iter::once(left).chain(queues.iter().map(|queue| queue.close()));
        missed.filter(|missed| missed.count > 0).collect()
    }
}

impl Delivery<'_> {
    /// Delivers an event to all subscribers; builds it only if there is one.
    pub(crate) fn deliver(&mut self, event: impl FnOnce() -> ExchangeEvent) {
        let Some(subscribers) = self.subscribers.as_ref().filter(|found| !found.queues.is_empty()) else {
            return;
        };
        let event = Arc::new(event());
        self.warnings.extend(subscribers.queues.iter().filter_map(|queue| queue.offer(&event)));
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        drop(self.subscribers.take());
        // Without any lock: a log consumer may be slow, and may even record or subscribe.
        for (missed, seq) in &self.warnings {
            tracing::warn!(missed, %seq, "a subscriber is too slow and misses live events");
        }
    }
}

impl Queue {
    /// Queues an event, or counts it as missed; returns the count when a warning is due.
    fn offer(&self, event: &Arc<ExchangeEvent>) -> Option<(u64, Seq)> {
        let mut state = lock(&self.state);
        if state.closed {
            return None;
        }
        if state.events.len() >= SUBSCRIBER_QUEUE_LEN_MAX {
            return state.miss(event.seq).then_some((state.missed.count, event.seq));
        }
        state.events.push_back(Arc::clone(event));
        let wake = state.waiting;
        drop(state);
        if wake {
            self.ready.notify_one();
        }
        None
    }

    fn close(&self) -> MissedEvents {
        let mut state = lock(&self.state);
        state.closed = true;
        let missed = state.missed;
        drop(state);
        self.ready.notify_all();
        missed
    }
}

impl QueueState {
    /// Counts a missed event; returns whether a warning is due.
    fn miss(&mut self, seq: Seq) -> bool {
        self.missed.miss(seq);
        let now = Instant::now();
        let is_time = self.warned.is_none_or(|warned| now.duration_since(warned) >= WARNING_INTERVAL);
        if is_time {
            self.warned = Some(now);
        }
        is_time
    }
}

/// A live stream of a run's events in file order. A slow subscriber misses events.
///
/// Missed events are in the file: see [`crate::CatchUp`].
pub struct Subscription {
    queue: Arc<Queue>,
    epoch: Epoch,
    subscribers: Arc<Mutex<Subscribers>>,
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

    /// Returns the next event if one is queued.
    #[must_use]
    pub fn try_recv(&mut self) -> Option<Arc<ExchangeEvent>> {
        lock(&self.queue.state).events.pop_front()
    }

    /// Returns what was missed so far.
    #[must_use]
    pub fn missed(&self) -> MissedEvents {
        lock(&self.queue.state).missed
    }

    /// Returns the epoch of the writer.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Ends the subscription; a second call does nothing.
    pub fn close(&self) {
        let mut subscribers = lock(&self.subscribers);
        let found = subscribers.queues.iter().position(|queue| Arc::ptr_eq(queue, &self.queue));
        if let Some(index) = found {
            subscribers.queues.swap_remove(index);
            subscribers.missed.add(self.queue.close());
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn closed_subscriptions_are_removed_at_once() {
        let fan_out = FanOut::default();
        let stays = fan_out.subscribe(Epoch(1));
        for _ in 0..100 {
            let leaves = fan_out.subscribe(Epoch(1));
            leaves.close();
            leaves.close();
        }
        let subscribers = lock(&fan_out.subscribers);
        assert_eq!(subscribers.queues.len(), 1);
        assert!(Arc::ptr_eq(&subscribers.queues[0], &stays.queue));
    }
}
