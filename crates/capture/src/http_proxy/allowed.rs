//! Decides which headers and which parts of an address may be recorded: known names, with values of a known form.

use hyper::HeaderMap;
use steno_model::json::{JsonString, RawJson};

/// The form that a header's value must have to be recorded.
#[derive(Clone, Copy)]
enum Form {
    /// A known media type; its parameters are left out.
    MediaType,
    /// A content coding.
    Coding,
    /// A whole number.
    Number,
    /// A UUID.
    Uuid,
    /// Eight to 32 hexadecimal digits.
    Hex,
    /// A date like 2023-06-01.
    Date,
    /// `req_` and letters, or a UUID.
    RequestId,
    /// The first product of a user agent, with its version.
    Product,
}

/// The headers that are recorded. Every other header may contain a credential.
const HEADERS: [(&str, Form); 18] = [
    ("anthropic-version", Form::Date),
    ("content-encoding", Form::Coding),
    ("content-length", Form::Number),
    ("content-type", Form::MediaType),
    ("conversation-id", Form::Uuid),
    ("conversation_id", Form::Uuid),
    ("request-id", Form::RequestId),
    ("retry-after", Form::Number),
    ("session-id", Form::Uuid),
    ("session_id", Form::Uuid),
    ("thread-id", Form::Uuid),
    ("thread_id", Form::Uuid),
    ("user-agent", Form::Product),
    ("x-claude-code-agent-id", Form::Hex),
    ("x-claude-code-session-id", Form::Uuid),
    ("x-codex-parent-thread-id", Form::Uuid),
    ("x-request-id", Form::RequestId),
    ("x-stainless-retry-count", Form::Number),
];

/// The media types that are recorded.
const MEDIA_TYPES: [&str; 8] = [
    "application/json",
    "application/octet-stream",
    "application/problem+json",
    "application/x-ndjson",
    "multipart/form-data",
    "text/event-stream",
    "text/html",
    "text/plain",
];

/// The query parameters whose names are recorded. Values are never recorded.
const PARAMETERS: [&str; 3] = ["alt", "api-version", "beta"];

/// Tells whether a header is recorded.
pub(super) fn is_recorded(name: &str, value: &str) -> bool {
    HEADERS.iter().any(|(allowed, form)| *allowed == name && form.take(value).is_some())
}

/// Returns the headers that may be recorded, as an object. Hyphens in names become underscores.
pub(super) fn headers(headers: &HeaderMap) -> RawJson {
    let mut written = String::new();
    RawJson::object(|object| {
        for (name, form) in HEADERS {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            let Some(value) = value.and_then(|value| form.take(value)) else { continue };
            let key = name.replace('-', "_");
            // Some headers are sent in both spellings.
            if written != key {
                object.string(&key, &JsonString::from(value));
                written = key;
            }
        }
    })
}

/// Returns the names of known query parameters, and how many others there are.
pub(super) fn query(query: Option<&str>) -> (Vec<&'static str>, u64) {
    let (mut known, mut others) = (Vec::new(), 0);
    for parameter in query.unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split('=').next().unwrap_or_default();
        match PARAMETERS.iter().find(|allowed| **allowed == name && parameter.contains('=')) {
            Some(name) => known.push(*name),
            None => others += 1,
        }
    }
    (known, others)
}

impl Form {
    /// Returns the part of a value that has this form.
    fn take(self, value: &str) -> Option<&str> {
        let value = value.trim();
        let is_word = |text: &str| {
            (1..=64).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte))
        };
        let is_uuid = |text: &str| {
            text.len() == 36
                && text.bytes().enumerate().all(|(at, byte)| match at {
                    8 | 13 | 18 | 23 => byte == b'-',
                    _ => byte.is_ascii_hexdigit(),
                })
        };
        match self {
            Self::MediaType => {
                let essence = value.split(';').next().unwrap_or_default().trim();
                MEDIA_TYPES.contains(&essence).then_some(essence)
            }
            Self::Coding => {
                matches!(value, "gzip" | "x-gzip" | "deflate" | "br" | "zstd" | "identity").then_some(value)
            }
            Self::Number => ((1..=19).contains(&value.len())
                && value.bytes().all(|byte| byte.is_ascii_digit()))
            .then_some(value),
            Self::Uuid => is_uuid(value).then_some(value),
            Self::Hex => {
                let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
                ((8..=32).contains(&value.len()) && is_hex).then_some(value)
            }
            Self::Date => {
                let is_date = value.bytes().enumerate().all(|(at, byte)| match at {
                    4 | 7 => byte == b'-',
                    _ => byte.is_ascii_digit(),
                });
                (value.len() == 10 && is_date).then_some(value)
            }
            Self::RequestId => {
                let rest = value.strip_prefix("req_");
                let is_named = rest.is_some_and(|rest| is_word(rest) && !rest.contains(['-', '+', '.', '_']));
                (is_named || is_uuid(value)).then_some(value)
            }
            Self::Product => {
                let first = value.split(' ').next().unwrap_or_default();
                let (name, version) = first.split_once('/')?;
                // Gemini CLI appends its model.
                let version = version.split('/').next().unwrap_or_default();
                let is_version = version.starts_with(|first: char| first.is_ascii_digit())
                    && version.len() <= 24
                    && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
                // A random text mostly has digits.
                let is_name = (2..=32).contains(&name.len())
                    && name.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte));
                (is_name && is_version).then(|| &first[..name.len() + 1 + version.len()])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_other_names_or_forms_are_left_out() {
        let mut all = HeaderMap::new();
        for (name, _) in HEADERS {
            all.insert(name, "canary of a secret".parse().unwrap());
        }
        all.insert("content-type", "text/canary".parse().unwrap());
        all.insert("user-agent", "canary7/1.0".parse().unwrap());
        for name in ["authorization", "x-api-key", "cookie", "x-anything"] {
            all.insert(name, "canary".parse().unwrap());
        }
        assert_eq!(headers(&all).as_str(), "{}");
        all.insert("content-type", "text/event-stream; charset=utf-8".parse().unwrap());
        all.insert("user-agent", "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64)".parse().unwrap());
        all.insert("thread-id", "01a1ec0e-8d3c-7841-8fe4-c3d1d023a10e".parse().unwrap());
        all.insert("thread_id", "01a1ec0e-8d3c-7841-8fe4-c3d1d023a10e".parse().unwrap());
        all.insert("x-claude-code-agent-id", "a608703c5b35a4db9".parse().unwrap());
        all.insert("request-id", "req_0a1b2c".parse().unwrap());
        all.insert("anthropic-version", "2023-06-01".parse().unwrap());
        let want = concat!(
            r#"{"anthropic_version":"2023-06-01","content_type":"text/event-stream","request_id":"req_0a1b2c","#,
            r#""thread_id":"01a1ec0e-8d3c-7841-8fe4-c3d1d023a10e","user_agent":"GeminiCLI-tui/0.61.0","#,
            r#""x_claude_code_agent_id":"a608703c5b35a4db9"}"#
        );
        assert_eq!(headers(&all).as_str(), want);
    }

    #[test]
    fn query_values_and_unknown_names_are_left_out() {
        assert_eq!(query(Some("alt=sse&key=secret&secret&beta")), (vec!["alt"], 3));
        assert_eq!(query(None), (vec![], 0));
    }
}
