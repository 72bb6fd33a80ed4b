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
    const LOOKS_MAX: u32 = 100;
    look_for(mutex, LOOKS_MAX).unwrap_or_else(|| lock(mutex))
}

/// Locks like [`lock_soon`], but one at a time: whoever is not next after a while sleeps at `turn`.
///
/// For threads that come back at once. Whoever runs keeps the lock without anybody being woken for each line, and
/// those who wait leave the processors to those who work.
pub(crate) fn lock_in_turn<'a, T>(mutex: &'a Mutex<T>, turn: &Mutex<()>) -> MutexGuard<'a, T> {
    const LOOKS_MAX: u32 = 16;
    if let Some(guard) = look_for(mutex, LOOKS_MAX) {
        return guard;
    }
    let _next = lock(turn);
    lock_soon(mutex)
}

/// Looks some times whether the lock is free, and lets others run in between.
fn look_for<T>(mutex: &Mutex<T>, looks: u32) -> Option<MutexGuard<'_, T>> {
    for _ in 0..looks {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
    None
}

/// Waits on a condition, with the same view of panics as [`lock`].
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
