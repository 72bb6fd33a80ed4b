//! Chunk boundaries, and sketches that find similar chunks.
//!
//! Boundaries depend on the content, so equal bytes are cut into equal chunks wherever they are. A sketch is a few
//! numbers; two chunks share most of them when most of their bytes are equal.

use fastcdc::v2020::FastCDC;

use crate::limits::Limits;

/// How many numbers a sketch has.
pub(crate) const SKETCH_LEN: usize = 6;

/// Numbers that similar chunks probably share.
pub(crate) type Sketch = [u32; SKETCH_LEN];

/// Whether more bytes may follow the ones that are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// More may follow: the last chunk is not cut while it could grow.
    Open,
    /// No more follow, or they begin a new chunk.
    Closed,
}

/// Returns the lengths of the chunks of some bytes, from the beginning.
pub(crate) fn chunk_lengths(bytes: &[u8], more: InputEnd, limits: &Limits) -> Vec<usize> {
    let longest = limits.chunk_bytes_max;
    let cuts = FastCDC::new(bytes, longest / 16, longest / 4, longest);
    let mut lengths: Vec<usize> = cuts.map(|chunk| chunk.length).collect();
    if more == InputEnd::Open && lengths.last().is_some_and(|last| *last < longest) {
        lengths.pop();
    }
    lengths
}

/// Selects the windows that are sampled: those whose hash has these bits unset.
const SAMPLED: u64 = 0x3f << 32;
/// Factors that permute the hashes of windows. The maximum under each permutation is one feature.
const ORDERS: [u32; 2 * SKETCH_LEN] = [
    0x9e37_79b1,
    0x85eb_ca77,
    0xc2b2_ae3d,
    0x27d4_eb2f,
    0x1656_67b1,
    0xd3a2_646d,
    0xfd70_46c5,
    0xb55a_4f09,
    0xe657_1d2d,
    0x94d0_49bb,
    0xbf58_476d,
    0x6c62_272f,
];

/// Computes the sketch of a chunk.
///
/// Windows of about 40 bytes are sampled by their hash. Under each of several permutations, the greatest sampled hash
/// is a feature, and two features make one number of the sketch. If few bytes differ, few windows differ and most
/// features stay the same. The rolling hash drops a byte after 64 others.
pub(crate) fn sketch(chunk: &[u8]) -> Sketch {
    let mut hash = 0_u64;
    let mut features = [0_u32; 2 * SKETCH_LEN];
    for byte in chunk {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if hash & SAMPLED == 0 {
            #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
            let window = (hash >> 8) as u32 ^ hash as u32;
            for (feature, order) in features.iter_mut().zip(ORDERS) {
                let ordered = window.wrapping_mul(order);
                *feature = (*feature).max(ordered ^ (ordered >> 15));
            }
        }
    }
    let mut sketch = [0; SKETCH_LEN];
    for (number, (place, pair)) in sketch.iter_mut().zip((0..).zip(features.chunks_exact(2))) {
        *number = pair[0].wrapping_mul(0x0100_0193) ^ pair[1].rotate_left(11) ^ place;
    }
    sketch
}

/// A pseudorandom number for each byte value.
static GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut index = 0;
    while index < table.len() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        table[index] = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CHUNK_BYTES_LIMIT;

    /// Bytes that do not repeat.
    fn noise(len: usize, mut state: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    fn lengths(bytes: &[u8], more: InputEnd) -> Vec<usize> {
        chunk_lengths(bytes, more, &Limits::default())
    }

    #[test]
    fn chunks_cover_all_bytes_within_bounds() {
        let bytes = noise(3_000_000, 7);
        let lengths = lengths(&bytes, InputEnd::Closed);
        assert_eq!(lengths.iter().sum::<usize>(), bytes.len());
        let (last, others) = lengths.split_last().unwrap();
        let longest = CHUNK_BYTES_LIMIT;
        assert!(*last <= longest);
        assert!(others.iter().all(|length| (longest / 16..=longest).contains(length)));
    }

    #[test]
    fn chunk_boundaries_do_not_depend_on_reads() {
        let bytes = noise(2_000_000, 11);
        let whole = lengths(&bytes, InputEnd::Closed);
        for step in [1_000, 70_000, 300_000, 999_999] {
            let (mut cut, mut start) = (Vec::new(), 0);
            for end in (0..bytes.len()).step_by(step).skip(1) {
                for length in lengths(&bytes[start..end], InputEnd::Open) {
                    cut.push(length);
                    start += length;
                }
            }
            cut.extend(lengths(&bytes[start..], InputEnd::Closed));
            assert_eq!(cut, whole, "in pieces of {step}");
        }
    }

    #[test]
    fn uniform_bytes_give_chunks_of_maximum_length() {
        assert_eq!(lengths(&vec![7; 600_000], InputEnd::Open), [CHUNK_BYTES_LIMIT, CHUNK_BYTES_LIMIT]);
        assert!(lengths(&[], InputEnd::Closed).is_empty());
    }

    #[test]
    fn similar_chunks_share_sketch_numbers() {
        let one = noise(64 * 1024, 3);
        let mut other = one.clone();
        for at in (0..other.len()).step_by(4096) {
            other[at..at + 36].copy_from_slice(&[b'x'; 36]);
        }
        let shared = |a: &[u8], b: &[u8]| {
            sketch(a).iter().zip(sketch(b)).filter(|(mine, theirs)| *mine == theirs).count()
        };
        assert!(shared(&one, &other) >= 3, "{}", shared(&one, &other));
        assert_eq!(shared(&one, &noise(64 * 1024, 5)), 0);
    }
}
