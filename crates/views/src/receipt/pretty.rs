//! Formats JSON on several lines or on one, without changing tokens.

use std::fmt::Write as _;

/// Indents JSON with two spaces per level. Strings and numbers keep their bytes.
pub(super) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut tokens = JsonTokens(json).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if tokens.peek().is_some_and(|next| matches!(*next, "}" | "]")) {
                    out.push_str(tokens.next().unwrap_or_default());
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth -= 1;
                break_line(&mut out, depth);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            other => out.push_str(other),
        }
    }
    out
}

/// Returns JSON without the white space between its tokens.
pub(super) fn compact(json: &str) -> String {
    JsonTokens(json).collect()
}

fn break_line(out: &mut String, depth: usize) {
    write!(out, "\n{:1$}", "", depth * 2).expect("a string takes everything");
}

/// The tokens of valid JSON.
struct JsonTokens<'a>(&'a str);

impl<'a> Iterator for JsonTokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start();
        let len = match self.0.as_bytes().first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_len(self.0),
            _ => self
                .0
                .find(|next: char| ",:{}[]\"".contains(next) || next.is_whitespace())
                .unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(token)
    }
}

/// Returns how long the string is that text begins with.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return at + 1,
            b'\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_matches_serde_json() {
        for json in [
            "{}",
            "[]",
            r#"{"a":[],"b":{},"c":[1,[2,{"d":null}],true],"e":"x,y:{\"}\\"}"#,
            r#""\\\"""#,
            r#"[{"a":-1.5e+3},"é…"]"#,
        ] {
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(pretty(&value.to_string()), serde_json::to_string_pretty(&value).unwrap(), "{json}");
        }
        let odd = "{ \"n\" : 123456789012345678901234567890 ,\n\"n\":1.0,\"s\":\"\\u00e9\\/\" }";
        let want = "{\n  \"n\": 123456789012345678901234567890,\n  \"n\": 1.0,\n  \"s\": \"\\u00e9\\/\"\n}";
        assert_eq!(pretty(odd), want);
        assert_eq!(compact(want), r#"{"n":123456789012345678901234567890,"n":1.0,"s":"\u00e9\/"}"#);
    }
}
