//! Puts the pieces of a body together, up to a limit.

use data_encoding::BASE64;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use super::decode::Decoder;
use super::failures::is_error_content;
use super::secrets::Secrets;

/// The most bytes of a body or an event that are recorded. A larger one is forwarded, and only counted.
pub const BODY_BYTES_MAX: usize = 24 * 1024 * 1024;
/// The most bytes of a record: text can become longer when it is escaped.
const RECORD_BYTES_MAX: usize = 60 * 1024 * 1024;

/// Why a body is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omission {
    /// It is larger than [`BODY_BYTES_MAX`], or too many bodies are on their way.
    TooLarge,
    /// The record was too far behind.
    Behind,
    /// It cannot be decoded.
    Encoding,
}

impl Omission {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Behind => "behind",
            Self::Encoding => "encoding",
        }
    }
}

/// Collects a body.
pub(super) struct BodyCollector {
    decoder: Decoder,
    bytes: Vec<u8>,
    omission: Option<Omission>,
}

impl BodyCollector {
    pub(super) fn new(coding: Option<&str>) -> Self {
        Self { decoder: Decoder::of(coding), bytes: Vec::new(), omission: None }
    }

    /// Returns how many bytes it holds.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes a piece, if there is room for it.
    pub(super) fn push(&mut self, bytes: &[u8], room: usize) {
        if self.omission.is_some() {
            return;
        }
        match self.decoder.push(bytes) {
            None => self.omit(Omission::Encoding),
            Some(decoded) if self.bytes.len() + decoded.len() > BODY_BYTES_MAX || decoded.len() > room => {
                self.omit(Omission::TooLarge);
            }
            Some(decoded) => self.bytes.extend(decoded),
        }
    }

    /// Drops the body.
    pub(super) fn omit(&mut self, omission: Omission) {
        (self.omission, self.bytes) = (Some(self.omission.unwrap_or(omission)), Vec::new());
    }

    /// Tells whether the body reports an error.
    pub(super) fn is_error(&self) -> bool {
        is_error_content(&self.bytes)
    }

    /// Writes the body, or why it is missing.
    pub(super) fn write(self, secrets: &Secrets, is_error: bool, object: &mut ObjectWriter<'_>) {
        match self.omission {
            Some(omission) => object.word("omitted", omission.as_str()),
            None if self.bytes.is_empty() => {}
            None => write_content("body", secrets.remove(self.bytes, is_error), object),
        }
    }
}

/// Writes content as it came if it is one line of JSON, else as text, else in Base64.
pub(super) fn write_content(name: &str, bytes: Vec<u8>, object: &mut ObjectWriter<'_>) {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return object.word("base64", &BASE64.encode(error.as_bytes())),
    };
    let is_value = !text.bytes().any(|byte| byte == b'\n' || byte == b'\r') && text.starts_with(['{', '[']);
    if let Some(value) = RawJson::parse(&text).ok().filter(|_| is_value) {
        return object.json(name, &value);
    }
    let text = JsonString::from_text(&text);
    if text.as_raw().len() > RECORD_BYTES_MAX {
        return object.word("omitted", Omission::TooLarge.as_str());
    }
    object.string("text", &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], want: &str) {
        let written = RawJson::object(|object| write_content("body", bytes.to_vec(), object));
        assert_eq!(written.as_str(), want);
    }

    #[test]
    fn content_stays_as_it_came() {
        check(br#"{"a": 1e400, "a":2}"#, r#"{"body":{"a": 1e400, "a":2}}"#);
        check(b"{\n}", r#"{"text":"{\n}"}"#);
        check(b"[DONE]", r#"{"text":"[DONE]"}"#);
        check(b"17", r#"{"text":"17"}"#);
        check(&[0xff, 0x00], r#"{"base64":"/wA="}"#);
    }

    #[test]
    fn body_up_to_the_limit_is_kept_and_one_byte_more_is_not() {
        for (size, want) in [(BODY_BYTES_MAX, None), (BODY_BYTES_MAX + 1, Some(Omission::TooLarge))] {
            let mut body = BodyCollector::new(None);
            vec![b'x'; size].chunks(1 << 20).for_each(|piece| body.push(piece, usize::MAX));
            assert_eq!(body.omission, want);
            assert_eq!(body.len(), if want.is_none() { size } else { 0 });
        }
    }
}
