//! Foreign text on its way out as JSON: the token that came in, unchanged.

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
