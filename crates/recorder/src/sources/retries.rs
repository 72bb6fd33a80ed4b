//! When to retry sources that could not be recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The wait before a source that another process holds is retried. It is short, so that sources are taken over soon.
pub(crate) const HELD_WAIT: Duration = Duration::from_secs(2);
/// The wait before the first retry of a source that has failed.
const FAILED_WAIT: Duration = Duration::from_secs(2);
/// The longest wait. Each further failure doubles the wait.
const FAILED_WAIT_MAX: Duration = Duration::from_mins(2);

/// Files to read later.
#[derive(Default)]
pub(crate) struct Retries {
    at: HashMap<PathBuf, Instant>,
    /// The last wait of each source that has failed and not succeeded since.
    waited: HashMap<PathBuf, Duration>,
}

impl Retries {
    /// Notes that another process holds a source.
    pub(crate) fn retry_held(&mut self, path: &Path, now: Instant) {
        self.at.insert(path.to_owned(), now + HELD_WAIT);
    }

    /// Notes that a source has failed.
    pub(crate) fn retry_failed(&mut self, path: &Path, now: Instant) {
        let wait = self.waited.get(path).map_or(FAILED_WAIT, |wait| (*wait * 2).min(FAILED_WAIT_MAX));
        self.waited.insert(path.to_owned(), wait);
        self.at.insert(path.to_owned(), now + wait);
    }

    /// Notes that a source could be recorded.
    pub(crate) fn succeeded(&mut self, path: &Path) {
        self.at.remove(path);
        self.waited.remove(path);
    }

    /// Returns all waiting paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.at.keys()
    }

    /// Removes and returns the paths that are due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<PathBuf> {
        self.at.extract_if(|_, at| *at <= now).map(|(path, _)| path).collect()
    }

    /// Returns the time until the next path is due.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.at.values().min().map(|at| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_doubles_with_each_failure_until_success() {
        let (mut retries, start, path) = (Retries::default(), Instant::now(), Path::new("/a"));
        assert_eq!(retries.wait(start), None);
        let mut waits = Vec::new();
        for _ in 0..9 {
            retries.retry_failed(path, start);
            let wait = retries.wait(start).unwrap();
            assert!(retries.take_due(start + wait / 2).is_empty());
            assert_eq!(retries.take_due(start + wait), [path]);
            assert_eq!(retries.wait(start), None);
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 120, 120, 120]);
        retries.retry_held(path, start);
        assert_eq!(retries.wait(start), Some(HELD_WAIT));
        retries.succeeded(path);
        assert_eq!(retries.wait(start), None);
        retries.retry_failed(path, start);
        assert_eq!(retries.wait(start), Some(FAILED_WAIT));
    }
}
