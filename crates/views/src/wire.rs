//! Writes foreign text to JSON as the token it was read from.

use serde::{Serialize, Serializer};
use steno_model::Timestamp;
use steno_model::json::JsonString;

/// A string that is written as the token it was read from, lone surrogates included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verbatim<'a>(&'a JsonString);

impl<'a> Verbatim<'a> {
    pub(crate) fn text(text: Option<&'a JsonString>) -> Option<Self> {
        text.map(Self)
    }

    pub(crate) fn time(time: Option<&'a Timestamp>) -> Option<Self> {
        time.map(|time| Self(time.as_json()))
    }
}

impl<'a> From<&'a JsonString> for Verbatim<'a> {
    fn from(text: &'a JsonString) -> Self {
        Self(text)
    }
}

impl Serialize for Verbatim<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.to_json().serialize(out)
    }
}

/// Writes a string of ours as the token it was read from.
pub(crate) fn text<S: Serializer>(text: &JsonString, out: S) -> Result<S::Ok, S::Error> {
    Verbatim(text).serialize(out)
}

/// Writes a string that may be missing as its token, or as null.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
pub(crate) fn optional_text<S: Serializer>(text: &Option<JsonString>, out: S) -> Result<S::Ok, S::Error> {
    Verbatim::text(text.as_ref()).serialize(out)
}

/// Writes strings as their tokens.
pub(crate) fn texts<S: Serializer>(texts: &[JsonString], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(texts.iter().map(Verbatim))
}

/// Writes a time as the token it was read from.
pub(crate) fn time<S: Serializer>(time: &Timestamp, out: S) -> Result<S::Ok, S::Error> {
    Verbatim(time.as_json()).serialize(out)
}

/// Writes a time that may be missing as its token, or as null.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
pub(crate) fn optional_time<S: Serializer>(time: &Option<Timestamp>, out: S) -> Result<S::Ok, S::Error> {
    Verbatim::time(time.as_ref()).serialize(out)
}
