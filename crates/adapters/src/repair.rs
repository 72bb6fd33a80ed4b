//! Splits lines that are not one JSON object, without losing readable records.
//!
//! Usual lines do not come here. Nothing is guessed: each repair keeps every readable record whole, and the evidence
//! has the original bytes.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Fields, text_of};

use crate::documents::Nesting;

/// The byte order mark that some programs write at the start of a file.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How often a line is searched for records after a torn one: once per object that the torn one left open. Without a
/// limit a hostile line would take quadratic time.
const ATTEMPTS_MAX: usize = 64;

/// A piece of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LinePiece<'a> {
    /// Where it begins in the line.
    pub(crate) at: usize,
    /// How many bytes of the line it takes.
    pub(crate) len: usize,
    /// What it is.
    pub(crate) content: PieceContent<'a>,
}

/// What a piece of a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PieceContent<'a> {
    /// A JSON object; `repaired` when its bytes had to be changed to read it.
    Object { text: Cow<'a, str>, repaired: bool },
    /// Anything else, and why it cannot be read.
    Unreadable(&'static str),
}

/// Tells by an object's fields whether it is a record, and not an object inside a torn record.
pub(crate) type IsRecord = fn(&Fields<'_>) -> bool;

/// Splits a line into pieces. White space, byte order marks and NULs, which a crash can leave, are not pieces.
///
/// After unreadable text, reading continues at the next object that is a whole record: a writer may have died inside a
/// record, and the next one continued without a newline.
pub(crate) fn pieces(line: &[u8], is_record: IsRecord) -> Vec<LinePiece<'_>> {
    let mut budget = line.len().saturating_mul(ATTEMPTS_MAX);
    let mut found = Vec::new();
    let mut at = skip_filling(line, 0);
    while at < line.len() {
        // The cost counts per found object, so earlier attempts do not prevent finding it.
        let mut attempt = line.len();
        if let Some((piece, end)) = object_at(line, at, &mut attempt) {
            found.push(piece);
            at = skip_filling(line, end);
            continue;
        }
        budget = budget.saturating_sub(line.len() - attempt);
        let next = next_record(line, at + 1, is_record, &mut budget).unwrap_or(line.len());
        let len = line[at..next].iter().rposition(|&byte| !is_filling(byte)).map_or(0, |last| last + 1);
        found.push(LinePiece { at, len, content: PieceContent::Unreadable("no JSON object") });
        at = next;
    }
    found
}

fn skip_filling(line: &[u8], mut at: usize) -> usize {
    loop {
        let rest = &line[at..];
        if rest.first().is_some_and(|&byte| is_filling(byte)) {
            at += 1;
        } else if rest.starts_with(BYTE_ORDER_MARK) {
            at += BYTE_ORDER_MARK.len();
        } else {
            return at;
        }
    }
}

fn is_filling(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0)
}

