//! Decodes a copy of a compressed body, piece by piece. The client gets the bytes as they came.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{MultiGzDecoder, ZlibDecoder};

use super::assembly::BODY_BYTES_MAX;

/// The buffer of the Brotli decoder.
const BUFFER_BYTES: usize = 16 * 1024;

/// Decodes one body.
pub(super) enum Decoder {
    /// The body is not compressed.
    Plain,
    Gzip(Box<MultiGzDecoder<Output>>),
    Deflate(Box<ZlibDecoder<Output>>),
    Brotli(Box<DecompressorWriter<Output>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Output>>),
    /// The coding is unknown, or decoding has failed.
    Failed,
}

/// Collects decoded bytes, up to a limit: a few bytes can decode to gigabytes.
#[derive(Default)]
pub(super) struct Output(Vec<u8>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > BODY_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// Makes the decoder for the value of a `Content-Encoding` header.
    pub(super) fn of(coding: Option<&str>) -> Self {
        match coding.map(str::trim) {
            None | Some("" | "identity") => Self::Plain,
            Some("gzip" | "x-gzip") => Self::Gzip(Box::new(MultiGzDecoder::new(Output::default()))),
            Some("deflate") => Self::Deflate(Box::new(ZlibDecoder::new(Output::default()))),
            Some("br") => Self::Brotli(Box::new(DecompressorWriter::new(Output::default(), BUFFER_BYTES))),
            Some("zstd") => match zstd::stream::write::Decoder::new(Output::default()) {
                Ok(decoder) => Self::Zstd(Box::new(decoder)),
                Err(_) => Self::Failed,
            },
            Some(_) => Self::Failed,
        }
    }

    /// Decodes the next piece; `None` if that is not possible, now or before.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let decoded = match self {
            Self::Plain => return Some(bytes.to_vec()),
            Self::Gzip(decoder) => through(&mut **decoder, bytes, MultiGzDecoder::get_mut),
            Self::Deflate(decoder) => through(&mut **decoder, bytes, ZlibDecoder::get_mut),
            Self::Brotli(decoder) => through(&mut **decoder, bytes, DecompressorWriter::get_mut),
            Self::Zstd(decoder) => through(&mut **decoder, bytes, zstd::stream::write::Decoder::get_mut),
            Self::Failed => return None,
        };
        if decoded.is_err() {
            *self = Self::Failed;
        }
        decoded.ok()
    }
}

fn through<W: Write>(
    decoder: &mut W,
    bytes: &[u8],
    output: impl Fn(&mut W) -> &mut Output,
) -> io::Result<Vec<u8>> {
    decoder.write_all(bytes)?;
    decoder.flush()?;
    Ok(std::mem::take(&mut output(decoder).0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"event: ping\ndata: {}\n\nevent: ping\ndata: {}\n\n";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn bodies_are_decoded_however_they_are_cut() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(TEXT).unwrap();
        // `printf … | brotli`: an uncompressed meta-block would not test the decoder.
        let brotli = [0x0b, 0x04, 0x80, b'h', b'e', b'l', b'l', b'o', b',', b' ', b'y', b'o', b'u', 0x03];
        for (coding, encoded, want) in [
            ("gzip", gzip(TEXT), TEXT),
            ("deflate", zlib.finish().unwrap(), TEXT),
            ("zstd", zstd::encode_all(TEXT, 3).unwrap(), TEXT),
            ("identity", TEXT.to_vec(), TEXT),
            ("br", brotli.to_vec(), b"hello, yo".as_slice()),
        ] {
            for size in [1, 7, encoded.len()] {
                let mut decoder = Decoder::of(Some(coding));
                let pieces: Vec<u8> =
                    encoded.chunks(size).flat_map(|piece| decoder.push(piece).unwrap()).collect();
                assert!(pieces.starts_with(want), "{coding} {size}: {}", String::from_utf8_lossy(&pieces));
            }
        }
    }

    #[test]
    fn what_cannot_be_decoded_fails_for_good() {
        let mut decoder = Decoder::of(Some("gzip"));
        assert!(decoder.push(b"not gzip at all").is_none() && decoder.push(&gzip(TEXT)).is_none());
        assert!(Decoder::of(Some("snappy")).push(b"x").is_none());
    }

    #[test]
    fn few_bytes_cannot_decode_to_many() {
        let bomb = zstd::encode_all(io::repeat(0).take_bytes(), 3).unwrap();
        assert!(bomb.len() < BODY_BYTES_MAX / 100);
        assert!(Decoder::of(Some("zstd")).push(&bomb).is_none());
    }

    trait TakeBytes {
        fn take_bytes(self) -> io::Take<io::Repeat>;
    }

    impl TakeBytes for io::Repeat {
        fn take_bytes(self) -> io::Take<io::Repeat> {
            io::Read::take(self, BODY_BYTES_MAX as u64 + 1)
        }
    }
}
