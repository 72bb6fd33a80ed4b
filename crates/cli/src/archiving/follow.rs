//! Following until somebody says stop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steno_capture::tail::TailOptions;
use steno_disk::Disk;
use steno_recorder::archive::{Archive, Error, Following, Places, Watcher};

use super::{failure, pausing, warn};
use crate::failure::{Exit, Outcome, with_causes};
use crate::output::{count, size};

/// Says on stderr what happens.
struct Talk<'a> {
    stop: Arc<AtomicBool>,
    again: &'a dyn Fn() -> Option<Places>,
    disk: Arc<dyn Disk>,
}

impl Watcher for Talk<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_paused(&self) -> bool {
        pausing::is_paused(&*self.disk)
    }

    fn ready(&mut self) {
        tell("following; Ctrl-C ends it");
    }

    fn places(&self) -> Option<Places> {
        (self.again)()
    }

    fn recorded(&mut self, path: &Path, events: u64) {
        tracing::debug!("{events} events of `{}`", path.display());
    }

    fn failed(&mut self, _path: &Path, error: &Error) {
        warn(&format!("{}; it is tried again", with_causes(error)));
    }
}

/// Says something that is neither data nor trouble.
pub fn tell(text: &str) {
    use std::io::Write as _;
    // Nothing can be done when stderr is gone.
    writeln!(anstream::stderr(), "{}", steno_views::visible(text, steno_views::Lines::Escape)).ok();
}

/// Follows what is in places until a signal comes. `again` says where places are now: agents may be installed meanwhile.
pub fn follow(
    archive: &mut Archive,
    places: Places,
    options: TailOptions,
    again: &dyn Fn() -> Option<Places>,
) -> Outcome {
    let disk = Arc::clone(archive.disk());
    let following = Following::new(archive, places, options);
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let (waker, told) = (following.waker(), Arc::clone(&stop));
    let listener = std::thread::spawn(move || {
        for _ in signals.forever() {
            told.store(true, Ordering::Relaxed);
            waker.wake();
        }
    });
    let health = following.run(&mut Talk { stop, again, disk }).map_err(failure);
    handle.close();
    listener.join().ok();
    let health = health?;
    tell(&format!("{} recorded, {} read", count(health.events, "event"), size(health.bytes_read)));
    // Ctrl-C is how one ends it; a service manager says it with SIGTERM. Both are what was asked for.
    Ok(Exit::Done)
}