/// Reads the object that begins at `at`, if there is one, and its end.
fn object_at<'a>(line: &'a [u8], at: usize, budget: &mut usize) -> Option<(LinePiece<'a>, usize)> {
    let end = object_end(line, at, budget)?;
    let bytes = &line[at..end];
    let (text, repaired) = match to_text(bytes) {
        Cow::Borrowed(text) => (Cow::Borrowed(text), false),
        Cow::Owned(text) => (Cow::Owned(text), true),
    };
    let content = if is_json(&text) {
        PieceContent::Object { text, repaired }
    } else {
        // A raw control character inside a string is not JSON; its escape is the same character.
        let escaped = escape_controls(&text);
        if !is_json(&escaped) {
            return None;
        }
        PieceContent::Object { text: Cow::Owned(escaped), repaired: true }
    };
    Some((LinePiece { at, len: bytes.len(), content }, end))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Finds where the object ends that begins at `at`, by its brackets.
fn object_end(line: &[u8], at: usize, budget: &mut usize) -> Option<usize> {
    if line.get(at) != Some(&b'{') {
        return None;
    }
    let rest = &line[at..];
    let rest = &rest[..rest.len().min(*budget)];
    let end = Nesting::default().element_end(rest);
    *budget -= end.unwrap_or(rest.len());
    end.map(|end| at + end)
}

/// Returns bytes as text; what is not UTF-8 is replaced.
pub(crate) fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    // The usual check is several times as fast as the one that replaces.
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Returns the object that text begins with, if it is complete.
pub(crate) fn first_object(text: &[u8]) -> Option<&[u8]> {
    object_end(text, 0, &mut text.len().saturating_add(1)).map(|end| &text[..end])
}

/// Finds the next place from `from` on where a whole record begins.
fn next_record(line: &[u8], from: usize, is_record: IsRecord, budget: &mut usize) -> Option<usize> {
    let starts = memchr::memchr_iter(b'{', line.get(from..)?).map(|start| from + start);
    for start in starts {
        if *budget == 0 {
            return None;
        }
        if let Some((LinePiece { content: PieceContent::Object { text, .. }, .. }, _)) =
            object_at(line, start, budget)
            && Fields::parse(&text).is_ok_and(|fields| is_record(&fields))
        {
            return Some(start);
        }
    }
    None
}

/// Tells a record from an object inside a torn one, by fields that only records have.
pub(crate) fn is_record(fields: &Fields<'_>) -> bool {
    let has = |name: &str| fields.has(name);
    let kind = fields.iter().find(|(key, _)| key.is("type")).and_then(|(_, value)| text_of(value));
    match kind.as_deref() {
        Some("control_request" | "control_response" | "result" | "system") => true,
        Some(kind) if ["thread.", "turn.", "item."].iter().any(|start| kind.starts_with(start)) => true,
        Some(_) => ["timestamp", "uuid", "sessionId", "session_id", "payload"].into_iter().any(has),
        None => {
            let is_message = has("method") || (has("id") && (has("result") || has("error") || has("msg")));
            let is_chat = has("$set") || has("$rewindTo") || (has("sessionId") && has("projectHash"));
            is_message || has("record_type") || is_chat
        }
    }
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
        let shown: Vec<String> = pieces(line, is_record)
            .into_iter()
            .map(|piece| {
                let content = match piece.content {
                    PieceContent::Object { text, repaired } => {
                        format!("{}{text}", if repaired { "~" } else { "" })
                    }
                    PieceContent::Unreadable(why) => format!("!{why}"),
                };
                format!("{}+{} {content}", piece.at, piece.len)
            })
            .collect();
        assert_eq!(shown, want, "{}", String::from_utf8_lossy(line));
    }

    #[test]
    fn record_after_a_torn_one_is_found_at_any_depth() {
        let whole = r#"{"type":"user","uuid":"u2","message":{"content":"after"}}"#;
        for depth in [1, 7, 8, 30, 60] {
            for torn in ["\"tex", "1,", "\"a\":\"b\"},"] {
                let line =
                    format!("{{\"type\":\"assistant\",\"message\":{}{torn}{whole}", "{\"a\":".repeat(depth));
                let found = pieces(line.as_bytes(), is_record);
                let last = found.last().map(|piece| &piece.content);
                assert_eq!(
                    last,
                    Some(&PieceContent::Object { text: whole.into(), repaired: false }),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn records_on_one_line_are_separated() {
        check(br#"{"a":1}{"b":2}"#, &[r#"0+7 {"a":1}"#, r#"7+7 {"b":2}"#]);
        check(br#" {"a":1}  {"b":2} "#, &[r#"1+7 {"a":1}"#, r#"10+7 {"b":2}"#]);
    }

    #[test]
    fn padding_is_ignored() {
        check(b"", &[]);
        check(b"\0\0\0\0", &[]);
        check(b" \r", &[]);
        check(b"\0\0{}\0\0\r", &["2+2 {}"]);
    }

    #[test]
    fn raw_control_characters_are_escaped() {
        check(b"{\"a\":\"x\0y\"}", &["0+11 ~{\"a\":\"x\\u0000y\"}"]);
        check(b"{\"a\\\"\":\"\x1b\"}", &["0+11 ~{\"a\\\"\":\"\\u001b\"}"]);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        check(b"{\"a\":\"\xff\"}", &["0+9 ~{\"a\":\"\u{fffd}\"}"]);
    }

    #[test]
    fn non_object_is_unreadable_and_its_neighbours_are_read() {
        check(b"[1]", &["0+3 !no JSON object"]);
        check(br#"{"a":1}7"#, &[r#"0+7 {"a":1}"#, "7+1 !no JSON object"]);
        check(br#"{"a":1} then"#, &[r#"0+7 {"a":1}"#, "8+4 !no JSON object"]);
        check(b"{\"a\":", &["0+5 !no JSON object"]);
        check(b"hello", &["0+5 !no JSON object"]);
    }

    const WHOLE: &str = r#"{ "type":"user","uuid":"u","message":{"type":"message"}}"#;

    #[test]
    fn record_is_found_after_unreadable_bytes() {
        let found = WHOLE;
        check(format!("hello {WHOLE}").as_bytes(), &["0+5 !no JSON object", &format!("6+56 {found}")]);
        check(format!("ss\"}}}} {WHOLE}").as_bytes(), &["0+5 !no JSON object", &format!("6+56 {found}")]);
        let two = [format!("0+56 {found}"), format!("60+56 {found}")];
        check(format!("{WHOLE}\0\0\0\0{WHOLE}").as_bytes(), &[&two[0], &two[1]]);
        let two = [format!("0+56 {found}"), format!("59+56 {found}")];
        check(format!("{WHOLE}\u{feff}{WHOLE}").as_bytes(), &[&two[0], &two[1]]);
        for record in [
            r#"{"type":"turn.started"}"#,
            r#"{"method":"initialized"}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":"1","msg":{"type":"task_started"}}"#,
        ] {
            let want = format!("13+{} {record}", record.len());
            check(format!(r#"{{"type":"assi{record}"#).as_bytes(), &["0+13 !no JSON object", &want]);
        }
    }

    #[test]
    fn records_on_one_line_are_repaired_separately() {
        let bad = b"{\"a\":\"\xff\"}{\"b\":\"x\0y\"}{\"c\":1}";
        check(bad, &["0+9 ~{\"a\":\"\u{fffd}\"}", "9+11 ~{\"b\":\"x\\u0000y\"}", "20+7 {\"c\":1}"]);
        let torn = format!(r#"{{"type":"assi{WHOLE}{{"c":1}}"#);
        check(torn.as_bytes(), &["0+13 !no JSON object", &format!("13+56 {WHOLE}"), r#"69+7 {"c":1}"#]);
    }

    #[test]
    fn objects_inside_a_torn_record_are_not_records() {
        let whole = r#"{"type":"user","uuid":"u","message":{"type":"message"}}"#;
        check(
            format!(r#"{{"type":"assi{whole}"#).as_bytes(),
            &["0+13 !no JSON object", &format!("13+55 {whole}")],
        );
        check(br#"{"type":"user","message":{"type":"message"}"#, &["0+43 !no JSON object"]);
    }

    #[test]
    fn many_opening_braces_take_linear_time() {
        let line = "{\"a\":[".repeat(200_000);
        check(line.as_bytes(), &[&format!("0+{} !no JSON object", line.len())]);
    }

    #[test]
    fn lone_surrogates_and_deep_values_are_accepted() {
        check(br#"{"a":"\ud800"}"#, &[r#"0+14 {"a":"\ud800"}"#]);
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(
            &pieces(deep.as_bytes(), is_record)[..],
            [LinePiece { content: PieceContent::Object { .. }, .. }]
        ));
    }
}
