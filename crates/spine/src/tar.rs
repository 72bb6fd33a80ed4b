//! The part of tar that bundles need. Writing: plain files with short names, the same bytes for the same files.
//! Reading: tar files of other tools, which may be hostile.
//!
//! A crate would read names of any length into memory before we could refuse them (`docs/decisions/0014-…`).

use std::io::{self, Read, Write};

pub(super) const BLOCK_BYTES: usize = 512;

/// The maximum length of a name that does not fit into a header.
const LONG_NAME_BYTES_MAX: u64 = 64 * 1024;

/// The maximum length of a name in a header.
const NAME_BYTES_MAX: usize = 100;

/// The maximum length of a written file: eleven octal digits.
const FILE_BYTES_MAX: u64 = 0o77_777_777_777;

/// Writes a tar file in the form `ustar`. Nothing in it depends on the time or the user.
pub struct TarWriter<W: Write> {
    into: W,
    /// The number of missing bytes of the current file.
    left: u64,
    padding: usize,
}

impl<W: Write> TarWriter<W> {
    /// Begins a tar file.
    pub fn new(into: W) -> Self {
        Self { into, left: 0, padding: 0 }
    }

    /// Begins a file of a known length. Its bytes are written next.
    ///
    /// # Errors
    ///
    /// An error of the writer; [`io::ErrorKind::InvalidInput`] if a header cannot hold the length, or if the previous
    /// file is not complete.
    pub fn begin(&mut self, name: &str, size_bytes: u64) -> io::Result<()> {
        self.entry(Header { name, link: "", flag: b'0', mode: "0000644" }, size_bytes)
    }

    /// Begins an executable file.
    ///
    /// # Errors
    /// As [`TarWriter::begin`].
    pub fn begin_program(&mut self, name: &str, size_bytes: u64) -> io::Result<()> {
        self.entry(Header { name, link: "", flag: b'0', mode: "0000755" }, size_bytes)
    }

    /// Writes a symbolic link.
    ///
    /// # Errors
    /// As [`TarWriter::begin`].
    pub fn link(&mut self, name: &str, target: &str) -> io::Result<()> {
        self.entry(Header { name, link: target, flag: b'2', mode: "0000777" }, 0)
    }

    fn entry(&mut self, header: Header<'_>, size_bytes: u64) -> io::Result<()> {
        if size_bytes > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is too long for tar"));
        }
        // POSIX has a separate header for values that are too long. The next header has as much of a value as fits.
        let long = [("path", header.name), ("linkpath", header.link)].into_iter();
        let pax: String = long
            .filter(|(_, text)| text.len() > NAME_BYTES_MAX)
            .map(|(field, text)| pax_line(field, text))
            .collect();
        if !pax.is_empty() {
            self.header(&Header { name: "name", link: "", flag: b'x', mode: "0000644" }, pax.len() as u64)?;
            self.write_all(pax.as_bytes())?;
        }
        self.header(&header, size_bytes)
    }

    fn header(&mut self, of: &Header<'_>, size_bytes: u64) -> io::Result<()> {
        self.end_file()?;
        let mut header = [0_u8; BLOCK_BYTES];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, what_fits(of.name));
        put(100, of.mode);
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{size_bytes:011o}\0"));
        put(136, "00000000000\0");
        put(148, "        ");
        put(157, what_fits(of.link));
        put(257, "ustar\0");
        put(263, "00");
        header[156] = of.flag;
        let sum = checksum(&header);
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.into.write_all(&header)?;
        self.left = size_bytes;
        self.padding = padding_of(size_bytes);
        Ok(())
    }

    /// Ends the tar file.
    ///
    /// # Errors
    ///
    /// An error of the writer, or that the last file is not complete.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_file()?;
        self.into.write_all(&[0; 2 * BLOCK_BYTES])?;
        Ok(self.into)
    }

    fn end_file(&mut self) -> io::Result<()> {
        if self.left > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is incomplete"));
        }
        let padding = std::mem::take(&mut self.padding);
        self.into.write_all(&[0; BLOCK_BYTES][..padding])
    }
}

impl<W: Write> Write for TarWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        if room == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is longer than announced"));
        }
        let written = self.into.write(&bytes[..room])?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

/// A header without the length.
#[derive(Clone, Copy)]
struct Header<'a> {
    name: &'a str,
    /// The target of a link.
    link: &'a str,
    flag: u8,
    mode: &'static str,
}

