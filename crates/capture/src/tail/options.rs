//! Options of following files.

use std::time::Duration;

/// The default maximum of bytes per read.
pub const MAX_READ_BYTES: usize = 65_536;

/// The default maximum of watched directories. A user has a limited number of watches for all programs, and editors
/// fail without theirs.
const WATCHES_MAX: usize = 32_768;

/// How changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// By notices of the system: inotify on Linux.
    System,
    /// By polling the size and times of every file.
    Polling,
}

/// Options of following files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailOptions {
    /// How often files are polled that the system does not watch.
    pub poll_interval: Duration,
    /// How often directories are checked for new files.
    pub subagent_discovery_interval: Duration,
    /// The maximum of bytes per read.
    pub max_read_bytes: usize,
    /// How changes are noticed. Polling is used where the system cannot watch.
    pub backend: Backend,
    /// The maximum of watched directories; those beyond are polled.
    pub watches_max: usize,
}

impl Default for TailOptions {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_millis(250),
            subagent_discovery_interval: Duration::from_secs(1),
            max_read_bytes: MAX_READ_BYTES,
            backend: Backend::System,
            watches_max: WATCHES_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_specification() {
        let options = TailOptions::default();
        assert_eq!(options.poll_interval.as_secs_f64().to_bits(), 0.25_f64.to_bits());
        assert_eq!(options.subagent_discovery_interval.as_secs_f64().to_bits(), 1.0_f64.to_bits());
        assert_eq!(options.max_read_bytes, 65_536);
    }
}
