//! Locks and threads in one place, so that shuttle can replace them and try many interleavings.

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
/// State behind our locks is consistent before anything that could panic. Refusing to record because one caller's
/// thread died would lose the records of the others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock that is held for about as long as a write takes.
///
/// Sleeping and waking costs several times as much, for both sides. Other threads that were woken with us have work to
/// do meanwhile, so they run before we try again.
pub(crate) fn lock_soon<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    const LOOKS_MAX: u32 = 100;
    look_for(mutex, LOOKS_MAX).unwrap_or_else(|| lock(mutex))
}

/// Takes a lock like [`lock_soon`], but one thread at a time: others sleep at `turn` after a while.
///
/// For threads that come back at once. The running thread keeps the lock without waking another for each line, and
/// waiting threads leave the processors to working ones.
pub(crate) fn lock_in_turn<'a, T>(mutex: &'a Mutex<T>, turn: &Mutex<()>) -> MutexGuard<'a, T> {
    const LOOKS_MAX: u32 = 16;
    if let Some(guard) = look_for(mutex, LOOKS_MAX) {
        return guard;
    }
    let _next = lock(turn);
    lock_soon(mutex)
}

/// Tries some times to take the lock, and yields in between.
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

/// Waits on a condition, and ignores poisoning as [`lock`] does.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