/// Returns as much of a name as fits into a header.
fn what_fits(name: &str) -> &str {
    let end = (0..=NAME_BYTES_MAX).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    &name[..end.min(name.len())]
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    /// A kind that bundles do not have, with its article.
    Other(&'static str),
}

/// An entry of a tar file. Its name may be anything.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) size_bytes: u64,
}

/// Reads a tar file entry by entry, in bounded memory.
pub(super) struct TarReader<R: Read> {
    from: R,
}

impl<R: Read> TarReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from }
    }

    /// Returns the next entry. The caller takes its bytes with [`TarReader::content`] before it asks for another entry.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidData`] if the bytes are not a tar file, or an error of the reader.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        let (mut long_name, mut long_size) = (None, None);
        loop {
            let mut header = [0; BLOCK_BYTES];
            self.from.read_exact(&mut header)?;
            if header.iter().all(|byte| *byte == 0) {
                self.check_end()?;
                return Ok(None);
            }
            let stored = number(&header[148..156]).ok_or_else(|| bad("a header without a checksum"))?;
            if stored != checksum(&header) {
                return Err(bad("a header that does not match its checksum"));
            }
            let size_bytes = number(&header[124..136]).ok_or_else(|| bad("a header without a length"))?;
            match header[156] {
                b'L' => long_name = Some(until_zero(&self.small(size_bytes)?).to_vec()),
                b'x' => {
                    let pax = self.small(size_bytes)?;
                    long_name = pax_value(&pax, b"path").map(<[u8]>::to_vec).or(long_name);
                    let size = pax_value(&pax, b"size").map(|digits| {
                        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok())
                    });
                    long_size = size.map(|size| size.ok_or_else(|| bad("a length that is not a number")));
                }
                // Headers for all following entries: comments, times.
                b'g' => drop(self.small(size_bytes)?),
                flag => {
                    let name = long_name.unwrap_or_else(|| name_in(&header));
                    let size_bytes = long_size.unwrap_or(Ok(size_bytes))?;
                    return Ok(Some(Entry { name, kind: kind_of(flag), size_bytes }));
                }
            }
        }
    }

    /// Passes on the bytes of an entry, piece by piece.
    ///
    /// # Errors
    ///
    /// An error of the reader, also if it ends too early.
    pub(super) fn content(&mut self, entry: &Entry, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        const PIECE_BYTES: u64 = 128 * 1024;
        let mut left = entry.size_bytes;
        let mut piece = vec![0; usize::try_from(left.min(PIECE_BYTES)).unwrap_or(0)];
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            let read = match self.from.read(&mut piece[..wanted]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            each(&piece[..read]);
            left -= read as u64;
        }
        self.from.read_exact(&mut [0; BLOCK_BYTES][..padding_of(entry.size_bytes)])
    }

    /// Reads the bytes of a header.
    fn small(&mut self, size_bytes: u64) -> io::Result<Vec<u8>> {
        if size_bytes > LONG_NAME_BYTES_MAX {
            return Err(bad("a name that is too long"));
        }
        let mut bytes = Vec::new();
        self.content(&Entry { name: Vec::new(), kind: Kind::File, size_bytes }, |piece| {
            bytes.extend_from_slice(piece);
        })?;
        Ok(bytes)
    }

    /// Checks that only zeros follow the end.
    fn check_end(&mut self) -> io::Result<()> {
        let mut piece = [0; 4096];
        loop {
            match self.from.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) if piece[..read].iter().any(|byte| *byte != 0) => {
                    return Err(bad("data after its end"));
                }
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

fn bad(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

fn padding_of(size_bytes: u64) -> usize {
    usize::try_from(size_bytes.wrapping_neg() % BLOCK_BYTES as u64).unwrap_or(0)
}

/// Returns the checksum of a header. The bytes of the checksum itself count as spaces.
fn checksum(header: &[u8; BLOCK_BYTES]) -> u64 {
    let counted = |(at, byte): (usize, &u8)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte });
    header.iter().enumerate().map(counted).sum()
}

