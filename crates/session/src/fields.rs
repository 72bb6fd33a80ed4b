//! Single fields of an event, read by name and not by shape.
//!
//! The event's type says which fields to expect. Reading by name also works for payloads of an undefined shape.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, RawJson, text_of};
use steno_model::{ExchangeEvent, RunId};

/// The top-level fields of a payload; none if it is not an object.
pub struct PayloadFields<'a>(Option<Fields<'a>>);

impl<'a> PayloadFields<'a> {
    /// Reads the payload of an event.
    #[must_use]
    pub fn of(event: &'a ExchangeEvent) -> Self {
        Self::parse(event.payload.as_str())
    }

    /// Reads the fields of a JSON text.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        Self(Fields::parse(text).ok())
    }

    /// Returns the last field called `name`.
    fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.as_ref()?.last(name)
    }

    /// Returns the field called `name` when it is a string.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<JsonString> {
        self.raw(name).and_then(JsonString::from_raw)
    }

    /// Returns the text of the field called `name` when it is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(text_of)
    }

    /// Returns the JSON text of the field called `name`.
    #[must_use]
    pub fn json_text(&self, name: &str) -> Option<&'a str> {
        self.raw(name).map(RawValue::get)
    }

    /// Returns the JSON of the field called `name`.
    #[must_use]
    pub fn json(&self, name: &str) -> Option<RawJson> {
        self.raw(name).map(RawJson::from_raw)
    }

    /// Updates `known` from the field called `name` if it is a string. Copies only a changed value, because most records repeat it.
    pub(crate) fn renew(&self, name: &str, known: &mut Option<JsonString>) {
        let Some(raw) = self.raw(name) else { return };
        if known.as_ref().is_none_or(|known| known.as_raw() != raw.get()) {
            *known = JsonString::from_raw(raw).or(known.take());
        }
    }

    /// Returns the names of all fields, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(Fields::iter).map(|(key, _)| key.text().into_owned()).collect()
    }

    /// Returns the fields that have none of these names, in order.
    #[must_use]
    pub fn others(&self, names: &[&str]) -> Vec<(JsonString, RawJson)> {
        let fields = self.0.iter().flat_map(Fields::iter);
        let others = fields.filter(|(key, _)| names.iter().all(|name| !key.is(name)));
        others.map(|(key, value)| (key.text().into_owned().into(), RawJson::from_raw(value))).collect()
    }

    /// Tells whether the field called `name` is true.
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw.get() == "true")
    }

    /// Returns the items of the array called `name`; none if it is not an array.
    #[must_use]
    pub fn items(&self, name: &str) -> Vec<&'a RawValue> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Returns the fields of the object called `name`.
    #[must_use]
    pub fn object(&self, name: &str) -> Self {
        self.raw(name).map_or(Self(None), |raw| Self::parse(raw.get()))
    }

    /// Returns why something failed: the text of `error`, or its JSON if it is not a string.
    ///
    /// Null, false and the empty string mean that nothing failed.
    #[must_use]
    pub fn error(&self) -> Option<JsonString> {
        let raw = self.raw("error")?;
        match raw.get() {
            "null" | "false" | "\"\"" => None,
            text => Some(JsonString::from_raw(raw).unwrap_or_else(|| text.into())),
        }
    }
}

/// A block of a message, read once.
pub(crate) struct BlockFields<'a> {
    pub(crate) raw: &'a RawValue,
    pub(crate) fields: PayloadFields<'a>,
}

impl<'a> BlockFields<'a> {
    /// Reads the blocks of a message's payload.
    pub(crate) fn all(payload: &PayloadFields<'a>) -> Vec<Self> {
        let read = |raw: &'a RawValue| Self { raw, fields: PayloadFields::parse(raw.get()) };
        payload.items("blocks").into_iter().map(read).collect()
    }

    /// Tells whether the block has a type.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.fields.text("type").is_some_and(|own| own == kind)
    }
}

/// Returns the session that an event's run shows, if the envelope names one.
#[must_use]
pub fn session_run_id(event: &ExchangeEvent) -> Option<RunId> {
    run_id_in(event, "session_run_id")
}

/// Returns the run that a field of the envelope names, if any.
#[must_use]
pub fn run_id_in(event: &ExchangeEvent, field: &str) -> Option<RunId> {
    let text: String = event.extra.get(field)?.read().ok()?;
    RunId::parse(&text).ok()
}

/// Returns the run that a `run.started` says its run is a fork of.
#[must_use]
pub fn forked_from(fields: &PayloadFields<'_>) -> Option<RunId> {
    let text = fields.object("forked_from").string("run_id")?;
    RunId::parse(&text.to_text()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(payload: &str, want: Option<&str>) {
        assert_eq!(PayloadFields::parse(payload).error(), want.map(JsonString::from), "{payload}");
    }

    #[test]
    fn null_false_and_empty_are_not_errors() {
        check_error(r#"{"error":"exit 1"}"#, Some("exit 1"));
        check_error(r#"{"error":{"code":5}}"#, Some(r#"{"code":5}"#));
        for none in ["{}", "null", "[1]", r#"{"error":null}"#, r#"{"error":""}"#, r#"{"error":false}"#] {
            check_error(none, None);
        }
    }

    #[test]
    fn fields_are_found_in_objects_only() {
        let fields = PayloadFields::parse(r#"{"a":1,"a":"x","source":{"b":"y"}}"#);
        assert_eq!(fields.string("a"), Some("x".into()));
        assert_eq!(fields.object("source").string("b"), Some("y".into()));
        assert_eq!(fields.object("a").string("b"), None);
        assert_eq!(fields.object("none").string("b"), None);
        assert_eq!(fields.string("source"), None);
        assert_eq!(fields.others(&["a"]), [("source".into(), RawJson::parse(r#"{"b":"y"}"#).unwrap())]);
    }
}
