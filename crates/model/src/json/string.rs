//! A JSON string as its original token, with its escapes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::RawJson;

/// The length of `\uXXXX`.
const UNIT_ESCAPE_BYTES: usize = 6;

/// A JSON string as its original token, with quotes.
///
/// Rust's `String` cannot contain a lone surrogate, and decoding followed by encoding would change escapes; the token
/// stays the same. [`JsonString::to_text`] decodes it for display. A clone shares the token, because times and paths
/// are passed from event to fact to view.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonString(Arc<str>);

impl JsonString {
    /// Encodes `text` as a JSON string.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        const SHORT_BYTES_MAX: usize = 64;
        let mut short = [b'"'; SHORT_BYTES_MAX];
        // Most are short names, which are put together without another allocation.
        if let Some(inner) = short.get_mut(1..=text.len())
            && text.len() + 2 <= SHORT_BYTES_MAX
            && is_plain(text)
        {
            inner.copy_from_slice(text.as_bytes());
            if let Ok(token) = str::from_utf8(&short[..text.len() + 2]) {
                return Self(token.into());
            }
        }
        Self(token_of(text).into())
    }

    /// Keeps `raw` when it is a string token.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        raw.get().starts_with('"').then(|| Self(raw.get().into()))
    }

    /// Wraps a string token that serde has already checked.
    pub(super) fn from_token(token: &str) -> Self {
        Self(token.into())
    }

    /// Returns the token with its quotes.
    #[must_use]
    pub fn as_raw(&self) -> &str {
        &self.0
    }

    /// Returns the token as a value.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        RawJson::trusted(self.0.to_string())
    }

    /// Decodes the string; a lone surrogate becomes U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        decode(&self.0)
    }

    /// Tells whether the decoded string is `text`, without allocating when there is no escape.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        token_is(&self.0, text)
    }

    /// Tells whether the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        &*self.0 == "\"\""
    }
}

/// Tells whether a text needs no escape in JSON.
pub(super) fn is_plain(text: &str) -> bool {
    let needs_escape = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Without an early end the compiler checks many bytes at once.
    !text.bytes().fold(false, |found, byte| found | needs_escape(byte))
}

/// Returns a text as a string token.
pub(super) fn token_of(text: &str) -> String {
    if !is_plain(text) {
        return serde_json::to_string(text).expect("every text is a JSON string");
    }
    let mut token = String::with_capacity(text.len() + 2);
    token.push('"');
    token.push_str(text);
    token.push('"');
    token
}

/// Decodes a raw value that is a string; borrowed when it has no escape, `None` when it is not a string.
#[must_use]
pub fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    raw.get().starts_with('"').then(|| decode(raw.get()))
}

/// Tells whether a raw value is a string that decodes to `text`.
#[must_use]
pub fn text_is(raw: &RawValue, text: &str) -> bool {
    raw.get().starts_with('"') && token_is(raw.get(), text)
}

/// Tells whether a string token decodes to `text`. Names are compared millions of times, so most are rejected by their
/// length.
#[inline]
pub(super) fn token_is(token: &str, text: &str) -> bool {
    // An escape is always longer than its character.
    match token.len().cmp(&(text.len() + 2)) {
        Ordering::Less => false,
        Ordering::Equal => {
            // The first letter distinguishes most names of the same length without a call.
            token.as_bytes().get(1) == text.as_bytes().first().or(Some(&b'"'))
                && token.as_bytes()[1..].starts_with(text.as_bytes())
                && !text.contains('\\')
        }
        Ordering::Greater => {
            let first = token.as_bytes()[1];
            (first == b'\\' || text.as_bytes().first() == Some(&first)) && decode(token) == text
        }
    }
}

/// Decodes a string token; borrowed when it has no escape.
pub(super) fn decode(token: &str) -> Cow<'_, str> {
    let inner = token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(token);
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (decoded, used) = escape(&rest[at..]);
        out.push(decoded);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes a string token to UTF-16, which can hold a lone surrogate.
