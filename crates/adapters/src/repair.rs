//! Lines that are not one JSON object: found out what is in them, without losing what can be read.
//!
//! The usual line never gets here. Nothing is guessed: each repair is one that keeps every readable record whole, and
//! the bytes as they were stay in the evidence.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::Fields;

/// A piece of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// Where it begins in the line.
    pub(crate) at: usize,
    /// How many bytes of the line it takes.
    pub(crate) len: usize,
    /// What it is.
    pub(crate) content: Content<'a>,
}

/// What a piece of a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// A JSON object; `repaired` when its bytes had to be changed to read it.
    Object { text: Cow<'a, str>, repaired: bool },
    /// Anything else, and why it cannot be read.
    Unreadable(&'static str),
}

/// Takes a line apart. White space and a run of NULs, which a crash leaves at the end of a file, are no pieces.
pub(crate) fn pieces(line: &[u8]) -> Vec<Piece<'_>> {
    let skipped = line.iter().take_while(|&&byte| is_filling(byte)).count();
    let kept = line[skipped..].iter().rposition(|&byte| !is_filling(byte)).map_or(0, |last| last + 1);
    let body = &line[skipped..skipped + kept];
    if body.is_empty() {
        return Vec::new();
    }
    let unreadable = |at, len| Piece { at: skipped + at, len, content: Content::Unreadable("no JSON") };
    let Ok(text) = str::from_utf8(body) else {
        // Positions in a text with other characters are not those of the bytes: such a line is one piece.
        let content = only_object(String::from_utf8_lossy(body).into_owned());
        return vec![Piece { content, ..unreadable(0, body.len()) }];
    };
    let (values, read) = values(text);
    let mut found: Vec<Piece<'_>> = values.into_iter().map(|value| value.into_piece(skipped, text)).collect();
    let rest = &text[read..];
    if rest.is_empty() {
        return found;
    }
    if found.is_empty() {
        // A raw control character inside a string is no JSON; escaped it is the same character.
        let content = only_object(escape_controls(rest));
        if matches!(content, Content::Object { .. }) {
            return vec![Piece { content, ..unreadable(0, body.len()) }];
        }
    }
    // A writer that died in the middle of a record, and its successor that went on without a newline.
    let torn = rest.len() - last_record(rest).map_or(0, str::len);
    found.push(unreadable(read, torn));
    let after = values_of_record(rest, torn);
    found.extend(after.map(|value| value.into_piece(skipped + read, rest)));
    found
}

fn values_of_record(rest: &str, torn: usize) -> Option<Value> {
    (torn < rest.len()).then_some(Value { start: torn, end: rest.len(), is_object: true })
}

/// Returns a text that is one object, or says that it is none.
fn only_object(text: String) -> Content<'static> {
    let is_one = matches!(values(&text), (found, read)
        if read == text.len() && matches!(found[..], [Value { is_object: true, .. }]));
    if is_one {
        Content::Object { text: Cow::Owned(text), repaired: true }
    } else {
        Content::Unreadable("no JSON")
    }
}

/// Finds a whole record at the end of a text that begins with a torn one.
///
/// An object inside the torn record can look whole too; a record is told from it by what all providers give their
/// records and nothing below: a type together with a time or an id.
fn last_record(text: &str) -> Option<&str> {
    // Each attempt ends where its object does; a hostile line must not make that quadratic.
    let mut budget = text.len().saturating_mul(4);
    for (at, _) in text.match_indices("{\"").skip(1) {
        let candidate = &text[at..];
        let scanned = match serde_json::from_str::<&RawValue>(candidate) {
            Ok(_) if is_record(candidate) => return Some(candidate),
            Ok(_) => candidate.len(),
            Err(error) => error.column(),
        };
        budget = budget.checked_sub(scanned.max(64))?;
    }
    None
}

fn is_record(text: &str) -> bool {
    let Ok(fields) = Fields::parse(text) else { return false };
    fields.has("type") && ["timestamp", "uuid", "sessionId", "payload"].iter().any(|name| fields.has(name))
}

fn is_filling(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0)
}

struct Value {
    start: usize,
    end: usize,
    is_object: bool,
}

impl Value {
    fn into_piece(self, skipped: usize, text: &str) -> Piece<'_> {
        let whole = &text[self.start..self.end];
        let content = if self.is_object {
            Content::Object { text: Cow::Borrowed(whole), repaired: false }
        } else {
            Content::Unreadable("no JSON object")
        };
        Piece { at: skipped + self.start, len: whole.len(), content }
    }
}

