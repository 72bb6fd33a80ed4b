//! The credentials of an exchange, and their removal from what is recorded of it.
//!
//! Headers and query values are not recorded, but a server may repeat them: an error may quote the key it refused.

use data_encoding::BASE64;
use hyper::HeaderMap;
use memchr::memmem;

use super::allowed;

/// What a credential is replaced with.
const REMOVED: &str = "[removed]";
/// Shorter values occur in ordinary text.
const SECRET_BYTES_MIN: usize = 6;
/// How many values of an exchange are searched for.
const SECRETS_MAX: usize = 256;
/// Parts of names that belong to credentials.
const CREDENTIAL_NAMES: [&str; 10] =
    ["auth", "key", "token", "secret", "cookie", "password", "credential", "signature", "session-tok", "jwt"];

/// Values that must not be recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets {
    /// Values of headers and parameters that have the name of a credential: they are removed everywhere.
    credentials: Vec<String>,
    /// All other values that are not recorded: they are removed from errors.
    others: Vec<String>,
}

impl Secrets {
    /// Collects the values of a request that are not recorded.
    pub(super) fn of_request(headers: &HeaderMap, query: Option<&str>) -> Self {
        let mut secrets = Self::default();
        secrets.add_headers(headers);
        for parameter in query.unwrap_or_default().split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or(("key", parameter));
            secrets.add(name, value);
            secrets.add(name, &percent_decoded(value));
        }
        secrets
    }

    /// Adds the values of headers or trailers.
    pub(super) fn add_headers(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            if allowed::is_recorded(name.as_str(), &value) || is_usual(name.as_str()) {
                continue;
            }
            self.add(name.as_str(), &value);
            if let Some((scheme, rest)) = value.split_once(' ') {
                self.add(name.as_str(), rest);
                if scheme.eq_ignore_ascii_case("basic")
                    && let Ok(decoded) = BASE64.decode(rest.trim().as_bytes())
                {
                    let decoded = String::from_utf8_lossy(&decoded).into_owned();
                    self.add(name.as_str(), decoded.split_once(':').map_or("", |(_, password)| password));
                    self.add(name.as_str(), &decoded);
                }
            }
            for pair in value.split(';').filter(|_| name.as_str().contains("cookie")) {
                self.add(name.as_str(), pair.split_once('=').map_or("", |(_, value)| value));
            }
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        let value = value.trim();
        let name = name.to_ascii_lowercase();
        let is_credential = CREDENTIAL_NAMES.iter().any(|part| name.contains(part));
        let values = if is_credential { &mut self.credentials } else { &mut self.others };
        if value.len() >= SECRET_BYTES_MIN
            && values.len() < SECRETS_MAX
            && !values.iter().any(|known| known == value)
        {
            values.push(value.to_owned());
        }
    }

    /// Takes over the values of another part of the exchange.
    pub(super) fn extend(&mut self, other: Self) {
        let room = |values: &Vec<String>| SECRETS_MAX.saturating_sub(values.len());
        self.credentials.extend(other.credentials.into_iter().take(room(&self.credentials)));
        self.others.extend(other.others.into_iter().take(room(&self.others)));
    }

    /// Removes credentials from a text; from an error, every value that is not recorded.
    pub(super) fn remove(&self, text: Vec<u8>, is_error: bool) -> Vec<u8> {
        let others = self.others.iter().filter(|_| is_error);
        let mut values: Vec<&String> = self.credentials.iter().chain(others).collect();
        // A value may be part of a longer one.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let mut text = text;
        for value in values {
            text = replaced(text, value.as_bytes());
            // In JSON some characters are escaped.
            let quoted = steno_model::json::JsonString::from_text(value);
            let escaped = quoted.as_raw().trim_matches('"');
            if escaped != value {
                text = replaced(text, escaped.as_bytes());
            }
        }
        text
    }
}

/// Tells whether a header has nothing secret although it is not recorded.
fn is_usual(name: &str) -> bool {
    matches!(
        name,
        "host" | "connection" | "accept" | "accept-encoding" | "accept-language" | "transfer-encoding"
    )
}

fn replaced(text: Vec<u8>, value: &[u8]) -> Vec<u8> {
    let found = memmem::Finder::new(value);
    if value.is_empty() || found.find(&text).is_none() {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in found.find_iter(&text) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(REMOVED.as_bytes());
        from = at + value.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let pair = more.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let decoded = pair.filter(|_| *first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], query: Option<&str>, text: &str, is_error: bool, want: &str) {
        let map = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let secrets = Secrets::of_request(&map.collect(), query);
        let cleaned = secrets.remove(text.as_bytes().to_vec(), is_error);
        assert_eq!(String::from_utf8(cleaned).unwrap(), want);
    }

    #[test]
    fn credentials_are_removed_everywhere_and_other_values_from_errors() {
        check(&[("authorization", "Bearer sk-12345")], None, "no sk-12345 here", false, "no [removed] here");
        check(&[("authorization", "Basic bWU6aHVudGVyMg==")], None, "bad hunter2", false, "bad [removed]");
        check(&[("cookie", "a=biscuit; b=cracker")], None, "cracker, biscuit", false, "[removed], [removed]");
        check(&[("x-project", "my-project")], None, "in my-project", false, "in my-project");
        check(&[("x-project", "my-project")], None, "in my-project", true, "in [removed]");
        check(
            &[("x-api-key", "quo\"ted-key")],
            None,
            r#"{"m":"quo\"ted-key"}"#,
            true,
            r#"{"m":"[removed]"}"#,
        );
        check(&[], Some("key=se%63ret%20"), "se%63ret%20 secret", false, "[removed] [removed]");
        check(&[("user-agent", "claude-cli/2.1.0")], None, "claude-cli/2.1.0", true, "claude-cli/2.1.0");
    }
}
