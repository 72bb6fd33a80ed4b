//! How files are followed, with the defaults that people rely on.

use std::time::Duration;

/// How many bytes a look hands on at most, unless it is told otherwise.
pub const MAX_READ_BYTES: usize = 65_536;

/// How many directories the system is asked to watch at most, unless it is told otherwise. A user has a limited number
/// of watches for all programs together, and editors fail without theirs.
const WATCHES_MAX: usize = 32_768;

/// How we hear that files change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The system tells: inotify on Linux.
    System,
    /// Every file is asked for its size and times, again and again.
    Polling,
}

/// Settings of tailing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailOptions {
    /// How often files are looked at that the system does not watch for us.
    pub poll_interval: Duration,
    /// How often directories are looked at for files that nobody told of.
    pub subagent_discovery_interval: Duration,
    /// How many bytes a look hands on at most.
    pub max_read_bytes: usize,
    /// How changes are heard of. Where the system cannot tell, there is polling in any case.
    pub backend: Backend,
    /// How many directories the system is asked to watch at most; those beyond are polled.
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
