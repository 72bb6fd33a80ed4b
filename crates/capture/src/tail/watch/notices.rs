//! The queue of notices. The system's thread adds, one thread waits and takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

/// How many paths the queue holds. Beyond that it is cheaper to check everything.
pub(super) const HEARD_PATHS_MAX: usize = 65_536;

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happened {
    /// The file or directory was changed or created.
    Changed,
    /// The name was removed or now belongs to something else; so were all names below it.
    Moved,
}

/// The notices since the last `take`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) paths: BTreeMap<PathBuf, Happened>,
    /// Some notices were lost.
    pub(super) overflow: bool,
    /// A waker ended the waiting.
    pub(super) woken: bool,
}

#[derive(Default)]
pub(super) struct Bell {
    heard: Mutex<Heard>,
    rung: Condvar,
}

impl Bell {
    /// Adds a notice of the system. Never blocks, because the calling thread also sets up watches.
    pub(super) fn hear(&self, told: notify::Result<Event>) {
        let mut heard = self.lock();
        match told {
            // Notices were lost.
            Err(_) => heard.overflow = true,
            Ok(event) if event.need_rescan() => heard.overflow = true,
            Ok(event) => {
                let Some(happened) = meaning(event.kind) else { return };
                for path in event.paths {
                    let known = heard.paths.entry(path).or_insert(happened);
                    *known = happened.max(*known);
                }
                if heard.paths.len() > HEARD_PATHS_MAX {
                    heard.overflow = true;
                    heard.paths.clear();
                }
            }
        }
        self.rung.notify_all();
    }

    pub(super) fn wake(&self) {
        self.lock().woken = true;
        self.rung.notify_all();
    }

    pub(super) fn take(&self) -> Heard {
        std::mem::take(&mut self.lock())
    }

    /// Waits until there is a notice, or until the deadline; `None` waits without a limit.
    pub(super) fn wait(&self, until: Option<Instant>) {
        let mut heard = self.lock();
        while *heard == Heard::default() {
            let Some(until) = until else {
                heard = self.rung.wait(heard).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            heard = self.rung.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what a notice means for its paths; `None` when it means nothing.
fn meaning(kind: EventKind) -> Option<Happened> {
    match kind {
        // Reads cause notices too, above all our own. Reacting to them would never end.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Happened::Changed),
        EventKind::Access(_) => None,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => Some(Happened::Moved),
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Other => {
            Some(Happened::Changed)
        }
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, Flag, RemoveKind};

    use super::*;

    fn hear(bell: &Bell, kind: EventKind, path: &str) {
        bell.hear(Ok(Event::new(kind).add_path(path.into())));
    }

    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));

    #[test]
    fn what_happens_to_one_path_is_one_notice() {
        let bell = Bell::default();
        hear(&bell, EventKind::Create(CreateKind::File), "a");
        hear(&bell, EventKind::Remove(RemoveKind::File), "a");
        hear(&bell, WRITTEN, "a");
        hear(&bell, WRITTEN, "b");
        let heard = bell.take();
        assert_eq!(heard.paths, [("a".into(), Happened::Moved), ("b".into(), Happened::Changed)].into());
        assert_eq!(bell.take(), Heard::default());
    }

    #[test]
    fn being_read_is_no_change_and_being_closed_after_writing_is_one() {
        let bell = Bell::default();
        hear(&bell, EventKind::Access(AccessKind::Open(AccessMode::Any)), "a");
        hear(&bell, EventKind::Access(AccessKind::Close(AccessMode::Read)), "a");
        assert_eq!(bell.take(), Heard::default());
        hear(&bell, EventKind::Access(AccessKind::Close(AccessMode::Write)), "a");
        assert_eq!(bell.take().paths, [("a".into(), Happened::Changed)].into());
    }

    #[test]
    fn lost_notices_are_an_overflow() {
        let bell = Bell::default();
        bell.hear(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert!(bell.take().overflow);
        bell.hear(Err(notify::Error::generic("read failed")));
        assert!(bell.take().overflow);
    }

    #[test]
    fn more_paths_than_can_wait_are_an_overflow() {
        let bell = Bell::default();
        for number in 0..=HEARD_PATHS_MAX {
            hear(&bell, WRITTEN, &number.to_string());
        }
        assert_eq!(bell.take(), Heard { overflow: true, ..Heard::default() });
    }

    #[test]
    fn waiting_ends_when_woken_before_or_meanwhile() {
        let bell = Bell::default();
        bell.wake();
        bell.wait(None);
        assert!(bell.take().woken);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| bell.wait(None));
            bell.wake();
            waiting.join().expect("ended");
        });
    }
}
