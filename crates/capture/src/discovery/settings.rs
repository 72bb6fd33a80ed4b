//! Reads an agent's settings: JSON, in which some agents allow comments.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde_json::Value;
use steno_disk::{NotRegular, TooLong, read_host_file};

use super::problem::{Problem, ProblemKind};

/// The maximum length of a settings file. Real ones have a few kilobytes.
const SIZE_BYTES_MAX: u64 = 1024 * 1024;

/// Whether an agent allows comments in its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comments {
    Allowed,
    Refused,
}

/// Reads a settings file; `None` when there is none. A link is followed, because many users keep settings among their
/// dotfiles.
pub(super) fn read(path: &Path, comments: Comments) -> Result<Option<Value>, Problem> {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(ProblemKind::Unreadable(error))
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(why) => return Err(Problem::new(path, why)),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let json = match comments {
        Comments::Allowed => without_comments(text),
        Comments::Refused => Cow::Borrowed(text),
    };
    serde_json::from_str(&json).map(Some).map_err(|error| Problem::new(path, ProblemKind::NotJson(error)))
}

fn read_text(path: &Path) -> Result<String, ProblemKind> {
    let bytes = read_host_file(path, SIZE_BYTES_MAX).map_err(|error| {
        match (NotRegular::inside(&error), TooLong::inside(&error)) {
            (Some(_), _) => ProblemKind::NotRegular,
            (None, Some(TooLong { size_bytes_max })) => ProblemKind::TooLong { size_bytes_max },
            (None, None) => ProblemKind::Unreadable(error),
        }
    })?;
    String::from_utf8(bytes)
        .map_err(|error| ProblemKind::Unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// Removes `// …` and `/* … */` outside of strings.
fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("//") && !text.contains("/*") {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(start);
        kept.push_str(before);
        let len = if from.starts_with('"') {
            let len = string_len(from);
            kept.push_str(&from[..len]);
            len
        } else if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if from.starts_with("/*") {
            from.find("*/").map_or(from.len(), |end| end + 2)
        } else {
            kept.push('/');
            1
        };
        rest = &from[len..];
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// Returns the length of the string at the beginning of a text, with its quotes; all of it when there is no end.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_removed_outside_strings() {
        let cases = [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("{\"a\":1 // one\n}", "{\"a\":1 \n}"),
            ("/* x\n// y */{\"a\":/**/1}", "{\"a\":1}"),
            (r#"{"u":"http://x/*y*/"}//z"#, r#"{"u":"http://x/*y*/"}"#),
            (r#"{"q":"\"// no","b":"\\"} // yes"#, r#"{"q":"\"// no","b":"\\"} "#),
            (r#"{"a":"unended // "#, r#"{"a":"unended // "#),
            ("{} /* unended", "{} "),
            ("1/2 // ü\n\"ü\"", "1/2 \n\"ü\""),
        ];
        for (text, want) in cases {
            assert_eq!(without_comments(text), want, "{text}");
        }
    }
}
