//! A JSON value as its original text.

use std::fmt;

use serde_json::value::RawValue;

use super::string::token_of;
use super::{ObjectWriter, depth, from_str};
use crate::{Error, limits::DEPTH_MAX};

/// How long a text is that is copied into memory of its own length.
const COPIED_BYTES_MAX: usize = 1024;

/// How much room an object gets at first.
const OBJECT_BYTES: usize = 128;

/// A JSON value as text: big integers, key order, duplicate keys, lone surrogates and NUL escapes stay as they are.
///
/// The text is valid JSON without line breaks, so it fits into a line of JSONL. Line breaks between tokens
/// (pretty-printed input) become spaces; inside strings JSON has none. [`RawJson::parse`] also refuses what nests
/// deeper than [`DEPTH_MAX`]; what is read from a record is kept at any depth, and refused when it is written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Parses `text` as one JSON value.
    ///
    /// # Errors
    /// [`Error::NotJson`] when it is not JSON, [`Error::TooDeep`] when it nests deeper than [`DEPTH_MAX`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let raw: &RawValue = from_str(text).map_err(|source| Error::not_json(&source))?;
        let found = depth(raw.get());
        if found > DEPTH_MAX {
            return Err(Error::TooDeep { depth: found });
        }
        Ok(Self::from_raw(raw))
    }

    /// Keeps text that serde has already checked.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Self {
        let text = raw.get();
        if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
            return Self(text.replace(['\n', '\r'], " ").into());
        }
        Self(text.into())
    }

    /// Returns JSON's `null`.
    #[must_use]
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Returns a text as a JSON string.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self::trusted(token_of(text))
    }

    /// Builds an object field by field.
    #[must_use]
    pub fn object(write: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
        let mut out = String::with_capacity(OBJECT_BYTES);
        let mut object = ObjectWriter::begin(&mut out);
        write(&mut object);
        object.end();
        Self::trusted(out)
    }

    /// Builds an array.
    #[must_use]
    pub fn array(items: impl IntoIterator<Item = Self>) -> Self {
        let items: Vec<Box<str>> = items.into_iter().map(|item| item.0).collect();
        Self::trusted(format!("[{}]", items.join(",")))
    }

    /// Wraps JSON that this crate has built itself.
    pub(crate) fn trusted(text: String) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "our own JSON: {text}");
        // Copying a short text costs less than giving back the rest of its memory.
        let is_copied = text.len() < text.capacity() && text.len() <= COPIED_BYTES_MAX;
        Self(if is_copied { (*text).into() } else { text.into() })
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Deserializes the value.
    ///
    /// # Errors
    /// [`Error::NotJson`] with serde's message when the value has another shape.
    pub fn read<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_str(&self.0).map_err(|source| Error::not_json(&source))
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RawJson({})", self.0)
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for RawJson {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(|raw| Self::from_raw(&raw))
    }
}

impl serde::Serialize for RawJson {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(out)
    }
}

macro_rules! from_number {
    ($($number:ty),*) => {$(
        impl From<$number> for RawJson {
            fn from(number: $number) -> Self {
                Self::trusted(number.to_string())
            }
        }
    )*};
}
from_number!(u64, i64, u32, i32, bool);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_round_trips() {
        for text in [
            "123456789012345678901234567890",
            "1e400",
            r#"{"b":1,"a":2,"b":3}"#,
            r#""\ud800 \u0000 \u00e9""#,
            r#"{"\udfff":null}"#,
            "-0.0",
        ] {
            assert_eq!(RawJson::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn line_breaks_between_tokens_become_spaces() {
        assert_eq!(RawJson::parse("{\r\n\"a\":\n1}").unwrap().as_str(), "{  \"a\": 1}");
    }

    #[test]
    fn depth_is_refused_one_level_past_the_limit() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(RawJson::parse(&nested(DEPTH_MAX)).is_ok());
        assert_eq!(RawJson::parse(&nested(DEPTH_MAX + 1)), Err(Error::TooDeep { depth: DEPTH_MAX + 1 }));
    }

    #[test]
    fn garbage_is_not_json() {
        for text in ["", "{", "01", "\"\u{1}\"", "{} {}", "nul"] {
            assert!(matches!(RawJson::parse(text), Err(Error::NotJson { .. })), "{text}");
        }
    }

    #[test]
    fn raw_json_is_serialized_verbatim() {
        let raw = RawJson::parse(r#"{"n":10000000000000000000000,"n":1}"#).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), raw.as_str());
    }

    #[test]
    fn objects_and_arrays_are_built() {
        let inner = RawJson::object(|object| object.number("seq", 1));
        let array = RawJson::array([inner, RawJson::null()]);
        assert_eq!(
            RawJson::object(|object| object.json("list", &array)).as_str(),
            r#"{"list":[{"seq":1},null]}"#
        );
        assert_eq!(RawJson::object(|_| ()).as_str(), "{}");
        assert_eq!(RawJson::array([]).as_str(), "[]");
    }

    #[test]
    fn read_refuses_a_wrong_type() {
        assert_eq!(RawJson::from(7_u64).read::<u64>().unwrap(), 7);
        assert!(RawJson::null().read::<u64>().is_err());
    }
}
