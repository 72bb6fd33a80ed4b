//! Forwards what a command prints, and keeps it in a file.
//!
//! A [`Forwarder`] hands bytes on first and sends them to the [`SpoolQueue`] afterwards. A thread writes them to the
//! file with a [`SpoolWriter`]. Nobody waits for whoever reads the file. Only a disk that is slower than the command
//! delays it, for a limited time: after that, bytes are forwarded and counted.

mod forward;
mod queue;
#[cfg(target_os = "linux")]
mod splice;
mod spool;

pub use forward::{ForwardEnd, Forwarder, Stop, StopSignal};
pub use queue::SpoolQueue;
pub use spool::{RecordingPermit, SpoolHost, SpoolReport, SpoolWriter};
