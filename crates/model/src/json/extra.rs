//! Fields that are kept beside the known ones, in order.

use std::borrow::Cow;

use super::string::is_plain;
use super::{JsonString, RawJson, check_depth};
use crate::Error;

/// The name of an extra field.
#[derive(Clone, Debug)]
pub enum FieldName {
    /// A name of ours, which needs no escape. Most fields have one, and it costs nothing.
    Own(&'static str),
    /// The token of a record.
    Token(JsonString),
}

impl FieldName {
    /// Tells whether the decoded name is `text`.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        match self {
            Self::Own(name) => *name == text,
            Self::Token(token) => token.is(text),
        }
    }

    /// Returns the name as a JSON string.
    #[must_use]
    pub fn into_string(self) -> JsonString {
        match self {
            Self::Own(name) => name.into(),
            Self::Token(token) => token,
        }
    }

    /// Decodes the name.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Own(name) => Cow::Borrowed(name),
            Self::Token(token) => token.to_text(),
        }
    }

    /// Hands over the name as it is written, quotation marks included.
    pub(crate) fn write(&self, mut push: impl FnMut(&str)) {
        match self {
            Self::Own(name) => {
                push("\"");
                push(name);
                push("\"");
            }
            Self::Token(token) => push(token.as_raw()),
        }
    }
}

impl From<&'static str> for FieldName {
    fn from(name: &'static str) -> Self {
        if is_plain(name) { Self::Own(name) } else { Self::Token(name.into()) }
    }
}

impl From<JsonString> for FieldName {
    fn from(token: JsonString) -> Self {
        Self::Token(token)
    }
}

/// Names are the same if they are written the same.
impl PartialEq for FieldName {
    fn eq(&self, other: &Self) -> bool {
        let is_token = |token: &JsonString, name: &str| {
            token.as_raw().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(name)
        };
        match (self, other) {
            (Self::Own(one), Self::Own(two)) => one == two,
            (Self::Token(one), Self::Token(two)) => one == two,
            (Self::Own(name), Self::Token(token)) | (Self::Token(token), Self::Own(name)) => {
                is_token(token, name)
            }
        }
    }
}

impl Eq for FieldName {}

/// Unknown fields, kept in order and written after the known ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Vec<(FieldName, RawJson)>);

impl Extra {
    /// Returns the last value of `name`, as readers do that keep one of several.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().rev().find(|(key, _)| key.is(name)).map(|(_, value)| value)
    }

    /// Tells whether none of the fields has one of these names.
    pub(crate) fn has_none_of(&self, names: &[&str]) -> bool {
        self.0.iter().all(|(key, _)| names.iter().all(|name| !key.is(name)))
    }

    /// Adds an extra field to an envelope that already has fields with these names.
    ///
    /// # Errors
    /// [`Error::DuplicateField`], or [`Error::TooDeep`] for a value that nests too deep for a line.
    pub(crate) fn add(&mut self, name: FieldName, value: RawJson, taken: &[&str]) -> Result<(), Error> {
        check_depth(value.as_str(), 0)?;
        if self.get(&name.to_text()).is_some() || taken.iter().any(|taken| name.is(taken)) {
            return Err(Error::DuplicateField { field: name.to_text().into_owned().into() });
        }
        self.0.push((name, value));
        Ok(())
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl Into<FieldName>, value: RawJson) {
        self.0.push((name.into(), value));
    }

    /// Iterates over the fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&FieldName, &RawJson)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Adds other fields at the end.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Makes room for fields.
    pub(super) fn with_capacity(len: usize) -> Self {
        Self(Vec::with_capacity(len))
    }

    /// Keeps a field of a record.
    pub(super) fn keep(&mut self, name: JsonString, value: RawJson) {
        self.0.push((FieldName::Token(name), value));
    }

    /// Returns the fields, in order.
    #[must_use]
    pub fn into_pairs(self) -> Vec<(JsonString, RawJson)> {
        self.0.into_iter().map(|(name, value)| (name.into_string(), value)).collect()
    }

    /// Returns how many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_if_they_are_written_the_same() {
        let token = |text: &str| FieldName::Token(text.into());
        assert_eq!(FieldName::from("id"), token("id"));
        assert_eq!(token("id"), FieldName::Own("id"));
        assert_ne!(FieldName::from("id"), token("i"));
        assert_eq!(FieldName::from("a\"b"), token("a\"b"));
        assert_ne!(FieldName::from("id"), FieldName::from("ids"));
    }

    #[test]
    fn a_field_is_added_once() {
        let mut extra = Extra::default();
        extra.push("id", RawJson::null());
        for name in [FieldName::from("id"), FieldName::Token("id".into()), "seq".into()] {
            let error = Error::DuplicateField { field: name.to_text().into_owned().into() };
            assert_eq!(extra.add(name, RawJson::null(), &["seq"]), Err(error));
        }
        let mut more = Extra::default();
        more.push("a\nb", RawJson::null());
        extra.append(more);
        let names: Vec<_> =
            extra.into_pairs().into_iter().map(|(name, _)| name.as_raw().to_owned()).collect();
        assert_eq!(names, [r#""id""#, r#""a\nb""#]);
    }
}
