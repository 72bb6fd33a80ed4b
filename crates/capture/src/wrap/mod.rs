//! Forwards what a command prints, and writes it to a file.
//!
//! A [`Forwarder`] forwards bytes first and sends them to the [`SpoolQueue`] afterwards. A thread writes them to the file
//! with a [`SpoolWriter`]. The command never waits for the reader of the file. It waits only for a disk that is slower
//! than it, and only for a limited time: after that, bytes are forwarded and counted.

mod forward;
mod pack;
mod queue;
#[cfg(target_os = "linux")]
mod splice;
mod spool;

pub use forward::{ForwardEnd, Forwarder, Stop, StopSignal};
pub use queue::SpoolQueue;
pub use spool::{RecordingPermit, SpoolHost, SpoolReport, SpoolWriter};
