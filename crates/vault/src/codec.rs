//! Compression of chunks, with or without a base.

use zstd::zstd_safe::{self, CCtx, CParameter, DCtx};

/// The compression level. Measured on real sessions, the next levels save 2 % and take half as long again.
const LEVEL: i32 = 3;

/// Compresses and decompresses. Its buffers are large, so they are created on first use and reused.
#[derive(Default)]
pub(crate) struct Codec {
    compress: Option<CCtx<'static>>,
    decompress: Option<DCtx<'static>>,
}

impl Codec {
    /// Compresses a chunk; `None` when that does not make it smaller.
    pub(crate) fn pack(&mut self, chunk: &[u8]) -> Option<Vec<u8>> {
        let context = self.compress.get_or_insert_with(|| {
            let mut context = CCtx::create();
            set_level(&mut context);
            context
        });
        let mut packed = Vec::with_capacity(zstd_safe::compress_bound(chunk.len()));
        context.compress2(&mut packed, chunk).ok()?;
        (packed.len() < chunk.len()).then_some(packed)
    }

    /// Decompresses a chunk of a known length; `None` when that fails or the length differs.
    pub(crate) fn unpack(&mut self, packed: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut chunk = Vec::new();
        self.unpack_into(&mut chunk, packed, len).then_some(chunk)
    }

    /// Decompresses a chunk of a known length into a buffer, which is overwritten; false when that fails or the length
    /// differs.
    pub(crate) fn unpack_into(&mut self, chunk: &mut Vec<u8>, packed: &[u8], len: usize) -> bool {
        chunk.clear();
        chunk.reserve_exact(len);
        let unpacked = self.decompress.get_or_insert_with(DCtx::create).decompress(chunk, packed);
        unpacked.is_ok() && chunk.len() == len
    }
}

/// Compresses a chunk as a delta of a base.
pub(crate) fn pack_against(base: &[u8], chunk: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(chunk.len()));
    // A new context, because it borrows the base.
    let mut context = CCtx::create();
    set_level(&mut context);
    context.ref_prefix(base).ok()?;
    context.compress2(&mut packed, chunk).ok()?;
    Some(packed)
}

/// Restores a chunk of a known length from its delta and base; `None` when that fails or the length differs.
pub(crate) fn unpack_against(base: &[u8], packed: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut chunk = Vec::with_capacity(len);
    let mut context = DCtx::create();
    context.ref_prefix(base).ok()?;
    context.decompress(&mut chunk, packed).ok()?;
    (chunk.len() == len).then_some(chunk)
}

fn set_level(context: &mut CCtx<'_>) {
    context.set_parameter(CParameter::CompressionLevel(LEVEL)).expect("zstd has this level");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_round_trip_with_and_without_a_base() {
        let base: Vec<u8> = (0..100_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let base = &base[..200_000];
        let mut chunk = base.to_vec();
        chunk[70_000..70_036].copy_from_slice(&[b'x'; 36]);
        let mut codec = Codec::default();
        let packed = codec.pack(&chunk).unwrap();
        assert_eq!(codec.unpack(&packed, chunk.len()).as_deref(), Some(&chunk[..]));
        assert_eq!(codec.unpack(&packed, chunk.len() - 1), None);
        assert_eq!(codec.unpack(&packed[1..], chunk.len()), None);
        let differing = pack_against(base, &chunk).unwrap();
        assert!(differing.len() < 300, "{}", differing.len());
        assert_eq!(unpack_against(base, &differing, chunk.len()).as_deref(), Some(&chunk[..]));
        assert!(unpack_against(&vec![b'x'; 200_000], &differing, chunk.len()).as_deref() != Some(&chunk[..]));
    }

    #[test]
    fn incompressible_chunks_are_not_packed() {
        assert_eq!(Codec::default().pack(b"x"), None);
    }
}
