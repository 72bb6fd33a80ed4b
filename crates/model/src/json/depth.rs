//! How deep a JSON text nests, counted without recursion and without trusting the text to be valid.

use crate::Error;
use crate::limits::DEPTH_MAX;

/// Returns how many arrays and objects enclose the innermost one of `text`: 0 for a scalar, 1 for `[]`.
///
/// `RawValue` accepts a depth of 100,000, but many readers of our files do not, so it is checked first.
///
/// ```
/// assert_eq!(steno_model::json::depth(r#"{"a":["[[["]}"#), 2);
/// ```
#[must_use]
pub fn depth(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut now, mut deepest, mut at) = (0_usize, 0_usize, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'[' | b'{' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// Checks that a text does not nest deeper than the limit, without counting `above` levels of it.
///
/// # Errors
/// [`Error::TooDeep`].
pub(crate) fn check_depth(text: &str, above: usize) -> Result<(), Error> {
    // A text cannot nest deeper than it has brackets, and counting a few brackets is fast.
    let brackets = memchr::memchr2_iter(b'[', b'{', text.as_bytes()).take(DEPTH_MAX + above + 1).count();
    if brackets <= DEPTH_MAX + above {
        return Ok(());
    }
    let depth = depth(text).saturating_sub(above);
    if depth > DEPTH_MAX { Err(Error::TooDeep { depth }) } else { Ok(()) }
}

/// Returns the position of the quote that ends the string opened at `start`, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if bytes[at + found] == b'"' {
            return at + found;
        }
        at += found + 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: usize) {
        assert_eq!(depth(text), want, "{text}");
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        check("1", 0);
        check("[]", 1);
        check(r#"{"a\"[":[{"b":"]]"}]}"#, 3);
        check(r#""\\""#, 0);
        check(r#"["\\",[]]"#, 2);
    }

    #[test]
    fn deep_nesting_is_counted_without_recursion() {
        check(&"[".repeat(100_000), 100_000);
    }

    #[test]
    fn unterminated_string_ends_the_count() {
        check(r#"["abc[["#, 1);
        check(r#"["abc\"#, 1);
    }
}
