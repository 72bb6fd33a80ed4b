//! The queue of notices. The system's thread adds, one thread waits and takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

/// How many paths the queue holds. Beyond that it is cheaper to check everything.
pub(super) const NOTICE_PATHS_MAX: usize = 65_536;

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameChange {
    /// The file or directory was changed or created.
    Changed,
    /// The name was removed or now belongs to something else; so were all names below it.
    Moved,
}

/// The notices since the last `take`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Notices {
    pub(super) paths: BTreeMap<PathBuf, NameChange>,
    /// Some notices were lost.
    pub(super) overflow: bool,
    /// A waker ended the waiting.
    pub(super) woken: bool,
}

#[derive(Default)]
pub(super) struct NoticeQueue {
    notices: Mutex<Notices>,
    arrived: Condvar,
}

impl NoticeQueue {
    /// Adds a notice of the system. Never blocks, because the calling thread also sets up watches.
    pub(super) fn push(&self, event_result: notify::Result<Event>) {
        let mut notices = self.lock();
        match event_result {
            // Notices were lost.
            Err(_) => notices.overflow = true,
            Ok(event) if event.need_rescan() => notices.overflow = true,
            Ok(event) => {
                let Some(happened) = meaning(event.kind) else { return };
                for path in event.paths {
                    let known = notices.paths.entry(path).or_insert(happened);
                    *known = happened.max(*known);
                }
                if notices.paths.len() > NOTICE_PATHS_MAX {
                    notices.overflow = true;
                    notices.paths.clear();
                }
            }
        }
        self.arrived.notify_all();
    }

    pub(super) fn wake(&self) {
        self.lock().woken = true;
        self.arrived.notify_all();
    }

    pub(super) fn take(&self) -> Notices {
        std::mem::take(&mut self.lock())
    }

    /// Waits until there is a notice, or until the deadline; `None` waits without a limit.
    pub(super) fn wait(&self, until: Option<Instant>) {
        let mut notices = self.lock();
        while *notices == Notices::default() {
            let Some(until) = until else {
                notices = self.arrived.wait(notices).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            notices = self.arrived.wait_timeout(notices, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what a notice means for its paths; `None` when it means nothing.
fn meaning(kind: EventKind) -> Option<NameChange> {
    match kind {
        // Reads cause notices too, above all our own. Reacting to them would never end.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(NameChange::Changed),
        EventKind::Access(_) => None,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => Some(NameChange::Moved),
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Other => {
            Some(NameChange::Changed)
        }
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, Flag, RemoveKind};

    use super::*;

    fn push(queue: &NoticeQueue, kind: EventKind, path: &str) {
        queue.push(Ok(Event::new(kind).add_path(path.into())));
    }

    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));

    #[test]
    fn notices_of_one_path_are_merged() {
        let queue = NoticeQueue::default();
        push(&queue, EventKind::Create(CreateKind::File), "a");
        push(&queue, EventKind::Remove(RemoveKind::File), "a");
        push(&queue, WRITTEN, "a");
        push(&queue, WRITTEN, "b");
        let heard = queue.take();
        assert_eq!(heard.paths, [("a".into(), NameChange::Moved), ("b".into(), NameChange::Changed)].into());
        assert_eq!(queue.take(), Notices::default());
    }

    #[test]
    fn reads_are_ignored_and_close_after_write_is_a_change() {
        let queue = NoticeQueue::default();
        push(&queue, EventKind::Access(AccessKind::Open(AccessMode::Any)), "a");
        push(&queue, EventKind::Access(AccessKind::Close(AccessMode::Read)), "a");
        assert_eq!(queue.take(), Notices::default());
        push(&queue, EventKind::Access(AccessKind::Close(AccessMode::Write)), "a");
        assert_eq!(queue.take().paths, [("a".into(), NameChange::Changed)].into());
    }

    #[test]
    fn lost_notices_are_an_overflow() {
        let queue = NoticeQueue::default();
        queue.push(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert!(queue.take().overflow);
        queue.push(Err(notify::Error::generic("read failed")));
        assert!(queue.take().overflow);
    }

    #[test]
    fn more_paths_than_can_wait_are_an_overflow() {
        let queue = NoticeQueue::default();
        for number in 0..=NOTICE_PATHS_MAX {
            push(&queue, WRITTEN, &number.to_string());
        }
        assert_eq!(queue.take(), Notices { overflow: true, ..Notices::default() });
    }

    #[test]
    fn waiting_ends_when_woken_before_or_meanwhile() {
        let queue = NoticeQueue::default();
        queue.wake();
        queue.wait(None);
        assert!(queue.take().woken);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.wait(None));
            queue.wake();
            waiting.join().expect("ended");
        });
    }
}
