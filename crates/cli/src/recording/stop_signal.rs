//! Listens for the signals that end a command: Ctrl-C, a service manager, a closing terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// The signals that end a command.
pub const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Listens from the start of a command to its end, so that no signal is lost between two stages.
pub struct StopSignal {
    is_stopped: Arc<AtomicBool>,
    /// The number of the received signal.
    signal: Arc<AtomicUsize>,
    handlers: Vec<SigId>,
}

impl StopSignal {
    pub fn listen() -> Result<Self, Failure> {
        let (is_stopped, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut handlers = Vec::new();
        for signal in SIGNALS {
            let value = usize::try_from(signal).unwrap_or_default();
            handlers.push(signal_hook::flag::register_usize(signal, Arc::clone(&number), value)?);
            handlers.push(signal_hook::flag::register(signal, Arc::clone(&is_stopped))?);
        }
        Ok(Self { is_stopped, signal: number, handlers })
    }

    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopped)
    }

    /// Returns the number of the received signal.
    pub fn signal(&self) -> u8 {
        u8::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default()
    }

    pub fn is_set(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

impl Drop for StopSignal {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}
