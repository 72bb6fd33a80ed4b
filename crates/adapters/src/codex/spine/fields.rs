//! Reads single fields of a record by name.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, RawJson, text_of};

/// The top-level fields of an object; none if the JSON is not an object.
pub(super) struct PayloadFields<'a>(Option<Fields<'a>>);

impl<'a> PayloadFields<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        Self(Fields::parse(text).ok())
    }

    fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.as_ref()?.last(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(text_of)
    }

    pub(super) fn json_text(&self, name: &str) -> Option<&'a str> {
        self.raw(name).map(RawValue::get)
    }

    pub(super) fn json(&self, name: &str) -> Option<RawJson> {
        self.raw(name).map(RawJson::from_raw)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(Fields::iter).map(|(key, _)| key.text().into_owned()).collect()
    }

    pub(super) fn others(&self, names: &[&str]) -> Vec<(JsonString, RawJson)> {
        let fields = self.0.iter().flat_map(Fields::iter);
        let others = fields.filter(|(key, _)| names.iter().all(|name| !key.is(name)));
        others.map(|(key, value)| (key.text().into_owned().into(), RawJson::from_raw(value))).collect()
    }

    pub(super) fn object(&self, name: &str) -> Self {
        self.raw(name).map_or(Self(None), |raw| Self::parse(raw.get()))
    }
}
