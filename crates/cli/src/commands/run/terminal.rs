//! The pseudoterminal that a command gets instead of our terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::getpgrp;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
    tcsetwinsize,
};

/// A pseudoterminal, and ours.
pub struct Terminal {
    master: OwnedFd,
    slave: Option<OwnedFd>,
    /// Our terminal.
    ours: OwnedFd,
    /// Whether we read what is typed.
    is_read: bool,
    /// Whether somebody forwards what the command prints on it.
    is_forwarded: AtomicBool,
    /// The modes of our terminal before we changed them, as long as they are changed.
    saved: Mutex<Option<Termios>>,
}

impl Terminal {
    /// Opens a pseudoterminal with the modes and the size of ours.
    ///
    /// # Errors
    /// The system has no more of them.
    pub fn open(is_read: bool) -> io::Result<Self> {
        let ours = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        let ours = ours
            .into_iter()
            .find(|stream| isatty(stream))
            .ok_or(io::ErrorKind::NotFound)?
            .try_clone_to_owned()?;
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        fcntl_setfd(&master, FdFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(&*name, flags, Mode::empty())?;
        if let Ok(mut modes) = tcgetattr(&ours) {
            if !is_read {
                // Our terminal already translates line ends. If we also read from it, we switch that off.
                modes.output_modes.remove(OutputModes::OPOST);
            }
            tcsetattr(&slave, OptionalActions::Now, &modes)?;
        }
        let terminal = Self {
            master,
            slave: Some(slave),
            ours,
            is_read,
            is_forwarded: AtomicBool::new(false),
            saved: Mutex::new(None),
        };
        terminal.copy_size();
        Ok(terminal)
    }

    /// Returns true once, if its output is not forwarded yet.
    pub fn is_new(&self) -> bool {
        !self.is_forwarded.swap(true, Ordering::SeqCst)
    }

    /// Returns the side of the command.
    pub fn slave(&self) -> io::Result<OwnedFd> {
        self.slave.as_ref().ok_or(io::ErrorKind::NotFound)?.try_clone()
    }

    /// Returns our side.
    pub fn master(&self) -> io::Result<OwnedFd> {
        self.master.try_clone()
    }

    /// Closes our copy of the command's side. After that we see when the command has closed it.
    pub fn close_slave(&mut self) {
        self.slave = None;
    }

    /// Sets its size to that of our terminal. The system notifies the command.
    pub fn copy_size(&self) {
        if let Ok(size) = tcgetwinsize(&self.ours) {
            tcsetwinsize(self.slave.as_ref().unwrap_or(&self.master), size).ok();
        }
    }

    /// Switches our terminal to raw mode if we are in the foreground. Keys then get their meaning from the pseudoterminal.
    pub fn enter(&self) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        // In the background, changing the modes would stop us.
        if !self.is_read || saved.is_some() || !tcgetpgrp(&self.ours).is_ok_and(|group| group == getpgrp()) {
            return;
        }
        if let Ok(modes) = tcgetattr(&self.ours) {
            let mut raw = modes.clone();
            raw.make_raw();
            if tcsetattr(&self.ours, OptionalActions::Drain, &raw).is_ok() {
                *saved = Some(modes);
            }
        }
    }

    /// Restores the modes of our terminal.
    pub fn leave(&self) {
        if let Some(modes) = self.saved.lock().unwrap_or_else(PoisonError::into_inner).take() {
            tcsetattr(&self.ours, OptionalActions::Drain, &modes).ok();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}
