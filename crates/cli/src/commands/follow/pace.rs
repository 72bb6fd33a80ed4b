//! How often something that takes long is done while a session grows.

use std::time::{Duration, Instant};

/// The time between two repetitions, in durations of the last one: a tenth of one core is used at most.
const REST: u32 = 9;

/// Limits how often something is done: the longer it takes, the more rarely.
#[derive(Default)]
pub struct Pace {
    next: Option<Instant>,
}

impl Pace {
    /// Returns how long to wait before the next time.
    pub fn rest(&self) -> Duration {
        self.rest_at(Instant::now())
    }

    fn rest_at(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// Does it, and measures how long it takes.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        let now = Instant::now();
        self.ended(now, now - begun);
        done
    }

    fn ended(&mut self, now: Instant, took: Duration) {
        self.next = now.checked_add(took * REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_work_is_repeated_rarely() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert_eq!(pace.rest_at(now), Duration::ZERO);
        for took in [1, 20, 3000] {
            let took = Duration::from_millis(took);
            pace.ended(now, took);
            assert_eq!(pace.rest_at(now), took * 9);
            assert_eq!(pace.rest_at(now + took * 4), took * 5);
            assert_eq!(pace.rest_at(now + took * 10), Duration::ZERO);
        }
    }
}