/// Reads octal digits, or the binary form that GNU uses for larger numbers.
fn number(field: &[u8]) -> Option<u64> {
    if field.first().is_some_and(|first| first & 0x80 != 0) {
        let mut number = u64::from(field[0] & 0x7f);
        for byte in &field[1..] {
            number = number.checked_mul(256)?.checked_add(u64::from(*byte))?;
        }
        return Some(number);
    }
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn name_in(header: &[u8; BLOCK_BYTES]) -> Vec<u8> {
    let (name, prefix) = (until_zero(&header[..100]), until_zero(&header[345..500]));
    // Other forms use these bytes for other fields.
    if prefix.is_empty() || &header[257..263] != b"ustar\0" {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

fn kind_of(flag: u8) -> Kind {
    match flag {
        b'0' | 0 => Kind::File,
        b'5' => Kind::Directory,
        b'1' => Kind::Other("a hard link"),
        b'2' => Kind::Other("a symbolic link"),
        b'3' | b'4' => Kind::Other("a device"),
        b'6' => Kind::Other("a FIFO"),
        _ => Kind::Other("not a regular file"),
    }
}

/// Builds a line `LENGTH NAME=VALUE`. The length includes its own digits.
fn pax_line(name: &str, value: &str) -> String {
    let rest = name.len() + value.len() + 3;
    let digits = |number: usize| number.to_string().len();
    let mut len = rest + digits(rest);
    if digits(len) > digits(rest) {
        len += 1;
    }
    format!("{len} {name}={value}\n")
}

/// Finds a value in lines of `LENGTH NAME=VALUE`.
fn pax_value<'a>(mut rest: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut found = None;
    while let Some(space) = memchr::memchr(b' ', rest) {
        let len: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
        let line = rest.get(space + 1..len)?;
        let equals = memchr::memchr(b'=', line)?;
        if &line[..equals] == wanted {
            found = Some(line[equals + 1..].strip_suffix(b"\n").unwrap_or(&line[equals + 1..]));
        }
        rest = &rest[len..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let (mut tar, mut files) = (TarReader::new(bytes), Vec::new());
        while let Some(entry) = tar.next()? {
            let mut content = Vec::new();
            tar.content(&entry, |piece| content.extend_from_slice(piece))?;
            files.push((String::from_utf8_lossy(&entry.name).into_owned(), content));
        }
        Ok(files)
    }

    fn tar_file(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = TarWriter::new(Vec::new());
        for (name, bytes) in files {
            tar.begin(name, bytes.len() as u64).unwrap();
            tar.write_all(bytes).unwrap();
        }
        tar.finish().unwrap()
    }

    #[test]
    fn tar_file_round_trips_with_long_names() {
        let names: Vec<String> = [1, 99, 100, 101, 200, 990, 1000]
            .iter()
            .map(|len| "é".repeat(len / 2) + &"x".repeat(len % 2))
            .collect();
        let contents: Vec<Vec<u8>> = (0..names.len()).map(|at| vec![b'a'; at * 200]).collect();
        let files: Vec<_> =
            names.iter().zip(&contents).map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
        let bytes = tar_file(&files);
        assert_eq!(bytes.len() % BLOCK_BYTES, 0);
        let want: Vec<_> = names.iter().cloned().zip(contents.iter().cloned()).collect();
        assert_eq!(read(&bytes).unwrap(), want);
    }

    #[test]
    fn cut_or_changed_tar_file_is_an_error() {
        let bytes = tar_file(&[("a", b"text")]);
        for cut in 0..bytes.len() - BLOCK_BYTES {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
        for at in 0..BLOCK_BYTES {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "{at}");
        }
        let mut more = bytes;
        more.push(1);
        assert!(read(&more).is_err());
    }

    #[test]
    fn number_reads_octal_and_binary_within_64_bits() {
        assert_eq!(number(b"00000000017\0"), Some(15));
        assert_eq!(number(b"      17 \0"), Some(15));
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]), Some(256));
        assert_eq!(number(&[0xff; 12]), None);
        assert_eq!(number(b"00000000019\0"), None);
        assert_eq!(number(b"-0000000001\0"), None);
    }

    #[test]
    fn file_must_have_its_announced_length() {
        let mut tar = TarWriter::new(Vec::new());
        tar.begin("a", 3).unwrap();
        assert!(tar.begin("b", 1).is_err());
        tar.write_all(b"abc").unwrap();
        assert!(tar.write_all(b"d").is_err());
        assert!(tar.begin("c", u64::MAX).is_err());
    }
}
