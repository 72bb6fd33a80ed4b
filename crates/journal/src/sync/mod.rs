//! Locks and threads, in one place so that shuttle can stand in for them and try many interleavings.

mod gate;

use std::sync::PoisonError;

pub(crate) use gate::Gate;

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// Locks, whether or not another thread panicked while it held the lock.
///
/// State behind our locks is made consistent before anything that could panic, and refusing to record because some
/// caller's thread died would lose what the others have to say.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a lock that is held for about as long as a write takes.
///
/// Going to sleep and being woken costs several times that, for both sides. Others who were woken together with us
/// have something to do meanwhile, so they get their turn before we look again.
pub(crate) fn lock_soon<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    const LOOKS_MAX: u32 = 200;
    for _ in 0..LOOKS_MAX {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
    lock(mutex)
}

/// Waits on a condition, with the same view of panics as [`lock`].
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
