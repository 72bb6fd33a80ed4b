//! Pausing the recording into a store: a small file with start, end, and whether what is written meanwhile is skipped.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use steno_disk::{LockGuard, StorePath, read_full, replace_file, sync_dir};

use crate::error::Error;
use crate::sidecar::json_line;
use crate::store::Store;

const FILE_BYTES_MAX: usize = 4096;
/// How long and how often to wait for recordings that are under way.
const WAIT: Duration = Duration::from_millis(5);
const WAITS_MAX: usize = 2000;

/// A pause of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Its start; unknown for a pause of an older version.
    pub since: Option<Timestamp>,
    /// Its end; without it, the pause lasts until it is resumed.
    pub until: Option<Timestamp>,
    /// Whether what is written meanwhile is never recorded.
    pub skips: bool,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct PauseFile {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    until: Option<String>,
    #[serde(default)]
    skip: bool,
}

/// A guard that delays a pause while something is being recorded.
pub struct RecordingGuard {
    _guard: Option<Box<dyn LockGuard>>,
}

impl Pause {
    /// Tells whether its end has passed.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl Store {
    /// Pauses recording.
    ///
    /// # Errors
    /// I/O errors.
    pub fn pause(&self, pause: &Pause) -> io::Result<()> {
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let file = PauseFile { since: text(pause.since), until: text(pause.until), skip: pause.skips };
        replace_file(&**self.disk(), &path(), format!("{}\n", json_line(&file)).as_bytes())
    }

    /// Waits until all recordings that began before the pause have ended; returns whether they have.
    #[must_use]
    pub fn wait_for_pause(&self) -> bool {
        for _ in 0..WAITS_MAX {
            // Without a lock there is nothing to wait for.
            match self.disk().try_lock(&lock_path()) {
                Ok(Some(_)) => return true,
                Ok(None) => std::thread::sleep(WAIT),
                Err(_) => return false,
            }
        }
        false
    }

    /// Begins to record something: a pause does not begin while the returned guard is held.
    ///
    /// # Errors
    /// [`Error::Paused`], or an I/O error when the state cannot be read.
    pub fn begin_recording(&self, now: Timestamp) -> Result<RecordingGuard, Error> {
        // The file is read after taking the lock: a pause writes the file first and then waits for the lock.
        let guard = self.disk().try_share(&lock_path());
        let guard = guard.map_err(|source| Error::io("lock", &lock_path(), source))?;
        match self.read_pause()? {
            Some(pause) if !pause.is_over(now) => Err(Error::Paused),
            Some(_) | None => Ok(RecordingGuard { _guard: guard }),
        }
    }

    /// Resumes recording.
    ///
    /// # Errors
    /// I/O errors.
    pub fn resume(&self) -> io::Result<()> {
        self.disk().remove(&path())?;
        sync_dir(&**self.disk(), &StorePath::root())
    }

    /// Returns the current pause, even if its end has passed. An unreadable file counts as a pause, because somebody
    /// wanted one.
    #[must_use]
    pub fn pause_set(&self) -> Option<Pause> {
        self.read_pause().unwrap_or(Some(Pause { since: None, until: None, skips: false }))
    }

    fn read_pause(&self) -> Result<Option<Pause>, Error> {
        let failed = |source| Error::io("read", &path(), source);
        let Some(file) = self.disk().open_read(&path()).map_err(failed)? else { return Ok(None) };
        let mut bytes = vec![0; FILE_BYTES_MAX];
        let read = read_full(&*file, &mut bytes, 0).map_err(failed)?;
        let time = |text: Option<String>| text.and_then(|text| text.parse().ok());
        if let Ok(PauseFile { since, until, skip }) = serde_json::from_slice(&bytes[..read]) {
            return Ok(Some(Pause { since: time(since), until: time(until), skips: skip }));
        }
        // An older version wrote only the end.
        let until = str::from_utf8(&bytes[..read]).ok().and_then(|text| text.trim().parse().ok());
        Ok(Some(Pause { since: None, until, skips: false }))
    }

    /// Tells whether recording is paused now.
    #[must_use]
    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.pause_set().is_some_and(|pause| !pause.is_over(now))
    }
}

fn path() -> StorePath {
    StorePath::root().below("paused")
}

fn lock_path() -> StorePath {
    StorePath::locks().below("pause.lock")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;
    use steno_disk::RealDisk;

    use super::*;

    #[test]
    fn pause_ends_by_time_or_resume() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(Arc::new(RealDisk::create(dir.path()).unwrap())).unwrap();
        let now = Timestamp::now();
        let pause = |until| Pause { since: Some(now), until, skips: false };
        assert!(!store.is_paused(now));
        store.pause(&pause(None)).unwrap();
        assert!(store.is_paused(now));
        store.resume().unwrap();
        assert!(!store.is_paused(now));
        let before = pause(Some(now - SignedDuration::from_secs(1)));
        store.pause(&before).unwrap();
        assert_eq!((store.is_paused(now), store.pause_set()), (false, Some(before)));
        store.pause(&pause(Some(now + SignedDuration::from_hours(1)))).unwrap();
        assert!(store.is_paused(now));
    }

    #[test]
    fn pause_waits_for_running_recordings() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(Arc::new(RealDisk::create(dir.path()).unwrap())).unwrap();
        let now = Timestamp::now();
        let recording = store.begin_recording(now);
        assert!(recording.is_ok() && store.begin_recording(now).is_ok(), "several may record");
        store.pause(&Pause { since: None, until: None, skips: false }).unwrap();
        assert!(matches!(store.begin_recording(now), Err(Error::Paused)));
        assert!(store.disk().try_lock(&lock_path()).unwrap().is_none(), "somebody records still");
        drop(recording);
        assert!(store.wait_for_pause());
    }

    #[test]
    fn pause_of_an_older_version_is_honored() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(Arc::new(RealDisk::create(dir.path()).unwrap())).unwrap();
        let now = Timestamp::now();
        for (text, want) in [
            ("\n".to_owned(), true),
            ("2001-01-01T00:00:00Z\n".to_owned(), false),
            (format!("{}\n", now + SignedDuration::from_hours(1)), true),
            ("garbage".to_owned(), true),
        ] {
            std::fs::write(dir.path().join("paused"), &text).unwrap();
            assert_eq!(store.is_paused(now), want, "{text}");
        }
    }
}
