//! A gate that opens once and releases all threads that wait at it.
//!
//! With a condition variable, all threads would be woken together and then pass its lock one by one, which costs two
//! more context switches for each. On Linux they wait on the gate itself.

pub(crate) use imp::Gate;

#[cfg(all(target_os = "linux", not(feature = "shuttle")))]
mod imp {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::thread::futex;

    const SHUT: u32 = 0;
    /// Open, and the first thread that passes wakes the others.
    const AJAR: u32 = 1;
    const OPEN: u32 = 2;

    #[derive(Default)]
    pub(crate) struct Gate {
        state: AtomicU32,
        /// Roughly how many threads wait.
        waiting: AtomicU32,
    }

    impl Gate {
        /// Opens the gate. Threads that pass it see everything that was done before.
        ///
        /// Waking a hundred threads takes as long as a sync. With that many, the first one woken wakes the others, and
        /// the caller can handle the next gate meanwhile.
        pub(crate) fn open(&self) {
            const WAKES_MAX: u32 = 16;
            if self.waiting.load(Ordering::Relaxed) <= WAKES_MAX {
                self.state.store(OPEN, Ordering::Release);
                self.wake(u32::MAX);
            } else {
                self.state.store(AJAR, Ordering::Release);
                self.wake(1);
            }
        }

        fn wake(&self, count: u32) {
            const COUNT_MAX: u32 = i32::MAX.unsigned_abs();
            // Waking no thread is not a failure, and there are no other failures.
            futex::wake(&self.state, futex::Flags::PRIVATE, count.min(COUNT_MAX)).ok();
        }

        pub(crate) fn is_open(&self) -> bool {
            self.state.load(Ordering::Acquire) != SHUT
        }

        /// Waits until the gate is open.
        pub(crate) fn wait(&self) {
            if !self.is_open() {
                self.waiting.fetch_add(1, Ordering::Relaxed);
            }
            while !self.is_open() {
                // Returns at once when the gate is not shut any more, and sometimes spuriously: hence the loop.
                futex::wait(&self.state, futex::Flags::PRIVATE, SHUT, None).ok();
            }
            if self.state.load(Ordering::Relaxed) == AJAR && self.state.swap(OPEN, Ordering::AcqRel) == AJAR {
                self.wake(u32::MAX);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn gate_releases_few_and_many_threads() {
            for threads in [1, 16, 17, 100] {
                let gate = Gate::default();
                std::thread::scope(|scope| {
                    let passing: Vec<_> = (0..threads).map(|_| scope.spawn(|| gate.wait())).collect();
                    while gate.waiting.load(Ordering::Relaxed) < threads {
                        std::thread::yield_now();
                    }
                    assert!(!gate.is_open() && passing.iter().all(|thread| !thread.is_finished()));
                    gate.open();
                });
                assert_eq!(gate.state.load(Ordering::Relaxed), OPEN, "{threads} threads");
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", not(feature = "shuttle"))))]
mod imp {
    use crate::sync::{Condvar, Mutex, lock, wait};

    #[derive(Default)]
    pub(crate) struct Gate {
        open: Mutex<bool>,
        opened: Condvar,
    }

    impl Gate {
        /// Opens the gate. Threads that pass it see everything that was done before.
        pub(crate) fn open(&self) {
            *lock(&self.open) = true;
            self.opened.notify_all();
        }

        pub(crate) fn is_open(&self) -> bool {
            *lock(&self.open)
        }

        /// Waits until the gate is open.
        pub(crate) fn wait(&self) {
            let mut open = lock(&self.open);
            while !*open {
                open = wait(&self.opened, open);
            }
        }
    }
}