pub(super) fn utf16_units(token: &str) -> Vec<u16> {
    let inner = token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(token);
    let mut units = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        units.extend(rest[..at].encode_utf16());
        // Also half of a surrogate pair: the other half is the next escape.
        if let Some(unit) = unit_at(rest, at) {
            units.push(unit);
            rest = &rest[at + UNIT_ESCAPE_BYTES..];
        } else {
            let (decoded, used) = escape(&rest[at..]);
            units.extend(decoded.encode_utf16(&mut [0; 2]).iter());
            rest = &rest[at + used..];
        }
    }
    units.extend(rest.encode_utf16());
    units
}

/// Decodes the escape that `text` begins with; returns the character and how many bytes it took.
fn escape(text: &str) -> (char, usize) {
    let plain = |decoded| (decoded, 2);
    match text.as_bytes().get(1) {
        Some(b'n') => plain('\n'),
        Some(b't') => plain('\t'),
        Some(b'r') => plain('\r'),
        Some(b'b') => plain('\u{8}'),
        Some(b'f') => plain('\u{c}'),
        Some(b'u') => unicode_escape(text),
        Some(&other) if other.is_ascii() => plain(char::from(other)),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// Reads `\uXXXX` at an offset.
fn unit_at(text: &str, at: usize) -> Option<u16> {
    let escape = text.get(at..at + UNIT_ESCAPE_BYTES)?;
    u16::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
}

/// Decodes `\uXXXX`, or two of them that form a surrogate pair.
fn unicode_escape(text: &str) -> (char, usize) {
    let Some(first) = unit_at(text, 0) else { return (char::REPLACEMENT_CHARACTER, text.len().min(2)) };
    let pair = [first, unit_at(text, UNIT_ESCAPE_BYTES).unwrap_or(0)];
    let mut decoded = char::decode_utf16(pair);
    match decoded.next() {
        Some(Ok(one)) => (one, if one.len_utf16() == 2 { 12 } else { 6 }),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

impl From<&str> for JsonString {
    fn from(text: &str) -> Self {
        Self::from_text(text)
    }
}

impl From<String> for JsonString {
    fn from(text: String) -> Self {
        Self::from_text(&text)
    }
}

impl serde::Serialize for JsonString {
    /// Writes the token as it was read, lone surrogates included.
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(out)
    }
}

impl fmt::Debug for JsonString {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for JsonString {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_text())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(token: &str, want: &str) {
        let raw: &RawValue = serde_json::from_str(token).unwrap();
        let string = JsonString::from_raw(raw).unwrap();
        assert_eq!(string.to_text(), want, "{token}");
        assert_eq!(string.as_raw(), token);
    }

    #[test]
    fn escapes_are_decoded_and_the_token_is_kept() {
        check(r#""plain é""#, "plain é");
        check(r#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\u{8}\u{c}\n\r\t");
        check(r#""\u0000\u00e9\u20AC""#, "\0é€");
        check(r#""\ud83d\ude00!""#, "😀!");
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        check(r#""\ud800""#, "\u{fffd}");
        check(r#""\ud800x""#, "\u{fffd}x");
        check(r#""\ud800\ud83d\ude00""#, "\u{fffd}😀");
        check(r#""\udc00\u0041""#, "\u{fffd}A");
    }

    #[test]
    fn only_string_tokens_are_strings() {
        let raw: &RawValue = serde_json::from_str("12").unwrap();
        assert_eq!(JsonString::from_raw(raw), None);
    }

    proptest! {
        #[test]
        fn text_round_trips(text in any::<String>()) {
            let string = JsonString::from_text(&text);
            prop_assert_eq!(string.to_text(), text.as_str());
            prop_assert!(string.is(&text));
            prop_assert_eq!(string.is_empty(), text.is_empty());
            prop_assert_eq!(string.as_raw(), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn token_is_compared_decoded(
            token in r"(a|\\\\|\\n|\\u0061|\\ud800|é|/|\\/){0,4}",
            text in r"(a|\\|\n|n|é|/|u0061){0,6}",
        ) {
            let token = format!("\"{token}\"");
            prop_assert_eq!(token_is(&token, &text), decode(&token) == text);
        }
    }
}
