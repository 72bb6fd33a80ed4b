//! Passes signals on to the command.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_current_process_group, kill_process};
use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};

use super::terminal::Terminal;

/// The signals that are passed on.
const PASSED_ON: [i32; 9] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT];

/// A stop needs two things, which come in any order: we are asked for it, and the command has stopped.
#[derive(Default)]
struct Stop {
    is_asked: bool,
    /// Whether the command stopped before we were asked. Only used without a terminal of its own.
    is_command_stopped: bool,
}

/// Passes signals on in a thread, as long as it exists.
pub struct SignalForwarder {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    stop: Arc<Mutex<Stop>>,
    /// Whether we sent the next SIGTSTP ourselves, so that it is not passed on.
    is_stop_own: Arc<AtomicBool>,
}

impl SignalForwarder {
    /// Begins after the command was started: it inherits which signals we were told to ignore.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(pid: Pid, terminal: Option<Arc<Terminal>>) -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new(PASSED_ON)?;
        let handle = signals.handle();
        let stop = Arc::new(Mutex::new(Stop::default()));
        let asked = Arc::clone(&stop);
        let is_stop_own = Arc::new(AtomicBool::new(false));
        let is_own = Arc::clone(&is_stop_own);
        let thread = std::thread::Builder::new().name("steno-signals".to_owned());
        let thread = thread.spawn(move || {
            for origin in &mut signals {
                // A signal of the terminal reaches every program in the foreground. A command in a session of its own
                // is not among them.
                let is_there_already = origin.process.is_none() && terminal.is_none();
                match (origin.signal, &terminal) {
                    (SIGWINCH, Some(terminal)) => terminal.copy_size(),
                    (SIGCONT, Some(terminal)) => terminal.enter(),
                    (SIGCONT, None) => {}
                    (SIGTSTP, _) if is_own.swap(false, Ordering::SeqCst) => {}
                    (signal, _) => {
                        let mut stop = lock(&asked);
                        if let Some(signal) = Signal::from_named_raw(signal).filter(|_| !is_there_already) {
                            kill_process(pid, signal).ok();
                        }
                        if signal == SIGTSTP && stop.is_command_stopped {
                            stop_both(&mut stop, pid);
                        } else if signal == SIGTSTP {
                            stop.is_asked = true;
                        }
                    }
                }
            }
        })?;
        Ok(Self { handle, thread: Some(thread), stop, is_stop_own })
    }

    /// Stops this process because the command has stopped, and then lets both continue.
    ///
    /// Without a terminal of its own, the command stops alone unless we are asked to stop: whoever stopped only the
    /// command will continue only the command, and it must find us forwarding.
    pub fn stop_with(&self, pid: Pid, terminal: Option<&Terminal>) {
        let Some(terminal) = terminal else {
            let mut stop = lock(&self.stop);
            if stop.is_asked {
                stop_both(&mut stop, pid);
            } else {
                stop.is_command_stopped = true;
            }
            return;
        };
        let is_asked = std::mem::take(&mut lock(&self.stop).is_asked);
        terminal.leave();
        if !is_asked {
            // As the terminal would do it: the other programs of the pipeline stop too.
            self.is_stop_own.store(true, Ordering::SeqCst);
            kill_current_process_group(Signal::TSTP).ok();
        }
        stop_self();
        lock(&self.stop).is_asked = false;
        terminal.copy_size();
        terminal.enter();
        kill_process(pid, Signal::CONT).ok();
    }

    /// Notes that the command runs again.
    pub fn continued(&self) {
        lock(&self.stop).is_command_stopped = false;
    }
}

/// Stops this process, and continues the command when somebody continues this process.
fn stop_both(stop: &mut Stop, pid: Pid) {
    stop_self();
    *stop = Stop::default();
    kill_process(pid, Signal::CONT).ok();
}

/// Returns when somebody has continued this process.
fn stop_self() {
    // Sent to this thread: a signal to the process may be handled by another thread, while this one goes on.
    signal_hook::low_level::raise(SIGSTOP).ok();
}

fn lock(stop: &Mutex<Stop>) -> MutexGuard<'_, Stop> {
    stop.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for SignalForwarder {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
