//! How much comes together before the next step is taken. The defaults are what the format was weighed with.

/// How long the longest chunk is that can be read. Part of the format.
pub(crate) const CHUNK_BYTES_LIMIT: usize = 256 * 1024;

/// How long chunks and packs become. Vaults that differ in them read each other's files; they share fewer chunks.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest chunk; the shortest has a sixteenth of it, unless the bytes end, and most have about a quarter. At
    /// least 1 KiB and at most 256 KiB.
    pub chunk_bytes_max: usize,
    /// When a pack is as long as this, the next one is begun.
    pub pack_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_bytes_max: CHUNK_BYTES_LIMIT, pack_bytes_max: 128 * 1024 * 1024 }
    }
}

impl Limits {
    /// Returns these limits as far as chunks of such a length can be cut and read.
    pub(crate) fn within_format(mut self) -> Self {
        self.chunk_bytes_max = self.chunk_bytes_max.clamp(1024, CHUNK_BYTES_LIMIT) / 1024 * 1024;
        self
    }

    /// Returns how many bytes of a source come together before they are cut, and how many of a pack before they are
    /// written.
    pub(crate) fn waiting_bytes_max(&self) -> usize {
        4 * self.chunk_bytes_max
    }

    /// Returns how long a tail may become, with what chunks have overtaken in it, before it is put in place anew.
    pub(crate) fn tail_bytes_max(&self) -> u64 {
        2 * self.waiting_bytes_max() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_leads_out_of_the_format() {
        for (asked, given) in [(0, 1024), (4097, 4096), (usize::MAX, CHUNK_BYTES_LIMIT)] {
            let limits = Limits { chunk_bytes_max: asked, ..Limits::default() }.within_format();
            assert_eq!(limits.chunk_bytes_max, given);
        }
    }
}
