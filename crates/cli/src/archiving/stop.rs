//! Whether somebody wants it to stop: Ctrl-C, a service manager, a terminal that closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// The signals that mean it.
pub const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Hears of them from the beginning of a command to its end, so that none falls between two stages of it.
pub struct Stop {
    told: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Stop {
    pub fn listen() -> Result<Self, Failure> {
        let told = Arc::new(AtomicBool::new(false));
        let handlers = SIGNALS.map(|signal| signal_hook::flag::register(signal, Arc::clone(&told)));
        let handlers = handlers.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { told, handlers })
    }

    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.told)
    }

    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}