/// Splits off the JSON values that a text begins with, with nothing but white space between them; says how far they
/// reach.
fn values(text: &str) -> (Vec<Value>, usize) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let (mut found, mut read) = (Vec::new(), 0);
    while let Some(Ok(value)) = stream.next() {
        read = stream.byte_offset();
        found.push(Value {
            start: read - value.get().len(),
            end: read,
            is_object: value.get().starts_with('{'),
        });
    }
    (found, read)
}

/// Writes raw control characters inside strings as escapes.
fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut inside, mut escaped) = (false, false);
    for one in text.chars() {
        if inside && one < ' ' {
            out.push_str(&format!("\\u{:04x}", u32::from(one)));
            escaped = false;
            continue;
        }
        if one == '"' && !escaped {
            inside = !inside;
        }
        escaped = inside && one == '\\' && !escaped;
        out.push(one);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows pieces as `at+len text`, with `~` before repaired text and `!` before a reason.
    #[track_caller]
    fn check(line: &[u8], want: &[&str]) {
        let shown: Vec<String> = pieces(line)
            .into_iter()
            .map(|piece| {
                let content = match piece.content {
                    Content::Object { text, repaired } => {
                        format!("{}{text}", if repaired { "~" } else { "" })
                    }
                    Content::Unreadable(why) => format!("!{why}"),
                };
                format!("{}+{} {content}", piece.at, piece.len)
            })
            .collect();
        assert_eq!(shown, want, "{}", String::from_utf8_lossy(line));
    }

    #[test]
    fn glued_records_are_told_apart() {
        check(br#"{"a":1}{"b":2}"#, &[r#"0+7 {"a":1}"#, r#"7+7 {"b":2}"#]);
        check(br#" {"a":1}  {"b":2} "#, &[r#"1+7 {"a":1}"#, r#"10+7 {"b":2}"#]);
    }

    #[test]
    fn padding_is_nothing() {
        check(b"", &[]);
        check(b"\0\0\0\0", &[]);
        check(b" \r", &[]);
        check(b"\0\0{}\0\0\r", &["2+2 {}"]);
    }

    #[test]
    fn a_raw_control_character_becomes_its_escape() {
        check(b"{\"a\":\"x\0y\"}", &["0+11 ~{\"a\":\"x\\u0000y\"}"]);
        check(b"{\"a\\\"\":\"\x1b\"}", &["0+11 ~{\"a\\\"\":\"\\u001b\"}"]);
    }

    #[test]
    fn bad_utf8_is_replaced_in_what_is_read() {
        check(b"{\"a\":\"\xff\"}", &["0+9 ~{\"a\":\"\u{fffd}\"}"]);
    }

    #[test]
    fn what_is_no_object_is_unreadable_and_keeps_its_neighbours() {
        check(b"[1]", &["0+3 !no JSON object"]);
        check(br#"{"a":1}7"#, &[r#"0+7 {"a":1}"#, "7+1 !no JSON object"]);
        check(br#"{"a":1} then"#, &[r#"0+7 {"a":1}"#, "7+5 !no JSON"]);
        check(b"{\"a\":", &["0+5 !no JSON"]);
        check(b"hello", &["0+5 !no JSON"]);
    }

    #[test]
    fn a_record_after_a_torn_one_is_found_and_nothing_inside_the_torn_one_is() {
        let whole = r#"{"type":"user","uuid":"u","message":{"type":"message"}}"#;
        check(format!(r#"{{"type":"assi{whole}"#).as_bytes(), &["0+13 !no JSON", &format!("13+55 {whole}")]);
        check(br#"{"type":"user","message":{"type":"message"}"#, &["0+43 !no JSON"]);
    }

    #[test]
    fn many_beginnings_cost_no_more_than_a_few_passes() {
        let line = "{\"a\":[".repeat(200_000);
        check(line.as_bytes(), &[&format!("0+{} !no JSON", line.len())]);
    }

    #[test]
    fn lone_surrogates_and_deep_values_are_json() {
        check(br#"{"a":"\ud800"}"#, &[r#"0+14 {"a":"\ud800"}"#]);
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(&pieces(deep.as_bytes())[..], [Piece { content: Content::Object { .. }, .. }]));
    }
}
