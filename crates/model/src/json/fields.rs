//! A JSON object split into its fields, in order, every value raw.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::string::{decode, token_is, utf16_units};
use super::{Extra, JsonString, RawJson, from_str};
use crate::Error;

/// A field's name as its original token.
#[derive(Clone, Copy)]
pub struct Key<'a>(&'a str);

impl<'a> Key<'a> {
    /// Decodes the name; borrowed when it has no escape.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        decode(self.0)
    }

    /// Tells whether the decoded name is `text`.
    #[must_use]
    pub fn is(self, text: &str) -> bool {
        token_is(self.0, text)
    }

    /// Returns the token with its quotes.
    #[must_use]
    pub fn as_raw(self) -> &'a str {
        self.0
    }

    /// Returns a key that distinguishes names: decoded text is not enough, because each lone surrogate becomes U+FFFD.
    fn name(self) -> (Cow<'a, str>, Option<Vec<u16>>) {
        let text = self.text();
        let units = text.contains(char::REPLACEMENT_CHARACTER).then(|| utf16_units(self.0));
        (text, units)
    }
}

/// The fields of one JSON object, in order, including duplicates.
#[derive(Default)]
pub struct Fields<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Splits `text`, which must be one JSON object.
    ///
    /// # Errors
    /// [`Error::NotJson`] when it is not JSON, [`Error::NotAnObject`] when it is another kind of value.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        from_str(text).map_err(|source| {
            // serde fails at the first bracket of an array, before it knows whether the rest is JSON.
            let shape_only = source.is_data() && serde_json::from_str::<&RawValue>(text).is_ok();
            if shape_only { Error::NotAnObject } else { Error::not_json(&source) }
        })
    }

    /// Takes the field called `name` and leaves the others.
    ///
    /// # Errors
    /// [`Error::DuplicateField`] when there is more than one.
    pub fn take(&mut self, name: &'static str) -> Result<Option<&'a RawValue>, Error> {
        let mut found = None;
        for index in (0..self.0.len()).rev() {
            if self.0[index].0.is(name) && found.replace(self.0.remove(index).1).is_some() {
                return Err(Error::DuplicateField { field: name.into() });
            }
        }
        Ok(found)
    }

    /// Takes the field called `name`, which has to be a string.
    ///
    /// # Errors
    /// [`Error::WrongField`] when it is not a string, or as [`Fields::take`].
    pub fn take_string(&mut self, name: &'static str) -> Result<Option<JsonString>, Error> {
        let Some(raw) = self.take(name)? else { return Ok(None) };
        let string = JsonString::from_raw(raw);
        string.map(Some).ok_or(Error::WrongField { field: name, wanted: "a string" })
    }

    /// Takes the field called `name`, a string or null; null counts as absent.
    ///
    /// # Errors
    /// As [`Fields::take_string`].
    pub fn take_nullable_string(&mut self, name: &'static str) -> Result<Option<JsonString>, Error> {
        match self.take(name)? {
            None => Ok(None),
            Some(raw) if raw.get() == "null" => Ok(None),
            Some(raw) => match JsonString::from_raw(raw) {
                Some(string) => Ok(Some(string)),
                None => Err(Error::WrongField { field: name, wanted: "a string or null" }),
            },
        }
    }

    /// Takes the field called `name` as any value.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn take_json(&mut self, name: &'static str) -> Result<Option<RawJson>, Error> {
        Ok(self.take(name)?.map(RawJson::from_raw))
    }

    /// Tells whether there is a field called `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key.is(name))
    }

    /// Returns the first name that occurs twice.
    #[must_use]
    pub fn duplicate(&self) -> Option<Cow<'a, str>> {
        // A set, because comparing all pairs would take hours for a million names.
        let mut seen = BTreeSet::new();
        self.0.iter().map(|(key, _)| key.name()).find(|name| !seen.insert(name.clone())).map(|(text, _)| text)
    }

    /// Returns how many fields there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a field whose name is a valid token.
    pub(crate) fn push(&mut self, name: &'a RawValue, value: &'a RawValue) {
        self.0.push((Key(name.get()), value));
    }

    /// Returns the last field called `name`, as readers do that keep one of several.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key.is(name)).map(|(_, value)| *value)
    }

    /// Iterates over the fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Key<'a>, &'a RawValue)> + '_ {
        self.0.iter().copied()
    }

    /// Keeps what has not been taken.
    #[must_use]
    pub fn into_extra(self) -> Extra {
        let mut extra = Extra::with_capacity(self.0.len());
        for (key, value) in self.0 {
            extra.keep(JsonString::from_token(key.0), RawJson::from_raw(value));
        }
        extra
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::with_capacity(12);
        // A raw key, because a key may contain a lone surrogate, which a `str` cannot.
        while let Some(key) = map.next_key::<&RawValue>()? {
            fields.push((Key(key.get()), map.next_value()?));
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_order_and_duplicates() {
        let fields = Fields::parse(r#"{"b":1,"a":[2],"b":3}"#).unwrap();
        assert_eq!(fields.duplicate().as_deref(), Some("b"));
        let all: Vec<_> = fields.iter().map(|(key, value)| (key.text(), value.get())).collect();
        assert_eq!(all, [("b".into(), "1"), ("a".into(), "[2]"), ("b".into(), "3")]);
    }

    #[test]
    fn names_are_compared_decoded() {
        let mut fields = Fields::parse(r#"{"\u0073eq":1,"seq":2}"#).unwrap();
        assert_eq!(fields.duplicate().as_deref(), Some("seq"));
        assert_eq!(fields.take("seq").unwrap_err(), Error::DuplicateField { field: "seq".into() });
    }

    #[track_caller]
    fn check_duplicate(object: &str, want: Option<&str>) {
        assert_eq!(Fields::parse(object).unwrap().duplicate().as_deref(), want, "{object}");
    }

    #[test]
    fn names_with_lone_surrogates_are_distinct() {
        check_duplicate(r#"{"\ud800":1,"\ud801":2,"\udc00":3}"#, None);
        check_duplicate("{\"\\ud800\":1,\"\u{fffd}\":2}", None);
        check_duplicate(r#"{"a\ud800":1,"\ud800a":2,"a\ud800\n":3}"#, None);
        check_duplicate(r#"{"\ud83d\ude00\ud800":1,"😀\uD800":2}"#, Some("😀\u{fffd}"));
        check_duplicate(r#"{"\ud800":1,"\uD800":2}"#, Some("\u{fffd}"));
        check_duplicate("{\"\\ufffd\":1,\"\u{fffd}\":2}", Some("\u{fffd}"));
        check_duplicate(r#"{"\ud800\/":1,"\ud800/":2}"#, Some("\u{fffd}/"));
    }

    #[test]
    fn remaining_fields_are_extra() {
        let mut fields = Fields::parse(r#"{"x":1,"\ud800":2,"name":"n"}"#).unwrap();
        assert_eq!(fields.take_string("name").unwrap(), Some("n".into()));
        assert!(!fields.has("name") && fields.has("x"));
        let extra = fields.into_extra();
        assert_eq!(extra.get("x"), Some(&RawJson::from(1_u64)));
        let keys: Vec<_> = extra.iter().map(|(key, _)| key.clone().into_string()).collect();
        let keys: Vec<_> = keys.iter().map(JsonString::as_raw).collect();
        assert_eq!((keys, extra.len(), extra.is_empty()), (vec![r#""x""#, r#""\ud800""#], 2, false));
    }

    #[test]
    fn wrong_shapes_have_distinct_errors() {
        assert_eq!(Fields::parse("[1]").err(), Some(Error::NotAnObject));
        assert_eq!(Fields::parse("7").err(), Some(Error::NotAnObject));
        assert!(matches!(Fields::parse("{"), Err(Error::NotJson { .. })));
        let mut fields = Fields::parse(r#"{"name":1}"#).unwrap();
        let wrong = Error::WrongField { field: "name", wanted: "a string" };
        assert_eq!(fields.take_string("name"), Err(wrong));
    }
}
