//! Who has connected and not shown the token yet: they make room when there is none.
//!
//! Whoever has the token shows it at once and is a stranger for a moment only. So nobody without it can keep others out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long a stranger may take to show the token while others wait for its place.
const GRACE: Duration = Duration::from_millis(250);

/// Those who are connected.
#[derive(Default)]
pub(super) struct Strangers(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    next: u64,
    /// Since when each is there and how it is told to go, the oldest first.
    oldest_first: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

/// One of them, as long as it is connected.
pub(super) struct Stranger {
    strangers: Arc<Strangers>,
    id: u64,
    goes: Arc<Notify>,
    is_known: AtomicBool,
}

impl Strangers {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>) -> Arc<Stranger> {
        let mut inside = self.inside();
        let (id, goes) = (inside.next, Arc::new(Notify::new()));
        inside.next += 1;
        inside.oldest_first.insert(id, (Instant::now(), Arc::clone(&goes)));
        Arc::new(Stranger { strangers: Arc::clone(self), id, goes, is_known: AtomicBool::new(false) })
    }

    /// Sends the oldest away, as soon as it has had its time; for ever while there is none.
    pub(super) async fn make_room(&self) {
        loop {
            let oldest = self.inside().oldest_first.first_key_value().map(|(_, (since, _))| *since);
            let waits = oldest.map_or(GRACE, |since| GRACE.saturating_sub(since.elapsed()));
            if oldest.is_some() && waits.is_zero() {
                break;
            }
            tokio::time::sleep(waits).await;
        }
        if let Some((_, (_, goes))) = self.inside().oldest_first.pop_first() {
            goes.notify_one();
        }
    }
}

impl Stranger {
    /// Says that it has shown the token, and keeps its connection.
    pub(super) fn becomes_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
        self.strangers.inside().oldest_first.remove(&self.id);
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Waits until somebody else needs its place.
    pub(super) async fn has_to_go(&self) {
        self.goes.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.strangers.inside().oldest_first.remove(&self.id);
    }
}
