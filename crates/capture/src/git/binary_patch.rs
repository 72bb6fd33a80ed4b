//! The content of a new binary file in a patch, in the format of `git diff --binary`.
//!
//! Git would write it too, but needs a process for each file, and runs the filters that the settings of a repository name.

use std::io::{self, Write as _};

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1_smol::Sha1;
use sha2::{Digest as _, Sha256};

/// Git's digits to the base 85.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// How many bytes a line has.
const LINE_BYTES: usize = 52;
/// An empty file: what a reverted patch leaves.
const EMPTY: &str = "literal 0\nHcmV?d00001\n\n";

/// The kind of names that the objects of a repository have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Tells it by the name of a commit.
    pub(super) fn of(commit: &str) -> Self {
        if commit.len() == 2 * 32 { Self::Sha256 } else { Self::Sha1 }
    }

    /// Returns the name of a file's content.
    fn name(self, content: &[u8]) -> String {
        let head = format!("blob {}\0", content.len());
        match self {
            Self::Sha1 => {
                let mut hash = Sha1::new();
                hash.update(head.as_bytes());
                hash.update(content);
                HEXLOWER.encode(&hash.digest().bytes())
            }
            Self::Sha256 => {
                let hash = Sha256::new().chain_update(head).chain_update(content);
                HEXLOWER.encode(&hash.finalize())
            }
        }
    }
}

/// Writes what follows the lines with the names and the mode.
pub(super) fn binary_patch(content: &[u8], format: ObjectFormat) -> io::Result<Vec<u8>> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(content)?;
    let packed = packed.finish()?;
    let name = format.name(content);
    let nothing = "0".repeat(name.len());
    let mut patch =
        format!("index {nothing}..{name}\nGIT binary patch\nliteral {}\n", content.len()).into_bytes();
    for line in packed.chunks(LINE_BYTES) {
        put_line(&mut patch, line);
    }
    patch.push(b'\n');
    patch.extend(EMPTY.as_bytes());
    Ok(patch)
}

/// Writes up to [`LINE_BYTES`]: their number as a letter, and five digits for each four.
fn put_line(patch: &mut Vec<u8>, bytes: &[u8]) {
    let letters = (b'A'..=b'Z').chain(b'a'..=b'z');
    patch.extend(letters.take(bytes.len()).last());
    for group in bytes.chunks(4) {
        let mut four = [0; 4];
        four[..group.len()].copy_from_slice(group);
        let mut number = u32::from_be_bytes(four) as usize;
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[number % DIGITS.len()];
            number /= DIGITS.len();
        }
        patch.extend(digits);
    }
    patch.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What git 2.47 writes for these bytes, up to their compression.
    #[test]
    fn patch_is_that_of_git() {
        let patch = binary_patch(&[0, 1, 2, 255], ObjectFormat::Sha1).unwrap();
        let text = String::from_utf8(patch).unwrap();
        let name = "f971a5e28b6c4cb237ca3c7349e33bb600dbc907";
        let want = format!("index {}..{name}\nGIT binary patch\nliteral 4\nL", "0".repeat(40));
        assert!(text.starts_with(&want), "{text}");
        assert!(text.ends_with(&format!("\n\n{EMPTY}")), "{text}");
    }

    #[test]
    fn line_has_its_length_and_digits() {
        for (bytes, want) in [
            (&[0][..], "A00000\n".to_owned()),
            (&[255; 4], "D|NsC0\n".to_owned()),
            (&[1, 0, 0, 0, 9], "E0RR912><{9\n".to_owned()),
            (&[0; 26], format!("Z{}\n", "0".repeat(35))),
            (&[0; 27], format!("a{}\n", "0".repeat(35))),
            (&[0; LINE_BYTES], format!("z{}\n", "0".repeat(65))),
            // What git wrote of the file above.
            (b"\x78\x01\x63\x60\x64\xfa\x0f\x00\x01\x0a\x01\x03", "LcmZQzWcm*P0SW;F\n".to_owned()),
        ] {
            let mut line = Vec::new();
            put_line(&mut line, bytes);
            assert_eq!(String::from_utf8(line).unwrap(), want);
        }
    }
}
