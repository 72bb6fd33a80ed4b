//! Following until somebody says stop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steno_capture::tail::{Backend, TailOptions};
use steno_recorder::archive::{Archive, Error, Following, Health, Places, Watcher};

use super::{failure, warn};
use crate::args::TailingArgs;
use crate::failure::{Exit, Failure, with_causes};

/// Says on stderr what happens.
struct Talk {
    stop: Arc<AtomicBool>,
    /// What is said when all that was there is recorded.
    ready: String,
}

impl Watcher for Talk {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn ready(&mut self) {
        tell(&self.ready);
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

/// Follows what is in places until a signal comes; returns what was done, and how to end.
pub fn follow(
    archive: &mut Archive,
    places: Places,
    tailing: TailingArgs,
    ready: &str,
) -> Result<(Health, Exit), Failure> {
    let backend = if tailing.poll { Backend::Polling } else { Backend::System };
    let following = Following::new(archive, places, TailOptions { backend, ..TailOptions::default() });
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
    let health = following.run(&mut Talk { stop, ready: ready.to_owned() }).map_err(failure);
    handle.close();
    listener.join().ok();
    // Ctrl-C is how one ends it; a service manager says it with SIGTERM. Both are what was asked for.
    Ok((health?, Exit::Done))
}
