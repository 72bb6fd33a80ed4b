//! Sizes of chunks, packs and buffers. The defaults were chosen by measuring the format.

/// The length of the longest chunk that can be read. Part of the format.
pub(crate) const CHUNK_BYTES_LIMIT: usize = 256 * 1024;

/// How long chunks and packs become. Vaults with different limits can read each other's files; they share fewer chunks.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum chunk length. The minimum is a sixteenth of it, except at the end of the bytes, and most chunks have
    /// about a quarter of it. At least 1 KiB and at most 256 KiB.
    pub chunk_bytes_max: usize,
    /// At this length a pack is closed and the next one is begun.
    pub pack_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_bytes_max: CHUNK_BYTES_LIMIT, pack_bytes_max: 128 * 1024 * 1024 }
    }
}

impl Limits {
    /// Returns these limits, clamped to what the format allows.
    pub(crate) fn within_format(mut self) -> Self {
        self.chunk_bytes_max = self.chunk_bytes_max.clamp(1024, CHUNK_BYTES_LIMIT) / 1024 * 1024;
        self
    }

    /// Returns how many bytes of a source are buffered before they are cut into chunks, and how many bytes of a pack
    /// before they are written.
    pub(crate) fn waiting_bytes_max(&self) -> usize {
        4 * self.chunk_bytes_max
    }

    /// Returns how long a tail file may become before it is rewritten. It may contain bytes that chunks already have.
    pub(crate) fn tail_bytes_max(&self) -> u64 {
        2 * self.waiting_bytes_max() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_clamped_to_the_format() {
        for (asked, given) in [(0, 1024), (4097, 4096), (usize::MAX, CHUNK_BYTES_LIMIT)] {
            let limits = Limits { chunk_bytes_max: asked, ..Limits::default() }.within_format();
            assert_eq!(limits.chunk_bytes_max, given);
        }
    }
}
