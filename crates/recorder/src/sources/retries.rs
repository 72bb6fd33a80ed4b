//! When sources are tried again that could not be recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After how long a source is tried again that another process holds: whoever waits for it takes over at once.
pub(crate) const HELD_WAIT: Duration = Duration::from_secs(2);
/// After how long a source is first tried again that has failed.
const FAILED_WAIT: Duration = Duration::from_secs(2);
/// The longest wait. Each one after another failure is twice the one before.
const FAILED_WAIT_MAX: Duration = Duration::from_mins(2);

/// What has to be looked at later.
#[derive(Default)]
pub(crate) struct Retries {
    at: HashMap<PathBuf, Instant>,
    /// How long those have waited that have failed, and not succeeded since.
    waited: HashMap<PathBuf, Duration>,
}

impl Retries {
    /// Takes note that another process holds a source.
    pub(crate) fn held(&mut self, path: &Path, now: Instant) {
        self.at.insert(path.to_owned(), now + HELD_WAIT);
    }

    /// Takes note that a source has failed.
    pub(crate) fn failed(&mut self, path: &Path, now: Instant) {
        let wait = self.waited.get(path).map_or(FAILED_WAIT, |wait| (*wait * 2).min(FAILED_WAIT_MAX));
        self.waited.insert(path.to_owned(), wait);
        self.at.insert(path.to_owned(), now + wait);
    }

    /// Takes note that nothing is wrong with a source.
    pub(crate) fn succeeded(&mut self, path: &Path) {
        self.at.remove(path);
        self.waited.remove(path);
    }

    /// Returns all that wait.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.at.keys()
    }

    /// Returns what it is time for.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<PathBuf> {
        self.at.extract_if(|_, at| *at <= now).map(|(path, _)| path).collect()
    }

    /// Returns how long it is until something is due.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.at.values().min().map(|at| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fails_again_and_again_is_tried_less_and_less_often_until_it_succeeds() {
        let (mut retries, start, path) = (Retries::default(), Instant::now(), Path::new("/a"));
        assert_eq!(retries.wait(start), None);
        let mut waits = Vec::new();
        for _ in 0..9 {
            retries.failed(path, start);
            let wait = retries.wait(start).unwrap();
            assert!(retries.take_due(start + wait / 2).is_empty());
            assert_eq!(retries.take_due(start + wait), [path]);
            assert_eq!(retries.wait(start), None);
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 120, 120, 120]);
        retries.held(path, start);
        assert_eq!(retries.wait(start), Some(HELD_WAIT));
        retries.succeeded(path);
        assert_eq!(retries.wait(start), None);
        retries.failed(path, start);
        assert_eq!(retries.wait(start), Some(FAILED_WAIT));
    }
}
