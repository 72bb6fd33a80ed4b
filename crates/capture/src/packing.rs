//! Decompresses agents' files: bytes as they arrive with an [`Unpacker`], or a file with an [`UnpackReader`]. Both
//! recognize compression by the first bytes, not by the name, and have the same limits.

use std::io::{self, Read};
use std::ops::Range;

use steno_model::Packing;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

/// The magic of zstd.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much is read and decompressed at a time: compressed data may expand a thousandfold.
pub const PIECE_BYTES_MAX: usize = 128 * 1024;

/// The maximum window of compressed data, as a power of two, which bounds the memory: 128 MiB. All levels of zstd stay
/// within it.
const WINDOW_LOG_MAX: u32 = 27;

/// Decompresses bytes as they arrive, in pieces of any length. Uncompressed data is passed on unchanged.
#[derive(Default)]
pub struct Unpacker {
    state: UnpackState,
}

/// Reads a file and decompresses it if necessary.
pub struct UnpackReader<R> {
    file: R,
    unpacker: Unpacker,
    /// The last bytes read from the file.
    packed: Vec<u8>,
    /// The part of them that is not decompressed yet.
    unused: Range<usize>,
    /// Bytes that looked like the beginning of the magic, but are not.
    pending: &'static [u8],
}

enum UnpackState {
    /// This many bytes have arrived, and they are the first of the magic.
    Beginning(usize),
    Plain,
    Zstd(Box<ZstdStream>),
    /// The data is invalid.
    Broken,
}

impl Default for UnpackState {
    fn default() -> Self {
        Self::Beginning(0)
    }
}

impl Unpacker {
    /// Passes the decompressed bytes to `each`, in pieces of at most [`PIECE_BYTES_MAX`] if they were compressed.
    ///
    /// # Errors
    /// zstd's error for invalid data; all later calls fail too.
    pub fn unpack(&mut self, packed: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let (pending, rest) = self.recognise(packed)?;
        if !pending.is_empty() {
            each(pending);
        }
        match &self.state {
            UnpackState::Plain if !rest.is_empty() => each(rest),
            UnpackState::Zstd(_) => {
                let (mut piece, mut used) = (vec![0; PIECE_BYTES_MAX], 0);
                loop {
                    let step = self.step(&rest[used..], &mut piece)?;
                    used += step.used;
                    if step.given > 0 {
                        each(&piece[..step.given]);
                    } else if used == rest.len() {
                        break;
                    }
                }
            }
            UnpackState::Beginning(_) | UnpackState::Plain => {}
            UnpackState::Broken => return Err(broken_before()),
        }
        Ok(())
    }

    /// Returns the compression of data that continues with these bytes; `None` if there is none or it is not known yet.
    #[must_use]
    pub fn packing(&self, next: &[u8]) -> Option<Packing> {
        match &self.state {
            UnpackState::Beginning(before) => {
                next.starts_with(&ZSTD_MAGIC[*before..]).then_some(Packing::Zstd)
            }
            UnpackState::Zstd(_) => Some(Packing::Zstd),
            UnpackState::Plain | UnpackState::Broken => None,
        }
    }

    /// Recognizes the compression by the first bytes. Returns the earlier bytes that must be passed on, and the rest of
    /// these.
    fn recognise<'a>(&mut self, packed: &'a [u8]) -> io::Result<(&'static [u8], &'a [u8])> {
        let UnpackState::Beginning(before) = self.state else { return Ok((&[], packed)) };
        let alike = packed.iter().zip(&ZSTD_MAGIC[before..]).take_while(|(byte, want)| byte == want).count();
        let (known, rest) = (before + alike, &packed[alike..]);
        if known == ZSTD_MAGIC.len() {
            self.state = UnpackState::Broken;
            self.state = UnpackState::Zstd(Box::new(ZstdStream::begin()?));
        } else if rest.is_empty() {
            self.state = UnpackState::Beginning(known);
        } else {
            self.state = UnpackState::Plain;
            return Ok((&ZSTD_MAGIC[..known], rest));
        }
        Ok((&[], rest))
    }

    fn step(&mut self, packed: &[u8], into: &mut [u8]) -> io::Result<UnpackStep> {
        let UnpackState::Zstd(stream) = &mut self.state else { return Err(broken_before()) };
        let step = stream.step(packed, into);
        if step.is_err() {
            self.state = UnpackState::Broken;
        }
        step
    }
}

