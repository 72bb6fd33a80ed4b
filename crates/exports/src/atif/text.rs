//! JSON text for a trajectory: joins tokens without decoding them, and replaces lone surrogates.

use std::borrow::Cow;

use steno_model::json::JsonString;

/// The length of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;
/// The replacement of a lone surrogate: Python reads it, but fails when it writes it.
const REPLACEMENT: &str = "\\ufffd";

/// Appends JSON text, with U+FFFD in place of each lone surrogate.
pub(super) fn push_clean(out: &mut String, json: &str) {
    out.push_str(&clean(json));
}

/// Returns JSON text without lone surrogates.
fn clean(json: &str) -> Cow<'_, str> {
    // Escapes of surrogates are rare, and the search is fast.
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    // Backslashes occur only in strings, so no other JSON syntax matters.
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = match unit(rest) {
            Some(0xd800..0xdc00) if matches!(unit_after(rest), Some(0xdc00..0xe000)) => 2 * ESCAPE_BYTES,
            Some(0xd800..0xe000) => {
                out.push_str(REPLACEMENT);
                rest = &rest[ESCAPE_BYTES..];
                continue;
            }
            Some(_) => ESCAPE_BYTES,
            None => rest.len().min(2),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Reads the `\uXXXX` at the beginning of a text.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.get(..ESCAPE_BYTES)?.strip_prefix("\\u")?, 16).ok()
}

fn unit_after(text: &str) -> Option<u16> {
    text.get(ESCAPE_BYTES..).and_then(unit)
}

/// Returns the offset of the first lone surrogate in JSON text.
pub(super) fn lone_surrogate(json: &str) -> Option<usize> {
    let clean = clean(json);
    let same = json.bytes().zip(clean.bytes()).take_while(|(one, other)| one == other).count();
    // The two differ after the `\u` of the escape.
    (same < json.len()).then(|| same.saturating_sub("\\u".len()))
}

/// Appends strings as one string, separated by `between`, which must be escaped as in a JSON string.
pub(super) fn push_joined<'a>(out: &mut String, tokens: impl Iterator<Item = &'a JsonString>, between: &str) {
    out.push('"');
    for (place, token) in tokens.enumerate() {
        if place > 0 {
            out.push_str(between);
        }
        let token = token.as_raw();
        push_clean(out, token.get(1..token.len().saturating_sub(1)).unwrap_or_default());
    }
    out.push('"');
}

/// Appends our own text, or a decoded value, as a string.
pub(super) fn push_text(out: &mut String, text: &str) {
    out.push_str(JsonString::from_text(text).as_raw());
}

/// Writes the items of an array, with commas between those for which `write` has written something.
pub(super) fn push_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    let start = out.len();
    for item in items {
        if out.len() > start {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        assert_eq!(clean(json), want, "{json}");
        assert_eq!(lone_surrogate(json).is_some(), json != want, "{json}");
    }

    #[test]
    fn only_lone_surrogates_are_replaced() {
        check(r#""a\n\u00e9""#, r#""a\n\u00e9""#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud800""#, r#""\ufffd""#);
        check(r#""\udc00\ud83d\ude00\ud83d""#, r#""\ufffd\ud83d\ude00\ufffd""#);
        check(r#"{"\uD800x":"\\ud800"}"#, r#"{"\ufffdx":"\\ud800"}"#);
        check(r#""\ud800\u0041""#, r#""\ufffd\u0041""#);
    }

    #[test]
    fn lone_surrogate_returns_its_offset() {
        assert_eq!(lone_surrogate(r#""ab\ud800""#), Some(3));
    }

    #[test]
    fn joined_strings_are_escaped() {
        let mut out = String::new();
        push_joined(&mut out, ["a\"".into(), "é".into()].iter(), "\\n");
        assert_eq!(out, r#""a\"\né""#);
    }
}
