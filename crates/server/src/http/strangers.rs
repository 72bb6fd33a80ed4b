//! Who has connected and not shown the token yet: there are few places for them, and one more takes that of the oldest.
//!
//! Whoever has the token shows it at once and is a stranger for a moment only. So nobody without it can keep others out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of strangers.
pub(super) struct Strangers {
    places: usize,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    next: u64,
    /// How each is told to go, the oldest first.
    goes: BTreeMap<u64, Arc<Notify>>,
}

/// One of them, as long as it is connected.
pub(super) struct Stranger {
    strangers: Arc<Strangers>,
    id: u64,
    goes: Arc<Notify>,
}

impl Strangers {
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: places.max(1), inside: Mutex::default() })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives one more a place.
    pub(super) fn enter(self: &Arc<Self>) -> Arc<Stranger> {
        let mut inside = self.inside();
        while inside.goes.len() >= self.places
            && let Some((_, oldest)) = inside.goes.pop_first()
        {
            oldest.notify_one();
        }
        let (id, goes) = (inside.next, Arc::new(Notify::new()));
        inside.next += 1;
        inside.goes.insert(id, Arc::clone(&goes));
        Arc::new(Stranger { strangers: Arc::clone(self), id, goes })
    }
}

impl Stranger {
    /// Says that it has shown the token, and keeps its connection.
    pub(super) fn is_known(&self) {
        self.strangers.inside().goes.remove(&self.id);
    }

    /// Waits until somebody else needs its place.
    pub(super) async fn has_to_go(&self) {
        self.goes.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known();
    }
}
