//! Finds where JSON values end, and checks them on the way.
//!
//! Everything that passes is JSON. Not all JSON passes: deep values are left to `serde_json`, which needs no stack.

/// How deep a value may nest here.
const DEPTH_MAX: usize = 64;

/// How many bytes of a string are checked in one step.
const BLOCK_BYTES: usize = 16;

/// Returns where the white space at an offset ends.
#[inline]
pub(super) fn space_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns where the value at an offset ends; `None` if it is not JSON, or nests too deep.
pub(super) fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    end_of(bytes, at, DEPTH_MAX)
}

fn end_of(bytes: &[u8], at: usize, depth_left: usize) -> Option<usize> {
    match *bytes.get(at)? {
        b'"' => string_end(bytes, at + 1),
        b'{' => object_end(bytes, at + 1, depth_left.checked_sub(1)?),
        b'[' => array_end(bytes, at + 1, depth_left.checked_sub(1)?),
        b't' => word_end(bytes, at, b"true"),
        b'f' => word_end(bytes, at, b"false"),
        b'n' => word_end(bytes, at, b"null"),
        b'-' => number_end(bytes, at + 1),
        b'0'..=b'9' => number_end(bytes, at),
        _ => None,
    }
}

fn object_end(bytes: &[u8], at: usize, depth_left: usize) -> Option<usize> {
    let mut at = space_end(bytes, at);
    if bytes.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        at = space_end(bytes, string_end(bytes, after(bytes, at, b'"')?)?);
        at = space_end(bytes, after(bytes, at, b':')?);
        at = space_end(bytes, end_of(bytes, at, depth_left)?);
        match *bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn array_end(bytes: &[u8], at: usize, depth_left: usize) -> Option<usize> {
    let mut at = space_end(bytes, at);
    if bytes.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    loop {
        at = space_end(bytes, end_of(bytes, at, depth_left)?);
        match *bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Returns the offset after this byte, if it is there.
#[inline]
pub(super) fn after(bytes: &[u8], at: usize, byte: u8) -> Option<usize> {
    (*bytes.get(at)? == byte).then_some(at + 1)
}

pub(super) fn word_end(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then_some(at + word.len())
}

/// Returns where a number ends whose sign, if it has one, is before the offset.
fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = digits_end(bytes, at)?;
    // A zero stands alone before the point.
    if bytes[at] == b'0' && end > at + 1 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        end = digits_end(bytes, end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        end = digits_end(bytes, end + 1 + usize::from(sign))?;
    }
    Some(end)
}

/// Returns where the digits at an offset end; `None` if there is none.
fn digits_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    while bytes.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    (end > at).then_some(end)
}

/// Returns where a string ends whose first quotation mark is before the offset.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    // Most names and words end within eight bytes.
    if let Some(word) = word_at(bytes, at) {
        let end = at + first_special(word);
        if end < at + 8 && bytes[end] == b'"' {
            return Some(end + 1);
        }
    }
    long_string_end(bytes, at)
}

fn long_string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = plain_end(bytes, at)?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\\' => at = escape_end(bytes, at + 1)?,
            _ => return None,
        }
    }
}

/// Returns the offset of the next byte of a string that does not stand for itself.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(block) = bytes.get(at..)?.first_chunk::<BLOCK_BYTES>() {
        // Without an early end the compiler checks all bytes at once.
        if block.iter().fold(false, |found, byte| found | is_special(*byte)) {
            break;
        }
        at += BLOCK_BYTES;
    }
    while let Some(word) = word_at(bytes, at) {
        let len = first_special(word);
        if len < 8 {
            return Some(at + len);
        }
        at += 8;
    }
    plain_end_slow(bytes, at)
}

fn plain_end_slow(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..)?.iter().position(|byte| is_special(*byte)).map(|plain| at + plain)
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Returns the place of the first special byte of eight, or 8.
#[inline]
fn first_special(word: u64) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    // Marks a byte with its highest bit. Marks above the lowest one may be wrong, because of the carry.
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |wanted: u8| below(word ^ (ONES * u64::from(wanted)), 1);
    let marks = (below(word, b' ') | equal(b'"') | equal(b'\\')) & HIGH_BITS;
    (marks.trailing_zeros() / 8) as usize
}

/// Returns where an escape ends whose backslash is before the offset.
fn escape_end(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => bytes.get(at + 1..at + 5)?.iter().all(u8::is_ascii_hexdigit).then_some(at + 5),
        _ => None,
    }
}