fn broken_before() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "earlier data could not be decompressed")
}

impl<R: Read> UnpackReader<R> {
    /// Reads nothing yet.
    pub fn new(file: R) -> Self {
        Self { file, unpacker: Unpacker::default(), packed: Vec::new(), unused: 0..0, pending: &[] }
    }

    /// Returns the compression of the file, as far as it was read.
    #[must_use]
    pub fn packing(&self) -> Option<Packing> {
        self.unpacker.packing(&[])
    }

    /// Reads the next piece of the file; `false` at its end.
    fn refill(&mut self) -> io::Result<bool> {
        self.packed.resize(PIECE_BYTES_MAX, 0);
        let count = self.file.read(&mut self.packed)?;
        let (pending, rest) = self.unpacker.recognise(&self.packed[..count])?;
        (self.pending, self.unused) = (pending, count - rest.len()..count);
        Ok(count > 0)
    }

    /// Returns what is available without reading the file.
    fn take(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.packed[self.unused.clone()];
        match &self.unpacker.state {
            _ if !self.pending.is_empty() => self.pending.read(into),
            UnpackState::Beginning(_) => Ok(0),
            UnpackState::Plain if rest.is_empty() => self.file.read(into),
            UnpackState::Plain => {
                let given = (&mut &*rest).read(into)?;
                self.unused.start += given;
                Ok(given)
            }
            UnpackState::Zstd(_) | UnpackState::Broken => {
                let step = self.unpacker.step(rest, into)?;
                self.unused.start += step.used;
                Ok(step.given)
            }
        }
    }
}

/// Fails with [`io::ErrorKind::UnexpectedEof`] if a file ends inside compressed data.
impl<R: Read> Read for UnpackReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let given = self.take(into)?;
            if given > 0 || into.is_empty() {
                return Ok(given);
            }
            if !self.unused.is_empty() || self.refill()? {
                continue;
            }
            match &self.unpacker.state {
                UnpackState::Beginning(known @ 1..) => {
                    self.pending = &ZSTD_MAGIC[..*known];
                    self.unpacker.state = UnpackState::Plain;
                }
                UnpackState::Zstd(stream) if stream.is_inside => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame"));
                }
                UnpackState::Beginning(_)
                | UnpackState::Plain
                | UnpackState::Zstd(_)
                | UnpackState::Broken => return Ok(0),
            }
        }
    }
}

/// Compressed data after its magic.
struct ZstdStream {
    decoder: Decoder<'static>,
    /// Whether a frame has begun and not ended.
    is_inside: bool,
    /// Whether the decoder may have more to give without another byte.
    has_more: bool,
}

struct UnpackStep {
    /// How many packed bytes were used.
    used: usize,
    /// How many unpacked bytes were given.
    given: usize,
}

