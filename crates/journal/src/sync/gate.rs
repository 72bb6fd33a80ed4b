//! A gate that opens once and lets everybody through who waits at it.
//!
//! A condition variable would send all of them through its lock one by one after waking them together, which costs
//! two more context switches for each. On Linux they wait on the gate itself.

pub(crate) use imp::Gate;

#[cfg(all(target_os = "linux", not(feature = "shuttle")))]
mod imp {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::thread::futex;

    const SHUT: u32 = 0;
    const OPEN: u32 = 1;

    #[derive(Default)]
    pub(crate) struct Gate(AtomicU32);

    impl Gate {
        /// Opens the gate; what was done before is seen by everybody who passes it.
        pub(crate) fn open(&self) {
            self.0.store(OPEN, Ordering::Release);
            // Waking nobody is no failure, and there is no other.
            futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX.unsigned_abs()).ok();
        }

        pub(crate) fn is_open(&self) -> bool {
            self.0.load(Ordering::Acquire) == OPEN
        }

        /// Waits until the gate is open.
        pub(crate) fn wait(&self) {
            while !self.is_open() {
                // Returns at once when the gate is not shut any more, or for no reason at all: hence the loop.
                futex::wait(&self.0, futex::Flags::PRIVATE, SHUT, None).ok();
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
        /// Opens the gate; what was done before is seen by everybody who passes it.
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
