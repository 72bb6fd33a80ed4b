//! JSON lines with checksums. An incomplete last line, left by a crash, is distinguished from damage.

/// The length of the checksum at the end of a line: `,"crc":"`, eight digits and `"}`.
const SUM_LEN: usize = 18;

/// Writes an object as a line with its checksum.
pub fn write_line(object: &str, out: &mut String) {
    let text = object.strip_suffix('}').unwrap_or(object);
    let sum = crc32fast::hash(text.as_bytes());
    out.push_str(&format!("{text},\"crc\":\"{sum:08x}\"}}\n"));
}

/// Passes the offset and the object of each line to `each`; returns the total length of the valid lines.
///
/// An incomplete last line is ignored: it has no newline, or zeros where a power cut took bytes.
///
/// # Errors
/// The error of `each`, or `bad` for the first damaged line.
pub(crate) fn read_lines<E>(
    bytes: &[u8],
    bad: impl Fn(u64, &'static str) -> E,
    mut each: impl FnMut(u64, String) -> Result<(), E>,
) -> Result<u64, E> {
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let object = line.strip_suffix(b"\n").and_then(checked_line);
        let Some(object) = object else {
            if is_unfinished(&bytes[offset..]) {
                break;
            }
            return Err(bad(offset as u64, "a line does not match its checksum"));
        };
        each(offset as u64, object)?;
        offset += line.len();
    }
    Ok(offset as u64)
}

/// Removes the checksum from a line without its newline; `None` when it does not match.
#[must_use]
pub fn checked_line(line: &[u8]) -> Option<String> {
    let line = str::from_utf8(line).ok()?;
    let (text, end) = line.split_at_checked(line.len().checked_sub(SUM_LEN)?)?;
    let sum = end.strip_prefix(",\"crc\":\"")?.strip_suffix("\"}")?;
    // Compared as text: the digits are always written in lower case.
    let matches = format!("{:08x}", crc32fast::hash(text.as_bytes())) == sum;
    matches.then(|| format!("{text}}}"))
}

/// Tells whether these bytes can be the rest of a line that was being written.
fn is_unfinished(rest: &[u8]) -> bool {
    let has_whole_line = || {
        let lines = rest.split_inclusive(|byte| *byte == b'\n');
        lines.filter_map(|line| line.strip_suffix(b"\n")).any(|line| checked_line(line).is_some())
    };
    match rest.split_last() {
        None => true,
        Some(_) if rest.contains(&0) => !has_whole_line(),
        Some((b'\n', _)) => false,
        // A whole line followed by something other than a newline: its end was changed.
        Some((_, before)) => !rest.contains(&b'\n') && checked_line(before).is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(objects: &[&str]) -> String {
        let mut text = String::new();
        for object in objects {
            write_line(object, &mut text);
        }
        text
    }

    /// Returns the objects and the length of their lines, or the offset of a damaged line.
    fn read(bytes: &[u8]) -> Result<(Vec<String>, u64), u64> {
        let mut objects = Vec::new();
        let each = |_, object| {
            objects.push(object);
            Ok(())
        };
        let len = read_lines(bytes, |offset, _| offset, each)?;
        Ok((objects, len))
    }

    #[test]
    fn cut_lines_are_ignored_and_flipped_lines_are_damage() {
        let whole = text(&[r#"{"a":1}"#, r#"{"b":"two"}"#]);
        let first = text(&[r#"{"a":1}"#]).len();
        assert_eq!(read(whole.as_bytes()).unwrap().0, [r#"{"a":1}"#, r#"{"b":"two"}"#]);
        for cut in first..whole.len() {
            let want = Ok((vec![r#"{"a":1}"#.to_owned()], first as u64));
            assert_eq!(read(&whole.as_bytes()[..cut]), want, "cut at {cut}");
            let zeros = [&whole.as_bytes()[..cut], &vec![0; whole.len() - cut]].concat();
            assert_eq!(read(&zeros), want, "zeros from {cut} on");
            let hole = [&whole.as_bytes()[..first], &vec![0; cut - first], &whole.as_bytes()[cut..]].concat();
            assert!(cut == first || read(&hole) == want, "zeros up to {cut}");
        }
        for at in 0..whole.len() {
            for mask in [0x01, 0x10, 0x20, 0x80] {
                let mut flipped = whole.clone().into_bytes();
                flipped[at] ^= mask;
                let want = if at < first { 0 } else { first as u64 };
                assert_eq!(read(&flipped), Err(want), "byte {at} flipped by {mask}");
            }
        }
    }

    #[test]
    fn zeros_before_a_good_line_are_damage() {
        let line = text(&[r#"{"a":1}"#]);
        assert_eq!(read(format!("\0\0\n{line}").as_bytes()), Err(0));
        assert_eq!(read(format!("{line}\0\0\n").as_bytes()).map(|(objects, _)| objects.len()), Ok(1));
        assert_eq!(read(b""), Ok((Vec::new(), 0)));
    }
}
