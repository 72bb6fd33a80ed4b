//! Pseudo-random numbers that depend only on their seed.

/// Draws numbers.
pub(crate) struct Dice(u64);

impl Dice {
    /// Takes a checksum of the bytes as the seed.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// Draws a number below a limit; 0 below 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // Splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let drawn = mixed % (limit.max(1) as u64);
        usize::try_from(drawn).expect("it is below a usize")
    }
}
