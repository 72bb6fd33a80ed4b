//! Passes signals on to the command.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, getpid, kill_current_process_group, kill_process};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};

use super::terminal::Terminal;

/// The signals that are passed on.
const PASSED_ON: [i32; 9] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT];

/// Passes signals on in a thread, as long as it exists.
pub struct SignalForwarder {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    /// Whether we were asked to stop. Then we stop as soon as the command has stopped.
    is_stop_asked: Arc<AtomicBool>,
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
        let is_stop_asked = Arc::new(AtomicBool::new(false));
        let is_asked = Arc::clone(&is_stop_asked);
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
                        if signal == SIGTSTP {
                            is_asked.store(true, Ordering::SeqCst);
                        }
                        if let Some(signal) = Signal::from_named_raw(signal).filter(|_| !is_there_already) {
                            kill_process(pid, signal).ok();
                        }
                    }
                }
            }
        })?;
        Ok(Self { handle, thread: Some(thread), is_stop_asked, is_stop_own })
    }

    /// Stops this process because the command has stopped, and then lets both continue.
    ///
    /// Without a terminal of its own, the command stops alone unless we were asked to stop: whoever stopped only the
    /// command will continue only the command, and it must find us forwarding.
    pub fn stop_with(&self, pid: Pid, terminal: Option<&Terminal>) {
        let is_asked = self.is_stop_asked.swap(false, Ordering::SeqCst);
        match terminal {
            None if !is_asked => return,
            None => {}
            Some(terminal) => {
                terminal.leave();
                if !is_asked {
                    // As the terminal would do it: the other programs of the pipeline stop too.
                    self.is_stop_own.store(true, Ordering::SeqCst);
                    kill_current_process_group(Signal::TSTP).ok();
                }
            }
        }
        kill_process(getpid(), Signal::STOP).ok();
        self.is_stop_asked.store(false, Ordering::SeqCst);
        if let Some(terminal) = terminal {
            terminal.copy_size();
            terminal.enter();
        }
        kill_process(pid, Signal::CONT).ok();
    }
}

impl Drop for SignalForwarder {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
