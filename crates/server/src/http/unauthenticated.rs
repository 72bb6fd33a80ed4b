//! Connections that have not sent the token yet: the oldest is dropped when a new connection needs its place.
//!
//! A client with the token sends it with its first request. So clients without it cannot block others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long a peer may take to send the token while others wait for its place.
const GRACE: Duration = Duration::from_millis(250);

/// The connections that have not sent the token yet.
#[derive(Default)]
pub(super) struct PendingPeers(Mutex<PeerQueue>);

#[derive(Default)]
struct PeerQueue {
    next: u64,
    /// Since when each is connected and how it is closed, the oldest first.
    oldest_first: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

/// One connection, for as long as it is open.
pub(super) struct PendingPeer {
    strangers: Arc<PendingPeers>,
    id: u64,
    goes: Arc<Notify>,
    is_authenticated: AtomicBool,
}

impl PendingPeers {
    fn inside(&self) -> MutexGuard<'_, PeerQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>) -> Arc<PendingPeer> {
        let mut inside = self.inside();
        let (id, goes) = (inside.next, Arc::new(Notify::new()));
        inside.next += 1;
        inside.oldest_first.insert(id, (Instant::now(), Arc::clone(&goes)));
        Arc::new(PendingPeer {
            strangers: Arc::clone(self),
            id,
            goes,
            is_authenticated: AtomicBool::new(false),
        })
    }

    /// Drops the oldest as soon as its time is over. Does not return while there is none.
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

impl PendingPeer {
    /// Marks the peer as authenticated: it keeps its connection.
    pub(super) fn authenticate(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
        self.strangers.inside().oldest_first.remove(&self.id);
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// Waits until the connection is dropped for another one.
    pub(super) async fn evicted(&self) {
        self.goes.notified().await;
    }
}

impl Drop for PendingPeer {
    fn drop(&mut self) {
        self.strangers.inside().oldest_first.remove(&self.id);
    }
}