impl ZstdStream {
    fn begin() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        let mut stream = Self { decoder, is_inside: true, has_more: false };
        stream.step(&ZSTD_MAGIC, &mut [0])?;
        Ok(stream)
    }

    fn step(&mut self, packed: &[u8], into: &mut [u8]) -> io::Result<UnpackStep> {
        // Without input or output the decoder would begin another frame or fail.
        if into.is_empty() || packed.is_empty() && !self.has_more {
            return Ok(UnpackStep { used: 0, given: 0 });
        }
        let (mut input, mut output) = (InBuffer::around(packed), OutBuffer::around(&mut *into));
        let wanted = self.decoder.run(&mut input, &mut output)?;
        let step = UnpackStep { used: input.pos(), given: output.pos() };
        self.is_inside = wanted > 0;
        self.has_more = self.is_inside && step.given == into.len();
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the output for bytes that arrive in steps, its longest piece, and the result.
    fn unpacked(packed: &[u8], step: usize) -> (Vec<u8>, usize, io::Result<()>) {
        let mut unpacker = Unpacker::default();
        let (mut all, mut longest) = (Vec::new(), 0);
        let mut each = |plain: &[u8]| {
            assert!(!plain.is_empty());
            all.extend_from_slice(plain);
            longest = longest.max(plain.len());
        };
        let ended = packed.chunks(step).try_for_each(|bytes| unpacker.unpack(bytes, &mut each));
        (all, longest, ended)
    }

    /// A file that is read in small pieces.
    struct InSteps<'a>(&'a [u8], usize);

    impl Read for InSteps<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let len = into.len().min(self.1);
            self.0.read(&mut into[..len])
        }
    }

    fn read(packed: &[u8], step: usize) -> (Vec<u8>, Option<io::ErrorKind>) {
        let (mut file, mut all) = (UnpackReader::new(InSteps(packed, step)), Vec::new());
        let ended = file.read_to_end(&mut all);
        // Reading again gives the same result.
        for _ in 0..40 {
            assert_eq!(
                file.read(&mut [0; 9]).map_err(|error| error.kind()).err(),
                ended.as_ref().err().map(io::Error::kind)
            );
        }
        (all, ended.err().map(|error| error.kind()))
    }

    fn frames() -> (Vec<u8>, Vec<u8>) {
        let plain: Vec<u8> = (0..100_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let frames = plain.chunks(70_000).flat_map(|part| zstd::encode_all(part, 3).unwrap()).collect();
        (plain, frames)
    }

    #[test]
    fn compressed_bytes_are_unpacked_in_any_pieces() {
        let (plain, frames) = frames();
        for step in [1, 3, 4096, frames.len()] {
            for packed in [&frames, &plain] {
                let (all, _, ended) = unpacked(packed, step);
                assert!(all == plain && ended.is_ok(), "in steps of {step}");
                let packing = (packed == &frames).then_some(Packing::Zstd);
                assert_eq!(Unpacker::default().packing(packed), packing);
                assert!(read(packed, step) == (plain.clone(), None), "in steps of {step}");
            }
        }
        // Frames of exactly the piece length.
        let even = vec![b'x'; PIECE_BYTES_MAX];
        let packed = zstd::encode_all(&even[..], 3).unwrap().repeat(2);
        assert!(unpacked(&packed, packed.len()).0 == even.repeat(2));
        assert!(read(&packed, packed.len()) == (even.repeat(2), None));
    }

    #[test]
    fn cut_and_broken_data_is_unpacked_up_to_the_fault() {
        let (plain, frames) = frames();
        let half = &frames[..frames.len() / 2];
        let (all, _, ended) = unpacked(half, half.len());
        assert!(!all.is_empty() && plain.starts_with(&all) && ended.is_ok());
        assert!(read(half, half.len()) == (all, Some(io::ErrorKind::UnexpectedEof)));

        let mut broken = frames.clone();
        broken[frames.len() / 2..].fill(0xff);
        let (all, _, ended) = unpacked(&broken, 1000);
        assert!(plain.starts_with(&all) && ended.is_err());
        let mut file = UnpackReader::new(InSteps(&broken, 1000));
        let mut read = Vec::new();
        assert!(file.read_to_end(&mut read).is_err() && read == all);
        assert!(file.read(&mut [0; 9]).is_err());
    }

    #[test]
    fn incomplete_magic_is_plain_data() {
        for len in 0..ZSTD_MAGIC.len() {
            let first = &ZSTD_MAGIC[..len];
            for step in [1, 9] {
                assert_eq!(read(first, step), (first.to_vec(), None));
                let plain = [first, b"{}"].concat();
                assert_eq!(read(&plain, step), (plain.clone(), None));
                assert_eq!(unpacked(&plain, step).0, plain);
            }
            // More may come.
            assert_eq!(unpacked(first, 9).0, b"");
        }
    }

    #[test]
    fn compression_bombs_are_unpacked_in_pieces() {
        let bomb = zstd::encode_all(&vec![b'x'; 64 * 1024 * 1024][..], 3).unwrap();
        assert!(bomb.len() < 16 * 1024);
        let (all, longest, _) = unpacked(&bomb, bomb.len());
        assert_eq!((all.len(), longest), (64 * 1024 * 1024, PIECE_BYTES_MAX));
    }

    #[test]
    fn too_large_windows_are_refused() {
        // A frame's head: its magic, that a window follows, and the window's size.
        let head = |window_log: u32| {
            let window = u8::try_from((window_log - 10) << 3).unwrap();
            [&ZSTD_MAGIC[..], &[0, window], &[1, 0, 0]].concat()
        };
        assert!(unpacked(&head(WINDOW_LOG_MAX), 99).2.is_ok());
        assert!(unpacked(&head(WINDOW_LOG_MAX + 1), 99).2.is_err());
    }
}
