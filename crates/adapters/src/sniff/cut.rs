//! Reads the first fields of an object whose end is not among the examined bytes.

use super::probe::Probe;
use crate::wire::parse;

/// How deep the comma may be at which a cut object is closed.
const CLOSED_DEPTH_MAX: usize = 4;

/// Returns the fields that a cut object begins with, as an object; what was cut in the middle is left out.
pub(super) fn beginning_of(line: &[u8]) -> String {
    const FIELDS_BYTES_MAX: usize = 4096;
    let text = String::from_utf8_lossy(&line[..line.len().min(FIELDS_BYTES_MAX)]);
    let ends = text.char_indices().filter(|(_, letter)| *letter == ',').map(|(at, _)| at);
    let whole = |at: usize| format!("{}}}", &text[..at]);
    let ends: Vec<usize> = ends.collect();
    let closed = ends.into_iter().rev().map(whole).find(|text| parse::<Probe<'_>>(text).is_ok());
    closed.unwrap_or_default()
}

/// Returns the beginning of an object that was cut, with its brackets closed: all of it, or up to the last comma.
pub(super) fn closed(begin: &[u8]) -> String {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let (mut open, mut at_comma) = (Vec::new(), (0, Vec::new()));
    for (at, byte) in begin.iter().enumerate() {
        match byte {
            _ if is_in_string => {
                is_in_string = *byte != b'"' || is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
            }
            b'"' => is_in_string = true,
            b'{' | b'[' => open.push(if *byte == b'{' { '}' } else { ']' }),
            b'}' | b']' if open.pop().is_none() => break,
            b',' if open.len() <= CLOSED_DEPTH_MAX => at_comma = (at, open.clone()),
            _ => {}
        }
    }
    let close = |(end, open): (usize, Vec<char>)| {
        let mut text = String::from_utf8_lossy(&begin[..end]).into_owned();
        text.extend(open.into_iter().rev());
        text
    };
    // Only the last bracket is missing if a file without a newline at its end is read line by line.
    let all = close((begin.len(), open));
    if parse::<Probe<'_>>(&all).is_ok() { all } else { close(at_comma) }
}
